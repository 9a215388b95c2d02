"""A proxy in front of a server that cuts connections, also during a commit."""

import selectors
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from socketserver import BaseRequestHandler, ThreadingTCPServer
from typing import Any

from psycopg import conninfo

COMMIT = b"Q\x00\x00\x00\x0bCOMMIT\x00"
"""The message that ends a transaction."""

STATEMENTS = b"\x00", b"S\x00\x00\x00\x04"
"""The ends of the messages of all statements, and of a login."""


class Proxy(ThreadingTCPServer):
    """Forwards data until it is told to cut.

    Attributes:
        port: the port that it listens on.
        counts: the ends of the messages that count.
        commits: the number of these that were forwarded, by default commits.
        cut_before: cuts instead of forwarding the one with this number.
        cut_after: forwards that one, and cuts instead of forwarding its answer.
        cuts: the number of connections that it cut.
        refusing: whether it refuses new connections.
    """

    daemon_threads = True

    def __init__(self, port: int, host: str = "127.0.0.1") -> None:
        super().__init__(("127.0.0.1", 0), BaseRequestHandler)
        self._host, self._to = host, port
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        self.port = int(self.server_address[1])
        self.counts: tuple[bytes, ...] = (COMMIT,)
        self.commits = 0
        self.cut_before: int | None = None
        self.cut_after: int | None = None
        self.cuts = 0
        self.refusing = False

    def dsn(self, dsn: str) -> str:
        return conninfo.make_conninfo(dsn, host="127.0.0.1", port=self.port, sslmode="disable")

    def cut(self) -> None:
        with self._lock:
            some = list(self._open)
        for one in some:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        self.cuts += len(some) // 2

    def finish_request(self, request: Any, client_address: Any) -> None:
        """Serve a client in a thread of its own; it is closed afterwards."""
        with suppress(OSError), self._connected() as server:
            ends = {request, server}
            with self._lock:
                self._open |= ends
            try:
                self._pass_on(request, server)
            finally:
                with self._lock:
                    self._open -= ends

    def _connected(self) -> socket.socket:
        if self.refusing:
            raise ConnectionRefusedError
        if not self._host.startswith("/"):
            return socket.create_connection((self._host, self._to))
        server = socket.socket(socket.AF_UNIX)
        server.connect(f"{self._host}/.s.PGSQL.{self._to}")
        return server

    def _pass_on(self, client: socket.socket, server: socket.socket) -> None:
        awaited = False
        with selectors.DefaultSelector() as ready, suppress(OSError):
            ready.register(client, selectors.EVENT_READ, server)
            ready.register(server, selectors.EVENT_READ, client)
            while True:
                for key, _ in ready.select():
                    source = client if key.fileobj is client else server
                    message = source.recv(1 << 16)
                    if not message or (awaited and source is server):
                        self.cuts += awaited
                        return
                    if source is client and message.endswith(self.counts):
                        with self._lock:
                            self.commits += 1
                            if self.commits == self.cut_before:
                                self.cuts += 1
                                return
                            awaited = self.commits == self.cut_after
                    key.data.sendall(message)


@contextmanager
def proxy(port: int, host: str = "127.0.0.1") -> Iterator[Proxy]:
    with Proxy(port, host) as made:
        serving = threading.Thread(target=made.serve_forever, args=[0.01])
        serving.start()
        try:
            yield made
        finally:
            made.cut()
            made.shutdown()
            serving.join()
