"""Which part of a page is its article, what its parts weigh, and which pages are none."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from pgsimhash import PageError, fingerprint
from pgsimhash.html import read_article
from pgsimhash.html.blocks import block_texts, outline
from pgsimhash.html.page_words import read_words
from pgsimhash.html.weights import nearby, weigh
from pgsimhash.reading.kept_markdown import plain_text
from pgsimhash.schemes.registry import DEFAULT_SCHEME
from tests.html.texts import LINKS, SENTENCES, STORY, TEXT, parsed, parsed_body
from tests.refusals import because

URL = "https://bay.example/news/7"
LONG_STORY = f"<h1>The ferryman</h1>{''.join(f'<p>{sentence}</p>' for sentence in SENTENCES)}"
FOOTER = (
    "<p>© 2024 The Bay Society. All rights reserved, use of this site is subject to settings.</p>"
)
NAVIGATION = f"<nav><ul>{LINKS}</ul></nav>"
LISTS = [f"<div><ul>{LINKS}</ul></div>", f'<div class="site-menu">{LINKS}</div>']
BESIDE = [
    NAVIGATION,
    "<aside><p>Weather: fog, then sun.</p></aside>", f'<div class="footer">{FOOTER}</div>',
    "<footer><p>Printed on the island, since 1874.</p></footer>", f"<div>{FOOTER}</div>",
    '<div class="relatedStories"><p>The baker and the bell: a quarrel.</p></div>',
]  # fmt: skip
HIDDEN = [
    '<div style="display: none"><p>You should not be reading this at all.</p></div>',
    "<div hidden><p>You should not be reading this at all.</p></div>",
    "<script>document.write('goats, goats, goats')</script><style>p { color: red }</style>",
    "<form><select><option>Ferry</option></select><button>Go</button></form>",
]


def text_of(body: str) -> str:
    return " ".join(read_article(f"<html><body>{body}</body></html>", URL).text.split())


def weights_in(body: str) -> dict[str, float]:
    page = outline(parsed_body(body))
    blocks = read_words(page)
    weigh(page, blocks)
    texts = zip(block_texts(page.text), blocks, strict=True)
    return {text: block.weight for text, block in texts if block.words}


ALONE = text_of(STORY)


@pytest.mark.parametrize("beside", BESIDE + HIDDEN + LISTS)
@pytest.mark.parametrize("order", ["{1}<div>{0}</div>", "<div>{0}</div>{1}"])
def test_content_beside_a_story_is_ignored_and_has_little_weight(beside: str, order: str) -> None:
    assert beside in LISTS or text_of(order.format(STORY, beside)) == ALONE
    found = weights_in(order.format(LONG_STORY, beside))
    least = np.median([found[sentence] for sentence in SENTENCES])
    beside_it = [weight for text, weight in found.items() if text not in LONG_STORY]
    assert bool(beside_it) == (beside not in HIDDEN)
    assert max(beside_it, default=0) < least / 4


def test_names_remove_neither_most_of_a_page_nor_parts_that_they_name_by_a_substring() -> None:
    names = ("nav", "shared", "header-article", "comment", "sidebar", "navigation ad", "download")
    for name in names:
        assert text_of(f'<div class="{name}" id="{name}">{STORY}</div>') == ALONE, name
    # As substrings these contain share, ad, nav and comment.
    for name in ("shared-files", "adherence", "navigable", "commentary", "badge"):
        extra = f'<p class="{name}">The goats, for what it is worth, have never been seasick.</p>'
        assert "seasick" in text_of(f"<div>{STORY}{extra}</div>"), name


@pytest.mark.parametrize("tag", ["article", "main", "section", "div", "td"])
def test_the_story_is_found_without_help_from_names(tag: str) -> None:
    opening, closing = f"<{tag}>", f"</{tag}>"
    if tag == "td":
        opening, closing = "<table><tr><td>", "</td></tr></table>"
    frame = "<div><ul>{}</ul></div>{}<div><ol>{}</ol></div>"
    body = frame.format(LINKS * 2, f"{opening}{STORY * 6}{closing}", LINKS * 2)
    assert text_of(body) == text_of(STORY * 6)


def test_links_lists_and_images_of_the_story_stay() -> None:
    linked = STORY.replace("two goats", '<a href="/goats">two goats</a>')
    assert text_of(f"<div>{linked}</div>") == ALONE
    kettle, boots = "Bring a kettle, for the pier is cold.", "Bring boots, for the slip is wet."
    listed = f"<article><h1>Ferry</h1>{STORY}<ul><li>{kettle}</li><li>{boots}</li></ul></article>"
    assert text_of(listed) == f"Ferry {ALONE} {kettle} {boots}"
    # So does a page of nothing but a list.
    items = [f"Item {name} of the ferryman's freight" for name in "abcdefghijkl"]
    listed = "".join(f"<li>{item}</li>" for item in items)
    body = f"<div><span>Bay Weekly</span></div><div><section><ul>{listed}</ul></section></div>"
    assert " ".join(items) in text_of(body)
    assert text_of("") == ""
    # A lazy image takes its source from noscript.
    image = "<p><img alt=boat><noscript><img src='/boat.jpg'></noscript></p>"
    markdown = read_article(f"<article>{STORY}{image}</article>", URL).markdown
    assert "![boat](https://bay.example/boat.jpg)" in markdown


PLAIN = """Timetable, 3 May

