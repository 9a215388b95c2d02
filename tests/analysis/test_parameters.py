"""Parameters of URLs that never lead to another page."""

import random
from urllib.parse import urlencode

from pgsimhash import Store, analysis, connect
from pgsimhash.analysis.addresses import Parameter
from tests.store.pages import page, paragraph

SHOP = "https://shop.example/item?"


def fill(store: Store, pages: list[tuple[str, int]]) -> None:
    """Store pages at URLs, each with a story."""
    html = {story: page(paragraph(story)) for _, story in pages}
    for verdict in store.ingest_many((url, html[story]) for url, story in pages):
        assert verdict.kind in ("new", "duplicate")


def found(store: Store) -> dict[tuple[str, str], Parameter]:
    return {(each.host, each.name): each for each in analysis.parameters(store)}


def verdicts(store: Store) -> dict[str, str]:
    return {each.name: each.verdict for each in analysis.parameters(store)}


def shop(*, exceptions: int = 0) -> list[tuple[str, int]]:
    """60 stories at six URLs each; of one parameter, pages of their own."""
    rng = random.Random(1)
    pages = []
    for story in range(1, 61):
        for _ in range(6):
            given: dict[str, object] = {"id": story, "ref": rng.choice("abcdefgh")}
            given["sid"] = f"{rng.getrandbits(32):08x}"
            if rng.random() < 0.5:
                given["sort"] = rng.choice(["asc", "desc"])
            pages.append((SHOP + urlencode(given), story))
    pages += [(f"{SHOP}id={n}&ref=z&sid=1", 1000 + n) for n in range(1, exceptions + 1)]
    rng.shuffle(pages)
    return pages


def test_what_leads_to_one_story_is_ignorable_and_what_names_it_matters(store: Store) -> None:
    fill(store, shop())
    by_name = found(store)
    ignorable = {"ref", "sid", "sort"}
    assert {name: each.verdict for (_, name), each in by_name.items()} == {
        "id": "matters",
        **dict.fromkeys(ignorable, "ignorable"),
    }
    for name in ignorable:
        each = by_name["shop.example", name]
        assert (each.exceptions, each.example) == (0, None)
        assert each.compared >= 60
        assert each.at_most <= 0.05
    sid, number = by_name["shop.example", "sid"], by_name["shop.example", "id"]
    assert (sid.values, sid.stories, sid.compared) == (360, 60, 300)
    assert (number.values, number.stories) == (60, 0)
    assert (number.compared, number.exceptions) == (59, 59)
    assert number.example is not None


def test_exceptions_are_counted_and_shown(store: Store) -> None:
    fill(store, shop(exceptions=2))
    each = found(store)["shop.example", "ref"]
    assert (each.verdict, each.exceptions) == ("ignorable", 2)
    assert each.example is not None
    assert "ref=z" in each.example[1]
    assert each.example[0] != each.example[1]


def test_three_of_three_are_too_few(store: Store) -> None:
    fill(store, [(f"{SHOP}id={n}&ref={ref}", n) for n in (1, 2, 3) for ref in "ab"])
    each = found(store)["shop.example", "ref"]
    assert (each.compared, each.exceptions, each.verdict) == (3, 0, "too few")
    assert 0.4 < each.at_most < 0.5


def test_routes_are_pages_of_their_own(store: Store) -> None:
    routes = [(f"{SHOP}sid={n}#/{story}", story) for story in range(1, 61) for n in "ab"]
    fill(store, routes)
    each = found(store)["shop.example", "sid"]
    assert (each.compared, each.exceptions, each.verdict) == (60, 0, "ignorable")


def test_pages_of_a_list_matter_beside_ids_of_sessions(store: Store) -> None:
    # Page 1 is also the page without a number.
    lists = [(story, given) for story in range(60) for given in ("", "page=1&", "page=2&")]
    pages = [
        (f"https://a.example/{story}?{given}sid={number}x{again}", story + 100 * ("2" in given))
        for number, (story, given) in enumerate(lists)
        for again in "ab"
    ]
    fill(store, pages)
    assert verdicts(store) == {"page": "matters", "sid": "ignorable"}


def test_what_cannot_be_compared_may_matter(store: Store) -> None:
    # Each URL has a text of its own, as with a rotating block.
    fill(store, [(f"{SHOP}id={n % 20}&sid={n}", n) for n in range(60)])
    sid = found(store)["shop.example", "sid"]
    assert (sid.compared, sid.exceptions, sid.verdict) == (40, 40, "matters")
    assert verdicts(store)["id"] == "too few"


def test_spellings_are_examined_like_parameters(dsn: str, store: Store) -> None:
    pages = []
    for n in range(60):
        pages += [
            (f"https://a.example/s/{n}", n),
            (f"http://a.example/s/{n}", n),
            (f"https://www.a.example/s/{n}/", n),
            (f"https://a.example/S/{n}/index.html", n),
            (f"https://a.example/print/s/{n}", n),
            (f"https://a.example/s/{n}/amp/", n + 100),
        ]
    fill(store, pages)
    with connect(dsn, collection="other", create=True) as other:
        fill(other, [("https://b.example/a?x=1", 1), ("https://b.example/a?x=2", 1)])
        assert list(found(other)) == [("b.example", "x")]
    by_name = found(store)
    assert all(each.is_spelling for each in by_name.values())
    assert {name: each.verdict for (_, name), each in by_name.items()} == {
        "http": "ignorable",
        "www": "ignorable",
        "slash at the end": "ignorable",
        "index.html": "ignorable",
        "upper case": "ignorable",
        "/print": "ignorable",
        "/amp": "matters",
    }


def test_versions_of_a_story_are_one_story(store: Store) -> None:
    for story in range(60):
        for ref in "ab":
            store.ingest(f"{SHOP}id={story}&ref={ref}", page(paragraph(story)))
    for story in range(60):
        store.ingest(f"{SHOP}id={story}&ref=a", page(paragraph(story + 100)))
    each = found(store)["shop.example", "ref"]
    assert (each.compared, each.exceptions, each.verdict) == (60, 0, "ignorable")
