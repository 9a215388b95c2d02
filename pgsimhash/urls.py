"""What counts as the URL of a page."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import urlsplit

from pgsimhash.errors import PageError

URL_BYTES_MAX: Final = 2048
"""The longest URL the store indexes, in bytes of UTF-8."""

_SCHEMES: Final = frozenset({"http", "https", "file"})

_HOST: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://(?:[^/?#@]*@)?(\[[^/?#\]]*\]|[^/?#:]+)")


def host_of(url: str) -> str | None:
    """Return the host of an absolute URL in lower case, as the column ``pages.host`` has it."""
    found = _HOST.match(url)
    return None if found is None else found[1].lower()


def same_site(a: str, b: str) -> bool:
    """Return whether two URLs have one host, or the host of one is a subdomain of the other's."""
    one, other = sorted((host_of(a) or "", host_of(b) or ""), key=len)
    return one == other or ("." in one and other.endswith(f".{one}"))


def check_url(url: str) -> str:
    """Return ``url``, if it is an absolute http, https or file URL of at most 2,048 bytes.

    Raises:
        PageError: it is not; the message names what is wrong.
    """
    shown = repr(url if len(url) <= 80 else f"{url[:80]}...")
    try:
        # What is too long is not split: that takes time, and urlsplit keeps what it was given.
        too_long = len(url) > URL_BYTES_MAX or len(url.encode()) > URL_BYTES_MAX
        parts = urlsplit("" if too_long else url)
    except (UnicodeEncodeError, ValueError) as error:
        raise PageError("invalid_url", f"{shown} is not a URL: {error}") from error
    if too_long:
        raise PageError("invalid_url", f"{shown} is longer than {URL_BYTES_MAX} bytes")
    # Of white space only the space itself is printable.
    if " " in url or not url.isprintable():
        raise PageError(
            "invalid_url", f"{shown} holds white space or control characters; percent-encode it"
        )
    if parts.scheme not in _SCHEMES:
        raise PageError("invalid_url", f"{shown} is not an absolute http, https or file URL")
    if parts.scheme != "file" and not parts.hostname:
        raise PageError("invalid_url", f"{shown} names no host")
    return url
