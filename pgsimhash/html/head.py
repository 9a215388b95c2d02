"""Read what a page says about itself: title, URLs and language, or that it is an error page.

Error pages, bot checks and JavaScript-rendered pages often come with status 200, and those of one
site are near-duplicates. Each rule requires little text and a whole phrase in the right place, so
articles about such pages are not affected.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from itertools import islice
from typing import Final, NamedTuple
from urllib.parse import quote, urljoin, urlsplit

from lxml import etree
from lxml.html import HtmlElement

from pgsimhash.errors import PageError
from pgsimhash.hashing.tokens import is_unspaced
from pgsimhash.html.parse import clean_text
from pgsimhash.pages.values import says_noindex

_OF_HEAD: Final = ("title", "base", "link", "meta")
_CANONICAL_MAX: Final = 10
_ALTERNATES_MAX: Final = 100
_TITLES_MAX: Final = 100
_WEB: Final = ("http://", "https://")
_URL_MAX: Final = 8192
_LAZY_SOURCES: Final = ("data-src", "data-original", "data-lazy-src", "data-url")
_SOURCE_SETS: Final = ("srcset", "data-srcset", "data-lazy-srcset")
_NOT_PLACES: Final = frozenset({"javascript", "data", "about", "blob", "vbscript"})
_LINE_BREAKS: Final = re.compile(r"[\t\r\n]+")
# References that urljoin() leaves as they are: absolute URLs, and what it puts behind a base.
_ORIGIN: Final = r"https?://[\w.:-]+(?=[/?#]|$)"
_PLAIN: Final = re.compile(
    rf"(?:({_ORIGIN})|(?=[/?#])|[\w%+-][\w%+.-]*(?=[/?#]|$))"
    r"(?:/(?!/)[\w/~%+,:@!$&'*=.-]*)?(?:\?[\w/~%+,:@!$&'*=.;-]+)?(?:#[\w.-]+)?",
    re.ASCII,
)
_UNSAFE: Final = re.compile(r"[\s()<>\"\\]")
_NOT_ASCII: Final = re.compile(r"[^\0-\x7f]+")

TEXT_CHARS_MAX: Final = 800  # the most characters of main text of a page that is checked
PAGE_WORDS_MAX: Final = 400  # the most words of a page that is checked, including navigation
# The fewest words, as _size() counts them, of main text that is checked. The ``min_tokens`` of a
# scheme is different: the fewest tokens for which simhashes separate pages.
TEXT_WORDS_MIN: Final = 20

_ERROR: Final = re.compile(
    r"""
    (?:(?:error|http|fehler|erreur)\s)?(?:40[0134]|410|429|50[0234])
        (?:[\s:.!-]*(?:error|not\ found|page\ not\ found|gone|forbidden|unauthorized|access\ denied
        |bad\ request|too\ many\ requests|internal\ server\ error|bad\ gateway
        |service\ (?:temporarily\ )?unavailable|gateway\ time-?out))?
    | (?:error\s)?(?:the\ )?(?:page|file|document|article|resource)
        \ (?:was\ |could\ )?not\ (?:be\ )?found
    | not\ found | this\ page\ (?:doesn't|does\ not)\ exist | page\ (?:missing|unavailable)
    | (?:this|the)\ page\ (?:isn't|is\ not|is\ no\ longer)\ available
    | (?:oops|sorry)[\s,!.]*(?:(?:this|the|that)\ )?page\ (?:not\ found|can'?t\ be\ found)
    | access\ denied | forbidden | internal\ server\ error | bad\ gateway | server\ error
    | service\ unavailable | too\ many\ requests
    | seite\ nicht\ gefunden | page\ (?:introuvable|non\ trouvée) | página\ no\ encontrada
    | página\ não\ encontrada | pagina\ non\ trovata | pagina\ niet\ gevonden
    | nie\ znaleziono\ strony | strona\ nie\ istnieje | sidan\ (?:hittades\ inte|finns\ inte)
    | siden\ (?:blev\ |ble\ )?ikke\ fun[dn]et | sivua\ ei\ löydy | stránka\ nenalezena
    | sayfa\ bulunamad. | 페이지를\ 찾을\ 수\ 없습니다 | сторінку\ не\ знайдено
    | страница\ не\ найдена | (?:お探しの)?ページ[がは]見つかりません(?:でした)?
    | 页面不存在 | 找不到页面
    """,
    re.VERBOSE,
)
_BLOCK_TITLE: Final = re.compile(
    r"just a moment|attention required|are you (?:a robot|human)|robot check|security check"
    r"|pardon our interruption|access to this page has been denied|human verification|captcha"
    r"|(?:please )?(?:checking|verifying) your browser|one more step|ddos-guard"
)
_NEEDS_SCRIPT: Final = re.compile(
    r"(?:(?:please|must|need to|have to) (?:enable|turn on|activate) (?:javascript|js\b|cookies)"
    r"|javascript (?:is|has been) (?:disabled|turned off|not enabled|required) (?:in|to|for|on)"
    r"|(?:bitte|veuillez) (?:aktivieren sie|activer) javascript)"
    r"(?![^.]{0,40}\bform)"  # that of a form does not refuse the page
)
_BLOCK: Final = re.compile(
    r"(?:verify|confirm|make sure) (?:that )?you(?:'re| are) (?:a |not a )?(?:human|robot)"
    r"|checking (?:if the site connection is secure|your browser before)"
    r"|(?:complete|solve) the (?:captcha|security check)|unusual traffic from your"
)
# Each match of the two has one of these, which are found in a twentieth of the time.
_REFUSING: Final = ("javascript", "js", "cookies", "human", "robot", "check", "captcha", "traffic")
# These name other things too: a bus line, a film. So the text has to say it again.
_AMBIGUOUS: Final = re.compile(
    r"[0-9]{3}|forbidden|not found|access denied|server error|too many requests"
    r"|(?:[0-9]{3}\W*)?(?:internal server error|bad gateway|gateway time-?out)"
    r"|page (?:missing|unavailable)|service unavailable"
)
_SAYS_ERROR: Final = re.compile(
    r"(?:not?|n't) (?:be )?(?:find|found|exist|authori[sz]ed)|cannot find"
    r"|no such (?:page|file|url)|oops|went wrong|sorry\W+(?:but )?(?:no|th|we|you|it|page)"
    r"|error (?:\d|code|page|has|was|occur|while)|(?:server|internal|unexpected) error"
    r"|you\b[^.]{0,9} (?:looking|asked) for|nicht gefunden|introuvable|no encontrad|não encontrad"
    r"|non trovat|niet gevonden|nie (?:istnieje|znaleziono)|hittades inte|inte hitta|ikke fun[dn]et"
    r"|ei löydy|nenalezen|bulunamad.|не найден|не знайден|찾을 수 없|見つかりません|不存在|找不到"
)
# The sentences of an error page that say so less clearly.
_MAY_SAY_ERROR: Final = re.compile(
    r"no longer|denied|have permission|(?:not |un)available|is missing|moved|removed|deleted"
    r"|please|wait a|try again|temporar"
)
# What the sentences of a bot check, and of a page that scripts fill, are about: the last ones only
# if they speak to the reader.
_CHECK: Final = re.compile(
    r"please|sorry|try again|contact|inconvenience|javascript|\bjs\b|cookie|browser|redirect"
    r"|seconds|ray id|reference id|extension|reload|refresh|cloudflare|ddos|block|loading|copyright"
    r"|\u00a9|rights reserved"
    r"|^(?=.*\b(?:you|your|we|our|this (?:web)?site|this page)\b)"
    r".*(?:robot|\bbots?\b|human|captcha|automat|security|access|verif|traffic)"
)
_SENTENCE_WORDS: Final = 4  # titles and labels have fewer
_SENTENCE_ENDS: Final = re.compile(r"[.!?:;]+(?=\s|$)|[\u3002\uff01\uff1f\n]+")
_PARTS: Final = re.compile(r"\s[|·•»/\u2013\u2014-]\s|\s*[|»]\s*|:\s|\n")
_MOUNTS: Final = ("root", "app", "__next", "__nuxt", "___gatsby", "app-root", "react-root")
# Read first, in a tenth of the time of these comparisons.
_IDS: Final = etree.XPath("//@id", smart_strings=False)
# Whether one of the first 20 of these elements has no text.
_IS_SHELL: Final = etree.XPath(
    f"boolean((//*[{' or '.join(f'@id = {name!r}' for name in _MOUNTS)}])[position() <= 20]"
    "[not(normalize-space())])"
)


class Head(NamedTuple):
    """What a page says about itself."""

    title: str | None  # the first title with text, among the first 100
    base: str | None  # of relative URLs: the page's <base>, else the page's URL
    canonical_url: str | None  # the first absolute URL of a rel=canonical, resolved against base
    language: str | None  # the root's lang, at most 35 characters of it
    noindex: bool  # whether a <meta name=robots> says noindex or none
    alternates: str | None  # the absolute URLs of its first 100 hreflang links, a space between


def read_head(root: HtmlElement, url: str | None) -> Head:
    """Return what a page at ``url`` says about itself, wherever these elements are."""
    found: dict[str, list[HtmlElement]] = {tag: [] for tag in _OF_HEAD}
    for part in root.iter(*_OF_HEAD):
        found[str(part.tag)].append(part)
    titles, bases, links, metas = found.values()
    # A title in an svg names a drawing.
    of_page = (
        title for title in titles[:_TITLES_MAX] if next(title.iterancestors("svg"), None) is None
    )
    texts = (" ".join(clean_text("".join(title.itertext())).split()) for title in of_page)
    references = (base.get("href") for base in bases)
    base = absolute(next((href for href in references if href is not None), None), url) or url
    canonical = (link for link in links if _is_related(link, "canonical"))
    twins = (link for link in links if link.get("hreflang") and _is_related(link, "alternate"))
    language = (root.get("lang") or root.get("xml:lang") or "").strip()[:35]
    robots = (meta for meta in metas if meta.get("name", "").lower() == "robots")
    return Head(
        next(filter(None, texts), None),
        base,
        next(_urls(islice(canonical, _CANONICAL_MAX), base, url), None),
        language or None,
        any(says_noindex(meta.get("content", "")) for meta in islice(robots, _CANONICAL_MAX)),
        " ".join(_urls(islice(twins, _ALTERNATES_MAX), base, url)) or None,
    )


def _is_related(link: HtmlElement, relation: str) -> bool:
    return relation in link.get("rel", "").lower().split()


def _urls(links: Iterable[HtmlElement], base: str | None, own: str | None) -> Iterator[str]:
    """Yield the URLs of links, encoded as that of their page: by default crawlers encode it."""
    for link in links:
        url = absolute(link.get("href"), base)
        if url is not None and url.startswith(_WEB):
            is_encoded = own is not None and own.isascii()
            yield _NOT_ASCII.sub(lambda part: quote(part[0]), url) if is_encoded else url


def absolute(reference: str | None, base: str | None) -> str | None:
    """Return ``reference`` resolved against ``base`` (RFC 3986), percent-encoded for Markdown.

    Return None for an empty or invalid reference, for ``javascript:``, ``data:`` and similar URLs,
    and for one longer than 8,192 characters. Without ``base``, a relative reference stays relative.
    """
    if not reference or len(reference) > _URL_MAX:
        return None
    plain = _PLAIN.fullmatch(reference)
    sign = reference[0] if reference[0] in "/?#" else ""
    before = _before(base, sign) if plain and base else ""
    if plain and before is not None:
        if plain[1] or not base:
            return reference
        if "/." not in reference and (sign or "//" not in reference):
            return before + reference
    # Browsers drop line breaks from URLs, and white space around them.
    word = _LINE_BREAKS.sub("", reference).strip()
    try:
        joined = urljoin(base, word) if base else word
        if not word or urlsplit(joined).scheme in _NOT_PLACES:
            return None
    except ValueError:
        return None
    return _encoded(joined)


@lru_cache
def _before(base: str, sign: str) -> str | None:
    """Return what precedes a plain reference that begins with a sign, or else a name."""
    if re.match(_ORIGIN, base, re.ASCII) is None:
        return None
    return _encoded(urljoin(base, f"{sign}x").removesuffix(f"{sign}x"))


def _encoded(url: str) -> str:
    return _UNSAFE.sub(lambda match: "".join(f"%{byte:02X}" for byte in match[0].encode()), url)


def image_source(image: HtmlElement) -> str | None:
    """Return the reference to the image that an ``img`` shows after its scripts ran.

    A placeholder without one shows the only image of the ``noscript`` behind it.
    """
    if source := own_source(image):
        return source
    fallback = image.getnext()
    if fallback is None or fallback.tag != "noscript":
        return None
    images = list(islice(fallback.iter("img"), 2))
    return own_source(images[0]) if len(images) == 1 else None


def own_source(image: HtmlElement) -> str | None:
    """Return the reference in the attributes of an ``img``.

    A lazy-loading attribute has priority over ``src``, which is then a placeholder. Without both,
    the first entry of a ``srcset`` counts.
    """
    for name in (*_LAZY_SOURCES, "src", *_SOURCE_SETS):
        value: str = image.get(name, "")
        if value and name in _SOURCE_SETS:
            value = next(iter(value.split(maxsplit=1)), "").rstrip(",")
        if value and not value.startswith("data:"):
            return value
    return None


def check_stand_in(
    title: str | None,
    text: str,
    unlinked: Callable[[], str],
    root: HtmlElement | None = None,
) -> None:
    """Raise a PageError if a page is an error page, a bot check or JavaScript-rendered.

    Error pages are named in a part of the title or the first line; scripts fill an empty element.
    ``unlinked`` returns the text outside links.
    """
    words = text.split()
    if _size(words[:TEXT_WORDS_MIN]) < TEXT_WORDS_MIN:
        return
    content = " ".join(words).lower().replace("\u2019", "'")
    first = next(line for line in text.split("\n") if line.strip())
    label = f"{title or ''}\n{first}".lower().replace("\u2019", "'")
    parts = [part.strip(" .!…\t\r") for part in _PARTS.split(label)]
    titled = [name for part in parts if _BLOCK_TITLE.fullmatch(name := part.rstrip("?"))]
    may_refuse = any(word in content for word in _REFUSING)
    is_check = bool(titled) or (may_refuse and _BLOCK.search(content) is not None)
    if len(content) > TEXT_CHARS_MAX and not is_check:
        return
    errors = [part for part in parts if _ERROR.fullmatch(part)]
    needs_script = may_refuse and _NEEDS_SCRIPT.search(content) is not None
    is_shell = root is not None and not {*_MOUNTS}.isdisjoint(_IDS(root)) and _IS_SHELL(root)
    if not (errors or is_check or needs_script or is_shell):
        return
    heading = first.strip().lower()
    # "Not Found is a record" is no message.
    names = "|".join(map(re.escape, {*errors, *titled})) or "(?!)"
    name = re.compile(rf"\b(?:{names}) (?=(?:is|was) (?:an?|the)\b)")
    is_named = name.search(content) is not None
    rest = name.sub("", content.removeprefix(heading if heading in errors else ""))
    own, others = _sentences(name.sub("", unlinked().lower()))
    own_words, other_words = (
        sum(size for size in map(_size, sentences) if size >= _SENTENCE_WORDS)
        for sentences in (own, others)
    )
    # "Line 404 runs from the mill to the quay": the number is its name.
    is_name = any(len(each) >= _SENTENCE_WORDS and not {*errors}.isdisjoint(each) for each in own)
    has_text = is_named or is_name or own_words >= TEXT_WORDS_MIN
    is_confirmed = _SAYS_ERROR.search(rest) or (_MAY_SAY_ERROR.search(rest) and not has_text)
    if any(is_confirmed or not (is_named or _AMBIGUOUS.fullmatch(part)) for part in errors):
        raise PageError("error_page", "the page says that there is no such page")
    enough = max(TEXT_WORDS_MIN, other_words / 2) if is_check else min(TEXT_WORDS_MIN, other_words)
    if (is_check or needs_script) and own_words < enough:
        raise PageError("blocked", "the page asks for a check, JavaScript or cookies first")
    if is_shell and sum(map(_size, own)) < TEXT_WORDS_MIN:
        raise PageError(
            "needs_script", "the page is a shell that scripts fill; fetch it with a browser"
        )


def _sentences(text: str) -> tuple[list[list[str]], list[list[str]]]:
    """Return the words of each sentence that no such page has, and of the others."""
    sentences: tuple[list[list[str]], list[list[str]]] = [], []
    for words in filter(None, map(str.split, _SENTENCE_ENDS.split(text))):
        sentence = " ".join(words)
        patterns = (_CHECK, _SAYS_ERROR, _MAY_SAY_ERROR)
        sentences[any(pattern.search(sentence) for pattern in patterns)].append(words)
    return sentences


def _size(words: Iterable[str]) -> int:
    """Return how many words there are; two characters of a script without spaces are one."""
    return sum(max(len(word) // 2, 1) if is_unspaced(word) else 1 for word in words)
