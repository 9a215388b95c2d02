"""Load the names of a module when they are first used (PEP 562).

So importing a package only costs what is used. The names are those that the module imports
``if TYPE_CHECKING``, so type checkers read the same list.
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
        # Later accesses find the attribute without this function.
        there[name] = value = getattr(import_module(homes()[name]), name)
        return value

    return load, lambda: sorted({*there, *homes()})
