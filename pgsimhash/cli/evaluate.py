"""The command that measures schemes and distances on your own pages."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pgsimhash import html_reports
from pgsimhash.analysis.limits import LARGEST
from pgsimhash.cli import INTERRUPTED
from pgsimhash.cli.completion import CollectionName
from pgsimhash.cli.options import check_paths, dsn_option
from pgsimhash.cli.output import check_folder, output_option, write_text
from pgsimhash.cli.printing import people, print_json, tell
from pgsimhash.cli.work import jobs_option, summary_option
from pgsimhash.errors import ArgumentError
from pgsimhash.schemes.names import DEFAULT_NAME, SHIPPED_NAMES

if TYPE_CHECKING:
    from pgsimhash import analysis
    from pgsimhash.analysis.measures import Unseen


class _WrongLabels(click.ClickException):
    exit_code = 2


@click.command()
@click.argument("what", metavar="PAIRS|PATH...", nargs=-1)
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
    type=click.Choice(SHIPPED_NAMES),
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
    help="Without labels: compare all pairs among N random pages.",
)
@click.option(
    "--distance",
    type=click.IntRange(0, LARGEST),
    help="With --sample: the distance to examine; by default the collection's, else that "
    "of the first --scheme.",
)
@click.option(
    "--borderline",
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    callback=check_folder,
    help="With --sample: write pairs around --distance to this CSV file, for you to label.",
)
@click.option(
    "--borderline-pairs",
    type=click.IntRange(min=1),
    default=100,
    show_default=True,
    help="With --borderline: the maximum number of pairs.",
)
@click.option(
    "--seed", type=int, default=0, show_default=True, help="With --sample: the random seed."
)
@output_option
@click.option(
    "--collection",
    type=CollectionName(),
    help="Use the simhashes of this collection: instead of PATH with --sample, else for the URLs "
    "of PAIRS.",
)
@dsn_option
@jobs_option
@summary_option
@click.pass_context
def evaluate(
    context: click.Context,
    what: tuple[str, ...],
    pages: tuple[Path, ...],
    schemes: tuple[str, ...],
    precision: float,
    sample: int | None,
    distance: int | None,
    borderline: Path | None,
    borderline_pairs: int,
    seed: int,
    output: Path | None,
    collection: str | None,
    dsn: str | None,
    jobs: int | None,
    summary: bool | None,
) -> None:
    """Measure a scheme and a distance on your own pages: recall and precision of labelled pairs.

    PAIRS is a CSV file with the columns a, b and label (near-dup or duplicate, distinct or
    different, graded to omit a pair), and optionally kind. a and b are file URLs, paths or ids of
    pages, or the URLs of pages in --pages. Prints a JSON line for each scheme and distance from 0
    to 16. The recommended distance has the largest recall at a precision of at least --precision;
    of several the smallest.

    --sample N needs no labels: PATH is the same as for ingest, and a JSON line for each distance
    from 0 to 16 has the number of pairs with it. The file of --borderline becomes PAIRS once you
    add labels. With --collection both modes use the stored simhashes and read no pages.

    A page with too little text matches nothing. Pairs with an unreadable page are omitted. Exits
    with 1 if a page failed, there are no pages, or no distance is precise enough; with 2 if PAIRS
    is invalid.
    """
    schemes = tuple(dict.fromkeys(schemes))
    if collection is not None and sample is not None and what:
        raise click.UsageError("--sample needs paths or --collection, not both")
    if collection is not None and pages:
        raise click.UsageError("give --pages or --collection, not both")
    if not what and (collection is None or sample is None):
        raise click.UsageError("give a file of pairs, or --sample N with paths or --collection")
    if sample is None:
        if len(what) > 1:
            raise click.UsageError("give one file of pairs, or --sample N with paths")
        if borderline is not None:
            raise click.UsageError("--borderline needs --sample")
    elif pages:
        raise click.UsageError("--pages needs a file of pairs; give --sample paths instead")
    check_paths(what)
    # Imported here because these are slow to load and --help does not need them.
    from pgsimhash.analysis.labelled_pages import Fingerprints
    from pgsimhash.analysis.near_pairs import unlabelled_csv
    from pgsimhash.cli.evaluate_runs import (
        print_sample,
        print_scores,
        report_failures,
        sample_collection,
        sample_pages,
        score_known_pairs,
        score_pairs,
    )
    from pgsimhash.schemes import get_scheme

    console = people()
    shows = console.is_terminal if summary is None else summary
    try:
        if sample is None:
            source = Path(what[0])
            if collection is None:
                scores, missed = score_pairs(source, pages, schemes, precision, jobs)
            else:
                score, missed = score_known_pairs(source, dsn, collection, precision)
                scores = [score]
            for score in scores:
                _print_score(score)
            if shows:
                print_scores(console, scores, precision)
            if output is not None:
                write_text(
                    output,
                    html_reports.evaluation_page(
                        source.name, scores, precision, missed.too_short, missed.failures
                    ),
                )
            imprecise = any(score.best is None for score in scores)
        else:
            if collection is None:
                distance = get_scheme(schemes[0]).distance if distance is None else distance
                samples, missed = sample_pages(
                    what, sample, seed, schemes, distance, borderline_pairs, jobs
                )
            else:
                chance = (sample, seed, distance, borderline_pairs)
                drawn, distance = sample_collection(dsn, collection, *chance)
                samples = [drawn]
                missed = Fingerprints()
            for name, near in samples:
                _print_sample(name, near)
            if shows:
                print_sample(console, samples)
            if borderline is not None:
                # Of several schemes the first one's, because labels do not depend on the scheme.
                write_text(borderline, unlabelled_csv(samples[0][1].borderline))
            if output is not None:
                write_text(
                    output,
                    html_reports.near_pairs_page(
                        collection or ", ".join(what),
                        samples,
                        distance,
                        missed.too_short,
                        missed.failures,
                    ),
                )
            imprecise = not any(near.pages for _, near in samples)
    except ArgumentError as error:
        if error.reason != "invalid_labels":
            raise
        raise _WrongLabels(str(error)) from error
    except KeyboardInterrupt:
        tell("Stopped.")
        context.exit(INTERRUPTED)
    report_failures(missed)
    context.exit(1 if missed.failures or imprecise else 0)


def _print_score(score: analysis.Score) -> None:
    for at in score.curve:
        print_json(
            {
                "scheme": score.measured.scheme,
                "distance": at.distance,
                "recall": at.recall,
                "precision": at.precision,
                "found": at.found,
                "copies": at.copies,
                "false_matches": at.false_matches,
                "distinct": at.distinct,
                "left_out": score.measured.left_out,
                "unseen": _unseen_json(score.measured.unseen),
                "recommended": at is score.best,
                "kinds": {
                    kind: {"found": found_pairs, "copies": copies}
                    for kind, (found_pairs, copies) in at.kinds.items()
                },
            }
        )


def _print_sample(scheme: str, near: analysis.NearSample) -> None:
    for bits, pairs in enumerate(near.histogram.tolist()):
        print_json(
            {
                "scheme": scheme,
                "pages": near.pages,
                "distance": bits,
                "pairs": pairs,
                "unseen": _unseen_json(near.unseen),
            }
        )


def _unseen_json(unseen: Unseen | None) -> dict[str, Any] | None:
    return None if unseen is None else unseen._asdict()
