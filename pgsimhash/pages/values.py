"""Check the values that enter: bytes of pages, texts, times and ages.

Invalid values raise ArgumentError, unless a function says otherwise.
"""

import re
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from reprlib import repr as short_repr
from typing import Final, TypeVar

from pgsimhash.errors import PageError, check_number, check_type, invalid_argument

BytesLike = bytes | bytearray | memoryview
"""The accepted types for bytes."""

MAX_BYTES: Final = 10_000_000
"""The default largest size in bytes of a page, and of the file, line or record that holds it."""

_CLOCKS_DIFFER: Final = timedelta(days=1)  # how far another machine's clock may be ahead
_VALIDATOR_MAX: Final = 512  # characters; equal to the limit in sql/tables.sql
EARLIEST: Final = datetime(1970, 1, 1, tzinfo=UTC)
"""No page is older; earlier times come from clocks and programs that do not know the time."""

ALWAYS: Final = timedelta()
"""The age after which a page is always fetched again; no other age is 0."""
# Directives that look like the name of a crawler (developers.google.com, "Robots meta tag").
_WITH_VALUES: Final = frozenset(
    ["unavailable_after", "max-snippet", "max-image-preview", "max-video-preview"]
)
_Age = TypeVar("_Age", bound=timedelta | None)
_UNITS: Final = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_AGE: Final = re.compile(r"(\d+(?:\.\d+)?)\s*([smhdw])")


def checked_size(page: BytesLike | str, max_bytes: int = MAX_BYTES) -> int:
    """Return the size of a page in bytes, text in UTF-8; raise PageError above ``max_bytes``."""
    check_type(page, str | BytesLike, "a page is a str or bytes")
    check_number("max_bytes", max_bytes, 0, 2**63)
    size = len(page) if isinstance(page, str) else memoryview(page).nbytes
    if size <= max_bytes and isinstance(page, str):
        size = len(page.encode("utf-8", "replace"))
    if size > max_bytes:
        raise too_large("the page", max_bytes)
    return size


def text_size(name: str, text: str) -> int:
    """Return the size of a text in UTF-8; raise ArgumentError if PostgreSQL cannot store it."""
    if isinstance(text, str) and "\0" not in text:
        with suppress(UnicodeEncodeError):
            return len(text.encode())
    raise invalid_argument(f"{name} is a str in valid UTF-8 without NUL, not {short_repr(text)}")


def validator(header: object) -> str | None:
    """Return an ``ETag`` or ``Last-Modified``, or None if it is not one that a request can send."""
    if not (isinstance(header, str) and header.isascii() and header.isprintable()):
        return None
    return header if 0 < len(header) <= _VALIDATOR_MAX else None


def says_noindex(robots: str) -> bool:
    """Return whether a robots meta tag or ``X-Robots-Tag`` asks all crawlers for no listing."""
    for part in robots.lower().split(","):
        name, colon, _ = part.partition(":")
        if colon and name.strip() not in _WITH_VALUES:
            return False  # what follows is for one crawler
        if name.strip() in ("noindex", "none"):
            return True
    return False


def too_large(what: str, max_bytes: int) -> PageError:
    """Return the error for something larger than ``max_bytes``."""
    return PageError("too_large", f"{what} is larger than {max_bytes:,} bytes (max_bytes)")


def check_time(time: datetime) -> datetime:
    """Return ``time`` in UTC; it has a zone, and is from 1970 to a day in the future.

    PostgreSQL accepts fewer zones than Python (less than 16 hours from UTC).
    """
    has_zone = False
    with suppress(Exception):  # pandas.NaT is a datetime whose methods raise
        has_zone = isinstance(time, datetime) and time.utcoffset() is not None
    if not has_zone:
        raise invalid_argument(
            f"a time is a datetime with a zone, such as datetime.now(UTC), not {time!r:.80}"
        )
    if EARLIEST <= time <= datetime.now(UTC) + _CLOCKS_DIFFER:
        return time.astimezone(UTC)
    problem = "before 1970" if time < EARLIEST else "in the future"
    raise invalid_argument(
        f"the time {time.isoformat()} is {problem}; correct it, or omit it for now"
    )


def check_age(age: _Age, *, always: bool = False) -> _Age:
    """Return ``age`` unchanged; it is None, or positive and does not reach back before the year 1.

    With ``always``, :data:`ALWAYS` is valid too.
    """
    if age is None:
        return age
    check_type(age, timedelta, "an age is a timedelta, such as timedelta(days=90)")
    if age < ALWAYS or (age == ALWAYS and not always):
        raise invalid_argument(f"an age must be above 0, such as 90 days, not {age}")
    if age >= datetime.now(UTC) - datetime.min.replace(tzinfo=UTC):
        raise invalid_argument(
            f"an age of {age.days:,} days reaches back before the year 1; give a shorter one, such "
            "as 90 days"
        )
    return age


def parse_age(text: str) -> timedelta:
    """Return the age written as a number and a unit: 90d, 12h, 30m, 45s or 2w; always is 0."""
    if text.strip().lower() == "always":
        return ALWAYS
    match = _AGE.fullmatch(text.strip().lower())
    with suppress(OverflowError):
        if match is not None:
            return check_age(timedelta(**{_UNITS[match[2]]: float(match[1])}))
    raise invalid_argument(
        f"{text!r} is not an age; write a number and a unit: 90d, 12h, 30m, 45s, 2w"
    )
