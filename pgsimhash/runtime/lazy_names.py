"""Names of a module that are loaded when they are first asked for (PEP 562).

Who imports a package gets what they use of it, and pays for nothing else. The names are those that
the module imports ``if TYPE_CHECKING``, so that type checkers read the same list.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module


def loaded_later(module: str) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` for the module with this ``__name__``."""
    there = vars(sys.modules[module])

    @cache
    def homes() -> dict[str, str]:
        import ast

        return {
            alias.name: node.module or ""
            for block in ast.parse(there["__loader__"].get_source(module)).body
            if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING"
            for node in block.body
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        }

    def load(name: str) -> object:
        if name not in homes():
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        # Asked for once: from now on it is found without coming here.
        there[name] = found = getattr(import_module(homes()[name]), name)
        return found

    return load, lambda: sorted({*there, *homes()})
