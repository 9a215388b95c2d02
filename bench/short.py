"""Measure how well short texts are separated, on the titles and headings of labelled pages.

    python bench/short.py FOLDER ... [--per-site N] [--distance N] [--peers]

The texts have 3 to 40 words, at most N per site. Near pairs are a text and a realistic edit of it.
Different pairs are a text and its nearest neighbour on the site, or a text in which one number, or
one significant word of a few, is replaced. "Matched" means: within the scheme's distance (or the
given one), and verified. The peers, from PyPI, use their own thresholds; text-1 gets texts of any
length.
"""

from __future__ import annotations

import argparse
import dataclasses
import difflib
import random
import re
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from functools import cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from pgsimhash.errors import PageError
from pgsimhash.hashing.signature import verified
from pgsimhash.html import Article
from pgsimhash.html.charset import decode
from pgsimhash.html.parse import parse
from pgsimhash.schemes import SHORT_SCHEME, TEXT_SCHEME, Scheme

if TYPE_CHECKING:
    from bench.installed import install_peers, make_importable
    from bench.labelled import LabelledSet, corpora
else:  # A script finds its neighbours under their own names.
    from installed import install_peers, make_importable
    from labelled import corpora

TextPair = tuple[str, str]
Pairs = dict[str, list[TextPair]]
Matches = Callable[[str, str], bool]

PEERS = ("rapidfuzz", "datasketch")
TOKEN_RATIO = 90
JACCARD = 0.8

_WORD = re.compile(r"[^\W_]+")
_NUMBER = re.compile(r"\d+")
_SEPARATOR = re.compile(r"\s+[|\-\u2013\u2014·•:»/]\s")
_FUNCTION_WORDS = "the a of in and for to on at with by from is your our new all".split()  # noqa: SIM905


def words_of(text: str) -> list[str]:
    """Return the words and numbers of a text in lower case."""
    return _WORD.findall(text.lower())


def page_texts(html: bytes) -> list[tuple[str, str]]:
    """Return the tag and text of each title and heading of a page."""
    try:
        root = parse(decode(html, None))
    except PageError:
        return []
    elements = [] if root is None else root.iter("title", "h1", "h2", "h3", "h4")
    texts = [(str(one.tag), " ".join("".join(one.itertext()).split())) for one in elements]
    return [(tag, text) for tag, text in texts if 3 <= len(words_of(text)) <= 40]


@dataclasses.dataclass
class Site:
    """The texts of a site, in random order.

    Attributes:
        texts: titles and headings.
        suffixed: headings, and titles that consist of the heading and the name of the site.
        suffixes: the names of the site as they follow headings.
    """

    texts: list[str]
    suffixed: list[TextPair]
    suffixes: Counter[str]


def read_sites(sets: list[LabelledSet], chance: random.Random) -> list[Site]:
    """Return the texts of each site, by the sites' names."""
    found: defaultdict[str, Site] = defaultdict(lambda: Site([], [], Counter()))
    for labelled in sets:
        for page, row in labelled.rows.items():
            site = found[row.get("site") or row["repo"]]
            texts = page_texts(labelled.html(page))
            site.texts += [text for _, text in texts]
            for title in islice((text for tag, text in texts if tag == "title"), 1):
                for tag, text in texts:
                    rest = title[len(text) :]
                    named = 1 <= len(words_of(rest)) <= 5 and not _NUMBER.search(rest)
                    if tag in ("h1", "h2") and title.startswith(text) and named:
                        if _SEPARATOR.match(rest):
                            site.suffixed.append((text, title))
                            site.suffixes[rest] += 1
                        break
    for site in found.values():
        site.texts = sorted(set(site.texts))
        chance.shuffle(site.texts)
        site.suffixed = sorted(set(site.suffixed))
        chance.shuffle(site.suffixed)
    return [found[name] for name in sorted(found)]


