"""Measure how well and how fast pages become simhashes, on labelled pages.

``python bench/quality.py FOLDER ...`` takes sets of pages: folders with ``pages/``, ``gt/`` (the
main texts), ``pages.csv`` (``id`` and, if known, the ``repo`` of a page) and ``pairs.csv``
(``a,b,label,kind``; ``near-dup`` pairs should match, ``distinct`` ones should not). For each set it
prints how many copies are found and how many different pages are matched at 3, 5 and 8 bits, in
total, by kind and by source; how many pages have no fingerprint although their main text has 25
words; and the milliseconds per page. "Verified" is what ``ingest`` decides: the signatures agree
too. The ceiling are the features of the default scheme, unweighted, of the true main text.

``--schemes`` adds the other built-in schemes, ``--peers`` extractors of other packages and MinHash,
if they are installed. All read the same pages, one recipe after the other, so times are comparable.
MinHash has three Jaccard similarities instead of distances: .9, .8 and .7. ``--left-out FILE`` adds
the simhashes that bench/fit.py writes, by coefficients fitted without a page's source: the
expectation for other pages. ``--streams`` counts instead how many pages of made streams a store
keeps: stories with rotating advertisements or comments, data without numbers, short pages; a
story that changes, and stories under URLs whose parameters do not matter, by a real store.
"""

import argparse
import csv
import json
import logging
import statistics
import sys
import tarfile
import tempfile
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cached_property, partial
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter

from pgsimhash import PageError, connect, fingerprint
from pgsimhash.analysis import evaluate, parameters
from pgsimhash.analysis.evaluation import Print
from pgsimhash.analysis.pairs import Label, LabelledPair
from pgsimhash.hashing.tokens import shingles, tokenize
from pgsimhash.html import Article
from pgsimhash.html.parse import clean_utf8, parse
from pgsimhash.schemes.registry import DEFAULT_SCHEME, TEXT_SCHEME, scheme_names

sys.path.append(str(Path(__file__).parents[1]))

from bench.workload import database
from tests.html.made_streams import (
    DATA,
    DAYS,
    ROTATING,
    SIZES,
    Stream,
    fetched,
    kept,
    kept_each_day,
)

DISTANCES = (3, 5, 8)
SYNTHETIC = ("synthetic-light", "synthetic-medium", "synthetic-heavy")
SHORT = 100
"""A page with fewer words of main text is short."""
ENOUGH_WORDS = 25
MINHASH_CUTS = (12, 25, 38)
"""How many of 128 permutations may differ for a Jaccard similarity of .9, .8 and .7."""
OURS = DEFAULT_SCHEME.name
VERIFIED = f"{OURS}, verified"
LEFT_OUT = f"{OURS}, sources left out"
CEILING = "the true main text"

Signature = Print | tuple[int, ...]
"""A fingerprint, which is a tuple too, or the values of a MinHash."""


@dataclass(frozen=True)
class Pair:
    """Two pages, whether they should match, their kind and their source."""

    a: str
    b: str
    near: bool
    kind: str
    source: str = ""
    site: str = ""

    @property
    def family(self) -> str:
        """``organic``, ``different``, or the kind of a synthetic or generated pair."""
        if not self.near:
            return "different"
        return "organic" if self.kind.startswith("organic") else self.kind


@dataclass
class LabelledSet:
    """A set: its folder, its pairs, and the rows of its pages by id."""

    name: str
    folder: Path
    pairs: list[Pair]
    rows: dict[str, dict[str, str]]

    def html(self, page: str) -> bytes:
        return (self.folder / "pages" / f"{page}.html").read_bytes()

    def text(self, page: str) -> str:
        """The main text, empty if it is unknown."""
        truth = self.folder / "gt" / f"{page}.txt"
        return truth.read_text(encoding="utf-8") if truth.is_file() else ""

    @cached_property
    def words(self) -> dict[str, int]:
        """The numbers of words of the main texts."""
        names = {name for pair in self.pairs for name in (pair.a, pair.b)}
        return {name: len(self.text(name).split()) for name in names}

    @cached_property
    def scripts(self) -> dict[str, str]:
        """The writing systems of the pages."""
        return {name: script_of(self.text(name)) for name in self.words}

    def by_kind(self, pair: Pair) -> list[str]:
        """The kinds of a pair: its own, and those that follow from both texts."""
        groups = [pair.kind]
        if min(self.words[pair.a], self.words[pair.b]) < SHORT:
            groups.append(f"short (under {SHORT} words)")
        if self.scripts[pair.a] == self.scripts[pair.b] != "Latin":
            groups.append(f"in {self.scripts[pair.a]} script")
        suffix = "copies" if pair.near else "different"
        if pair.kind in SYNTHETIC:
            suffix = "edited copies"
        return [f"{group}: {suffix}" for group in groups]


