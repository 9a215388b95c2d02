"""Print answers for people: how alike pages are, how many are copies, and what changed."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pgsimhash.analysis.wording import byte_size, counted, crawl_in_words, percent, space_before
from pgsimhash.cli import show
from pgsimhash.cli.terminal import (
    ROWS,
    SIGNS,
    View,
    assembled,
    bar,
    hint,
    is_plain,
    line_width,
    print_grid,
    print_values,
    say,
    say_rest,
    short,
)
from pgsimhash.hashing.bits import IDENTICAL_MAX
from pgsimhash.pages.urls import host_of

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from pgsimhash.analysis.changes import Version, WithWords
    from pgsimhash.analysis.comparison import Comparison
    from pgsimhash.analysis.crawls import CrawlComparison, Outcomes
    from pgsimhash.analysis.reports import Report
    from pgsimhash.pages.records import CollectionStatus, Verdict

EXAMPLES: Final = 3
"""How many changes of a kind are shown."""

_WIDTH_MAX: Final = 100
_VERSIONS: Final = 5  # of which the words are shown
_HOSTS: Final = 5


def comparison(found: Comparison, output: Path | None) -> None:
    """Print whether two pages are the same, their skyline, and what differs most."""
    sign, style = ("≈", "magenta") if found.matches else ("≠", "blue")
    say((f"{sign} {found.headline}", f"bold {style}"), f", the limit is {found.max_distance}")
    say(found.summary)
    if found.blocks:
        say()
        _print_skyline(found)
    largest = [pair for pair in found.differing if pair.difference >= 0.001][:EXAMPLES]
    if largest:
        say(("\nwhat differs", "bold"), (", and its share of the vote", "dim"))
        lines = [_styled(pair.runs()) for pair in largest]
        for line in lines:
            line.truncate((1 + (len(lines) == 1)) * (line_width() - 12), overflow="ellipsis")
        shares = (percent(pair.difference) for pair in largest)
        print_grid(zip(shares, lines, strict=True), wrap=True)
    say(found.sentence)
    hint("as a page, block by block: -o why.html · for programs: --json", output)


def report(found: Report, output: Path | None) -> None:
    """Print how much of a collection is copies, where they come from, and the biggest clusters."""
    say((found.headline, "bold"))
    if found.summary:
        say(found.summary)
    if hosts := [host for host in found.hosts[:_HOSTS] if host.copies]:
        say(("\ncopies by host", "bold"), (", and what makes their address another one", "dim"))
        print_grid(
            (
                host.copies,
                host.host or "without a host",
                ", ".join(
                    cause.words for cause in host.causes[:2] if cause.copies > 0.1 * host.copies
                ),
            )
            for host in hosts
        )
    if found.clusters:
        say(("\nbiggest clusters", "bold"), (f", of {found.all_clusters:,}", "dim"))
        print_grid((view.size, view.canonical.url) for view in found.clusters[:_HOSTS])
    hint(f"written to {short(str(output), line_width() - 35)} · for programs: --json")


def _styled(runs: Iterable[tuple[str, str]]) -> Text:
    """Return runs of text as a line; without colours, marked as by ``git diff --word-diff``."""
    line = assembled()
    for text, kind in runs:
        marked = {"gone": f"[-{text}-]", "new": f"{{+{text}+}}"}.get(kind, text)
        style = {"gone": "magenta strike", "new": "bold"}.get(kind, "")
        line.append(space_before(text) if line else "")
        line.append(marked if is_plain() else text, style)
    return line


def _print_words(change: WithWords, limit: int) -> None:
    for runs in (change.words or ())[:limit]:
        line = _styled(runs)
        line.truncate(line_width() - 4, overflow="ellipsis")
        show.console(stdout=True).print("   ", line)


def _print_skyline(found: Comparison) -> None:
    from pgsimhash.analysis.skyline import drawn_in_text

    lines = drawn_in_text(found.blocks, min(line_width() - 4, _WIDTH_MAX))
    for name, cells in zip((" ", "A", "B", " "), lines, strict=True):
        runs = (
            ("".join(text for text, _ in run), "magenta" if is_alone else "blue")
            for is_alone, run in groupby(cells, key=itemgetter(1))
        )
        say((f"{name} ", "dim"), *runs)
    if is_plain():
        marks = zip(lines[1], lines[2], strict=True)
        say("  " + "".join("^" if a[1] or b[1] else " " for a, b in marks).rstrip())
        key: tuple[str | tuple[str, str], ...] = ("  ^: only on one  ",)
    else:
        key = ("  ", ("blue", "blue"), ": on both  ", ("magenta", "magenta"), ": only on one  ")
    say(*key, ("width: words, height: how loud they vote", "dim"))


def _notes(verdict: Verdict) -> Iterator[str]:
    """Yield what is said about pages, with the first of them."""
    if verdict.kind == "failed":
        yield "Failed"
    if verdict.detail is not None and verdict.page_id is not None:
        yield "Older than the version before"
    if verdict.content_missing or verdict.reason == "cut_short":
        yield "Without the content of selectors, or with too few words left"
    if verdict.reason == "address_known":
        yield "New pages whose address was known by ignored parameters"


_SHOWN_AS: Final = {"duplicate": "copies", "near": "copies", "unknown": "gone"}

_REPEATED: Final = 100
"""How many failures of one reason are reported at once: they may have one cause."""


class Ingested:
    """What an ingest has brought so far."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self._kept: Counter[bool] = Counter()
        self._bytes: Counter[bool] = Counter()  # of the pages that are kept or not
        self._hosts: Counter[str] = Counter()
        self._reasons: Counter[str] = Counter()
        self._notes: dict[str, tuple[int, str]] = {}
        self._started = time.monotonic()
        self.bytes_read = 0

    def add_bytes(self, size: int) -> None:
        """Count bytes of archives."""
        self.bytes_read += size

    def add(self, verdict: Verdict) -> None:
        """Count a verdict."""
        self.counts[_SHOWN_AS.get(verdict.kind, verdict.kind)] += 1
        self._kept[verdict.keep] += 1
        self._bytes[verdict.keep] += verdict.html_bytes or 0
        if verdict.kind in ("duplicate", "near") and (host := host_of(verdict.url)):
            self._hosts[host] += 1
        problem = f"{verdict.url}: {verdict.detail}" if verdict.kind == "failed" else verdict.url
        for note in _notes(verdict):
            count, first = self._notes.get(note, (0, problem))
            self._notes[note] = count + 1, first
        if verdict.kind == "failed":
            self._reasons[verdict.reason] += 1
            if self._reasons[verdict.reason] == _REPEATED:
                show.message(f"{_REPEATED} pages failed as {verdict.reason}, such as {problem}")

    def show(self) -> None:
        """Print how many pages had each verdict, on a terminal, and the notes."""
        console = show.console(stdout=show.for_people())
        if console.is_terminal:
            self._show_counts(console)
        for note, (count, first) in self._notes.items():
            show.message(f"{note}: {count:,}. The first: {first}")

    def _show_counts(self, console: Console) -> None:
        shown = {name: count for name in SIGNS if (count := self.counts[name])}
        whole, seconds = self.counts.total(), time.monotonic() - self._started
        speed = f" in {seconds:.1f} s" + (f", {whole / seconds:,.0f} a second" if seconds else "")
        signs = [
            (f"{SIGNS[name][0]} {count:,} {name.replace('_', ' ')}  ", SIGNS[name][1])
            for name, count in shown.items()
        ]
        console.print(assembled((counted(whole, "page"), "bold"), speed))
        console.print(bar(shown, min(console.width - 2, _WIDTH_MAX)))
        console.print(assembled(*signs))
        keep = counted(self._kept[True], "page is", "pages are")
        other = f"; {byte_size(self._bytes[False])} say nothing new" if self._bytes[False] else ""
        console.print(f"{keep} worth keeping ({byte_size(self._bytes[True])}){other}.")
        if self._hosts:
            hosts = (f"{host} ({count:,})" for host, count in self._hosts.most_common(2))
            console.print(f"Copies are on {', '.join(hosts)}.")