def near_pairs(
    site: Site, texts: list[str], chance: random.Random
) -> Iterator[tuple[str, str, str]]:
    """Yield kinds, texts and their edited forms."""
    long = sorted({word for text in texts for word in text.split() if _is_long(word)})
    for heading, title in site.suffixed[:8]:
        yield "site name, of the page", heading, title
    for text in texts:
        if site.suffixes and chance.random() < 0.3:
            yield "site name, added", text, text + site.suffixes.most_common(1)[0][0]
        yield "case", text, chance.choice([text.upper(), text.lower(), text.title()])
        if not re.search(r"\d[.,:'\u2019]\d", text):
            quoted = chance.choice(["“%s”", "%s!", "%s …", "» %s"]) % text.replace(
                " - ", " \u2013 "
            )
            plain = re.sub(r"[^\w\s]", " ", text)
            yield "punctuation", text, chance.choice([quoted, plain])
        spaced = re.sub(r"(?<=[^\W\d])-(?=[^\W\d])", chance.choice(["", " "]), text)
        yield "hyphens", text, spaced
        unit = r"(?<=\d) (?=[^\W\d])|(?<=[^\W\d]) (?=\d)"
        yield "number and unit", text, re.sub(unit, "", text, count=1)
        yield from _word_edits(text, long, chance)
        if typo := _mistyped(text, chance):
            size = len(words_of(text))
            group = "3 to 5" if size < 6 else "6 to 9" if size < 10 else "10 to 40"
            yield f"typo in {group} words", text, typo
        if parts := re.match(r"(.+?)(\s[\u2013|-]|,|:)\s+(.+)$", text):
            yield "parts swapped", text, f"{parts[3]}, {parts[1]}"
        elif len(words := text.split()) > 3:
            at = chance.randrange(len(words) - 1)
            words[at : at + 2] = words[at + 1], words[at]
            yield "neighbours swapped", text, " ".join(words)


