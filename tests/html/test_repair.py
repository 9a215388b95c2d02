"""Text that readers see is read, whatever the parser or a script does with it."""

import tracemalloc
from itertools import pairwise

import pytest
from lxml import etree

from pgsimhash import PageError, fingerprint
from pgsimhash.hashing.tokens import tokenize
from pgsimhash.html import read_article
from pgsimhash.html.blocks import words
from pgsimhash.html.hidden import open_hidden
from pgsimhash.html.markup import with_ended_divs
from pgsimhash.html.parse import clean_utf8
from tests.html.texts import LINKS, SENTENCES, STORY, parsed
from tests.refusals import because

NAV = f"<nav><ul>{LINKS}</ul></nav>"
QUESTIONS = ("Who rows when the ferryman is ill?", "May goats travel alone?")


def text_of(page: str | bytes) -> str:
    return read_article(page).text


def faq(question: str, answer: str) -> str:
    parts = zip(QUESTIONS, SENTENCES, strict=False)
    return "".join(question.format(q, n) + answer.format(a, n) for n, (q, a) in enumerate(parts))


@pytest.mark.parametrize("page", [
    # Browsers go on with the body behind its end tag, and that of the page.
    f"<html><head><title>t</title></head></html><body>{STORY}</body></html>",
    f"<html><body>{NAV}</body><div>{STORY}</div></html>",
    f"<html><body>{NAV}</BODY ></Html><html><head><title>t</title></head><body>{STORY}",
    f"<body><div>{NAV}</body>{STORY}</div>", f"<body>{NAV}</body\n</html><b>a</b>{STORY}",
    f"<body>{NAV}<!-- The end: </body -->{STORY}",
    f"<body>{NAV}<frameset cols=1><frame src=a>{STORY}</frameset>",
    f"<html lang=en />\n<head><title>t</title></head><body>{STORY}", f"<BODY class='a'/>{STORY}",
    # So do they behind an element of which a div was not closed.
    f"<nav><ul><li><div style='display:none'><p>Menu</li></ul></nav><main>{STORY}</main>",
    f"<ul><li><div hidden>Menu<li><div hidden>More</ul>{STORY}", f"<h2><div hidden>a</h2>{STORY}",
    f"{NAV}<button><div>Menu</button>{STORY}", f"<template><div>a</template>{STORY}",
    f"<noscript><div>Your browser runs no scripts</noscript>{STORY}",
    # Hidden until a script shows it.
    f"<body><div hidden><p>Wait.</p>{STORY * 4}</div><footer>{SENTENCES[6] * 4}</footer>",
    f"<body style='display:none'>{NAV}{STORY}", f"<body><div hidden>{NAV}{STORY}</div>",
    f"<body class='FlightSearch menu-open' style='display:none'>{STORY}",
    f"<body style='visibility:hidden'><div style='display: none'>{STORY}</div>",
    f"<p>{SENTENCES[6] * 4}</p><div style='visibility:hidden;animation-name:none'>{STORY}</div>",
    f"<body><p>Loading</p><main style='visibility: hidden'>{STORY}</main>",
    # The only copy.
    f"{NAV}<noscript><div>{STORY}</div></noscript>",
    f"{NAV}<script type='text/template'>{STORY}</script><noscript>{STORY}</noscript>",
    f"{NAV}<my-story><template shadowrootmode=open>{STORY}</template></my-story>",
    # Elements that are closed too late, or look closed.
    f"<title>t</title><svg><title>Menu <path d='M0 0'></svg>{STORY}",
    f"<svg viewBox='0 0 9 9'><path d='M0 0'>{STORY}", f"<svg><g><div>{STORY}</div></g></svg>",
    f"<button type=button>Menu{STORY}", f"<map name=m><area href=/a><div>{STORY}</div></map>",
    f"{STORY}<script src=/a.js/></script>", f"<details><summary>x</summary>{STORY}</details>",
    f'<?xml version="1.0"?><html><script src="/a.js"/><body><div><![CDATA[{STORY}]]></div></html>'
    .replace("<![CDATA[<p>", "<![CDATA["),
    faq("<h2><button aria-expanded=false>{}</button></h2>", "<p>{}</p>") + STORY,
    faq("<h3>{}</h3>", "<div hidden=until-found><p>{}</p></div>") + STORY,
    faq("<button aria-expanded=false aria-controls=a{1}>{0}</button>",
        "<div id=a{1} style='display:none'><p>{0}</p></div>"),
    faq("<h3><button aria-controls=a{1}>{0}</button></h3>", "<div hidden><p>{0}</p></div>"),
    f"<body style='display:none'>{NAV}<div>{STORY}</div><p>© 2020 Bay</p>",
    f"{NAV}<div id=page style='display:none'>{STORY}</div>", f"{NAV}<span hidden>{STORY}</span>",
    f"{NAV}<div hidden><div style='visibility:hidden'>{STORY}</div></div>",
    f"{NAV}{STORY.replace('<p>', '<p hidden>')}",
    f"{NAV}<div hidden>{STORY}</div><div hidden><p>It was sent.</p></div>",
    f"<x-a><template shadowrootmode=open><x-b><template shadowroot=open>{STORY}</template></x-b>",
    f"<noscript><p>Please enable JavaScript.</p></noscript>{NAV}<noscript>{STORY}</noscript>",
    f"<svg><switch><foreignObject>{STORY}</foreignObject><text>No HTML</text></switch></svg>",
    f"<math><mi>a</mi><annotation>b{STORY}", f"<math><mtext><span>a</span></mtext></math>{STORY}",
    f"<applet code=a>{STORY}</applet>", f"<object data=/a.swf>{STORY}</object>",
    f"<p>Boats</p><embed src=/a.swf>{STORY}",
    f"<object data=/a.swf><param name=a><embed src=/a.swf>{STORY}</object>",
    f"<svg><text><![CDATA[{' '.join(SENTENCES)}]]></text></svg>",
    f"<svg><foreignObject>{STORY}</foreignObject></svg>",
    f"<?xml version='1.0'?><html><head><title/><style/></head><body>{STORY}</body></html>",
    f"<?xml version='1.0'?><body><iframe/><div hidden=''/>{STORY}<iframe></iframe></body>",
    f"<iframe src='/a' />{STORY}", f"<svg><title/><style/></svg>{STORY}<svg><title>a</title></svg>",
    f"<svg><!-- <![CDATA[ --></svg>{STORY}<!-- ]]> -->",
    f"<?xml version='1.0'?><!-- <![CDATA[ --><p>{STORY}<!-- ]]> --><p><![CDATA[a]]></p>",
    f"\ufeff<?xml version='1.0'?><p>A <![CDATA[x]]> <![CDATA[{SENTENCES[0]}]]></p>{STORY}",
    faq("<button class='accordion'>{}</button>", "<div><p>{}</p></div>") + STORY,
    faq("<div role=button aria-expanded=false><a>{}</a></div>", "<div><p>{}</p></div>") + STORY,
    faq("<button class='collapsible'>{}</button>", "<div style='display:none'>{}</div>") + STORY,
    faq("<button>{}", "<div>{}</div></button>"),
    faq("<button>{}</button>", "<div><p hidden>{}</p></div>") + STORY,
    faq("<dl><dt><a href=#a{1}>{0}</a>", "<dd class=answer hidden id=a{1}>{0}</dd></dl>"),
    faq("<button data-bs-toggle=collapse data-bs-target='#a{1}'>{0}</button>",
        "<p>Answer:</p><div id=a{1} style='display: none'><p>{0}</p></div><!-- aria -->"),
    faq("<div role=button aria-expanded=false aria-controls=a{1}>{0}</div>",
        "<div id=a{1} style='display:none'><p>{0}</p></div>"),
    f"<dl>{faq('<dt><button>{}</button></dt>', '<dd hidden>{}</dd>')}</dl>",
    faq("<h2><a role=button href=#a{1}>{0}</a></h2>", "<div style='display:none'>{0}</div>"),
    faq("<button role=tab aria-controls=a{1}>{0}</button>",
        "<div id=a{1} role=tabpanel hidden><p>{0}</p></div>"),
    faq("<h3><a href=#>{}</a></h3>", "<div style='display:none'>{}</div>") + STORY,
    faq("<p>{}</p>", "<div style='display:none'>{}</div>") + STORY,
    "".join(f"<p class=tab-pane hidden>{a} {b}</p>" for a, b in pairwise(SENTENCES[:3])) + STORY,
    faq("<a href='#a{1}'>{0}</a>", "<div><p id=a{1} hidden>{0}</p></div>") + STORY,
    faq("<button popovertarget=a{1}>{0}</button>", "<p popover id=a{1}>{0} {0}</p>") + STORY,
    f"<nav><ul>{LINKS * 9}</ul></nav><div hidden><main>{STORY}</main></div>",
    f"<x-a><template shadowrootmode=open>{STORY}</template><template shadowrootmode=open>No"
    "</template></x-a>",
    # A noscript is text up to its end tag, and a template ends what is open in it.
    *(f"<noscript>{part}</noscript>{STORY}<p title=\"a\">b</p>" for part in (
        "<iframe src=/a>", "<b>a</b> < <!-- b --> <STYLE>c", "<!-- <p>a</p>", "<img src=\"/a>",
        "<a title='b>",
    )),
    *(f"<template><div>{part}</template>{STORY}" for part in (
        "<tr><th>a<td><div>b", "<table><caption>a<tr><td>b", "<p>a</p><table><tr><td>b</table><td>",
    )),
])  # fmt: skip
def test_what_readers_see_is_text(page: str) -> None:
    found = " ".join(text_of(page).split())
    wanted = SENTENCES[: 2 if "a{1}" in page or "id=a0" in page else 4]
    assert [sentence for sentence in wanted[:2] if sentence not in found] == []
    if "aria" in page:
        assert QUESTIONS[0] in found


