"""A table of clusters in the project's models and migrations, as in docs/alembic.md."""

from __future__ import annotations

import pytest

from pgsimhash import analysis, connect
from pgsimhash.db import migrate
from tests.alembic.conftest import Project
from tests.manual import blocks

(MODEL,) = (block for block in blocks("alembic.md", "python") if "class NewsCluster" in block)

PAGES = [("https://a.example/", 0), ("https://b.example/", 1), ("https://c.example/", 2**64 - 1)]


@pytest.fixture
def with_model(project: Project) -> Project:
    """The project with the model, and a store that has a cluster."""
    (project.folder / "clusters.py").write_text(MODEL, encoding="utf-8")
    env = project.folder / "history" / "env.py"
    env.write_text(env.read_text().replace("from models import Base", "from clusters import Base"))
    migrate.upgrade(project.dsn)
    project.alembic("upgrade", "head")
    with connect(project.dsn) as store:
        list(store.add_many(PAGES))
    return project


@pytest.mark.parametrize("include_schemas", ["False", "True"])
def test_it_survives_autogenerate(with_model: Project, include_schemas: str) -> None:
    with_model.configure(include_schemas=include_schemas)
    with_model.alembic("revision", "--autogenerate", "-m", "clusters")
    with_model.alembic("upgrade", "head")
    with_model.alembic("check")
    with connect(with_model.dsn) as store:
        for _ in range(2):
            assert analysis.save_clusters(store, "public.news_clusters", 3, replace=True) == 1
        with_model.alembic("check")
        rows = with_model.rows(
            "SELECT cluster_id, page_id, url, simhash, canonical FROM news_clusters ORDER BY 2"
        )
        assert rows == [
            (1, 1, "https://a.example/", 0, True),
            (1, 2, "https://b.example/", 1, False),
        ]
        # The index, and the revision that created the table, belong to the project.
        indexes = with_model.rows("SELECT indexname FROM pg_indexes WHERE tablename ~ 'clusters'")
        assert ("ix_news_clusters_cluster_id",) in indexes
    with_model.alembic("downgrade", "0001")
    assert "public.news_clusters" not in with_model.tables()


def test_without_a_model_autogenerate_proposes_to_drop_it(with_model: Project) -> None:
    with_model.alembic("revision", "--autogenerate", "-m", "clusters")
    with_model.alembic("upgrade", "head")
    with connect(with_model.dsn) as store:
        analysis.save_clusters(store, "public.others", 3, replace=True)
    assert "('remove_table', Table('others'" in with_model.alembic("check", fails=True)
