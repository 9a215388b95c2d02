"""Simhashes in your own tables, and joins with the package's, on a real database."""

import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from itertools import product
from operator import methodcaller
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pytest
import sqlalchemy as sa
from numpy.typing import NDArray
from sqlalchemy import orm
from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg
from sqlalchemy.orm import Mapped, mapped_column

from pgsimhash import ArgumentError, connect
from pgsimhash.hashing.bits import hamming_distance
from pgsimhash.schema import migrate
from pgsimhash.search.layout import LAYOUTS, get_layout
from pgsimhash.sqlalchemy import (
    SIMHASH,
    Collection,
    Page,
    find,
    metadata,
    near_pages,
    pages,
    simhash_lock,
)
from tests.programs import run_program, wait_until
from tests.refusals import because

EDGES = (0, 1, 2**63 - 1, 2**63, 2**63 + 1, 2**64 - 1)
postgresql: Any = PGDialect_psycopg


class Base(orm.DeclarativeBase):
    """The tables of a project."""


class Article(Base):
    __tablename__ = "articles"

    id: Mapped[int] = mapped_column(primary_key=True)
    text: Mapped[str | None]
    simhash: Mapped[int | None] = mapped_column(SIMHASH("22+21+21"))


class Photo(Base):
    """Two simhashes with different names and layouts, in a table whose name needs quotes."""

    __tablename__ = "the photos"

    id: Mapped[int] = mapped_column(primary_key=True)
    shape: Mapped[int] = mapped_column("Shape", SIMHASH("32+32"))
    caption: Mapped[int | None] = mapped_column(SIMHASH("16+16+16+16"))


@pytest.fixture
def engine(empty_dsn: str) -> Iterator[sa.Engine]:
    """An empty database without the package's schema."""
    with engine_of(empty_dsn) as made:
        yield made


@contextmanager
def engine_of(dsn: str) -> Iterator[sa.Engine]:
    made = sa.create_engine("postgresql+psycopg://", creator=lambda: psycopg.connect(dsn))
    yield made
    made.dispose()


@pytest.fixture
def session(engine: sa.Engine) -> Iterator[orm.Session]:
    Base.metadata.create_all(engine)
    with orm.Session(engine) as opened:
        yield opened


def family(rng: np.random.Generator, count: int) -> list[int]:
    """Random simhashes, near-duplicates at all distances up to 14, and the edge values."""
    values = [int(value) for value in rng.integers(0, 2**64, count, dtype=np.uint64)]
    for value in [*values, *EDGES]:
        for bits in range(1, 15):
            flipped = sum(1 << int(bit) for bit in rng.choice(64, bits, replace=False))
            values.append(value ^ flipped)
    return [*values, *EDGES]


def column(name: str = "simhash", layout: str = "22+21+21") -> sa.Column[int]:
    return sa.Column(name, SIMHASH(layout))


# -- The type -------------------------------------------------------------------------------------


def test_simhashes_are_unsigned_in_python_and_bigints_in_the_server(session: orm.Session) -> None:
    session.add_all(Article(id=number, simhash=value) for number, value in enumerate(EDGES))
    session.add(Article(id=99))
    session.flush()
    session.expire_all()
    in_order = sa.select(Article.simhash).order_by(Article.id)
    assert session.scalars(in_order).all() == [*EDGES, None]
    signed = sa.text("SELECT simhash FROM articles ORDER BY id")
    assert session.scalars(signed).all()[3:6] == [-(2**63), 1 - 2**63, -1]
    for number, value in enumerate(EDGES):
        found = session.scalars(sa.select(Article.id).where(Article.simhash == value)).all()
        assert found == [number]
    some = sa.select(sa.func.count()).where(Article.simhash.in_(EDGES[2:]))
    assert session.scalar(some) == 4
    nothing = sa.select(Article.id).where(Article.simhash.is_(None))
    assert session.scalars(nothing).all() == [99]
    numpy = np.uint64(2**64 - 1)
    assert session.scalar(sa.select(Article.id).where(Article.simhash == numpy)) == 5


def test_what_is_no_simhash_is_refused(session: orm.Session) -> None:
    def refused(call: Callable[..., Any], *arguments: Any) -> None:
        with pytest.raises(ArgumentError, check=because("invalid_argument")):
            pytest.fail(f"{arguments}: {call(*arguments)}")

    values: list[Any] = [-1, 2**64, "abc", 1.0, True, None]
    for wrong in values:
        refused(Article.simhash.within, wrong, 3)
        refused(Article.simhash.hamming_distance, wrong)
        refused(find, wrong)
    for wrong in values[:-1]:
        session.add(Article(simhash=wrong))
        connection = session.connection()
        refused(connection.execute, sa.insert(Article).values(simhash=wrong))
        refused(connection.execute, sa.select(1).where(Article.simhash == wrong))
        refused(session.flush)
        session.rollback()


