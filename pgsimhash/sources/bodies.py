"""Decode the bodies of HTTP responses."""

import io
import re
import zlib
from contextlib import suppress
from functools import partial
from importlib import import_module
from typing import Any, Final

from pgsimhash.errors import PageError
from pgsimhash.html.parse import refuse_binary
from pgsimhash.pages.values import too_large
from pgsimhash.sources.page import BEGIN_BYTES
from pgsimhash.sources.streams import CHECKSUM_MESSAGES, GZIP, ZSTD_MAGIC, Codec, zstd_codec

# A decoder copies what follows its member, of which a body may have very many.
_PIECE: Final = 4096
_ENCODINGS_MAX: Final = 5  # as curl
_CHECKSUMS: Final = {"gzip": 8, "deflate": 4}  # bytes at the end
_CHUNK: Final = re.compile(rb"([0-9a-f]{1,16})[ \t]*(?:;[^\r\n]*)?\r\n", re.IGNORECASE)


def decode_body(body: bytes, transfer: str, encoding: str, max_bytes: int) -> tuple[bytes, bool]:
    """Undo the ``Transfer-Encoding`` and the ``Content-Encoding`` of the HTTP headers.

    Return also whether all of the page is there. Otherwise its data ends early.
    """
    names = [name.partition(";")[0].strip() for name in f"{encoding},{transfer}".lower().split(",")]
    body, is_whole = _unchunked(body) if "chunked" in names else (body, True)
    names = [name for name in names if name not in ("", "chunked")]
    if len(names) > _ENCODINGS_MAX:
        raise PageError("unreadable", f"it has {len(names):,} content encodings")
    try:
        # Some servers pack a page twice and say so once.
        for name in (*reversed(names), "none"):
            body, is_finished = _decoded(body, name, max_bytes)
            is_whole = is_whole and is_finished
        return body, is_whole
    except PageError as error:
        # Many crawlers store the page decoded and keep the header. Compressed data is binary.
        if error.reason == "unreadable" and b"<" in body[:BEGIN_BYTES]:
            with suppress(PageError):
                refuse_binary(body)
                return body, is_whole
        raise


def _unchunked(body: bytes) -> tuple[bytes, bool]:
    """Return the content of chunks, or a body without any, and whether the last one is whole."""
    data: list[bytes] = []
    at = 0
    while chunk := _CHUNK.match(body, at):
        end = chunk.end() + int(chunk[1], 16)
        if end == chunk.end():
            return b"".join(data), True
        if body[end : end + 2] not in (b"\r\n", b"\r", b""):
            break
        data.append(body[chunk.end() : end])
        at = end + 2
    return b"".join([*data, body[at:]]), at <= len(body) + 2


def _decoded(body: bytes, encoding: str, max_bytes: int) -> tuple[bytes, bool]:
    # The first bytes tell, whatever the header calls it.
    if body.startswith(GZIP.magic):
        return _inflated(body, GZIP, max_bytes)
    if encoding == "zstd" or body.startswith(ZSTD_MAGIC):
        return _inflated(body, zstd_codec(io.BytesIO(body), body), max_bytes)
    if encoding in ("identity", "none"):
        return body, True
    if encoding == "br":
        return _unbrotlied(body, max_bytes)
    if encoding not in ("gzip", "x-gzip", "deflate"):
        raise PageError("unreadable", f"the content encoding {encoding!r} is unknown")
    # The standard requires the zlib format; some servers send raw deflate data.
    is_zlib = len(body) > 1 and body[0] & 15 == 8 and int.from_bytes(body[:2]) % 31 == 0
    decoder = partial(zlib.decompressobj, zlib.MAX_WBITS if is_zlib else -zlib.MAX_WBITS)
    try:
        return _inflated(body, Codec("deflate", b"", decoder, zlib.error), max_bytes)
    except PageError as error:
        if error.reason == "unreadable":
            with suppress(PageError):
                return _unbrotlied(body, max_bytes)
        raise


def _inflated(body: bytes, codec: Codec, max_bytes: int) -> tuple[bytes, bool]:
    pages: list[bytes] = []
    decoder, at, room, is_first = codec.decoder(), 0, max_bytes + 1, True
    checksum = len(body) - _CHECKSUMS.get(codec.name, 0)
    while room and at < len(body):
        # The checksum is a piece of its own: where it is wrong, the decoder drops the whole piece.
        piece = body[at : min(at + _PIECE, checksum if at < checksum else len(body))]
        try:
            pages.append(decoder.decompress(piece, room))
        except codec.error as error:
            if not is_first or (at >= checksum and str(error).endswith(CHECKSUM_MESSAGES)):
                # Browsers ignore damage behind the first member, and a wrong checksum.
                return _checked(b"".join(pages), False, codec.name, max_bytes)
            raise PageError("unreadable", f"its {codec.name} data is damaged ({error})") from None
        room -= len(pages[-1])
        at += len(piece) - len(decoder.unused_data)
        if decoder.eof:
            # Browsers ignore what follows the last member; zeros between members are padding.
            while body.startswith(b"\0", at):
                at += 1
            if not (codec.magic and body.startswith(codec.magic, at)):
                break
            decoder, is_first = codec.decoder(), False
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
    at, room, damage = 0, max_bytes + 1, ""
    try:
        brotli = import_module("brotli")
        # It refuses a piece with bytes behind the data; one by one, these are not given to it.
        for step in (len(body), _PIECE, 1):
            decoder = brotli.Decompressor()
            page = bytearray(decoder.process(body[:at], output_buffer_limit=room))
            try:
                while at < len(body) and len(page) < room and not decoder.is_finished():
                    page += decoder.process(body[at : at + step], output_buffer_limit=room)
                    at += step
                return _checked(bytes(page), decoder.is_finished(), "br", max_bytes)
            except brotli.error as error:
                damage = str(error)
    except (ImportError, TypeError):
        # Older versions cannot bound the memory.
        problem = "it is compressed with brotli: pip install 'brotli>=1.2'"
        raise PageError("unreadable", problem) from None
    raise PageError("unreadable", f"its br data is damaged ({damage})")


def _checked(page: bytes, is_finished: bool, encoding: str, max_bytes: int) -> tuple[bytes, bool]:
    if len(page) > max_bytes:
        raise too_large("the page", max_bytes)
    if not (is_finished or page):
        raise PageError("unreadable", f"its {encoding} data ends early")
    return page, is_finished
