"""A job with its own rows: after any interruption, the next run makes its rows and ours agree."""

import signal
from itertools import islice

import psycopg
import pytest

from pgsimhash import Store, StoreError, connect
from tests.database import run_sql
from tests.forks import forking
from tests.refusals import because
from tests.store.write.ingest_job import BATCH, JOBS, pages, run


def rows(connection: psycopg.Connection) -> tuple[list[tuple[str, int]], list[tuple[str, int]]]:
    """The caller's rows; and the package's newest rows worth keeping by URL."""
    articles = connection.execute("SELECT url, page_id FROM articles ORDER BY url").fetchall()
    kept = connection.execute(
        "SELECT url, max(page_id) FROM pgsimhash.pages WHERE distance IS NULL "
        "GROUP BY url ORDER BY url"
    ).fetchall()
    return articles, kept


@pytest.fixture
def articles(connection: psycopg.Connection, store: Store) -> None:
    connection.execute("CREATE TABLE articles (url text PRIMARY KEY, page_id bigint NOT NULL)")
    connection.commit()


@pytest.mark.usefixtures("articles")
@pytest.mark.parametrize("job", sorted(JOBS))
def test_after_a_crash_anywhere_and_another_run_both_tables_agree(
    dsn: str, connection: psycopg.Connection, job: str
) -> None:
    run(dsn, job, stories=7)
    with forking("tests.store.pages", "psycopg", "pgsimhash.store.store") as program:
        # Points of one run after the other: the crash happens later each time, ten times.
        for point in (1, 2, 3, 5, 8, 9, 12, 16, 21, 30):
            done = program("tests.store.write.ingest_job", dsn, job, str(point))
            assert done.returncode == -signal.SIGKILL
            theirs, ours = rows(connection)
            assert theirs == ours
            connection.rollback()
    run(dsn, job)
    theirs, ours = rows(connection)
    assert theirs == ours
    assert [url for url, _ in theirs] == sorted(f"https://a.example/{n}" for n in range(14))
    (versions,) = connection.execute("SELECT count(*) FROM pgsimhash.pages").fetchone() or (0,)
    # Stories, copies, and new versions of two that had grown since, and of the copy of one.
    assert versions == 14 + 5 + 2 + 1


@pytest.mark.usefixtures("articles")
def test_a_failed_insert_rolls_back_its_page_and_the_loop_continues(
    connection: psycopg.Connection,
) -> None:
    connection.execute("INSERT INTO articles VALUES ('https://a.example/2', 0)")
    connection.commit()
    store = connect(connection)
    lost = []
    for verdict in store.ingest_many(pages()):
        try:
            if verdict.keep and verdict.distance is None:
                connection.execute(
                    "INSERT INTO articles VALUES (%s, %s)", [verdict.url, verdict.page_id]
                )
        except psycopg.errors.UniqueViolation:
            connection.rollback()
            lost.append(verdict.url)
        else:
            connection.commit()
    assert lost == ["https://a.example/2"]
    assert store.get(lost[0]) is None
    assert [verdict.keep for verdict in store.ingest_many(pages()) if verdict.keep] == [True]


def test_a_transaction_that_ends_within_a_batch_is_refused(
    connection: psycopg.Connection, store: Store
) -> None:
    own = connect(connection)
    for end in (connection.commit, connection.rollback):
        verdicts = own.ingest_many(pages(), batch_size=BATCH)
        next(verdicts)
        end()
        with pytest.raises(StoreError, match="after 1 of the 5 verdicts") as refused:
            next(verdicts)
        assert because("wrong_transaction")(refused.value)
    for number, _ in enumerate(own.ingest_many(pages(), batch_size=BATCH), 1):
        if number % BATCH == 0:
            connection.commit()
    # A batch of failures stores nothing, so no transaction can end within it.
    assert len(list(own.ingest_many([("nowhere", "")] * 7, batch_size=BATCH))) == 7


def test_a_savepoint_rolled_back_within_a_batch_is_refused(
    connection: psycopg.Connection, store: Store
) -> None:
    own = connect(connection)
    for consumed in (2, BATCH - 1, BATCH):
        connection.execute("SAVEPOINT before")
        verdicts = own.ingest_many(pages(), batch_size=BATCH)
        assert len(list(islice(verdicts, consumed))) == consumed
        connection.execute("SAVEPOINT rows; ROLLBACK TO rows; ROLLBACK TO before")
        if consumed < BATCH:
            with pytest.raises(StoreError, match="a savepoint was rolled back") as refused:
                list(verdicts)
            assert because("wrong_transaction")(refused.value)
        else:
            # The caller knows that the whole batch is gone.
            later = list(verdicts)
    connection.commit()
    urls = [url for (url,) in connection.execute("SELECT url FROM pgsimhash.pages")]
    assert sorted(urls) == sorted(verdict.url for verdict in later if verdict.page_id)


def test_with_autocommit_and_its_own_connection_it_commits_by_batches(
    dsn: str, connection: psycopg.Connection, store: Store
) -> None:
    connection.autocommit = True
    for own in (connect(connection), store):
        next(own.add_pages([(f"https://{id(own)}.example/{n}", n << 40) for n in range(9)]))
        stored = "SELECT FROM pgsimhash.pages WHERE host = %s"
        assert len(run_sql(dsn, stored, [f"{id(own)}.example"])) == 9