def test_simhashes_are_not_compared_by_size() -> None:
    column: Any = Article.simhash
    comparisons: list[Callable[[Any], Any]] = [
        *(methodcaller(f"__{name}__", 5) for name in ("lt", "le", "gt", "ge")),
        lambda value: value > value, lambda value: value.between(1, 5),
        lambda value: ~value.between(1, 5),
    ]  # fmt: skip
    for compare in comparisons:
        with pytest.raises(ArgumentError, match="type_coerce", check=because("invalid_argument")):
            compare(column)
    by_size = sa.type_coerce(Article.simhash, sa.BigInteger) > 5
    assert "articles.simhash > " in str(sa.select(Article.id).where(by_size))


def test_distances_are_those_of_python(session: orm.Session) -> None:
    pairs = [(a, b) for a in EDGES for b in (*EDGES, 0x0123456789ABCDEF)]
    for wrapped in (lambda value: value, lambda value: sa.literal(value, SIMHASH())):
        made = (sa.literal(a, SIMHASH()).hamming_distance(wrapped(b)) for a, b in pairs)
        assert [*session.execute(sa.select(*made)).one()] == [hamming_distance(*p) for p in pairs]


def test_a_script_has_the_simhashes_in_it(engine: sa.Engine) -> None:
    """As bigints, including the lowest, which as a bare number would be a numeric."""
    table = sa.Table("t", sa.MetaData(), sa.Column("id", sa.Integer), column())
    with engine.begin() as connection:
        table.create(connection)
        for number, value in enumerate(EDGES):
            written = table.insert().values(id=number, simhash=value)
            options = {"literal_binds": True}
            connection.exec_driver_sql(str(written.compile(engine, compile_kwargs=options)))
        for number, value in enumerate(EDGES):
            asked = sa.select(table.c.id).where(table.c.simhash.within(value, 0))
            script = str(asked.compile(engine, compile_kwargs={"literal_binds": True}))
            assert connection.exec_driver_sql(script).scalars().all() == [number]


# -- Exactness ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", LAYOUTS)
def test_within_finds_what_a_scan_finds(name: str, engine: sa.Engine) -> None:
    rng = np.random.default_rng(len(name))
    values = family(rng, 40)
    unsigned: NDArray[np.uint64] = np.array(values, dtype=np.uint64)
    key = sa.Column("id", sa.Integer, primary_key=True)
    table = sa.Table("t", sa.MetaData(), key, column("hash", name))
    layout = get_layout(name)
    with engine.begin() as connection:
        table.create(connection)
        rows = [{"id": number, "hash": value} for number, value in enumerate(values)]
        connection.execute(table.insert(), [*rows, {"id": len(rows), "hash": None}])
        sought = [*EDGES, *(int(value) for value in rng.choice(unsigned, 6))]
        for distance in layout.distances:
            if layout.probes(distance) > 3_000:
                continue
            for query in sought:
                asked = sa.select(table.c.id).where(table.c.hash.within(query, distance))
                (near,) = np.nonzero(np.bitwise_count(query ^ unsigned) <= distance)
                assert sorted(connection.scalars(asked)) == near.tolist()
            # The same for another column, and for rows that are not near.
            other = table.alias()
            pairs = sa.select(other.c.id, table.c.id).where(
                table.c.hash.within(other.c.hash, distance), other.c.id < 6
            )
            bits = np.bitwise_count(unsigned[:6, np.newaxis] ^ unsigned)
            expected = {(int(number), int(near)) for number, near in np.argwhere(bits <= distance)}
            assert {tuple(row) for row in connection.execute(pairs)} == expected


@pytest.mark.parametrize(
    ("layout", "distance"), [("22+21+21", 13), ("32+32", 8), ("5 choose 2", 9), ("6 choose 3", 6)]
)
def test_a_distance_beyond_the_layout_is_refused(layout: str, distance: int) -> None:
    table = sa.Table("t", sa.MetaData(), column("simhash", layout))
    assert get_layout(layout).distances[-1] == distance - 1
    table.c.simhash.within(0, distance - 1)
    for wrong in (distance, -1, None, "3", 1.5, True):
        with pytest.raises(ArgumentError, check=because("invalid_argument")):
            table.c.simhash.within(0, wrong)


