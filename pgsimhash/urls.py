"""What counts as the URL of a page."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import urlsplit, urlunsplit

from pgsimhash.errors import PageError, check_type

URL_BYTES_MAX: Final = 2048
"""The longest URL the store indexes, in bytes of UTF-8."""

_SCHEMES: Final = frozenset({"http", "https", "file"})

_PORTS: Final = {"http": 80, "https": 443}

_TRACKING: Final = re.compile(
    r"utm_\w+|[a-z]*cl(?:id|kid)|[gw]braid|igshid|mc_[ce]id|_g[al]|_hs(?:enc|mi)|mkt_tok",
    re.IGNORECASE,
)
"""Parameters that advertisers and mailings add to links, and that change no page."""

_PLAIN: Final = re.compile(
    r"https?://[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*(?::[0-9]{1,4})?(?:[/?#][!-~]*)?"
)
"""URLs of which nothing more has to be asked than how long they are."""

_HOST: Final = re.compile(
    r"[A-Za-z][A-Za-z0-9+.-]*://(?:[^/?#\\]*@)?(\[[0-9A-Za-z:.%]+\]|[^][/?#:@\\]+)(?=[:/?#\\]|\Z)"
)
"""As the function ``host_of`` of sql/tables.sql. A backslash is a slash, as browsers take it."""

_UNSEEN: Final = re.compile(
    r"[\x00- \x7f-\xa0\xad\u061c\u1680\u180e\u2000-\u200f\u2028-\u202f\u205f-\u206f"
    r"\u3000\ufeff\ufff9-\ufffb]"
)
"""White space and what shows nothing, as ``_add_page`` of sql/add.sql has it."""


def lowered(host: str) -> str:
    """Return a host with the letters A to Z in lower case: of others a server's locale decides.

    Raises:
        ArgumentError: it is not a text.
    """
    check_type("a host", host, str, wanted="its name, such as 'example.com'")
    return host.lower() if host.isascii() else re.sub("[A-Z]+", lambda run: run[0].lower(), host)


def host_of(url: str) -> str | None:
    """Return the host of an absolute URL, :func:`lowered`, as the column ``pages.host`` has it."""
    found = _HOST.match(url)
    return None if found is None else lowered(found[1])


def same_site(a: str, b: str) -> bool:
    """Return whether two URLs have one host, or the host of one is a subdomain of the other's."""
    one, other = sorted((host_of(a) or "", host_of(b) or ""), key=len)
    return one == other or ("." in one and other.endswith(f".{one}"))


def check_url(url: str) -> str:
    """Return ``url``, if it is an absolute http, https or file URL of at most 2,048 bytes.

    Raises:
        PageError: it is not; the message names what is wrong.
    """
    if not isinstance(url, str):
        raise PageError("invalid_url", f"a URL is a str, not {type(url).__name__}")
    if len(url) <= URL_BYTES_MAX and _PLAIN.fullmatch(url):
        return url
    shown = repr(url if len(url) <= 80 else f"{url[:80]}...")
    try:
        # What is too long is not split: that takes time, and urlsplit keeps what it was given.
        too_long = len(url) > URL_BYTES_MAX or len(url.encode()) > URL_BYTES_MAX
        parts = urlsplit("" if too_long else url)
    except (UnicodeEncodeError, ValueError) as error:
        raise PageError("invalid_url", f"{shown} is not a URL: {error}") from error
    if too_long:
        raise PageError("invalid_url", f"{shown} is longer than {URL_BYTES_MAX} bytes")
    if _UNSEEN.search(url):
        raise PageError(
            "invalid_url", f"{shown} holds white space or invisible characters; percent-encode it"
        )
    if parts.scheme not in _SCHEMES:
        raise PageError("invalid_url", f"{shown} is not an absolute http, https or file URL")
    if parts.scheme != "file" and host_of(url) is None:
        raise PageError("invalid_url", f"{shown} names no host")
    return url


def normalized_url(url: str) -> str:
    """Return one spelling for the URLs of a page, as crawlers do it.

    Scheme and host are in lower case, the default port and the fragment are left out, parameters
    are sorted, those of advertisers and mailings are left out (``utm_source``, ``fbclid`` and
    their like), and whatever can be percent-encoded in two ways is encoded in one; all but the port
    and the advertisers is what ``w3lib.url.canonicalize_url`` does, by which Scrapy tells requests
    apart.

    Raises:
        PageError: it is none of an absolute http, https or file URL of at most 2,048 bytes, or
            becomes none by that.
    """
    # For most collections nobody needs it, and it is not needed to import this module.
    from w3lib.url import canonicalize_url

    parts = urlsplit(check_url(url))
    try:
        host = parts.netloc
        if parts.port == _PORTS.get(parts.scheme):
            host = host.rpartition(":")[0] if parts.port is not None else host
        asked = [one for one in parts.query.split("&") if not _is_tracking(one)]
        cleaned = parts._replace(netloc=host, query="&".join(asked))
        return check_url(canonicalize_url(urlunsplit(cleaned)))
    except ValueError as error:
        raise PageError("invalid_url", f"{url!r} is not a URL: {error}") from error


def _is_tracking(parameter: str) -> bool:
    return _TRACKING.fullmatch(parameter.partition("=")[0]) is not None
