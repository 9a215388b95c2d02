"""Print answers for people on a terminal: the answer in bold, at most 20 lines, then what next.

A sign, a word and a colour say the same thing, so nothing is lost without colours. The colours are
those that are legible on light and dark: green, magenta, red and blue.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pgsimhash.analysis.wording import counted, percent
from pgsimhash.cli import show
from pgsimhash.cli.show import file_size
from pgsimhash.cli.terminal import (
    ROWS,
    dim,
    grid_of,
    hint,
    is_plain,
    line_width,
    plain,
    print_values,
    say,
    say_rest,
    short,
)
from pgsimhash.hashing.bits import IDENTICAL_MAX
from pgsimhash.pages.urls import host_of

if TYPE_CHECKING:
    from rich.text import Text

    from pgsimhash.analysis.changes import Version, WithWords
    from pgsimhash.analysis.comparison import Comparison
    from pgsimhash.analysis.crawls import CrawlChange, CrawlComparison
    from pgsimhash.analysis.reports import Report
    from pgsimhash.pages.policies import Policy
    from pgsimhash.pages.records import CollectionStatus, Match, RunRecord, Verdict

EXAMPLES: Final = 3
"""How many changes of a kind are shown."""

_WIDTH_MAX: Final = 100
_VERSIONS: Final = 5  # of which the words are shown
_HOSTS: Final = 5
_CONTEXT: Final = 3  # equal words on each side of changed ones


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
        table = grid_of("right", "left")
        table.columns[1].no_wrap = False
        for pair in largest:
            line = _styled(pair.runs(_CONTEXT))
            line.truncate(2 * (line_width() - 12), overflow="ellipsis")
            table.add_row(percent(pair.difference), line)
        show.console(stdout=True).print(table)
    if not found.matches or found.reason == "same_simhash":
        say(("\n" + found.sentence, ""))
    if output is None:
        hint("as a page, block by block: -o why.html · for programs: --json")
    else:
        hint(f"written to {output}")


def report(found: Report, output: Path) -> None:
    """Print how much of a collection is copies, where they come from, and the biggest clusters."""
    say((found.headline, "bold"))
    if found.summary:
        say(found.summary)
    table = grid_of("right", "left", "left")
    for host in found.hosts[:_HOSTS]:
        if host.copies:
            causes = ", ".join(cause.words for cause in host.causes[:2])
            table.add_row(f"{host.copies:,}", host.host or "without a host", causes)
    if table.row_count:
        say(("\ncopies by host", "bold"), (", and what makes their address another one", "dim"))
        show.console(stdout=True).print(table)
    if found.clusters:
        say(("\nbiggest clusters", "bold"), (f", of {found.all_clusters:,}", "dim"))
        table = grid_of("right", "left")
        for view in found.clusters[:_HOSTS]:
            table.add_row(f"{view.size:,}", short(view.canonical.url, line_width() - 10))
        show.console(stdout=True).print(table)
    hint(f"written to {output} · for programs: --json")


def _styled(runs: Iterable[tuple[str, str]]) -> Text:
    """Return runs of text as a line; without colours, marked as by ``git diff --word-diff``."""
    from rich.text import Text

    line = Text()
    for text, kind in runs:
        marked = {"gone": f"[-{text}-]", "new": f"{{+{text}+}}"}.get(kind, text)
        style = {"gone": "magenta strike", "new": "bold"}.get(kind, "")
        line.append(marked if is_plain() else text, style).append(" ")
    return line


def _print_words(change: WithWords, most: int) -> None:
    for runs in (change.words or ())[:most]:
        line = _styled(runs)
        line.truncate(line_width() - 4, overflow="ellipsis")
        show.console(stdout=True).print("   ", line)


def _print_skyline(found: Comparison) -> None:
    from rich.text import Text

    from pgsimhash.analysis.skyline import drawn_in_text

    width = min(line_width() - 4, _WIDTH_MAX)
    console = show.console(stdout=True)
    lines = list(drawn_in_text(found.blocks, width))
    for name, cells in zip((" ", "A", "B", " "), lines, strict=True):
        line = Text.assemble((f"{name} ", "dim"))
        for is_alone, run in groupby(cells, key=lambda cell: cell[1]):
            line.append("".join(text for text, _ in run), "magenta" if is_alone else "blue")
        console.print(line)
    if is_plain():
        marks = zip(lines[1], lines[2], strict=True)
        say("  " + "".join("^" if a[1] or b[1] else " " for a, b in marks).rstrip())
        key: tuple[str | tuple[str, str], ...] = ("  ^: only on one  ",)
    else:
        key = ("  ", ("blue", "blue"), ": on both  ", ("magenta", "magenta"), ": only on one  ")
    say(*key, ("width: words, height: how loud they vote", "dim"))


@dataclass(slots=True)
class Ingested:
    """What an ingest has brought so far."""

    counts: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    hosts: Counter[str] = field(default_factory=Counter)
    sizes: Counter[bool] = field(default_factory=Counter)
    failure: Verdict | None = None
    started: float = field(default_factory=time.monotonic)

    def add(self, verdict: Verdict) -> None:
        """Count a verdict."""
        self.counts[verdict.kind] += 1
        self.sizes[verdict.keep] += verdict.html_bytes or 0
        if verdict.keep:
            self.counts["keep"] += 1
        if verdict.kind in ("duplicate", "near"):
            self.hosts[host_of(verdict.url) or ""] += 1
        if verdict.kind == "failed":
            self.reasons[verdict.reason] += 1
            self.failure = self.failure or verdict

    def show(self) -> None:
        """Print how many pages had each verdict, on the terminal; without one only failures."""
        from rich.text import Text

        console = show.console(stdout=show.for_people())
        counts = self.counts
        if not console.is_terminal:
            if self.failure is not None:
                first = f"{self.failure.url}: {self.failure.detail}"
                show.message(f"Failed: {counts['failed']:,}. The first: {first}")
            return
        shown = {
            "new": counts["new"],
            "updated": counts["updated"],
            "copies": counts["duplicate"] + counts["near"],
            "unchanged": counts["unchanged"],
            "gone": counts["gone"] + counts["unknown"],
            "too short": counts["too_short"],
            "failed": counts["failed"],
        }
        whole, seconds = sum(shown.values()), time.monotonic() - self.started
        speed = f" in {seconds:.1f} s" + (f", {whole / seconds:,.0f} a second" if seconds else "")
        line = Text()
        for name, count in shown.items():
            if count:
                sign, style = SIGNS[name]
                line.append(f"{sign} {count:,} {name}  ", style)
        console.print(Text.assemble((counted(whole, "page"), "bold"), speed))
        console.print(_bar(shown, min(console.width - 2, _WIDTH_MAX)))
        console.print(line)
        keep = counted(counts["keep"], "page is", "pages are")
        other = f"; {file_size(self.sizes[False])} say nothing new" if self.sizes[False] else ""
        console.print(f"{keep} worth keeping ({file_size(self.sizes[True])}){other}.")
        if any(self.hosts):
            most = (f"{host or 'files'} ({count:,})" for host, count in self.hosts.most_common(2))
            console.print(f"Copies are on {', '.join(most)}.")
        if self.failure is not None:
            reasons = ", ".join(
                f"{name} ({count:,})" for name, count in self.reasons.most_common(3)
            )
            failed = counted(counts["failed"], "page")
            console.print(Text.assemble((f"! {failed} failed", "red"), f": {reasons}. The first:"))
            show.message(f"{self.failure.url}: {self.failure.detail}")


SIGNS: Final = {
    "new": ("+", "green"),
    "updated": ("~", "green"),
    "copies": ("=", "magenta"),
    "duplicate": ("=", "magenta"),
    "near": ("≈", "magenta"),
    "unchanged": ("·", "dim"),
    "gone": ("o", "dim"),
    "unknown": ("?", "dim"),
    "too short": ("-", "dim"),
    "too_short": ("-", "dim"),
    "failed": ("!", "red"),
}
"""The sign and the colour of each verdict."""


def _bar(parts: Mapping[str, int], width: int) -> Text:
    """Return a bar of the counts; each above zero has at least a character."""
    from rich.text import Text

    whole = sum(parts.values()) or 1
    cells = {name: max(round(count / whole * width), count > 0) for name, count in parts.items()}
    largest = max(cells, key=cells.__getitem__)
    cells[largest] -= sum(cells.values()) - width
    bar = Text()
    for name, cell in cells.items():
        _, style = SIGNS[name]
        bar.append(("─" if style == "dim" else "█") * cell, style)
    return bar


def decided(verdict: Verdict) -> None:
    """Print what ingest would decide about a page."""
    sign, style = SIGNS[verdict.kind]
    kind = verdict.kind.replace("_", " ").capitalize()
    keep = "worth keeping" if verdict.keep else "not worth keeping"
    say((f"{sign} {kind}", f"bold {style}"), (f": {keep}\n", "bold"))
    values = {"page": short(verdict.url, line_width() - 14)}
    if verdict.duplicate_of is not None:
        values["same as"] = short(verdict.duplicate_of, line_width() - 14)
    if verdict.distance is not None:
        values["bits"] = f"{verdict.distance} of 64 differ"
    values["because"] = verdict.detail or verdict.reason.replace("_", " ")
    print_values(values)
    hint("nothing was stored · exit code 1 means: not worth keeping")


def found(what: str, matches: Sequence[Match], limit: int) -> None:
    """Print the known pages near a page or a simhash, the nearest first."""
    from rich.text import Text

    name = counted(len(matches), "page") if matches else "No page"
    say((f"{name} within {limit} bits", "bold"), f" of {short(what, 40)}")
    table = grid_of("right", "left", "left")
    for match in matches[:ROWS]:
        near = Text.assemble(
            ("·" * match.distance, "dim"),
            ("●", "blue" if match.distance <= IDENTICAL_MAX else "magenta"),
            ("·" * (limit - match.distance), "dim"),
        )
        table.add_row(str(match.distance), near, short(match.url, line_width() - limit - 8))
    if matches:
        say()
        show.console(stdout=True).print(table)
    say_rest(len(matches) - ROWS)
    hint("why: pgsimhash analyse explain A B" if matches else "farther ones: --distance 12")


def statuses(collections: Sequence[CollectionStatus]) -> None:
    """Print what collections hold."""
    if not collections:
        say(("No collection yet", "bold"))
        hint("the first one: pgsimhash ingest PATH")
        return
    pages = sum(row.urls for row in collections)
    size = file_size(collections[0].schema_bytes)
    held = f" in {counted(len(collections), 'collection')}, {size} on disk\n"
    about = "about " if any(row.estimated for row in collections) else ""
    say((about + counted(pages, "page"), "bold"), held)
    table = grid_of("left", "right", "left", "right", "left")
    table.add_row(*dim("collection", "pages", "copies", "their HTML", "last write"))
    for row in collections[:ROWS]:
        share = row.duplicates / row.pages if row.pages else 0.0
        bar = _bar({"copies": row.duplicates, "unchanged": row.pages - row.duplicates}, 16)
        last = "never" if row.last_write is None else f"{row.last_write:%Y-%m-%d %H:%M}"
        saved = file_size(row.duplicate_bytes)
        name = short(row.name, 20)
        table.add_row(name, f"{row.urls:,}", bar.append(f" {percent(share)}"), saved, last)
    show.console(stdout=True).print(table)
    say_rest(len(collections) - ROWS)
    hint("more: pgsimhash analyse report --collection NAME")


def runs(records: Sequence[RunRecord]) -> None:
    """Print the runs that added pages, the last one first."""
    if not records:
        say(("No run yet", "bold"))
        return
    last = records[0]
    say(
        (counted(len(records), "run"), "bold"),
        f"; in the last one, {last.new + last.updated:,} of {counted(last.pages, 'page')} were new "
        "or updated\n",
    )
    table = grid_of("right", "left", "right", "left", "right", "right", "right", "right")
    table.add_row(*dim("run", "began", "pages", "", "new", "upd.", "copies", "same"))
    for run in records[:ROWS]:
        own = (run.new, run.updated, run.duplicates, run.unchanged)
        bar = _bar(dict(zip(("new", "updated", "copies", "unchanged"), own, strict=True)), 18)
        began = f"{run.started_at:%Y-%m-%d %H:%M}"
        cells = (f"{count:,}" if count else "-" for count in own)
        table.add_row(str(run.run_id), began, f"{run.pages:,}", bar, *cells)
    show.console(stdout=True).print(table)
    say_rest(len(records) - ROWS)
    hint(f"take back run {last.run_id}: pgsimhash run undo {last.run_id}")


def policies(found: Sequence[Policy]) -> None:
    """Print the policies in words, those for all hosts last."""
    say((counted(len(found), "policy", "policies"), "bold"), "; of several the most specific\n")
    grid = grid_of("left", "left")
    grid.columns[1].no_wrap = False
    for policy in sorted(found, key=lambda own: (own.host == "*", own.host, own.path))[:ROWS]:
        values = {name: value for name, value in policy.as_json().items() if value is not None}
        del values["pattern"]
        words = (f"{name.replace('_', ' ')} {plain(value)}" for name, value in values.items())
        grid.add_row(short(policy.pattern, 30), ", ".join(words))
    show.console(stdout=True).print(grid)
    say_rest(len(found) - ROWS)
    if found:
        hint("ages are in seconds · what counts for a page: pgsimhash policy list URL")
    else:
        hint("the first one: pgsimhash policy set example.org --distance 5")


def history(versions: Sequence[Version]) -> None:
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
        say(
            (f"● {version.fetched_at:%Y-%m-%d %H:%M}", "bold"),
            (f"  {what}", style),
            bits,
            (seen, "dim"),
        )
        _print_words(version, EXAMPLES)
    hint("what changed: pgsimhash analyse explain URL@DATE URL")


CHANGES: Final = {
    None: ("first seen", "green"),
    "same": ("same words", "dim"),
    "edited": ("edited", "magenta"),
    "rewritten": ("rewritten", "magenta"),
    "redesign": ("new template", "blue"),
}
"""The words and the colour of each kind of change."""


def crawls(found: CrawlComparison) -> None:
    """Print what changed between two crawls: the counts, and the first pages of each kind."""
    counts = Counter[str]()
    first: dict[str, list[CrawlChange]] = {}
    for change in found.changes:
        counts[change.change] += change.pages
        if change.change in _OUTCOMES and counts[change.change] <= EXAMPLES:
            first.setdefault(change.change, []).append(change)
    words = [f"{count:,} {kind.replace('_', ' ')}" for kind, count in counts.items()]
    say((", ".join(words), "bold"))
    say((f"{_crawl(found.earlier)} → {_crawl(found.later)}", "dim"))
    for kind, pages in first.items():
        sign, style = _OUTCOMES[kind]
        say((f"{sign} {kind}", f"bold {style}"))
        for change in pages[: EXAMPLES if len(first) <= EXAMPLES else EXAMPLES - 1]:
            if change.moved_from:
                say(f"  {short(change.moved_from, line_width() - 4)}")
            say(
                "  → " if change.moved_from else "  ",
                short(change.url or "", line_width() - 4),
            )
            _print_words(change, 1)
    hint("all of them: --json or --csv · one page: pgsimhash analyse history URL --diff")


_OUTCOMES: Final = {
    "changed": ("~", "blue"),
    "moved": ("→", "blue"),
    "new": ("+", "green"),
    "gone": ("-", "magenta"),
    "missing": ("?", "magenta"),
}


def _crawl(crawl: Sequence[RunRecord]) -> str:
    name = f"run {crawl[0].run_id}" if len(crawl) == 1 else counted(len(crawl), "run")
    return f"{name}, {crawl[-1].started_at:%Y-%m-%d %H:%M}"
