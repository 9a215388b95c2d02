"""Render HTML reports that load nothing and run nothing, for any content.

The content security policy of each page allows no script, no request and no style except the page's
own, by its hash (W3C, "Content Security Policy Level 3", 2.3.1). Mako escapes all expressions for
HTML. Templates write only numbers computed by this package unescaped.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from importlib.resources import files
from typing import TYPE_CHECKING, Final

from pgsimhash.analysis.wording import counted, shortened
from pgsimhash.pages.urls import host_of

if TYPE_CHECKING:
    from pgsimhash.analysis.changes import Version
    from pgsimhash.analysis.comparison import Comparison
    from pgsimhash.analysis.crawls import CrawlComparison, Outcomes
    from pgsimhash.analysis.reports import Report

__all__ = ["comparison_page", "crawls_page", "history_page", "report_page"]

_POLICY: Final = "default-src 'none'; style-src 'sha256-{}'; base-uri 'none'; form-action 'none'"
REPORT_MARK: Final = b'<p class="kicker">pgsimhash report'
"""What every report contains."""


def comparison_page(comparison: Comparison) -> str:
    """Return a comparison of two pages as one HTML page."""
    # The policy allows no style attributes, so widths and places are classes.
    rules = [f".f{width}{{flex:{max(width, 0.5)}}}" for width in range(101)]
    rules += [f".x{bits}{{left:{bits / 0.64:.2f}%}}" for bits in range(65)]
    return _render("comparison", comparison.headline, "".join(rules), found=comparison)


def report_page(report: Report) -> str:
    """Return a report as one HTML page that needs no network and runs no script.

    The arguments of :func:`pgsimhash.analysis.report` bound its size.
    """
    return _render("report", report.headline, report=report)


def crawls_page(found: CrawlComparison, outcomes: Outcomes) -> str:
    """Return what became of pages between two crawls as one HTML page.

    ``outcomes`` are those of :func:`pgsimhash.analysis.crawls.first_of_each`.
    """
    counts = (f"{count:,} {name.replace('_', ' ')}" for name, (count, _) in outcomes.items())
    return _render("crawls", f"Pages: {', '.join(counts)}", found=found, outcomes=outcomes)


def history_page(versions: Sequence[Version]) -> str:
    """Return the versions of a page as one HTML page, the newest first."""
    last = versions[-1]
    title = f"{counted(len(versions), 'version')} of {shortened(last.title or last.url, 200)}"
    return _render("history", title, versions=versions)


def web_link(url: str | None) -> str | None:
    """Return ``url`` if it is an http or https URL, which is safe to link to, else None."""
    is_web = (url or "").lower().startswith(("http://", "https://"))
    return url if is_web and host_of(url or "") else None


def _render(template: str, title: str, rules: str = "", **values: object) -> str:
    # Imported here because `--help` of commands with a page needs no templates.
    from mako.lookup import TemplateLookup

    folder = files(__package__)
    style = folder.joinpath("style.css").read_text(encoding="utf-8") + rules
    policy = _POLICY.format(base64.b64encode(hashlib.sha256(style.encode()).digest()).decode())
    templates = TemplateLookup([str(folder)], default_filters=["h"], strict_undefined=True)
    page = templates.get_template(f"{template}.html")
    return str(page.render(title=title, style=style, policy=policy, **values))
