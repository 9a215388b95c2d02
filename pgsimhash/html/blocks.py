"""Extract the text blocks of a tree, with the elements around them and what these are named.

A text block is a run of text between two block tags. No block is ignored for its appearance;
:mod:`pgsimhash.html.weights` decides its weight. Words that are common on the web classify classes,
ids and roles.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from sys import maxsize
from typing import Final, NamedTuple

import numpy as np
from lxml import etree
from lxml.html import HtmlElement

from pgsimhash.hashing.hashes import murmur3_64
from pgsimhash.hashing.tokens import SIGNS
from pgsimhash.hashing.votes import vote


def words(text: str) -> frozenset[str]:
    """Return the words of ``text``."""
    return frozenset(text.split())


def flags_of(lists: Mapping[int, Collection[str]]) -> Counter[str]:
    """Return for each word the flags of the lists that it is in."""
    flags: Counter[str] = Counter()
    for flag, listed in lists.items():
        for word in listed:
            flags[word] |= flag
    return flags


def storable(text: str | None) -> str:
    """Return text with spaces for what the parser reads, but lxml does not put into a tree."""
    return _UNSTORABLE.sub(" ", text or "")


# The tags whose content is not text.
NEVER_TEXT: Final = words(
    "script style template iframe object embed applet canvas audio video input button select"
    " textarea datalist head title noscript noembed noframes defs symbol metadata desc"
    " annotation annotation-xml mphantom clippath mask pattern marker meter progress amp-ad"
)

HEADING_TAGS: Final = words("h1 h2 h3 h4 h5 h6")
TITLE_TAGS: Final = HEADING_TAGS | {"dt", "summary"}  # of what follows
LIST_TAGS: Final = words("ul ol dl menu")
CONTENT_TAGS: Final = words("article main")
CELL_TAGS: Final = words("td th")
COMMON_TAGS: Final = words("body h2 h3 p pre td tr")  # such siblings are similar in any text
BESIDE_TAGS: Final = words("nav aside dialog form")  # the tags of content beside the main text

# Whole class names; "overflow-hidden" and "hidden md:block" mean something else.
_HIDING: Final = words("hidden hide invisible is-hidden sr-only visually-hidden screen-reader-text")
_NAMES_MAX: Final = 500
# Browsers ignore a declaration with more than a word.
_DECLARED: Final = re.compile(
    r"(?:^|;)\s*(display|visibility|animation-name)\s*:\s*([a-z-]+)\s*(!\s*important\s*)?(?=;|$)",
    re.IGNORECASE | re.ASCII,
)
# React streams content as hidden elements that its script moves into place.
_STREAMED: Final = re.compile(r"S:[0-9a-f]+")
_UNSTORABLE: Final = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_CAMEL: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")


class Named:
    """The flags of names."""

    BESIDE, FOOTER, HEADER, CONTENT, OVERLAY, HIDDEN, APART = (1 << bit for bit in range(7))
    BELOW, NOTE, TEASER, SHORT, WITH_SHORT, STATE, TOPIC = (1 << bit for bit in range(7, 14))


_NAMES: Final = {
    Named.BESIDE: (
        # navigation
        "nav navbar navigation menu menus topnav breadcrumb breadcrumbs pager pagination"
        " role=navigation role=menu role=menubar"
        # columns
        " sidebar sidenav aside widget widgets rail toc right left role=complementary"
        # other pages
        " related recommended recommendations recommendation teaser teasers trending popular more"
        " latest also mostread most promo promotion promos similar"
        # other people
        " comment comments disqus reply respond replies share sharing social follow shares"
        " sharebar"
        # overlays
        " cookie cookies consent popup modal overlay newsletter subscribe signup login dialog gdpr"
        " toolbar role=dialog role=alertdialog role=search search"
        # advertisements
        " ad ads advert advertisement advertising sponsored sponsor anzeige werbung adsense"
    ),
    Named.FOOTER: (
        "footer copyright copyrights legal bottom foot role=contentinfo colophon disclaimer"
        " imprint impressum trademark trademarks siteinfo license"
    ),
    Named.HEADER: "header masthead topbar head banner role=banner",
    Named.CONTENT: (
        "article main content post body entry text story page blog markdown prose document"
        " role=main role=article"
    ),
    Named.OVERLAY: (
        "cookie cookies consent gdpr onetrust cmp cookiebot popup modal overlay role=dialog"
        " role=alertdialog"
    ),
    # Parts between or below the paragraphs of an article that are no content.
    Named.APART: (
        "advert adverts advertisement advertisements advertising adsense adsbygoogle adslot"
        " sponsored werbung anzeige anzeigen publicidad publicite popup popups popover popovers"
        " modal modals newsletter newsletters subscribe role=dialog role=alertdialog mostread"
        " trending outbrain taboola promo promos promoted promotion advertorial adsbox adbox"
        " werbeblock werbebanner reklama reklame advertentie advads quads ezoic adthrive mediavine"
        " raptive revcontent mgid teads inread anuncio anuncios pubblicita publicidade mailchimp"
        " upsell upsells pum adwrap adunit adunits adspace adcontainer adrotate googlead googleads"
        " zergnet paidcontent partnercontent brandcontent brandedcontent reklam annons annonse"
        " patrocinado sponsorizzato gesponsert gesponsord optin werbeanzeige werbeanzeigen textad"
        " textads adplaceholder promobox reclame adspot adzone adslots"
        " annonce annonces annoncer annonser annonsblock werbeflaeche werbebox werbeslot"
        " textwerbung reklamy reklamowy reklamowe advertenties anuncios pubblicitario publicitario"
        " publicitaire publicitaires"
    ),
    # The same below an article, in an element beside it.
    Named.APART | Named.BELOW: (
        "comment comments commentlist disqus kommentare commentaires comentarios related"
        " recommended recommendation recommendations cookie cookies cookiebanner cookiebar"
        " cookiebot consent gdpr onetrust tarteaucitron didomi borlabs cmplz cky cybot kommentar"
        " kommentarbereich leserkommentare commenti reacties relatedposts yarpp crp verwandte"
        " aehnliche relacionados relacionadas similaires correlati empfehlungen reward reprint"
        " postcopyright articlecopyright articlelicensing postreward cookieconsent powiazane"
        " gerelateerd gerelateerde relaterade komentarze"
    ),
    # Parts of an article that stand in a box of their own, if no other word says otherwise.
    Named.NOTE: (
        "note notes notice notices warning caution important attention tip hint infobox factbox"
        " alert callout admonition correction corrections corrected clarification erratum errata"
        " update updates updated lead lede leadin intro standfirst dek subtitle subheadline summary"
        " abstract preamble hinweis warnung achtung vorspann einleitung korrektur berichtigung"
        " nachtrag ingress chapo chapeau encadre avertissement rectificatif aviso nota advertencia"
        " correccion entradilla sommario occhiello rettifica avviso admonitionblock hatnote ambox"
        " retraction addendum disclosure footnote footnotes correcao sprostowanie rectificatie"
        " correctie rattelse oikaisu oprava helyesbites duzeltme anmerkung tldr deprecated"
        " versionadded versionchanged versionremoved role=note role=doc-notice role=doc-tip"
        " role=doc-abstract role=doc-introduction role=doc-errata"
    ),
    Named.TEASER: "teaser",  # of another page, or the lead of this one
    # Such parts if all words of a class or id are listed here: "ad-slot", but not "ad-title".
    Named.SHORT | Named.WITH_SHORT: (
        "ad ads share shares sharing sidebar social follow sharebar socials sharedaddy addtoany"
        " teilen partager compartir condividi adv affiliate cta dfp mpu pub"
    ),
    Named.WITH_SHORT: (
        "area article banner bar block body bottom box button buttons container content div"
        " background in mid wp"
        " desktop entry frame google gpt icon icons inline item label leaderboard left link links"
        " list media middle mobile native page placement placeholder post right section slot space"
        " sticky story text this toolbar tools top unit widget wrap wrapper zone code viewport"
        " video wide auto placed sd likes above after before below between bleed bloc break c"
        " encart espace full halfpage incontent infeed inserter mitte o oben placements rechts"
        " rectangle responsive row save tablet td unten"
    ),
    # "no-ads" and "with-comments" say something about an element with other content.
    Named.STATE: "closed disabled enabled has have is no not off on open with without",
    # The words behind one of these are a topic of the page: "category-cookies", "js-share".
    Named.TOPIC: (
        "author cat categoria categorie category etiqueta format hentry id js kategorie label node"
        " path postid rubrik rubrique schlagwort status tag tax taxonomy template term topic type"
    ),
}
_FLAGS: Final = flags_of({flag: words(names) for flag, names in _NAMES.items()})

# The tags whose start and end separate text blocks.
BLOCK: Final = words(
    "address article aside blockquote body center dd details dialog div dl dt fieldset figcaption"
    " figure footer form h1 h2 h3 h4 h5 h6 header hgroup hr html legend li main menu nav ol option"
    " p pre search section summary table tbody td text tfoot th thead tr ul"
)
# The tags in cells of layout tables; data tables without header cells never have them.
CELL_BLOCKS: Final = words("p div ul ol pre h1 h2 h3 article section")
_EMPTY: Final = words("br img input link meta")
# The tags that separate blocks of Markdown; others are inline, as unknown ones are in browsers.
_SEPARATING: Final = BLOCK | words("caption col colgroup dir listing plaintext xmp")
MARKS: Final = {
    "a": "", "b": "**", "strong": "**", "em": "*", "i": "*", "code": "`", "kbd": "`", "samp": "`",
    "tt": "`", "del": "~~", "s": "~~", "strike": "~~",
}  # fmt: skip
PLAIN_EVENT: Final = 4  # of blocks that are only apart from others
MEANT: Final = CELL_TAGS | HEADING_TAGS | words("blockquote caption dd hr li ol pre table tr ul")
EVENT_TAGS: Final = flags_of({
    1: (*CELL_TAGS, "a", "dd", "img", "ol", "pre", "table"),  # the element is needed
    2: _SEPARATING,
    PLAIN_EVENT: _SEPARATING - MEANT,
    8: (*MARKS, "br", "img"),
})  # fmt: skip
"""The flags of the tags that matter, for native/events.c too."""
NAMED_MAX: Final = 50_000  # how many block elements are classified by their attributes

_BEGIN, _LINK_BEGIN, _LINK_END, _SIGN, _DATE = (f" {sign} " for sign in SIGNS)
_CONTAINERS: Final = words(
    "body address article aside details dialog div fieldset footer form header main"
    " menu nav section summary"
)
# The usual largest distance of pages of one template; pages of two templates differ more.
SAME_TEMPLATE_MAX: Final = 12
# The most containers of a path; deeper containers have the path of their ancestor.
DEPTH_MAX: Final = 32


class Piece(NamedTuple):
    """The place of a piece of a text block: the text or the tail of an element."""

    block: int
    element: HtmlElement
    is_tail: bool

    def around(self) -> HtmlElement:
        """Return the element that directly contains the text."""
        around = self.element.getparent() if self.is_tail else self.element
        assert around is not None
        return around


Ignored = tuple[set[HtmlElement], set[tuple[HtmlElement, bool]]]
"""Elements of a tree that are ignored, with all in them, and the texts (false) and tails of others.

