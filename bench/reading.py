"""Measure reading a page, by step and by size, alongside extractors of main content.

python bench/reading.py FOLDER [--pages N]

Times are CPU milliseconds of one core for the .html files under FOLDER. A page is read three times
by each library, one library after the other, and the shortest time counts: other processes on the
machine lengthen the rest. The first column is the ratio to resiliparse. Peers that are not
installed are left out.
"""

from __future__ import annotations

import gc
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from functools import wraps
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click
import numpy as np

import pgsimhash.html
from pgsimhash.errors import PageError
from pgsimhash.html import content
from pgsimhash.html.charset import decode
from pgsimhash.schemes import article_features, fingerprint, recipe

REPEATS = 3
STEPS: dict[str, tuple[Any, str]] = {
    "decode": (pgsimhash.html, "clean_utf8"),
    "parse": (pgsimhash.html, "parse"),
    "title, URLs": (pgsimhash.html, "read_head"),
    "walk, names": (content, "outline"),
    "words": (content, "read_words"),
    "block features, weights": (content, "scores_of"),
    "shown blocks": (content, "with_whole_elements"),
    "structure": (pgsimhash.html, "structure_simhash"),
    "features": (article_features.BlockWeights, "hashed"),
    "signature": (recipe, "signature_hashes"),
    "vote": (recipe, "vote"),
    "digest": (recipe, "_digest"),
}


def default_scheme(html: bytes) -> None:
    try:
        fingerprint(html, markdown=False)
    except PageError:
        return


def with_markdown(html: bytes) -> None:
    try:
        fingerprint(html)
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
    "pgsimhash": default_scheme,
    "pgsimhash, with Markdown": with_markdown,
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


def _timed(work: Callable[..., Any], step: str, taken: Counter[str]) -> Callable[..., Any]:
    @wraps(work, updated=())
    def run(*args: Any, **kwargs: Any) -> Any:
        started = time.process_time_ns()
        try:
            return work(*args, **kwargs)
        finally:
            taken[step] += time.process_time_ns() - started

    return run


def print_steps(pages: list[bytes]) -> None:
    """Print the mean time of each step, by the size of pages."""
    originals = {step: getattr(place, name) for step, (place, name) in STEPS.items()}
    taken: Counter[str] = Counter()
    for step, (place, name) in STEPS.items():
        setattr(place, name, _timed(originals[step], step, taken))
    sizes = {"to 20 kB": (0, 2e4), "to 100 kB": (2e4, 1e5), "larger": (1e5, np.inf)}
    table: dict[str, list[float]] = {step: [] for step in (*STEPS, "the rest")}
    counts = []
    try:
        for least, most in sizes.values():
            group = [html for html in pages if least <= len(html) < most]
            taken.clear()
            whole = sum(cpu_ms(default_scheme, html) for html in group)
            for step in STEPS:
                table[step].append(taken[step] / 1e6 / max(len(group), 1))
            table["the rest"].append((whole - taken.total() / 1e6) / max(len(group), 1))
            counts.append(len(group))
    finally:
        for step, (place, name) in STEPS.items():
            setattr(place, name, originals[step])
    heads = [f"{name} ({count})" for name, count in zip(sizes, counts, strict=True)]
    print(f"{'ms a page, mean':26}{''.join(f'{head:>18}' for head in heads)}")
    for step, means in table.items():
        print(f"{step:26}{''.join(f'{mean:18.2f}' for mean in means)}")


def print_reading(folder: Path, most: int) -> None:
    """Print both tables for at most this many pages under ``folder``, evenly spaced."""
    paths = sorted(folder.rglob("*.html"))
    pages = [path.read_bytes() for path in paths[:: max(1, len(paths) // most)]]
    print_peers(pages)
    print_steps(pages)


@click.command()
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--pages", "most", default=300, show_default=True, type=click.IntRange(1))
def main(folder: Path, most: int) -> None:
    """Measure reading the .html files under FOLDER."""
    print_reading(folder, most)


if __name__ == "__main__":
    main()