def test_columns_and_classes_that_cannot_be_searched_are_refused() -> None:
    alone = sa.Table("t", sa.MetaData(), sa.Column("simhash", SIMHASH()))
    bare = column()
    made = Article.simhash.bitwise_xor(1)
    cases: list[tuple[str, Callable[[], Any]]] = [
        ("63 bytes", lambda: sa.Table("t", sa.MetaData(), column("x" * 51))),
        ("63 bytes", lambda: sa.Table("t", sa.MetaData(), column("ö" * 30))),
    ]
    for unsearchable in (alone.c.simhash, bare, Page.simhash, sa.literal(1, SIMHASH()), made):
        cases.append(("with find", partial(unsearchable.within, 0, 3)))
    for layout in ("23+21+21", "", "20 choose 10"):
        cases.append(("layout|columns", partial(SIMHASH, layout)))
    for said, call in cases:
        with pytest.raises(ArgumentError, match=said, check=because("invalid_argument")):
            call()


@pytest.mark.parametrize("name", ["s%h", "100%% \\:y", "a :b", 'q"x', "x" * 50])
def test_columns_schemas_and_aliases_of_any_name(name: str, engine: sa.Engine) -> None:
    """The query's column is the caller's, also where an alias has a name of the inner query."""
    metadata = sa.MetaData(schema="a b")
    table = sa.Table("t", metadata, sa.Column("id", sa.Integer), column(name))
    moved = engine.execution_options(schema_translate_map={"a b": "other"})
    for where, schema in ((engine, '"a b"'), (moved, "other")):
        with where.begin() as connection:
            connection.exec_driver_sql(f"CREATE SCHEMA {schema}")
            table.create(connection)
            connection.execute(table.insert(), [{"id": 1, name: 2**63 ^ 5}, {"id": 2, name: 12345}])
            asked = sa.select(table.c.id).where(table.c[name].within(2**63 ^ 4, 3))
            assert connection.scalars(asked).all() == [1]
            for alias in ("s", "f", "unnest", "simhash"):
                other = table.alias(alias)
                near = table.c[name].within(other.c[name], 0)
                asked = sa.select(other.c.id, table.c.id).where(near)
                assert sorted(map(tuple, connection.execute(asked))) == [(1, 1), (2, 2)]
            connection.exec_driver_sql(f"DROP SCHEMA {schema} CASCADE")


# -- Statements -----------------------------------------------------------------------------------


def test_a_statement_can_be_printed() -> None:
    distance = Article.simhash.hamming_distance(1)
    asked = sa.select(Article.id, distance).where(Article.simhash.within(1, 3))
    assert str(asked).count("bit_count(") == 1 + 3


@pytest.fixture
def articles(session: orm.Session) -> orm.Session:
    """Four articles: 1 to 3 are near each other, and 2 and 3 differ in 4 bits."""
    top = 2**63
    for number, value in enumerate([top, top ^ 0b0011, top ^ 0b1100, 12345], start=1):
        session.add(Article(id=number, simhash=value, text=str(number)))
    session.add(Article(id=5, simhash=None))
    session.flush()
    session.expunge_all()
    return session


def test_objects_are_found_and_sorted_and_prefixes_are_not_loaded(articles: orm.Session) -> None:
    sought = 2**63 ^ 0b0001
    bits = Article.simhash.hamming_distance(sought)
    near = sa.select(Article, bits).where(Article.simhash.within(sought, 3))
    asked = near.order_by(bits, Article.id)
    assert str(sa.select(Article)).count("_prefix_") == 0
    found = articles.execute(asked).all()
    assert [(article.id, distance) for article, distance in found] == [(1, 1), (2, 1), (3, 3)]
    assert found[0][0].simhash == 2**63
    prefix = sa.select(Article.__table__.c.simhash_prefix_63_42).where(Article.id == 1)
    assert articles.scalar(prefix) == 2**63 >> 42
    assert articles.scalars(asked.limit(1)).one().id == 1


def test_statements_of_any_form(articles: orm.Session) -> None:
    a, b = orm.aliased(Article), orm.aliased(Article)
    near, ids = a.simhash.within(b.simhash, 3), sa.select(Article.id)
    copies = sa.exists().where(a.simhash.within(Article.simhash, 3), a.id != Article.id)
    some = sa.select(Article.simhash.label("value"), Article.id).where(Article.id > 1)
    cases: list[tuple[Any, list[tuple[int, ...]]]] = [
        (sa.select(a.id, b.id).where(near, a.id < b.id), [(1, 2), (1, 3)]),
        (sa.select(a.id, b.id).join(b, near).where(a.id < b.id), [(1, 2), (1, 3)]),
        (ids.where(~copies), [(4,), (5,)]),
        # Rows without a simhash are neither near nor far.
        (ids.where(~Article.simhash.within(2**63, 2)), [(4,)]),
        (ids.where(Article.simhash.within(2**63, 0) | Article.simhash.within(12345, 0)),
         [(1,), (4,)]),
    ]  # fmt: skip
    for of in (some.subquery(), some.cte()):
        cases.append((sa.select(of.c.id).where(of.c.value.within(2**63, 2)), [(2,), (3,)]))
    for asked, rows in cases:
        assert sorted(map(tuple, articles.execute(asked))) == rows, str(asked)


