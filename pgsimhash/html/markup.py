"""Repair the markup of a page, before libxml2 parses it differently from browsers.

Sections are those of the WHATWG HTML standard.
"""

import re
from collections.abc import Collection, Sequence
from html import escape
from typing import Final

from pgsimhash.html import native
from pgsimhash.html.blocks import CELL_TAGS, HEADING_TAGS, words

# The body goes on behind </body> and </html> (13.2.6.4.19 and 22), where libxml2 ends the page.
# Faster than with a flag. What does not end is matched too, so that no part is searched twice.
_PAGE_END: Final = re.compile(rb"</(?i:body|html)(?:[\s/](?:[^>-]|-(?!->)){0,1000}+)?(>?)")
# A slash ends no start tag of HTML, so the page goes on behind its own, and what others hide to
# their end tag, but in drawings.
_SELF_CLOSED: Final = re.compile(
    rb"""<(?:(/?)(?:svg|math)\b[^<>]*+|(html|body|script|style|title|textarea|iframe|noscript"""
    rb"""|template|video|audio|canvas|noembed|noframes"""
    rb"""|(?:div|span|aside|section)(?=\s[^<>]*\b(?:hidden|none)\b))\b"""
    rb"""(?:[^<>"'/]++|/(?!>)|"[^"<]*+"|'[^'<]*+')*+/>)""",
    re.IGNORECASE,
)
_XML_DECLARATION: Final = re.compile(rb"(?:\xef\xbb\xbf)?\s*<\?xml\s")
# The start tags that end a drawing (13.2.6.5).
ENDS_DRAWING: Final = words(
    "b big blockquote body br center code dd div dl dt em embed h1 h2 h3 h4 h5 h6 head hr i img li"
    " listing menu meta nobr ol p pre ruby s small span strong strike sub sup table tt u ul var"
)
# Sections of CDATA are text in XHTML and in drawings (13.2.5.42), elsewhere comments.
_CDATA: Final = b"<![CDATA["
_COMMENT: Final = rb"--(?:-?>|(?:[^-]|-(?!-!?>))*+(?:--!?>)?)"
_COMMENT_OR_CDATA: Final = rb"<!(?:%s|\[CDATA\[)" % _COMMENT
_IN_XHTML: Final = re.compile(_COMMENT_OR_CDATA)
_IN_DRAWING: Final = re.compile(
    _COMMENT_OR_CDATA + rb"|<(?P<begins>(?i:svg|math)\b[^<>]*+(?<!/)>|/(?i:foreignobject)\b)"
    rb"|<(?P<ends>/(?i:svg|math)\b|(?i:%s)\b)" % "|".join(ENDS_DRAWING).encode()
)

# To browsers with scripts a noscript is text up to its end tag, whatever is open in it.
_NOSCRIPT: Final = re.compile(rb"<noscript\b[^<>]*+>((?:[^<]++|<(?!/noscript\b))*+)", re.IGNORECASE)
_ENDED: Final = re.compile(
    rb"""(?:[^<]++|<(?!(?:!--|(?:iframe|style|title|textarea)\b))"""
    rb"""(?:[^<>"']*+(?:(?:"[^"]*+"|'[^']*+')[^<>"']*+)*+>|(?![a-z/!?]))"""
    rb"""|<!--.*?-->|<(iframe|style|title|textarea)\b.*?</\1\b)*+""",
    re.IGNORECASE | re.DOTALL,
)
_ENDS: Final = b"-->\">'></iframe></style></title></textarea>"
# To browsers the title of a drawing is no text up to its end tag, and ends with the drawing.
_DRAWN_TITLE: Final = re.compile(
    rb"<title\b(?:[^<]++|<(?!/?title\b|/svg\b))*+(?=</svg\b)", re.IGNORECASE
)

# In browsers the end tags of these end a <div> in them (13.2.6.4.7). In libxml2 they do not, and
# all that follows is in the menu or hidden part.
_ENDING: Final = frozenset(
    b"address article aside blockquote button center dd details dialog dl dt fieldset figcaption"
    b" figure footer h1 h2 h3 h4 h5 h6 header hgroup li main menu nav noscript ol pre search"
    b" section summary template ul".split()
)
_CELLS: Final = frozenset(map(str.encode, CELL_TAGS)) | {b"caption"}
_ROWS: Final = frozenset((b"tr", b"thead", b"tbody", b"tfoot"))
_HEADINGS: Final = frozenset(map(str.encode, HEADING_TAGS))
_SCOPE: Final = _CELLS | {b"table"}
_NESTED: Final = _ENDING | _SCOPE | _ROWS | {b"div"}
_TERMS: Final = frozenset((b"dd", b"dt"))
# For each tag the elements that it ends, and those that stop the search.
_OF_ROWS: Final = {name: (_CELLS, {b"table"}) for name in _CELLS | _ROWS}
_ENDED_BY_START: Final[dict[bytes, tuple[Collection[bytes], Collection[bytes]]]] = {
    **_OF_ROWS,
    b"li": ({b"li"}, _NESTED - {b"div", b"address"}),
    **dict.fromkeys(_TERMS, (_TERMS, _NESTED - {b"div", b"address"})),
}
_ENDED_BY_END: Final[dict[bytes, tuple[Collection[bytes], Collection[bytes]]]] = {
    **{name: ({name}, _SCOPE) for name in _ENDING | {b"div"}},
    **dict.fromkeys(_HEADINGS, (_HEADINGS, _SCOPE)),
    **_OF_ROWS,
    b"li": ({b"li"}, _SCOPE | {b"ul", b"ol"}),
    **{name: ({name}, ()) for name in (b"table", b"template")},
}
# What a template may contain without its end tag, and how libxml2 ends it.
_END_TAGS: Final = {
    b"div": b"</div>", b"table": b"</table>",
    **{name: b"</%s></tr></tbody>" % name for name in _CELLS},
}  # fmt: skip
_RAW: Final = frozenset(b"script style textarea title iframe noembed noframes xmp".split())
_KNOWN: Final = _NESTED | _RAW
_TAGS: Final = re.compile(
    rb"""<(?:!%s|(/?)([a-z][^\s/>]*+)[^"'>]*+(?:(?:"[^"]*+"|'[^']*+')[^"'>]*+)*+>?)""" % _COMMENT
)
_OPEN_MAX: Final = 30  # how many open elements are searched for one that ends
_MISMATCH: Final = re.compile(r"mismatch: (\w+) and")


