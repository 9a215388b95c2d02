"""Check, compare, parse and format 64-bit simhashes.

A simhash is an ``int`` with 0 <= x < 2**64 in Python and a ``bigint`` (two's complement) in
SQL. This module is the only place that converts between the two.
"""

from __future__ import annotations

import base64
import operator
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, SupportsIndex, overload

from pgsimhash.errors import check_number, invalid_argument

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["from_bigint", "to_bigint"]

BITS: Final = 64
IDENTICAL_MAX: Final = 3
NEAR_MAX: Final = 8


class Column(Protocol):
    """An array, or a column of a data frame."""

    def __array__(self) -> NDArray[Any]: ...


Band = Literal["duplicate", "near", "different"]

LEVELS: Final[Mapping[str, int]] = {"close": 1, "loose": 6}
"""The largest distances at which 98% and 90% of the bits are equal.

They grade matches of the interoperable scheme; :func:`band` grades copies of pages.
"""

_TOP: Final = 1 << BITS
_SIGN: Final = 1 << (BITS - 1)
_NO_COLUMNS: Final = (str, bytes, bytearray, memoryview, Mapping)
# The thirteenth digit holds four bits, so its value is even.
_BASE32: Final = re.compile("([a-zA-Z2-7]{12}[aAcCeEgGiIkKmMoOqQsSuUwWyY246])(?:===)?")


def check_simhash(value: SupportsIndex) -> int:
    """Return ``value`` as an ``int`` in 0..2**64-1."""
    return checked_integer(
        value,
        _TOP - 1,
        "a simhash is an integer in 0..2**64-1 (fingerprint(html).simhash makes it of a page, "
        "parse_simhash() of digits, pgsimhash.hashing.bits.from_bigint() of a bigint)",
    )


def check_distance(distance: SupportsIndex, largest: int = NEAR_MAX) -> int:
    """Return ``distance`` as an ``int`` in 0..``largest``."""
    return checked_integer(distance, largest, f"a distance is an integer from 0 to {largest}")


def checked_integer(value: SupportsIndex, largest: int, rule: str) -> int:
    """Return ``value`` as an ``int`` in 0..``largest``; ``rule`` begins the error's message."""
    number = _integer(value)
    if number is None or not 0 <= number <= largest:
        raise invalid_argument(f"{rule}, not {value!r:.80}")
    return number


def as_simhashes(values: Iterable[SupportsIndex]) -> NDArray[np.uint64]:
    """Return simhashes as an array of shape (n,), dtype uint64.

    ``values`` are an array, a column of a data frame, or integers. Negative numbers are bigints, as
    PostgreSQL stores them.
    """
    import numpy as np

    column = np.asarray(values) if hasattr(values, "__array__") else None
    if column is not None and column.ndim == 1 and column.dtype.kind in "ui":
        widest = np.int64 if column.dtype.kind == "i" else np.uint64
        return column.astype(widest, copy=False).view(np.uint64)
    refused = None
    # An iterator would be empty when a call is repeated.
    if isinstance(values, (*_NO_COLUMNS, Iterator)) or not isinstance(values, Iterable):
        refused = type(values).__name__
    elif column is not None and column.ndim != 1:
        refused = f"array of shape {column.shape}"
    if refused is not None:
        raise invalid_argument(
            f"simhashes cannot be the {refused}; give a numpy array, a column of a data frame or "
            "a list of integers"
        )
    # PyArrow iterates over scalars of its own.
    rows = getattr(values, "to_pylist", lambda: values)()

    def simhashes() -> Iterator[int]:
        for row, value in enumerate(rows):
            number = _integer(value)
            if number is None or not -_SIGN <= number < _TOP:
                raise invalid_argument(
                    f"row {row} of the simhashes is {value!r}; a simhash is a 64-bit integer: "
                    "omit rows without one, and store simhashes as 64-bit integers, not as "
                    "floats"
                )
            yield number % _TOP

    return np.fromiter(simhashes(), dtype=np.uint64)


def _integer(value: SupportsIndex) -> int | None:
    """Return an integer of any type, or None for a bool and what is no integer."""
    try:
        return None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        return None