def test_rows_are_deleted_and_updated(articles: orm.Session) -> None:
    near = Article.simhash.within(2**63 ^ 0b0011, 2)
    articles.execute(sa.update(Article).where(near).values(text="near"))
    marked = sa.select(Article.id).where(Article.text == "near").order_by(Article.id)
    assert articles.scalars(marked).all() == [1, 2]
    assert articles.execute(sa.delete(Article).where(near)).rowcount == 2  # type: ignore[attr-defined]


@pytest.mark.parametrize("sought", [sa.bindparam("q"), sa.bindparam("q", type_=SIMHASH())])
def test_one_statement_for_any_simhash(articles: orm.Session, sought: Any) -> None:
    asked = sa.select(Article.id).where(Article.simhash.within(sought, 2)).order_by(Article.id)
    for value, found in ((2**63, [1, 2, 3]), (12345, [4]), (2**64 - 1, [])):
        assert articles.scalars(asked, {"q": value}).all() == found
    with pytest.raises(ArgumentError, check=because("invalid_argument")):
        articles.scalars(asked, {"q": -1})


def test_statements_are_compiled_once_for_a_distance(articles: orm.Session) -> None:
    def hit(value: int, distance: int, model: Any = Article) -> bool:
        asked = sa.select(model.id).where(model.simhash.within(value, distance))
        found: Any = articles.connection().execute(asked)
        return bool(found.context.cache_hit.name == "CACHE_HIT")

    assert [hit(1, 3), hit(2, 3), hit(2**63, 3)] == [False, True, True]
    assert [hit(1, 8), hit(1, 8), hit(1, 3)] == [False, True, True]
    alike = sa.Table("articles", sa.MetaData(), sa.Column("id", sa.Integer), column())
    assert not hit(1, 3, alike.c)


@pytest.mark.one_server("Citus sends all statements of a string to the workers")
def test_another_bit_count_in_the_search_path_is_not_called(articles: orm.Session) -> None:
    other = "CREATE FUNCTION public.bit_count(bit) RETURNS bigint LANGUAGE sql AS 'SELECT 64::int8'"
    articles.execute(sa.text(f"{other}; SET LOCAL search_path = public, pg_catalog"))
    asked = sa.select(Article.id).where(Article.simhash.within(2**63, 0))
    assert articles.scalars(asked).all() == [1]


# -- Classes and tables ---------------------------------------------------------------------------


def test_columns_and_indexes_of_a_class() -> None:
    articles, photos = (Base.metadata.tables[name] for name in ("articles", "the photos"))
    prefixes = [f"simhash_prefix_{bits}" for bits in ("63_42", "41_21", "20_0")]
    assert articles.c.keys() == ["id", "text", "simhash", *prefixes]
    assert indexes(articles) == {
        "ix_articles_simhash": ["simhash"],
        **{f"ix_articles_{prefix}": [prefix, "simhash"] for prefix in prefixes},
    }
    assert not photos.c.Shape.nullable
    assert photos.c.caption.nullable
    assert len(indexes(photos)) == 1 + 2 + 1 + 4
    assert indexes(photos)["ix_the photos_Shape_prefix_31_0"] == ["Shape_prefix_31_0", "Shape"]
    # In Core tables.
    core = sa.Table("articles", sa.MetaData(), sa.Column("id", sa.Integer), column())
    assert indexes(core) == indexes(articles)
    for prefix in prefixes:
        made = (sa.schema.CreateColumn(table.c[prefix]) for table in (core, articles))
        assert len({str(each.compile(dialect=postgresql())) for each in made}) == 1
    # Copies of the metadata have each of them once.
    assert indexes(articles.to_metadata(sa.MetaData())) == indexes(articles)
    # A naming convention counts.
    convention = {"ix": "idx__%(table_name)s__%(column_0_N_name)s"}
    table = sa.Table("t", sa.MetaData(naming_convention=convention), column())
    named = {f"idx__t__{prefix}_simhash" for prefix in prefixes}
    assert set(indexes(table)) == {"idx__t__simhash", *named}


