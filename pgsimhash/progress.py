"""What long work calls to say how far it has come, where nobody listens."""

from __future__ import annotations


def unheard(*told: object) -> None:
    """Be told, and do nothing."""
