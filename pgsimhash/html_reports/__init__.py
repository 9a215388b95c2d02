"""Render HTML reports that need no network and run no script."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pgsimhash.runtime.lazy_names import loaded_later

if TYPE_CHECKING:
    from pgsimhash.html_reports.pages import explanation_page, report_page
else:
    __getattr__, __dir__ = loaded_later(
        __name__,
        {
            "pgsimhash.html_reports.pages": "explanation_page report_page",
        },
    )

__all__ = ["explanation_page", "report_page"]