def indexes(table: sa.Table) -> dict[str | None, list[str]]:
    found = sorted((str(index.name), index.columns.keys()) for index in table.indexes)
    assert len(dict(found)) == len(found)
    return dict(found)


def test_two_simhashes_in_a_table(session: orm.Session) -> None:
    session.add(Photo(id=1, shape=1, caption=2**64 - 1))
    session.add(Photo(id=2, shape=2**63, caption=None))
    session.flush()
    for condition, found in (
        (Photo.shape.within(3, 1), [1]), (Photo.shape.within(2**63 + 1, 1), [1, 2]),
        (Photo.caption.within(2**64 - 2, 3), [1]), (Photo.caption.within(0, 3), []),
    ):  # fmt: skip
        assert session.scalars(sa.select(Photo.id).where(condition)).all() == found


def test_mixins_abstract_classes_and_inheritance() -> None:
    class Root(orm.DeclarativeBase):
        pass

    class Hashed:
        title_hash: Mapped[int] = mapped_column(SIMHASH("32+32"))

    class Abstract(Hashed, Root):
        __abstract__ = True
        simhash: Mapped[int | None] = mapped_column(SIMHASH("16+16+16+16"))

    class First(Abstract):
        __tablename__ = "first"
        id: Mapped[int] = mapped_column(primary_key=True)
        kind: Mapped[str]
        __mapper_args__ = {"polymorphic_on": "kind"}  # noqa: RUF012

    class Second(Abstract):
        __tablename__ = "second"
        id: Mapped[int] = mapped_column(primary_key=True)
        simhash: Mapped[int] = mapped_column(SIMHASH("16+16+16+16"), index=True)

    class Child(First):
        __mapper_args__ = {"polymorphic_identity": "child"}  # noqa: RUF012

    first, second = Root.metadata.tables["first"], Root.metadata.tables["second"]
    for table in (first, second):
        assert len(indexes(table)) == 1 + 2 + 1 + 4
        assert not table.c.title_hash.nullable
    assert (first.c.simhash.nullable, second.c.simhash.nullable) == (True, False)
    assert Child.__table__ is first
    assert "title_hash_prefix_31_0" in str(
        sa.select(Child.id).where(Child.title_hash.within(1, 3)).compile(dialect=postgresql())
    )


def test_a_column_that_joins_a_table_later() -> None:
    """As that of a subclass in the table of its parent."""

    class Root(orm.DeclarativeBase):
        pass

    class Parent(Root):
        __tablename__ = "t"
        id: Mapped[int] = mapped_column(primary_key=True)
        kind: Mapped[str]
        __mapper_args__ = {"polymorphic_on": "kind"}  # noqa: RUF012

    class Child(Parent):
        __mapper_args__ = {"polymorphic_identity": "child"}  # noqa: RUF012
        simhash: Mapped[int | None] = mapped_column(SIMHASH("32+32"))

    table = Root.metadata.tables["t"]
    assert "simhash_prefix_31_0" in str(
        sa.select(Child.id).where(Child.simhash.within(1, 3)).compile(dialect=postgresql())
    )
    assert not any("_prefix_" in name for each in (Parent, Child) for name in vars(each))
    assert len(indexes(table)) == 3
    assert indexes(table.to_metadata(sa.MetaData())) == indexes(table)


def test_a_dataclass_and_a_decorated_class() -> None:
    class Root(orm.MappedAsDataclass, orm.DeclarativeBase):
        pass

    class Note(Root):
        __tablename__ = "notes"
        id: Mapped[int] = mapped_column(primary_key=True)
        simhash: Mapped[int | None] = mapped_column("body", SIMHASH("22+21+21"), default=None)

    key = {"__tablename__": "t", "id": sa.Column(sa.Integer, primary_key=True)}
    decorated: Any = orm.registry().mapped(type("Decorated", (), {**key, "simhash": column()}))
    assert Note(id=1, simhash=7).simhash == 7
    each: Any
    for each in (Note, decorated):
        assert len(indexes(each.__table__)) == 4
        each.simhash.within(1, 3)
        assert not any("_prefix_" in name for name in vars(each))
    assert "body_prefix_20_0" in Note.__table__.c


# -- Plans ----------------------------------------------------------------------------------------


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for below in plan.get("Plans", []):
        yield from nodes(below)


