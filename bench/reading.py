"""Measure reading a page alongside extractors of main content.

python bench/reading.py FOLDER [--pages N]

Times are CPU milliseconds of one core for the .html files under FOLDER. Each library reads a page
once, as a crawl does, and the order of the libraries changes with each page. The first column is
the ratio to resiliparse. Peers that are not installed are skipped.
"""

import gc
import random
import time
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import click
import numpy as np

from pgsimhash import fingerprint
from pgsimhash.errors import PageError
from pgsimhash.html import native
from pgsimhash.html.parse import clean_utf8

WARM = 20
"""How many pages are read before the clock runs."""

HAS_EXTENSION = native.is_used


def pgsimhash(html: bytes, *, markdown: bool = False, extension: bool = HAS_EXTENSION) -> None:
    native.is_used = extension
    try:
        fingerprint(html, markdown=markdown)
    except PageError:
        return
    finally:
        native.is_used = HAS_EXTENSION


def resiliparse(html: bytes) -> None:
    from resiliparse.extract.html2text import extract_plain_text

    extract_plain_text(clean_utf8(html).decode(), main_content=True)


def trafilatura(html: bytes) -> None:
    from trafilatura import extract

    extract(clean_utf8(html).decode(), include_comments=False)


def readability(html: bytes) -> None:
    from readability import Document
    from readability.readability import Unparseable

    try:
        Document(clean_utf8(html).decode()).summary()
    except (Unparseable, ValueError):
        return


READERS: dict[str, Callable[[bytes], None]] = {
    "resiliparse": resiliparse,
    "pgsimhash": pgsimhash,
    "pgsimhash, with Markdown": partial(pgsimhash, markdown=True),
    "pgsimhash, no extension": partial(pgsimhash, extension=False),
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
    for html in pages[:WARM]:
        for read in readers.values():
            read(html)
    gc.collect()
    times: defaultdict[str, list[float]] = defaultdict(list)
    order, rng = list(readers.items()), random.Random(1)
    for html in pages[WARM:]:
        rng.shuffle(order)
        for name, read in order:
            times[name].append(cpu_ms(read, html))
    base = np.median(times["resiliparse"]) if "resiliparse" in times else np.nan
    print(f"{len(pages):,} pages: ratio to resiliparse  ms a page: median   mean     p99")
    for name in readers:
        taken = times[name]
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
