"""Pages become records: a failing page does not affect the others."""

import math
import os
import random
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from pgsimhash import ArgumentError, Store
from pgsimhash.pages.records import PageFailure, PageRecord
from pgsimhash.reading import processes
from pgsimhash.reading.workers import extract, extract_many
from pgsimhash.sources import SourcePage
from tests.conftest import ROOT
from tests.programs import python, run_program
from tests.reading.hanging import HANGING


def article(seed: int) -> str:
    rng = random.Random(seed)
    words = " ".join("".join(rng.choices("aeioumnrst", k=6)) for _ in range(60))
    return f"<html><title>Number {seed}</title><body><p>{words}</p></body></html>"


class Deadly:
    """HTML that ends the process that receives it, like a crash of a parser."""

    def __reduce__(self) -> tuple[object, tuple[int]]:
        return (os._exit, (1,))


def page(number: int, html: object = None) -> SourcePage:
    content = article(number) if html is None else html
    return SourcePage(f"https://a.example/{number}", content)  # type: ignore[arg-type]


def outcome(item: PageRecord | PageFailure) -> str:
    return item.reason if isinstance(item, PageFailure) else "record"


def failures(pages: Sequence[Any], *jobs: Any, **options: Any) -> dict[int, str]:
    """Read pages, and return the reasons of those without a record, by their place."""
    made = list(extract_many(pages, *jobs, **options))
    assert [item.url for item in made] == [item.url for item in pages]
    return {at: item.reason for at, item in enumerate(made) if isinstance(item, PageFailure)}


@pytest.mark.parametrize("jobs", [1, 2])
def test_records_are_not_read_again_and_a_store_accepts_them(jobs: int, store: Store) -> None:
    said = list(store.decide_many(map(page, range(3))))
    read = [extract(page(number)) for number in range(3)]
    assert {outcome(item) for item in read} == {"record"}
    assert list(extract_many(read, jobs)) == read
    assert list(store.ingest_many(read)) == said


@pytest.mark.parametrize("jobs", [1, 2])
def test_records_come_in_the_order_of_the_pages(jobs: int) -> None:
    pages: list[SourcePage | PageFailure] = [
        page(1), PageFailure("https://a.example/2", "unreadable", "gone"), page(3, b"%PDF-1.4"),
        page(4, "<p>short"), *map(page, range(5, 60)),
    ]  # fmt: skip
    assert failures(pages, jobs) == {1: "unreadable", 2: "not_html", 3: "too_short"}
    # One that cannot be pickled fails.
    pages = [page(number, (lambda: 0) if number == 2 else None) for number in range(6)]
    assert failures(pages, jobs) == {2: "crashed"}


def test_a_page_that_kills_its_process_fails_alone() -> None:
    pages = [page(number, Deadly() if number in (3, 40) else None) for number in range(60)]
    assert failures(pages, 2) == {3: "crashed", 40: "crashed"}


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_page_that_takes_too_long_fails_alone(jobs: int) -> None:
    pages = [page(number, "hang" if number in (3, 20) else None) for number in range(30)]
    slow = {3: "too_slow", 20: "too_slow"}
    assert failures(pages, jobs, HANGING, page_seconds=0.3) == slow
    (alone,) = extract_many(pages[3:4], 1, HANGING, page_seconds=0.3)
    assert isinstance(alone, PageFailure)
    assert alone.detail == "the page takes more than 0.3 s to read (page_seconds)"


@pytest.mark.parametrize(("seconds", "away"), [(60, True), (math.inf, False), (None, False)])
def test_one_job_is_another_process_if_it_has_a_deadline(seconds: float | None, away: bool) -> None:
    made = list(extract_many([page(1), page(2)], 1, HANGING, page_seconds=seconds))
    (process,) = {item.title for item in made if isinstance(item, PageRecord)}
    assert (process != str(os.getpid())) == away


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells what a process holds")
def test_a_page_that_needs_too_much_memory_fails_alone() -> None:
    large = article(7) + "<p class=x>x" * 400_000
    pages = [page(number, large if number == 4 else None) for number in range(12)]
    assert failures(pages, page_memory=200_000_000) == {4: "no_memory"}
    assert failures(pages[4:5]) == {}
    # The same holds for a page alone.
    (alone,) = extract_many(pages[4:5], page_memory=10_000_000)
    assert isinstance(alone, PageFailure)
    assert alone.detail == "reading the page takes too much memory (page_memory)"


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells what a process holds")
def test_a_page_too_large_to_receive_fails_for_memory(capfd: pytest.CaptureFixture[str]) -> None:
    large = article(7) + "<p class=x>x" * 700_000
    pages = [page(number, large if number == 4 else None) for number in range(8)]
    made = failures(pages, 2, page_memory=1_000_000)
    assert made[4] == "no_memory"
    assert {*made.values()} == {"no_memory"}
    assert capfd.readouterr().err == ""


