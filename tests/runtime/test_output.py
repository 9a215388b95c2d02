"""What a notebook shows of a result is short, and escaped."""

from pgsimhash import Store, analysis


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
