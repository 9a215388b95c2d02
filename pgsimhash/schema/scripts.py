"""Read the SQL files of the package, and render them for a schema and a layout.

``sql/`` has the current schema, in the order of :data:`SCHEMA_FILES`. In it, ``${name}`` stands for
what depends on the layout.
"""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from hashlib import sha256
from typing import Final

from pgsimhash.db.schema_names import (
    COMPATIBLE_FROM,
    REVISION,
    SCHEMA,
    SCHEMA_FILES,
    in_schema,
    numbered,
    parameters_of,
    read_sql,
)
from pgsimhash.hashing.bits import NEAR_MAX
from pgsimhash.search.layout import DEFAULT_LAYOUT, Block, Layout, Permutation

_FLIPPED: Final = 22  # the widest prefix whose probes are constants

_PART: Final = re.compile(r" *-- Permutation \$\{n\}:\n.*?(?= *-- All permutations)", re.DOTALL)
_TABLE: Final = re.compile(r"CREATE TABLE (\w+\.\w+) \(\n    -- (.+)$", re.MULTILINE)
_COLUMN: Final = re.compile(r"^    (\w+) .* -- (.+)$", re.MULTILINE)
_CREATED: Final = re.compile(
    r"^CREATE (?:FUNCTION|PROCEDURE|TABLE|TYPE) pgsimhash\.(\w+)", re.MULTILINE
)
_STAYS: Final = re.compile(r"^CREATE (?:TABLE|INDEX|FUNCTION pgsimhash\.host_of\b)", re.MULTILINE)
"""What only a revision can change: tables and what their columns depend on."""
_FRAGMENTS: Final = {
    name: (parameter, text)
    for name, parameter, text in re.findall(
        r"^(\w+)(?: (\w+))?:\n +(.*(?:\n +.*)*)", read_sql("fragments.sql"), re.MULTILINE
    )
}
_NUMBERED: Final = re.compile(
    r"^CREATE (?:FUNCTION|TYPE) pgsimhash\.(?!host_of\b|_build\b)(\w+)", re.MULTILINE
)
_USED: Final = re.compile(r"\bpgsimhash\.(\w+)")
_DESCRIBED: Final = re.compile(
    r"^((?:--[^\n]*\n)+)CREATE (FUNCTION|PROCEDURE|TYPE) (pgsimhash\.[a-z]\w*)"
    r"(?:\((.*?)\)\s+(?:RETURNS|LANGUAGE))?",
    re.MULTILINE | re.DOTALL,
)


def in_layout(script: str, layout: Layout) -> str:
    """Return a script of ``sql/`` for a layout: fragments, and a part for each permutation."""

    def parts(template: re.Match[str]) -> str:
        rendered = [_part(template[0], permutation) for permutation in layout.permutations]
        return re.sub(r"(?<=\n) *UNION ALL\n\Z", "", "".join(rendered))

    widest = Permutation(1, (Block(_FLIPPED, 0),))
    values: dict[str, object] = {
        "layout": layout.name,
        "distance": min(NEAR_MAX, layout.distances[-1]),
        "largest": layout.distances[-1],
        "radii": "\n        ".join(
            f"WHEN {distance} THEN '{{{', '.join(map(str, layout.radii(distance)))}}}'::integer[]"
            for distance in layout.distances
        ),
        **{f"flips {radius}": ",".join(map(str, widest.flips(radius))) for radius in (1, 2)},
    }
    return _filled(_PART.sub(parts, _with_fragments(script)), values)


def _with_fragments(script: str) -> str:
    """Return a script with the text of ``fragments.sql`` for each ``${name value}``."""

    def text(used: re.Match[str]) -> str:
        parameter, template = _FRAGMENTS[used[1]]
        filled = re.sub(rf"\b{parameter}\b", used[2], template) if parameter else template
        return _with_fragments(filled)

    return re.sub(rf"\$\{{({'|'.join(_FRAGMENTS)})(?: ([^}}]+))?\}}", text, script)


def _part(template: str, permutation: Permutation) -> str:
    template = re.sub(
        r"\$\{prefix of ([\w.]+)\}", lambda found: prefix_of(permutation, found[1]), template
    )
    runs = ((block.shift + block.width - 1, block.shift) for block in permutation.leading)
    bits = " and ".join(f"bits {first} to {last}" for first, last in runs)
    return _filled(template, {"n": permutation.number, "width": permutation.width, "bits": bits})


def _filled(template: str, values: Mapping[str, object]) -> str:
    for name, value in values.items():
        template = template.replace(f"${{{name}}}", str(value))
    return template


