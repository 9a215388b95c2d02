"""Read a page by a recipe on which many crawlers are based, to the letter.

BeautifulSoup removes elements by 13 selectors, elements with one of 13 strings anywhere in their
class or id, and lists and blocks that are mostly links. Readability chooses the article. If that
has less than 400 characters, the first container with as many is used, else the body. Its Markdown
is the text. bench/README.md describes the effects.

Some of readability's steps read the same text many times: for each ancestor, for each list below a
heading, for each empty element nearby. So a page with too many elements for its size, or too deep
ones, is read without it. The first page loads both packages.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import partial
from html import escape
from itertools import islice
from typing import TYPE_CHECKING, Final

from lxml import etree
from lxml.html import HtmlElement

from pgsimhash.errors import MissingPackageError
from pgsimhash.html.article import Article
from pgsimhash.html.blocks import storable, structure_of, words
from pgsimhash.html.cut import cut
from pgsimhash.html.head import image_source, own_source, read_head
from pgsimhash.html.markdown import Links, events, render
from pgsimhash.html.parse import clean_text, clean_utf8, parse
from pgsimhash.pages.selectors import NO_SELECTORS, Selectors

if TYPE_CHECKING:
    from bs4 import BeautifulSoup, Tag

# The selectors of elements that are not content.
SELECTORS: Final = (
    'script, style, nav, header, footer, [role="navigation"], [role="complementary"], .sidebar, '
    ".advertisement, .cookie-banner, form, input, button"
)
# The strings in the class or id, in any case, of elements that are not content.
NAME_PARTS: Final = words(
    "nav menu sidebar footer header advertisement ad- social share comment-form cookie popup modal"
)
LINK_SHARE: Final = 0.8  # the largest share of text in links, in a list or ``div`` of content
CONTAINERS: Final = ("article", "main", '[role="main"]', "#content")  # without readability
CHARS_MIN: Final = 400  # characters of content, including white space
ELEMENTS_MAX: Final = 30_000  # BeautifulSoup needs more than a kilobyte for each
ATTRIBUTES_MAX: Final = 60_000  # attributes of a page that count
# For each element, readability reads all text in some steps, and all ancestors in others.
WORK_MAX: Final = 1_000_000_000  # elements times characters of HTML
DEPTH_MAX: Final = 100
CHARS_MAX: Final = 1_000_000  # characters of HTML

# The attributes that readability removes from an article, with a pass over the text for each.
_PRESENTATION: Final = re.compile("width|height|[-a-z]*color|background[-a-z]*|on*", re.IGNORECASE)


def spaced_words(text: str) -> list[str]:
    """Return the lower-cased words of ``text``; white space is JavaScript's, with U+FEFF."""
    return text.lower().replace("\ufeff", " ").split()


def long_words(text: str) -> list[str]:
    """Return the :func:`spaced_words` of ``text`` with more than 2 characters."""
    return [word for word in spaced_words(text) if len(word) > 2]


def read_blog(
    html: bytes | str,
    url: str | None = None,
    charset: str | None = None,
    selectors: Selectors = NO_SELECTORS,
) -> Article:
    """Return the main content of a page by the recipe; its text is the Markdown."""
    root = parse(clean_utf8(html, charset), ELEMENTS_MAX)
    head = read_head(root, url)
    is_missing = any(selectors) and cut(root, selectors)
    structure = structure_of(root)
    for image in root.iter("img"):
        if not own_source(image) and (source := image_source(image)):
            image.set("src", storable(source))
    soup = _soup(root)
    _clean(soup)
    markdown = clean_text(render(events(_content(soup)), Links(head.base)))
    about = (head.title, head.canonical_url, head.language, structure)
    return Article(
        markdown,
        markdown,
        *about,
        content_missing=is_missing,
        noindex=head.noindex,
        alternates=head.alternates,
    )


