"""``collection``, ``run``, ``delete``, ``expire``, ``mark`` and ``policy``."""

import json
from pathlib import Path

import pytest

from pgsimhash import connect
from tests.cli.conftest import Run


def test_runs_are_listed_and_undone(run: Run, folder: Path) -> None:
    run("ingest", folder / "wells.html")
    run("ingest", folder, "--reread")
    last, first = run("run", "list").lines
    assert (first["pages"], first["new"]) == (1, 1)
    assert (last["pages"], last["new"], last["duplicates"], last["unchanged"]) == (3, 1, 1, 1)
    assert last["label"] == f"pgsimhash ingest {folder}"
    undone = run("run", "undo")
    of_run = {"run_id": last["run_id"], "label": last["label"]}
    assert (undone.code, undone.lines) == (0, [{**of_run, "deleted": 2}])
    assert run("run", "list").lines == [first]
    run("ingest", folder / "wells.html", "--reread")
    run("run", "undo").ends(0, "had added no page")
    run("run", "undo")
    run("run", "undo").ends(1, "no run to undo")


def test_a_url_a_host_or_a_run_can_be_deleted(run: Run, folder: Path) -> None:
    html = (folder / "wells.html").read_text()
    pages = "\n".join(
        json.dumps({"url": f"https://{host}.example/{n}", "html": html})
        for host in "ab"
        for n in range(2)
    )
    run("ingest", "-", stdin=pages)
    assert run("delete", "--url", "https://a.example/0").lines == [{"deleted": 1}]
    assert run("delete", "--url", "https://a.example/0").code == 1
    assert run("delete", "--host", "B.example").lines == [{"deleted": 2}]
    number = run("run", "list").lines[0]["run_id"]
    assert run("run", "undo", number).lines[0]["deleted"] == 1
    run("run", "undo", number).ends(1, "pgsimhash run list")


def test_an_old_archive_expires_unless_its_times_are_missing(run: Run, folder: Path) -> None:
    run("collection", "create", "default")
    run("expire").ends(2, "or set expire_after in a policy")
    page = {"url": "https://a.example/", "html": (folder / "wells.html").read_text()}
    old = {**page, "fetched_at": "2024-02-29"}
    for line, deleted, age in ((old, 1, ["--older-than", "90d"]), (old, 1, []), (page, 0, [])):
        run("ingest", "-", stdin=json.dumps(line))
        run("ingest", folder)
        run("policy", "set", "*", "--expire-after", "90d")
        for left in (deleted, 0):
            assert run("expire", *age).lines == [{"deleted": left}]


def test_marks_are_set_listed_and_removed_or_come_from_a_file(run: Run, folder: Path) -> None:
    run("ingest", folder)
    a, b = ((folder / name).as_uri() for name in ("wells.html", "wells-copy.html"))
    unknown = "https://nowhere.example/"
    done = run("mark", a, b, "--different")
    done.ends(0, "different")
    assert done.stdout == ""
    run("mark", a, unknown, "--same").ends(1, "ingest the page first")
    (listed,) = run("mark").lines
    assert ({listed["a"], listed["b"]}, listed["same"]) == ({a, b}, False)
    assert run("analyse", "clusters", "--distance", "3").lines == []
    assert run("mark", b, a, "--remove").code == 0
    assert run("mark", b, a, "--remove").code == 1
    assert len(run("analyse", "clusters", "--distance", "3").lines) == 1
    labels = folder / "marks.csv"
    labels.write_text(f"a,b,label\n{a},{b},different\n{a},{unknown},same\n")
    done = run("mark", "--from", labels)
    done.ends(1, "Pairs marked: 1, failed: 1.")
    assert [(line["b"], line["reason"]) for line in done.lines] == [(unknown, "unknown_page")]
    assert [line["same"] for line in run("mark").lines] == [False]


