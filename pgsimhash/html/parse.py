"""Decode the bytes of any page, and parse it into an lxml tree, within limits of time and memory.

Labels have the meaning they have in browsers (WHATWG Encoding Standard, section 4.2):
``iso-8859-1`` is windows-1252 and ``gb2312`` is gb18030. The order is also theirs, with one
exception: valid UTF-8 is UTF-8 for any label, because labels are wrong more often.
"""

import codecs
import re
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from itertools import chain, islice
from typing import Any, Final

import cchardet
import webencodings
from lxml import etree, html
from lxml.html import HtmlElement
from w3lib.encoding import html_body_declared_encoding, read_bom

from pgsimhash.errors import PageError
from pgsimhash.html import native
from pgsimhash.html.blocks import storable
from pgsimhash.html.markup import is_kept_open, repaired_source, with_ended_divs
from pgsimhash.html.repair import repair
from pgsimhash.pages.values import BytesLike

_MAGIC: Final = {
    b"%PDF-": "a PDF",
    b"\x89PNG\r\n\x1a\n": "a PNG image",
    b"GIF8": "a GIF image",
    b"\xff\xd8\xff": "a JPEG image",
    b"PK\x03\x04": "a zip archive or an office document",
    b"\x1f\x8b": "gzip data; decompress it first",
    b"\x28\xb5\x2f\xfd": "zstd data; decompress it first",
    b"\xfd7zXZ\x00": "xz data; decompress it first",
    b"\xd0\xcf\x11\xe0": "an office document",
}

