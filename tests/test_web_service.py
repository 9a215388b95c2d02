"""The service of examples/web_service, with two workers, over HTTP."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from pgsimhash import connect
from pgsimhash.testing import fresh_database, url_of_dsn
from tests.database import run_sql
from tests.manual import blocks, environment, run_commands
from tests.programs import free_port, wait_until
from tests.store.pages import ARTICLE, page, paragraph

FOLDER = Path(__file__).parent.parent / "examples" / "web_service"


@pytest.fixture(scope="module")
def deployed(server_dsn: str) -> Iterator[str]:
    """The name of a database that Alembic upgraded to the service's newest revision."""
    with fresh_database(server_dsn) as dsn, pytest.MonkeyPatch.context() as patch:
        patch.setenv("DATABASE_URL", url_of_dsn(dsn))
        run_commands(["alembic upgrade head", "pgsimhash collection create news"], dsn, FOLDER)
        yield str(conninfo_to_dict(dsn)["dbname"])


@pytest.fixture
def url(server_dsn: str, deployed: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A copy of that database."""
    with fresh_database(server_dsn, deployed) as dsn:
        monkeypatch.setenv("DATABASE_URL", url_of_dsn(dsn))
        yield dsn


@pytest.fixture
def service(url: str, tmp_path: Path) -> Iterator[httpx.Client]:
    port = free_port()
    arguments = ["-m", "uvicorn", "app:app", "--workers", "2", "--port", str(port)]
    with (tmp_path / "log").open("wb") as log:
        running = subprocess.Popen(
            [sys.executable, *arguments],
            cwd=FOLDER, env=environment(url), stdout=log, stderr=log, start_new_session=True,
        )  # fmt: skip
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as client:

            def answers() -> bool:
                assert running.poll() is None, (tmp_path / "log").read_text()
                with suppress(httpx.TransportError):
                    return client.get("/stories").status_code > 0
                return False

            wait_until(answers)
            yield client
    finally:
        os.killpg(running.pid, signal.SIGINT)
        try:
            running.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(running.pid, signal.SIGKILL)
            running.wait()


def article(number: int, *paragraphs: str) -> dict[str, str]:
    html = f"<title>Of {number}</title>" + page(*(paragraphs or ARTICLE), f"Remark {number}.")
    return {"url": f"https://a.example/{number}", "html": html, "author": f"author {number}"}


def at_once(
    service: httpx.Client, requests: list[tuple[str, dict[str, str]]]
) -> list[dict[str, Any]]:
    def answer(request: tuple[str, dict[str, str]]) -> httpx.Response:
        return service.request(request[0], "/articles", json=request[1])

    with ThreadPoolExecutor(len(requests)) as threads:
        answers = list(threads.map(answer, requests))
    assert {answer.status_code for answer in answers} == {200}, [one.text for one in answers]
    return [answer.json() for answer in answers]


def test_the_service(service: httpx.Client, url: str) -> None:
    # Sixteen concurrent near-duplicates at two workers: one is new.
    made = at_once(service, [("POST", article(n)) for n in range(16)])
    (new,) = [one for one in made if one["kind"] == "new"]
    assert {one["duplicate_of"] for one in made} <= {one["url"] for one in made} | {None}
    assert [one["title"] for one in made] == [f"Of {n}" for n in range(16)]
    # Requests that write their own row first, and requests that do not, cause no deadlock.
    both = [(method, article(n % 4)) for method in ("PUT", "POST") for n in range(8)]
    mixed = at_once(service, both)
    assert {one["kind"] for one in mixed} == {"unchanged"}
    other = article(99, paragraph(3), paragraph(4))
    assert service.post("/articles", json=other).json()["kind"] == "new"
    assert service.post("/articles", json={**other, "html": "<p>Not found"}).status_code == 422
    near = service.get("/near", params={"url": new["url"]}).json()
    assert len(near) == 15
    authors = {f"author {n}" for n in range(16) if not new["url"].endswith(f"/{n}")}
    assert {row["author"] for row in near} == authors
    # Hostile requests are the client's fault.
    for text in ("\0", "\ud800"):
        for name in ("url", "author"):
            bad = json.dumps({**other, name: other[name] + text})
            for method in ("POST", "PUT"):
                assert service.request(method, "/articles", content=bad).status_code == 422
        bad = json.dumps({**other, "html": other["html"] + text})
        assert service.post("/articles", content=bad).status_code in {200, 422}
    for method, path in (("GET", "/near"), ("DELETE", "/articles")):
        assert service.request(method, path, params={"url": "\0"}).status_code == 422
    assert service.get("/near", params={"url": "https://a.example/none"}).status_code == 404
    # Deleted in both; the earliest copy is the original now.
    assert service.delete("/articles", params={"url": new["url"]}).json() == [new["url"]]
    with psycopg.connect(url) as hand:
        assert hand.execute("SELECT count(*) FROM articles").fetchall() == [(16,)]
        (first,) = min((one["page_id"], one["url"]) for one in made if one != new)[1:]
        originals = "SELECT url FROM pgsimhash.pages WHERE distance IS NULL ORDER BY page_id"
        assert hand.execute(originals).fetchone() == (first,)
        aged = "UPDATE pgsimhash.pages SET fetched_at = now() - interval '99 days' WHERE url = %s"
        hand.execute(aged, [other["url"]])
    # The nightly job deletes the old page in both, and the rest is a story.
    assert run_commands(["python nightly.py"], url, FOLDER) == "1 expired, 1 stories\n"
    assert service.get("/near", params={"url": first}).json()[0]["author"]
    (story,) = service.get("/stories").json()
    assert len(story) == 15
    # The shortest address, of several the first.
    copies = [one for one in made if one != new]
    assert story[0] == min(copies, key=lambda one: (len(one["url"]), one["page_id"]))["url"]
    assert run_sql(url, "SELECT count(*) FROM articles") == [(15,)]
    run_commands(["alembic check"], url, FOLDER)
    with connect(url, collection="news", create=True) as store:
        assert list(store.check()) == []
        # Single pages write no runs.
        assert store.runs() == []


TASKS = f"""
import asyncio
from contextlib import asynccontextmanager
from app import app, lifespan, opened, request_session

async def request():
    async with lifespan(app), asynccontextmanager(request_session)():
        store = await opened()
        await asyncio.gather(store.ingest("https://a.example/", {page(*ARTICLE)!r}), store.find(0))

asyncio.run(request())
"""


def test_tasks_of_a_request_share_its_session(url: str, tmp_path: Path) -> None:
    (tmp_path / "tasks.py").write_text(TASKS)
    run_commands([f"PYTHONPATH=. python {tmp_path / 'tasks.py'}"], url, FOLDER)
    assert run_sql(url, "SELECT url FROM pgsimhash.pages") == [("https://a.example/",)]


def test_the_page_shows_the_service() -> None:
    programs = [(FOLDER / name).read_text(encoding="utf-8") for name in ("app.py", "nightly.py")]
    shown = blocks("web-service.md", "python")
    assert len(shown) == 6
    assert [block for block in shown if not any(block in program for program in programs)] == []


def test_its_history_goes_back(url: str) -> None:
    run_commands(["alembic downgrade base"], url, FOLDER)
