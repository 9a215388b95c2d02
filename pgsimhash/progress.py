"""What long work is given beside its input: how much memory, and whom to tell how far it is."""

from __future__ import annotations

from typing import Final

MEMORY_BYTES: Final = 1 << 28
"""How much memory a stream of pairs uses for simhashes by default."""


def unheard(*told: object) -> None:
    """Be told, where nobody listens."""
