"""Commands that explain, compare, report and measure."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

import pgsimhash
from pgsimhash import analysis, html_reports
from pgsimhash.cli import options, people, show, terminal
from pgsimhash.runtime.output import check_output
from pgsimhash.schemes import DEFAULT_NAME
from pgsimhash.search.layout import DISTANCE_MAX
from pgsimhash.sources import PageFailure, SourcePage, read_pages

if TYPE_CHECKING:
    from pgsimhash.analysis.evaluation import Counts, Evaluation
    from pgsimhash.pages.records import PageItem

_FAILURES_SHOWN: Final = 20
_SHOWN: Final = 20  # pages of each outcome


@click.group()
def analyse() -> None:
    """Explain matches, follow changes, report and measure."""


@analyse.command()
@click.argument("a", metavar="A")
@click.argument("b", metavar="B")
@options.distance("the collection's, else the scheme's")
@options.html_page
@options.scheme(f"the collection's, else {DEFAULT_NAME}")
@options.one_collection(
    "The collection of the pages and the scheme.  [default: default, for URLs]",
)
@options.cut
@options.dsn
def explain(
    a: str,
    b: str,
    distance: int | None,
    output: Path | None,
    scheme: str | None,
    collection: str | None,
    dsn: str | None,
    **selectors: Any,
) -> None:
    """Explain why two pages match or do not.

    A and B are HTML files (- for stdin), URLs of pages in the collection, or simhashes as for find.
    URL@DATE is the version of a day, such as 2026-11-25. In a pipe it prints one JSON line. -o
    writes a page that compares the two block by block, which needs files, or pages that are stored
    with their Markdown. Exits with 1 if a page is unknown or has no fingerprint.
    """
    if a == b == "-":
        raise click.UsageError("stdin can be read only once; give one of the pages as a file")
    check_output(output, a, b)

    def page(word: str) -> SourcePage | bytes | str | int:
        if options.is_url(word):
            return word
        simhash = options.as_simhash(word)
        if simhash is not None:
            return simhash
        url, html = options.file_url(word), options.read_file(word)
        if url is None and not any(selectors.values()):
            return html
        return SourcePage(url or "file:/stdin", html, **selectors)

    if options.is_url(a) or options.is_url(b) or collection is not None:
        name = collection or options.DEFAULT_COLLECTION
        with pgsimhash.connect(dsn, collection=name, create=False, scheme=scheme) as store:
            found = analysis.compare_pages(page(a), page(b), store=store, distance=distance)
    else:
        found = analysis.compare_pages(page(a), page(b), scheme=scheme, distance=distance)
    terminal.answer(found, lambda: people.comparison(found, output))
    show.write_page(output, html_reports.comparison_page, found)


@analyse.command()
@click.argument("url")
@options.value(
    "--diff/--no-diff", "Whether to compare the words too, of stored Markdown.", default=True
)
@options.html_page
@options.with_store
def history(store: pgsimhash.Store, url: str, diff: bool, output: Path | None) -> None:
    """Show how a page changed over time.

    Prints a JSON line for each version, in order of arrival. A change is "same" for an equal text,
    "edited" for another at 0 to 8 bits, "rewritten" at 9 or more, and "redesign" for the first two
    in a different template. "removed" and "added" are words, if Markdown is stored. "seen_at" is
    when a version was last seen. Exits with 1 if the page is unknown.
    """
    versions = analysis.versions(store, url, markdown=diff)
    if show.for_people():
        people.history(versions, output)
    else:
        show.rows(row.as_json() for row in versions)
    show.write_page(output, html_reports.history_page, versions)


@analyse.command()
@click.argument("earlier", metavar="[RUN|LABEL|DATE]", required=False)
@click.argument("later", metavar="[RUN|LABEL|DATE]", required=False)
@options.as_csv
@options.html_page
@options.with_store
def crawls(
    store: pgsimhash.Store,
    earlier: str | None,
    later: str | None,
    as_csv: bool,
    output: Path | None,
) -> None:
    """Compare what two crawls saw.

    RUN is a number of `run list`; LABEL, or DATE as 2026-11-25, is all of its runs; by default the
    last two runs that ended. In a pipe it prints a JSON line for each page that is "changed", with
    its words if Markdown is stored, "moved" to a new URL, "new", "gone" (404 or 410), "missing",
    though the later crawl ended and visited half of the host, or "not_visited". The last line has
    the number of "unchanged" pages. -o writes a page with the first of each kind instead.
    """
    is_short = output is not None or (show.for_people() and not as_csv)
    found = analysis.compare_crawls(store, earlier, later, examples=_SHOWN if is_short else None)
    if is_short:
        from pgsimhash.analysis.crawls import first_of_each

        outcomes = first_of_each(found.changes, _SHOWN)
        if show.for_people():
            people.crawls(found, outcomes, output)
        show.write_page(output, html_reports.crawls_page, found, outcomes)
        return
    columns = ("change", "pages", "url", "moved_from", "title", "distance", "removed", "added")
    show.rows((change.as_json() for change in found.changes), columns if as_csv else ())


@analyse.command()
@options.distance("the collection's")
@options.clusters
@options.html_page
@options.value(
    "--clusters", "How many clusters to show, the biggest.", click.IntRange(min=0), default=12
)
@options.with_store
def report(store: pgsimhash.Store, output: Path | None, **grouping: Any) -> None:
    """Show a collection at a glance.

    Says how many pages are copies, where they come from and whether the distance is right, and
    shows the biggest clusters, canonical links and changes. On a terminal, it writes the HTML page
    of -o to report.html, or beside a file of that name which is not its own. In a pipe it prints
    one JSON line with the statistics of `status` and more.
    """
    with show.console().status("reading the collection"):
        summarized = analysis.report(store, **grouping)
    if show.for_people():
        output = output or _own_file()
    terminal.answer(summarized, lambda: people.report(summarized, output))
    show.write_page(output, html_reports.report_page, summarized)


def _own_file() -> Path:
    """Return report.html, or the first of report-2.html and so on that is a report or absent."""
    names = chain(["report.html"], (f"report-{number}.html" for number in count(2)))
    return next(
        path
        for path in map(Path, names)
        if not path.exists() or (path.is_file() and html_reports.REPORT_MARK in path.read_bytes())
    )


@analyse.command()
@options.with_store
def parameters(store: pgsimhash.Store) -> None:
    """Find parameters of URLs that do not matter.

    Prints a JSON line for each parameter of a host, and for spellings of its URLs, such as www and
    http. The verdict is "ignorable" if, with a confidence of 95%, at most 5% of the pages that
    differ only in it are different stories, "matters" if more are, and otherwise "too few".
    "at_most" is the upper bound of that share. "example" is an exception.
    """
    terminal.rows(analysis.parameters(store), terminal.PARAMETERS)


@analyse.command()
@click.argument("paths", metavar="PATH...", nargs=-1, required=True, type=options.INPUT_PATH)
@options.cut
def template(paths: tuple[str, ...], **selectors: Any) -> None:
    """Find the parts that pages of a site share, and try selectors.

    PATH is as for `ingest`. Prints a JSON line for each of up to 12 parts of a host, the outermost
    first: on how many "pages" of the "examined" ones it is, on how many with the "same" text, and
    its shares of their words and votes. With --content or --ignore, prints what they would change:
    pages that would be "too_short" or whose "content_missing", pairs of pages that would "match"
    and do not, and pairs that match and would be "no_match". Examines up to 200 pages of different
    texts of each host. Stores nothing.
    """
    stdin = options.stdin_bytes() if "-" in paths else None
    pages = _without_failures(read_pages(paths, stdin=stdin))
    if not selectors["content"] and not selectors["ignore"]:
        terminal.rows(analysis.template_parts(pages), terminal.PARTS)
        return
    effects = list(analysis.selector_effects(pages, **selectors))
    terminal.rows(effects, terminal.EFFECTS)
    counts = Counter(effect.effect for effect in effects)
    show.message(", ".join(f"{effect}: {counts[effect]:,}" for effect in counts) or "no change")


@analyse.command()
@options.distance("the collection's")
@options.as_csv
@options.with_store
def pairs(store: pgsimhash.Store, distance: int | None, as_csv: bool) -> None:
    """Find all pairs of near-duplicates in a collection.

    Prints a JSON line each, in no order. The first page of a simhash stands for it in pairs with
    others, and is paired at distance 0 with the other pages that have it.
    """
    columns = ("a", "b", "distance", "a_title", "b_title", "a_simhash", "b_simhash")
    with show.progress_bar("pairs", "%") as progress:
        found = analysis.page_pairs(store, distance, progress=progress)
        terminal.rows(found, terminal.PAIRS, csv=columns if as_csv else None)


@analyse.command()
@options.distance("the collection's")
@options.clusters
@options.flag("--save", "Replace the collection's rows of the table clusters instead of printing.")
@options.parquet("the pages of clusters to this file instead of stdout")
@options.as_csv
@options.with_store
def clusters(
    store: pgsimhash.Store, save: bool, parquet: str | None, as_csv: bool, **grouping: Any
) -> None:
    """Group the near-duplicates of a collection.

    Prints a JSON line for each cluster, or with --csv a row for each page.
    """
    if save + bool(parquet) + as_csv > 1:
        raise click.UsageError("give one of --save, --parquet and --csv")
    with show.progress_bar("clusters", "%") as progress:
        if save:
            count = store.save_clusters(**grouping, progress=progress)
            show.message(f"{count:,} clusters saved")
            return
        all_clusters = store.clusters(**grouping, progress=progress)
        if parquet is not None:
            from pgsimhash.batch.parquet import write_clusters

            count = write_clusters(parquet, all_clusters)
            show.message(f"{count:,} clusters in {parquet}")
        elif as_csv:
            from pgsimhash.analysis.canonical_links import COLUMNS, cluster_rows

            bits = store.collection.checked_distance(grouping["distance"], DISTANCE_MAX)
            show.rows(
                chain.from_iterable(cluster_rows(cluster, bits) for cluster in all_clusters),
                COLUMNS,
            )
        else:
            terminal.rows(all_clusters, terminal.CLUSTERS)


@analyse.command()
@click.argument("pairs", type=options.INPUT_FILE)
@options.value(
    "--pages",
    "Where the pages of PAIRS are: a folder, JSON lines or a WARC archive. By default the "
    "folder of PAIRS, and its subfolder pages.",
    click.Path(exists=True, path_type=Path),
    multiple=True,
)
@options.scheme(f"the collection's, else {DEFAULT_NAME}")
@options.value(
    "--precision",
    "The minimum precision of the recommended distance.",
    click.FloatRange(0, 1),
    default=0.999,
)
@options.one_collection("The collection of the pages of PAIRS, which are its URLs.")
@options.dsn
@options.jobs
def evaluate(
    pairs: str,
    pages: tuple[Path, ...],
    scheme: str | None,
    precision: float,
    collection: str | None,
    dsn: str | None,
    jobs: int | None,
) -> None:
    """Measure a scheme and a distance on your own pages.

    PAIRS is a CSV file with the columns a, b and label (near-dup, duplicate or same; distinct or
    different; graded to omit a pair), and optionally kind. a and b are file URLs or paths of pages,
    or the URLs of pages in --pages. Prints a JSON line with recall and precision for each distance;
    "unverified" also counts matches that signatures do not confirm. The recommended distance has
    the largest recall at --precision or more; of several the smallest. Exits with 1 if a page
    failed, or no distance is precise enough.

    `analyse pairs --csv` prints pairs of a collection: add a column label, and give
    --collection.
    """
    if pages and collection is not None:
        raise click.UsageError("give --pages or --collection, not both")
    labelled = analysis.read_labels(pairs)
    if collection is not None:
        with pgsimhash.connect(dsn, collection=collection, create=False, scheme=scheme) as store:
            found = analysis.evaluate(labelled, store, precision=precision)
    else:
        with show.progress_bar("pages") as progress:
            found = analysis.evaluate(
                labelled,
                pages or [Path(pairs).parent],
                scheme=scheme,
                precision=precision,
                jobs=options.choose_jobs(jobs, 2 * len(labelled)),
                progress=progress,
            )
    terminal.rows(_curve(found), terminal.CURVE, title=found.sentence)
    failures = [page for page in found.failures if page.reason != "too_short"]
    for failure in failures[:_FAILURES_SHOWN]:
        show.message(f"failed: {failure.url}: {failure.detail}")
    if len(failures) > _FAILURES_SHOWN:
        show.message(f"{len(failures) - _FAILURES_SHOWN:,} more pages failed")
    if short := len(found.failures) - len(failures):
        show.message(f"{short:,} pages have too little text")
    sys.exit(bool(failures) or not found.best)


def _curve(evaluation: Evaluation) -> Iterator[dict[str, Any]]:
    def figures(counts: Counts) -> dict[str, Any]:
        return {"recall": counts.recall, "precision": counts.precision, **counts._asdict()}

    for at in evaluation.curve:
        yield {
            "scheme": evaluation.scheme,
            "distance": at.distance,
            **figures(at.counts),
            "unverified": figures(at.unverified),
            "omitted": evaluation.omitted,
            "recommended": at is evaluation.best,
            "kinds": {kind: figures(counts) for kind, counts in at.kinds.items()},
        }


def _without_failures(pages: Iterable[PageItem]) -> Iterator[PageItem]:
    """Yield pages, and print failures."""
    for page in pages:
        if isinstance(page, PageFailure):
            show.message(f"failed: {page.url}: {page.detail}")
        else:
            yield page
