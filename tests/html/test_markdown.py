"""Markdown of the main content."""

import pytest

from pgsimhash.html.markdown import render
from tests.html.texts import parsed

BASE = "https://bay.example/news/"


def rendered(html: str) -> str:
    return render(parsed(f"<body>{html}</body>"), BASE)


@pytest.mark.parametrize(("html", "markdown"), [
    ("<h1>The tide</h1><p>comes in</p>", "# The tide\n\ncomes in"),
    ("<h3>At <b>noon</b></h3>", "### At noon"),
    ("<p>one\n  two</p><p> three </p>", "one two\n\nthree"),
    ("<div>loose<p>tied</p>adrift</div>", "loose\n\ntied\n\nadrift"),
    ("<p>low<br>high</p>", "low  \nhigh"), ("<p>a</p><hr><p>b</p>", "a\n\n---\n\nb"),
    ("<p><em>slack</em> and <strong> spring </strong>tide</p>", "*slack* and **spring** tide"),
    ("<p><b></b>empty <i> </i>marks</p>", "empty marks"),
    ("<p>see <code><a href=/x>mod_<b>x</b></a></code></p>", "see `mod_x`"),
    ("<p>run <code>a`b</code> now</p>", "run ``a`b`` now"),
    ("<p><del>three</del> two</p>", "~~three~~ two"),
    ("<p>2 * 3 [sic] a_b &lt;x&gt;</p>", "2 \\* 3 \\[sic\\] a\\_b \\<x>"),
    ("<p># no heading</p><p>1. no list</p><p>- nor this</p>",
     "\\# no heading\n\n1\\. no list\n\n\\- nor this"),
    ("<ul><li>boats<ol start=3><li>ferry</li><li>dinghy</li></ol></li><li>oars</li></ul>",
     "- boats\n\n  3. ferry\n\n  4. dinghy\n\n- oars"),
    ("<ol><li><p>Moor.</p><p>Wait.</p></li><li><p>Row.</p></li></ol>",
     "1. Moor.\n\n   Wait.\n\n2. Row."),
    ("<blockquote><p>She said:</p><blockquote><p>Row!</p></blockquote></blockquote>",
     "> She said:\n\n> > Row!"),
    *((f"<dl><dt>ebb<dd><p>goes</p><p>out</p>{end}<dd>or slack{end}<dt>flood<dd>comes{end}</dl>",
       "ebb\n\n: goes\n\n  out\n\n: or slack\n\nflood\n\n: comes") for end in ("</dd>", "")),
    ("<pre>a\n```\nb</pre>", "````\na\n```\nb\n````"), ("<p>foo<u>bar</u></p>", "foobar"),
    ("<table><tr><th>Tide<th>Time</tr><tr><td>low | ebb<td>6:40<br>am</tr>"
     "<tr><td colspan=2>none</tr></table>",
     "| Tide | Time |\n| --- | --- |\n| low \\| ebb | 6:40 am |\n| none |  |"),
])  # fmt: skip
def test_blocks_and_marks(html: str, markdown: str) -> None:
    assert rendered(html) == markdown


@pytest.mark.parametrize(("language", "html"), [
    ("python", '<pre><code class="language-python">if low:\n    wait()</code></pre>'),
    ("python", '<pre class="lang-python">if low:\n    wait()</pre>'),
    ("python",
     '<div class="highlight highlight-source-python"><pre>if low:\n    wait()\n</pre></div>'),
    ("python", '<pre><code class="hljs-python">if low:\n    wait()</code></pre>'),
    ("python", '<pre lang="python">if low:\n    wait()</pre>'),
    ("python",
     '<pre class="language-python"><span>if low:<br></span><span>    wait()<br></span></pre>'),
    # Lines that are elements.
    ("", "<pre><div>if low:</div><div>    wait()</div></pre>"),
    ("", "<pre><div>if low:</div>\n<div>    wait()</div>\n</pre>"),
    ("", "<pre><ol><li>if low:<li>    wait()</ol></pre>"),
    ("", "<pre><div>if low:<br></div><span>    wait()</span></pre>"),
])  # fmt: skip
def test_code_keeps_its_lines_and_its_language(language: str, html: str) -> None:
    assert rendered(html) == f"```{language}\nif low:\n    wait()\n```"


@pytest.mark.parametrize(("rows", "header"), [
    ("<tr><td>low<td>6:40<tr><td>high<td>1:05", "|  |  |"),
    ("<tr><th>low<td>6:40<tr><th>high<td>1:05", "|  |  |"),
    ("<thead><tr><td>Tide<td>Time</thead><tr><td>low<td>6:40", "| Tide | Time |"),
    ("<tr><td><th>Time<tr><th>low<td>6:40", "|  | Time |"),
    ("<tr><th><th><tr><th>Tide<th>Time<tr><td>low<td>6:40", "| Tide | Time |"),
])  # fmt: skip
def test_only_header_cells_are_the_header_of_a_table(rows: str, header: str) -> None:
    lines = rendered(f"<table>{rows}</table>").split("\n")
    assert lines[:2] == [header, "| --- | --- |"]
    assert "| low | 6:40 |" in lines[2:]


@pytest.mark.parametrize("html", [
    "<table><tr><td><p>left</p></td><td><p>right</p></td></tr><tr><td>x</td></tr></table>",
    '<table role="presentation"><tr><td>left<td>right<tr><td>x</table>',
    "<table><tr><td>left</td><td><table><tr><td>right<tr><td>x</table></td></tr></table>",
])  # fmt: skip
def test_a_table_for_layout_is_only_its_cells(html: str) -> None:
    assert "|" not in rendered(html.replace("<td>x", "<td><div>x</div>"))


@pytest.mark.parametrize(("html", "markdown"), [
    ('<p>see <a href="tides.html">the tides</a>.</p>',
     "see [the tides](https://bay.example/news/tides.html)."),
    ('<p><a href="/a b(c)">x</a></p>', "[x](https://bay.example/a%20b%28c%29)"),
    ('<p><a href="javascript:void(0)">menu</a></p>', "menu"),
    ('<p><a href="http://[broken">x</a></p>', "x"), ("<p><a>nowhere</a></p>", "nowhere"),
    ('<a href="/x"><h2>The ferry</h2></a>', "## The ferry"),
    ('<p><img src="/f.jpg" alt="The ferry"></p>', "![The ferry](https://bay.example/f.jpg)"),
    ('<p><img src="data:image/gif;base64,R0" data-src="f.jpg"></p>',
     "![](https://bay.example/news/f.jpg)"),
    ('<p>x<img src="data:image/gif;base64,R0"></p>', "x"),
    ('<p><img srcset="s.jpg 1x, l.jpg 2x"></p>', "![](https://bay.example/news/s.jpg)"),
])  # fmt: skip
def test_links_and_images_are_absolute(html: str, markdown: str) -> None:
    assert rendered(html) == markdown


def test_the_first_links_and_images_keep_their_urls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pgsimhash.html.markdown.URLS_MAX", 2)
    made = rendered("<p><a href=a>tide</a> <img src=b> <a href=c>ebb</a> <img src=d alt=flood>")
    assert made == f"[tide]({BASE}a) ![]({BASE}b) ebb"
