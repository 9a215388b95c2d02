"""Random pages from pieces of markup, repeated, nested and cut, in many encodings."""

from hypothesis import strategies as st

from tests.html.texts import TEXT as STORY

TAGS = [
    "a", "abbr", "article", "aside", "b", "base", "blockquote", "body", "br", "button",
    "caption", "code", "col", "dd", "details", "dialog", "div", "dl", "dt", "em", "font",
    "footer", "form", "frameset", "h1", "h2", "h6", "head", "header", "hr", "html", "i",
    "iframe", "img", "input", "li", "link", "main", "math", "menu", "meta", "nav", "noscript",
    "object", "ol", "option", "p", "plaintext", "pre", "q", "ruby", "script", "section",
    "select", "span", "strong", "style", "sub", "svg", "table", "tbody", "td", "template",
    "textarea", "th", "time", "title", "tr", "tt", "u", "ul", "video", "xmp",
]  # fmt: skip
ATTRIBUTES = [
    *("class=ad", "class='comment nav'", "id=content", "id=root", "hidden", "role=main", "role=x"),
    *("style='display:none'", "href='http://['", "href=/a", "src=data:x", "srcset='a 1x,'", "rel"),
    *("colspan=99999999999999999999", "start=-1", "start=9999999999", "lang=x", "charset=utf-16"),
    *("a=1 a=2", "é=3", "\x02", '"', "'", "=", "data-x='<p>'", "xmlns:x=y x:y=z", "class="),
]
TEXTS = [
    *("The harbour master keeps a ledger of every boat, its cargo and its temper. ", "朝市の春"),
    *("Advertisement", "Comments (3)", "Related articles", "404 Not Found", "We use cookies"),
    *("&amp;", "&#0;", "&#x1;", "&#xD800;", "&bogus;", "\0", "\x01", "\x85", "\ud800", "\ufffe"),
    *("<", ">", "</", "<!", "<?", "<!--", "-->", "<![CDATA[", "]]>", "|", "`", "*", "1. ", "# "),
    *("\u0301\u0316", "\ufdfa", "\u3316", "\uff9e", "<a href=/b>c</a>", "<metacharset="),
    *("\n", "\t", "\u2028", "\u00a0", "e\u0301", "\u0e33", "\U0001f6a2", "x" * 300),
]
STORIES = [STORY, f"<p>{STORY}", f"<div><article><h1>A ledger</h1><p>{STORY}</p></article>"]
CODECS = ["utf-8", "utf-16", "utf-16-le", "cp1252", "shift_jis", "gb18030", "euc_kr", "koi8-r"]
SIZE = 30_000


def _start(tag: str, attributes: list[str]) -> str:
    return f"<{' '.join([tag, *attributes])}>"


TAG = st.sampled_from(TAGS)
STARTS = st.builds(_start, TAG, st.lists(st.sampled_from(ATTRIBUTES), max_size=3))
PIECES = STARTS | TAG.map("</{}>".format) | st.sampled_from(TEXTS) | st.text(max_size=8)
RUNS = st.lists(PIECES, min_size=1, max_size=12).map("".join)
REPEATED = st.tuples(RUNS, st.sampled_from([2, 10, 300, 3000, 20_000])).map(
    lambda run: (run[0] * run[1])[:SIZE]
)
MARKUP = st.tuples(
    st.sampled_from(["", *STORIES]), st.lists(RUNS | REPEATED, max_size=6).map("".join)
).map("".join)
PAGES = st.one_of(
    MARKUP,
    st.tuples(MARKUP, st.sampled_from(CODECS)).map(lambda made: made[0].encode(made[1], "replace")),
    st.tuples(MARKUP, st.binary(max_size=30), st.floats(0, 1)).map(
        lambda made: _spliced(made[0].encode("utf-8", "replace"), made[1], made[2])
    ),
    st.binary(max_size=2000),
)
CHARSETS = st.none() | st.sampled_from([*CODECS, "utf-7", "x-sjis", "\0"]) | st.text(max_size=9)


def _spliced(page: bytes, junk: bytes, share: float) -> bytes:
    place = int(share * len(page))
    return page[:place] + junk + page[place:]
