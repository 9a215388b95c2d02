"""A server that refuses a login is not called a server that does not answer, in any language."""

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import psycopg_pool
import pytest
import sqlalchemy as sa

from pgsimhash import PgsimhashError, connect
from pgsimhash.db import server_errors
from tests.store.connect.conftest import lent

CASES = {
    "wrong password": ("28P01", "Passwort-Authentifizierung fehlgeschlagen", "login_refused"),
    "no database": ("3D000", "la base de données « crawl » n'existe pas", "login_refused"),
    "no entry in pg_hba.conf": ("28000", "pg_hba.confエントリがありません", "login_refused"),
    "peer": ("28000", "Peer-Authentifizierung fehlgeschlagen", "login_refused"),
    "no CONNECT": ("42501", "keine Berechtigung für Datenbank »crawl«", "login_refused"),
    "too many connections": ("53300", "zu viele Verbindungen", "no_server"),
    "starting": ("57P03", "das Datenbanksystem startet", "no_server"),
    "stopping": ("57P01", "Verbindung wird abgebrochen", "no_server"),
    "full pooler": ("08P01", "no more connections allowed (max_client_conn)", "no_server"),
    "pooler without a server": ("08P01", "query_wait_timeout", "no_server"),
    "pooler": ("08P01", "unsupported startup parameter: options", "unsuitable"),
    "pooler, one of them": (
        "08P01", "unsupported startup parameter in options: work_mem", "unsuitable"
    ),
}  # fmt: skip
PASSWORD = struct.pack("!cii", b"R", 8, 3)
ADVICE = {
    "login_refused": "the server refuses the login: .*; correct user, password, database or ssl",
    "no_server": "the server accepts no connection now: .*; try again later",
    "unsuitable": "refuses the startup parameter (options|work_mem): .*ignore_startup_parameters",
}


@contextmanager
def server(state: str, words: str, asks: bytes = b"") -> Iterator[str]:
    """Lend the DSN of a server that refuses every login, maybe after it asks for a password."""
    fields = f"SFATAL\0VFATAL\0C{state}\0M{words}\0\0".encode()
    refusal = b"E" + struct.pack("!I", len(fields) + 4) + fields

    def serve() -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            with client:
                if len(client.recv(1000)) == 8:
                    # No to SSL.
                    client.sendall(b"N")
                    client.recv(1000)
                if asks:
                    client.sendall(asks)
                    client.recv(1000)
                client.sendall(refusal)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve)
        thread.start()
        try:
            port = listener.getsockname()[1]
            yield f"postgresql://crawler:x@127.0.0.1:{port}/crawl?sslmode=disable"
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


@pytest.mark.skipif(psycopg.pq.version() < 180000, reason="libpq traces no login")
@pytest.mark.parametrize("asks", [b"", PASSWORD], ids=["at once", "after the password"])
@pytest.mark.parametrize(("state", "words", "reason"), CASES.values(), ids=CASES)
def test_the_reason_does_not_depend_on_words(
    state: str, words: str, reason: str, asks: bytes
) -> None:
    with server(state, words, asks) as dsn:
        engine = sa.create_engine(dsn.replace("postgresql:", "postgresql+psycopg:"))
        for opens in (
            lambda: connect(dsn),
            lambda: connect(engine),
            lambda: lent("dsn", dsn, asynchronous=True).__enter__(),
        ):
            with pytest.raises(PgsimhashError, match=ADVICE[reason]) as caught:
                opens()
            assert caught.value.reason == reason
            assert words in str(caught.value)


@pytest.mark.parametrize(("words", "reason"), [
    ("the database system is starting up", "no_server"),
    ("sorry, too many clients already", "no_server"),
    ('password authentication failed for user "crawler"', "login_refused"),
])  # fmt: skip
def test_english_words_decide_without_a_trace_of_the_login(
    words: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_errors, "_login_trace", lambda login: b"")
    with server("28000", words) as dsn, pytest.raises(PgsimhashError, match=ADVICE[reason]):
        connect(dsn)


def test_a_pool_gives_the_same_reason() -> None:
    with (
        server(*CASES["peer"][:2]) as dsn,
        psycopg_pool.ConnectionPool(dsn, min_size=0, max_size=1, timeout=0.5) as pool,
        pytest.raises(PgsimhashError, match=ADVICE["login_refused"]),
    ):
        connect(pool)


def test_encryption_that_the_server_lacks() -> None:
    with (
        server(*CASES["peer"][:2]) as dsn,
        pytest.raises(PgsimhashError, match=ADVICE["login_refused"]) as caught,
    ):
        connect(dsn.replace("disable", "require"))
    assert caught.value.reason == "login_refused"
