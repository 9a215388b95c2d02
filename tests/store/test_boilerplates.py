"""Boilerplate in the database: what one process learns and saves, all others leave out."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace

import psycopg
import pytest

import pgsimhash
from pgsimhash import CollectionError, Store, fingerprint
from pgsimhash.boilerplate import Boilerplate, learn, without_boilerplate
from pgsimhash.errors import BoilerplateError, SchemeError
from pgsimhash.insight.sides import read_side
from pgsimhash.policies import Settings
from pgsimhash.schemes import TEXT_SCHEME, get_scheme, register_scheme, registry
from pgsimhash.schemes.shipped import SHIPPED
from tests.conftest import wait_for_a_lock

SLOGAN = "Subscribe to the Harbour Letter,\n and never miss a tide, whatever the <b>weather</b>!"


def url(number: int, host: str = "bay.example") -> str:
    return f"https://{host}/{number}"


def story(number: int) -> str:
    return " ".join(f"word{number}x{n}" for n in range(40))


def html(number: int, foot: str = SLOGAN) -> str:
    return f"<html><body><article><p>{story(number)}</p><p>{foot}</p></article></body></html>"


@pytest.fixture
def another_process(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Forget what this process has registered, as a process that starts."""

    def start() -> None:
        monkeypatch.setattr(registry, "_schemes", {scheme.name: scheme for scheme in SHIPPED})

    return start


@contextmanager
def kept(dsn: str, pages: int = 8) -> Iterator[Store]:
    """A collection that keeps the Markdown of some pages of one host."""
    with pgsimhash.connect(dsn, collection="kept", keep_markdown=True) as store:
        for _ in store.ingest_many((url(n), html(n)) for n in range(pages)):
            pass
        yield store


def save_learnt(dsn: str) -> str:
    """Learn, save, and return the name of the scheme."""
    with kept(dsn) as store:
        return store.save_boilerplate(store.learn_boilerplate())


def version_of(scheme: str) -> str:
    return scheme.rpartition("+")[2]


def test_it_is_learnt_from_the_markdown_that_a_collection_keeps(dsn: str) -> None:
    """HTML breaks the paragraph into lines, Markdown does not: it is found all the same."""
    told: list[int] = []
    with kept(dsn) as store:
        learnt = store.learn_boilerplate(progress=told.append)
    assert (learnt.pages, learnt.paragraphs, told) == (8, 1, list(range(1, 9)))
    scheme = without_boilerplate(learnt)
    plain = fingerprint(f"<article><p>{story(3)}</p></article>").simhash
    assert fingerprint(html(3), url(3), scheme=scheme).simhash == plain
    assert fingerprint(html(3), url(3, "other.example"), scheme=scheme).simhash != plain


def test_the_present_version_of_each_page_counts(dsn: str) -> None:
    with kept(dsn) as store:
        before = store.learn_boilerplate()
        for number in range(4, 8):
            store.ingest(url(number), html(number + 100, "Quiet today."))
        assert store.learn_boilerplate().hosts == {}
        for number in range(4, 8):
            store.ingest(url(number), html(number))
        again = store.learn_boilerplate()
        assert again == before
        assert again.pages == 8
        assert store.learn_boilerplate(pages_min=9).hosts == {}


def test_hosts_are_learnt_apart_however_their_pages_came(dsn: str) -> None:
    with kept(dsn) as store:
        other = "Written on the island where the mill has stood since anyone remembers."
        for number in range(6):
            store.ingest(url(number, "Isle.example"), html(number + 50, other))
            store.ingest(url(number + 20), html(number + 20))
        learnt = store.learn_boilerplate()
    assert {host: len(found) for host, found in learnt.hosts.items()} == {
        "bay.example": 1,
        "isle.example": 1,
    }
    assert learnt.pages == 20


def test_without_markdown_there_is_nothing_to_learn_from(store: Store) -> None:
    with pytest.raises(CollectionError, match="keep_markdown=True"):
        store.learn_boilerplate()


def test_every_process_can_create_and_open_a_collection_without_it(
    dsn: str, another_process: Callable[[], None]
) -> None:
    name = save_learnt(dsn)
    plain = fingerprint(f"<article><p>{story(3)}</p></article>").simhash
    another_process()
    with pgsimhash.connect(dsn, collection="clean", scheme=name) as store:
        assert store.ingest(url(3), html(3)).simhash == plain
    another_process()
    with pgsimhash.connect(dsn, collection="clean", create=False) as store:
        verdict = store.decide("https://mirror.example/3", html(3, ""))
        assert (verdict.verdict, verdict.distance) == ("identical", 0)
        many = [(url(n), html(n)) for n in range(4)]
        simhashes = [verdict.simhash for verdict in store.ingest_many(many, jobs=2)]
    assert simhashes == [fingerprint(html(n, "")).simhash for n in range(4)]


