"""How loops are compiled: by numba (extra ``fast``), when first called, and kept on disk."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

import numpy as np
from numba import njit
from numpy.typing import NDArray

_Function = TypeVar("_Function", bound=Callable[..., object])


def compiled(function: _Function) -> _Function:
    """Return ``function`` as machine code.

    What is kept on disk is renewed when the function's own file changes, not when another does
    that it takes functions or constants from.
    """
    try:
        return cast(_Function, njit(cache=True, nogil=True)(function))
    except RuntimeError:
        # There is no directory that numba may write to.
        return cast(_Function, njit(nogil=True)(function))


@compiled
def load_eight(data: NDArray[np.uint8], start: int) -> np.uint64:
    """Return the eight bytes from ``start`` on as a little-endian number.

    Nothing checks that ``start`` is not negative and that ``data`` has eight bytes from there on.
    """
    # Unsigned indexes and no loop: this becomes one load.
    at = np.uint64(start)
    return (
        np.uint64(data[at])
        | np.uint64(data[at + np.uint64(1)]) << np.uint64(8)
        | np.uint64(data[at + np.uint64(2)]) << np.uint64(16)
        | np.uint64(data[at + np.uint64(3)]) << np.uint64(24)
        | np.uint64(data[at + np.uint64(4)]) << np.uint64(32)
        | np.uint64(data[at + np.uint64(5)]) << np.uint64(40)
        | np.uint64(data[at + np.uint64(6)]) << np.uint64(48)
        | np.uint64(data[at + np.uint64(7)]) << np.uint64(56)
    )
