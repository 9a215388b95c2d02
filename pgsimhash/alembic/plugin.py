"""The plugin that Alembic loads through the entry point ``alembic.plugins``.

It is loaded with Alembic in every project, while Alembic is half imported. So it imports parts of
Alembic only when they are used.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import ModuleType
from typing import TYPE_CHECKING, Final, Literal

from sqlalchemy import text

from pgsimhash.db.schema_names import configured_schema

if TYPE_CHECKING:
    from alembic.autogenerate.api import AutogenContext
    from alembic.operations.ops import UpgradeOps
    from alembic.runtime.plugins import Plugin
    from alembic.util import PriorityDispatchResult

_DEPLOYED: Final = text(
    "SELECT n.nspname FROM pg_catalog.pg_namespace AS n WHERE 4 = ("
    "SELECT pg_catalog.count(*) FROM pg_catalog.pg_class AS c WHERE c.relnamespace = n.oid "
    "AND c.relkind = 'r' AND c.relname IN ('collections', 'pages', 'last_seen', 'sightings'))"
)
# Tables that the search_path shows count as the project's own.
_HIDE: Final = text(
    "SELECT pg_catalog.set_config('search_path', coalesce(pg_catalog.string_agg("
    "pg_catalog.quote_ident(p.name), ', '), ''), true) "
    "FROM pg_catalog.unnest(pg_catalog.current_schemas(false)) AS p (name) "
    "WHERE p.name <> ALL (CAST(:hidden AS text[]))"
)


def setup(plugin: Plugin) -> None:
    """Exclude the schema from autogenerate."""
    from alembic.util import DispatchPriority

    plugin.add_autogenerate_comparator(
        pass_over, "schema", qualifier="postgresql", priority=DispatchPriority.FIRST
    )


def pass_over(
    context: AutogenContext, _found: UpgradeOps, schemas: set[str | None]
) -> PriorityDispatchResult:
    """Hide deployed tables from autogenerate, and render SIMHASH columns."""
    from alembic.util import PriorityDispatchResult

    render = context.opts.get("render_item")

    def rendered(kind: str, item: object, asking: AutogenContext) -> str | Literal[False]:
        found: str | Literal[False] = render(kind, item, asking) if render else False
        # A project can only have a SIMHASH if this module is loaded.
        module = sys.modules.get("pgsimhash.sqlalchemy.simhash_type")
        is_own = kind == "type" and module is not None and isinstance(item, module.SIMHASH)
        if found is not False or not is_own:
            return found
        asking.imports.add("import pgsimhash.sqlalchemy")
        # The revision has the prefix columns and indexes too, so the type needs no layout.
        return "pgsimhash.sqlalchemy.SIMHASH()"

    context.opts["render_item"] = rendered
    assert context.connection is not None
    hidden = {configured_schema(), *context.connection.scalars(_DEPLOYED)}
    context.connection.execute(_HIDE, {"hidden": list(hidden)})
    schemas -= hidden
    return PriorityDispatchResult.CONTINUE


class _OfItself(ModuleType):
    """Alembic 1.19 expects a list of modules; later versions expect the module."""

    def __iter__(self) -> Iterator[ModuleType]:
        yield self


sys.modules[__name__].__class__ = _OfItself