def test_a_collection_keeps_what_its_scheme_leaves_out(
    dsn: str, another_process: Callable[[], None]
) -> None:
    """Who creates it need not save anything; one more version on top of it is kept as well."""
    first = register_scheme(without_boilerplate(learn_in_memory()))
    second = without_boilerplate(Boilerplate({"isle.example": frozenset({7})}), first)
    register_scheme(second)
    with pgsimhash.connect(dsn, collection="clean", scheme=second):
        pass
    another_process()
    with pgsimhash.connect(dsn, collection="clean", create=False) as store:
        assert store.scheme == second.name
        assert get_scheme(store.scheme) == second
        assert [found.collections for found in store.boilerplates()] == [["clean"], ["clean"]]
        found = store.load_boilerplate(version_of(first.name))
        assert store.save_boilerplate(found) == first.name


def learn_in_memory() -> Boilerplate:
    return learn((url(n), f"{story(n)}\n{SLOGAN.replace('<b>', '')}") for n in range(8))


def test_any_scheme_can_leave_it_out(dsn: str, another_process: Callable[[], None]) -> None:
    version = version_of(save_learnt(dsn))
    another_process()
    name = f"{TEXT_SCHEME.name}+{version}"
    with pgsimhash.connect(dsn, collection="texts", scheme=name) as store:
        assert store.scheme == name
        (found,) = store.boilerplates()
    assert (found.scheme, found.collections) == (f"pgsimhash-article-1+{version}", ["texts"])
    assert (found.hosts, found.paragraphs, found.pages) == (1, 1, 8)


def test_a_scheme_that_is_nowhere_says_how_to_save_it(
    dsn: str, another_process: Callable[[], None]
) -> None:
    with pytest.raises(SchemeError, match=r"learn-boilerplate --save or Store\.save_boilerplate"):
        pgsimhash.connect(dsn, scheme="pgsimhash-article-1+01234567")
    name = save_learnt(dsn)
    pgsimhash.connect(dsn, collection="clean", scheme=name).close()
    with psycopg.connect(dsn) as connection:
        connection.execute("ALTER TABLE pgsimhash.boilerplates DISABLE TRIGGER USER")
        connection.execute("DELETE FROM pgsimhash.boilerplates")
    another_process()
    with (
        pgsimhash.connect(dsn, collection="clean") as store,
        pytest.raises(SchemeError, match="learn-boilerplate --save"),
    ):
        store.ingest(url(1), html(1))


def test_the_scheme_below_has_to_be_registered(
    dsn: str, another_process: Callable[[], None]
) -> None:
    mine = register_scheme(replace(TEXT_SCHEME, name="mine-1"))
    with pgsimhash.connect(dsn) as store:
        name = store.save_boilerplate(learn_in_memory(), mine)
    another_process()
    with pytest.raises(SchemeError, match="there is no scheme 'mine-1"):
        pgsimhash.connect(dsn, collection="mine", scheme=name)
    register_scheme(mine)
    pgsimhash.connect(dsn, collection="mine", scheme=name).close()


def test_two_processes_save_the_same_version_at_once(dsn: str) -> None:
    learnt = Boilerplate({f"host{n}.example": frozenset({n, n + 2**63}) for n in range(500)})
    start = threading.Barrier(4)

    def save(_: int) -> str:
        with pgsimhash.connect(dsn) as store:
            start.wait(timeout=60)
            return store.save_boilerplate(learnt)

    with ThreadPoolExecutor(4) as pool:
        names = set(pool.map(save, range(4)))
    assert names == {f"pgsimhash-article-1+{learnt.version}"}
    with pgsimhash.connect(dsn) as store:
        assert store.load_boilerplate(learnt.version) == learnt
        assert len(store.boilerplates()) == 1


