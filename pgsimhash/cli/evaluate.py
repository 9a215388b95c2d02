"""The command that evaluates schemes and distances on your own pages."""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import click

from pgsimhash.cli import drawn
from pgsimhash.cli.options import check_folder, check_paths, dsn_option, stdin_bytes
from pgsimhash.cli.printing import people, print_json, tell, write_text
from pgsimhash.cli.work import (
    NO_PAGE,
    choose_jobs,
    jobs_option,
    progress_bar,
    summary_option,
    tell_left_out,
)
from pgsimhash.schemes import BUILT_IN, DEFAULT_NAME
from pgsimhash.store import connect

if TYPE_CHECKING:
    from pgsimhash.analysis import Counts, Evaluation, NearSample, Sample
    from pgsimhash.analysis.fingerprints import Fingerprints

_SHOWN = 20


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
    help="Without labels: compare all pairs among N random pages.",
)
@click.option(
    "--distance",
    type=click.IntRange(0, 16),
    help="With --sample: the distance to examine; by default the collection's, else that "
    "of the first --scheme.",
)
@click.option(
    "--borderline",
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    callback=check_folder,
    help="With --sample: write up to 100 pairs around --distance to this CSV file, for you to "
    "label.",
)
@click.option(
    "--collection",
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
    collection: str | None,
    dsn: str | None,
    jobs: int | None,
    summary: bool | None,
) -> None:
    """Measure a scheme and a distance on your own pages: recall and precision of labelled pairs.

    PAIRS is a CSV file with the columns a, b and label (near-dup or duplicate, distinct or
    different, graded to omit a pair), and optionally kind. a and b are file URLs, paths or ids of
    pages, or the URLs of pages in --pages. Prints a JSON line for each scheme and distance from 0
    to 16. Matches count if the signatures confirm them, as in ingest; "unverified" has all matches.
    The recommended distance has the largest recall at a precision of at least --precision; of
    several the smallest.

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
    console = people()
    shows = console.is_terminal if summary is None else summary
    if sample is None:
        failed = _evaluate(what[0], pages, schemes, collection, dsn, precision, jobs, shows)
    else:
        failed = _sample(what, schemes, collection, dsn, sample, distance, borderline, jobs, shows)
    context.exit(1 if failed else 0)


def _evaluate(
    source: str,
    places: Sequence[Path],
    schemes: Sequence[str],
    collection: str | None,
    dsn: str | None,
    precision: float,
    jobs: int | None,
    shows: bool,
) -> bool:
    """Evaluate the pairs in ``source``, and return whether the command failed."""
    from pgsimhash import analysis

    console = people()
    evaluations = []
    pairs = analysis.read_labels(source)
    if collection is not None:
        with connect(dsn, collection=collection, create=False) as store:
            evaluations.append(analysis.evaluate(pairs, store, precision=precision))
    else:
        for scheme in schemes:
            with progress_bar(console, scheme) as progress:
                evaluations.append(
                    analysis.evaluate(
                        pairs,
                        places or [Path(source).parent],
                        scheme=scheme,
                        precision=precision,
                        jobs=choose_jobs(jobs, 2 * len(pairs)),
                        progress=progress,
                    )
                )
    for evaluation in evaluations:
        _print_evaluation(evaluation)
        if shows:
            _print_curve(console, evaluation)
    failures = _report_failures(evaluations)
    return bool(failures) or any(evaluation.best is None for evaluation in evaluations)


def _sample(
    paths: tuple[str, ...],
    schemes: Sequence[str],
    collection: str | None,
    dsn: str | None,
    size: int,
    distance: int | None,
    borderline: Path | None,
    jobs: int | None,
    shows: bool,
) -> bool:
    """Compare a sample of pages, and return whether the command failed."""
    from pgsimhash import analysis
    from pgsimhash.analysis.fingerprints import Fingerprints
    from pgsimhash.analysis.near_pairs import near_sample, unlabelled_csv
    from pgsimhash.schemes import get_scheme

    console = people()
    samples: list[tuple[str, NearSample, Fingerprints]] = []
    if collection is not None:
        with connect(dsn, collection=collection, create=False) as store:
            bits = store.opened.default_distance if distance is None else distance
            near = near_sample(analysis.sample(store, size), bits)
            samples.append((store.scheme, near, Fingerprints()))
    else:
        bits = get_scheme(schemes[0]).distance if distance is None else distance
        for scheme, prints in _sampled_files(paths, schemes, size, jobs, console):
            samples.append((scheme, near_sample(_as_sample(prints), bits), prints))
    for name, near, prints in samples:
        unseen = None if prints.unseen is None else prints.unseen._asdict()
        for apart, pairs in enumerate(near.histogram.tolist()):
            line = {"scheme": name, "pages": near.pages, "distance": apart, "pairs": pairs}
            print_json({**line, "unseen": unseen})
        if shows:
            _print_sample(console, name, near, prints)
    if borderline is not None:
        # Of several schemes the first one's, because labels do not depend on the scheme.
        write_text(borderline, unlabelled_csv(samples[0][1].borderline))
    failures = _report_failures([prints for _, _, prints in samples])
    return bool(failures) or not any(near.pages for _, near, _ in samples)


def _sampled_files(
    paths: tuple[str, ...],
    schemes: Sequence[str],
    size: int,
    jobs: int | None,
    console: drawn.Console,
) -> Iterator[tuple[str, Fingerprints]]:
    """Yield the fingerprints of random pages by each scheme, which reads the same pages again."""
    from pgsimhash.analysis.fingerprints import fingerprint_pages
    from pgsimhash.schemes import get_scheme
    from pgsimhash.sources import count_pages, read_pages

    with _rereadable(paths) as files:
        total = count_pages(files)
        if total is None:
            total = sum(1 for _ in read_pages(files))
        count = min(size, total)
        chosen = set(Random(0).sample(range(total), count))  # noqa: S311
        for scheme in schemes:
            left_out = Counter[str]()
            every = enumerate(read_pages(files, left_out=left_out))
            pages = ((page.url, page) for number, page in every if number in chosen)
            processes = choose_jobs(jobs, count)
            with progress_bar(console, scheme) as progress:
                yield (
                    scheme,
                    fingerprint_pages(pages, get_scheme(scheme), processes, progress, count),
                )
        if not total:
            tell(NO_PAGE)
        tell_left_out(left_out)


def _as_sample(prints: Fingerprints) -> Sample:
    """Return the pages with a fingerprint; a URL that was crawled twice counts once."""
    import numpy as np

    from pgsimhash.analysis import Sample

    known = {url: page for url, page in prints.prints.items() if page is not None}
    simhashes = np.array([page.simhash for page in known.values()], dtype=np.uint64)
    return Sample(list(known), simhashes, [page.title for page in known.values()])


@contextmanager
def _rereadable(paths: tuple[str, ...]) -> Iterator[list[str]]:
    """Yield the paths, with stdin copied to a file because the sample needs a second reading."""
    if "-" not in paths:
        yield list(paths)
        return
    with tempfile.TemporaryDirectory(prefix="pgsimhash-") as folder:
        copy = Path(folder, "stdin.jsonl")
        with copy.open("wb") as file:
            shutil.copyfileobj(stdin_bytes(), file)
        yield [str(copy) if path == "-" else path for path in dict.fromkeys(paths)]


def _print_evaluation(evaluation: Evaluation) -> None:
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


def _figures(counts: Counts) -> dict[str, Any]:
    return {"recall": counts.recall, "precision": counts.precision, **counts._asdict()}


def _print_curve(console: drawn.Console, evaluation: Evaluation) -> None:
    """Print the curve and the recommended distance for people."""
    names = ("distance", "recall", "precision", "found", "false", "unverified", "false")
    table = _numbers(evaluation.scheme, *names)
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
    console.print(table)
    console.print(evaluation.sentence)
    if evaluation.unseen is not None:
        console.print(evaluation.unseen.sentence)


def _print_sample(
    console: drawn.Console, name: str, sample: NearSample, prints: Fingerprints
) -> None:
    """Print the number of pairs at each distance for people."""
    table = _numbers(f"{name}: {sample.pages:,} pages", "bits", "pairs", "pairs up to here")
    for bits, pairs in enumerate(sample.histogram.tolist()):
        table.add_row(str(bits), f"{pairs:,}", f"{sample.histogram[: bits + 1].sum():,}")
    console.print(table)
    if prints.unseen is not None:
        console.print(prints.unseen.sentence)


def _numbers(title: str, *columns: str) -> drawn.Table:
    table = drawn.Table(title=title, title_justify="left")
    for column in columns:
        table.add_column(column, justify="right")
    return table


def _report_failures(runs: Sequence[Evaluation | Fingerprints]) -> int:
    """Print each page that failed once, and how many have too little text; count the former."""
    failures = list(dict.fromkeys(failure for run in runs for failure in run.failures))
    for failure in failures[:_SHOWN]:
        tell(f"failed: {failure.url}: {failure.detail}")
    if len(failures) > _SHOWN:
        tell(f"{len(failures) - _SHOWN:,} more pages failed")
    short = len({name for run in runs for name in run.too_short})
    if short:
        tell(f"{'1 page has' if short == 1 else f'{short:,} pages have'} too little text")
    return len(failures)