def test_a_policy_is_set_shown_listed_applied_and_removed(run: Run, folder: Path) -> None:
    done = run("policy", "set", "a.example/x/*", "--distance", "3", "--expire-after", "90d")
    said = {"pattern": "a.example/x/*", "distance": 3, "expire_after": 7_776_000.0}
    assert (done.code, done.lines) == (0, [said])
    assert run("policy", "set", "*", "--max-copies", "2").code == 0
    assert run("policy", "list").lines == [{"pattern": "*", "max_copies": 2}, said]
    url = "https://a.example/x/1"
    shown = run("policy", "list", url)
    assert shown.lines == [{"url": url, "distance": 3, "max_copies": 2, "expire_after": 7_776_000}]

    (copy,) = (line for line in run("ingest", folder).lines if "copy" in line["url"])
    assert (copy["kind"], copy["keep"]) == ("duplicate", True)
    again = run("decide", folder / "wells.html", "--url", "https://b.example/")
    assert (again.code, again.lines[0]["keep"]) == (1, False)
    more = run("decide", folder / "wells.html", "--url", "https://b.example/", "--max-copies", "9")
    assert (more.code, more.lines[0]["keep"]) == (0, True)

    assert run("policy", "remove", "*").code == 0
    assert run("policy", "remove", "*").code == 1
    lines = run("ingest", folder, "--min-tokens", "5000", "--reread").lines
    assert {line["reason"] for line in lines} == {"policy", "too_short"}


def test_selectors_of_a_policy_are_checked_counted_and_applied(run: Run, folder: Path) -> None:
    run("ingest", folder)
    run("policy", "set", "*", "--ignore", "a + b").ends(2, "selector 1 of 'a + b'")
    done = run("policy", "set", "*", "--content", "#none", "--ignore", ".promo")
    done.ends(0, "3 stored pages of this host will be read by other selectors")
    assert done.lines == [{"pattern": "*", "content": "#none", "ignore": ".promo"}]
    done = run("ingest", folder, "--reread")
    done.ends(0, "Without the content of selectors, or with too few words left: 3. The first: ")
    assert [line["content_missing"] for line in done.lines].count(True) == 3
    assert run("status").lines[0]["content_missing"] == 3
    run("policy", "set", "*", "--ignore", "p").ends(0, "3 stored pages")
    none = run("policy", "set", "*/forum/*", "--content", "").lines
    assert none == [{"pattern": "*/forum/*", "content": ""}]
    done = run("collection", "rebuild", "default")
    done.ends(0, "3 pages were read by other selectors than those of the policies")
    assert run("collection", "rebuild", "default", "--content", "main").code != 0
    explained = run("analyse", "explain", folder / "wells.html", folder / "looms.html",
                    "--ignore", "h1")  # fmt: skip
    assert "by ignore 'h1'. Cut from B" in explained.lines[0]["sentence"]


REBUILD = "collection", "rebuild"
SHINGLES = "--scheme", "pgsimhash-blog-shingles-1"


@pytest.fixture
def kept(run: Run, folder: Path) -> None:
    run("collection", "create", "kept", "--keep-markdown", "--scheme", "pgsimhash-blog-words-1")
    run("ingest", "--collection", "kept", folder)


def test_settings_of_a_collection_are_those_of_its_scheme_until_they_are_changed(run: Run) -> None:
    (created,) = run("collection", "create", "news", "--scheme", "pgsimhash-interop-1").lines
    assert (created["default_distance"], created["keep_markdown"]) == (3, False)
    done = run("collection", "set", "news", "--distance", "5", "--keep-markdown")
    assert (done.lines[0]["default_distance"], done.lines[0]["keep_markdown"]) == (5, True)
    assert run("collection", "set", "news", "--no-keep-markdown").lines[0]["default_distance"] == 5
    (line,) = run("analyse", "explain", "0" * 16, "f" * 16, "--collection", "news").lines
    assert line["max_distance"] == 5


def test_a_collection_is_rebuilt(run: Run, folder: Path) -> None:
    run("ingest", folder)
    done = run(*REBUILD, "default", "--distance", "6")
    assert done.lines == [
        {
            "name": "default", "collection_id": 2, "scheme": "pgsimhash-article-1",
            "layout": "22+21+21", "default_distance": 6, "keep_markdown": False,
            "normalize_urls": False,
        }
    ]  # fmt: skip
    assert "pgsimhash collection delete default-2" in done.stderr
    assert run("find", folder / "wells.html").code == 0
    assert run("ingest", folder).code == 0
    simhashes = {line["name"]: line["simhashes"] for line in run("status").lines}
    assert simhashes == {"default": 2, "default-2": 2}
    assert run(*REBUILD, "default", "--into", "x", "--replace").stderr == ""
    assert len(run("status").lines) == 2