READS = """
from pgsimhash.reading import processes
from pgsimhash.reading.workers import extract_many
from pgsimhash.sources import SourcePage
texts = (" ".join(f"word{n} of{place}" for n in range(40)) for place in range(9))
pages = [SourcePage("https://a.example/", f"<p>{text}") for text in texts]
"""
ASKS = "print([type(item).__name__ for item in extract_many(pages, 2)])"
UNGUARDED = f"{READS}{ASKS}"
GUARDED = f"{READS}if __name__ == '__main__': {ASKS}"
IN_A_DAEMON = (
    f"import multiprocessing{READS}context = multiprocessing.get_context('fork')\n"
    f"child = context.Process(target=lambda: {ASKS}, daemon=True); child.start(); child.join()"
)
LATER = "from pgsimhash.reading import workers; import os, tempfile, resource; "


@pytest.mark.parametrize(("program", "stdin", "cause"), [
    (["-"], GUARDED, "<stdin> is not a file"),
    (["FILE"], UNGUARDED, "needs `if __name__"),
    (["-c", f"import os; os.rmdir(os.getcwd()){READS}{ASKS}"], "", "working folder was deleted"),
    # As in a pool of multiprocessing or Celery.
    (["-c", IN_A_DAEMON], "", "daemonic processes are not allowed to have children"),
    (["-c", f"{LATER} tempfile.tempdir = '/nowhere'{READS}{ASKS}"], "", "/nowhere"),
    # Everything is imported before: another user may not read the modules.
    (["-c", f"{READS}list(extract_many(pages, 1)); {LATER} os.getuid() or os.setuid(54321); "
      f"resource.setrlimit(resource.RLIMIT_NPROC, (1, 1)); {ASKS}"], "", "start new thread"),
])  # fmt: skip
def test_a_process_that_cannot_start_is_one_error(
    tmp_path: Path, program: list[str], stdin: str, cause: str
) -> None:
    (file := tmp_path / "program.py").write_text(UNGUARDED)
    (folder := tmp_path / "folder").mkdir()
    command = [str(file) if part == "FILE" else part for part in program]
    done = run_program(sys.executable, *command, stdin=stdin, folder=folder, PYTHONPATH=str(ROOT))
    assert done.stdout == ""
    *_, last = done.stderr.splitlines()
    assert last.startswith("pgsimhash.errors.ArgumentError: a process that reads pages cannot ")
    assert cause in last
    assert "bootstrapping phase" not in done.stderr  # of the processes that import the program


@pytest.mark.parametrize("program", [["FILE"], ["-c", UNGUARDED]])
def test_programs_that_can_start_processes_read_pages(tmp_path: Path, program: list[str]) -> None:
    (file := tmp_path / "program.py").write_text(GUARDED)
    command = [str(file) if part == "FILE" else part for part in program]
    done = run_program(sys.executable, *command)
    assert done.stdout == f"{['PageRecord'] * 9}\n", done.stderr


FORKED = f"""{READS}
import os
from pgsimhash.reading.workers import PageReader
from pgsimhash.schemes.registry import DEFAULT_SCHEME

def process():
    return reader._all[-1]._running.process.pid

def read():
    return type(reader.extract(pages[0], DEFAULT_SCHEME)).__name__

if __name__ == "__main__":
    reader = PageReader(60)
    print(read(), flush=True)
    before = process()
    if (child := os.fork()) == 0:
        print(read(), process() != before, flush=True)
        reader.close()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    print(read(), process() == before)
"""


def test_a_forked_child_starts_processes_of_its_own() -> None:
    assert python(FORKED) == "PageRecord\nPageRecord True\nPageRecord True\n"