def prefix_of(permutation: Permutation, simhash: str, cast: str = "") -> str:
    """Return the SQL expression of the prefix of a simhash, in parentheses.

    ``cast`` follows each mask: with "::bigint" it is the expression that PostgreSQL reports.
    """
    blocks = [
        (f"(({simhash} >> {block.shift}) & {block.mask}{cast})", position)
        for block, position in permutation.places
    ]
    moved = [f"({block} << {position})" if position else block for block, position in blocks]
    return moved[0] if len(moved) == 1 else f"({' | '.join(moved)})"


def split_statements(script: str) -> list[str]:
    """Return the statements of a script, each of which ends with a paragraph."""
    return [part.strip().removesuffix(";") for part in script.split(";\n\n") if part.strip()]


def _with_comments(statement: str) -> Iterator[str]:
    """Yield a statement, then a COMMENT ON for each comment that describes what it creates.

    Of a public function or type, that is the first paragraph of the comment above it.
    """
    yield statement
    if begun := _TABLE.search(statement):
        table, comment = begun.groups()
        yield _comment_on(f"TABLE {table}", comment)
        for column, comment in _COLUMN.findall(statement, begun.end()):
            yield _comment_on(f"COLUMN {table}.{column}", comment)
    elif described := _DESCRIBED.search(statement):
        comment, kind, name, parameters = described.groups()
        types = [kind + array for _, _, kind, array in parameters_of(parameters or "")]
        arguments = "" if kind == "TYPE" else f"({', '.join(types)})"
        words = comment.partition("\n--\n")[0].replace("\n-- ", " ").removeprefix("-- ").strip()
        yield _comment_on(f"{kind} {name}{arguments}", words)


def _comment_on(target: str, comment: str) -> str:
    text = comment.replace("'", "''")
    return f"COMMENT ON {target} IS\n    '{text}'"


def _statements(layout: Layout = DEFAULT_LAYOUT, *, tables: bool = True) -> Iterator[str]:
    """Yield the statements of the current schema, or only those of its functions and types."""
    for file in SCHEMA_FILES:
        for statement in split_statements(in_layout(read_sql(file), layout)):
            if tables or not _STAYS.search(statement):
                yield statement


def _with_numbers(statement: str) -> Iterator[str]:
    """Yield what creates a function or type under its number, and if it is public, its name.

    The numbered one uses only numbered ones. Of others, the public one uses only the private.
    """
    created = _NUMBERED.search(statement)
    if created is not None:
        # A parameter can be qualified with the name of its function.
        own = re.compile(rf"(?<![\w.]){created[1]}(?=\.)")
        yield _USED.sub(_number_of, own.sub(numbered(created[1]), statement))
    if created is None or not created[1].startswith("_"):
        yield _USED.sub(lambda used: _number_of(used) if used[1][0] == "_" else used[0], statement)


def _number_of(used: re.Match[str]) -> str:
    return f"pgsimhash.{numbered(used[1])}" if used[1] in _numbered_names() else used[0]


@cache
def _numbered_names() -> frozenset[str]:
    return frozenset(name for file in SCHEMA_FILES for name in _NUMBERED.findall(read_sql(file)))


def digests() -> list[str]:
    """Return the digests of the tables and of the functions, for any schema and layout.

    Comments and white space do not change a table.
    """
    tables = [re.sub(r"--.*|\s", "", each) for each in _statements() if _STAYS.search(each)]
    parts = tables, _statements(tables=False)
    return [sha256("\0".join(part).encode()).hexdigest()[:16] for part in parts]


def drop_statements(schema: str = SCHEMA, *, tables: bool = True) -> list[str]:
    """Return the statements that drop all objects of the package from a schema, or functions."""
    names = {name for each in _statements(tables=tables) for name in _CREATED.findall(each)}
    # Also the numbered functions and types of other revisions and builds.
    return dropped_by_name("|".join(sorted({*names, r"_\w+_\d+"})), schema)


def dropped_by_name(names: str, schema: str) -> list[str]:
    """Return the statements that drop the objects whose names match a pattern."""
    drop = in_schema(read_sql("drop.sql"), schema)
    return [f"SET LOCAL deployed.names = '{names}'", drop] if names else []


def schema_script(
    schema: str = SCHEMA, layout: Layout = DEFAULT_LAYOUT, *, tables: bool = True
) -> str:
    """Return the script of the whole current schema, or of its functions and types."""
    statements = (
        commented.strip()
        for statement in _statements(layout, tables=tables)
        for deployed in _with_numbers(statement)
        for commented in _with_comments(deployed)
    )
    script = in_schema(";\n\n".join(statements) + ";\n", schema)
    build = f"{' '.join(digests())} revision {REVISION} compatible_from {COMPATIBLE_FROM}"
    return script.replace("${build}", build)
