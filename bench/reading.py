"""Measure reading a page alongside extractors of main content.

python bench/reading.py FOLDER [--pages N]

Times are CPU milliseconds of one core for the .html files under FOLDER. A page is read three times
by each library, one library after the other, and the shortest time counts: other processes on the
machine lengthen the rest. The first column is the ratio to resiliparse. Peers that are not
installed are left out.
"""

from __future__ import annotations

import gc
import time
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import click
import numpy as np

from pgsimhash.errors import PageError
from pgsimhash.html.charset import decode
from pgsimhash.schemes import fingerprint

REPEATS = 3


def pgsimhash(html: bytes, *, markdown: bool = False) -> None:
    try:
        fingerprint(html, markdown=markdown)
    except PageError:
        return


def resiliparse(html: bytes) -> None:
    from resiliparse.extract.html2text import extract_plain_text

    extract_plain_text(decode(html), main_content=True)


def trafilatura(html: bytes) -> None:
    from trafilatura import extract

    extract(decode(html), include_comments=False)


def readability(html: bytes) -> None:
    from readability import Document
    from readability.readability import Unparseable

    try:
        Document(decode(html)).summary()
    except (Unparseable, ValueError):
        return


READERS: dict[str, Callable[[bytes], None]] = {
    "resiliparse": resiliparse,
    "pgsimhash": pgsimhash,
    "pgsimhash, with Markdown": partial(pgsimhash, markdown=True),
    "trafilatura": trafilatura,
    "readability-lxml": readability,
}


def cpu_ms(read: Callable[[bytes], None], html: bytes) -> float:
    started = time.process_time()
    read(html)
    return 1e3 * (time.process_time() - started)


def print_peers(pages: list[bytes]) -> None:
    """Print the time of a page by each library, in one run."""
    readers = {
        name: read
        for name, read in READERS.items()
        if name.startswith("pgsimhash") or find_spec(name.partition("-")[0])
    }
    for read in readers.values():
        read(pages[0])
    gc.collect()
    times: defaultdict[str, list[float]] = defaultdict(list)
    for html in pages:
        shortest = dict.fromkeys(readers, np.inf)
        for _ in range(REPEATS):
            for name, read in readers.items():
                shortest[name] = min(shortest[name], cpu_ms(read, html))
        for name, milliseconds in shortest.items():
            times[name].append(milliseconds)
    base = np.median(times["resiliparse"]) if "resiliparse" in times else np.nan
    print(f"{len(pages):,} pages: ratio to resiliparse  ms a page: median   mean     p99")
    for name, taken in times.items():
        median, mean, late = np.median(taken), np.mean(taken), np.percentile(taken, 99)
        print(f"{name:26} {median / base:9.2f} {median:20.2f} {mean:6.2f} {late:7.2f}")


@click.command()
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--pages", "most", default=300, show_default=True, type=click.IntRange(1))
def main(folder: Path, most: int) -> None:
    """Measure reading the .html files under FOLDER."""
    paths = sorted(folder.rglob("*.html"))
    print_peers([path.read_bytes() for path in paths[:: max(1, len(paths) // most)]])


if __name__ == "__main__":
    main()
