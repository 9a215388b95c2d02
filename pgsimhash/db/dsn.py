"""Choose the server: the DSN, the environment variables or the embedded server."""

import os
import re
from functools import cache
from typing import Final

from pgsimhash.errors import NoServerError, check_type
from pgsimhash.log import logger

DSN_VARIABLE: Final = "PGSIMHASH_DSN"
# The variable of many platforms. It is used if it names PostgreSQL, in SQLAlchemy's form too.
URL_VARIABLE: Final = "DATABASE_URL"
# Those of libpq that name a server, as for psql.
LIBPQ_VARIABLES: Final = ("PGHOST", "PGHOSTADDR", "PGPORT", "PGDATABASE", "PGSERVICE", "PGUSER")
EMBEDDED: Final = "embedded"  # the DSN of the embedded server

_WITH_DRIVER: Final = re.compile(r"^postgres(?:ql)?(?:\+\w+)?://")


def configured_dsn(dsn: str | None = None) -> str | None:
    """Return the DSN in libpq's form, None for the embedded server.

    It is ``dsn``, else PGSIMHASH_DSN, else DATABASE_URL. If none is given but one of
    :data:`LIBPQ_VARIABLES`, it is empty, so that libpq's defaults apply.
    """
    check_type(dsn, str | None, "a DSN is a str")
    if dsn == "":
        raise NoServerError("invalid_dsn", "the DSN is empty; name a server, or give none")
    given = dsn or os.environ.get(DSN_VARIABLE)
    url = os.environ.get(URL_VARIABLE, "")
    if not given and _WITH_DRIVER.match(url):
        given = url
    if given:
        return plain_dsn(given)
    return "" if any(map(os.environ.get, LIBPQ_VARIABLES)) else None


def plain_dsn(url: str) -> str:
    """Return a DSN without the driver in SQLAlchemy's URLs: ``postgresql+psycopg://``."""
    return _WITH_DRIVER.sub("postgresql://", url)


def resolve_dsn(dsn: str | None = None) -> str:
    """Return :func:`configured_dsn`; start the embedded server if it is that."""
    given = configured_dsn(dsn)
    if given and not dsn and not os.environ.get(DSN_VARIABLE):
        _log_variable()
    if given not in (None, EMBEDDED):
        return given
    # It needs Unix, so only those who use it load it.
    from pgsimhash import embedded

    return embedded.start()


@cache
def _log_variable() -> None:
    """Log, once in a process, that another program's variable names the server."""
    logger.warning("using the server of %s; name another with %s", URL_VARIABLE, DSN_VARIABLE)