def plan_of(connection: psycopg.Connection, asked: Any) -> list[dict[str, Any]]:
    """The nodes of a prepared statement's plan, under the current plan_cache_mode."""
    dialect = postgresql(paramstyle="numeric_dollar")
    made = asked.compile(dialect=dialect)
    bound = made.construct_params()
    values = [
        str(made.binds[name].type.dialect_impl(dialect).literal_processor(dialect)(bound[name]))
        for name in made.positiontup
    ]
    connection.execute("DEALLOCATE ALL")
    connection.execute(f"PREPARE asked AS {made}".encode())
    execute = f"EXPLAIN (FORMAT JSON) EXECUTE asked({', '.join(values)})"
    (([explained],),) = connection.execute(execute.encode()).fetchall()
    return list(nodes(explained["Plan"]))


def test_lookups_go_by_the_indexes_with_and_without_statistics(
    engine: sa.Engine, empty_dsn: str
) -> None:
    Base.metadata.create_all(engine)
    modes = ("force_generic_plan", "force_custom_plan", "auto")
    with psycopg.connect(empty_dsn, autocommit=True, prepare_threshold=None) as connection:
        connection.execute(
            "ALTER TABLE articles SET (autovacuum_enabled = off);"
            "INSERT INTO articles (simhash, text) SELECT hashint8extended(n, 7), repeat('x', 200) "
            "FROM generate_series(1, 100000) AS n;"
            'INSERT INTO "the photos" ("Shape") '
            "SELECT hashint8extended(n, 8) FROM generate_series(1, 100) AS n"
        )

        def vacuum() -> bool:
            """Return whether all rows are visible, which a concurrent autovacuum can delay."""
            connection.execute("VACUUM (ANALYZE)")
            visible = "SELECT relallvisible = relpages FROM pg_class WHERE relname = 'articles'"
            return connection.execute(visible).fetchone() == (True,)

        for analyzed in (False, True):
            if analyzed:
                wait_until(vacuum)
            for mode, distance in product(modes, (0, 3, 8, 12)):
                connection.execute(f"SET plan_cache_mode = {mode}".encode())
                for asked in lookups(distance, analyzed):
                    look_at_plan(plan_of(connection, asked), analyzed)


def lookups(distance: int, analyzed: bool) -> list[Any]:
    a, b = orm.aliased(Article), orm.aliased(Photo)
    near = Article.simhash.within(2**63, distance)
    asked = [
        sa.select(Article).where(near),
        sa.select(Article.id).where(near, Article.text.is_not(None)),
        sa.select(a.id, b.id).join(b, a.simhash.within(b.shape, distance)),
        sa.delete(Article).where(near),
    ]
    # Without statistics the planner expects every twentieth row to match, and finds one soon.
    return [*asked, sa.select(Article.id).where(near).limit(1)] if analyzed else asked


def look_at_plan(found: list[dict[str, Any]], analyzed: bool) -> None:
    scans = [node["Node Type"] for node in found if node.get("Relation Name") == "articles"]
    assert {*scans} <= {"ModifyTable", "Index Scan", "Index Only Scan", "Bitmap Heap Scan"}
    used = {str(node.get("Index Name")): node["Node Type"] for node in found}
    prefixes = [f"ix_articles_simhash_prefix_{bits}" for bits in ("63_42", "41_21", "20_0")]
    assert set(used) >= {"ix_articles_simhash", *prefixes}
    if analyzed:
        # Candidates are not read from the table.
        assert [used[prefix] for prefix in prefixes] == ["Index Only Scan"] * 3


# -- What the package collects --------------------------------------------------------------------

URLS = [f"https://a.example/{number}" for number in range(4)]
VALUES = [2**63, 2**63 ^ 0b0011, 2**63 ^ 0b1100, 0x0123456789ABCDEF]


@pytest.fixture
def collected(dsn: str) -> Iterator[orm.Session]:
    """Pages in the package's tables, and articles alongside them."""
    with connect(dsn) as store:
        for url, value in zip(URLS, VALUES, strict=True):
            store.add_page(url, value)
    with engine_of(dsn) as engine, orm.Session(engine) as session:
        Base.metadata.create_all(engine)
        session.add_all(Article(id=n, simhash=value) for n, value in enumerate(VALUES))
        session.add(Article(id=4, simhash=2**63 ^ 1))
        session.commit()
        yield session


def test_find_in_selects(collected: orm.Session) -> None:
    near = find(2**63, 2)
    found = collected.execute(sa.select(near.c.simhash, near.c.distance)).all()
    assert {*found} == {(VALUES[0], 0), (VALUES[1], 2), (VALUES[2], 2)}
    titled = sa.select(Page.url, near.c.distance).join(near, near.c.simhash == Page.simhash)
    assert {*collected.execute(titled)} == {(URLS[0], 0), (URLS[1], 2), (URLS[2], 2)}
    # The collection's own distance.
    assert len(collected.execute(sa.select(find(VALUES[1]))).all()) == 3