def to_bigint(simhash: SupportsIndex) -> int:
    """Return the signed number PostgreSQL stores for ``simhash`` (two's complement)."""
    number = check_simhash(simhash)
    return number - _TOP if number & _SIGN else number


def from_bigint(value: int) -> int:
    """Return the simhash of a PostgreSQL ``bigint``."""
    return int(check_number("a bigint", value, -_SIGN, _SIGN - 1)) % _TOP


def parse_simhash(text: str) -> int:
    """Return the simhash written as 16 hex digits, ``0x...``, a decimal (signed or not), or base32.

    Sixteen hex digits are read as hex, the form that pgsimhash prints; any other run of digits is
    decimal. :func:`from_base32` reads base32. Thirteen digits can be a decimal or base32, so they
    are an ArgumentError.
    """
    word = text.strip() if isinstance(text, str) else ""
    base32 = _BASE32.fullmatch(word)
    if base32:
        if word.isdigit():
            raise invalid_argument(
                f"{text!r} can be a decimal or base32: write it in hex (0x...), or end base32 "
                "with ==="
            )
        return from_base32(word)
    sixteen_digits = len(word) == BITS // 4 and not word.startswith(("-", "+"))
    is_hex = sixteen_digits or word.lower().startswith("0x")
    try:
        number = int(word, 16 if is_hex else 10)
    except ValueError:
        raise invalid_argument(
            f"{text!r} is not a simhash: write 16 hex digits, 0x..., a decimal or base32"
        ) from None
    return from_bigint(number) if number < 0 else check_simhash(number)


def format_simhash(simhash: SupportsIndex) -> str:
    """Return ``simhash`` as 16 lower-case hex digits."""
    return f"{check_simhash(simhash):016x}"


def to_base32(simhash: SupportsIndex) -> str:
    """Return the eight bytes of ``simhash``, big-endian, as 13 digits of base32.

    The alphabet is that of RFC 4648 in lower case, without padding.
    """
    data = check_simhash(simhash).to_bytes(BITS // 8, "big")
    return base64.b32encode(data).decode().rstrip("=").lower()


def from_base32(text: str) -> int:
    """Return the simhash that :func:`to_base32` wrote, in any case, with or without padding."""
    match = _BASE32.fullmatch(text.strip() if isinstance(text, str) else "")
    if match is None:
        raise invalid_argument(
            f"{text!r} is not base32 of eight bytes: 13 digits of a-z and 2-7, the last one of "
            "acegikmoqsuwy246"
        )
    return int.from_bytes(base64.b32decode(f"{match[1].upper()}==="), "big")


@overload
def hamming_distance(a: SupportsIndex, b: SupportsIndex) -> int: ...
@overload
def hamming_distance(
    a: Column | list[int] | SupportsIndex, b: Column | list[int]
) -> NDArray[np.uint8]: ...
@overload
def hamming_distance(a: Column | list[int], b: SupportsIndex) -> NDArray[np.uint8]: ...


def hamming_distance(a: Any, b: Any) -> int | NDArray[np.uint8]:
    """Return the number of bits in which ``a`` and ``b`` differ (0..64).

    Of an array, a list or a column of a data frame and another one, or a simhash, return an array.
    """
    if not (_is_column(a) or _is_column(b)):
        return (check_simhash(a) ^ check_simhash(b)).bit_count()
    import numpy as np

    left, right = (as_simhashes(one if _is_column(one) else [one]) for one in (a, b))
    if len(left) != len(right) and 1 not in (len(left), len(right)):
        raise invalid_argument(f"the columns have {len(left)} and {len(right)} simhashes")
    distances: NDArray[np.uint8] = np.bitwise_count(left ^ right)
    return distances


def _is_column(one: object) -> bool:
    # Numbers of numpy have no dimension.
    return isinstance(one, list) or (hasattr(one, "__array__") and getattr(one, "ndim", 1) > 0)


def band(distance: int) -> Band:
    """Return ``duplicate`` (0-3), ``near`` (4-8) or ``different`` (9 and more)."""
    if distance <= IDENTICAL_MAX:
        return "duplicate"
    return "near" if distance <= NEAR_MAX else "different"
