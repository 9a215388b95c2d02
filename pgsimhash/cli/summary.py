"""Print verdicts: a JSON line each, and closing tables."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable
from typing import get_args
from urllib.parse import unquote

from pgsimhash.cli import INTERRUPTED, drawn
from pgsimhash.cli.printing import print_json, tell
from pgsimhash.cli.work import NO_PAGE
from pgsimhash.pages.records import Verdict, VerdictName
from pgsimhash.sources import FILES_BEFORE, RECORDS_BEFORE

_SHOWN = 20

_DUPLICATES = ("duplicate", "near")
_NOT_ADDED = ("unchanged", "too_short", "failed")


class Summary:
    """Counts the verdicts so far, and collects the first duplicates."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.bytes_saved = 0
        self.seconds = 0.0
        self._duplicates: list[Verdict] = []
        self._failures: list[Verdict] = []

    def add(self, verdict: Verdict) -> None:
        """Count one verdict."""
        self.counts[verdict.verdict] += 1
        if verdict.verdict in _DUPLICATES and len(self._duplicates) < _SHOWN:
            self._duplicates.append(verdict)
        elif verdict.verdict == "failed" and len(self._failures) < _SHOWN:
            self._failures.append(verdict)
        if verdict.verdict in (*_DUPLICATES, "unchanged"):
            self.bytes_saved += verdict.html_bytes or 0

    def print(self, console: drawn.Console, *, skipped: bool = False) -> None:
        """Print the first duplicates and failures, and the counts.

        ``skipped`` says whether pages were skipped because they are stored.
        """
        if self._duplicates:
            self._print_duplicates(console)
        for failure in self._failures:
            console.print(f"failed: {failure.url}: {failure.detail}", soft_wrap=True)
        self._print_figures(console)
        pages = self.counts.total()
        if (pages or skipped) and sum(self.counts[name] for name in _NOT_ADDED) == pages:
            console.print("Nothing was added: every page was already known.")

    def tell_failures(self) -> None:
        """Print how many pages failed, and the first failure, as one line."""
        if self._failures:
            first = self._failures[0]
            tell(f"Failed: {self.counts['failed']:,}. The first: {first.url}: {first.detail}")

    def _print_duplicates(self, console: drawn.Console) -> None:
        duplicates = sum(self.counts[name] for name in _DUPLICATES)
        shown = len(self._duplicates)
        more = "" if duplicates == shown else f" (the first {shown} of {duplicates:,})"
        table = drawn.Table(title=f"Duplicates{more}", title_justify="left")
        table.add_column("page", overflow="fold")
        table.add_column("verdict")
        table.add_column("bits", justify="right")
        table.add_column("duplicates", overflow="fold")
        urls = [url for v in self._duplicates for url in (v.url, v.duplicate_of) if url]
        folder = _common_folder(urls)
        for verdict in self._duplicates:
            original = verdict.duplicate_of or "a simhash without a page"
            table.add_row(
                unquote(verdict.url.removeprefix(folder)),
                verdict.verdict,
                str(verdict.distance),
                unquote(original.removeprefix(folder)),
            )
        console.print(table)

    def _print_figures(self, console: drawn.Console) -> None:
        pages = self.counts.total()
        table = drawn.Table("figure", "value", show_header=False)
        table.columns[1].justify = "right"
        table.add_row("pages", f"{pages:,}")
        for name in get_args(VerdictName):
            table.add_row(name.replace("_", " "), f"{self.counts[name]:,}")
        table.add_row("bytes saved", drawn.decimal(self.bytes_saved))
        table.add_row("pages a second", f"{pages / self.seconds:,.1f}" if self.seconds else "-")
        console.print(table)


def print_verdicts(
    verdicts: Iterable[Verdict],
    console: drawn.Console,
    summary: bool | None,
    skipped: Counter[str] | None = None,
) -> int:
    """Print a JSON line for each verdict, then the closing tables; return the exit code.

    The iteration may end with Ctrl-C. ``summary`` None is for tables if the console is a terminal.
    """
    result = Summary()
    interrupted = False
    started = time.monotonic()
    try:
        for verdict in verdicts:
            result.add(verdict)
            print_json(verdict.as_json())
    except KeyboardInterrupt:
        interrupted = True
    result.seconds = time.monotonic() - started
    known = skipped is not None and skipped[FILES_BEFORE] + skipped[RECORDS_BEFORE] > 0
    if console.is_terminal if summary is None else summary:
        result.print(console, skipped=known)
    else:
        result.tell_failures()
    if interrupted:
        tell("Stopped. All printed pages are stored; run again to continue.")
        return INTERRUPTED
    if not result.counts and not known:
        tell(NO_PAGE)
    return 0 if (result.counts or known) and not result.counts["failed"] else 1


def _common_folder(urls: list[str]) -> str:
    shortest, longest = min(urls), max(urls)
    length = next(
        (at for at, (a, b) in enumerate(zip(shortest, longest, strict=False)) if a != b),
        len(shortest),
    )
    return shortest[: shortest.rfind("/", 0, length) + 1]