@pytest.mark.parametrize(("page", "tree"), [
    ("<nav><DIV>a</nav><p>b", "<nav><div>a</div></nav><p>b</p>"),
    ("<nav><div><div><b>a</nav>b", "<nav><div><div><b>a</b></div></div></nav>b"),
    ("<ul><li><div>a<li>b</ul>c", "<ul><li><div>a</div></li><li>b</li></ul>c"),
    ("<dl><dt><div>a<dd>b</dl>c", "<dl><dt><div>a</div></dt><dd>b</dd></dl>c"),
    ("<li><div><ul></li><li>a</ul></li>b", "<li><div><ul><li>a</li></ul></div></li>b"),
    ("<aside><div><table><tr><td><div>a</aside><td>b</table></aside>c",
     "<aside><div><table><tr><td><div>a</div></td><td>b</td></tr></table></div></aside>c"),
    ("<nav><div><!-- </nav><div> --><a title='<div>'>a</a><script>'<div>'</script></nav>b",
     "<nav><div><a title=\"&lt;div&gt;\">a</a><script>'<div>'</script></div></nav>b"),
    ("<div><nav><div>a</div></nav><nav><div/>b</nav>c</div>",
     "<div><nav><div>a</div></nav><nav><div></div>b</nav>c</div>"),
])  # fmt: skip
def test_end_tags_end_divs_as_in_browsers(page: str, tree: str) -> None:
    assert etree.tostring(parsed(page)[0], method="html").decode() == f"<body>{tree}</body>"


@pytest.mark.parametrize("names", [
    "class='story withinUpsells skipGdprParts'", "class='right-sidebar' id=ad-container",
    "class=title-comments",
])  # fmt: skip
def test_what_is_around_the_title_of_a_page_is_content(names: str) -> None:
    title, others = "The ferryman and the goats", f"<p>{' '.join(SENTENCES[4:])}</p>" * 3
    page = f"{others}<div {names}><article><h1>{title}</h1>{STORY}</article></div>"
    assert {title, SENTENCES[0]} <= {*text_of(f"<title>{title} | Bay</title>{page}").split("\n")}
    for other in ("Goats", "The news of other people"):
        assert SENTENCES[0] not in text_of(f"<title>{title}</title>{page.replace(title, other)}")