Hidden elements and those that are never text are ignored too.
"""


@dataclass(slots=True, eq=False)
class Element:
    """A block element of a page. The page itself is the first one, and its own parent.

    :mod:`pgsimhash.html.page_words` sets the values that depend on words.
    """

    place: int  # the index in document order; parents precede their children
    tag: str
    names: Names
    parent: Element = field(init=False)
    end: int = 0  # the index behind its last descendant
    depth: int = 0
    start: int = maxsize  # its first text block
    stop: int = 0  # the one behind its last
    own: int = 0  # the words directly in it
    words: int = 0  # the words in it and below; so are the next three
    linked: int = 0  # in links
    notices: int = 0  # of copyright
    mass: float = 0.0  # by weight
    prose: int = 0  # the unlinked words of the paragraphs among its children
    siblings: Siblings = field(init=False)  # those with its tag and first name, with itself
    run: int = 0  # the place of the innermost run of similar siblings at or above it, 0 for none
    run_words: float = 0.0  # the most unlinked words of such a run, times its likelihood
    table: int = 0  # the place of the innermost table at or above it, 0 for none
    row: int = 0  # the place of the row of this table
    inside: Counter[str] = field(init=False)  # of a table: the tags of the elements in it
    levels: dict[str, float] = field(init=False)  # the largest, of names and tags at or above it
    in_frame: int = 0  # the place of the boilerplate by names or tags that it is in, or 0
    note: int = 0  # of a note and what is in it: the place of the element around, otherwise 0

    def holds(self, other: Element) -> bool:
        """Return whether an element is this one or below it."""
        return self.place <= other.place < self.end


@dataclass(slots=True, eq=False)
class Siblings:
    """Siblings with the same tag and first name."""

    filled: int = 0  # how many have words
    words: int = 0
    unlinked: float = 0.0


@dataclass(frozen=True, slots=True)
class Outline:
    """The block elements in document order, and the text blocks in them.

    ``text`` has the signs of :mod:`pgsimhash.hashing.tokens`. The first begins a block, the second
    and third enclose links, and the fourth is a copyright sign. The fifth precedes the text of
    telephone links; :func:`pgsimhash.html.page_words.read_words` adds it before dates.
    """

    elements: list[Element]  # the page, and the elements in it
    owners: list[Element]  # for each text block, the element that directly contains it
    text: str
    pieces: list[Piece]  # of the text blocks, in order
    hidden: list[HtmlElement]  # the largest hidden elements


def block_texts(text: str) -> list[str]:
    """Return the text of each block of :attr:`Outline.text`, on one line."""
    plain = text.replace(_LINK_BEGIN, "").replace(_LINK_END, "").replace(_DATE, "")
    plain = plain.replace(_SIGN, "\xa9")
    return [" ".join(block.split()) for block in plain.split(_BEGIN)[1:]]


def outline(body: HtmlElement) -> Outline:
    """Return the outline of a page.

    Hidden elements, scripts, controls and images are ignored with all their content. Elements
    within ``pre`` do not begin text blocks.
    """
    element = _page()
    elements, owners = [element], list[Element]()
    texts: list[str] = []
    pieces: list[Piece] = []
    hidden: list[HtmlElement] = []
    # How many ``pre`` and links are open, and what begins a text in a link.
    pres = links = 0
    link_begin = ""
    goes_on = False  # whether a text continues the last text block
    skipped = None
    walker = etree.iterwalk(body, events=("start", "end"))
    for event, node in walker:
        tag = str(node.tag)
        is_block = tag in BLOCK
        if event == "start":
            if goes_on and (tag in _EMPTY or (pres and is_block)):
                texts.append(" ")
            is_block = is_block and not pres
            goes_on = goes_on and not is_block
            has_text = tag not in NEVER_TEXT and tag not in _EMPTY
            if not has_text or is_hidden(node):
                skipped = node
                walker.skip_subtree()
                if has_text:
                    hidden.append(node)
                continue
            if is_block:
                names = named(node) if len(elements) <= NAMED_MAX else UNNAMED
                outer, element = element, Element(len(elements), tag, names)
                element.parent = outer
                elements.append(element)
            if tag == "a" and _is_link(node):
                links += 1
                if links == 1:
                    calls = (node.get("href") or "").startswith(("tel:", "fax:"))
                    link_begin = f"{_LINK_BEGIN}{_DATE}" if calls else _LINK_BEGIN
            pres += tag == "pre"
            text = node.text
        else:
            if node is not skipped:
                links -= tag == "a" and _is_link(node)
                pres -= tag == "pre"
                if is_block and not pres:
                    element.end = len(elements)
                    element = element.parent
                    goes_on = False
                elif is_block and goes_on and len(node):
                    # Each line of code may be an element.
                    texts.append(" ")
            # Text behind the body is not part of the page.
            text = None if node is body else node.tail
        if not text:
            continue
        if text.isspace():
            if goes_on:
                texts.append(" ")
            continue
        if not goes_on:
            goes_on = True
            owners.append(element)
            texts.append(_BEGIN)
        texts.append(f"{link_begin}{text}{_LINK_END}" if links else text)
        pieces.append(Piece(len(owners) - 1, node, event == "end"))
    elements[0].end = len(elements)
    return Outline(elements, owners, "".join(texts).replace("\xa9", _SIGN), pieces, hidden)


def _is_link(node: HtmlElement) -> bool:
    """Return whether an ``a`` is a link or a place, and not the title of what opens below it."""
    around = node.getparent()
    return node.get("href") is not None or around is None or around.get("aria-expanded") is None


def outline_of_text(text: str) -> Outline:
    """Return the outline of plain text; each line is a block."""
    page = _page()
    signed = signed_lines(text)
    return Outline([page], [page] * (text.count("\n") + 1), signed, [], [])


def signed_lines(text: str) -> str:
    """Return plain text as in its outline, with signs."""
    plain = text.replace("\0", " ").replace("\xa9", _SIGN)
    return _BEGIN + plain.replace("\n", _BEGIN)


def _page() -> Element:
    page = Element(0, "", UNNAMED)
    page.parent = page
    return page


class Names(NamedTuple):
    """The meaning of the class, id and role of an element, by whole words, also of camelCase."""

    flags: int  # those of Named
    first: str  # the first word, by which siblings are similar


UNNAMED: Final = Names(0, "")


def is_hidden(attributes: HtmlElement | Mapping[str, str]) -> bool:
    """Return whether an element's attributes hide it."""
    # Of several declarations, the last important one counts, or else the last.
    found = sorted(_DECLARED.findall(attributes.get("style", "")), key=lambda each: each[2] > "")
    style = {name.lower(): value.lower() for name, value, _ in found}
    # An animation shows it once a reader scrolls to it.
    is_unseen = style.get("visibility") == "hidden" and "animation-name" not in style
    if is_unseen or style.get("display") == "none":
        return True
    # Browsers search in the second kind, and show it. A style overrides the attribute.
    is_marked = attributes.get("hidden", "until-found").lower() != "until-found"
    is_marked = is_marked or attributes.get("popover") is not None
    is_shown = "display" in style or _STREAMED.fullmatch(attributes.get("id", "")) is not None
    return is_marked and not is_shown