def decided(verdict: Verdict) -> None:
    """Print what ingest would decide about a page."""
    sign, style = SIGNS[verdict.kind]
    kind = verdict.kind.replace("_", " ").capitalize()
    keep = "worth keeping" if verdict.keep else "not worth keeping"
    say((f"{sign} {kind}", f"bold {style}"), (f": {keep}\n", "bold"))
    original, bits = verdict.duplicate_of, verdict.distance
    values = {
        "page": short(verdict.url, line_width() - 14),
        "same as": original and short(original, line_width() - 14),
        "bits": None if bits is None else f"{bits} of 64 differ",
        "because": verdict.detail or verdict.reason.replace("_", " "),
    }
    print_values({name: value for name, value in values.items() if value})
    hint("nothing was stored · exit code 1 means: not worth keeping")


def status(collections: Sequence[CollectionStatus]) -> str:
    """Return how many pages there are, in a sentence."""
    if not collections:
        return "No collection yet; the first one: pgsimhash ingest PATH"
    about = "about " if any(row.estimated for row in collections) else ""
    pages = counted(sum(row.urls for row in collections), "page")
    held = counted(len(collections), "collection")
    size = byte_size(collections[0].schema_bytes)
    return f"{about}{pages} in {held}, the schema has {size} on disk"