def script_of(text: str) -> str:
    """Return the writing system of most letters, by its Unicode name."""
    letters = [letter for letter in text[:2000] if letter.isalpha()]
    names = Counter(unicodedata.name(letter, "LATIN").split()[0] for letter in letters)
    most = names.most_common(1)
    return "Latin" if not most else most[0][0].removesuffix("-").capitalize()


def read_set(folder: Path) -> LabelledSet:
    """Read a set from its folder, without pairs that are neither near nor distinct."""
    with (folder / "pages.csv").open(encoding="utf-8", newline="") as file:
        rows = {row["id"]: row for row in csv.DictReader(file)}
    with (folder / "pairs.csv").open(encoding="utf-8", newline="") as file:
        pairs = [
            Pair(
                row["a"],
                row["b"],
                row["label"] == "near-dup",
                row["kind"],
                rows[row["a"]].get("repo", ""),
                row.get("site", ""),
            )
            for row in csv.DictReader(file)
            if row["label"] in ("near-dup", "distinct")
        ]
    return LabelledSet(folder.name, folder, pairs, rows)


@contextmanager
def sets_in(folders: Sequence[Path]) -> Iterator[list[LabelledSet]]:
    """Yield the sets in folders or archives (``.tar.xz``), which are unpacked temporarily."""
    with ExitStack() as stack:
        sets = []
        for folder in folders:
            place = folder
            if folder.is_file():
                place = Path(stack.enter_context(tempfile.TemporaryDirectory()))
                with tarfile.open(folder) as archive:
                    archive.extractall(place, filter="data")
                place /= folder.name.removesuffix(".tar.xz")
            if not (place / "pairs.csv").is_file():
                sys.exit(f"{folder} has no pairs.csv")
            sets.append(read_set(place))
        yield sets


@dataclass
class Page:
    """A page, read once for all recipes."""

    html: bytes
    truth: str = ""

    @cached_property
    def article(self) -> Article:
        return DEFAULT_SCHEME.extract(self.html, None, None)

    @cached_property
    def shingles(self) -> list[str]:
        tokens = tokenize(self.article.text)
        return tokens + shingles(tokens, 2) if len(tokens) >= DEFAULT_SCHEME.min_tokens else []


def of_text(text: str) -> Signature | None:
    """The default's features of a text, unweighted."""
    try:
        return Print(DEFAULT_SCHEME.simhash(text))
    except PageError:
        return None


def by_scheme(name: str) -> Callable[[Page], Signature | None]:
    """A built-in scheme, from the page's bytes on."""

    def recipe(page: Page) -> Signature | None:
        try:
            made = fingerprint(page.html, scheme=name)
        except PageError:
            return None
        return Print(made.simhash, made.signature)

    return recipe


def trafilatura(page: Page) -> Signature | None:
    from trafilatura import extract

    return of_text(extract(clean_utf8(page.html).decode(), include_comments=False) or "")


def resiliparse(page: Page) -> Signature | None:
    from resiliparse.extract.html2text import extract_plain_text

    return of_text(extract_plain_text(clean_utf8(page.html).decode(), main_content=True))


def readability(page: Page) -> Signature | None:
    from readability import Document
    from readability.readability import Unparseable

    try:
        root = parse(Document(clean_utf8(page.html).decode()).summary())
    except (Unparseable, ValueError):
        return None
    return of_text("\n".join(root.itertext()))


def minhash(page: Page) -> Signature | None:
    from datasketch import MinHash

    signature = MinHash(num_perm=128)
    signature.update_batch([feature.encode() for feature in page.shingles])
    return tuple(signature.hashvalues.tolist()) if page.shingles else None


