"""Find the connection source for the argument of ``connect``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from pgsimhash.db.alchemy_sources import EngineSource, SessionSource
from pgsimhash.db.connection import open_deployed
from pgsimhash.db.sources import (
    BLOCKING,
    CallerSource,
    ConnectionSource,
    DsnSource,
    Mode,
    PoolSource,
)
from pgsimhash.errors import ArgumentError

Sources = Mapping[str, Callable[[Any, Mode], ConnectionSource]]

_SOURCES: Final[Sources] = {
    "psycopg.Connection": CallerSource,
    "psycopg_pool.ConnectionPool": PoolSource,
    "sqlalchemy.Engine": EngineSource,
    "sqlalchemy.Connection": lambda where, mode: SessionSource(lambda: where, mode),
    "sqlalchemy.Session": lambda where, mode: SessionSource(lambda: where, mode),
    "sqlalchemy.scoped_session": SessionSource,
}


def source_of(
    where: Any, schema: str | None = None, *, prepare: bool | None = None
) -> ConnectionSource:
    """Return the connection source for an argument of :func:`pgsimhash.connect`.

    Raises:
        ArgumentError: the type is not supported, or ``prepare`` is given for a connection that the
            store does not open.
        StoreError: the connection is closed, or uses another driver than psycopg 3.
    """
    if is_dsn(where):
        return DsnSource(partial(open_deployed, as_dsn(where), schema, prepare=prepare))
    # The command line has plain connections.
    if source := chosen_source(getattr(where, "wrapped", where), _SOURCES, BLOCKING, prepare):
        return source
    name = f"{type(where).__module__}.{type(where).__qualname__}"
    hint = ""
    if "Async" in name or "async" in name:
        hint = "; use pgsimhash.connect_async() for asynchronous ones"
    elif callable(where):
        hint = "; maybe call it first"
    raise ArgumentError(
        "invalid_argument",
        f"a store needs a DSN, a psycopg connection or pool, or SQLAlchemy's URL, Engine, "
        f"Connection or Session, not {name}{hint}",
    )


def is_dsn(where: object) -> bool:
    """Return whether it is a DSN, a URL of SQLAlchemy, or None."""
    return where is None or isinstance(where, str) or "sqlalchemy.URL" in _kinds_of(where)


def as_dsn(where: Any) -> str | None:
    """Return a DSN, or a URL of SQLAlchemy, as text."""
    if where is None or isinstance(where, str):
        return where
    text: str = where.render_as_string(hide_password=False)
    return text


def chosen_source(
    where: Any, sources: Sources, mode: Mode, prepare: bool | None
) -> ConnectionSource | None:
    """Return the source for a connection, pool, engine or session, None for anything else.

    Raises:
        ArgumentError: ``prepare`` is given.
    """
    if prepare is not None:
        raise ArgumentError(
            "invalid_argument",
            "prepare applies to connections that the store opens itself, over a DSN or a URL; "
            "configure yours when you create them: psycopg.connect(..., prepare_threshold=None), a "
            "pool's kwargs, or create_engine(connect_args={'prepare_threshold': None})",
        )
    candidates = [sources[kind] for kind in _kinds_of(where) if kind in sources]
    return candidates[0](where, mode) if candidates else None


def _kinds_of(where: object) -> list[str]:
    """Return the classes of an object by package and name, so that no package is imported."""
    kinds = type(where).__mro__
    return [f"{kind.__module__.partition('.')[0]}.{kind.__name__}" for kind in kinds]
