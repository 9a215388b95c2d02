"""Render the report on a collection as an HTML page."""

from __future__ import annotations

from pgsimhash.analysis.history import CHANGES
from pgsimhash.analysis.reports import Report
from pgsimhash.html_reports.histograms import bars
from pgsimhash.html_reports.render import render_page
from pgsimhash.html_reports.timelines import timeline


def report_page(report: Report) -> str:
    """Return a report as one HTML page that needs no network and runs no script.

    ``report.limits`` bound its size, and the page states them.
    """
    return render_page(
        "report",
        f"Near-duplicates in {report.status.collection}",
        report=report,
        status=report.status,
        limits=report.limits,
        bars=bars(report.distances),
        drawn=[(page, timeline(page.versions)) for page in report.histories],
        changes=CHANGES,
        most=max((host.duplicates for host in report.hosts), default=0) or 1,
        size=_size,
    )


def _size(count: int) -> str:
    """Return a number of bytes with a unit."""
    amount = float(count)
    for unit in ("bytes", "kB", "MB", "GB"):
        if amount < 1000:
            return f"{amount:,.0f} {unit}" if unit == "bytes" else f"{amount:,.1f} {unit}"
        amount /= 1000
    return f"{amount:,.1f} TB"