RECIPES: dict[str, tuple[str, Callable[[Page], Signature | None]]] = {
    OURS: ("always", by_scheme(OURS)),
    CEILING: ("always", lambda page: of_text(page.truth) if page.truth else None),
    "readability-lxml": ("always", readability),
    **{
        name: ("schemes", by_scheme(name))
        for name in scheme_names()
        if name not in (OURS, TEXT_SCHEME.name)
    },
    "trafilatura": ("peers", trafilatura),
    "resiliparse": ("peers", resiliparse),
    "datasketch MinHash": ("peers", minhash),
}
"""The recipes, and the option that adds each."""


def chosen(kinds: Sequence[str]) -> list[str]:
    """Return the names of the recipes of these kinds whose packages are installed."""
    return [
        name
        for name, (kind, _) in RECIPES.items()
        if kind in ("always", *kinds) and (kind != "peers" or find_spec(name.split()[0]))
    ]


@dataclass
class Measured:
    """The results of one page: signatures (None: no fingerprint) and seconds, by recipe."""

    page: str
    signatures: dict[str, Signature | None] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)


def measure(labelled: LabelledSet, recipes: Sequence[str], page: str) -> Measured:
    """Run the recipes on one page."""
    logging.disable(logging.CRITICAL)
    read = Page(labelled.html(page), labelled.text(page))
    measured = Measured(page)
    for name in recipes:
        if "MinHash" in name:
            assert read.shingles is not None  # It hashes our text, so it has it beforehand.
        start = perf_counter()
        measured.signatures[name] = RECIPES[name][1](read)
        measured.seconds[name] = perf_counter() - start
    return measured


def measure_all(labelled: LabelledSet, recipes: Sequence[str], jobs: int) -> list[Measured]:
    """Measure the pages of all pairs."""
    pages = list(dict.fromkeys(name for pair in labelled.pairs for name in (pair.a, pair.b)))
    with ProcessPoolExecutor(jobs) as pool:
        return list(pool.map(partial(measure, labelled, recipes), pages, chunksize=4))


@dataclass
class Tally:
    """Pairs, and the numbers of them within each distance."""

    within: list[int] = field(default_factory=lambda: [0] * len(DISTANCES))
    pairs: int = 0

    def shares(self, places: Iterable[int] = range(len(DISTANCES))) -> str:
        return " ".join(f"{self.within[place] / max(self.pairs, 1):.3f}" for place in places)


Tallies = dict[str, Tally]