def _soup(root: HtmlElement) -> BeautifulSoup:
    """Return the tree that BeautifulSoup builds with the same parser, for any depth."""
    from bs4 import BeautifulSoup

    soup = BeautifulSoup("", "html.parser")
    attributes = ATTRIBUTES_MAX
    # The content of a template is not part of the page.
    etree.strip_elements(root, "template", with_tail=False)
    for event, node in etree.iterwalk(root, events=("start", "end")):
        if event == "start":
            kept = {
                name: value
                for name, value in islice(node.items() if attributes else (), attributes)
                if not value or _PRESENTATION.fullmatch(name) is None
            }
            attributes -= len(kept)
            soup.handle_starttag(str(node.tag), None, None, kept)
            if node.text:
                soup.handle_data(node.text)
        else:
            soup.handle_endtag(str(node.tag))
            if node.tail:
                soup.handle_data(node.tail)
    soup.endData()
    return soup


def _clean(soup: BeautifulSoup) -> None:
    """Remove elements that are not content."""
    removed = set(map(id, soup.select(SELECTORS)))
    removed.update(map(id, filter(_is_named_so, soup.find_all(True))))
    removed.update(_link_lists(soup, removed))
    # Backwards and by place: otherwise BeautifulSoup searches all siblings before each.
    for parent in [soup, *soup.find_all(True)]:
        for place in reversed(range(len(parent.contents))):
            child = parent.contents[place]
            if id(child) in removed:
                child.extract(_self_index=place)


def _is_named_so(tag: Tag) -> bool:
    names = [*tag.get_attribute_list("class"), *tag.get_attribute_list("id")]
    # No part has white space, so a match is within one name.
    joined = " ".join(filter(None, names)).lower()
    return any(part in joined for part in NAME_PARTS)


def _link_lists(soup: BeautifulSoup, removed: set[int]) -> list[int]:
    """Return the ids of lists and blocks that are mostly links, not counting removed elements."""
    from bs4 import Tag

    chars: Counter[int] = Counter()
    linked: Counter[int] = Counter()
    link_lists = []
    # Backwards, so descendants come before their element.
    for node in reversed(list(soup.descendants)):
        parent = id(node.parent)
        if not isinstance(node, Tag):
            chars[parent] += len(str(node))
            continue
        inside, in_links = chars.pop(id(node), 0), linked.pop(id(node), 0)
        if id(node) in removed:
            continue
        if node.name in ("ul", "ol", "div") and inside and in_links / inside > LINK_SHARE:
            link_lists.append(id(node))
        chars[parent] += inside
        # A link in a link counts twice.
        linked[parent] += in_links + inside * (node.name == "a")
    return link_lists


def _content(soup: BeautifulSoup) -> HtmlElement:
    if soup.body is None:
        return parse("")
    html = _written(soup)
    article = parse("") if _is_too_much(soup, len(html)) else article_of(html)
    if _length(article) >= CHARS_MIN:
        return article
    for selector in CONTAINERS:
        tag = soup.select_one(selector)
        if tag is not None:
            container = parse(_written(tag))
            if _length(container) >= CHARS_MIN:
                return container
    # The recipe then searches for a block with more text than the body, and finds nothing.
    return parse(_written(soup.body))


def _length(root: HtmlElement) -> int:
    return sum(map(len, root.itertext()))


def _written(tag: Tag) -> str:
    """Return ``str(tag)``, without its call of Python for each escaped character."""
    from bs4.formatter import HTMLFormatter

    return tag.decode(formatter=HTMLFormatter(entity_substitution=partial(escape, quote=False)))


def _is_too_much(soup: BeautifulSoup, chars: int) -> bool:
    if chars > CHARS_MAX:
        return True
    depths = {id(soup): 0}
    for count, tag in enumerate(soup.find_all(True), start=1):
        depths[id(tag)] = depth = depths[id(tag.parent)] + 1
        if depth > DEPTH_MAX or count * chars > WORK_MAX:
            return True
    return False


def article_of(html: str) -> HtmlElement:
    """Return the article that readability chooses, empty if it chooses none."""
    try:
        from readability import Document, readability
    except ImportError as error:
        raise MissingPackageError(
            "not_installed",
            "the schemes pgsimhash-blog-* need readability-lxml, which pip installs with Python "
            "3.14 or older; use one of these, or another scheme",
        ) from error
    try:
        return parse(str(Document(html).summary()))
    except readability.Unparseable:
        return parse("")
