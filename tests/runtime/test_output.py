"""A file is replaced as a whole; what a notebook shows of a result is short, and escaped."""

from pathlib import Path

import pytest

from pgsimhash import Store, analysis
from pgsimhash.runtime.output import replacing


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


def test_results_in_a_notebook(store: Store) -> None:
    for number, simhash in enumerate((0, 1, 2**63 - 1)):
        store.add(f"https://a.example/<{number}>", simhash)
    assert repr(store) == "<Store: the collection 'default' by pgsimhash-article-1>"
    (cluster,) = store.clusters()
    assert repr(cluster).endswith(": 2 pages like https://a.example/<0>>")
    assert "2 pages like https://a.example/&lt;0&gt;" in cluster._repr_html_()
    assert "<td>https://a.example/&lt;1&gt;</td>" in cluster._repr_html_()
    assert repr(analysis.report(store)) == "<default: 3 pages, 1 duplicates in 1 clusters>"
    explained = analysis.explain(store, "https://a.example/<0>", "https://a.example/<1>")
    assert repr(explained) == f"<pgsimhash-article-1: {explained.sentence}>"
    texts = {"a": ["Blue mug, 300 ml"], "b": ["Mug, blue, 300ml"], "label": ["same"]}
    evaluation = analysis.evaluate(texts, scheme="pgsimhash-short-1")
    assert repr(evaluation) == f"<pgsimhash-short-1: {evaluation.sentence}>"
    assert "<td>16</td><td>100.0%</td><td>100.0%</td><td>1</td>" in evaluation._repr_html_()
