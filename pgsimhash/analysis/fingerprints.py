"""Fingerprint the pages of labelled pairs: files, archives, texts, or pages of a store."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import urlsplit
from urllib.request import url2pathname

from pgsimhash.analysis.labels import file_rows
from pgsimhash.errors import PageError
from pgsimhash.hashing.bits import from_bigint
from pgsimhash.hashing.signature import from_halves
from pgsimhash.html import Article
from pgsimhash.pages.records import PageFailure, PageRecord
from pgsimhash.pages.values import MAX_BYTES
from pgsimhash.reading.workers import extract_many
from pgsimhash.runtime.progress import no_progress
from pgsimhash.schemes import Scheme
from pgsimhash.search.pairs import Compared
from pgsimhash.sources import SourcePage, read_pages
from pgsimhash.sources.files import HTML_SUFFIXES, read_html
from pgsimhash.store import Store
from pgsimhash.store.lookups import present_pages

_SUFFIXES: Final = ("", *HTML_SUFFIXES)

_URLS: Final = 1_000
"""How many URLs one statement looks up."""

Named = tuple[str, SourcePage | PageFailure]


class Print(NamedTuple):
    """The fingerprint of a page, and its title."""

    simhash: int
    signature: int | None = None
    title: str | None = None


class Unseen(NamedTuple):
    """The share of a page's words in low-weight blocks: the mean, the largest, and its page.

    See :attr:`pgsimhash.html.WeightedWords.unseen`.
    """

    mean: float
    worst: float
    page: str

    @property
    def sentence(self) -> str:
        """Both shares in a sentence."""
        return (
            f"On average, {self.mean:.1%} of a page's words are in low-weight blocks; at worst, "
            f"{self.worst:.1%}: {self.page}"
        )


@dataclass(frozen=True, slots=True)
class Fingerprints:
    """The fingerprints and failures of pages, by name.

    ``prints`` has None for a page without a fingerprint, and no entry for one that is missing or
    could not be read. ``failures`` are those without a fingerprint that are not ``too_short``.
    """

    prints: dict[str, Print | None] = field(default_factory=dict)
    too_short: list[str] = field(default_factory=list)
    failures: list[PageFailure] = field(default_factory=list)
    unseen: Unseen | None = None


def stored_fingerprints(store: Store, urls: Iterable[str]) -> Fingerprints:
    """Return the fingerprints of the current versions of pages in a store."""
    known: dict[str, Print | None] = {}
    with store.session.reading() as (connection, collection):
        # The database rejects NUL, and no page has a URL with NUL.
        names = list(dict.fromkeys(urls))
        pages = [(name, collection.page_url(name)) for name in names if "\0" not in name]
        for start in range(0, len(pages), _URLS):
            batch = pages[start : start + _URLS]
            urls_of_batch = [url for _, url in batch]
            columns = "url", "simhash", "signature_high", "signature_low", "title"
            found = present_pages(connection, collection, urls_of_batch, *columns)
            rows = {url: values for url, *values in found}
            for name, url in batch:
                if url in rows:
                    simhash, high, low, title = rows[url]
                    known[name] = Print(from_bigint(simhash), from_halves(high, low), title)
        detail = f"collection {collection.name!r} has no page with this URL"
    return Fingerprints(
        known,
        failures=[PageFailure(name, "unreadable", detail) for name in names if name not in known],
    )


def fingerprint_texts(texts: Iterable[str], scheme: Scheme) -> Fingerprints:
    """Return the fingerprints of plain texts, by text."""
    done = Fingerprints()
    for text in texts:
        try:
            vote = scheme.vote(Article(text, text, None, None, None))
            done.prints[text] = Print(vote.simhash, vote.signature)
        except PageError:
            done.prints[text] = None
            done.too_short.append(text)
    return done


def fingerprint_pages(
    pages: Iterable[Named],
    scheme: Scheme,
    jobs: int = 1,
    progress: Compared = no_progress,
    total: int = 0,
) -> Fingerprints:
    """Return the fingerprints of named pages; ``progress`` receives their number and ``total``."""
    done = Fingerprints()
    shares: dict[str, float] = {}
    started: list[tuple[str, bool]] = []

    def starting() -> Iterator[SourcePage | PageFailure]:
        for name, page in pages:
            started.append((name, isinstance(page, PageFailure)))
            yield page

    for number, record in enumerate(extract_many(starting(), jobs, scheme, markdown=False)):
        name, is_unread = started[number]
        if isinstance(record, PageRecord):
            done.prints[name] = Print(record.simhash, record.signature, record.title)
            if record.unseen is not None:
                shares[name] = record.unseen
        else:
            if not is_unread:
                done.prints[name] = None
            if record.reason == "too_short":
                done.too_short.append(name)
            else:
                done.failures.append(PageFailure(name, record.reason, record.detail))
        progress(number + 1, total)
    if not shares:
        return done
    worst = max(shares, key=shares.__getitem__)
    return replace(done, unseen=Unseen(sum(shares.values()) / len(shares), shares[worst], worst))


def find_pages(names: Iterable[str], places: Sequence[Path]) -> Iterator[Named]:
    """Yield each page of ``names`` once, with its name, in no particular order.

    A name is a ``file:`` URL, an absolute path, or a name in one of ``places``:

    - in a folder: the file of that name, with or without ``.html``, in it or in its ``pages``;
    - in a CSV file with the columns ``id`` and ``file``: that file, relative to the CSV's folder;
      without the column ``file`` the CSV stands for its folder;
    - in JSON lines or a WARC archive: the first page with that URL.

    A missing page is yielded as a failure.

    Raises:
        ArgumentError: a CSV file among ``places`` cannot be read.
    """
    folders: list[Path] = []
    archives: list[Path] = []
    by_id: dict[str, Path] = {}
    for place in places:
        if place.suffix.lower() == ".csv":
            folders.append(place.parent)
            for _, row in file_rows(place, ("id",)):
                if row["id"] and row.get("file"):
                    by_id.setdefault(row["id"], place.parent / row["file"])
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
    where = ", ".join(map(str, places))
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