def test_light_parts_are_in_the_slots_of_a_shadow_tree() -> None:
    root = "<template shadowrootmode=open>"
    title = "<header><h1><slot name=title>No title</slot></h1></header>"
    inner = (
        f"<x-b>{root}<article><p>{SENTENCES[4]}</p><slot></slot></article></template><slot></slot>"
    )
    boats = f"</template>{STORY}<b slot=title>Boats</b></x-a>"
    post = f"{NAV}<x-a>{root}{title}{inner}</slot></x-b>{boats}"
    assert text_of(post).split("\n") == ["Boats", SENTENCES[4], *text_of(STORY).split("\n")]
    term = f"{root}<i>(<slot>none</slot>)</i></template>an <b>old</b> boat"
    other = f"{root}<slot>a new one</slot></template>"
    page = f"{STORY}<p>It is <x-a>{term}</x-a>, and <x-a>{other}</x-a>."
    assert "It is (an old boat), and a new one." in text_of(page)
    # What has no slot is not seen, unless the tree is empty until a script runs.
    for slot in ("<slot name=title></slot>", "A boat"):
        found = text_of(f"<x-a>{root}{slot}</template><p>{SENTENCES[4]}</p></x-a>{STORY}")
        assert SENTENCES[4] not in found
    assert SENTENCES[4] in text_of(f"<x-a>{root}</template><p>{SENTENCES[4]}</p></x-a>{STORY}")


def test_short_parts_without_scripts_are_text() -> None:
    stops = "".join(
        f"<li><noscript>Pier of {name}</noscript>" for name in ("goats", "dogs", "cats")
    )
    assert "Pier of dogs" in text_of(f"<main><h1>Piers</h1>{STORY}<ul>{stops}</ul></main>")
    mail = "<p>Write to <noscript>goats at boats dot example</noscript> for more of them.</p>"
    assert "Write to goats at boats dot example for more" in text_of(mail + STORY)
    word = "<x-a><template shadowrootmode=open><b>old</b></template></x-a>"
    assert "An old boat" in text_of(f"<p>An {word} boat.</p>{STORY}")


@pytest.mark.parametrize("tag", ["section", "div class=section"])
@pytest.mark.parametrize("place", ["{0}><h2>", "{0}><a id=top></a><h2>", "'{0}(int)'><h2>"])
def test_sections_that_are_named_as_their_titles_are_text(tag: str, place: str) -> None:
    def manual(*names: str) -> str:
        parts = zip(names, SENTENCES, strict=False)
        return text_of(f"<main><h1>Boats</h1>{STORY}" + "".join(
            f"<{tag} id={place.format(name)}3.1 All {name}</h2><p>{sentence.swapcase() * 2}</p>"
            f"</{tag.split()[0]}>" for name, sentence in parts
        ))  # fmt: skip

    assert SENTENCES[1].swapcase() in manual("sails", "cookies", "modals", "oars")
    assert SENTENCES[2].swapcase() in manual("sails", "cookies", "modals", "oars")
    # Other parts follow no section, or are below the last one.
    assert SENTENCES[1].swapcase() not in manual("sails", "comments", "related")


def test_titles_are_text_whatever_they_are_about() -> None:
    def manual(*titles: str) -> str:
        parts = (f"<h2 id='{'-'.join(title.lower().split())}'>{title}</h2>" for title in titles)
        page = "".join(map("{}<p>{}</p>".format, parts, SENTENCES))
        return text_of(f"<main><h1>Boats</h1>{STORY.swapcase()}{page}</main>")

    assert "Related Work" in manual("Related Work", "Cookies", "Sails")
    assert "Cookies" in manual("Related Work", "Cookies", "Sails")
    assert "Comments" in manual("Sails", "Oars", "Comments")
    # That of the comments has no others beside it.
    assert "Comments" not in manual("Comments")


def test_terms_are_text_whatever_they_are_named() -> None:
    terms = f"<dl><dt id=jar.cookies>jar.cookies(name)<dd>{SENTENCES[5]}</dl>"
    assert "jar.cookies(name)" in text_of(f"<main>{STORY}{terms}</main>")


@pytest.mark.parametrize("title", [
    "<button aria-expanded=false aria-controls={0}>{0}</button>", "<a href=#>{0}</a>",
    "<p><a href=\"javascript:show('{0}')\">{0}</a></p><p>Below.</p>", "<a onclick='show()'>{0}</a>",
    "<div>{0}: <input type=button value=Show></div>",
    "<div role=button tabindex=0><i></i><a>{0}</a></div>",
])  # fmt: skip
def test_short_titles_of_what_they_open_are_text(title: str) -> None:
    names = ("Harbours", "Ferries", "Goats")
    parts = [f"{title.format(name)}<div id={name} hidden>{STORY}</div>" for name in names]
    found = text_of(f"{NAV}<main><h1>Help</h1>{''.join(parts)}</main>").split()
    assert found.count("ferryman,") == 3
    # "Read more" is no title.
    if "input" not in title and "Below" not in title:
        assert [name for name in found if name in names] == [*names]
        more = "".join(
            part.replace(">" + name, ">More") for part, name in zip(parts, names, strict=True)
        )
        assert "More" not in text_of(f"{NAV}<main><h1>Help</h1>{more}</main>")


@pytest.mark.parametrize("title", [
    "<h3 class=toggle>{}</h3>", "<div class=q><span>{}</span><i></i></div>", "<b>{}</b>",
    "<div role=button tabindex=0><i></i><a>{}</a></div>", "<button type=button>{}</button>",
    "<p class=t><strong>{}</strong></p>",
])  # fmt: skip
def test_titles_that_look_alike_open_what_is_below(title: str) -> None:
    def text(*titles: str) -> str:
        below = (f"<p class=a hidden>{SENTENCES[n]}</p>" for n in (5, 6, 7))
        parts = map("<div>{}{}</div>".format, map(title.format, titles), below)
        return text_of(f"<main>{STORY}{''.join(parts)}</main>")

    found = text("Of his motor", "Of the dead", "Of his end")
    for shown in ("Of his motor", "Of his end", *SENTENCES[5:]):
        assert shown in found
    assert SENTENCES[6] not in text(*["Add to the cart"] * 3)
    title = "<label>{}</label>"
    assert SENTENCES[6] not in text("Of his motor", "Of the dead", "Of his end")


