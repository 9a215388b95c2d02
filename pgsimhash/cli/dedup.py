"""The command that keeps one of near-duplicate texts in a file."""

from pathlib import Path
from typing import Any

import click

from pgsimhash.analysis.wording import counted
from pgsimhash.cli import options, show, terminal
from pgsimhash.errors import invalid_argument
from pgsimhash.runtime.machine import usable_cores


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@options.value(
    "-o --output FILE",
    "Write the kept rows to this file, Parquet or JSON lines as FILE.",
    click.Path(path_type=Path),
    required=True,
)
@options.value(
    "--clusters FILE",
    "Write a row for each text that has a near-duplicate: cluster, id, distance.",
    click.Path(path_type=Path),
)
@options.value("--text COLUMN", "The column of the texts.", default="text")
@options.value(
    "--id id_column COLUMN",
    "The column whose values name the rows; by default their number, from 0.",
)
@options.distance("11, of either simhash")
@options.number("--jobs", "Threads; by default one per core.")
def dedup(
    file: Path,
    output: Path,
    clusters: Path | None,
    jobs: int | None,
    **settings: Any,
) -> None:
    """Write the rows of a file without near-duplicates of earlier rows, without a database.

    FILE is a .parquet file, or has a JSON object in each line, also in gzip or zstd. It is read in
    parts and several times, so it need not fit into memory. Rows without text are kept, and those
    with too few words unless an earlier one is equal. Prints a JSON line with the numbers of rows.
    """
    from pgsimhash.batch.corpus import dedup as write_kept

    if clusters is not None and clusters.resolve() == output.resolve():
        raise invalid_argument(f"{output} is written twice; write the clusters to another file")
    with show.progress_bar("reading", "%") as progress:
        jobs = jobs or usable_cores()
        outcome = write_kept(file, output, clusters, jobs=jobs, progress=progress, **settings)
    if show.for_people():
        terminal.say((f"Kept {counted(outcome.kept, 'text')} of {outcome.rows:,}.", "bold"))
    terminal.record(outcome._asdict())
