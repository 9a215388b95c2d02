"""Decode the bodies of HTTP responses."""

from __future__ import annotations

import re
import zlib
from importlib import import_module
from typing import Final

from pgsimhash.errors import PageError
from pgsimhash.pages.values import too_large

_ENCODINGS_MAX: Final = 4
"""The maximum number of encodings of a body; servers use one."""

_BEFORE_MARKUP: Final = b"\xef\xbb\xbf \t\r\n"
_MARKUP: Final = re.compile(rb"<(?:!doctype\s+html|html|head|body)\b", re.IGNORECASE)
_BEGIN: Final = 1024
_CHUNK: Final = re.compile(rb"([0-9a-f]{1,8})[ \t]*(?:;[^\r\n]*)?\r\n", re.IGNORECASE)


def looks_like_html(body: bytes) -> bool:
    """Return whether a body without a content type begins like an HTML page."""
    begin = body[:_BEGIN].lstrip(_BEFORE_MARKUP)
    return begin.startswith(b"<") and _MARKUP.search(begin) is not None


def decode_body(body: bytes, transfer: str, encodings: str, max_bytes: int) -> bytes:
    """Undo the ``Transfer-Encoding`` and the ``Content-Encoding`` of the HTTP headers."""
    if "chunked" in transfer.lower():
        body = _unchunked(body)
    named = encodings.lower().split(",", _ENCODINGS_MAX)
    if len(named) > _ENCODINGS_MAX:
        raise PageError("unreadable", f"it has more than {_ENCODINGS_MAX} encodings")
    for encoding in reversed(named):
        try:
            body = _decoded(body, encoding.strip(), max_bytes)
        except PageError as error:
            # Many crawlers store the page decoded and keep the header.
            if error.reason != "unreadable" or not body.lstrip(_BEFORE_MARKUP).startswith(b"<"):
                raise
    return body


def _unchunked(body: bytes) -> bytes:
    """Return the content of chunks without a trailer; a body without chunks is unchanged."""
    data: list[bytes] = []
    at = 0
    while chunk := _CHUNK.match(body, at):
        end = chunk.end() + int(chunk[1], 16)
        if end == chunk.end():
            return b"".join(data)
        if body[end : end + 2] not in (b"\r\n", b"\r", b""):
            break
        data.append(body[chunk.end() : end])
        at = end + 2
    return b"".join([*data, body[at:]])


def _decoded(body: bytes, encoding: str, max_bytes: int) -> bytes:
    match encoding:
        case "" | "identity":
            return body
        case "gzip" | "x-gzip":
            return _inflated(body, encoding, 16 + zlib.MAX_WBITS, max_bytes)
        case "deflate":
            # The standard requires the zlib format; some servers send raw deflate data.
            is_zlib = len(body) > 1 and body[0] & 15 == 8 and int.from_bytes(body[:2]) % 31 == 0
            bits = zlib.MAX_WBITS if is_zlib else -zlib.MAX_WBITS
            return _inflated(body, encoding, bits, max_bytes)
        case "br":
            return _unbrotlied(body, max_bytes)
        case _:
            raise PageError("unreadable", f"the content encoding {encoding!r} is unknown")


def _inflated(body: bytes, encoding: str, bits: int, max_bytes: int) -> bytes:
    decoder = zlib.decompressobj(bits)
    try:
        page = decoder.decompress(body, max_bytes + 1)
    except zlib.error as error:
        raise PageError("unreadable", f"its {encoding} data is damaged ({error})") from None
    return _checked(page, decoder.eof, encoding, max_bytes)


def _unbrotlied(body: bytes, max_bytes: int) -> bytes:
    try:
        brotli = import_module("brotli")
        decoder = brotli.Decompressor()
        # Older versions without this method cannot bound the memory.
        _ = decoder.can_accept_more_data
    except (ImportError, AttributeError):
        raise PageError(
            "unreadable", "it is compressed with brotli: pip install 'brotli>=1.2'"
        ) from None
    try:
        page = decoder.process(body, output_buffer_limit=max_bytes + 1)
    except brotli.error as error:
        raise PageError("unreadable", f"its br data is damaged ({error})") from None
    return _checked(page, decoder.is_finished(), "br", max_bytes)


def _checked(page: bytes, finished: bool, encoding: str, max_bytes: int) -> bytes:
    if len(page) > max_bytes:
        raise too_large("the page", max_bytes)
    if not finished:
        raise PageError("unreadable", f"its {encoding} data ends early")
    return page
