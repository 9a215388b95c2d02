"""A picture of an evaluation: one HTML file that needs no network and no script."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Final

from pgsimhash.analysis.measures import NO_MATCH, Score
from pgsimhash.analysis.near_pairs import NearSample
from pgsimhash.content_policy import content_policy
from pgsimhash.html_reports.charts import curve_chart, curve_floor, histogram_chart
from pgsimhash.records import PageFailure

_SHOWN: Final = 100

_STYLE: Final = """
:root { color-scheme: light dark; --ink: #1b1f24; --paper: #fff; --faint: #d5dae0;
  --one: #0b62c4; --other: #c2500a; --mark: #6b7480; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ed; --paper: #14171b; --faint: #353c45;
  --one: #6cb2ff; --other: #ff9d5c; --mark: #9aa4b0; } }
body { background: var(--paper); color: var(--ink); font: 1rem/1.5 system-ui, sans-serif;
  margin: 0 auto; max-width: 72rem; padding: 1rem; overflow-wrap: anywhere; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.2rem; margin-bottom: .25rem; }
.side { display: grid; gap: 1.5rem;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 22rem), 1fr)); }
.wide { overflow-x: auto; overflow-wrap: normal; }
svg { display: block; width: 100%; height: auto; max-width: 40rem; }
text { fill: var(--ink); font-size: 12px; }
rect.copies, circle.recall { fill: var(--one); } polyline.recall { stroke: var(--one); }
rect.others, circle.precision { fill: var(--other); }
polyline.precision { stroke: var(--other); stroke-dasharray: 6 3; }
polyline { fill: none; stroke-width: 2; } path { fill: none; stroke: var(--faint); }
path.axis { stroke: var(--ink); } path.mark { stroke: var(--mark); stroke-dasharray: 3 3; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .15rem .6rem; text-align: right; border-bottom: 1px solid var(--faint); }
th:first-child, td:first-child { text-align: left; padding-left: 0; }
tr.best { font-weight: 700; }
.one { color: var(--one); } .other { color: var(--other); }
"""


def labelled_report(
    source: str,
    scores: Sequence[Score],
    precision: float,
    too_short: Sequence[str],
    failures: Sequence[PageFailure],
) -> str:
    """Return the report on labelled pairs.

    Args:
        source: what the pairs are called.
        scores: a score for each scheme.
        precision: what the recommended distance had to reach.
        too_short: the names of pages with too little text.
        failures: the pages that have no fingerprint for another reason.
    """
    floor = curve_floor([score.curve for score in scores])
    return _page(
        f"Evaluation of {source}",
        "<p><span class=one>Copies</span> stand above the line, <span class=other>other pages"
        "</span> hang below it; heights are logarithmic. <span class=one>Recall</span> (the line) "
        "is the share of the copies that are found within k bits, <span class=other>precision"
        "</span> (dashed) the share of copies in what is found. Precision depends on which pairs "
        "were labelled: it holds for pages like these.</p>"
        f"<p>Recommended is the k with the largest recall at a precision of {precision:g} or "
        "better, of several the smallest.</p>"
        "<div class=side>"
        + "".join(_scheme(score, precision, floor) for score in scores)
        + "</div>"
        + _left_over(too_short, failures),
    )


def sample_report(
    source: str,
    samples: Sequence[tuple[str, NearSample]],
    k: int,
    too_short: Sequence[str],
    failures: Sequence[PageFailure],
) -> str:
    """Return the report on unlabelled pages.

    Args:
        source: what the pages are called.
        samples: a scheme's name and its sample, for each scheme.
        k: the distance that is in question.
        too_short: the names of pages with too little text.
        failures: the pages that have no fingerprint for another reason.
    """
    sections = []
    for name, sample in samples:
        total = 0
        rows = []
        for bits, pairs in enumerate(sample.histogram.tolist()):
            total += pairs
            rows.append((str(bits), f"{pairs:,}", f"{total:,}"))
        sections.append(
            f"<section><h2>{escape(name)}</h2><p>{sample.pages:,} pages, each compared with each."
            "</p>"
            + histogram_chart(("copies", sample.histogram), None, k)
            + _table(("bits", "pairs", "pairs up to here"), rows, best=k)
            + "</section>"
        )
    return _page(
        f"Near pairs in {source}",
        "<p>How many pairs of pages are how few bits apart; heights are logarithmic. A valley "
        "between copies and other pages is a good place for k; label the borderline pairs to "
        f"know.</p><div class=side>{''.join(sections)}</div>" + _left_over(too_short, failures),
    )


def verdict(score: Score, precision: float) -> str:
    """Return the recommendation, in one sentence."""
    best = score.best
    if best is None:
        return f"At no k is the precision {precision:g} or better."
    matches = best.found + best.false_matches
    told = (
        f"k = {best.k}: recall {best.recall:.4f}, precision {best.precision:.4f} "
        f"({best.false_matches:,} false of {matches:,} matches)."
    )
    if matches * (1 - precision) < 1:
        told += (
            f" That is too few matches to tell a precision of {precision:g}: "
            f"label {1 / max(1 - precision, 1e-6):,.0f} or more."
        )
    return told


def _scheme(score: Score, precision: float, floor: float) -> str:
    measured = score.measured
    k = score.best.k if score.best else None
    parts = [
        f"<section><h2>{escape(measured.scheme)}</h2><p>{escape(verdict(score, precision))}</p>",
        histogram_chart(
            ("copies", measured.copies[:NO_MATCH]), ("others", measured.distinct[:NO_MATCH]), k
        ),
        f"<p>{int(measured.copies.sum()):,} copies, {int(measured.distinct.sum()):,} others; "
        f"{int(measured.copies[NO_MATCH] + measured.distinct[NO_MATCH]):,} of them with a page "
        f"that has no fingerprint and matches nothing. {measured.graded:,} graded pairs do not "
        f"count; {measured.left_out:,} are left out, for a page could not be read.</p>",
        curve_chart(score.curve, score.best, floor),
        _table(
            ("k", "recall", "precision", "found", "false"),
            [
                (
                    str(at.k),
                    "-" if at.recall is None else f"{at.recall:.4f}",
                    f"{at.precision:.4f}",
                    f"{at.found:,}",
                    f"{at.false_matches:,}",
                )
                for at in score.curve
            ],
            best=k,
        ),
    ]
    if score.best is not None and len(score.best.kinds) > 1:
        rows = [
            (kind or "(no kind)", f"{found / copies:.4f}", f"{found:,} of {copies:,}")
            for kind, (found, copies) in score.best.kinds.items()
        ]
        parts.append(_table((f"kind, k = {k}", "recall", "found"), rows))
    return "".join(parts) + "</section>"


def _left_over(too_short: Sequence[str], failures: Sequence[PageFailure]) -> str:
    told = [(name, "too little text") for name in too_short]
    told += [(failure.url, f"{failure.reason}: {failure.detail}") for failure in failures]
    if not told:
        return ""
    items = "".join(f"<li>{escape(url)}: {escape(why)}</li>" for url, why in told[:_SHOWN])
    more = len(told) - _SHOWN
    return (
        f"<details><summary>{len(failures):,} pages failed, {len(too_short):,} have too little "
        f"text</summary><ul>{items}{f'<li>and {more:,} more</li>' if more > 0 else ''}</ul>"
        "</details>"
    )


def _table(head: Sequence[str], rows: Iterable[Sequence[str]], best: int | None = None) -> str:
    """Return a table, the row whose first cell is ``best`` in bold."""
    cells = "".join(f"<th>{escape(name)}</th>" for name in head)
    body = "".join(
        f"<tr{' class=best' if row[0] == str(best) else ''}>"
        + "".join(f"<td>{escape(cell)}</td>" for cell in row)
        + "</tr>"
        for row in rows
    )
    return f"<div class=wide><table><tr>{cells}</tr>{body}</table></div>"


def _page(title: str, body: str) -> str:
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{content_policy(_STYLE)}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head>"
        f"<body><h1>{escape(title)}</h1>{body}</body></html>\n"
    )
