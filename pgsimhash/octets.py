"""Pages as they came, text or bytes in any of Python's types for them, and their size."""

from __future__ import annotations

from typing import Final

from pgsimhash.errors import PageError, check_type

Octets = bytes | bytearray | memoryview
"""Bytes, whoever keeps them."""

MAX_BYTES: Final = 10_000_000
"""How large a page may be by default, and the file, line or record that holds it, in bytes."""


def frozen(page: Octets | str) -> bytes | str:
    """Return ``page`` as what nobody can change, and what can be hashed and pickled."""
    return bytes(page) if isinstance(page, bytearray | memoryview) else page


def checked_size(page: Octets | str, max_bytes: int = MAX_BYTES) -> int:
    """Return the size of a page in bytes; text counts as UTF-8.

    Raises:
        PageError: it is larger than ``max_bytes``.
    """
    check_type("a page", page, str, bytes, bytearray, memoryview, wanted="its HTML, str or bytes")
    size = page.nbytes if isinstance(page, memoryview) else len(page)
    if size <= max_bytes and isinstance(page, str):
        size = len(page.encode("utf-8", "replace"))
    if size > max_bytes:
        raise too_large("the page", max_bytes)
    return size


def too_large(what: str, max_bytes: int) -> PageError:
    """Return the error for what is larger than ``max_bytes``."""
    return PageError("too_large", f"{what} is larger than {max_bytes:,} bytes (max_bytes)")
