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


def print_verdicts(
    verdicts: Iterable[Verdict], console: drawn.Console, summary: bool | None, skipped: Counter[str]
) -> int:
    """Print a JSON line for each verdict, then the closing tables; return the exit code.

    The iteration may end with Ctrl-C. ``summary`` None is for tables if the console is a terminal.
    """
    counts: Counter[str] = Counter()
    bytes_saved = 0
    shown: dict[str, list[Verdict]] = {"duplicates": [], "failures": []}
    interrupted = False
    started = time.monotonic()
    try:
        for verdict in verdicts:
            counts[verdict.verdict] += 1
            kind = "duplicates" if verdict.verdict in _DUPLICATES else "failures"
            if verdict.verdict in (*_DUPLICATES, "failed") and len(shown[kind]) < _SHOWN:
                shown[kind].append(verdict)
            if verdict.verdict in (*_DUPLICATES, "unchanged"):
                bytes_saved += verdict.html_bytes or 0
            print_json(verdict.as_json())
    except KeyboardInterrupt:
        interrupted = True
    seconds = time.monotonic() - started
    known = skipped[FILES_BEFORE] + skipped[RECORDS_BEFORE] > 0
    if console.is_terminal if summary is None else summary:
        if shown["duplicates"]:
            _print_duplicates(console, shown["duplicates"], counts)
        for failure in shown["failures"]:
            console.print(f"failed: {failure.url}: {failure.detail}", soft_wrap=True)
        _print_figures(console, counts, bytes_saved, seconds)
        pages = counts.total()
        if (pages or known) and sum(counts[name] for name in _NOT_ADDED) == pages:
            console.print("Nothing was added: every page was already known.")
    elif shown["failures"]:
        first = shown["failures"][0]
        tell(f"Failed: {counts['failed']:,}. The first: {first.url}: {first.detail}")
    if interrupted:
        tell("Stopped. All printed pages are stored; run again to continue.")
        return INTERRUPTED
    if not counts and not known:
        tell(NO_PAGE)
    return 0 if (counts or known) and not counts["failed"] else 1


def _print_duplicates(
    console: drawn.Console, verdicts: list[Verdict], counts: Counter[str]
) -> None:
    duplicates = sum(counts[name] for name in _DUPLICATES)
    shown = len(verdicts)
    more = "" if duplicates == shown else f" (the first {shown} of {duplicates:,})"
    table = drawn.Table(title=f"Duplicates{more}", title_justify="left")
    table.add_column("page", overflow="fold")
    table.add_column("verdict")
    table.add_column("bits", justify="right")
    table.add_column("duplicates", overflow="fold")
    folder = _common_folder([url for v in verdicts for url in (v.url, v.duplicate_of) if url])
    for verdict in verdicts:
        page, other = (
            unquote((url or "").removeprefix(folder)) for url in (verdict.url, verdict.duplicate_of)
        )
        table.add_row(page, verdict.verdict, str(verdict.distance), other)
    console.print(table)


def _print_figures(
    console: drawn.Console, counts: Counter[str], bytes_saved: int, seconds: float
) -> None:
    table = drawn.Table("figure", "value", show_header=False)
    table.columns[1].justify = "right"
    table.add_row("pages", f"{counts.total():,}")
    for name in get_args(VerdictName):
        table.add_row(name.replace("_", " "), f"{counts[name]:,}")
    table.add_row("bytes saved", drawn.decimal(bytes_saved))
    table.add_row("pages a second", f"{counts.total() / seconds:,.1f}" if seconds else "-")
    console.print(table)


def _common_folder(urls: list[str]) -> str:
    shortest, longest = min(urls), max(urls)
    length = next(
        (at for at, (a, b) in enumerate(zip(shortest, longest, strict=False)) if a != b),
        len(shortest),
    )
    return shortest[: shortest.rfind("/", 0, length) + 1]
