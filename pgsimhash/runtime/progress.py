"""Defaults of long-running functions: memory and progress."""

from __future__ import annotations

from typing import Final

MEMORY_BYTES: Final = 1 << 28
"""The default memory in bytes of a stream of pairs for simhashes."""


def no_progress(*counts: object) -> None:
    """Ignore the progress."""
