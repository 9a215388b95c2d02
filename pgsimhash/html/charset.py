"""Decode the bytes of a page.

Labels have the meaning they have in browsers (WHATWG Encoding Standard, section 4.2):
``iso-8859-1`` is windows-1252 and ``gb2312`` is gb18030. The order is also theirs, with one
exception: valid UTF-8 is UTF-8 for any label, because labels are wrong more often.
"""

from __future__ import annotations

import codecs
import re
import zlib
from contextlib import suppress
from typing import Final

import numpy as np
import webencodings
from chardetng_py import EncodingDetector
from w3lib.encoding import html_body_declared_encoding, read_bom

from pgsimhash.errors import PageError
from pgsimhash.html import native
from pgsimhash.pages.values import BytesLike

_MAGIC: Final = {
    b"%PDF-": "a PDF",
    b"\x89PNG\r\n\x1a\n": "a PNG image",
    b"GIF87a": "a GIF image",
    b"GIF89a": "a GIF image",
    b"\xff\xd8\xff": "a JPEG image",
    b"PK\x03\x04": "a zip archive or an office document",
    b"\x1f\x8b": "gzip data; decompress it first",
    b"\x28\xb5\x2f\xfd": "zstd data; decompress it first",
    b"\xfd7zXZ\x00": "xz data; decompress it first",
    b"7z\xbc\xaf\x27\x1c": "a 7z archive",
    b"Rar!\x1a\x07": "a RAR archive",
    b"\xd0\xcf\x11\xe0": "an office document",
    b"\x7fELF": "a program",
    b"wOFF": "a font",
    b"wOF2": "a font",
    b"OggS\x00": "audio or video",
    b"\x1a\x45\xdf\xa3": "video",
}