@pytest.mark.parametrize("title", [
    "<button aria-expanded=false><span>{}</span></button>", "<a class=title href='#'>{}</a>",
    "<h3 class='title title-{n}'>{}</h3>",
])  # fmt: skip
def test_titles_may_differ_in_their_words_and_numbers(title: str) -> None:
    parts = (
        f"<li>{title.format(name, n=n)}<div hidden><p>{SENTENCES[n]}</p></div></li>"
        for n, name in ((5, "Of the old motor"), (6, "Dogs"), (7, "Knees"))
    )
    found = text_of(f"<main>{STORY}<ul>{''.join(parts)}</ul></main>")
    assert [
        text for text in ("Of the old motor", "Dogs", *SENTENCES[5:]) if text not in found
    ] == []


@pytest.mark.parametrize("title", [
    "<button class='faq__toggle'>{}</button>", "<button class=accordion>{}</button>",
    "<button type=button class='collapsible active'><span>{}</span></button>",
    "<button class=btn aria-expanded=false>{}</button>",
])  # fmt: skip
def test_titles_of_accordions_may_be_one_word(title: str) -> None:
    fold = f"{title.format('Fees')}<div class=panel><p>{SENTENCES[6]}</p></div>"
    assert "Fees" in text_of(f"<main>{STORY}{fold}</main>").split("\n")
    assert "Fees" not in text_of(f"<nav>{fold}</nav><main>{STORY}</main>")
    copy = f"<li><button aria-expanded=false>Fees</button> <code>{SENTENCES[6]}</code>"
    assert "Fees" not in text_of(f"<main>{STORY}<ul>{copy}</ul></main>")


def test_pages_of_an_article_that_numbers_open_are_text() -> None:
    pages = "".join(
        f"<div class=page id=page{n}{' hidden' * (n > 1)}><p>{SENTENCES[n]} {SENTENCES[n + 4]}</p>"
        "</div>" for n in (1, 2, 3)
    )  # fmt: skip
    for links in (2, 3):
        numbers = "".join(f"<a href='#page{n}'>{n}</a> " for n in range(2, links + 1))
        found = text_of(f"<main>{pages}{numbers}</main>")
        assert [n for n in (1, 2, 3) if SENTENCES[n] in found] == [*range(1, links + 1)]


def test_answers_in_menus_of_webflow_are_text() -> None:
    menu = "<nav class='faq w-dropdown-list'>{}</nav>"
    page = f"<main><h1>Boats</h1>{STORY.swapcase() * 2}{{}}</main>"
    fold = f"<div class=w-dropdown><div>Goats</div>{menu.format(f'<p>{SENTENCES[6]}</p>')}</div>"
    assert SENTENCES[6] in text_of(page.format(fold))
    assert "More about c" not in text_of(page.format(menu.format(f"<ul>{LINKS}</ul>")))


@pytest.mark.parametrize("parts", [
    "<p>Goats. <a href='#' onclick=more()>Read more</a></p>{}",
    "<p>Goats. <span><a href='javascript:more()'>Read more</a></span> …</p>{}",
    "<a role=button>Read more</a>{}", "<p>Goats.</p>{}<button onclick=more()>All</button>",
    "<ul><li>Goats.</li>{}</ul><button aria-expanded=false>Show more</button>",
])  # fmt: skip
def test_several_hidden_parts_are_opened_at_once(parts: str) -> None:
    tag = "li" if "<li>" in parts else "p"
    hidden = "".join(
        f"<{tag} style='display:none'>{SENTENCES[n]} {SENTENCES[n].upper()}</{tag}>"
        for n in (5, 6, 7)
    )
    found = text_of(STORY * 3 + parts.format(hidden))
    assert [text for text in SENTENCES[5:] if text in found] == SENTENCES[5:]
    slides = hidden.replace("style='", "style='position:absolute;")
    assert SENTENCES[6] not in text_of(STORY * 3 + parts.format(slides))


@pytest.mark.parametrize("name", ["tabs-item", "tabbed-block", "tab__box", "tab-section", "tab2"])
def test_panels_of_tabs_are_text(name: str) -> None:
    labels = "<div><span>Care</span><span>Size</span></div>"
    for key in ("class", "id"):
        panels = "".join(
            f"<div {key}='{name}'{' hidden' * n}>{SENTENCES[n]} {SENTENCES[n + 2]}</div>"
            for n in (0, 1)
        )
        assert SENTENCES[1] in text_of(f"<main>{STORY.swapcase()}{labels}{panels}</main>")
    # Less text, if buttons name them.
    panels = "".join(
        f"<div id=p{n} class='{name}' hidden><p>{SENTENCES[n]}</p></div>" for n in (0, 1)
    )
    for names in ("onclick=\"show(event, 'p{}')\"", "data-tab=p{}"):
        buttons = "".join(f"<button {names.format(n)}>Care</button>" for n in (0, 1))
        assert SENTENCES[1] in text_of(f"<main>{STORY.swapcase()}{buttons}{panels}</main>")


