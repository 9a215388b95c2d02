"""The memory and cores of the machine, the default number of processes, files and notebooks."""

import os
from pathlib import Path

import psutil
import pytest

from pgsimhash import Store, analysis
from pgsimhash.cli import options
from pgsimhash.cli.options import choose_jobs
from pgsimhash.runtime import machine
from pgsimhash.runtime.output import replacing


def write_groups(
    monkeypatch: pytest.MonkeyPatch, folder: Path, own: str, files: dict[str, str]
) -> None:
    for name, text in files.items():
        path = folder / "tree" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (folder / "own").write_text(own)
    monkeypatch.setattr(machine, "_GROUPS", folder / "tree")
    monkeypatch.setattr(machine, "_OWN_GROUP", folder / "own")


CPU, MOST = "cpu.max", "memory.max"


@pytest.mark.parametrize(("own", "files", "cores"), [
    ("0::/", {}, 8), ("0::/", {CPU: "max 100000\n"}, 8), ("0::/", {CPU: "200000 100000\n"}, 2),
    ("0::/", {CPU: "150000 100000\n"}, 2), ("0::/", {CPU: "10000 100000\n"}, 1),
    ("0::/", {CPU: "6400000 100000\n"}, 8), ("0::/", {CPU: "nonsense"}, 8),
    # The limit of a group includes the groups below it.
    ("0::/a/b", {"a/cpu.max": "300000 100000", "a/b/cpu.max": "max 100000"}, 3),
    # In a container the name may be that of the host.
    ("0::/docker/abc", {CPU: "400000 100000"}, 4),
    # Groups of version 1 are ignored.
    ("3:cpu:/x\n0::/", {CPU: "500000 100000\n"}, 5), ("1:cpu:/", {CPU: "100000 100000\n"}, 8),
])  # fmt: skip
def test_a_container_has_the_cores_it_is_given(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, own: str, files: dict[str, str], cores: int
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    write_groups(monkeypatch, tmp_path, f"{own}\n", files)
    assert machine.usable_cores() == cores
    (tmp_path / "own").unlink()
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: 6)
    assert machine.usable_cores() == 6


@pytest.mark.parametrize(("own", "files", "left"), [
    ("0::/\n", {MOST: "2147483648\n"}, 2 << 30),
    # The limit of a group includes the groups below it.
    ("0::/a/b\n", {"a/memory.max": "1073741824\n", "a/b/memory.max": "max\n"}, 1 << 30),
    # In a container the name may be that of the host.
    ("0::/docker/abc\n", {MOST: "1048576"}, 1 << 20),
    ("0::/\n", {MOST: str(2**70)}, None),
    ("0::/\n", {MOST: "max\n"}, None), ("0::/\n", {MOST: ""}, None), ("0::/\n", {}, None),
    ("", {}, None),
])  # fmt: skip
def test_a_container_has_the_memory_it_is_given(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    own: str,
    files: dict[str, str],
    left: int | None,
) -> None:
    limit = psutil.virtual_memory().total if left is None else left
    write_groups(monkeypatch, tmp_path, own, files)
    assert machine.memory_bytes() == limit


def test_the_default_number_of_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    for asked, pages, usable, jobs in (
        (3, 10, 1, 3), (None, 199, 4, 1), (None, 200, 4, 4), (None, None, 4, 4),
        (None, None, 64, 8), (64, None, 4, 64),
    ):  # fmt: skip
        monkeypatch.setattr(options, "usable_cores", lambda usable=usable: usable)
        assert choose_jobs(asked, pages) == jobs


def test_a_file_is_replaced_once_the_new_one_is_complete(tmp_path: Path) -> None:
    path, link, other = (tmp_path / name for name in ("it", "link", "other"))
    path.write_text("before")
    path.chmod(0o640)
    link.symlink_to(path)
    with pytest.raises(ZeroDivisionError), replacing(link) as file:
        assert file.write(b"part") / 0
    with replacing(link) as file:
        file.write(b"after")
        assert path.read_text() == "before"
    assert path.read_text() == "after"
    # It keeps its mode, and a link its target; a new one has the default mode.
    assert link.is_symlink()
    assert path.stat().st_mode & 0o777 == 0o640
    with replacing(other):
        pass
    assert {*tmp_path.iterdir()} == {path, link, other}
    path.unlink()
    path.touch()
    assert other.stat().st_mode == path.stat().st_mode
    with pytest.raises(ZeroDivisionError), replacing(tmp_path / "new") as file:
        assert file.write(b"part") / 0
    assert {*tmp_path.iterdir()} == {path, link, other}


def test_results_at_a_prompt(store: Store) -> None:
    for number, simhash in enumerate((0, 1, 2**63 - 1)):
        store.add_page(f"https://a.example/<{number}>", simhash)
    assert repr(store) == "<Store: the collection 'default' by pgsimhash-article-1>"
    (cluster,) = store.clusters()
    assert repr(cluster).endswith(": 2 pages like https://a.example/<0>>")
    assert repr(analysis.report(store)) == "<default: 1 in 3 pages is a copy>"
    explained = analysis.compare_pages(
        "https://a.example/<0>", "https://a.example/<1>", store=store
    )
    assert repr(explained) == f"<pgsimhash-article-1: {explained.headline}>"
    texts = {"a": ["Blue mug, 300 ml"], "b": ["Mug, blue, 300ml"], "label": ["same"]}
    evaluation = analysis.evaluate(texts, scheme="pgsimhash-short-1")
    assert repr(evaluation) == f"<pgsimhash-short-1: {evaluation.sentence}>"
