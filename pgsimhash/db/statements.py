"""Read and render the SQL files of the package.

``sql/`` has the current schema, in the order of :data:`SCHEMA_FILES`. ``sql/layout.sql`` is a Mako
template of the objects of a layout (Alembic depends on Mako anyway). ``sql/queries/`` has the
statements that the package sends, by name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final, Literal, LiteralString, cast

from pgsimhash.db.schema_names import SCHEMA, in_schema, schema_of
from pgsimhash.search.layout import COLLECTION_SHIFT, DEFAULT_LAYOUT, Layout
from pgsimhash.search.permutation import Permutation

if TYPE_CHECKING:
    import psycopg
    from mako.template import Template
    from psycopg.rows import RowFactory

SCHEMA_FILES: Final = (
    "tables.sql",
    "simhash.sql",
    "collections.sql",
    "write.sql",
    "layout.sql",
    "search.sql",
    "marks.sql",
    "policies.sql",
    "delete.sql",
    "decide.sql",
    "add.sql",
    "check.sql",
    "roles.sql",
)
"""The files of the schema, in the order of deployment."""

LayoutPart = Literal["table", "indexes", "functions", "lookup", "row"]
"""The parts of ``sql/layout.sql``."""

_TABLE: Final = re.compile(r"CREATE TABLE (\w+)\.(\w+) \(\n    -- (.+)$", re.MULTILINE)
_COLUMN: Final = re.compile(r"^    (\w+) .* -- (.+)$", re.MULTILINE)
_CREATED: Final = re.compile(
    r"^CREATE (?:FUNCTION|PROCEDURE|TABLE|TYPE) pgsimhash\.(\w+)(\$\{layout)?", re.MULTILINE
)
_NAME: Final = re.compile(r"^-- (\w+) --$", re.MULTILINE)


def read_sql(path: str) -> LiteralString:
    """Return the text of the file ``sql/<path>``."""
    # The files ship with the package, so they are trusted like literals.
    return files("pgsimhash.sql").joinpath(path).read_text(encoding="utf-8")


def query(name: str, connection: psycopg.BaseConnection[Any]) -> LiteralString:
    """Return the statement below ``-- name --`` in a file of ``sql/queries``.

    It is adapted to the schema of the connection.
    """
    return query_in(name, schema_of(connection))


def fetch(
    connection: psycopg.Connection[Any],
    name: str,
    parameters: Mapping[str, Any] | None = None,
    rows: RowFactory[Any] | None = None,
    *,
    binary: bool = False,
) -> list[Any]:
    """Return all rows of a statement, by default as tuples."""
    from psycopg.rows import tuple_row

    with connection.cursor(row_factory=rows or tuple_row, binary=binary) as cursor:
        return cursor.execute(query(name, connection), parameters).fetchall()


@cache
def query_in(name: str, schema: str) -> LiteralString:
    """Return the statement for a schema by its name."""
    return in_schema(queries()[name], schema)


@cache
def queries() -> dict[str, LiteralString]:
    """Return all statements, by name, unadapted."""
    statements: dict[str, LiteralString] = {}
    for file in files("pgsimhash.sql.queries").iterdir():
        if file.name.endswith(".sql"):
            _, *parts = _NAME.split(file.read_text(encoding="utf-8"))
            for name, text in zip(parts[::2], parts[1::2], strict=True):
                assert name not in statements, f"two queries are called {name}"
                statements[name] = cast("LiteralString", text.strip())
    return statements


def layout_statements(
    part: LayoutPart,
    layout: Layout,
    schema: str = SCHEMA,
) -> list[str]:
    """Return the statements of a part of ``sql/layout.sql``, rendered for ``layout``.

    Args:
        part: the part.
        layout: the layout.
        schema: the schema of the objects.
    """
    rendered: str = (
        _layout_template().get_def(part).render(layout=layout, collection_shift=COLLECTION_SHIFT)
    )
    return [
        statement
        for part in split_statements(in_schema(rendered, schema))
        for statement in _with_comments(part)
    ]


def prefix_expression(permutation: Permutation) -> str:
    """Return the SQL expression of a generated prefix column."""
    definition = _layout_template().get_def("scoped_prefix")
    rendered: str = definition.render(permutation=permutation, collection_shift=COLLECTION_SHIFT)
    return rendered


def split_statements(script: str) -> list[str]:
    """Return the statements of a script, each of which ends with a paragraph."""
    return [part.strip().removesuffix(";") for part in script.split(";\n\n") if part.strip()]


def schema_comments() -> dict[tuple[str, str], str]:
    """Return the comments in ``sql/tables.sql`` by (table, column); "" is the table's own."""
    return {
        (table, column): comment
        for statement in split_statements(read_sql("tables.sql"))
        for _, table, column, comment in _comments(statement)
    }


def _comments(statement: str) -> Iterator[tuple[str, str, str, str]]:
    """Yield schema, table, column and comment for the comments in a CREATE TABLE."""
    if begun := _TABLE.search(statement):
        schema, table, comment = begun.groups()
        yield schema, table, "", comment
        for column, comment in _COLUMN.findall(statement, begun.end()):
            yield schema, table, column, comment


def _with_comments(statement: str) -> Iterator[str]:
    """Yield a statement, then a COMMENT ON for each comment in its table."""
    yield statement
    for schema, table, column, comment in _comments(statement):
        kind, name = ("COLUMN", f".{column}") if column else ("TABLE", "")
        text = comment.replace("'", "''")
        yield f"COMMENT ON {kind} {schema}.{table}{name} IS\n    '{text}'"


def drop_statements(schema: str = SCHEMA) -> list[str]:
    """Return the statements that drop all objects of the package from a schema."""
    names = {
        f"{name}(_[0-9][a-z0-9_]*)?" if of_layout else name
        for file in SCHEMA_FILES
        for name, of_layout in _CREATED.findall(read_sql(file))
    } | {"simhashes_[0-9][a-z0-9_]*"}
    return [
        f"SET LOCAL deployed.names = '{'|'.join(sorted(names))}'",
        in_schema(read_sql("drop.sql"), schema),
    ]


def schema_script(schema: str = SCHEMA) -> str:
    """Return the script of the whole current schema, with the default layout."""
    script = "".join(f"{statement.strip()};\n\n" for statement in _schema()).rstrip() + "\n"
    return in_schema(script, schema)


def _schema() -> Iterator[str]:
    for file in SCHEMA_FILES:
        if file == "layout.sql":
            # The default layout has its table in tables.sql and its lookup in search.sql.
            for part in ("indexes", "functions", "row"):
                yield from layout_statements(part, DEFAULT_LAYOUT)
        else:
            for statement in split_statements(read_sql(file)):
                yield from _with_comments(statement)


@cache
def _layout_template() -> Template:
    from mako.template import Template

    # Mako can escape for HTML; SQL needs no escaping here.
    return Template(read_sql("layout.sql"), strict_undefined=True)  # noqa: S702
