"""Provide the version of this package."""

from importlib.metadata import version

# pyproject.toml defines it, and the installed metadata contains it.
__version__ = version("pgsimhash")