def _word_edits(
    text: str, long: list[str], chance: random.Random
) -> Iterator[tuple[str, str, str]]:
    words, size = text.split(), len(words_of(text))
    if size >= 10:
        more, less = words.copy(), words.copy()
        for _ in range(size // 10):
            more.insert(chance.randrange(len(more) + 1), chance.choice(long + _FUNCTION_WORDS))
        yield "a word more in ten", text, " ".join(more)
        if not _NUMBER.search(less.pop(chance.randrange(len(words)))):
            yield "a word less in ten", text, " ".join(less)
    elif size >= 5:
        brief = [at for at, word in enumerate(words) if word.isalpha() and len(word) <= 3]
        if brief and chance.random() < 0.5:
            words.pop(chance.choice(brief))
        else:
            words.insert(chance.randrange(len(words) + 1), chance.choice(_FUNCTION_WORDS))
        yield "function word in 5 to 9", text, " ".join(words)


def _mistyped(text: str, chance: random.Random) -> str | None:
    words = text.split()
    places = [at for at, word in enumerate(words) if word.isalpha() and len(word) >= 5]
    if not places:
        return None
    at = chance.choice(places)
    word = words[at]
    letter = chance.randrange(1, len(word) - 1)
    before, here, after = word[:letter], word[letter], word[letter + 1 :]
    other = chance.choice("aeiorstn")
    words[at] = before + chance.choice(
        [after[0] + here + after[1:], after, here + here + after, other + after]
    )
    return " ".join(words)


def different_pairs(texts: list[str], chance: random.Random) -> Iterator[tuple[str, str, str]]:
    """Yield kinds and pairs of texts with different meanings."""
    long = sorted({word for text in texts for word in text.split() if _is_long(word)})
    sets = {text: frozenset(words_of(text)) for text in texts}
    for text in texts:
        if numbers := list(_NUMBER.finditer(text)):
            found = chance.choice(numbers)
            value = int(found[0]) + chance.choice([1, 2, 3, 10, 100, chance.randrange(1, 1000)])
            yield (
                "one number replaced",
                text,
                f"{text[: found.start()]}{value}{text[found.end() :]}",
            )
        words, size = text.split(), len(words_of(text))
        places = [at for at, word in enumerate(words) if _is_long(word)]
        others = [word for word in long if word.lower() not in sets[text]]
        if size <= 7 and places and others:
            at, other = chance.choice(places), chance.choice(others)
            if _says_more(other, words[at]):
                words[at] = other
                group = "3 to 4" if size < 5 else "5 to 7"
                yield f"one word of {group} replaced", text, " ".join(words)
        near = [
            (len(own & sets[text]) / len(own | sets[text]), other)
            for other, own in sets.items()
            if own & sets[text] and _says_more(text, other) and _says_more(other, text)
        ]
        if near:
            yield "the nearest of the site", text, max(near)[1]


def _is_long(word: str) -> bool:
    return len(word) >= 4 and word.isalpha()


def _says_more(text: str, than: str) -> bool:
    """Return whether a text has a number or a long word, typos aside, that another lacks."""
    known = words_of(than)
    return any(
        word.isdigit()
        or (
            len(word) >= 4
            and not difflib.get_close_matches(word, known, 1, 0.75)
            and not any(word in other or other in word for other in known if len(other) > 3)
        )
        for word in set(words_of(text)) - set(known)
    )


def make_pairs(sites: list[Site], per_site: int, chance: random.Random) -> tuple[Pairs, Pairs]:
    """Return near and different pairs by kind."""
    near: defaultdict[str, list[TextPair]] = defaultdict(list)
    different: defaultdict[str, list[TextPair]] = defaultdict(list)
    for site in sites:
        texts = site.texts[:per_site]
        for kind, text, edited in near_pairs(site, texts, chance):
            if edited != text and len(words_of(edited)) > 1:
                near[kind].append((text, edited))
        for kind, text, other in different_pairs(texts, chance):
            different[kind].append((text, other))
    return dict(sorted(near.items())), dict(sorted(different.items()))


def by_scheme(scheme: Scheme, distance: int) -> Matches:
    """Return a function that decides whether two texts match by a scheme."""

    @cache
    def read(text: str) -> tuple[int, int] | None:
        try:
            voted = scheme.vote(Article(text, text))
        except PageError:
            return None
        return voted.simhash, voted.signature

    def matches(one: str, other: str) -> bool:
        a, b = read(one), read(other)
        if a is None or b is None:
            return False
        bits = (a[0] ^ b[0]).bit_count()
        return bits <= distance and verified(bits, a[1], b[1])

    return matches


def contestants(distances: list[int], peers: list[str]) -> dict[str, Matches]:
    """Return a function that decides whether two texts match, by its name."""
    words = dataclasses.replace(TEXT_SCHEME, min_tokens=1)
    found = {f"short-1, {bits} bits": by_scheme(SHORT_SCHEME, bits) for bits in distances}
    found["text-1, 8 bits"] = by_scheme(words, words.distance)
    if "rapidfuzz" in peers:
        from rapidfuzz import fuzz, utils

        found[f"rapidfuzz token_ratio {TOKEN_RATIO}"] = lambda one, other: (
            fuzz.token_ratio(one, other, processor=utils.default_process) >= TOKEN_RATIO
        )
    if "datasketch" in peers:
        from datasketch import MinHash

        @cache
        def minhash(text: str) -> MinHash:
            joined = " ".join(words_of(text))
            signature = MinHash(num_perm=128)
            signature.update_batch([joined[at : at + 3].encode() for at in range(len(joined) - 2)])
            return signature

        found[f"MinHash 128, 3-grams, {JACCARD}"] = lambda one, other: (
            minhash(one).jaccard(minhash(other)) >= JACCARD
        )
    return found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", type=Path, nargs="+", metavar="FOLDER")
    parser.add_argument("--per-site", type=int, default=60, help="texts of a site at most")
    parser.add_argument("--distance", type=int, nargs="+", default=[SHORT_SCHEME.distance])
    parser.add_argument("--peers", action="store_true", help="other packages too, from PyPI")
    options = parser.parse_args()
    chance = random.Random(1)
    with corpora(options.folders) as sets:
        sites = read_sites(sets, chance)
    near, different = make_pairs(sites, options.per_site, chance)
    with tempfile.TemporaryDirectory() as folder:
        installed = install_peers(PEERS, Path(folder)) if options.peers else []
        make_importable(Path(folder))
        runs = contestants(options.distance, installed)
        for title, pairs in (("near pairs, found", near), ("different pairs, matched", different)):
            table = Table(title, "pairs", *runs, title_justify="left")
            sums: Counter[str] = Counter()
            for kind, texts in pairs.items():
                shares = {
                    name: sum(matches(*pair) for pair in texts) / len(texts)
                    for name, matches in runs.items()
                }
                sums.update(shares)
                table.add_row(kind, str(len(texts)), *(f"{share:.3f}" for share in shares.values()))
            total = str(sum(map(len, pairs.values())))
            table.add_row("mean", total, *(f"{sums[name] / len(pairs):.3f}" for name in runs))
            Console(width=120).print(table)


if __name__ == "__main__":
    main()