@pytest.mark.one_server("Citus joins no table that it does not have within a subquery")
def test_find_joined_with_your_own_table(collected: orm.Session) -> None:
    near = find(Article.simhash, 3)
    counted = sa.select(Article, sa.func.count(near.c.simhash)).outerjoin(near, sa.true())
    found = collected.execute(counted.group_by(Article.id).order_by(Article.id)).all()
    assert [count for _, count in found] == [3, 2, 2, 1, 3]
    listed = sa.select(Article.id, near.c.distance).where(Article.id == 4, near.c.distance < 2)
    assert sorted(map(tuple, collected.execute(listed))) == [(4, 1), (4, 1)]
    # The reverse: rows of the caller that are near a page.
    mine = sa.select(Page.url, Article.id).join(Article, Article.simhash.within(Page.simhash, 1))
    near_rows = [(0, 0), (0, 4), (1, 1), (1, 4), (2, 2), (3, 3)]
    rows = list(collected.execute(mine.order_by(Page.url, Article.id)))
    assert rows == [(URLS[url], row) for url, row in near_rows]


def test_near_pages_by_url_simhash_and_column(collected: orm.Session) -> None:
    by_url = near_pages(URLS[0], 3)
    asked = sa.select(by_url.c.url, by_url.c.simhash, by_url.c.distance).order_by(by_url.c.url)
    assert [tuple(row) for row in collected.execute(asked)] == [
        (URLS[1], VALUES[1], 2), (URLS[2], VALUES[2], 2),
    ]  # fmt: skip
    by_simhash = near_pages(VALUES[3])
    row = collected.execute(sa.select(by_simhash)).one()
    assert (row.url, row.distance, row.simhash) == (URLS[3], 0, VALUES[3])
    assert row.fetched_at.tzinfo is not None
    of_pages = near_pages(Page.url, 4)
    counted = sa.select(Page.url, sa.func.count()).join(of_pages, sa.true()).group_by(Page.url)
    found = {row[0]: row[1] for row in collected.execute(counted)}
    assert found == {URLS[0]: 2, URLS[1]: 2, URLS[2]: 2}
    with pytest.raises(sa.exc.DBAPIError, match="has no page at"):
        collected.execute(sa.select(near_pages("https://unknown.example/")))


def test_invalid_lookups_raise(collected: orm.Session) -> None:
    for near, wrong in product((find, near_pages), (13, -1, True, "3")):
        with pytest.raises(ArgumentError, check=because("invalid_argument")):
            near(1, wrong)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, check=because("invalid_argument")):
        find(1, schema="public")
    with pytest.raises(sa.exc.DBAPIError, match='collection "other" does not exist'):
        collected.execute(sa.select(find(1, collection="other")))


def test_classes_of_pages_and_collections(collected: orm.Session) -> None:
    page = collected.scalars(sa.select(Page).where(Page.url == URLS[0])).one()
    assert (page.simhash, page.host, page.collection.name) == (2**63, "a.example", "default")
    eager = sa.select(Page).options(orm.joinedload(Page.collection)).order_by(Page.page_id)
    assert [found.collection.name for found in collected.scalars(eager)] == ["default"] * 4
    counted = sa.select(Collection.name, sa.func.count(Page.page_id)).join(Page.collection)
    assert collected.execute(counted.group_by(Collection.name)).one() == ("default", 4)


def test_pages_of_another_schema_with_another_layout(engine: sa.Engine, empty_dsn: str) -> None:
    migrate.upgrade(empty_dsn, schema="narrow", layout="32+32")
    with connect(empty_dsn, schema="narrow") as store:
        store.add_page(URLS[0], 7)
    near = find(Page.simhash, 3, schema="narrow")
    in_narrow = {"schema_translate_map": {"pgsimhash": "narrow"}}
    with orm.Session(engine.execution_options(**in_narrow)) as session:
        asked = sa.select(Page, near.c.distance).join(near, sa.true())
        (page, distance) = session.execute(asked).one()
        assert (page.url, page.simhash, page.collection.name) == (URLS[0], 7, "default")
        assert distance == 0


@pytest.mark.parametrize("change", [
    lambda session, _: session.add(Collection(name="other", scheme="x")),
    lambda _, page: setattr(page, "title", "Another title"),
    lambda session, page: session.delete(page),
])  # fmt: skip
def test_our_classes_are_read_only(collected: orm.Session, change: Callable[..., None]) -> None:
    change(collected, collected.scalars(sa.select(Page).limit(1)).one())
    with pytest.raises(ArgumentError, match="connect", check=because("invalid_argument")):
        collected.flush()


