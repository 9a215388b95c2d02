"""How well a scheme and a distance do on somebody's own pages."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from random import Random
from typing import TextIO

import click
import numpy as np

from pgsimhash.cli.evaluate_tables import print_sample, print_scores, report_failures
from pgsimhash.cli.options import people, print_json
from pgsimhash.cli.work import choose_jobs, jobs_option, summary_option, with_progress
from pgsimhash.errors import LabelsError
from pgsimhash.evaluation import NearSample, Score, measure, read_labels, sample_near_pairs
from pgsimhash.evaluation.fingerprints import Extract, Fingerprints, fingerprint_pages
from pgsimhash.evaluation.measures import LARGEST
from pgsimhash.evaluation.places import Named, find_pages
from pgsimhash.evaluation.report import labelled_report, sample_report
from pgsimhash.evaluation.sample import write_unlabelled
from pgsimhash.extraction import extract_many
from pgsimhash.schemes import DEFAULT_SCHEME
from pgsimhash.sources import count_pages, read_pages

_INTERRUPTED = 130
# Opened at once, so that a folder that is missing shows before the work and not after it.
_OUTPUT = click.File("w", encoding="utf-8", errors="backslashreplace", lazy=False, atomic=True)


class _WrongLabels(click.ClickException):
    exit_code = 2


def _extract(scheme: str, jobs: int) -> Extract:
    """Return what fingerprints pages under the scheme of that name."""
    if scheme != DEFAULT_SCHEME.name:
        raise click.BadParameter(
            f"no scheme is called {scheme!r}; there is {DEFAULT_SCHEME.name}",
            param_hint="--scheme",
        )
    return partial(extract_many, jobs=jobs)


@click.command()
@click.argument("what", metavar="PAIRS|PATH...", nargs=-1, required=True)
@click.option(
    "--pages",
    multiple=True,
    type=click.Path(exists=True, path_type=Path),
    help="Where the pages of PAIRS are: a folder, JSON lines, a WARC archive, or a CSV file with "
    "the columns id and file. By default the folder of PAIRS, and pages in it.",
)
@click.option(
    "--scheme",
    "schemes",
    multiple=True,
    default=(DEFAULT_SCHEME.name,),
    show_default=True,
    help="The recipe to try; several stand side by side.",
)
@click.option(
    "--precision",
    type=click.FloatRange(0, 1),
    default=0.999,
    show_default=True,
    help="The least precision of a distance that is recommended.",
)
@click.option(
    "--sample",
    metavar="N",
    type=click.IntRange(min=2),
    help="Without labels: take N pages at random and compare each with each.",
)
@click.option(
    "--distance",
    type=click.IntRange(0, LARGEST),
    default=8,
    show_default=True,
    help="With --sample: the distance that is in question.",
)
@click.option(
    "--borderline",
    type=_OUTPUT,
    help="With --sample: write pairs around --distance to this CSV file, to be labelled.",
)
@click.option(
    "--borderline-pairs",
    type=click.IntRange(min=1),
    default=100,
    show_default=True,
    help="With --borderline: how many at most.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="With --sample: of chance.")
@click.option("-o", "--output", type=_OUTPUT, help="Write an HTML page with pictures here.")
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
    distance: int,
    borderline: TextIO | None,
    borderline_pairs: int,
    seed: int,
    output: TextIO | None,
    jobs: int | None,
    summary: bool | None,
) -> None:
    """Measure recall and precision by distance, on your own labelled pairs.

    PAIRS is a CSV file with the columns a, b and label (near-dup or 1, distinct or 0, graded to
    leave a pair out), and kind if you like. a and b are file URLs, paths or ids of pages, or the
    URLs of pages in --pages. Prints a JSON line for each scheme and distance k from 0 to 16.
    Recommended is the k with the largest recall at a precision of --precision or better, of
    several the smallest.

    With --sample N there are no labels: PATH is what ingest takes, and a JSON line is printed
    for each distance from 0 to 16 with the number of pairs so far apart.

    A page with too little text matches nothing; pairs whose page cannot be read are left out.
    Exits with 1 if a page failed or no k is precise enough, with 2 if PAIRS is wrong.
    """
    schemes = tuple(dict.fromkeys(schemes))
    for scheme in schemes:
        _extract(scheme, 1)
    if sample is None:
        if len(what) > 1:
            raise click.UsageError("one file of pairs, or --sample N with any number of paths")
        if borderline is not None:
            raise click.UsageError("--borderline goes with --sample")
    elif pages:
        raise click.UsageError("--pages goes with a file of pairs; --sample takes paths")
    console = people()
    shows = console.is_terminal if summary is None else summary
    try:
        if sample is None:
            source = Path(what[0])
            scores, seen = _score(source, pages, schemes, precision, jobs)
            for score in scores:
                _print_score(score)
            if shows:
                print_scores(console, scores, precision)
            if output is not None:
                output.write(
                    labelled_report(source.name, scores, precision, seen.too_short, seen.failures)
                )
            missed = any(score.best is None for score in scores)
        else:
            samples, seen = _sample(what, sample, seed, schemes, distance, borderline_pairs, jobs)
            for name, near in samples:
                for bits, pairs in enumerate(near.histogram.tolist()):
                    print_json(
                        {"scheme": name, "pages": near.pages, "distance": bits, "pairs": pairs}
                    )
            if shows:
                print_sample(console, samples)
            if borderline is not None:
                # Of several schemes the first one's: a person labels pages, not schemes.
                write_unlabelled(borderline, samples[0][1].borderline)
            if output is not None:
                output.write(
                    sample_report(", ".join(what), samples, distance, seen.too_short, seen.failures)
                )
            missed = False
    except LabelsError as error:
        raise _WrongLabels(str(error)) from error
    except KeyboardInterrupt:
        click.echo("Stopped.", err=True)
        context.exit(_INTERRUPTED)
    report_failures(seen)
    context.exit(1 if seen.failures or missed else 0)


def _score(
    source: Path,
    places: Sequence[Path],
    schemes: Sequence[str],
    precision: float,
    jobs: int | None,
) -> tuple[list[Score], Fingerprints]:
    labels = read_labels(source)
    pairs = [pair for pair in labels.pairs if pair.label != "graded"]
    if not pairs:
        raise LabelsError(
            f"{source}: no pair is labelled near-dup or distinct ({labels.unlabelled} rows wait "
            "for a label); label some"
        )
    if labels.unlabelled:
        click.echo(f"{source}: {labels.unlabelled} rows have no label yet", err=True)
    names = dict.fromkeys(name for pair in pairs for name in (pair.a, pair.b))
    scores = []
    for scheme in schemes:
        pages = find_pages(names, places, source.parent)
        seen = _fingerprint(scheme, pages, len(names), jobs)
        scores.append(measure(scheme, labels.pairs, seen.simhashes, precision=precision))
    return scores, seen


def _sample(
    paths: tuple[str, ...],
    size: int,
    seed: int,
    schemes: Sequence[str],
    distance: int,
    borderline: int,
    jobs: int | None,
) -> tuple[list[tuple[str, NearSample]], Fingerprints]:
    samples = []
    with _rereadable(paths) as files:
        total = count_pages(files)
        if total is None:
            total = sum(1 for _ in read_pages(files))
        chosen = set(Random(seed).sample(range(total), min(size, total)))  # noqa: S311
        for scheme in schemes:
            drawn = (
                (page.url, page)
                for number, page in enumerate(read_pages(files))
                if number in chosen
            )
            seen = _fingerprint(scheme, drawn, len(chosen), jobs)
            # A URL that was crawled twice counts once.
            found = {url: value for url, value in seen.simhashes.items() if value is not None}
            simhashes = np.fromiter(found.values(), dtype=np.uint64, count=len(found))
            near = sample_near_pairs(list(found), simhashes, distance, borderline, seed)
            samples.append((scheme, near))
    return samples, seen


def _fingerprint(scheme: str, pages: Iterable[Named], total: int, jobs: int | None) -> Fingerprints:
    seen = Fingerprints()
    done = fingerprint_pages(pages, _extract(scheme, choose_jobs(jobs, total)), seen)
    for _ in with_progress(done, total, people(), scheme):
        pass
    return seen


@contextmanager
def _rereadable(paths: tuple[str, ...]) -> Iterator[list[str]]:
    """Yield the paths with stdin as a file: a sample is drawn in a second reading."""
    if "-" not in paths:
        yield list(paths)
        return
    with tempfile.TemporaryDirectory(prefix="pgsimhash-") as folder:
        copy = Path(folder, "stdin.jsonl")
        with copy.open("wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        yield [str(copy) if path == "-" else path for path in dict.fromkeys(paths)]


def _print_score(score: Score) -> None:
    for at in score.curve:
        print_json(
            {
                "scheme": score.measured.scheme,
                "k": at.k,
                "recall": at.recall,
                "precision": at.precision,
                "found": at.found,
                "copies": at.copies,
                "false_matches": at.false_matches,
                "distinct": at.distinct,
                "left_out": score.measured.left_out,
                "recommended": at is score.best,
                "kinds": {
                    kind: {"found": found, "copies": copies}
                    for kind, (found, copies) in at.kinds.items()
                },
            }
        )