def named(attributes: HtmlElement | Mapping[str, str]) -> Names:
    """Return the meaning of an element's class, id and role, hidden or not."""
    return _names(*[attributes.get(name, "")[:_NAMES_MAX] for name in ("class", "id", "role")])


@lru_cache(maxsize=1024)
def _names(classes: str, identity: str, role: str) -> Names:
    names = [_CAMEL.findall(name) for name in f"{classes} {identity}"[:_NAMES_MAX].split()]
    if role:
        names.append([f"role={role}"])
    flags = 0
    for parts in names:
        flags |= _flags_of_name([part.lower() for part in parts])
    if ":" not in classes and not _HIDING.isdisjoint(classes.split()):
        flags |= Named.HIDDEN
    first = next((parts[0].lower() for parts in names if parts), "")
    return Names(flags, first)


def _flags_of_name(parts: list[str]) -> int:
    """Return the flags of one class, id or role by those of its words."""
    some, each, before = 0, ~0, ""
    for part in parts:
        flags = _FLAGS.get(part, 0)
        # "info-box" is an infobox, "pop-up" a popup.
        together = _FLAGS.get(before + part, 0) & (Named.NOTE | Named.APART | Named.BELOW)
        some, each = some | flags | together, each & flags
        before = part
        if flags & Named.TOPIC:
            break
    if some & Named.SHORT and each & Named.WITH_SHORT:
        some |= Named.APART
    if some & Named.STATE:
        some &= ~(Named.APART | Named.BELOW)
    if some & (Named.BESIDE | Named.FOOTER | Named.APART):
        some &= ~Named.NOTE
    return some & (2 * Named.TEASER - 1)


def structure_of(root: HtmlElement) -> int:
    """Return the :func:`structure_simhash` of a parsed page."""
    body = root.find("body")
    return structure_simhash(outline(root if body is None else body))


def structure_simhash(blocks: Outline) -> int:
    """Return the simhash of the structure of a page, 0 <= x < 2**64.

    Pages of one template usually differ by at most ``SAME_TEMPLATE_MAX`` bits, pages of two
    templates by more. Texts do not matter; all pages without containers have the same simhash.
    """
    # The path, the last container and the number of containers of each element.
    states = [("", "", 0)]
    pairs: set[tuple[str, str]] = set()
    # Other elements take the values of the container around them.
    for element in blocks.elements[1:]:
        state, tag = states[element.parent.place], element.tag
        if tag in _CONTAINERS:
            path, above, depth = state
            pairs.add((above, tag))
            state = (f"{path}/{tag}" if depth < DEPTH_MAX else path, tag, depth + 1)
        states.append(state)
    features = sorted({*(path for path, _, _ in states), *map(">".join, pairs)})
    return vote(murmur3_64(features), np.ones(len(features)))
