"""Say numbers as people do."""

import re
from collections.abc import Iterable, Sequence
from typing import Final
from urllib.parse import unquote

from pgsimhash.pages.records import RunRecord

_SHARES: Final = {
    **{0.97: "nearly all", 0.85: "9 in 10", 0.775: "4 in 5", 0.71: "3 in 4", 0.63: "2 in 3"},
    **{0.57: "3 in 5", 0.47: "half", 0.37: "2 in 5", 0.29: "1 in 3"},
}


# Punctuation, and scripts without spaces.
_NO_SPACE: Final = re.compile(r"[.,;:!?)\u2e80-\ua4cf\uff00-\uff60]")


def percent(share: float) -> str:
    """Return a share in per cent: two digits, and never "0%" or "100%" of what is not."""
    if 0 < share < 0.001:
        return "under 0.1%"
    if 0.9995 <= share < 1:
        return "over 99.9%"
    is_precise = share < 0.0995 or 0.99 < share < 1
    return f"{share:.1%}" if is_precise and share > 0 else f"{share:.0%}"


def counted(count: int, one: str, more: str | None = None) -> str:
    """Return a number and its noun: "1 page", "1,200 pages"."""
    return f"{count:,} {one if count == 1 else more or f'{one}s'}"


def crawl_in_words(runs: Sequence[RunRecord]) -> str:
    """Return the run, or how many runs, of a crawl, and when it began."""
    name = f"run {runs[0].run_id}" if len(runs) == 1 else counted(len(runs), "run")
    return f"{name}, {runs[-1].started_at:%Y-%m-%d %H:%M}"


def listed(parts: Iterable[str]) -> str:
    """Return "a", "a and b" or "a, b and c"."""
    *first, last = parts
    return f"{', '.join(first)} and {last}" if first else last


def shortened(text: str, limit: int) -> str:
    """Return at most ``limit`` characters of a text, cut at a space if there is one near."""
    if len(text) <= limit:
        return text
    cut = text[: limit - 2]
    space = cut.rfind(" ")
    return f"{cut[: space if space > limit // 2 else None].rstrip()} …"


def without_middle(text: str, head: int, tail: int, gap: str = "…") -> str:
    """Return the first and last characters of a text, with a gap between if that is shorter."""
    is_short = len(text) <= head + len(gap) + tail
    return text if is_short else f"{text[:head]}{gap}{text[-tail:]}"


def readable(url: str) -> str:
    """Return a URL with its percent-encoded letters of other scripts decoded, as browsers do."""

    def decoded(run: re.Match[str]) -> str:
        text = unquote(run[0])
        return text if text.isprintable() and "\ufffd" not in text else run[0]

    return re.sub("(?:%[89a-fA-F][0-9a-fA-F])+", decoded, url)


def space_before(text: str) -> str:
    """Return what is written between a run of text and the one that it follows."""
    return "" if _NO_SPACE.match(text) else " "


def share_in_words(part: int, whole: int) -> str:
    """Return a share as people say it: "1 in 4", "half", "nearly all"."""
    share = part / whole
    if part == whole:
        return "all"
    for least, words in _SHARES.items():
        if share >= least:
            return words
    return f"1 in {round(whole / part):,}" if part else "none"


def byte_size(count: int) -> str:
    """Return a number of bytes in a unit that suits it, in two digits."""
    for unit, step in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= step:
            return f"{count / step:,.{0 if count >= 10 * step else 1}f} {unit}"
    return counted(count, "byte")