@pytest.mark.parametrize("hidden", [
    "<noscript><p>Please enable JavaScript to see the comments of all readers.</p></noscript>",
    "<noscript>이 사이트를 이용하려면 자바스크립트를 켜야 합니다</noscript>",
    "<noscript>この機能を使うにはスクリプトを有効にしてください</noscript>",
    "<noscript>Strona wymaga obsługi skryptów</noscript>",
    "<noscript>กรุณาเปิดใช้งานจาวาสคริปต์ในหน้านี้</noscript>",
    "<noscript>Engedélyezze a szkriptek futtatását</noscript>",
    "<noscript>يرجى تفعيل جافاسكربت لعرض الصفحة</noscript>",
    "<noscript>請啟用瀏覽器的指令碼</noscript>",
    "<noscript>お使いの環境ではJavaScriptが無効か、または対応していません。すべての機能を正しくご利用いただくには、"
    "設定で有効にしてから、もう一度このページを読み込んでください。</noscript>",
    "<noscript>لطفا جاوا اسکریپت را فعال کنید تا ببینید</noscript>",
    "<noscript><img src=/pixel.gif alt=''></noscript>", f"<noscript>{STORY}</noscript>",
    "<noscript/><a href=/map>Show the map of boats</a></noscript>",
    "<button>Add to cart</button>", "<template><p>A row that scripts copy</p></template>",
    "<svg><title>A drawing of a boat</title><path d='M0 0'/></svg>", "<div hidden>No</div>",
    "<button>Forgot your password?</button><div hidden><p>Send it again</p></div>",
    "<button aria-expanded=false>Menu</button><div hidden><p>Nothing here yet.</p></div>",
    "<object data=/a.pdf>No viewer</object>", "<video src=/a>Your browser has no player.</video>",
    "<script/>var secret = 1;</script>", "<script onload='a=>b'/>var secret = 1;</script>",
    f"<noscript>&lt;div&gt;{SENTENCES[7] * 6}</noscript>",
    f"<button data-target='#f'>Film</button><p id=f class=lightbox hidden>{SENTENCES[6] * 2}",
    "<p><![CDATA[ No text of HTML ]]></p>", "<svg/><p><![CDATA[ No text of HTML ]]></p>",
    "<svg><foreignObject><p><![CDATA[No]]></p></foreignObject><text><![CDATA[ ]]></text></svg>",
    "<svg><path><p></p><p><![CDATA[ No text of HTML ]]></p>",
    f"<button>More</button><p id=a hidden>{SENTENCES[7]}</p>",
    "<div style='display:none'><p>It was sent</p></div>",
    "<math><semantics><mi>a</mi><annotation>frac</annotation></semantics></math>",
    # A slash ends no start tag of HTML.
    *(f"<{tag}/><p>A secret of goats</p></{tag.split()[0]}>" for tag in (
        "iframe src='/a' ", "template", "video src=/a ", "canvas", "div hidden", "aside hidden",
        "span style='display: none' ", "section style='display:none' ", "noembed", "noframes",
    )),
    "<svg><mask><text>c</text></mask><clipPath><text>b</text></clipPath></svg>",
    "<svg><switch><path/><a><text>Text is not SVG - cannot display</text></a></switch></svg>",
    "<meter>six</meter><progress>all</progress><math><mphantom>x</mphantom></math>",
    f"<amp-ad>{SENTENCES[7]}</amp-ad>",
    "<noembed>Get a <b>player</b></noembed>", "<noframes>Get a browser</noframes>",
    "<svg><path/>Sorry, <g><path/>your browser <use href='#a'>draws</use> nothing</g></svg>",
    f"<p popover=manual>{SENTENCES[7]}</p>",
    f"<button onclick=\"show('a')\">Size</button><dialog id=a>{SENTENCES[6] * 2}</dialog>",
    "<noscript>Sila aktifkan skrip untuk melihat laman ini</noscript>",
    "<noscript>Votre navigateur ne prend pas en charge cette carte</noscript>",
    "<noscript>Twoja przeglądarka nie obsługuje tej mapy</noscript>",
    "<noscript>您的浏览器不支持此地图</noscript>",
    "<noscript>お使いのブラウザはこの地図に対応していません</noscript>",
    "<noscript>เบราว์เซอร์ของคุณไม่รองรับแผนที่นี้</noscript>",
])  # fmt: skip
def test_what_readers_do_not_see_is_no_text(hidden: str) -> None:
    shown = text_of(f"<main>{STORY}{hidden}</main>").split()
    assert [word for word in shown if word != "a"] == [
        word for word in text_of(f"<main>{STORY}</main>").split() if word != "a"
    ]


@pytest.mark.parametrize("button", ["", "<button onclick=load()>More</button>"])
def test_hidden_data_of_scripts_are_no_text(button: str) -> None:
    data = f'\n [ {{"boats": "{" ".join(SENTENCES * 4)}"}}]'
    page = f"<main><p>{SENTENCES[0]}</p>{button}<div style='display:none'>{{}}</div></main>"
    assert text_of(page.format(data)) == text_of(page.format(""))
    assert SENTENCES[6] in text_of(page.format(f"[The boats] {data}"))


@pytest.mark.parametrize("parts", [
    "<button aria-controls=rest>More</button><div id=rest hidden>{}</div>",
    "<div id=rest style='display:none'>{}</div><button data-target='#rest'>Show more</button>",
    "<a href='#rest'>More</a><br><div id=rest hidden>{}</div>",
    "<ul><li><a href='#rest'>Care</a></ul><p>Boats.</p><div id=rest style='display:none'>{}</div>",
    "<p onclick=\"show('rest')\">On goats</p><p>Boats.</p><div id=rest hidden>{}</div>",
    "<p><a href=javascript:more()>More</a></p><div style='display:none'>{}</div>",
    "<section>On goats.<div hidden>{}</div></section><button onclick=more()>More</button>",
])  # fmt: skip
def test_what_a_button_opens_is_text_if_it_is_prose(parts: str) -> None:
    assert SENTENCES[7] in text_of(STORY * 3 + parts.format(f"<p>{SENTENCES[6]}</p>{SENTENCES[7]}"))
    for other in (
        "It was sent.",
        f"<ul>{LINKS * 4}</ul>",
        f"<div>{STORY}</div>",
        f"{STORY}<input>",
    ):
        is_popup = other.startswith("<div")
        rest = parts.replace("<div ", "<div class=popup ") if is_popup else parts
        assert text_of(STORY * 3 + rest.format(other)) == text_of(STORY * 3 + rest.format(""))


@pytest.mark.parametrize("layer", ["<dialog>{}</dialog>", "<div popover>{}</div>"])
def test_layers_of_a_short_page_stay_hidden(layer: str) -> None:
    layer = layer.format(STORY)
    assert "ferryman" not in text_of(f"{NAV}<h1>Boats</h1><p>{SENTENCES[7]}</p>{layer}")


def test_what_an_index_hides_stays_hidden() -> None:
    index = f"<ul>{LINKS * 4}</ul>"
    for hidden in (f"<div hidden>{STORY}</div>", f"<div id=cookies hidden>{STORY * 3}</div>"):
        assert "ferryman" not in text_of(f"{index}{hidden}")


