"""How loops are compiled: by numba (extra ``fast``), when first called, and kept on disk."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

from numba import njit

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
