"""``find``, ``find-many`` and ``fingerprint``: lookups that write nothing."""

import json
from pathlib import Path

import pytest

import pgsimhash
from pgsimhash import connect
from pgsimhash.hashing.bits import from_base32, to_base32
from tests.cli.harness import Run


def test_find_pages_near_a_url(run: Run, folder: Path) -> None:
    run("ingest", folder)
    wells, copy, looms = (
        (folder / f"{name}.html").as_uri() for name in ("wells", "wells-copy", "looms")
    )
    (near,) = run("find", wells).lines
    assert (near["url"], near["title"]) == (copy, "Wells")
    assert near["distance"] <= 3
    alone = run("find", looms)
    assert (alone.code, alone.stdout, alone.stderr) == (1, "", "")
    unknown = run("find", f"{wells}?print=1")
    unknown.ends(1, f"has no page at {wells}?print=1; ingest the page first")
    assert unknown.stdout == ""
    wide = run("find", wells, "--distance", "12", "--no-verify").lines
    assert [line["url"] for line in wide] == [copy]


def test_a_file_stdin_a_url_or_a_simhash_finds_matches_or_all_their_pages(
    run: Run, dsn: str, folder: Path
) -> None:
    run("ingest", folder)
    wells = folder / "wells.html"
    (known,) = run("fingerprint", wells).lines
    with connect(dsn) as store:
        store.add("https://a.example/1", int(known["simhash"], 16))
        store.add("https://a.example/2", int(known["simhash"], 16) ^ 0b1111)
    matches, pages = run("find", wells), run("find", wells, "--pages")
    first = matches.lines[0]
    assert (matches.code, first["url"], first["title"]) == (0, wells.as_uri(), "Wells")
    files = {(folder / name).as_uri() for name in ("wells.html", "wells-copy.html")}
    added = {"https://a.example/1", "https://a.example/2"}
    assert {line["url"] for line in pages.lines} == files | added
    distances = [line["distance"] for line in pages.lines]
    assert distances == sorted(distances)
    decimal = str(int(known["simhash"], 16))
    for more, expected in (([], matches), (["--pages"], pages)):
        assert run("find", "-", *more, stdin=wells.read_bytes()).stdout == expected.stdout
        for what in (known["simhash"], decimal):
            assert run("find", what, *more).stdout == expected.stdout
        for what in (wells, wells.as_uri(), known["simhash"]):
            whole = run("find", what, *more).lines
            assert len(whole) >= 2
            assert run("find", what, *more, "--limit", "2").lines == whole[:2]
    assert run("find", "0x1234", "--pages").code == 1


def test_an_argument_with_a_scheme_is_a_url_unless_a_file_exists(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("ingest", folder)
    (folder / "x:").mkdir()
    (folder / "x:" / "wells.html").write_bytes((folder / "wells.html").read_bytes())
    monkeypatch.chdir(folder)
    assert run("find", "x://wells.html").stdout == run("find", "wells.html").stdout
    assert "has no page at x://looms.html" in run("find", "x://looms.html").stderr


def test_fingerprint_prints_the_simhash_in_every_form_and_reports_a_bad_file(
    run: Run, folder: Path
) -> None:
    html = (folder / "wells.html").read_bytes()
    done = run("fingerprint", folder / "short.html", folder / "wells.html")
    (line,) = done.lines
    page = pgsimhash.fingerprint(html)
    assert (line["title"], line["scheme"]) == ("Wells", "pgsimhash-article-1")
    assert line["text_digest"] == f"{page.text_digest:016x}"
    assert int(line["simhash"], 16) == int(line["bigint"]) % 2**64 == page.simhash
    assert from_base32(line["base32"]) == page.simhash
    assert not any(isinstance(value, int) and abs(value) > 2**53 for value in line.values())
    done.ends(1, "short.html")
    assert len(done.stderr.splitlines()) == 1
    alone = run("fingerprint", "-", stdin=html)
    assert (alone.code, alone.lines[0]["simhash"]) == (0, line["simhash"])
    done = run("fingerprint", "--markdown", folder / "wells-copy.html")
    assert "Well number 1 was dug" in done.stdout
    assert "Home" not in done.stdout


def test_simhashes_in_base32_and_distances_by_name_are_accepted(run: Run) -> None:
    with connect() as store:
        store.add("https://a.example/", 2**64 - 1)
    found = run("find", to_base32(2**64 - 1 - 0b111111), "--distance", "loose")
    assert [(line["url"], line["distance"]) for line in found.lines] == [("https://a.example/", 6)]
    assert run("find", to_base32(2**64 - 1 - 0b11), "--distance", "close").code == 1
    assert run("find-many", "-", stdin=b"7777777777776\n").code == 1  # a decimal as well
    assert run("find-many", "-", stdin=b"7777777777776===\n").lines[0]["distance"] == 0


def test_find_many_answers_a_file_and_reports_invalid_lines(run: Run, folder: Path) -> None:
    run("ingest", folder)
    known = run("fingerprint", folder / "wells.html").lines[0]["simhash"]
    near, far = (f"{int(known, 16) ^ bits:016x}" for bits in (0b101, 0xFFFF))
    queries = [near, "", json.dumps({"url": "https://b.example/", "simhash": known}), far, far]
    (folder / "queries.txt").write_text("\n".join(queries))
    done = run("find-many", folder / "queries.txt", "--distance", "2")
    assert (done.code, done.lines) == (0, [
        {"simhash": near, "match": known, "distance": 2},
        {"url": "https://b.example/", "simhash": known, "match": known, "distance": 0},
    ])  # fmt: skip
    assert run("status").lines[0]["simhashes"] == 2
    bad = ["wrong", '{"url": 1}', '{"simhash": 1.5}', '{"simhash": true}', "{", str(2**64)]
    digits = "9" * 5000  # more than Python reads
    bad += [digits, f'{{"simhash": {digits}}}', f'{{"simhash": "{known}", "a": {digits}}}']
    done = run("find-many", "-", stdin="\n".join([*bad, known]))
    assert (done.code, [line["match"] for line in done.lines]) == (1, [known])
    assert [f"line {n}:" in done.stderr for n in range(1, 11)] == [True] * 9 + [False]