def test_many_broken_parts_take_linear_time() -> None:
    count = 20_000
    for part in (
        "<script/>",
        "</body",
        "<![CDATA[",
        "<svg><p>",
        "<svg><foreignobject>",
        "<button><p>",
        "<noscript>a ",
        "</body ",
        "<embed>",
        "<nav><div>",
        "<nav><div></nav>",
        "<nav><div></nav><!--",
        "<li><div>",
        "<svg><![CDATA[",
        "<!-- <![CDATA[",
        "<script a='",
        "<td><pre>1</pre><td>",
        "<desc>",
        "<x-a><template shadowrootmode=open><slot></slot></template></x-a>",
        "<template shadowrootmode=open><slot>",
        "<p hidden>a<p>b",
        "<noscript><iframe></noscript>",
        "<noscript><a '",
        "<template><td></template>",
    ):
        parsed(f'<?xml version="1.0"?><p>a</p>{part * count}')
        parsed(f"<p>a</p>{part * count}")
    for part in ("<a ", "<!--", "<a '", "<script>", "<li><div>", "<nav><div></nav>", "</nav>"):
        with_ended_divs(f"<nav>{part * count}".encode())
    copies = "".join(f"<noscript>{STORY}{number}</noscript>" for number in range(count // 10))
    assert "ferryman" in text_of(f"<p>a</p>{copies}")
    button = "<div role=button aria-expanded=false aria-controls=a>"
    opener = "<div onclick='show(\"a\")'><p hidden id=a>a</p>"
    for part in ("<div hidden>", "<object><p>", button, "<div class=note>", opener):
        text_of(part * 1500 + STORY * 100)


def test_of_titles_that_contain_nearly_all_of_a_page_only_the_begin_is_read() -> None:
    word = "x" * 100_000
    title, hidden = "<div onclick=show()>", f"</div><p hidden>{SENTENCES[6]} {SENTENCES[7]}</p>"
    page = parsed(title * 200 + "<b>a</b> " * 40 + word + hidden * 200)
    parts = page.xpath("//p[@hidden]")
    tracemalloc.start()
    try:
        assert open_hidden(page, parts)
        assert tracemalloc.get_traced_memory()[1] < 20 * len(word)
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("page", [
    f"<title>404 | City buses</title><h1>404</h1>{STORY}", f"<h1>410</h1>{STORY}",
    f"<title>Forbidden</title><h1>Forbidden</h1>{STORY}",
    f"<h1>Tram</h1>{STORY}<div id=app></div>",
    f"<h1>Help</h1><p>If JavaScript is disabled in your browser, open the settings.</p>{STORY}",
    f"<h1>Help</h1><p>You need to enable cookies to order tickets.</p>{STORY}",
    f"<title>Access Denied | Cinema</title><h1>Access Denied</h1>{STORY}",
    f"<title>Just a moment | Café</title><h1>Just a moment</h1>{STORY}",
    f"<title>CAPTCHA</title><h1>CAPTCHA</h1>{STORY}",
    f"<title>Bad Gateway | Bay Blog</title><h1>Posts about Bad Gateway</h1>{STORY}",
    f"<title>502: Bad Gateway</title><h1>502: Bad Gateway</h1>{STORY}",
    "<h1>Write to us</h1><p>Mill Street 12</p><div>Please enable JavaScript in your browser to"
    " complete this form.</div><p>First name</p><p>Last name</p><p>Boat</p><p>Message</p>",
    "<h1>Kontakt</h1><p>Am Hafen 12, Tor 4, links</p><p>Telefon</p><p>Vorname</p><p>Nachname</p><p>"
    "Boot</p><p>Nachricht</p><p>Bitte aktivieren Sie JavaScript, um dieses Formular fertigzustellen"
    ".</p>",
    f"<title>Not found</title><h1>Not found</h1><p>A cat has been missing since May.</p>{STORY}",
    f"<title>Tides</title><p>{SENTENCES[4]}</p><p>JavaScript is disabled in your browser.</p>",
    "<h1>Forbidden</h1><p>A detective looking for his brother takes a room above a cinema. The"
    " landlady has seen all, and there is no such cinema in Lisbon now.</p>",
    "<h1>404</h1><p>The bus runs to the lake at a quarter past every hour. Fares are not available"
    " here. Sorry, dogs walk. All bicycles ride for free in the evening, and so do cats.</p>",
    "<h1>Not Found</h1><p>The quartet from Turku plays waltzes on broken toys. Their second record,"
    " by permission of a lighthouse, has an error in the title.</p>",
    "<h1>404</h1><p>この路線は港から病院まで十二分ごとに走り、市場と図書館と新しいプールに停まります。",
    "<h1>404</h1><p>Line 404 leaves the mill at nine. The stop at the church was moved to the quay"
    " while the road is repaired. Please board at the front door.</p>",
    "<title>401 | Roads</title><h1>401</h1><p>Highway 401 crosses the province from west to east."
    " It is temporarily closed near exit nine, where a bridge is repaired.</p>",
    "<title>Captcha</title><h1>Captcha</h1><p>A captcha tells people and robots apart. The word was"
    " coined in 2003 by a group in Pittsburgh, who first drew bent letters.</p>",
    "<title>Security check</title><p>The security check at the quay takes ten minutes on weekdays."
    " Goats go through a gate of their own, and so do their owners since June.</p>",
    "<title>Page not found</title><h1>Page not found</h1><p>Page Not Found is a play about two who"
    " lose a book of the king. They search the cellar, meet a goat and learn to bake.</p>",
    "<title>Service unavailable</title><p>Service unavailable is an exhibition about waiting rooms."
    " Visitors take a number, sit down on old chairs and listen to a voice.</p>",
    "<h1>Are you a robot?</h1><p>Are you a robot is a play for two actors and a toaster. It tours"
    " the schools of the bay in spring with a bus full of cables and a goat.</p>",
    "<div id=app></div><h1>Ida Berg</h1><p>Born in Oslo, 1971</p><p>Whales, seals</p><p>Norwegian, "
    "English, Finnish, German, Sami</p><p>Tuesday, Friday</p><p>Mill Street 12, second floor</p>",
])  # fmt: skip
def test_a_short_page_with_text_of_its_own_is_a_page(page: str) -> None:
    assert fingerprint(page).tokens >= 20


@pytest.mark.parametrize(("reason", "page"), [
    ("needs_script", f"<title>Bay</title><div id=root></div>{NAV}<p>Loading the app, please wait."),
    ("needs_script", f"<title>Bay</title><div id=root></div><p>{'Loading the app, wait. ' * 6}"
        f"<a href=/>\xa9 Bay. {' '.join(SENTENCES[:2])}</a>"),
    ("blocked", "<title>Bay</title><p>Please enable JavaScript and cookies to continue.</p><p>The "
        "security of this site checks each browser before it gives access. Ray ID: 12a.</p>"),
    ("blocked", "<title>Captcha</title><p>Our robots saw that your network sends much traffic."
        " Solve the captcha, so that we know you as a human, and go on to the page.</p>"),
    ("blocked", "<p>We saw unusual traffic from your network.</p><a href='#why'>Why?</a>"
        "<div id=why style='display:none'>The block ends when your requests stop. You may be asked "
        "to verify that you are human if your browser sends requests very quickly. Ask the person "
        "who keeps the network, because another machine in it may be at fault.</div>"),
    ("blocked", "<title>bay.example</title><p>Please enable JS and disable any ad blocker to go"
        " on to bay.example, which is protected from all who read too many pages in a day.</p>"),
    ("error_page", "<title>页面不存在</title><p>抱歉您访问的页面不存在或已被删除请检查您输入的网址"
        "是否正确或返回首页继续浏览其他内容。三秒后自动跳转到首页。</p>"),
    ("error_page", "<h1>404</h1><p>Przepraszamy, strona, której szukasz, nie istnieje. Mogła zostać"
        " usunięta lub przeniesiona pod inny adres. Wróć na stronę główną i szukaj.</p>"),
    ("error_page", "<h1>Sidan hittades inte</h1><p>Vi kan inte hitta det som du letar efter."
        " Kontrollera adressen, eller gå till startsidan och sök det du vill läsa om båtar.</p>"),
    ("error_page", "<title>502: Bad gateway</title><h1>Bad gateway</h1><p>Error code 502</p><p>The"
        " server of this site reported a bad gateway. Please try again in a few minutes.</p>"),
    ("error_page", f"<title>404</title><h1>404</h1><p>Sorry, nothing is here.</p>{STORY[:200]}"),
    ("error_page", "<h1>Page not found</h1><p>Page not found is an error of this server. The"
        " address you asked for does not exist, or somebody has moved it to another place.</p>"),
    ("error_page", "<title>404</title><h1>404</h1><p>This 404 was sent by the ferry of goats. The"
        " page may have been moved. Error 404: check the address, or go on to the pier.</p>"),
])  # fmt: skip
def test_a_page_without_text_of_its_own_is_refused(reason: str, page: str) -> None:
    with pytest.raises(PageError, check=because(reason)):
        fingerprint(page)


@pytest.mark.parametrize(("text", "tokens"), [
    # Marks of Thaana, Tibetan, Meetei Mayek, and Javanese, which has no spaces.
    ("\u078b\u07a8\u0788\u07ac\u0780\u07a8", 1), ("\u0f56\u0f7c\u0f51\u0f0b\u0f61\u0f72\u0f42", 2),
    ("\uabc3\uabe4\uabc7\uabe9", 1), ("\ua9b2\ua9ba\ua9b4", 2),
])  # fmt: skip
def test_marks_belong_to_words(text: str, tokens: int) -> None:
    assert len(tokenize(text)) == tokens


# Stretchers, annotations, and Default_Ignorable_Code_Point of DerivedCoreProperties.txt.
UNSEEN = words(
    "0640 07FA 180A 00AD 034F 061C 115F-1160 17B4-17B5 180B-180F 200B-200F 202A-202E 2060-206F 3164"
    " FE00-FE0F FEFF FFA0 FFF0-FFF8 FFF9-FFFB 13430-1343F 1BCA0-1BCA3 1D173-1D17A E0000-E0FFF"
)


@pytest.mark.parametrize("codes", sorted(UNSEEN))
def test_what_nobody_sees_within_a_word_is_removed(codes: str) -> None:
    first, _, last = codes.partition("-")
    plain = "harbour \u0643\u062a\u0627\u0628 \ud56d\uad6c"
    for unseen in map(chr, {int(first, 16), int(last or first, 16)}):
        text = "".join(f"{letter}{unseen}" for letter in plain)
        assert tokenize(f"{unseen} {text} {unseen}") == tokenize(plain), ascii(unseen)
        pages = [f"<p>{some}</p>{STORY}" for some in (plain, text)]
        assert len({fingerprint(page).simhash for page in pages}) == 1, ascii(unseen)


@pytest.mark.parametrize(("page", "label", "text"), [
    (b"\xad\xa1\xb9\xa9 \xad\xea", "euc-jp", "①工 ㈱"),
    (b"\x1b$B-!9)-j\x1b(B a", "iso-2022-jp", "①工㈱ a"),
    (b"\xa1\xc1 \xa1\xdd", "euc-jp", "\uff5e \uff0d"),
    (b"\x1b$B!A\x1b(B a", "iso-2022-jp", "\uff5e a"),
    (b"\x1b(I1234\x1b(B", "iso-2022-jp", "ｱｲｳｴ"),
    (b"\x1b$B9)~~\x1b(B a", "iso-2022-jp", "工\ufffd a"),
    (b"\x805 \xa3\xa0 \xa8\xbc", "gbk", "€5 \u3000 ḿ"),
    (b"\xfe\x59 \xfe\x90", "gbk", "龴 龺"),
    (b"\xd5\xe2\xc0\xef" * 20 + b"\xff", "gbk", "这里" * 20 + "\ufffd"),
    (b"\xa4\x40\xa1\x45\xa4\x40 \xa3\xe15", "big5", "一\u2027一 €5"),
    (b"\xd3\xce\xa6\xc7 \xae \xbe", "koi8-u", "сніг \u045e \u040e"),
    (b"\x87\x40\x8d\x48", "windows-31j", "①工"), (b"isn\xc2\x92t", None, "isn\u2019t"),
    (b"<meta charset=ANSI_X3.4-1968>\x93far\x94 \x96 na\xefve\x85 \x805 \x99 \x8ei\x9eek", None,
     "<meta charset=ANSI_X3.4-1968>“far” \u2013 naïve… €5 ™ Žižek"),
])  # fmt: skip
def test_characters_are_those_of_browsers(page: bytes, label: str | None, text: str) -> None:
    assert clean_utf8(page, label).decode() == text


DRAWN = "<span aria-hidden=true><span>E</span><span>=</span><span>m</span></span>"
MATH = "<math><mi>E</mi><mo>=</mo><mi>m</mi></math>"


@pytest.mark.parametrize("formula", [
    f"<span class=katex><span class=katex-mathml>{MATH}</span>{DRAWN}</span>",
    f"<span class=MathJax>{DRAWN}<span class=MJX_Assistive_MathML>{MATH}</span></span>",
    f"<mjx-container><mjx-math aria-hidden=true> <mjx-mi> </mjx-mi></mjx-math><b>{MATH}</b>",
    f"<span><svg aria-hidden=true><title>E</title></svg><span>{MATH}</span></span>",
    MATH, f"<math><semantics>{MATH}<annotation-xml><ci>E</ci></annotation-xml></semantics></math>",
])  # fmt: skip
def test_a_formula_is_read_once(formula: str) -> None:
    article = read_article(f"<main>{STORY}<p>So {formula} holds.</p></main>")
    for text in (article.text, article.markdown):
        assert "So E=m holds." in " ".join(text.replace("**", "").split())


CODE = "<pre><code>tide = 12\nboat.row(tide)</code></pre>"


@pytest.mark.parametrize("numbers", [
    "<td><pre><span>1</span><br><span>2</span><br></pre></td>", "<td><pre>1\n2\n</pre></td>",
    "<td><div><pre><a id=l-41></a>41\n<a id=l-42></a>42</pre></div></td>", "<td><pre>1</pre></td>",
    "<td><div><pre><span></span><span> 9</span>\n<span>10</span>\n<span>11</span></pre></div></td>",
])  # fmt: skip
@pytest.mark.parametrize("code", [CODE, f"<div class=highlight><div>{CODE}</div></div>"])
def test_the_numbers_of_lines_of_code_are_no_text(numbers: str, code: str) -> None:
    page = f"{STORY}<table><tr>{{}}<td>{code}</td></tr></table>"
    numbered, plain = (fingerprint(page.format(cell)) for cell in (numbers, "<td></td>"))
    assert numbered.simhash == plain.simhash
    assert numbered.markdown == plain.markdown
    assert "row(tide)" in str(plain.markdown)


def test_what_react_streams_is_read_in_its_place() -> None:
    page = f"<nav>{NAV}</nav><main><h1>Goats</h1>{{}}</main><aside>{SENTENCES[7]}</aside>{{}}"
    place = "<template id='B:0'></template>"
    inner = "<div hidden id='S:0'><template id='P:1a'></template></div>"
    parts = f"{inner}<div hidden id='S:1a'>{STORY}</div><div hidden id='S:2'>{place}</div>"
    streamed = fingerprint(page.format(place, parts))
    plain = fingerprint(page.format(f"<div><div>{STORY}</div></div>", ""))
    assert (streamed.simhash, streamed.markdown) == (plain.simhash, plain.markdown)


def test_the_numbers_of_lines_below_code_are_no_text() -> None:
    numbers = "<div class='line-numbers-wrapper'>{}</div>"  # those of VuePress and VitePress
    counted = numbers.format("<span class=line-number>1</span><br><span>2</span><br>")
    numbered, plain = (fingerprint(f"{STORY}<div>{CODE}{part}</div>") for part in (counted, ""))
    assert (numbered.simhash, numbered.markdown) == (plain.simhash, plain.markdown)
    assert {"2024", "7"} <= {*text_of(f"{STORY}{CODE}{numbers.format('2024 7')}").split()}


@pytest.mark.parametrize("page", [
    f"{STORY}<pre>11\n12</pre>{CODE}", f"{STORY}<table><tr><td><pre>11 12</pre></td></tr></table>",
    f"{STORY}<table><tr><td><pre>11\n12</pre></td><td>Boats a day</td></tr></table>",
    f"{STORY}<table><tr><td><pre>12\n11\n12</pre></td><td>{CODE}</td></tr></table>",
    f"{STORY}<table><tr><td><pre>11 12 tides</pre></td><td>{CODE}</td></tr></table>",
])  # fmt: skip
def test_other_numbers_beside_code_are_text(page: str) -> None:
    assert {"11", "12"} <= {*text_of(page).split()}


@pytest.mark.parametrize(("inline", "markdown"), [
    ("un<x-y>believ</x-y>able", "unbelievable"),
    ("<big>one</big> <acronym>BBC</acronym>", "one BBC"),
    ("the <button class=term>tide</button> table", "the tide table"),
    ("of the <span><button>ebb</button></span> <b><button>tide</button></b> <i>only as</i>",
     "of the ebb **tide** *only as*"),
    ("a <b><button><i>lock</i></button></b>, if shut, as", "a ***lock***, if shut, as"),
    ("it goes.<dl><dd>So a <button>lock</button>, if shut, as", "a lock, if shut, as"),
    ("<svg><tspan x=0>one</tspan><tspan x=0>t<tspan>wo</tspan></tspan></svg>", "one two"),
    ("<ruby>東京<rp>(</rp><rt>Tokyo</rt><rp>)</rp></ruby>", "東京(Tokyo)"),
    ("<fancy-word>a <b>day</b></fancy-word>", "a **day**"), ("Donau<wbr>dampf", "Donaudampf"),
])  # fmt: skip
def test_inline_elements_break_no_paragraph(inline: str, markdown: str) -> None:
    assert f"So {markdown} it is." in read_article(f"{STORY}<p>So {inline} it is.</p>").markdown


def test_unknown_elements_are_inline_in_markdown() -> None:
    page = f"{STORY}<p>To <st1:City>Port</st1:City> in <o:p></o:p>May for <nobr>12 EUR</nobr>.</p>"
    assert "To Port in May for 12 EUR." in read_article(page).markdown