# The codecs that browsers use instead of the codec of the same name.
_CODECS: Final = {
    "gbk": "gb18030", "x-user-defined": "cp1252", "replacement": None,
    "iso2022_jp": "iso2022_jp_ext",
}  # fmt: skip
_ISO_2022_JP: Final = re.compile(rb"\x1b\$[@B]")
_JIS_SIGNS: Final = str.maketrans(
    "\u301c\u2212\u2016\xa2\xa3\xac", "\uff5e\uff0d\u2225\uffe0\uffe1\uffe2"
)
# What browsers decode differently from Python (Encoding Standard, section 5).
_SIGNS: Final = {
    "euc_jp": _JIS_SIGNS, "iso2022_jp_ext": _JIS_SIGNS,
    "big5hkscs": str.maketrans("•､‾\u223c♁☉¥¢£", "‧﹑¯\uff5e⊕⊙￥￠￡"),
    "gb18030": str.maketrans("\ue5e5\ue7c7\ue81e\ue826\ue82b\ue82c\ue832\ue843\ue854\ue864",
                             "\u3000\u1e3f龴龵龶龷龸龹龺龻"), "koi8-u": str.maketrans("╝╬", "ўЎ"),
}  # fmt: skip
_UTF16: Final = frozenset({"utf-16-le", "utf-16-be"})
# Python's names that are no labels in browsers, but occur on pages.
_PYTHON_NAMES: Final = _UTF16 | {
    "cp874", "cp932", "cp949", "big5hkscs", "euc_jp", "iso2022_jp", "iso8859-16", "mac-roman",
    "mac-cyrillic",
}  # fmt: skip
_LABEL_MAX: Final = 40
# A label in a meta of which http-equiv is misspelt or translated.
_META: Final = re.compile(rb"<meta\s[^<>]{0,200}\bcharset\s*=\s*[\"']?([\w.:-]+)", re.IGNORECASE)
_HEAD: Final = 8192  # how many bytes of a page are searched for its label and for binary data
_DETECTED: Final = 1 << 20  # how many bytes of a page are searched for words outside ASCII
_PART: Final = 1 << 16  # how many bytes of a page are decoded, detected or parsed at once
_PRINTABLE_SHARE: Final = 0.97
_NOISE_MIN: Final = 1 << 20
# Random bytes from 0x80 compress to 0.88 or more; even characters drawn by frequency to less.
_NOISE_SHARE: Final = 0.87
_ASCII: Final = bytes(range(0x80))
_CONTROLS: Final = bytes({*range(0x20), 0x7F} - {0, *b"\t\n\v\f\r\x1a\x1b"})
# Of bytes outside ASCII: characters of UTF-8 alone, a single byte, or any others.
_RUN: Final = re.compile(
    rb"((?:[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3})++)"
    rb"(?![\x80-\xff])|([\x80-\xff])(?![\x80-\xff])|([\x80-\xff]++)"
)
_MIXED: Final = 8  # how many bytes of windows-1252 a page may have for each run of UTF-8
_DROPPED: Final = re.compile("[\x00-\x08\x0b\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
_CONTROLS_1252: Final = {
    chr(code): bytes([code]).decode("cp1252", "ignore") for code in range(0x80, 0xA0)
}
# The same of bytes that Python's UTF-8 escapes.
_ESCAPED_1252: Final = {
    0xDC00 + code: bytes([code]).decode("cp1252", "replace") for code in range(0x80, 0x100)
}
_EUROS: Final = {"gb18030": b"\x80", "big5hkscs": b"\xa3\xe1"}
_ERRORS: Final = "pgsimhash.browsers"
_ERRORS_MAX: Final = 5000  # how many broken characters a page of such an encoding may have

ELEMENTS_MAX: Final = 500_000  # the most elements of a page; browsers give up long before
# The depth of the tree of a page that is too deep for libxml2; deeper elements keep their text.
DEPTH_MAX: Final = 256
ATTRIBUTES_MAX: Final = 100  # the attributes that an element keeps on a page above ATTRIBUTES_CROWD
ATTRIBUTES_CROWD: Final = 200  # the most attributes of an element that libxml2 parses alone

# lxml accepts fewer names from Python than its parser creates.
_NAME: Final = re.compile(r"[a-z_][a-z0-9_.-]*", re.IGNORECASE | re.ASCII)

# How many open elements a parser may search for those that end: about a second of work.
_SEARCHED_MAX: Final = 400_000_000
_SMALL: Final = 1 << 16  # in a smaller page no tag can have enough attributes to matter
_LONG_TAG: Final = 2048  # how many bytes a long tag has at least, with the text behind it
_PAIRS_ROOT_MAX: Final = 10_000
# A tag that all parsers end at the same place.
_PLAIN_TAG: Final = re.compile(
    rb"""/?[a-z][a-z0-9:-]*+(?:\s++[^\s"'<>/=]++(?:\s*+=\s*+(?:"[^"]*+"|'[^']*+'|[^\s"'`<>=]++))?+)*+"""
    rb"\s*+/?>",
    re.IGNORECASE,
)
_QUOTED: Final = re.compile(rb""""[^"]*+"|'[^']*+'""")
_SEPARATORS: Final = b" \t\n\r\f/\"'"

_LANGUAGE: Final = re.compile(
    rb"""<html\s(?:[^<>]*?\s)?lang\s*=\s*["']?\s*([\w-]+)""", re.IGNORECASE
)
# One class for all elements: lxml.html's lookup calls Python for each.
_ELEMENTS: Final = etree.ElementDefaultClassLookup(element=HtmlElement)


def clean_utf8(html: BytesLike | str, charset: str | None = None) -> bytes:
    """Return a page in UTF-8, without NUL and other control characters.

    The first of these that applies decides, whatever packages are installed:

    - a byte-order mark;
    - valid UTF-8 with at least one character outside ASCII;
    - ``charset``, then the page's own label, if the bytes are valid in it;
    - UTF-8 mixed with some windows-1252;
    - a label in which nearly all bytes are valid, with replacement characters;
    - an encoding that Mozilla's detector considers possible (uchardet), in which nearly all bytes
      are valid;
    - windows-1252.
    """
    if isinstance(html, str):
        return clean_text(html).encode()
    body = bytes(html)
    # Most pages; each of the following steps would leave them as they are.
    starts_a_tag = body[:64].lstrip(b" \t\r\n").startswith(b"<")
    if starts_a_tag and len(body) <= _NOISE_MIN and native.is_clean(body):
        return body
    marked, mark = read_bom(body)
    body = body[len(mark or b"") :]
    codec = marked or _unmarked_utf16(body, charset)
    if codec is None:
        refuse_binary(body)
    text = _decoded(body, charset) if codec is None else body.decode(codec, "replace")
    return clean_text(text).encode()


def refuse_binary(body: bytes, expected: str = "HTML") -> None:
    """Raise if the bytes, of no byte-order mark, are another format than the expected one."""
    start = body[:64].lstrip(b" \t\r\n\0")
    what = next((what for magic, what in _MAGIC.items() if start.startswith(magic)), None)
    head = body[:_HEAD]
    if what is None and (
        len(head.translate(None, _CONTROLS)) < _PRINTABLE_SHARE * len(head)
        or head.count(0) > len(head) // 2
        or (len(body) > _NOISE_MIN and _is_noise(body))
    ):
        what = "binary data"
    if what is not None:
        raise PageError("not_html", f"this is not {expected} but {what}")


def _is_noise(body: bytes) -> bool:
    """Return whether random bytes, which take long to read as words, fill a page."""
    parts = [body[start : start + _PART] for start in range(0, len(body) - _PART, len(body) // 5)]
    return all(
        len(part.translate(None, _ASCII)) > len(part) // 4
        and len(zlib.compress(part, 1)) > _NOISE_SHARE * len(part)
        for part in parts
    )


def clean_text(text: str) -> str:
    """Return ``text`` without NUL, control characters and lone surrogates.

    C1 control characters are the characters that windows-1252 has in their places: they are text
    of that encoding with a wrong label.
    """
    if native.is_clean(text.encode("utf-8", "surrogatepass")):
        return text
    return _DROPPED.sub(lambda control: _CONTROLS_1252.get(control[0], ""), text)


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
            return _CODECS.get(name, name)
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


def _decoded(body: bytes, charset: str | None) -> str:
    try:
        # Only a codec with escape sequences reads ASCII as something else.
        if not body.isascii() or b"\x1b" not in body:
            return body.decode()
    except UnicodeDecodeError as error:
        # A size limit of the crawler may have cut the last character.
        if error.reason == "unexpected end of data":
            return body[: error.start].decode()
    head = body[:_HEAD]
    meta = _META.search(head)
    # Python 3.15 warns about names that are not ASCII.
    plain = head.decode("ascii", "replace").replace("\ufffd", "?")
    own = html_body_declared_encoding(plain) or (meta and meta[1].decode())
    labels = [codec_for(label) for label in (charset, own)]
    names = [name for name in labels if name and name != "utf-8" and name not in _UTF16]
    # Browsers detect it only by its escape sequences, which no other encoding has.
    if body.isascii() and _ISO_2022_JP.search(body):
        names.append("iso2022_jp_ext")
    escapes = body.count(b"\x1b") if body.isascii() else 0
    for name in names:
        if (text := _decode_nearly_valid(body, name, escapes)) is not None:
            return text
    foreign = len(body) - len(body.decode("ascii", "ignore"))
    # A broken multi-byte character counts once here and several times in ``foreign``.
    if body.decode("utf-8", "replace").count("\ufffd") * 4 <= foreign or _is_mixed(body):
        return body.decode("utf-8", "surrogateescape").translate(_ESCAPED_1252)
    for name in chain(names, _detected(body)):
        if (text := _decode_nearly_valid(body, name, foreign // 20)) is not None:
            return text
    return body.decode("cp1252", "replace")


def _is_mixed(body: bytes) -> bool:
    """Return whether windows-1252 was pasted into UTF-8: its characters stand alone."""
    runs = Counter(run.lastindex for run in _RUN.finditer(body[:_DETECTED]))
    return runs[1] > 0 and runs[1] * _MIXED >= runs[2] and runs[3] * 5 <= runs.total()


def _detected(body: bytes) -> Iterator[str]:
    """Yield the possible codecs of a page without a true label, the most probable first."""
    words = b" ".join(word for word in body[:_DETECTED].split() if not word.isascii())
    guesses = cchardet.detect_all(words[:_PART])
    # Little text in EUC-JP looks like Big5, but no text in Big5 looks like EUC-JP.
    for guess in sorted(guesses, key=lambda guess: guess["encoding"] != "EUC-JP"):
        codec = codec_for(guess["encoding"])
        if codec and codec != "utf-8" and codec not in _UTF16:
            yield codec


def _decode_nearly_valid(body: bytes, name: str, limit: int) -> str | None:
    """Return the text, or None as soon as more than ``limit`` characters are invalid."""
    errors, size, signs = "replace", _PART, _SIGNS.get(name)
    if signs:
        # Its handler of errors takes time.
        errors, size, limit = _ERRORS, 256, min(limit, _ERRORS_MAX)
    decoder = codecs.getincrementaldecoder(name)(errors)
    parts: list[str] = []
    for start in range(0, len(body), size):
        parts.append(decoder.decode(body[start : start + size], start + size >= len(body)))
        limit -= parts[-1].count("\ufffd")
        if limit < 0:
            return None
    return "".join(parts).translate(signs) if signs else "".join(parts)


def _as_browsers(error: UnicodeError) -> tuple[str | bytes, int]:
    """Decode the euro, or two bytes of JIS X 0208 with the extensions of NEC and IBM.

    They are in the row and cell of the code of Shift_JIS (Encoding Standard, index jis0208).
    """
    if not isinstance(error, UnicodeDecodeError):
        raise error
    if euro := _EUROS.get(error.encoding):
        is_euro = error.object.startswith(euro, error.start)
        return ("\u20ac", error.start + len(euro)) if is_euro else ("\ufffd", error.end)
    row, cell = ((byte & 0x7F) - 0x21 for byte in (*error.object[error.start :][:2], 0)[:2])
    if not (0 <= row < 94 and 0 <= cell < 94):
        return "\ufffd", error.end
    lead, trail = 0x81 + row // 2, 0x40 + cell + 94 * (row % 2)
    pair = bytes([lead if lead < 0xA0 else lead + 0x40, trail if trail < 0x7F else trail + 1])
    return pair.decode("cp932", "replace")[:1], max(error.start + 2, error.end)


def parse(page: str | bytes, max_elements: int = ELEMENTS_MAX) -> HtmlElement:
    """Return the root element of a page, text or UTF-8; it is empty without elements and text.

    Nothing is loaded from the network or from files: libxml2's HTML parser supports neither
    external entities nor document types. :mod:`pgsimhash.html.markup` corrects where it differs
    from browsers, and two of its faults are corrected here. It stops at 2,048 nested elements and
    drops the rest of the page. Here a stream of events builds a tree :data:`DEPTH_MAX` deep with
    all text. Its time is quadratic in the attributes of an element; here the first
    :data:`ATTRIBUTES_MAX` count.

    Raises:
        PageError: the page has more than ``max_elements`` elements, or so many nested elements and
            end tags that matching them takes too long.
    """
    source = repaired_source(page.encode("utf-8", "replace") if isinstance(page, str) else page)
    # A tag opens at most two elements: itself and an implied one.
    half = max_elements // 2
    brackets = source.count(b"<") if len(source) > half else 0
    ends = source.count(b"</") if brackets > max_elements else 0
    has_many = max(ends, brackets - ends) > max_elements
    root = None
    if has_many or may_crowd_attributes(source):
        _, attributes = _parse_events(source, max_elements, depth_max=0)
        if attributes > ATTRIBUTES_CROWD:
            root, _ = _parse_events(source, max_elements)
    if root is None:
        root, errors = _parse_tree(source)
        is_open = any(is_kept_open(error.message) for error in errors)
        if is_open and (ended := with_ended_divs(source)) != source:
            source = ended
            root, errors = _parse_tree(source)
        # Of a later root, libxml2 reads nothing.
        has_later = any("misplaced <html>" in error.message for error in errors)
        if root is not None and root.get("lang") is None and has_later:
            later = _LANGUAGE.search(source)
            root.set("lang", later[1].decode() if later else "")
        if any(error.type == etree.ErrorTypes.ERR_RESOURCE_LIMIT for error in errors):  # too deep
            root, _ = _parse_events(source, max_elements)
    if root is None:
        return html.html_parser.makeelement("html")
    if brackets > half and root.xpath("count(//*) > $limit", limit=max_elements):
        raise PageError("too_large", f"the page has more than {max_elements:,} elements")
    repair(root)
    return root


def _parse_tree(source: bytes) -> tuple[HtmlElement | None, list[Any]]:
    """Return the root of a tree, and the first errors of the parser."""
    parser: etree.HTMLParser[HtmlElement] = etree.HTMLParser(
        encoding="utf-8", huge_tree=True, remove_comments=True, remove_pis=True, collect_ids=False,
    )  # fmt: skip
    parser.set_element_class_lookup(_ELEMENTS)
    root = None
    try:
        root = etree.fromstring(source, parser)
    except etree.XMLSyntaxError as error:
        if any(entry.type == etree.ErrorTypes.ERR_NO_MEMORY for entry in parser.error_log):
            raise MemoryError("for the tree of a page") from error
    return root, list(parser.error_log)


def _parse_events(
    source: bytes, max_elements: int, depth_max: int = DEPTH_MAX
) -> tuple[HtmlElement | None, int]:
    """Return the root of a tree of limited depth, and the most attributes of an element.

    The depth 0 gives no tree, which takes a tenth of the time and memory.
    """
    builder: Any = _FlatBuilder(source, max_elements, depth_max)
    parser = etree.HTMLParser(target=builder, encoding="utf-8", huge_tree=True)
    # Within one call the parser ignores exceptions until the end of the page.
    for start in range(0, len(source), _PART):
        parser.feed(source[start : start + _PART])
    root = None
    with suppress(etree.XMLSyntaxError):
        root = parser.close()
    return root, builder.most_attributes


def may_crowd_attributes(source: bytes) -> bool:
    """Return whether a tag in ``source`` (UTF-8) may have thousands of attributes.

    A parser compares every attribute of a tag with those before it (WHATWG HTML, section
    13.2.5.33), so one tag can keep it busy for minutes. False positives occur: some long comments
    look like tags.
    """
    if len(source) <= _SMALL:
        return False
    pairs, start = 0, source.find(b"<")
    while 0 <= start <= len(source) - _LONG_TAG:
        last = source.rfind(b"<", start, start + _LONG_TAG)
        if last == start:
            last = source.find(b"<", start + 1)
            end = last if last > 0 else len(source)
            plain = _PLAIN_TAG.match(source, start + 1, end)
            tag = _QUOTED.sub(b"'", plain[0]) if plain else source[start:end]
            pairs += (len(tag) - len(tag.translate(None, _SEPARATORS))) ** 2
        start = last
    return pairs > _PAIRS_ROOT_MAX**2


class _FlatBuilder:
    """A parser target that builds a tree of limited depth, with limited attributes.

    ``most_attributes`` is how many attributes an element has at most, before the limit.
    """

    def __init__(self, source: bytes, max_elements: int, depth_max: int) -> None:
        self.most_attributes = 0
        self._max_elements, self._depth_max = max_elements, depth_max
        self._elements = self._depth = 0
        # The parser searches all open elements for each end tag.
        self._open_max = _SEARCHED_MAX // (source.count(b"</") + 1)
        self._builder = etree.TreeBuilder(element_factory=html.html_parser.makeelement)

    def start(self, tag: str, attrib: dict[str, str]) -> None:
        self._elements += 1
        if self._elements > self._max_elements:
            raise PageError("too_large", f"the page has more than {self._max_elements:,} elements")
        self._depth += 1
        if self._depth > self._open_max:
            what = f"the page has more than {self._open_max:,} elements within one another"
            raise PageError("too_large", f"{what}, and far too many end tags")
        self.most_attributes = max(self.most_attributes, len(attrib))
        if self._depth > self._depth_max:
            return
        kept = {
            name: storable(clean_text(value))
            for name, value in islice(attrib.items(), ATTRIBUTES_MAX)
            if _NAME.fullmatch(name)
        }
        self._builder.start(tag if _NAME.fullmatch(tag) else "span", kept)

    def end(self, tag: str) -> None:
        if self._depth <= self._depth_max:
            self._builder.end(tag if _NAME.fullmatch(tag) else "span")
        self._depth -= 1

    def data(self, data: str) -> None:
        if self._depth_max:
            self._builder.data(storable(clean_text(data)))

    def close(self) -> etree._Element | None:
        try:
            return self._builder.close()
        except AssertionError:
            return None


codecs.register_error(_ERRORS, _as_browsers)