def near(limit: int, *, any_match: bool) -> View:
    """Return how matches up to ``limit`` bits are shown."""

    def dots(match: dict[str, Any]) -> Text:
        bits = match["distance"]
        style = "blue" if bits <= IDENTICAL_MAX else "magenta"
        return assembled(("·" * bits, "dim"), ("●", style), ("·" * (limit - bits), "dim"))

    why = "why: pgsimhash analyse explain A B"
    columns: Mapping[str, Any] = {"bits": "distance", "": dots, "page": "url"}
    return View("page", columns, why if any_match else "farther ones: --distance 12")


def history(versions: Sequence[Version], output: Path | None) -> None:
    """Print the versions of a page as a line of time."""
    say(
        (counted(len(versions), "version"), "bold"),
        f" of {short(versions[0].url, line_width() - 16)}",
    )
    rows = ROWS if versions[-1].words is None else _VERSIONS
    say_rest(len(versions) - rows, "earlier version")
    for version in versions[-rows:]:
        what, style = CHANGES[version.change]
        bits = "" if version.distance is None else f", {counted(version.distance, 'bit')}"
        until = version.seen_at > version.fetched_at
        seen = f"  seen until {version.seen_at:%Y-%m-%d %H:%M}" if until else ""
        if version.gone_at:
            seen = f"  gone at {version.gone_at:%Y-%m-%d %H:%M}"
        say(
            (f"● {version.fetched_at:%Y-%m-%d %H:%M}", "bold"),
            (f"  {what}", style),
            bits,
            (seen, "dim"),
        )
        _print_words(version, EXAMPLES)
    hint("as a page: -o history.html · two of them: analyse explain URL@DATE URL", output)


CHANGES: Final = {
    None: ("first seen", "green"),
    "same": ("same text", "dim"),
    "edited": ("edited", "magenta"),
    "rewritten": ("rewritten", "magenta"),
    "redesign": ("new template", "blue"),
}
"""The words and the colour of each kind of change."""


def crawls(found: CrawlComparison, outcomes: Outcomes, output: Path | None) -> None:
    """Print what changed between two crawls: the counts, and the first pages of each kind."""
    words = (f"{count:,} {kind.replace('_', ' ')}" for kind, (count, _) in outcomes.items())
    say((", ".join(words), "bold"))
    say((f"{crawl_in_words(found.earlier)} → {crawl_in_words(found.later)}", "dim"))
    shown = {kind: pages for kind, (_, pages) in outcomes.items() if kind in _OUTCOMES}
    for kind, pages in shown.items():
        most = min(EXAMPLES, max(EXAMPLES + 2 - len(shown), 1 + (kind in ("changed", "moved"))))
        sign, style = _OUTCOMES[kind]
        say((f"{sign} {kind}", f"bold {style}"))
        for change in pages[:most]:
            if change.moved_from:
                say(f"  {short(change.moved_from, line_width() - 4)}")
            arrow = "  → " if change.moved_from else "  "
            say(arrow, short(change.url or "", line_width() - 4))
            _print_words(change, 1)
    hint("all of them: --json or --csv · as a page: -o crawls.html", output)


_OUTCOMES: Final = {
    "changed": ("~", "blue"),
    "moved": ("→", "blue"),
    "new": ("+", "green"),
    "gone": ("-", "magenta"),
    "missing": ("?", "magenta"),
}