def tally(
    signatures: Mapping[str, Signature | None],
    pairs: Iterable[Pair],
    groups: Callable[[Pair], Iterable[str]],
) -> Tallies:
    """Count the pairs of each group; the pairs of one group have the same label."""
    prints: dict[str, Print | None] = {
        page: value
        for page, value in signatures.items()
        if value is None or isinstance(value, Print)
    }
    labelled = []
    for pair in pairs:
        a, b = pair.a, pair.b
        one, other = signatures.get(a), signatures.get(b)
        hashed = [value for value in (one, other) if value and not isinstance(value, Print)]
        if len(hashed) == 2:
            differing = sum(x != y for x, y in zip(*hashed, strict=True))
            cuts = zip(DISTANCES, MINHASH_CUTS, strict=True)
            bits = next((bits for bits, cut in cuts if differing <= cut), 64)
            a, b = "none", f"{bits} bits"
            prints |= {a: Print(0), b: Print((1 << bits) - 1)}
        for name in (a, b):
            prints.setdefault(name, None)
        label: Label = "copy" if pair.near else "distinct"
        labelled += [LabelledPair(a, b, label, group) for group in groups(pair)]
    curve = evaluate(labelled, prints).curve
    return {
        group: Tally(
            [
                curve[bits].kinds[group].found + curve[bits].kinds[group].false_matches
                for bits in DISTANCES
            ],
            counts.copies + counts.distinct,
        )
        for group, counts in curve[0].kinds.items()
    }


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a Markdown table with columns of equal width."""
    texts = [[str(value) for value in row] for row in (head, *rows)]
    widths = [max(len(row[place]) for row in texts) for place in range(len(head))]
    lines = [
        "| " + " | ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)) + " |"
        for row in texts
    ]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(lines)


def cell(found: Tally | None, *, counted: bool) -> str:
    """The cell of a table: shares of copies found, or numbers of different pages matched."""
    if found is None or not found.pairs:
        return "-"
    return " ".join(map(str, found.within)) if counted else found.shares()


def overview(
    families: Mapping[str, Tallies], more: Mapping[str, Sequence[object]], heads: Sequence[str]
) -> str:
    """Return a row for each recipe; ``more`` has the cells for the additional ``heads``."""
    rows = []
    for name, tallies in families.items():
        synthetic = [tallies.get(kind, Tally()) for kind in SYNTHETIC]
        edits = [" ".join(found.shares([place]) for found in synthetic) for place in (2, 0)]
        if not any(found.pairs for found in synthetic):
            edits = ["-", "-"]
        copies = cell(tallies.get("organic"), counted=False)
        matched = cell(tallies.get("different"), counted=True)
        rows.append((name, copies, matched, *edits, *more.get(name, ["-"] * len(heads))))
    columns = ("copies found at 3, 5, 8", "different matched", "light, medium, heavy at 8")
    return table(("text", *columns, "the same at 3", *heads), rows)


def side_by_side(tallies: Mapping[str, Tallies]) -> str:
    """Return a row for each group, with a column for each recipe."""
    pairs = {group: found.pairs for one in tallies.values() for group, found in one.items()}
    return table(
        ("pairs at 3, 5, 8", "number", *tallies),
        (
            (
                group,
                pairs[group],
                *(
                    cell(one.get(group), counted=group.endswith("different"))
                    for one in tallies.values()
                ),
            )
            for group in sorted(pairs)
        ),
    )


@dataclass
class Report:
    """The results of one set, by recipe."""

    name: str
    pages: int
    families: dict[str, Tallies]
    kinds: dict[str, Tallies]
    sources: dict[str, Tallies]
    without: dict[str, int]
    """The number of pages without a fingerprint but with enough main text."""
    milliseconds: dict[str, float]

    def text(self) -> str:
        more = {
            name: (self.without[name], f"{self.milliseconds[name]:.2f}")
            for name in self.milliseconds
        }
        numbers = sorted(self.families[CEILING].items())
        parts = [
            f"# {self.name}: {self.pages} pages, "
            + ", ".join(f"{found.pairs} {family}" for family, found in numbers),
            overview(self.families, more, (f"none, of {ENOUGH_WORDS}+ words", "ms")),
            "Copies: shares found. Different pages: how many matched.",
            side_by_side(self.kinds),
        ]
        if len(self.sources[CEILING]) > 1:
            parts.append(side_by_side(self.sources))
        return "\n\n".join(parts)


def by_family(pair: Pair) -> list[str]:
    return [pair.family]


def by_source(pair: Pair) -> list[str]:
    return [f"{pair.source}: {'copies' if pair.near else 'different'}"]


def report(
    labelled: LabelledSet,
    measured: Sequence[Measured],
    left_out: Mapping[str, int | None] | None,
) -> Report:
    """Evaluate all recipes, the default one and the ceiling by kind and source as well."""
    by_recipe: dict[str, dict[str, Signature | None]] = {}
    if left_out is not None:
        known = {page.page: left_out.get(f"{labelled.name}/{page.page}") for page in measured}
        by_recipe[LEFT_OUT] = {
            page: None if simhash is None else Print(simhash) for page, simhash in known.items()
        }
    for name in measured[0].signatures:
        found = {page.page: page.signatures[name] for page in measured}
        by_recipe[name] = {
            page: Print(value.simhash) if isinstance(value, Print) else value
            for page, value in found.items()
        }
        if name == OURS:
            by_recipe[VERIFIED] = found
    enough = [page.page for page in measured if labelled.words[page.page] >= ENOUGH_WORDS]

    def tallies(
        groups: Callable[[Pair], Iterable[str]], names: Iterable[str]
    ) -> dict[str, Tallies]:
        return {
            name: tally(by_recipe[name], labelled.pairs, groups)
            for name in by_recipe
            if name in names
        }

    beside = (LEFT_OUT, OURS, VERIFIED, CEILING)
    return Report(
        labelled.name,
        len(measured),
        tallies(by_family, by_recipe),
        tallies(labelled.by_kind, beside),
        tallies(by_source, beside),
        {
            name: sum(signatures[page] is None for page in enough)
            for name, signatures in by_recipe.items()
        },
        {
            name: statistics.median(page.seconds[name] for page in measured) * 1e3
            for name in measured[0].seconds
        },
    )


def streams(draws: int = 3) -> Iterator[tuple[str, str]]:
    """Yield how many pages of each made stream a store keeps: a row for each kind."""

    def row(
        name: str, make: Callable[..., Iterable[str]], *values: object, **selectors: str
    ) -> tuple[str, str]:
        name = ", ".join([name, *(f"{key} {value}" for key, value in selectors.items())])
        pages = (make(Stream(seed), *values) for seed in range(draws))
        return name, " ".join(str(kept(each, **selectors)) for each in pages)

    for own, ads, size, titled in ((60, 2, 30, False), (300, 2, 14, True)):
        for mark in ("c7", "advertisement"):
            name = f"{own} words, 127 URLs, {ads} blocks of {size}, class {mark}: 1 is right"
            yield row(name, partial(Stream.story, titled=titled), own, ads, size, mark)
        make = partial(Stream.story, titled=titled)
        yield row(name.replace(mark, "c7"), make, own, ads, size, "c7", ignore=".c7")
    for mark in ROTATING:
        yield row(f"220 words, 127 URLs, class {mark}: 1", Stream.story, 220, 1, 16, mark)
    for shared, own in ((250, 20), (300, 40), (300, 60)):
        name = f"{own} own words in {shared} of divs: 60"
        yield row(name, Stream.template, shared, own)
        yield row(name, Stream.template, shared, own, 60, " id=own", content="#own")
    for kind, count in (("comments", 3), ("comments", 20), ("related-posts", 6)):
        yield row(f"an article, {count} {kind}: 1", Stream.below, kind, count)
    for kind in DATA:
        for prose, size in SIZES:
            yield row(f"{kind}, {size} below {prose}: 40", Stream.data, kind, prose, size)


def days() -> Iterator[tuple[str, str]]:
    """Yield how many pages of one story under 127 URLs a real store keeps on each of three days."""
    with database(None) as dsn:
        for kind in DAYS:
            with connect(dsn, collection=kind, create=True) as store:
                yield kind, " ".join(map(str, kept_each_day(store, Stream(0).days(kind))))
        with connect(dsn, collection="ignored", create=True) as store:
            each_day = kept_each_day(store, Stream(0).days(DAYS[-1]), ignore=".c7")
            yield f"{DAYS[-1]}, ignore .c7", " ".join(map(str, each_day))


def fetches() -> Iterator[tuple[str, str]]:
    """Yield how many of 360 URLs of 60 stories are fetched, without and with a policy."""
    with database(None) as dsn:
        for names in ("", "ref,sid,sort"):
            with connect(dsn, collection=f"without {names}", create=True) as store:
                store.set_policy("n.example", ignore_parameters=names)
                count = fetched(store, Stream(0).urls())
                found = {each.name: each.verdict for each in parameters(store)}
                yield f"ignore_parameters {names!r}", f"{count}; {found}"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", type=Path, nargs="*", metavar="FOLDER")
    parser.add_argument("--jobs", type=int, default=1, help="processes (times are best with 1)")
    parser.add_argument("--schemes", action="store_true", help="the other built-in schemes too")
    parser.add_argument("--peers", action="store_true", help="other packages too")
    parser.add_argument("--left-out", type=Path, help="simhashes written by bench/fit.py")
    parser.add_argument("--streams", action="store_true", help="only made streams; no FOLDER")
    options = parser.parse_args()
    if options.streams:
        print(table(("stream", "kept of each draw"), streams()))
        print(table(("a story at 127 URLs", "kept on each day"), days()))
        print(table(("60 stories at 360 URLs", "fetched; verdicts about parameters"), fetches()))
        return
    left_out = json.loads(options.left_out.read_text()) if options.left_out else None
    recipes = chosen([kind for kind in ("schemes", "peers") if getattr(options, kind)])
    with sets_in(options.folders) as sets:
        for labelled in sets:
            measured = measure_all(labelled, recipes, options.jobs)
            print(report(labelled, measured, left_out).text() + "\n", flush=True)


if __name__ == "__main__":
    main()
