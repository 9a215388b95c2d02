"""Pages made of words, for tests of a store."""

import random

FAR = 2**64 - 1
"""A simhash that is far from those of few bits."""


def page(*paragraphs: str) -> str:
    body = "".join(f"<p>{paragraph}</p>" for paragraph in paragraphs)
    return f"<html><head><title>Wells</title></head><body><article>{body}</article></body></html>"


def paragraph(seed: int, words: int = 120) -> str:
    rng = random.Random(seed)
    syllables = ["ba", "ke", "lo", "mi", "nu", "ra", "se", "ti", "vo", "zu"]
    return " ".join(
        "".join(rng.choices(syllables, k=rng.randint(2, 4))) for _ in range(words)
    ).capitalize()


ARTICLE = paragraph(1), paragraph(2)