# The codecs that browsers use instead of the codec of the same name.
_CODECS: Final = {"gbk": "gb18030", "x-user-defined": "cp1252", "replacement": None}
_UTF16: Final = frozenset({"utf-16-le", "utf-16-be"})
# Python's names that are no labels in browsers, but occur on pages.
_PYTHON_NAMES: Final = _UTF16 | {
    "cp874", "cp932", "cp949", "big5hkscs", "euc_jp", "iso2022_jp", "iso8859-16", "mac-roman",
    "mac-cyrillic",
}  # fmt: skip
_LABEL_MAX: Final = 40
# A label in a meta of which http-equiv is misspelt or translated.
_META: Final = re.compile(rb"<meta\s[^<>]{0,200}\bcharset\s*=\s*[\"']?([\w-]+)", re.IGNORECASE)
_HEAD: Final = 8192  # how many bytes of a page are searched for its label and for binary data
_DETECTED: Final = 1 << 20  # how many bytes of a page the detector reads
_PART: Final = 1 << 16  # how many bytes of a broken page are decoded at once
_PRINTABLE_SHARE: Final = 0.97
_NOISE_MIN: Final = 1 << 20
# Random bytes from 0x80 compress to 0.88 or more; even characters drawn by frequency to less.
_NOISE_SHARE: Final = 0.87
_ASCII: Final = bytes(range(0x80))
_CONTROLS: Final = bytes({*range(0x20), 0x7F} - {0, *b"\t\n\v\f\r\x1a\x1b"})
_DROPPED: Final = re.compile("[\x00-\x08\x0b\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
_SHORT: Final = 4096  # below this length, one pattern is faster than numpy
_ESCAPE: Final = b"\x1b"
_DROPPED_UTF8: Final = [
    re.compile(pattern)
    for pattern in (rb"\xc2[\x80-\x9f]", rb"\xed[\xa0-\xbf]", rb"\xef\xbf[\xbe\xbf]")
]
_CP1252_ERRORS: Final = "pgsimhash.windows-1252"


def decode(html: BytesLike, charset: str | None = None) -> str:
    """Return the text of :func:`clean_utf8`."""
    return clean_utf8(html, charset).decode()


def clean_utf8(html: BytesLike | str, charset: str | None = None) -> bytes:
    """Return a page in UTF-8, without NUL and other control characters.

    The first of these that applies decides, whatever packages are installed:

    - a byte-order mark;
    - valid UTF-8 with at least one character outside ASCII;
    - ``charset``, then the page's own label, if the bytes are valid in it;
    - UTF-8 mixed with some windows-1252;
    - a label in which nearly all bytes are valid, with replacement characters;
    - the encoding that Firefox's detector finds (chardetng), which is windows-1252 without signs of
      another.
    """
    if isinstance(html, str):
        return _clean(html.encode("utf-8", "surrogatepass"))
    body = bytes(html)
    marked, mark = read_bom(body)
    body = body[len(mark or b"") :]
    codec = marked or _unmarked_utf16(body, charset)
    if codec is not None:
        return _clean(body.decode(codec, "replace").encode("utf-8", "surrogatepass"))
    refuse_binary(body)
    return _clean(_to_utf8(body, charset))


def refuse_binary(body: bytes, wanted: str = "HTML") -> None:
    """Raise if the bytes, of no byte-order mark, are another format than the wanted one."""
    start = body[:64].lstrip(b" \t\r\n\0")
    for magic, what in _MAGIC.items():
        if start.startswith(magic):
            raise PageError("not_html", f"this is not {wanted} but {what}")
    head = body[:_HEAD]
    printable = len(head.translate(None, _CONTROLS))
    if (
        printable < _PRINTABLE_SHARE * len(head)
        or head.count(0) > len(head) // 2
        or (len(body) > _NOISE_MIN and _is_noise(body))
    ):
        raise PageError("not_html", f"this is not {wanted} but binary data")


def _is_noise(body: bytes) -> bool:
    """Return whether random bytes, which take long to read as words, fill a page."""
    parts = [body[start : start + _PART] for start in range(0, len(body) - _PART, len(body) // 5)]
    return all(
        len(part.translate(None, _ASCII)) > len(part) // 4
        and len(zlib.compress(part, 1)) > _NOISE_SHARE * len(part)
        for part in parts
    )


def clean_text(text: str) -> str:
    """Return ``text`` without NUL, control characters and lone surrogates."""
    if text.isprintable():
        return text
    if len(text) < _SHORT:
        return _DROPPED.sub("", text)
    utf8 = text.encode("utf-8", "surrogatepass")
    cleaned = _clean(utf8)
    return text if cleaned is utf8 else cleaned.decode()


def _clean(utf8: bytes) -> bytes:
    if native.is_clean(utf8):
        return utf8
    # Comparing all bytes at once, and searching for three patterns, is much faster than a pattern
    # of all characters.
    values = np.frombuffer(utf8, np.uint8)
    is_dirty = (values - 0x0E < 0x20 - 0x0E) | (values < 0x09) | (values == 0x0B) | (values == 0x7F)
    if is_dirty.any() or (
        not utf8.isascii() and any(pattern.search(utf8) for pattern in _DROPPED_UTF8)
    ):
        return _DROPPED.sub("", utf8.decode("utf-8", "surrogatepass")).encode()
    return utf8


def codec_for(label: str | None) -> str | None:
    """Return Python's name of the codec that browsers use for ``label``, or None."""
    if not label or len(label) > _LABEL_MAX or not label.isascii():
        return None
    name = label.strip(" \t\r\n\f\"'").lower()
    encoding = webencodings.lookup(name)
    if encoding is None:
        try:
            name = codecs.lookup(name).name
        except (LookupError, ValueError):
            return None
        if name in _PYTHON_NAMES:
            return name
        encoding = webencodings.lookup(name.replace("_", "-"))
    if encoding is None:
        return None
    codec = str(encoding.codec_info.name)
    return _CODECS.get(codec, codec)


def _unmarked_utf16(body: bytes, charset: str | None) -> str | None:
    # NUL bytes decide: the label alone is often wrong.
    start = body[:64]
    even, odd = start[::2].count(0), start[1::2].count(0)
    if max(even, odd) <= len(start) // 4 or min(even, odd) > len(start) // 8:
        return None
    if b"<" in start or codec_for(charset) in _UTF16:
        return "utf-16-le" if odd > even else "utf-16-be"
    return None


def _to_utf8(body: bytes, charset: str | None) -> bytes:
    # Only a codec with escape sequences reads ASCII as something else.
    if body.isascii() and _ESCAPE not in body:
        return body
    try:
        if not body.isascii():
            body.decode()
            return body
    except UnicodeDecodeError as error:
        # A size limit of the crawler may have cut the last character.
        if error.reason == "unexpected end of data":
            return body[: error.start]
    head = body[:_HEAD]
    meta = _META.search(head)
    own = html_body_declared_encoding(head) or (meta and meta[1].decode())
    labels = [codec_for(label) for label in (charset, own)]
    names = [name for name in labels if name and name != "utf-8" and name not in _UTF16]
    for name in names:
        with suppress(UnicodeDecodeError):
            return body.decode(name).encode("utf-8", "surrogatepass")
    return _decode_broken(body, names).encode("utf-8", "surrogatepass")


def _decode_broken(body: bytes, names: list[str]) -> str:
    """Return the text of bytes that are invalid in all possible encodings."""
    foreign = len(body) - len(body.decode("ascii", "ignore"))
    # A broken multi-byte character counts once here and several times in ``foreign``.
    if body.decode("utf-8", "replace").count("\ufffd") * 4 <= foreign:
        return body.decode("utf-8", _CP1252_ERRORS)
    for name in names:
        text = _decode_nearly_valid(body, name, foreign // 20)
        if text is not None:
            return text
    detector = EncodingDetector()
    detector.feed(body[:_DETECTED], last=len(body) <= _DETECTED)
    found = codec_for(detector.guess(tld=None, allow_utf8=False))
    return body.decode(found or "cp1252", "replace")


def _decode_nearly_valid(body: bytes, name: str, most: int) -> str | None:
    """Return the text, or None as soon as more than ``most`` characters are invalid."""
    decoder = codecs.getincrementaldecoder(name)("replace")
    parts: list[str] = []
    for start in range(0, len(body), _PART):
        parts.append(decoder.decode(body[start : start + _PART], start + _PART >= len(body)))
        most -= parts[-1].count("\ufffd")
        if most < 0:
            return None
    return "".join(parts)


def _as_cp1252(error: UnicodeError) -> tuple[str | bytes, int]:
    if not isinstance(error, UnicodeDecodeError):
        raise error
    return error.object[error.start : error.end].decode("cp1252", "replace"), error.end


codecs.register_error(_CP1252_ERRORS, _as_cp1252)