@pytest.mark.parametrize(
    "change",
    [
        "DELETE FROM pgsimhash.boilerplate_hosts",
        "UPDATE pgsimhash.boilerplate_hosts SET host = 'other.example'",
        "UPDATE pgsimhash.boilerplate_hosts SET paragraphs = paragraphs || 5::bigint",
        "UPDATE pgsimhash.boilerplate_hosts SET paragraphs = '{NULL}'",
        "UPDATE pgsimhash.boilerplate_hosts SET paragraphs = '{{1,2},{3,4}}'",
    ],
)
def test_changed_rows_are_noticed_and_can_be_saved_again(
    dsn: str, another_process: Callable[[], None], change: str
) -> None:
    """Another content under the same name would mix simhashes silently."""
    name = save_learnt(dsn)
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(change)
    another_process()
    with pytest.raises(BoilerplateError, match=r"rows of .* were changed; save it again"):
        pgsimhash.connect(dsn, collection="clean", scheme=name)
    assert save_learnt(dsn) == name
    another_process()
    pgsimhash.connect(dsn, collection="clean", scheme=name).close()


def test_a_version_stands_for_one_content(dsn: str) -> None:
    learnt = learn_in_memory()
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(
            "INSERT INTO pgsimhash.boilerplates (version, digest, base, pages) "
            "VALUES (%s, %s, 'pgsimhash-article-1', 0)",
            [learnt.version, bytes.fromhex(learnt.version) + bytes(28)],
        )
    with (
        pgsimhash.connect(dsn) as store,
        pytest.raises(BoilerplateError, match="stands for another boilerplate"),
    ):
        store.save_boilerplate(learnt)


def test_what_a_collection_uses_is_not_deleted(dsn: str) -> None:
    name = save_learnt(dsn)
    version = version_of(name)
    pgsimhash.connect(dsn, collection="clean", scheme=name).close()
    with pgsimhash.connect(dsn) as store:
        with pytest.raises(BoilerplateError, match=f"{version} is used by: clean; keep it"):
            store.delete_boilerplate(version)
        with psycopg.connect(dsn) as connection, pytest.raises(psycopg.errors.ForeignKeyViolation):
            connection.execute("DELETE FROM pgsimhash.boilerplates")
        other = store.save_boilerplate(Boilerplate({"isle.example": frozenset({7})}))
        store.delete_boilerplate(version_of(other))
        assert [found.version for found in store.boilerplates()] == [version]
        for ask in (store.delete_boilerplate, store.load_boilerplate):
            with pytest.raises(BoilerplateError, match="pgsimhash boilerplates lists them"):
                ask(version_of(other))


def test_what_a_policy_names_is_not_deleted(dsn: str) -> None:
    scheme = save_learnt(dsn)
    with pgsimhash.connect(dsn, collection="kept") as store:
        store.set_policy("bay.example", Settings(scheme=scheme))
        users = r"is used by: kept \(policy for bay\.example\); keep it"
        with pytest.raises(BoilerplateError, match=users):
            store.delete_boilerplate(version_of(scheme))
        store.remove_policy("bay.example")
        store.delete_boilerplate(version_of(scheme))


def test_a_collection_that_is_being_created_is_waited_for(dsn: str) -> None:
    name = save_learnt(dsn)

    def delete() -> None:
        with pgsimhash.connect(dsn) as store:
            store.delete_boilerplate(version_of(name))

    with ThreadPoolExecutor(1) as pool:
        with psycopg.connect(dsn) as connection:
            pgsimhash.connect(connection=connection, collection="clean", scheme=name)
            deleting = pool.submit(delete)
            wait_for_a_lock(dsn)
            connection.commit()
        with pytest.raises(BoilerplateError, match="used by: clean"):
            deleting.result(timeout=60)


def test_in_a_transaction_of_the_caller_it_goes_with_that(dsn: str) -> None:
    with psycopg.connect(dsn) as connection:
        store = pgsimhash.connect(connection=connection)
        store.save_boilerplate(learn_in_memory())
        assert len(store.boilerplates()) == 1
        connection.rollback()
    with pgsimhash.connect(dsn) as store:
        assert store.boilerplates() == []


def test_an_explanation_leaves_it_out_of_kept_markdown_too(dsn: str) -> None:
    name = save_learnt(dsn)
    with pgsimhash.connect(dsn, collection="clean", scheme=name, keep_markdown=True) as store:
        store.ingest(url(1), html(1))
        page = read_side(html(1, ""), get_scheme(name), url(1))
        why = store.explain(url(1), page)
    assert why.distance == 0
    assert why.features is not None
    assert why.features.only_a.count == why.features.only_b.count == 0
    assert why.features.only_a.bits_off == 0
