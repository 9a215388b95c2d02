"""The package as a made-up next release has it, with a compatible revision 0002.

``python -m tests.store.schema.next_release`` is its command line.
"""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any
from unittest import mock

from alembic.script import ScriptDirectory

from pgsimhash.db import schema_names, statements
from pgsimhash.schema import deployed, migrate, scripts

NOTE = """
-- Writes a note on the versions of a page.
CREATE FUNCTION pgsimhash.note(url text, note text, collection text DEFAULT 'default') RETURNS void
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    UPDATE pgsimhash.pages AS p
    SET note = note.note
    WHERE p.collection_id = pgsimhash._id_of(collection) AND p.url = note.url;
END
$$;
"""

CHANGES = {
    "tables.sql": [
        (
            "keep boolean,\n    page_id bigint, original_page_id bigint\n",
            "keep boolean,\n    page_id bigint, original_page_id bigint, note text\n",
        ),
    ],
    "batch.sql": [("    )::pgsimhash.verdict,", "    , NULL)::pgsimhash.verdict,")],
    "pages.sql": [
        (
            "distance smallint, covered boolean, selectors integer\n)",
            "distance smallint, covered boolean, selectors integer, note text\n)",
        ),
        ("p.covered, p.selectors\n", "p.covered, p.selectors, p.note\n"),
        ("-- Reads of pages", NOTE.lstrip() + "\n-- Reads of pages"),
    ],
    "layout.sql": [
        (
            "CREATE FUNCTION pgsimhash.find(\n    simhash bigint, distance integer DEFAULT NULL, "
            "collection text DEFAULT 'default'\n",
            "CREATE FUNCTION pgsimhash.find(\n    simhash bigint, distance integer DEFAULT NULL, "
            "collection text DEFAULT 'default',\n    max_matches bigint DEFAULT NULL\n",
        ),
        (
            "_matches(ARRAY[simhash], distance, collection) AS m;",
            "_matches(ARRAY[simhash], distance, collection) AS m LIMIT max_matches;",
        ),
    ],
}

_files = files
_known = migrate.known_revisions


def _revisions() -> ScriptDirectory:
    own = Path(__file__).parent
    package = _known()
    folders = [Path(package.dir) / "versions", own / "compatible_revision"]
    return ScriptDirectory(package.dir, version_locations=folders)


def _changed_files(folder: Path) -> None:
    for file in (each for each in _files("pgsimhash.sql").iterdir() if each.name.endswith(".sql")):
        text = file.read_text(encoding="utf-8")
        for old, new in CHANGES.get(file.name, []):
            assert old in text, old
            text = text.replace(old, new, 1)
        (folder / file.name).write_text(text, encoding="utf-8")


@contextmanager
def package_at(revision: str) -> Iterator[None]:
    """Let the package be the present one, at 0001, or the next one, at 0002."""
    with (
        tempfile.TemporaryDirectory() as name,
        mock.patch.multiple(schema_names, REVISION=revision),
    ):
        _changed_files(Path(name))

        def files_of(package: Any) -> Any:
            is_changed = revision == "0002" and package == "pgsimhash.sql"
            return Path(name) if is_changed else _files(package)

        with (
            mock.patch.object(schema_names, "files", files_of),
            mock.patch.object(scripts, "REVISION", revision),
            mock.patch.object(deployed, "REVISION", revision),
            mock.patch.object(migrate, "known_revisions", _revisions),
        ):
            _forget()
            try:
                yield
            finally:
                _forget()


def _forget() -> None:
    """Forget what was read from the files of the other release."""
    statements._functions.cache_clear()
    statements.call_of.cache_clear()
    scripts._numbered_names.cache_clear()
    deployed._own_digests.cache_clear()


if __name__ == "__main__":
    from pgsimhash.cli import main
    from tests.store.schema import next_release

    with next_release.package_at("0002"):
        main()
