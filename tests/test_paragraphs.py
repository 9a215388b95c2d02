"""Paragraphs are known by their words, over the line breaks of the page they stand on."""

from __future__ import annotations

from pgsimhash.hashes import murmur3_64
from pgsimhash.paragraphs import LINES_MAX, ParagraphCounter, without_paragraphs
from pgsimhash.tokens import tokenize


def known(*paragraphs: str) -> frozenset[int]:
    return frozenset(murmur3_64([" ".join(tokenize(words)) for words in paragraphs]).tolist())


def test_lines_that_hold_a_paragraph_together_go_together() -> None:
    text = "Fog at dawn\nNever miss\n\n  a tide,\nagain!\nBoats"
    assert without_paragraphs(text, known("never miss a tide again")) == "Fog at dawn\n\nBoats"
    assert without_paragraphs(text, known("Boats", "fog at dawn")) == text[12:-6]
    assert without_paragraphs(text, known("never miss a")) == text


def test_the_longest_paragraph_goes_first() -> None:
    text = "Share\nthis page\nTides"
    assert without_paragraphs(text, known("share", "share this page")) == "Tides"
    assert without_paragraphs(text, known("share", "page tides")) == "this page\nTides"


def test_a_paragraph_of_too_many_lines_stays() -> None:
    words = [f"word{n}" for n in range(LINES_MAX + 1)]
    for count, left in ((LINES_MAX, ""), (LINES_MAX + 1, "\n".join(words))):
        text = "\n".join(words[:count])
        assert without_paragraphs(text, known(" ".join(words[:count]))) == left


def test_long_lines_are_not_joined() -> None:
    """So a page of them takes no more memory than others."""
    long = " ".join(f"word{n}" for n in range(2_000))
    assert without_paragraphs(f"{long}\nend", known(f"{long} end")) == f"{long}\nend"
    assert without_paragraphs(f"{long}\nend", known(long)) == "end"


def test_the_counter_counts_pages() -> None:
    counter = ParagraphCounter()
    for number in range(10):
        counter.add(f"Tides!\ntides\n\n...\nstory{number}\n{'even' if number % 2 == 0 else ''}")
    assert counter.pages == 10
    assert counter.above(0.4) == known("tides", "even")
    assert counter.above(0.5) == known("tides")
