"""Provide the version of this package."""

from __future__ import annotations

from importlib.metadata import version

# pyproject.toml defines it, and the installed metadata contains it.
__version__ = version("pgsimhash")