def repaired_source(source: bytes) -> bytes:
    """Return the UTF-8 of a page so that libxml2's parser reads it as browsers do."""
    end, has_slash, has_cdata, has_noscript, has_title = native.odd_tags(source)
    is_xhtml = _XML_DECLARATION.match(source) is not None
    if has_cdata and _CDATA in source:
        source, end = _without_cdata(source, is_xhtml), 0
    if has_slash and not is_xhtml:
        source, end = _opened(source), 0
    if has_title:
        source = _DRAWN_TITLE.sub(rb"\g<0></title>", source)
    if has_noscript:
        source = _NOSCRIPT.sub(
            lambda part: part[0] + (_ENDS if _ENDED.sub(b"", part[1], 1) else b""), source
        )
    rest = _PAGE_END.sub(lambda tag: b"" if tag[1] else tag[0], source[end:])
    return b"".join((memoryview(source)[:end], rest)) if end < len(source) else source


def _without_cdata(source: bytes, is_xhtml: bool) -> bytes:
    """Return a page with its CDATA sections as text, of HTML those in drawings and formulas."""
    parts: list[bytes] = []
    at, done, is_text = 0, 0, is_xhtml
    marks = _IN_XHTML if is_xhtml else _IN_DRAWING
    while mark := marks.search(source, at):
        at = mark.end()
        if mark[0] == _CDATA and is_text:
            end = source.find(b"]]>", at)
            if end < 0:
                break
            data = source[at:end].decode("utf-8", "replace")
            parts += source[done : mark.start()], escape(data, quote=False).encode()
            at = done = end + 3
        elif mark.lastgroup:
            is_text = mark.lastgroup == "begins"
    return b"".join((*parts, source[done:]))


def _opened(source: bytes) -> bytes:
    """Return a page with its self-closed start tags opened, if there is an end tag behind them."""
    ends = dict.fromkeys((b"html", b"body"), len(source))
    in_drawing = False

    def opened(tag: re.Match[bytes]) -> bytes:
        nonlocal in_drawing
        if tag[2] is None:
            in_drawing = not (tag[1] or tag[0].endswith(b"/"))
            return tag[0]
        name = tag[2].lower()
        if name not in ends:
            ends[name] = source.lower().rfind(b"</" + name)
        return tag[0] if in_drawing or ends[name] < tag.end() else tag[0][:-2] + b">"

    return _SELF_CLOSED.sub(opened, source)


def with_ended_divs(source: bytes) -> bytes:
    """Return a page with the end tags of the divs that other tags end in browsers."""
    parts: list[bytes] = []
    opened: list[bytes] = []
    lower, at, done = source.lower(), 0, 0
    while tag := _TAGS.search(lower, at):
        at, name = tag.end(), tag[2]
        if name not in _KNOWN:
            continue
        start, is_end = tag.start(), tag[1]
        if name in _RAW and not is_end:
            at = lower.find(b"</" + name, at)
            if at < 0:
                break
        if name in _RAW or lower.endswith(b"/>", start, at):
            continue
        rule = (_ENDED_BY_END if is_end else _ENDED_BY_START).get(name)
        if rule is not None and (place := _ended(opened, *rule)) is not None:
            kinds = _END_TAGS if name == b"template" else (b"div",)
            inner = opened[place:] if name != b"div" else ()
            if ends := [_END_TAGS[part] for part in reversed(inner) if part in kinds]:
                parts += source[done:start], *ends
                done = start
            del opened[place:]
        if not (is_end or name in _ROWS):
            opened.append(name)
    return b"".join((*parts, source[done:]))


def _ended(
    opened: Sequence[bytes], names: Collection[bytes], stops: Collection[bytes]
) -> int | None:
    """Return the place of the innermost element with one of the names, up to a stop, if any."""
    for place in range(len(opened) - 1, max(len(opened) - _OPEN_MAX, 0) - 1, -1):
        if opened[place] in names:
            return place
        if opened[place] in stops:
            return None
    return None


def is_kept_open(message: str) -> bool:
    """Return whether libxml2 says that a ``div`` kept an end tag from ending its element."""
    tags = _MISMATCH.search(message)
    return tags is not None and tags[1].encode() in _ENDING
