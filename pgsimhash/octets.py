"""Pages as they came: text, or bytes in any of Python's types for them."""

from __future__ import annotations

Octets = bytes | bytearray | memoryview
"""Bytes, whoever keeps them."""


def frozen(page: Octets | str) -> bytes | str:
    """Return ``page`` as what nobody can change, and what can be hashed and pickled."""
    return bytes(page) if isinstance(page, bytearray | memoryview) else page
