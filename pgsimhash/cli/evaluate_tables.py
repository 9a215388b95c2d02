"""Print the results of an evaluation to stderr."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from pgsimhash.analysis.measures import Score, Unseen, recommendation
from pgsimhash.analysis.near_pairs import NearSample
from pgsimhash.analysis.page_fingerprints import Fingerprints
from pgsimhash.cli.printing import tell

_SHOWN = 20


def print_scores(console: Console, scores: Sequence[Score], precision: float) -> None:
    """Print each scheme's curve and its recommended distance."""
    for score in scores:
        table = Table(title=score.measured.scheme, title_justify="left")
        for column in ("distance", "recall", "precision", "found", "false"):
            table.add_column(column, justify="right")
        for at in score.curve:
            recall = "-" if at.recall is None else f"{at.recall:.4f}"
            figures = (f"{at.found:,}", f"{at.false_matches:,}")
            style = "bold" if at is score.best else None
            table.add_row(str(at.distance), recall, f"{at.precision:.4f}", *figures, style=style)
        console.print(table)
        console.print(recommendation(score, precision))
        _print_unseen(console, score.measured.unseen)


def print_sample(console: Console, samples: Sequence[tuple[str, NearSample]]) -> None:
    """Print the number of pairs at each distance for each scheme."""
    for name, sample in samples:
        table = Table(title=f"{name}: {sample.pages:,} pages", title_justify="left")
        for column in ("bits", "pairs", "pairs up to here"):
            table.add_column(column, justify="right")
        for bits, (pairs, total) in enumerate(
            zip(sample.histogram.tolist(), sample.histogram.cumsum().tolist(), strict=True)
        ):
            table.add_row(str(bits), f"{pairs:,}", f"{total:,}")
        console.print(table)
        _print_unseen(console, sample.unseen)


def _print_unseen(console: Console, unseen: Unseen | None) -> None:
    if unseen is not None:
        console.print(unseen.sentence)


def report_failures(missed: Fingerprints) -> None:
    """Print which pages failed, and how many have too little text."""
    for failure in missed.failures[:_SHOWN]:
        tell(f"failed: {failure.url}: {failure.detail}")
    if len(missed.failures) > _SHOWN:
        tell(f"{len(missed.failures) - _SHOWN:,} more pages failed")
    if missed.too_short:
        single = len(missed.too_short) == 1
        counted = "1 page has" if single else f"{len(missed.too_short):,} pages have"
        tell(f"{counted} too little text")
