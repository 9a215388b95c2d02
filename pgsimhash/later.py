"""Names of a module that are loaded when they are first asked for (PEP 562).

Who imports a package gets what they use of it, and pays for nothing else. Type checkers do not run
this: they read the imports below ``if TYPE_CHECKING`` that stand beside it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module


def loaded_later(
    module: str, homes: Mapping[str, Iterable[str]]
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` for a module.

    Args:
        module: its ``__name__``.
        homes: the modules that have the names, as ``import_module`` takes them from within the
            package (``.records``, ``rich.table``), and which names those are.
    """
    home_of = {name: home for home, names in homes.items() for name in names}
    there = vars(sys.modules[module])

    def load(name: str) -> object:
        if name not in home_of:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        # Asked for once: from now on it is found without coming here.
        there[name] = found = getattr(import_module(home_of[name], module), name)
        return found

    return load, lambda: sorted({*there, *home_of})
