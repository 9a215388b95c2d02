"""The default progress of long-running functions."""

from __future__ import annotations


def no_progress(*counts: object) -> None:
    """Ignore the progress."""
