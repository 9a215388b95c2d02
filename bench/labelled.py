"""Read labelled sets of pages: folders with ``pages/``, ``gt/``, ``pages.csv`` and ``pairs.csv``.

``pages.csv`` has an ``id`` and, if known, the ``repo`` of a page; ``pairs.csv`` has
``a,b,label,kind``. Pairs labelled ``near-dup`` should match and those labelled ``distinct`` should
not; others are ignored. ``gt/*.txt`` are the main texts.
"""

from __future__ import annotations

import csv
import sys
import tarfile
import tempfile
import unicodedata
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

SYNTHETIC = ("synthetic-light", "synthetic-medium", "synthetic-heavy")
SHORT = 100
"""A page with fewer words of main text is short."""


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
        """The numbers of words of both main texts."""
        names = {name for pair in self.pairs for name in (pair.a, pair.b)}
        return {name: len(self.text(name).split()) for name in names}

    @cached_property
    def scripts(self) -> dict[str, str]:
        """The writing systems of both pages."""
        return {name: script_of(self.text(name)) for name in self.words}

    def groups(self, pair: Pair) -> list[str]:
        """The kinds of a pair: its own, and those that follow from both texts."""
        groups = [pair.kind]
        if min(self.words[pair.a], self.words[pair.b]) < SHORT:
            groups.append(f"short (under {SHORT} words)")
        if self.scripts[pair.a] == self.scripts[pair.b] != "Latin":
            groups.append(f"in {self.scripts[pair.a]} script")
        return groups


def script_of(text: str) -> str:
    """Return the writing system of most letters, by its Unicode name."""
    letters = [letter for letter in text[:2000] if letter.isalpha()]
    names = Counter(unicodedata.name(letter, "LATIN").split()[0] for letter in letters)
    most = names.most_common(1)
    return "Latin" if not most else most[0][0].removesuffix("-").capitalize()


def read_pairs(folder: Path) -> list[Pair]:
    """Read the labelled pairs, without those that are neither near nor distinct."""
    return read_set(folder).pairs


def read_set(folder: Path) -> LabelledSet:
    """Read a set from its folder."""
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
def corpus(folder: Path) -> Iterator[Path]:
    """Yield the folder with the pages, unpacked temporarily if necessary.

    Args:
        folder: the set, a folder with the set in ``dev/`` or packed as ``dev.tar.xz``, or such a
            file.
    """
    for place in (folder, folder / "dev"):
        if (place / "pairs.csv").is_file():
            yield place
            return
    packed = folder if folder.is_file() else folder / "dev.tar.xz"
    if not packed.is_file():
        sys.exit(f"{folder} holds neither pairs.csv nor dev/pairs.csv nor dev.tar.xz")
    with tempfile.TemporaryDirectory() as unpacked, tarfile.open(packed) as archive:
        archive.extractall(unpacked, filter="data")
        yield Path(unpacked) / packed.name.removesuffix(".tar.xz")


@contextmanager
def corpora(folders: list[Path]) -> Iterator[list[LabelledSet]]:
    """Yield the sets in these folders."""
    with ExitStack() as stack:
        yield [read_set(stack.enter_context(corpus(folder))) for folder in folders]
