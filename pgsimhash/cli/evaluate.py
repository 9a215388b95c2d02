"""The command that evaluates schemes and distances on your own pages."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from pgsimhash import analysis
from pgsimhash.cli.options import (
    DEFAULT_COLLECTION,
    InputPath,
    choose_jobs,
    dsn_option,
    jobs_option,
    output_option,
    summary_option,
)
from pgsimhash.cli.printing import print_json, print_message, write_text
from pgsimhash.schemes import BUILT_IN, DEFAULT_NAME
from pgsimhash.store import connect

if TYPE_CHECKING:
    from pgsimhash.analysis import Counts, Evaluation, NearSample

_SHOWN: Final = 20
"""How many failed pages are printed."""


@click.command()
@click.argument("pairs", required=False, type=InputPath())
@click.option(
    "--pages",
    multiple=True,
    type=click.Path(exists=True, path_type=Path),
    help="Where the pages of PAIRS are: a folder, JSON lines, a WARC archive, or a CSV file with "
    "the columns id and file. By default the folder of PAIRS, and its subfolder pages.",
)
@click.option(
    "--scheme",
    "schemes",
    type=click.Choice(BUILT_IN),
    multiple=True,
    default=(DEFAULT_NAME,),
    show_default=True,
    help="The scheme to measure; repeatable.",
)
@click.option(
    "--precision",
    type=click.FloatRange(0, 1),
    default=0.999,
    show_default=True,
    help="The minimum precision of the recommended distance.",
)
@click.option(
    "--sample",
    metavar="N",
    type=click.IntRange(min=2),
    help="Without labels: compare all pairs among N random pages of the collection.",
)
@click.option(
    "--distance",
    type=click.IntRange(0, 16),
    help="With --sample: the distance to examine; by default the collection's.",
)
@output_option(
    "--borderline",
    help_text="With --sample: write up to 100 pairs around --distance to this CSV file, for you to "
    "label.",
)
@click.option(
    "--collection",
    help="The collection of the pages of PAIRS, which are its URLs, or of --sample.  [default: "
    "default, for --sample]",
)
@dsn_option
@jobs_option
@summary_option
def evaluate(
    pairs: str | None,
    pages: tuple[Path, ...],
    schemes: tuple[str, ...],
    precision: float,
    sample: int | None,
    distance: int | None,
    borderline: Path | None,
    collection: str | None,
    dsn: str | None,
    jobs: int | None,
    summary: bool,
) -> None:
    """Measure a scheme and a distance on your own pages.

    PAIRS is a CSV file with the columns a, b and label (near-dup or duplicate, distinct or
    different, graded to omit a pair), and optionally kind. a and b are file URLs, paths or ids of
    pages, or the URLs of pages in --pages. Prints a JSON line with recall and precision for each
    scheme and distance from 0 to 16. Matches count if the signatures confirm them, as in ingest;
    "unverified" has all matches. The recommended distance has the largest recall at a precision of
    at least --precision; of several the smallest.

    --sample N needs no labels: a JSON line for each distance from 0 to 16 has the number of pairs
    with it. The file of --borderline becomes PAIRS once you add labels. With --collection no page
    is read.

    A page with too little text matches nothing. Pairs with an unreadable page are omitted. Exits
    with 1 if a page failed, there are no pages, or no distance is precise enough; with 2 if PAIRS
    is invalid.
    """
    if (pairs is None) == (sample is None):
        raise click.UsageError("give a file of pairs, or --sample N")
    if pages and (pairs is None or collection is not None):
        raise click.UsageError("--pages needs a file of pairs, without --collection")
    if borderline is not None and sample is None:
        raise click.UsageError("--borderline needs --sample")
    if pairs is not None:
        evaluations = _evaluations(pairs, pages, schemes, collection, dsn, precision, jobs)
        for evaluation in evaluations:
            _print_evaluation(evaluation, summary)
        failed = _report_failures(evaluations)
        sys.exit(failed or not all(evaluation.best for evaluation in evaluations))
    with connect(dsn, collection=collection or DEFAULT_COLLECTION, create=False) as store:
        bits = store.opened.default_distance if distance is None else distance
        near = analysis.near_sample(analysis.sample(store, sample or 0), bits)
        _print_sample(store.scheme, near, summary)
    if borderline is not None:
        write_text(borderline, analysis.unlabelled_csv(near.borderline))
    sys.exit(not near.pages)


def _evaluations(
    pairs: str,
    pages: Sequence[Path],
    schemes: Sequence[str],
    collection: str | None,
    dsn: str | None,
    precision: float,
    jobs: int | None,
) -> list[Evaluation]:
    """Return the evaluation of the pairs: of the pages of a collection, else by each scheme."""
    from pgsimhash.cli.console import progress_bar

    labelled = analysis.read_labels(pairs)
    if collection is not None:
        with connect(dsn, collection=collection, create=False) as store:
            return [analysis.evaluate(labelled, store, precision=precision)]
    evaluations = []
    for scheme in dict.fromkeys(schemes):
        with progress_bar(scheme) as progress:
            evaluations.append(
                analysis.evaluate(
                    labelled,
                    pages or [Path(pairs).parent],
                    scheme=scheme,
                    precision=precision,
                    jobs=choose_jobs(jobs, 2 * len(labelled)),
                    progress=progress,
                )
            )
    return evaluations


def _print_evaluation(evaluation: Evaluation, summary: bool) -> None:
    unseen = evaluation.unseen
    for at in evaluation.curve:
        print_json(
            {
                "scheme": evaluation.scheme,
                "distance": at.distance,
                **_figures(at.counts),
                "unverified": _figures(at.unverified),
                "left_out": evaluation.left_out,
                "unseen": None if unseen is None else unseen._asdict(),
                "recommended": at is evaluation.best,
                "kinds": {kind: _figures(counts) for kind, counts in at.kinds.items()},
            }
        )
    if not summary:
        return
    from pgsimhash.cli.console import figures_table, stderr_console

    names = ("distance", "recall", "precision", "found", "false", "unverified", "false")
    table = figures_table(evaluation.scheme, *names)
    for at in evaluation.curve:
        recall = "-" if at.counts.recall is None else f"{at.counts.recall:.4f}"
        figures = (*at.counts[::2], *at.unverified[::2])
        table.add_row(
            str(at.distance),
            recall,
            f"{at.counts.precision:.4f}",
            *(f"{figure:,}" for figure in figures),
            style="bold" if at is evaluation.best else None,
        )
    stderr_console().print(table)
    print_message(evaluation.sentence)
    if unseen is not None:
        print_message(unseen.sentence)


def _figures(counts: Counts) -> dict[str, Any]:
    return {"recall": counts.recall, "precision": counts.precision, **counts._asdict()}


def _print_sample(scheme: str, near: NearSample, summary: bool) -> None:
    histogram = near.histogram.tolist()
    for bits, pairs in enumerate(histogram):
        print_json({"scheme": scheme, "pages": near.pages, "distance": bits, "pairs": pairs})
    if not summary:
        return
    from pgsimhash.cli.console import figures_table, stderr_console

    table = figures_table(f"{scheme}: {near.pages:,} pages", "bits", "pairs", "pairs up to here")
    for bits, pairs in enumerate(histogram):
        table.add_row(str(bits), f"{pairs:,}", f"{sum(histogram[: bits + 1]):,}")
    stderr_console().print(table)


def _report_failures(evaluations: Sequence[Evaluation]) -> bool:
    """Print each page that failed once, and how many have too little text."""
    failures = list(dict.fromkeys(page for each in evaluations for page in each.failures))
    for failure in failures[:_SHOWN]:
        print_message(f"failed: {failure.url}: {failure.detail}")
    if len(failures) > _SHOWN:
        print_message(f"{len(failures) - _SHOWN:,} more pages failed")
    short = len({name for each in evaluations for name in each.too_short})
    if short:
        print_message(f"{short:,} pages have too little text")
    return bool(failures)
