"""The weights of text blocks, which change gradually."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgsimhash import fingerprint
from pgsimhash.errors import PageError
from pgsimhash.html.blocks import block_texts, outline
from pgsimhash.html.page_words import read_words
from pgsimhash.html.parse import parse
from pgsimhash.html.weights import nearby, weigh

SENTENCES = [
    "The ferryman, who learned the currents from his aunt, rows across the bay every morning.",
    "He carries letters, bread and two goats, and in March a piano for the school on the hill.",
    "Visitors ask about the goats first; the answer, he says, is longer than the crossing.",
    "When fog comes in, the baker rings a bell on the pier, three strokes and then a pause.",
    "In his first winter the old boat froze to the slip, and the whole street came with kettles.",
    "The new one has a motor, which he starts for doctors, brides and the man who reads meters.",
    "Nobody has drowned since the war, though the postmistress went in twice and blames the dog.",
    "He will stop when his knees do, and has shown the currents to a niece who is never seasick.",
]
STORY = "<h1>The ferryman</h1>" + "".join(f"<p>{sentence}</p>" for sentence in SENTENCES)
LINKS = "".join(f'<li><a href="/{name}">More about {name}</a></li>' for name in "abcdefgh")
FOOTER = (
    "<p>© 2024 The Bay Society. All rights reserved, use of this site is subject to settings.</p>"
)


def weights_in(body: str) -> dict[str, float]:
    """Return the weight of each text block with words."""
    root = parse(f"<body>{body}")
    assert root is not None
    page = outline(root.find("body"))
    blocks = read_words(page)
    weigh(page, blocks)
    texts = zip(block_texts(page.text), blocks, strict=True)
    return {text: block.weight for text, block in texts if block.words}


@pytest.mark.parametrize("beside", [
    f"<nav><ul>{LINKS}</ul></nav>", f"<div><ul>{LINKS}</ul></div>",
    f'<div class="site-menu">{LINKS}</div>', "<aside><p>Weather: fog, then sun.</p></aside>",
    "<footer><p>Printed on the island, since 1874.</p></footer>",
    f'<div class="footer">{FOOTER}</div>', f"<div>{FOOTER}</div>",
    '<div class="relatedStories"><p>The baker and the bell: a quarrel.</p></div>',
])  # fmt: skip
@pytest.mark.parametrize("order", ["before", "after"])
def test_content_beside_a_story_has_little_weight(beside: str, order: str) -> None:
    story = f"<div>{STORY}</div>"
    found = weights_in(beside + story if order == "before" else story + beside)
    least = np.median([found[sentence] for sentence in SENTENCES])
    beside_it = [weight for text, weight in found.items() if text not in STORY]
    assert beside_it
    assert max(beside_it) < least / 4


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
    frame = f"<nav><ul>{LINKS}</ul></nav><main>{{}}</main><footer>{FOOTER}</footer>"
    edited = STORY.replace(SENTENCES[place], f"{SENTENCES[place]} {words}")
    before = list(weights_in(frame.format(STORY)).values())
    after = list(weights_in(frame.format(edited)).values())
    assert np.abs(np.array(before) - np.array(after)).max() < 0.15


def test_a_page_with_only_boilerplate_is_too_short() -> None:
    frame = f"<nav><ul>{LINKS}</ul></nav>{{}}<footer><p>Bay Society</p>{FOOTER}</footer>"
    with pytest.raises(PageError, match="0 words"):
        fingerprint(frame.format("<main></main>"))
    for own in (STORY, f"<p>{SENTENCES[0]}", f"<ul>{LINKS}</ul>", f"<p>Open:</p><ul>{LINKS}</ul>"):
        assert fingerprint(frame.format(own)).tokens > 0
    # An element with all of a page is its content.
    for tag in ("ul", "nav", "footer", "form", 'div class="menu"'):
        assert fingerprint(f"<{tag}>{LINKS}").tokens == 24, tag


def test_weights_are_between_0_and_1_whatever_the_page() -> None:
    for body in ("x", "<p>" * 3000 + "x", f"{STORY}" * 40, "<a href=/>y</a>" * 500, "© " * 2000):
        found = np.array([*weights_in(body).values()])
        assert np.isfinite(found).all()
        assert ((found >= 0) & (found <= 1)).all()


@given(st.lists(st.integers(1, 4000), min_size=1, max_size=60), st.sampled_from([15.0, 40, 150]))
def test_nearby_amounts_are_summed_over_any_length(counts: list[int], window: float) -> None:
    amounts = np.array(counts, dtype=np.float64)
    middle = np.cumsum(amounts) - amounts / 2
    shares = np.exp(-np.abs(middle - middle[:, np.newaxis]) / window)
    assert np.allclose(nearby(middle.tolist(), counts, window), shares @ amounts)