Home | About | Contact us

The ferry crosses the bay at 8:30, 9:15 and 17:40, if 2 < wind < 7 & the pier is open.
* Goats: 4 EUR
"""


def test_plain_text_is_read_line_by_line() -> None:
    assert read_article("The ferry crosses every day.").markdown == "The ferry crosses every day."
    article = read_article(PLAIN, "https://bay.example/ferry.txt")
    assert article.text == PLAIN
    assert plain_text(article.markdown).split() == PLAIN.split()
    for page in (PLAIN, PLAIN.encode(), PLAIN.encode("utf-16")):
        made = fingerprint(page)
        assert made.simhash == DEFAULT_SCHEME.simhash(PLAIN)
        assert made.tokens == len(re.findall(r"\w+", PLAIN))
    assert fingerprint(f"<p>{PLAIN}").simhash != DEFAULT_SCHEME.simhash(PLAIN)


@given(st.text(alphabet="ab 7:.&;<\n\té漢", min_size=80))
def test_any_plain_text_has_the_simhash_of_the_text(text: str) -> None:
    text = text.replace("<a", "<7").replace("<b", "<7")
    try:
        expected = DEFAULT_SCHEME.simhash(text)
    except PageError:
        with pytest.raises(PageError):
            fingerprint(text)
    else:
        assert fingerprint(text).simhash == expected


@pytest.mark.parametrize("block", ["article", "main", "section", "custom-block"])
@pytest.mark.parametrize(
    "head", ["<title>Ferry</title>", "<head><meta name=a><title>Ferry</title>"]
)
def test_head_and_body_may_be_missing(head: str, block: str) -> None:
    article = read_article(
        f"<!doctype html>{head}<{block}>{STORY}</{block}><footer>© 1874 The Bay Society</footer>"
    )
    assert (article.title, " ".join(article.text.split())) == ("Ferry", ALONE)


def test_elements_not_allowed_in_a_head_precede_the_body() -> None:
    root = parsed("<head><title>Ferry</title><main>one</main> two <body>three<p>four</body>")
    assert etree.tostring(root) == (
        b"<html><head><title>Ferry</title></head>"
        b"<body><main>one</main> two three<p>four</p></body></html>"
    )


def test_what_a_page_says_to_search_engines() -> None:
    links = "".join(
        f"<link rel='{rel}' hreflang='{language}' href='{href}'>"
        for rel, language, href in (
            ("alternate", "de", "/de/x"), ("ALTERNATE", "x-default", "https://b.example/a b"),
            ("alternate", "", "/feed"), ("next", "fr", "/fr"), ("alternate", "it", "javascript:x"),
        )
    )  # fmt: skip
    article = read_article(f"{links}<meta name=Robots content='follow, NOINDEX'>{STORY}", URL)
    assert article.noindex
    site = "/".join(URL.split("/")[:3])
    assert article.alternates == f"{site}/de/x https://b.example/a%20b"
    many = "".join(f"<link rel=alternate hreflang=x href=/{n}>" for n in range(1000))
    assert len((read_article(f"{many}{STORY}", URL).alternates or "").split()) == 100
    plain = read_article(f"<meta name=googlebot content=noindex>{STORY}")
    assert (plain.noindex, plain.alternates) == (False, None)


def test_title_canonical_url_and_language() -> None:
    article = read_article(
        "<html lang=' de '><head><base href='https://other.example/x/'>"
        "<title>\n Die Fähre\n</title><link rel='alternate canonical' href='faehre'></head>"
        f"<body>{STORY}",
        URL,
    )
    assert article.canonical_url == "https://other.example/x/faehre"
    assert (article.title, article.language) == ("Die Fähre", "de")
    # Browsers also read a later <html>.
    for begin in ("<meta charset=utf-8>", "Warning<br>", "<html class=js>"):
        assert read_article(f"{begin}<HTML class=a\n lang='de'><p>{TEXT}").language == "de"
    assert read_article(f"<html lang=de><p>{TEXT}<html lang=fr>").language == "de"
    for href in ("", "javascript:0", "http://[", "data:text/html,x", "/relative"):
        page = f"<link rel=canonical href='{href}'><svg><title>Arrow</title></svg>{STORY}"
        assert read_article(page).canonical_url is None
        assert read_article(f"<body>{page}").title is None
    # As crawlers spell the URL of the page, unless it was given otherwise.
    link = f"<link rel=canonical href='/k\u00e4se?a=\u9ec4'>{STORY}"
    for url, path in ((URL, "k%C3%A4se?a=%E9%BB%84"), (f"{URL}/\u00e4", "k\u00e4se?a=\u9ec4")):
        site = "/".join(url.split("/")[:3])
        assert read_article(link, url).canonical_url == f"{site}/{path}"
    # The first ten links are tried.
    broken, good = "<link rel=canonical href='http://['>", f"<link rel=canonical href={URL}>"
    assert read_article(f"{broken * 9}{good}{STORY}").canonical_url == URL
    assert read_article(f"{broken * 10}{good}{STORY}").canonical_url is None


def test_the_markdown_of_very_many_elements_is_paragraphs(monkeypatch: pytest.MonkeyPatch) -> None:
    page = f"<h1>The ferry</h1><p>* No *gulls* may sit on the rail, nor any dogs.</p>{STORY}"
    assert "# The ferry" in read_article(page).markdown
    monkeypatch.setattr("pgsimhash.html.article.MARKED_UP_MAX", 0)
    article = read_article(page)
    assert article.markdown.startswith("The ferry\n\n\\* No \\*gulls\\* may sit")
    assert article.markdown.replace("\n\n", "\n").replace("\\", "") == article.text


def test_the_list_of_an_index_weighs_more_than_the_footer() -> None:
    entries = "".join(f"<li><a href=/>{' '.join(text.split()[:6])}</a></li>" for text in SENTENCES)
    notice = "The society is registered in the county and depends on the support of its members."
    footer = f"<div class='footer'><p>{notice}</p>{FOOTER}</div>"
    found = weights_in(f"<h1>News</h1><ul>{entries}</ul>{footer}")
    listed = [weight for text, weight in found.items() if text in " ".join(SENTENCES)]
    assert min(listed) > found[notice]
    assert len(listed) * 6 * min(listed) > 2 * len(notice.split()) * found[notice]


@given(st.integers(0, len(SENTENCES) - 1), st.sampled_from(["goats", "bell " * 5, ""]))
def test_a_small_edit_moves_no_weight_by_much(place: int, words: str) -> None:
    frame = f"{NAVIGATION}<main>{{}}</main><footer>{FOOTER}</footer>"
    edited = LONG_STORY.replace(SENTENCES[place], f"{SENTENCES[place]} {words}")
    before = list(weights_in(frame.format(LONG_STORY)).values())
    after = list(weights_in(frame.format(edited)).values())
    assert np.abs(np.array(before) - np.array(after)).max() < 0.15


def test_text_before_a_heading_h1_within_a_post_weighs_as_the_text_behind_it() -> None:
    first, second = (f"<p>{'</p><p>'.join(part)}</p>" for part in (SENTENCES[:4], SENTENCES[4:]))
    post = f"<div class=post-content>{first}<h1>The second day</h1>{second}</div>"
    page = f"{NAVIGATION}<h2>The ferryman</h2>{post}<footer>{FOOTER}</footer>"
    found = weights_in(page)
    assert min(map(found.__getitem__, SENTENCES)) > 0.3 * max(found.values())
    # What is above a title is short, or in other elements.
    above = weights_in(page.replace(first, "<p>A story from the islands</p>"))
    assert above["A story from the islands"] < 0.1 * above[SENTENCES[-1]]


@pytest.mark.parametrize("post", ["article", "div class=post"])
def test_the_title_of_a_post_counts_and_not_that_of_its_site_above(post: str) -> None:
    site = "<header><h1><a href=/>Bay Weekly</a></h1><p>{}</p></header>"
    page = f"{site}<nav>{LINKS}</nav><{post}><h1>The ferryman</h1><p>{'</p><p>'.join(SENTENCES)}"
    slogan = "Read on the islands every Thursday"
    found = weights_in(page.format(slogan))
    assert found[slogan] < 0.01 * found[SENTENCES[0]]
    # An introduction below the first h1 is no slogan.
    introduction = " ".join(SENTENCES[:3])
    home = f"<main><h1>The bay</h1><p>{introduction}</p><{post}><h1>Today</h1><p>{SENTENCES[5]}"
    found = weights_in(home)
    assert found[introduction] > 0.5 * found[SENTENCES[5]]


@pytest.mark.parametrize("notice", [
    "版权声明: 本博客所有文章除特别声明外 均采用 CC BY 4.0 许可协议。转载请注明出处",
    "版權所有 未經許可不得轉載本站的文章與照片", "当サイトの文章や写真の無断転載を禁じます",
    "섬 신문의 글과 사진은 무단전재 및 재배포 할 수 없습니다", "جميع الحقوق محفوظة لصحيفة الجزيرة",
    "כל הזכויות שמורות לעיתון האי",
])  # fmt: skip
def test_the_small_print_of_short_posts_in_other_scripts_hardly_counts(notice: str) -> None:
    post = f"<h1>The ferry</h1><p>{'</p><p>'.join(SENTENCES[:3])}</p>"
    found = weights_in(f"<div class=post>{post}<ul><li>{notice}</ul></div>")
    assert found[notice] < 0.2 * found[SENTENCES[0]]


def test_a_page_with_only_boilerplate_is_too_short() -> None:
    frame = f"{NAVIGATION}{{}}<footer><p>Bay Society</p>{FOOTER}</footer>"
    with pytest.raises(PageError, match="0 words"):
        fingerprint(frame.format("<main></main>"))
    for own in (STORY, f"<p>{SENTENCES[0]}", f"<ul>{LINKS}</ul>", f"<p>Open:</p><ul>{LINKS}</ul>"):
        assert fingerprint(frame.format(own)).tokens > 0
    # An element with all of a page is its content.
    for tag in ("ul", "nav", "footer", "form", 'div class="menu"'):
        assert fingerprint(f"<{tag}>{LINKS}").tokens == 24, tag


def test_weights_are_between_0_and_1_whatever_the_page() -> None:
    for body in (
        "x",
        "<p>" * 3000 + "x",
        LONG_STORY * 40,
        "<a href=/>y</a>" * 500,
        "© " * 2000,
    ):
        found = np.array([*weights_in(body).values()])
        assert np.isfinite(found).all()
        assert ((found >= 0) & (found <= 1)).all()


@given(st.lists(st.integers(1, 4000), min_size=1, max_size=60), st.sampled_from([15.0, 40, 150]))
def test_nearby_amounts_are_summed_over_any_length(counts: list[int], window: float) -> None:
    amounts = np.array(counts, dtype=np.float64)
    middle = np.cumsum(amounts) - amounts / 2
    shares = np.exp(-np.abs(middle - middle[:, np.newaxis]) / window)
    assert np.allclose(nearby(middle.tolist(), counts, window), shares @ amounts)


NOTE = "Correction: the piano weighed seven stone, not three."


def story(before: str = "", between: str = "", behind: str = "", title: str = "The ferry") -> str:
    """Return a page with a long article, and parts in its header, text and end."""
    paragraphs = [f"<p>{sentence}</p>" for sentence in SENTENCES * 3]
    return (
        f"<nav><ul>{LINKS}</ul></nav><div id=page><article><header><h1>{title}</h1>{before}"
        f"</header><div class=text>{''.join(paragraphs[:12])}{between}{''.join(paragraphs[12:])}"
        f"</div>{behind}</article></div><footer>{FOOTER}</footer>"
    )


@pytest.mark.parametrize("box", [
    "<div class=correction><p><em>{}</em></p></div>", "<aside class='editors-note'>{}</aside>",
    "<div role=note>{}</div>", "<section class='c-update-box'><h4>Update</h4><p>{}</p></section>",
    "<div class='alert alert-warning'>{}</div>", "<p class=post__standfirst>{}</p>",
    "<div><div class='infobox right'><p>{}</p></div></div>", "<div class=calloutBox><p>{}</div>",
    "<p class=chapo>{}</p>", "<div id=berichtigung><p>{}</p></div>",
    "<div class='c-info-box x'>{}</div>", "<aside id=callOut>{}</aside>",
    "<p class=sub_title>{}</p>", "<div class=admonitionblock>{}</div>",
    "<table class='plain ambox'><tr><td>{}</table>", "<div class=disclosure><p>{}</p></div>",
    "<div class=post-addendum>{}</div>", "<div class=footnotes><ol><li>{}</ol></div>",
    "<div class=versionadded><p>{}</p></div>", "<div class='x deprecated'><p>{}</p></div>",
    "<div class=correcao><p>{}</p></div>", "<div class='c-sprostowanie'><p>{}</p></div>",
])  # fmt: skip
def test_notes_of_an_article_are_shown_wherever_they_are(box: str) -> None:
    note = box.format(NOTE)
    for page in (story(before=note), story(between=note), story(behind=note)):
        assert NOTE in read_article(page).text
        other = fingerprint(page.replace("seven", "nine"))
        assert other.text_digest != fingerprint(page).text_digest


@pytest.mark.parametrize("box", [
    "<aside><p>{}</p></aside>", "<div class=x7><p>{}</p></div>", "<menu><li>{}</menu>",
    "<dialog open><p>{}</p></dialog>", "<select><option>All<p>{}</p></select>",
])  # fmt: skip
def test_sentences_within_an_article_are_shown(box: str) -> None:
    assert NOTE in read_article(story(between=box.format(NOTE))).text


@pytest.mark.parametrize("name", ["teaser-text", "c-article__teaser"])
def test_the_lead_of_an_article_may_be_its_teaser(name: str) -> None:
    box = f"<div class={name}><p>{{}}</p></div>"
    for lead in (box, f"<p class={name}>{{}}</p>"):
        assert NOTE in read_article(story(before=lead.format(NOTE))).text
    for other in (f"<a href=/>Boats</a><p>{NOTE}", "The story of a piano"):
        assert other[-9:] not in read_article(story(before=box.format(other))).text
    assert NOTE not in read_article(story(behind=box.format(NOTE))).text


@pytest.mark.parametrize("quotation", [
    "<blockquote class=pullquote><p>{}</p></blockquote>",
    "<blockquote><p>{}</p><ul><li>Row!</ul></blockquote>",
    "<blockquote><p>Row or swim.</p><footer class=quote-footer>{}</footer></blockquote>",
])  # fmt: skip
def test_quotations_in_a_text_are_shown_whole(quotation: str) -> None:
    part = quotation.format("She said so")
    for page in (story(between=part), story(behind=part)):
        assert "She said so" in read_article(page).text
    assert "She said so" not in read_article(f"<aside>{part}</aside>{story()}").text


def test_a_quotation_around_most_of_a_page_is_none() -> None:
    text, menu = "<p>".join(["", *SENTENCES]), "<p><a href=/a>Home</a> | <a href=/b>Guests</a>"
    page = f"<body><blockquote>{menu}<h1>The ferry</h1>{text}{menu}<p>Copyright 1999</blockquote>"
    assert read_article(page).text == read_article(page.replace("blockquote", "div")).text


@pytest.mark.parametrize("remark", ["Bring your own tea.", "水曜日は休業します。"])
def test_remarks_of_a_few_words_between_paragraphs_are_shown(remark: str) -> None:
    box = "<div class=x7><p>{}</p></div>"
    for part in (box, "<table><tr><td>{}</table>", "<figure><p>{}</p></figure>"):
        assert remark in read_article(story(between=part.format(remark))).text
    for other in (
        "12 minutes to read",
        "Tea",
        f"<b>{remark}</b> <a>Go</a>",
        "Advertisement: go on",
    ):
        text = read_article(story(between=box.format(other))).text
        assert other[:2] not in text


@pytest.mark.parametrize("item", [
    "<h3>{}</h3><p>{}</p>", "<details><summary><h3>{}</h3></summary><div><p>{}</p></div></details>",
    "<h3><button aria-expanded=false>{}</button></h3><div class=x7><p>{}</p></div>",
])  # fmt: skip
def test_answers_of_a_few_words_are_shown_with_their_questions(item: str) -> None:
    questions = ("What does it cost for pianos?", "May goats come along?", "Is there a bar at all?")
    parts = map(item.format, questions, ("12 EUR", "On a leash.", "Nope."))
    text = read_article(story(between="".join(parts))).text
    assert {*questions, "12 EUR", "On a leash.", "Nope."} <= {*text.split("\n")}
    box = "<h3>{}</h3><div class=x7><p>{}</p></div>"
    for title, below in (
        (questions[0], "<a href=/>12 EUR</a>"), ("Costs", "12 EUR"), (questions[0], "Werbung: EUR"),
        ("Is it <a href=/>open</a> now?", "12 EUR"), (questions[0], "12 EUR on May 19, 2019"),
    ):  # fmt: skip
        assert "EUR" not in read_article(story(between=box.format(title, below))).text


@pytest.mark.parametrize("tag", ["main", "article"])
def test_sentences_above_the_title_in_main_and_articles_are_shown(tag: str) -> None:
    def page(above: str) -> str:
        whole = story().replace("<article>", f"<{tag}>{above}").replace("</article>", f"</{tag}>")
        return f"<p>{FOOTER}</p>{whole}"

    for box in ("<p>{}</p>", "<div><p class=x7>{}</p></div>"):
        assert NOTE in read_article(page(box.format(NOTE))).text
    for box in ("<aside><p>{}</p></aside>", "<div class=sidebar>{}</div>", "<p><a>{}</a></p>"):
        assert NOTE not in read_article(page(box.format(NOTE))).text
    # A title is shown however short it is, but not that of the site.
    title = "<header class=entry-header><h1>Boats and pianos</h1><p>By Ann, 12 May</p></header>"
    for names in ("entry-header", "'post-title title-align-left'"):
        assert "Boats and pianos" in read_article(page(title.replace("entry-header", names))).text
    assert "Boats and pianos" not in read_article(title + page("")).text
    for box in ("<p>Boats and pianos</p>", f"<aside>{title}</aside>"):
        assert "Boats and pianos" not in read_article(page(box)).text
    assert FOOTER not in read_article(page("")).text


@pytest.mark.parametrize("name", ["page-toc-source", "sidebar-right", "related-page"])
def test_lists_in_a_text_whose_name_is_of_a_part_beside_it_are_shown(name: str) -> None:
    links = "".join(f"<li><a href=/{word}>{word}</a>" for word in ("Quay", "Crane", "Slipway"))
    lists = "".join(f"<h2>{word}</h2><ul>{links}</ul>" for word in ("Boats", "Pianos"))
    text = read_article(
        story(between=f"{lists}<p>{NOTE}</p>").replace("<div id=page>", f"<div id={name}>")
    ).text
    assert text.count("Slipway") == 2
    assert "More about a" not in text


@pytest.mark.parametrize("below", ["", f"<p>By Ann</p><ul>{LINKS}</ul>"])
def test_the_lead_in_the_header_of_an_article_is_shown(below: str) -> None:
    page = story(before=f"<p>{NOTE}</p>{below}")
    assert NOTE in read_article(page).text
    assert fingerprint(page).text_digest != fingerprint(story(before=below)).text_digest
    assert NOTE not in read_article(page.replace("<header>", "<header class=sharebar>")).text
    assert NOTE not in read_article(story(before=f"<a href=/>{NOTE}</a>{below}")).text


def test_sentences_in_the_footer_of_an_article_are_shown_and_its_dates_are_not() -> None:
    for box in ("<footer><p>{}</p></footer>", "<div class=entry-footer><p class=note>{}</p></div>"):
        for note in (NOTE, "First published on May 19, 2019, changed on June 3, 2020"):
            for page in (story(between=box.format(note)), story(behind=box.format(note))):
                assert (note in read_article(page).text) is (note is NOTE)


@pytest.mark.parametrize("box", [
    "<div class='note cookie-bar'>{}</div>", "<aside class=related><p>{}</p></aside>",
    "<nav><p class=hint>{}</p></nav>", "<div class=promo><p class=lead>{}</p></div>",
    "<div class=hidden>{}</div>", "<dialog>{}</dialog>", "<dialog class=cookies open>{}</dialog>",
    "<footer class=share><p>{}</p></footer>",
    "<footer><p>{} More in <a>Boats</a>, <a>Pianos</a> and <a>Schools</a>.</p></footer>",
])  # fmt: skip
def test_menus_consents_and_promotions_are_no_notes(box: str) -> None:
    part = box.format(NOTE)
    for page in (story(before=part), story(between=part), story(behind=part)):
        assert NOTE not in read_article(page).text
    # Nor is what stands beside the page's content.
    for tag in ("div", "footer"):
        notice = f"<{tag} class=notice>{NOTE}</{tag}>"
        assert NOTE not in read_article(f"{notice}{story()}").text
        assert NOTE not in read_article(f"{story()}{notice}").text


MENU = "".join(f"<li><a href=/{name}>{name}</a>" for name in ("Start", "Boats", "Contact"))


def page(inside: str, behind: str = f"<p>{TEXT.replace('boat', 'ship')}</p>") -> str:
    return (
        f"<title>Ledger</title><nav><ul>{MENU}</ul></nav><main><h1>The ledger</h1>"
        f"<p>{TEXT}</p>{inside}{behind}</main><footer><ul>{MENU}</ul></footer>"
    )


@pytest.mark.parametrize(("html", "markdown"), [
    ("<table><tr><th>Boat<th>Crew<th>Is in<tr><td>Ebb<td>12<td>yes</table>",
     "| Boat | Crew | Is in |\n| --- | --- | --- |\n| Ebb | 12 | yes |"),
    ("<table><tr><td>17<td>4<tr><td>18<td>$ 5</table>",
     "|  |  |\n| --- | --- |\n| 17 | 4 |\n| 18 | $ 5 |"),
    # The cells behind one that is not shown stay in their columns.
    ("<table><tr><th>Boat<th>Mail<th>Crew<tr><td>Ebb<td><nav>Join</nav><td>12<tr><td>Neap<td>No"
     "<td>9</table>",
     "| Boat | Mail | Crew |\n| --- | --- | --- |\n| Ebb |  | 12 |\n| Neap | No | 9 |"),
    # Names of cells say how they look, not that they are columns of the page.
    ("<table><tr><th>Boat<th>Crew<tr><td class=left><a href=/e>Ebb</a><td>12<tr><td class=left>"
     "<a href=/n>Neap</a><td>9</table>",
     "| Boat | Crew |\n| --- | --- |\n| [Ebb](/e) | 12 |\n| [Neap](/n) | 9 |"),
    ("<div class=boat-tabs><h2>Care</h2><p>Wax the rope twice a year.<h2>Store</h2><p>Hang it"
     " up to dry.</div>",
     "## Care\n\nWax the rope twice a year.\n\n## Store\n\nHang it up to dry."),
    ("<ul><li>oars<li>7<li>rope</ul>", "- oars\n\n- 7\n\n- rope"),
    ("<ol><li>Moor.<li>Row.</ol>", "1. Moor.\n\n2. Row."),
    ("<dl><dt>Ebb<dd>out<dt>Flood<dd>in</dl>", "Ebb\n\n: out\n\nFlood\n\n: in"),
    ("<pre>row(2)</pre>", "```\nrow(2)\n```"),
    ("<figure><img src=/e.png><figcaption>Ebb, 1990</figcaption></figure>",
     "![](/e.png)\n\nEbb, 1990"),
    ("<ul><li><a href=/e>Ebb</a><li><a href=/f>Flood</a></ul>", "- [Ebb](/e)\n\n- [Flood](/f)"),
])  # fmt: skip
def test_short_blocks_between_shown_blocks_are_shown(html: str, markdown: str) -> None:
    article = read_article(page(html))
    assert markdown in article.markdown
    assert "Contact" not in article.markdown
    shown = {line for line in article.text.split("\n") if line}
    assert {"17", "18"} <= shown or "17" not in html


@pytest.mark.parametrize(("html", "seen"), [
    ("<table><tr><th>Boat<tr><td>Ebb</table>", True), ("<div><pre>row(2, 'Ebb')</pre></div>", True),
    ("<ul><li>Ebb<li>rope</ul>", True), ("<ul><li><a href=/e>Ebb</a></ul>", False),
    ("<figure><figcaption>Ebb</figcaption></figure>", False),
    ("<table role=presentation><tr><td><p>Ebb</table>", False),
    ("<div class=related><ul><li>Ebb<li>rope</ul></div>", False),
    ("<div class=popover><ul><li>Ebb<li>rope</ul></div>", False),
])  # fmt: skip
def test_links_figures_and_boilerplate_after_the_text_are_not_shown(html: str, seen: bool) -> None:
    assert ("Ebb" in read_article(page(html, behind="")).text) is seen


SORRY = (
    "<p>We looked in the cellar, in the attic and under the pier, and what you asked for was in "
    "none of these places. Perhaps the address has changed since somebody wrote it down.</p>"
)
SLATE = (
    "<p>The lighthouse keeper wrote the sentence on a slate and hung it on the door, because the "
    "visitors kept asking for a room that the tower never had. Forty years later the slate hangs "
    "in the museum of the town, and children copy it into their notebooks without knowing why. "
    "The curator says that it is the most photographed object of the whole collection, ahead of "
    "the anchor and of the stuffed pelican, which lost an eye in the flood. Nobody complained.</p>"
)


WAIT = (
    "<p>The application is loading. If it takes longer than ten seconds, reload the page, or "
    "check that your browser allows scripts and cookies for this site.</p>"
)
SHELL = f"<title>Bay</title><div id='{{}}'></div>{WAIT}<script src='/app.js'></script>"


@pytest.mark.parametrize(("reason", "page"), [
    *(("error_page", f"<title>{title}</title>{SORRY}") for title in (
        "Page not found | Bay Weekly", "404 Not Found", "Bay Weekly: Error 404", "403 Forbidden",
        "503 Service Temporarily Unavailable", "Access denied - Bay Weekly",
        "Seite nicht gefunden \u2013 Buchtblatt", "お探しのページが見つかりませんでした",
        "Bay Weekly</title><body><h1>Sorry, this page can\u2019t be found.</h1><title>",
    )),
    ("error_page", f"404 Not Found\n{SORRY.replace('<p>', '').replace('</p>', '')}"),
    *(("blocked", f"<title>{title}</title>{SORRY}") for title in (
        "Just a moment...", "Attention Required! | Gate", "Are you a robot?",
    )),
    *(("blocked", f"<title>Bay Weekly</title>{WAIT}<p>Please {please}.</p>") for please in (
        "enable JavaScript and cookies to continue", "verify that you are a human",
    )),
    *(("needs_script", SHELL.format(name)) for name in ("root", "app", "__next")),
    # The statements of a page of five words change nothing.
    ("too_short", "<title>404 Not Found</title><h1>Not found</h1>"),
])  # fmt: skip
def test_a_page_that_is_no_article_says_why(reason: str, page: str) -> None:
    with pytest.raises(PageError, check=because(reason)):
        fingerprint(page)


@pytest.mark.parametrize("page", [
    f"<title>Page not found</title>{SLATE * 3}",
    f"<title>A slate that says: not found</title><h1>Not found</h1>{SLATE * 3}",
    f"<title>What 404 pages say about a newspaper</title>{SORRY}",
    f"<title>How to enable JavaScript</title>{SORRY}<p>Enable JavaScript in the settings.</p>",
    f"<title>Error 404, the band, plays on the pier</title>{SORRY}",
    f'<title>Bay Weekly</title><div id="root"></div>{SLATE * 3}',
    f'<title>Bay Weekly</title><div id="root">{SORRY}</div>',
    f"<title>Just a moment: the ferry of 6:40</title><p>{SLATE * 3}",
])  # fmt: skip
def test_an_article_about_such_pages_is_an_article(page: str) -> None:
    assert fingerprint(page).tokens >= 20


def test_a_short_question_in_a_heading_is_shown_with_its_answer() -> None:
    questions = ("Why?", "Who pays for the goats?", "When?")
    parts = "".join(
        f"<h2><button aria-expanded=false>{question}</button></h2><p>{answer} {answer}</p>"
        for question, answer in zip(questions, SENTENCES, strict=False)
    )
    page = f"<nav><ul>{LINKS}</ul></nav><main><h1>Questions</h1>{parts}</main>"
    assert all(question in read_article(page).text for question in questions)


def test_the_titles_of_posts_are_shown_above_a_line_of_links() -> None:
    names = ("A goat on the pier", "Kettles in winter", "The baker rings twice")
    byline = "<div><a href=/2024>4 March 2024</a> <a href=/ada>Ada Lunt</a></div>"
    posts = "".join(
        f"<article><header><h2><a href=/{n}>{name}</a></h2>{byline}</header>"
        f"<p>{SENTENCES[n]} {SENTENCES[n + 4]}</p></article>"
        for n, name in enumerate(names)
    )
    column = "<div><h3>Places</h3><p><a href=/bay>The bay</a></p></div>"
    text = read_article(f"<main>{column}<div>{posts}</div></main>").text.split("\n")
    assert [name for name in (*names, "Places") if name in text] == list(names)


@pytest.mark.parametrize(("title", "is_shown"), [("A kettle of tin", True), ("Log in", False)])
def test_the_title_of_a_page_is_shown_in_a_form(title: str, is_shown: bool) -> None:
    form = f"<form><div><h1>{title}</h1><p>12.50 €</p><button>OK</button></div></form>"
    page = f"<title>A kettle of tin - Shop</title><ul>{LINKS}</ul>{form}<h3>About</h3><p>"
    assert (title in read_article(f"{page}{' '.join(SENTENCES[:3])}").text.split("\n")) == is_shown


def test_the_linked_titles_of_items_are_shown_with_their_prices() -> None:
    kinds = [*SENTENCES[0].split()[:7], *SENTENCES[1].split()[:7]]
    link = "<div><div><a href=/{0}>A {0} for the boats on the bay</a></div></div>"
    items = "".join(f"<li>{link.format(kind)}<p>12.50 € 9.99 €</p></li>" for kind in kinds)
    text = read_article(f"<ul>{LINKS}</ul><main><h2>Shop</h2><ol>{items}</ol></main>").text
    assert [kind for kind in kinds if f"A {kind} for the boats" in text] == kinds
    assert "More about" not in text


@pytest.mark.parametrize("tag", ["p", "div", "ul"])
def test_the_linked_cells_of_a_table_are_shown_with_their_rows(tag: str) -> None:
    kinds = SENTENCES[0].split()[:7]
    cell = f"<td><{tag}>{{}}</{tag}></td>"
    values = "".join(map(cell.format, ("13.4 m", "8.0 m (-89%)", "9.6 m (-71%)")))
    rows = (cell.format(f"<a href=/{kind}>{kind}</a>") + values for kind in kinds)
    table = f"<table>{''.join(map('<tr>{}</tr>'.format, rows))}</table>"
    text = read_article(f"<ul>{LINKS}</ul><main><h1>Boats</h1>{STORY}{table}</main>").text
    assert [kind for kind in kinds if kind not in text.split("\n")] == []
    # A table for layout has longer cells.
    layout = f"<table><tr><td><p><a href=/>Home</a></p></td><td>{STORY}</td></tr></table>"
    assert "Home" not in read_article(f"<ul>{LINKS}</ul>{layout}").text
