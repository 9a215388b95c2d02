"""Check, compare and normalize the URLs of pages."""

import re
from functools import cache
from importlib import import_module
from typing import Final
from urllib.parse import quote, unquote_to_bytes, urlsplit, urlunsplit

from pgsimhash.errors import PageError

__all__ = ["normalized_url", "page_address"]

URL_BYTES_MAX: Final = 2048  # of the longest URL that the store indexes, in UTF-8
_SCHEMES: Final = frozenset({"http", "https", "file"})

_PORTS: Final = {"http": 80, "https": 443}

_TRACKING: Final = re.compile(
    r"utm_\w+|[a-z]*cl(?:id|kid)|[gw]braid|igshid|mc_[ce]id|_g[al]|_hs(?:enc|mi)|mkt_tok",
    re.IGNORECASE,
)
"""Parameters that advertisers and mailings add to links; they do not change the page."""

_PLAIN: Final = re.compile(
    r"https?://[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*(?::[0-9]{1,4})?(?:[/?#][!-~]*)?"
)
"""Plain URLs, of which only the length has to be checked."""

_HOST: Final = re.compile(
    r"[A-Za-z][A-Za-z0-9+.-]*://(?:[^/?#\\]*@)?(\[[0-9A-Za-z:.%]+\]|[^][/?#:@\\]+)(?=[:/?#\\]|\Z)"
)
"""Equal to the function ``host_of`` in sql/tables.sql. A backslash is a slash, as in browsers."""

_ADDRESS: Final = re.compile(r"(?is)(https?://[^/?#]*)([^?#]*)(?:\?([^#]*))?(#[!/].*)?")

_IN_PATHS: Final = "!$&'()*+,;=:@"  # characters that segments of a path need not encode

_UNSEEN: Final = re.compile(
    r"[\x00- \x7f-\xa0\xad\u061c\u1680\u180e\u2000-\u200f\u2028-\u202f\u205f-\u206f"
    r"\u3000\ufeff\ufff9-\ufffb]"
)
"""White space and invisible characters; equal to those of ``add_pages`` in sql/add.sql."""


def lowered(host: str) -> str:
    """Return a host with A to Z in lower case; SQL lowers other letters by the server's locale."""
    return re.sub("[A-Z]+", lambda run: run[0].lower(), host)


def host_of(url: str) -> str | None:
    """Return the :func:`lowered` host of an absolute URL, equal to the column ``pages.host``."""
    match = _HOST.match(url)
    return None if match is None else lowered(match[1])


def same_site(a: str, b: str) -> bool:
    """Return whether two URLs have one host, or hosts of one owner by the public suffix list."""
    host, other = host_of(a), host_of(b)
    return host == other or ((site := _registered(host)) is not None and site == _registered(other))


def _registered(host: str | None) -> str | None:
    """Return the domain that the owner of a host registered, None for an address or a suffix."""
    is_address = host is None or host.rpartition(".")[2].isdigit()
    return None if is_address else _public_suffixes().privatesuffix(host)


# Only collections that believe canonical links need the list.
_public_suffixes: Final = cache(lambda: import_module("publicsuffixlist").PublicSuffixList())


def check_url(url: str, *, any_id: bool = False) -> str:
    """Return ``url``; raise PageError unless it is http, https or file, of at most 2,048 bytes.

    ``any_id`` accepts every text of this length, such as the ids of texts.
    """
    if not isinstance(url, str):
        raise PageError("invalid_url", f"a URL is a str, not {type(url).__name__}")
    if len(url) <= URL_BYTES_MAX and _PLAIN.fullmatch(url):
        return url
    shown = repr(url if len(url) <= 80 else f"{url[:80]}...")
    try:
        too_long = len(url) > URL_BYTES_MAX or len(url.encode()) > URL_BYTES_MAX
        # A long URL is not split: that takes time, and urlsplit caches its arguments.
        scheme = urlsplit("" if too_long or any_id else url).scheme
    except (UnicodeEncodeError, ValueError) as error:
        raise PageError("invalid_url", f"{shown} is not a URL: {error}") from error
    if too_long:
        problem = f"is longer than {URL_BYTES_MAX} bytes"
    elif any_id and url:
        return url
    elif _UNSEEN.search(url):
        problem = "holds white space or invisible characters; percent-encode it"
    elif scheme not in _SCHEMES:
        problem = "is not an absolute http, https or file URL; only texts may have other ids"
    elif scheme != "file" and host_of(url) is None:
        problem = "names no host"
    else:
        return url
    raise PageError("invalid_url", f"{shown} {problem}")


def normalized_url(url: str) -> str:
    """Return the normal form of a URL; the default port and tracking parameters are removed.

    ``w3lib.url.canonicalize_url``, which Scrapy uses to compare requests, does the rest.
    """
    from w3lib.url import canonicalize_url  # few collections need it

    parts = urlsplit(check_url(url))
    try:
        host = parts.netloc
        if parts.port is not None and parts.port == _PORTS.get(parts.scheme):
            host = host.rpartition(":")[0]
        parameters = parts.query.split("&")
        parameters = [each for each in parameters if not _TRACKING.fullmatch(each.split("=")[0])]
        cleaned = parts._replace(netloc=host, query="&".join(parameters))
        return check_url(canonicalize_url(urlunsplit(cleaned)))
    except ValueError as error:
        raise PageError("invalid_url", f"{url!r} is not a URL: {error}") from error


def page_address(url: str, ignore_parameters: str = "") -> str:
    """Return the URL in one spelling, without the parameters that do not matter.

    ``ignore_parameters`` are names with commas between them, in any case; ``*`` matches anything.
    Equal to the function ``page_address`` in sql/policies.sql. The other parameters are sorted by
    name, a repeated one stays once, and one without a value gets an empty one. Scheme and host are
    in lower case, percent-encoding is as short as possible, and the fragment goes, unless it is a
    route (``#/`` or ``#!``). A URL that is not http or https, or would be longer than 2,048 bytes,
    stays.
    """
    if (parts := address_parts(url)) is None:
        return url
    site, path, parameters, route = parts
    globs = (_spelled(glob.strip(" "), "*").lower() for glob in ignore_parameters.split(","))
    ignored = re.compile("|".join(re.escape(glob).replace(r"\*", ".*") for glob in globs))
    kept = (each for each in parameters if not (each[0] and ignored.fullmatch(each[0].lower())))
    query = "&".join(map("=".join, sorted(dict.fromkeys(kept), key=lambda each: each[0])))
    address = f"{site}{path}{query and '?'}{query}{route}"
    return url if len(address.encode()) > URL_BYTES_MAX else address


def address_parts(url: str) -> tuple[str, str, list[tuple[str, str]], str] | None:
    """Return scheme and host, path, parameters, route of an http URL, spelled as in addresses."""
    if (found := _ADDRESS.match(url)) is None:
        return None
    site, path, query, route = found.groups("")
    pieces = (piece.replace("+", " ").partition("=") for piece in query.split("&") if piece)
    parameters = [(_spelled(name), _spelled(value)) for name, _, value in pieces]
    segments = (_spelled(segment, _IN_PATHS) for segment in (path or "/").split("/"))
    return lowered(site), "/".join(segments), parameters, route


def _spelled(part: str, unencoded: str = "") -> str:
    return quote(unquote_to_bytes(part), safe=unencoded)
