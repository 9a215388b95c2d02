"""Disturbed writers in processes, their acknowledgements, and what must hold afterwards."""

import multiprocessing
import os
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import psycopg

from pgsimhash import PgsimhashError, connect
from pgsimhash.pages.records import PageRecord

PATIENCE = 120.0

# The fork server imports these once for all processes.
_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(["tests.faults.writing", "pytest", "numpy"])

CENTRES = 200


def pages(number: int, count: int) -> Iterator[PageRecord]:
    """The same pages each time: near-duplicates of originals that all writers share."""
    originals = random.Random(0)
    centres = [originals.getrandbits(64) for _ in range(CENTRES)]
    rng = random.Random(number)
    for at in range(count):
        flipped = sum(1 << bit for bit in rng.sample(range(64), rng.randint(0, 3)))
        simhash = rng.choice(centres) ^ flipped if rng.random() < 0.8 else rng.getrandbits(64)
        title = f"Page {at} of {number} " + "x" * 200
        yield PageRecord(f"https://w{number}.example/{at}", simhash, title=title)


def write(
    dsn: str, number: int, count: int, batch: int, file: Path, retry_seconds: float | None
) -> None:
    """Write pages, and record each acknowledged one in a file."""
    opened = connect(dsn, retry_seconds=retry_seconds)
    with opened as store, file.open("ab", buffering=0) as acknowledged:
        for verdict in store.ingest_many(pages(number, count), batch_size=batch):
            assert verdict.kind != "failed", verdict
            acknowledged.write(f"{verdict.url} {verdict.kind}\n".encode())


def rebuild(dsn: str, into_schema: str | None) -> None:
    """Rebuild the collection, or copy it into another schema."""
    with connect(dsn, create=False) as store:
        store.rebuild(into_schema=into_schema, replace=into_schema is None)


def run(work: Callable[..., None], errors: Path, *arguments: object) -> None:
    """Do the work of a process; exit code 3 is an error of the package, which stderr names."""
    os.dup2(os.open(errors, os.O_WRONLY | os.O_CREAT), 2)
    try:
        work(*arguments)
    except PgsimhashError as error:
        os.write(2, f"{error.reason}: {error}\n".encode())
        sys.exit(3)


# With the default settings: each simhash is compared with all earlier ones.
TWO_ORIGINALS = """
SELECT o.url, p.url
FROM (
    SELECT p.collection_id, p.page_id, p.url, m.simhash
    FROM pgsimhash.pages AS p
    JOIN pgsimhash.collections AS c USING (collection_id)
    CROSS JOIN LATERAL pgsimhash.find(p.simhash, NULL, c.name) AS m
    WHERE p.distance IS NULL
    OFFSET 0
) AS p
JOIN pgsimhash.pages AS o
    ON o.collection_id = p.collection_id AND o.simhash = p.simhash AND o.page_id < p.page_id
WHERE o.distance IS NULL
"""


def violations(connection: psycopg.Connection) -> list[str]:
    """Return the violations in all collections, and the invalid indexes."""
    found = """
    SELECT v.*
    FROM pgsimhash.collections AS c, pgsimhash.check_collection(collection => c.name) AS v
    """
    indexes = "pg_index WHERE indrelid = 'pgsimhash.pages'::regclass"
    invalid = f"SELECT indexrelid::regclass FROM {indexes} AND NOT indisvalid".encode()
    rows = [*connection.execute(found), *connection.execute(invalid)]
    return [str(row) for row in rows]


class Outcome(NamedTuple):
    """The stored pages among the acknowledged ones."""

    acknowledged: int
    lost: int
    doubled: int
    wrong: int
    """The pages whose verdict contradicts their row."""
    violations: list[str]


class Work:
    """A process whose work may be disturbed."""

    def __init__(self, folder: Path, work: Callable[..., None], *arguments: object) -> None:
        self._errors = folder / f"errors-{time.monotonic_ns()}"
        self.process = _CONTEXT.Process(target=run, args=(work, self._errors, *arguments))
        self.process.start()

    def wait(self) -> tuple[int | None, str]:
        """Return its exit code and its output, which must not be a traceback."""
        self.process.join(PATIENCE)
        told = self._errors.read_text() if self._errors.exists() else ""
        assert "Traceback" not in told, told
        assert self.process.exitcode is not None, "it hangs"
        return self.process.exitcode, told


