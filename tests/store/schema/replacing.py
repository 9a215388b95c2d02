"""Replace functions and lock tables for a compatible revision.

No revision of the package needs this yet: the first compatible one moves it into the package.
"""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import LiteralString

from pgsimhash.db.schema_names import in_schema
from pgsimhash.schema.scripts import dropped_by_name, split_statements


def replace_statements(
    script: str, schema: str, *, recreated: Iterable[str], dropped: str = ""
) -> list[str]:
    """Return the statements that replace functions in place, for a compatible revision.

    ``script`` creates them, as ``schema_script`` without tables. Sessions go on to use them
    meanwhile. Grants are repeated. ``recreated`` are the public functions whose parameters or
    results differ, and the public types whose attributes do, with the functions that use them.
    Other types must not differ. ``dropped`` is a pattern of the names to drop afterwards.
    """

    def replaced(statement: str) -> str:
        if "\nCREATE TYPE" in f"\n{statement}":
            return f"DO $$ BEGIN {statement}; EXCEPTION WHEN duplicate_object THEN END $$"
        routine = re.compile(r"^CREATE (?=FUNCTION|PROCEDURE)", re.MULTILINE)
        return routine.sub("CREATE OR REPLACE ", statement, count=1)

    kept, repeated = split_statements(in_schema(_read("grants.sql"), schema))
    return [
        kept,
        *dropped_by_name("|".join(recreated), schema),
        *map(replaced, split_statements(script)),
        repeated,
        *dropped_by_name(dropped, schema),
    ]


def lock_statement(schema: str, *tables: str) -> str:
    """Return a statement that locks tables before a compatible revision changes them."""
    names = "', '".join(f"pgsimhash.{table}" for table in tables)
    return in_schema(_read("lock.sql").replace("${tables}", names).strip(), schema)


def _read(name: str) -> LiteralString:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")