def test_a_rebuild_prints_verdicts_and_counts_omitted_pages(run: Run, kept: None) -> None:
    # A page that was added as a simhash has no Markdown.
    with connect(collection="kept", create=True) as store:
        store.add_page("https://a.example/", 1)
    done = run(*REBUILD, "kept", *SHINGLES, "--verdicts")
    done.ends(1, "1 versions were omitted")
    *verdicts, created = done.lines
    assert sorted(line["kind"] for line in verdicts) == [
        *("duplicate", "failed", "new", "new", "too_short")
    ]
    assert (created["name"], created["scheme"]) == ("kept", "pgsimhash-blog-shingles-1")


def test_ctrl_c_changes_nothing(run: Run, kept: None, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as context:
        context.setattr("pgsimhash.cli.show.json_line", interrupt)
        run(*REBUILD, "kept", *SHINGLES, "--verdicts").ends(130, "run again to continue")
    assert [line["name"] for line in run("status").lines] == ["kept"]


def test_a_collection_is_copied_into_a_schema_of_another_layout(run: Run, folder: Path) -> None:
    run("ingest", folder)
    rebuild = *REBUILD, "default", "--into-schema", "wide"
    assert run(*rebuild).code == 3
    run("migrate", "--schema", "wide", "--layout", "5 choose 2")
    done = run(*rebuild)
    (copy,) = done.lines
    assert (copy["name"], copy["layout"]) == ("default", "5 choose 2")
    assert "The old collection" not in done.stderr
    assert run("status", "--schema", "wide").lines[0]["pages"] == 3
    run(*rebuild).ends(2, "exists already in the schema wide; delete it")
    assert run(*rebuild, "--into", "moved", "--replace").lines[0]["name"] == "moved"
    assert run("status").lines == []


def test_collections_are_renamed_or_swapped_and_taken_names_refused(run: Run, kept: None) -> None:
    run("collection", "create", "other")
    run(*REBUILD, "kept", "--into", "other").ends(2, "--into")
    run(*REBUILD, "kept", "--scheme", "pgsimhash-interop-1").ends(2, "ingest the pages into")
    renamed = run("collection", "rename", "other", "kept", "--swap")
    assert renamed.lines == [{"name": "kept", "before": "other", "swapped": True}]
    run("collection", "rename", "kept", "other").ends(2, "--swap")
    run("collection", "rename", "nowhere", "here").ends(2, "does not exist")


def test_the_deletion_of_a_collection_needs_confirmation(run: Run, folder: Path) -> None:
    run("ingest", folder)
    run("collection", "delete", "default").ends(2, "--yes")
    deleted = run("collection", "delete", "default", "--yes").lines
    assert deleted == [{"name": "default", "deleted": 3}]
    assert run("status").lines == []


def test_ignored_parameters_are_set_used_and_contradicted(run: Run) -> None:
    made = run(
        "policy", "set", "a.example", "--ignore-parameters", "sid, utm_*", "--sample-every", 7
    )
    assert (made.lines[0]["ignore_parameters"], made.lines[0]["sample_every"]) == ("sid, utm_*", 7)
    pages = [
        {"url": f"https://a.example/?sid={n}", "text": " ".join(f"w{n}x{k}" for k in range(60))}
        for n in (1, 2)
    ]
    lines = "\n".join(json.dumps({"url": p["url"], "html": f"<p>{p['text']}"}) for p in pages)
    done = run("ingest", "-", stdin=lines)
    assert [line["reason"] for line in done.lines] == ["first_seen", "address_known"]
    assert "known by ignored parameters: 1. The first: https://a.example/?sid=2" in done.stderr
    wrong = run("policy", "set", "a.example", "--ignore-parameters", "a=1")
    wrong.ends(2, "ignore_parameters are names with commas, such as 'ref,utm_*', not 'a=1'")
    assert run("policy", "set", "a.example", "--sample-every", 0).code == 2