class Writers:
    """Processes that write pages, near-duplicates of those of the others.

    ``told`` receives each outcome, with further figures.
    """

    def __init__(
        self, dsn: str, folder: Path, told: Callable[..., None], numbers: Sequence[int] = (1, 2),
        pages: int = 300, batch: int = 10, retry_seconds: float | None = None,
    ) -> None:  # fmt: skip
        self.dsn = dsn
        self._told = told
        self.pages = pages
        self.folder = folder
        folder.mkdir(exist_ok=True)
        self._numbers = numbers
        self._batch = batch
        self._retry_seconds = retry_seconds
        self._running: list[Work] = []
        self.refusals: Counter[str] = Counter()

    def start(self) -> None:
        """Start all of them at the beginning of their pages."""
        for number in self._numbers:
            job = (number, self.pages, self._batch, self._file(number), self._retry_seconds)
            self._running.append(Work(self.folder, write, self.dsn, *job))

    def kill(self) -> None:
        """Kill them with SIGKILL."""
        for work in self._running:
            work.process.kill()

    def wait(self) -> None:
        """Wait until they end without a traceback."""
        for work in self._running:
            code, told = work.wait()
            if code == 3:
                self.refusals[told.partition(":")[0]] += 1
            else:
                assert code in (0, -9), told
        self._running.clear()

    def rerun(self) -> None:
        """Write the same pages again, to the end."""
        self.refusals.clear()
        self.start()
        self.wait()
        assert not self.refusals

    def wait_until(self, acknowledged: int) -> None:
        """Wait until this many pages are acknowledged, or the writers ended."""
        self._poll(lambda: len(self.acknowledged()) >= acknowledged)

    def wait_for_each(self) -> None:
        """Wait until each has written a page, because new connections may be refused later."""

        def hosts() -> set[str]:
            return {url.split("/")[2] for url in self.acknowledged()}

        self._poll(lambda: len(hosts()) == len(self._numbers))
        assert len(hosts()) == len(self._numbers), "a writer writes nothing"

    def _poll(self, happened: Callable[[], bool]) -> None:
        latest = time.monotonic() + PATIENCE
        while not happened() and time.monotonic() < latest:
            if not any(work.process.is_alive() for work in self._running):
                return
            time.sleep(0.005)

    def wait_for_more(self) -> float:
        """Return after how many seconds another page was acknowledged."""
        started, before = time.monotonic(), len(self.acknowledged())
        self.wait_until(before + 1)
        return time.monotonic() - started

    def acknowledged(self) -> set[str]:
        """The URLs with a verdict."""
        return {url for url, _ in self.verdicts()}

    def verdicts(self) -> Iterator[tuple[str, str]]:
        """The URLs and verdicts."""
        for number in self._numbers:
            path = self._file(number)
            text = path.read_text() if path.exists() else ""
            # A killed writer may have left an incomplete line.
            for line in text[: text.rfind("\n") + 1].splitlines():
                url, verdict = line.split()
                yield url, verdict

    def all_urls(self) -> set[str]:
        return {one.url for n in self._numbers for one in pages(n, self.pages)}

    def outcome(self, dsn: str | None = None, *, verdicts: bool = True) -> Outcome:
        """Return the stored pages among the acknowledged ones.

        If pages were deleted, ``verdicts`` cannot be checked.
        """
        with psycopg.connect(dsn or self.dsn, autocommit=True) as connection:
            pages = "pgsimhash.pages JOIN pgsimhash.collections USING (collection_id)"
            stored = f"SELECT url, distance IS NULL FROM {pages} WHERE name = 'default'"
            rows = connection.execute(stored.encode()).fetchall()
            found = violations(connection)
            if verdicts:
                found += [f"two originals: {urls}" for urls in connection.execute(TWO_ORIGINALS)]
        there = Counter(row[0] for row in rows)
        told = self.acknowledged()
        doubled = sum(count > 1 for count in there.values())
        originals: dict[str, bool] = dict(rows)
        decided = (said for said in self.verdicts() if said[1] != "unchanged")
        wrong = sum((verdict == "new") != originals.get(url, True) for url, verdict in decided)
        return Outcome(len(told), len(told - set(there)), doubled, wrong, found)

    def _file(self, number: int) -> Path:
        return self.folder / f"acknowledged-{number}"

    def assert_sound(
        self, dsn: str | None = None, *, complete: bool = False, **figures: float
    ) -> None:
        """Check that nothing was lost or repeated; ``complete`` requires all pages."""
        outcome = self.outcome(dsn)
        assert outcome[1:] == (0, 0, 0, []), outcome
        if complete:
            assert self.acknowledged() == self.all_urls()
        self._told(outcome, **figures)

    def finish(self) -> None:
        """Write all pages again, and check that they are complete."""
        self.rerun()
        self.assert_sound(complete=True)

    def moments(self, chance: random.Random, count: int = 2) -> list[int]:
        """Moments of a run, as ascending numbers of pages."""
        all_pages = len(self._numbers) * self.pages
        return sorted(chance.randrange(1, all_pages) for _ in range(count))

    def survive(self, disturb: Callable[[], object], moments: Sequence[int]) -> None:
        """Disturb them at some moments; at the end they write all pages again."""
        for moment in moments:
            self.start()
            self.wait_until(moment)
            disturb()
            self.wait()
            self.assert_sound()
        self.finish()
