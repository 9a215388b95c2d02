"""Find the pages of labelled pairs in files, archives or CSV tables, and fingerprint them."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit
from urllib.request import url2pathname

from pgsimhash.analysis.measures import Unseen
from pgsimhash.errors import ArgumentError
from pgsimhash.pages.page_bytes import MAX_BYTES
from pgsimhash.pages.records import PageFailure, PageRecord
from pgsimhash.reading.workers import extract_many
from pgsimhash.schemes import Scheme
from pgsimhash.sources import SourcePage, read_pages
from pgsimhash.sources.folders import HTML_SUFFIXES, read_html

_SUFFIXES: Final = ("", *HTML_SUFFIXES)

Named = tuple[str, SourcePage | PageFailure]


def find_pages(
    names: Iterable[str], places: Sequence[Path], beside: Path | None = None
) -> Iterator[Named]:
    """Yield each page of ``names`` once, with its name, in no particular order.

    A name is a ``file:`` URL, an absolute path, or a name in one of ``places``:

    - in a folder: the file of that name, with or without ``.html``, in it or in its ``pages``;
    - in a CSV file with the columns ``id`` and ``file``: that file, relative to the CSV's folder;
      without the column ``file`` the CSV stands for its folder;
    - in JSON lines or a WARC archive: the first page with that URL.

    A missing page is yielded as a failure.

    Args:
        names: the names of the pages.
        places: the places to search, in order.
        beside: the folder to search without ``places``.

    Raises:
        ArgumentError: a CSV file among ``places`` cannot be read.
    """
    folders: list[Path] = []
    archives: list[Path] = []
    by_id: dict[str, Path] = {}
    for place in places or ([] if beside is None else [beside]):
        if place.suffix.lower() == ".csv":
            folders.append(place.parent)
            for name, file in _mapping(place):
                by_id.setdefault(name, file)
        elif place.is_dir():
            folders.append(place)
        else:
            archives.append(place)
    missing: dict[str, None] = {}
    for name in dict.fromkeys(names):
        path = by_id.get(name) or _file(name, folders)
        if path is None:
            missing[name] = None
        else:
            yield name, read_html(path, MAX_BYTES)
    if missing and archives:
        # One pass through the archives, in any order of pages.
        for page in read_pages(archives):
            if page.url in missing:
                del missing[page.url]
                yield page.url, page
            elif isinstance(page, PageFailure):
                yield page.url, page
    where = ", ".join(map(str, places)) or str(beside)
    for name in missing:
        detail = f"no page with this name in {where}; name its place with --pages"
        yield name, PageFailure(name, "unreadable", detail)


def _file(name: str, folders: Sequence[Path]) -> Path | None:
    if name.lower().startswith("file:"):
        return Path(url2pathname(urlsplit(name).path))
    for folder in folders:
        for parent in (folder, folder / "pages"):
            for suffix in _SUFFIXES:
                path = parent / f"{name}{suffix}"
                try:
                    if path.is_file():
                        return path
                except (OSError, ValueError):  # too long or with NUL: not a path
                    return None
    path = Path(name)
    return path if path.is_absolute() else None


def _mapping(table: Path) -> Iterator[tuple[str, Path]]:
    try:
        with table.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file)
            columns = reader.fieldnames or []
            if "id" not in columns:
                raise ArgumentError(
                    "invalid_labels", f"{table}: line 1: the column id is missing; write id,file"
                )
            if "file" in columns:
                for row in reader:
                    if row["id"] and row["file"]:
                        yield row["id"].strip(), table.parent / row["file"].strip()
    except OSError as error:
        raise ArgumentError(
            "invalid_labels", f"{table} cannot be read: {error.strerror}"
        ) from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise ArgumentError("invalid_labels", f"{table} is not CSV in UTF-8: {error}") from error


@dataclass(frozen=True, slots=True)
class Fingerprints:
    """The simhashes and failures of pages.

    Attributes:
        simhashes: by name; None if the page has no fingerprint, no entry if it is missing or could
            not be read.
        too_short: the names of pages with too little text for a fingerprint.
        failures: all other pages without a fingerprint, by name.
        titles: by name, of pages with a simhash.
        shares: by name, the share of a page's words in low-weight blocks; empty if the scheme does
            not weigh blocks.
    """

    simhashes: dict[str, int | None] = field(default_factory=dict)
    too_short: list[str] = field(default_factory=list)
    failures: list[PageFailure] = field(default_factory=list)
    titles: dict[str, str | None] = field(default_factory=dict)
    shares: dict[str, float] = field(default_factory=dict)

    @property
    def unseen(self) -> Unseen | None:
        """The mean and the largest share, if any."""
        if not self.shares:
            return None
        worst = max(self.shares, key=self.shares.__getitem__)
        mean = sum(self.shares.values()) / len(self.shares)
        return Unseen(mean, self.shares[worst], worst)

    def add_missed(self, other: Fingerprints) -> None:
        """Add the pages without a simhash in ``other``, each once."""
        self.too_short[:] = dict.fromkeys((*self.too_short, *other.too_short))
        self.failures[:] = dict.fromkeys((*self.failures, *other.failures))


def fingerprint_pages(
    pages: Iterable[Named], into: Fingerprints, scheme: Scheme, jobs: int = 1
) -> Iterator[str]:
    """Yield the name of each page after adding its result to ``into``.

    Args:
        pages: pairs of name and page.
        into: the object to add results to.
        scheme: the scheme.
        jobs: the number of processes.
    """
    started: list[tuple[str, bool]] = []

    def starting() -> Iterator[SourcePage | PageFailure]:
        for name, page in pages:
            started.append((name, isinstance(page, PageFailure)))
            yield page

    for number, record in enumerate(extract_many(starting(), jobs, scheme, markdown=False)):
        name, is_unread = started[number]
        if isinstance(record, PageRecord):
            into.simhashes[name] = record.simhash
            into.titles[name] = record.title
            if record.unseen is not None:
                into.shares[name] = record.unseen
        else:
            if not is_unread:
                into.simhashes[name] = None
            if record.reason == "too_short":
                into.too_short.append(name)
            else:
                into.failures.append(PageFailure(name, record.reason, record.detail))
        yield name
