"""From a page's bytes to text, the way browsers choose the encoding."""

from __future__ import annotations

import codecs
from typing import Final

from bs4.dammit import EncodingDetector

from pgsimhash.errors import NotHtmlError

_SIGNATURES: Final = {
    b"%PDF-": "a PDF",
    b"\x89PNG": "a PNG image",
    b"\xff\xd8\xff": "a JPEG image",
    b"GIF8": "a GIF image",
    b"RIFF": "an image or a recording",
    b"\x1f\x8b": "gzip data; decompress it first",
    b"PK\x03\x04": "a ZIP archive",
    b"Rar!": "a RAR archive",
    b"7z\xbc\xaf": "a 7z archive",
    b"BZh": "bzip2 data; decompress it first",
    b"\xfd7zXZ": "xz data; decompress it first",
    b"\x28\xb5\x2f\xfd": "zstd data; decompress it first",
    b"\x7fELF": "a program",
    b"ID3": "a recording",
    b"OggS": "a recording",
    b"wOFF": "a font",
    b"wOF2": "a font",
    b"\xd0\xcf\x11\xe0": "an Office document",
}

# The names that pages give are read as browsers read them (WHATWG Encoding, section 4.2).
_READ_AS: Final = {
    "ascii": "windows-1252",
    "us-ascii": "windows-1252",
    "iso-8859-1": "windows-1252",
    "iso8859-1": "windows-1252",
    "latin1": "windows-1252",
    "latin-1": "windows-1252",
    "iso-8859-9": "windows-1254",
    "iso-8859-11": "cp874",
    "tis-620": "cp874",
    "windows-874": "cp874",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "shift_jis": "cp932",
    "shift-jis": "cp932",
    "sjis": "cp932",
    "x-sjis": "cp932",
    "ks_c_5601-1987": "cp949",
    "euc-kr": "cp949",
    "big5": "big5hkscs",
    # A page that could be read as far as this label is not in UTF-16.
    "utf-16": "utf-8",
    "utf-16le": "utf-8",
    "utf-16be": "utf-8",
}

# Python's own codecs, and UTF-7, which browsers refuse because it can hide markup.
_NOT_FOR_PAGES: Final = frozenset(
    {"utf-7", "idna", "punycode", "undefined", "unicode-escape", "raw-unicode-escape"}
)

_MARKS: Final = {
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
}

_BROKEN_FEW: Final = 20
"""How many characters outside ASCII make up for a broken one."""

_BINARY_SAMPLE: Final = 4096
_BINARY_SHARE: Final = 0.1
_TEXT_CONTROLS: Final = frozenset(b"\t\n\v\f\r\x1b")


def decode(data: bytes, charset: str | None = None) -> str:
    """Return the text of a page's bytes, without NUL characters.

    The first of these that fits: a byte order mark; UTF-8, where the bytes are valid UTF-8 (a
    label that says otherwise is wrong), their end cut off or not; ``charset``, the label in the
    HTTP header; the label in the page (``meta`` or an XML declaration); UTF-8 with a few broken
    characters; windows-1252. The choice never depends on what else is installed. (HTML
    Standard, section 13.2.3.2, with UTF-8 moved forward.)

    Raises:
        NotHtmlError: the bytes are an image, an archive or other binary data.
    """
    _refuse_binary(data)
    for mark, encoding in _MARKS.items():
        if data.startswith(mark):
            return clean_text(data[len(mark) :].decode(encoding, "replace"))
    declared = _codec(charset) or _codec(
        EncodingDetector.find_declared_encoding(data, is_html=True)
    )
    # Seven-bit encodings look like ASCII until they are read.
    if declared is None or not declared.startswith("iso2022"):
        try:
            return clean_text(codecs.getincrementaldecoder("utf-8")().decode(data))
        except UnicodeDecodeError:
            pass
    if declared in (None, "utf-8"):
        return clean_text(_decode_broken(data))
    return clean_text(data.decode(declared, "replace"))


def _decode_broken(data: bytes) -> str:
    text = data.decode("utf-8", "replace")
    broken = text.count("\ufffd")
    letters = sum(not character.isascii() for character in text) - broken
    return text if broken * _BROKEN_FEW < letters else data.decode("windows-1252", "replace")


def _codec(label: str | None) -> str | None:
    """Return the name of the Python codec for a page's label, None where there is none."""
    if label is None:
        return None
    word = label.strip().strip("\"'").lower()
    name = _READ_AS.get(word, word)
    try:
        codec = codecs.lookup(name).name
        # This refuses the codecs that do not make text, such as base64 and zip.
        b"".decode(codec)
    except (LookupError, ValueError):
        return None
    return None if codec in _NOT_FOR_PAGES else codec


def _refuse_binary(data: bytes) -> None:
    start = data[:_BINARY_SAMPLE]
    for signature, what in _SIGNATURES.items():
        if start.startswith(signature):
            raise NotHtmlError(f"this is {what}, not an HTML page")
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) or not start:
        return
    controls = sum(byte < 32 and byte not in _TEXT_CONTROLS for byte in start) - start.count(0)
    if controls > _BINARY_SHARE * len(start):
        raise NotHtmlError("this is binary data, not an HTML page")


def clean_text(text: str) -> str:
    """Return ``text`` without NUL characters, which no page means and PostgreSQL refuses."""
    return text.replace("\0", "")
