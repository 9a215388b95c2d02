"""Tables, lists, code and figures of the main text are shown completely."""

import pytest

from pgsimhash.html import read_article

PROSE = (
    "The harbour master keeps a ledger of every boat, its cargo and its temper. On calm days she "
    "reads it aloud to the gulls, who correct her spelling, and nobody dares to ask which boats "
    "are missing, because the ledger answers before she does."
)
NAVIGATION = "".join(f"<li><a href=/{name}>{name}</a>" for name in ("Start", "Boats", "Contact"))


def page(inside: str, behind: str = f"<p>{PROSE.replace('boat', 'ship')}</p>") -> str:
    return (
        f"<title>Ledger</title><nav><ul>{NAVIGATION}</ul></nav><main><h1>The ledger</h1>"
        f"<p>{PROSE}</p>{inside}{behind}</main><footer><ul>{NAVIGATION}</ul></footer>"
    )


@pytest.mark.parametrize(("html", "markdown"), [
    ("<table><tr><th>Boat<th>Crew<th>Is in<tr><td>Ebb<td>12<td>yes</table>",
     "| Boat | Crew | Is in |\n| --- | --- | --- |\n| Ebb | 12 | yes |"),
    ("<table><tr><td>17<td>4<tr><td>18<td>$ 5</table>",
     "|  |  |\n| --- | --- |\n| 17 | 4 |\n| 18 | $ 5 |"),
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
