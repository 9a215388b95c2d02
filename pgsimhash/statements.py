"""The SQL files of the package, read and rendered.

Queries (``sql/queries``) are plain text. Schema files (``sql/v<revision>``) are Mako templates:
Mako is there already, Alembic needs it, and its line-based control flow keeps them readable SQL.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Final, LiteralString

from pgsimhash.bits import LEVELS, NEAR_MAX, level_distance
from pgsimhash.layout import COLLECTION_MAX, COLLECTION_SHIFT, DISTANCE_MAX, Layout
from pgsimhash.permutation import Permutation

if TYPE_CHECKING:
    from mako.lookup import TemplateLookup

SCHEMA: Final = "pgsimhash"
"""The schema that all tables are in."""

LAYOUT_PARTS: Final = ("simhashes", "indexes", "lookups")
"""The schema files that are rendered once for each layout in use."""


def _read(path: str) -> LiteralString:
    # The files ship with the package, so they are as literal as a string in this module.
    return files("pgsimhash.sql").joinpath(path).read_text(encoding="utf-8")


@cache
def query(name: str) -> LiteralString:
    """Return the statement in ``sql/queries/<name>.sql``."""
    return _read(f"queries/{name}.sql")


def schema_statements(
    path: str, layout: Layout, *, indexed: bool = True, concurrently: bool = False
) -> list[str]:
    """Return the statements of the schema file ``sql/<path>``, rendered for ``layout``.

    Args:
        path: such as ``v0001/lookups.sql``.
        layout: what to render for.
        indexed: whether the layout counts as indexed from the beginning.
        concurrently: whether indexes are built beside writers, each outside a transaction.
    """
    script = (
        _templates()
        .get_template(path)
        .render(
            layout=layout,
            indexed=indexed,
            concurrently=concurrently,
            collection_shift=COLLECTION_SHIFT,
            collection_max=COLLECTION_MAX,
            near_max=NEAR_MAX,
            distance_max=DISTANCE_MAX,
            level_distances={name: level_distance(name) for name in LEVELS},
        )
    )
    # Each statement ends with a semicolon at the end of a paragraph.
    return [part.strip().removesuffix(";") for part in script.split(";\n\n") if part.strip()]


def prefix_expression(permutation: Permutation) -> str:
    """Return the SQL expression that a permutation's column is generated from."""
    definition = _templates().get_template("v0001/prefix.sql").get_def("scoped_prefix")
    rendered: str = definition.render(permutation=permutation, collection_shift=COLLECTION_SHIFT)
    return rendered


@cache
def _templates() -> TemplateLookup:
    # Mako takes a while to import, and a database that is deployed needs none of it.
    from mako.lookup import TemplateLookup

    # It can escape for HTML, and this is SQL.
    return TemplateLookup([str(files("pgsimhash.sql"))], strict_undefined=True)
