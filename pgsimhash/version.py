"""The version of this package."""

from __future__ import annotations

from importlib.metadata import version

# It stands in pyproject.toml, and so in what the package was installed with.
__version__ = version("pgsimhash")
