"""Decode the bodies of HTTP responses."""

import io
import re
import zlib
from functools import partial
from importlib import import_module
from typing import Any, Final

from pgsimhash.errors import PageError
from pgsimhash.pages.values import too_large
from pgsimhash.sources.page import BEFORE_MARKUP
from pgsimhash.sources.streams import CHECKSUM_MESSAGES, GZIP, Codec, zstd_codec

# A decoder copies what follows its member, of which a body may have very many.
_PIECE: Final = 4096
_CHECKSUMS: Final = {"gzip": 8, "deflate": 4}  # bytes at the end
_CHUNK: Final = re.compile(rb"([0-9a-f]{1,8})[ \t]*(?:;[^\r\n]*)?\r\n", re.IGNORECASE)


def decode_body(body: bytes, transfer: str, encoding: str, max_bytes: int) -> tuple[bytes, bool]:
    """Undo the ``Transfer-Encoding`` and the ``Content-Encoding`` of the HTTP headers.

    Return also whether all of the page is there. The packed data of another one ends early.
    """
    if "chunked" in transfer.lower():
        body = _unchunked(body)
    is_whole = True
    try:
        for name in reversed(encoding.lower().split(",")):
            body, is_finished = _decoded(body, name.partition(";")[0].strip(), max_bytes)
            is_whole = is_whole and is_finished
        return body, is_whole
    except PageError as error:
        # Many crawlers store the page decoded and keep the header.
        if error.reason != "unreadable" or not body.lstrip(BEFORE_MARKUP).startswith(b"<"):
            raise
        return body, True


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


def _decoded(body: bytes, encoding: str, max_bytes: int) -> tuple[bytes, bool]:
    if encoding and body.startswith(GZIP.magic):
        encoding = "gzip"  # whatever the header calls it
    match encoding:
        case "" | "identity" | "none":
            return body, True
        case "gzip" | "x-gzip":
            return _inflated(body, GZIP, max_bytes)
        case "deflate":
            # The standard requires the zlib format; some servers send raw deflate data.
            is_zlib = len(body) > 1 and body[0] & 15 == 8 and int.from_bytes(body[:2]) % 31 == 0
            decoder = partial(zlib.decompressobj, zlib.MAX_WBITS if is_zlib else -zlib.MAX_WBITS)
            return _inflated(body, Codec(encoding, b"", decoder, zlib.error), max_bytes)
        case "br":
            return _unbrotlied(body, max_bytes)
        case "zstd":
            return _inflated(body, zstd_codec(io.BytesIO(body)), max_bytes)
        case _:
            raise PageError("unreadable", f"the content encoding {encoding!r} is unknown")


def _inflated(body: bytes, codec: Codec, max_bytes: int) -> tuple[bytes, bool]:
    pages: list[bytes] = []
    decoder, at, room = codec.decoder(), 0, max_bytes + 1
    checksum = len(body) - _CHECKSUMS.get(codec.name, 0)
    while room and at < len(body):
        # The checksum is a piece of its own: where it is wrong, the decoder drops the whole piece.
        piece = body[at : min(at + _PIECE, checksum if at < checksum else len(body))]
        try:
            pages.append(decoder.decompress(piece, room))
        except codec.error as error:
            if at >= checksum and str(error).endswith(CHECKSUM_MESSAGES):
                # Browsers ignore it.
                return _checked(b"".join(pages), False, codec.name, max_bytes)
            raise PageError("unreadable", f"its {codec.name} data is damaged ({error})") from None
        room -= len(pages[-1])
        at += len(piece) - len(decoder.unused_data)
        if decoder.eof:
            # Browsers ignore what follows the last member.
            if not (codec.magic and body.startswith(codec.magic, at)):
                break
            decoder = codec.decoder()
    finished = decoder.eof or _has_all_but_checksum(decoder)
    return _checked(b"".join(pages), finished, codec.name, max_bytes)


def _has_all_but_checksum(decoder: Any) -> bool:
    """Return whether deflated data ends where its checksum would begin."""
    for rest in (bytes(8), b"\xff" * 8):
        try:
            decoder.copy().decompress(rest)
        except (zlib.error, AttributeError) as error:
            if "incorrect" in str(error):
                continue
        return False
    return True


def _unbrotlied(body: bytes, max_bytes: int) -> tuple[bytes, bool]:
    try:
        brotli = import_module("brotli")
        decoder = brotli.Decompressor()
        page = decoder.process(body, output_buffer_limit=max_bytes + 1)
    except (ImportError, TypeError):
        # Older versions cannot bound the memory.
        problem = "it is compressed with brotli: pip install 'brotli>=1.2'"
        raise PageError("unreadable", problem) from None
    except brotli.error as error:
        raise PageError("unreadable", f"its br data is damaged ({error})") from None
    return _checked(page, decoder.is_finished(), "br", max_bytes)


def _checked(page: bytes, is_finished: bool, encoding: str, max_bytes: int) -> tuple[bytes, bool]:
    if len(page) > max_bytes:
        raise too_large("the page", max_bytes)
    if not (is_finished or page):
        raise PageError("unreadable", f"its {encoding} data ends early")
    return page, is_finished
