"""Handle the HTML of a page as text or any of Python's byte types, and its size."""

from __future__ import annotations

from contextlib import suppress
from reprlib import repr as short_repr
from typing import Final

from pgsimhash.errors import ArgumentError, PageError

BytesLike = bytes | bytearray | memoryview
"""The accepted types for bytes."""

MAX_BYTES: Final = 10_000_000
"""The default largest size in bytes of a page, and of the file, line or record that holds it."""


def frozen(page: BytesLike | str) -> bytes | str:
    """Return ``page`` as an immutable value, which can be hashed and pickled."""
    return bytes(page) if isinstance(page, bytearray | memoryview) else page


def checked_size(page: BytesLike | str, max_bytes: int = MAX_BYTES) -> int:
    """Return the size of a page in bytes; text counts as UTF-8.

    Raises:
        PageError: the page is larger than ``max_bytes``.
    """
    size = len(page) if isinstance(page, str) else memoryview(page).nbytes
    if size <= max_bytes and isinstance(page, str):
        size = len(page.encode("utf-8", "replace"))
    if size > max_bytes:
        raise too_large("the page", max_bytes)
    return size


def text_size(name: str, text: str) -> int:
    """Return the size of a text in UTF-8.

    Raises:
        ArgumentError: PostgreSQL cannot store it.
    """
    if isinstance(text, str) and "\0" not in text:
        with suppress(UnicodeEncodeError):
            return len(text.encode())
    wanted = "a str in valid UTF-8 without NUL"
    raise ArgumentError("invalid_argument", f"{name} is {wanted}, not {short_repr(text)}")


def too_large(what: str, max_bytes: int) -> PageError:
    """Return the error for something larger than ``max_bytes``."""
    return PageError("too_large", f"{what} is larger than {max_bytes:,} bytes (max_bytes)")