def readers() -> list[psutil.Process]:
    """The processes that read pages: children of the process that they are forked from."""
    below = psutil.Process().children()
    servers = (one for one in below if "forkserver" in " ".join(one.cmdline()))
    return [process for server in servers for process in server.children()]


@pytest.mark.parametrize("harm", [psutil.Process.kill, psutil.Process.suspend])
def test_killed_or_stopped_processes_lose_no_page(harm: Callable[[psutil.Process], None]) -> None:
    pages = [page(number) for number in range(60)]
    made: list[PageRecord | PageFailure] = []
    for item in extract_many(pages, jobs=2, page_seconds=1):
        if len(made) in (5, 25):
            for process in readers():
                # One may have ended: a slow page on a busy machine ends it too.
                with suppress(psutil.NoSuchProcess):
                    harm(process)
        made.append(item)
    assert [item.url for item in made] == [item.url for item in pages]
    # A page is read again once, and the second process may be harmed too.
    assert {outcome(item) for item in made} <= {"record", "too_slow", "crashed"}
    assert sum(outcome(item) == "record" for item in made) >= 56


def stop_at_once() -> Callable[[int], int]:
    os.kill(os.getpid(), signal.SIGSTOP)
    return abs


def test_a_process_that_is_stopped_while_it_starts_is_waited_for_in_vain(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(processes, "START_SECONDS", 1)
    worker = processes.Worker(stop_at_once, ())
    with pytest.raises(ArgumentError, match="did not start within 1 seconds"):
        worker.ask(-5)
    assert readers() == []


def kill_at_once() -> Callable[[int], int]:
    os.kill(os.getpid(), signal.SIGKILL)
    return abs


def test_a_process_that_is_killed_while_it_starts_costs_one_message() -> None:
    worker = processes.Worker(kill_at_once, ())
    with pytest.raises(processes.EndedError, match="crashed"):
        worker.ask(-5)


def test_an_abandoned_iterator_leaves_no_process() -> None:
    before = readers()
    pages = [page(1), *(page(number, "hang") for number in range(2, 40))]
    with closing(extract_many(pages, 2, HANGING)) as made:  # type: ignore[type-var]
        assert outcome(next(made)) == "record"
        assert len(readers()) > len(before)
    assert readers() == before


class Counted:
    """Makes pages, and counts them in ``taken``."""

    taken = 0

    def pages(self, count: int, spaces: int = 0, pause: float = 0) -> Iterator[SourcePage]:
        for self.taken in range(1, count + 1):
            yield page(self.taken, article(self.taken) + spaces * " ")
            time.sleep(pause)


@pytest.mark.parametrize(("count", "size", "held"), [
    (300, 0, 2 * 64 + 16), (30, 1_000_000, 2 * 4 + 2),
])  # fmt: skip
def test_few_pages_are_held_at_a_time(count: int, size: int, held: int) -> None:
    source, most = Counted(), 0
    for given, _ in enumerate(extract_many(source.pages(count, size), jobs=2)):
        most = max(most, source.taken - given)
    assert given == count - 1
    assert 2 < most <= held


def test_a_page_that_is_done_does_not_wait_for_many_others() -> None:
    source = Counted()
    next(extract_many(source.pages(120, pause=0.1), jobs=2))
    assert source.taken < 120


@pytest.mark.parametrize("jobs", [2, pytest.param(3, marks=pytest.mark.long)])
def test_pending_pages_are_yielded_when_the_pages_end(jobs: int) -> None:
    for count in (0, 1, 15, 16, 17, 33):
        assert failures([*map(page, range(count))], jobs) == {}


def test_an_unexpected_error_fails_the_page_and_its_metadata_is_bounded() -> None:
    made = extract(page(1, html=7))
    assert isinstance(made, PageFailure)
    assert (made.reason, "ArgumentError: a page is" in made.detail) == ("crashed", True)
    link = f"<link rel=canonical href='https://a.example/{'y' * 5000}'><body>"
    html = article(1).replace("Number 1", "x" * 100_000).replace("<body>", link)
    made = extract(page(1, html))
    assert isinstance(made, PageRecord)
    assert (made.title, made.canonical_url) == ("x" * 1000, None)