def test_the_metadata_is_that_of_the_tables_and_can_be_copied() -> None:
    assert metadata is pages.metadata is Page.metadata
    merged = sa.MetaData()
    for table in (*metadata.tables.values(), *Base.metadata.tables.values()):
        table.to_metadata(merged)
    assert merged.tables.keys() >= {"pgsimhash.pages", "articles"}


def test_of_concurrent_rows_one_is_new(engine: sa.Engine) -> None:
    key = sa.Column("id", sa.Integer, sa.Identity())
    notes = sa.Table('the "notes"', sa.MetaData(), key, column())
    notes.create(engine)
    together = threading.Barrier(4)

    def insert(simhash: int) -> int:
        """Return the number of near rows."""
        with engine.begin() as connection:
            together.wait(60)
            connection.execute(simhash_lock(notes))
            near = sa.select(sa.func.count()).where(notes.c.simhash.within(simhash, 3))
            found = connection.execute(near.select_from(notes)).scalar_one()
            connection.execute(notes.insert().values(simhash=simhash))
            return found

    with ThreadPoolExecutor(4) as threads:
        assert sorted(threads.map(insert, [0, 1, 2, 4])) == [0, 1, 2, 3]


def test_the_lock_applies_to_one_table(engine: sa.Engine) -> None:
    Base.metadata.create_all(engine)
    with engine.begin() as one, engine.begin() as other:
        one.execute(simhash_lock(Article))
        other.execute(simhash_lock(Photo))
        other.execute(sa.text("SET LOCAL lock_timeout = '50ms'"))
        with pytest.raises(sa.exc.OperationalError, match="lock timeout"):
            other.execute(simhash_lock(Article.__table__))


def test_the_lock_is_of_the_table_in_the_translated_schema(engine: sa.Engine) -> None:
    table = sa.Table("the % :t's", sa.MetaData(schema="tenant"), column())
    waiting = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"
    with engine.connect() as connection:
        for number, name in enumerate(['the "first"', "2nd", "2nd"]):
            connection.execute(sa.schema.CreateSchema(name, if_not_exists=True))
            moved = connection.execution_options(schema_translate_map={"tenant": name})
            table.create(moved, checkfirst=True)
            moved.execute(simhash_lock(table))
            assert connection.exec_driver_sql(waiting).scalar_one() == min(number, 1) + 1


def test_a_class_of_sqlmodel_has_its_simhash(engine: sa.Engine) -> None:
    sqlmodel = pytest.importorskip("sqlmodel")
    fields = {
        "id": sqlmodel.Field(default=None, primary_key=True),
        "simhash": sqlmodel.Field(default=None, sa_type=SIMHASH("22+21+21")),
    }
    body = {"__module__": __name__, "__annotations__": dict.fromkeys(fields, int | None), **fields}
    item = type(sqlmodel.SQLModel)("Item", (sqlmodel.SQLModel,), body, table=True)
    names = {index.name for index in item.__table__.indexes}
    assert names == {
        "ix_item_simhash",
        *(f"ix_item_simhash_prefix_{n}" for n in ("63_42", "41_21", "20_0")),
    }
    item.metadata.create_all(engine, [item.__table__])
    with orm.Session(engine) as session:
        session.add(item(simhash=2**64 - 1))
        session.commit()
        (found,) = session.scalars(sa.select(item).where(item.simhash.within(2**64 - 8, 3)))
        assert found.simhash == 2**64 - 1
        assert session.scalars(sa.select(item).where(item.simhash.within(0, 3))).all() == []


TYPED = """
from typing import assert_type
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column
from pgsimhash.sqlalchemy import SIMHASH

class Base(DeclarativeBase):
    pass

class Article(Base):
    id: Mapped[int] = mapped_column(primary_key=True)
    simhash: Mapped[int] = mapped_column(SIMHASH("22+21+21"))

assert_type(Article().simhash, int)
Article.simhash.within(5, 3)
"""


@pytest.mark.long
def test_type_checkers_accept_an_own_simhash(tmp_path: Path) -> None:
    (tmp_path / "models.py").write_text(TYPED)
    programs = Path(sys.executable).parent
    for check in (["basedpyright", "--level", "error"], ["mypy", "--strict"]):
        options = [] if check[0] == "mypy" else ["--pythonpath", sys.executable]
        done = run_program(programs / check[0], *check[1:], *options, "models.py", folder=tmp_path)
        assert done.returncode == 0, done.stdout + done.stderr
