"""The exceptions that pgsimhash raises, each with stable codes for its reasons.

Programs read the code in ``reason``. The message is for people and says how to fix the problem.
Each class lists its codes in ``reasons``. A code says what a caller can do::

    PgsimhashError
    ├── PageError (ValueError)           skip the page, or fetch it differently
    ├── NotFoundError (LookupError)      name another page or run
    ├── ArgumentError (ValueError)       correct the call
    ├── MissingPackageError (ImportError) install the extra
    └── StoreError                       closed, pool_exhausted: open another; locked, gave_up,
        │                                moved: try again; the others: follow the message
        ├── NoServerError                connection_lost, no_server: try again later
        ├── SchemaError                  migrate, or upgrade the package
        └── CollectionError              open another collection
"""

from collections.abc import Mapping
from contextlib import suppress
from numbers import Integral
from operator import index
from reprlib import repr as short_repr
from typing import Any, ClassVar

_Codes = Mapping[str, str]


class PgsimhashError(Exception):
    """Base class of all exceptions of this package; ``reason`` is a key of ``reasons``."""

    reasons: ClassVar[_Codes] = {}
    """The codes of the class and their meanings."""

    def __init__(self, reason: str, message: str) -> None:
        # Both arguments, so that the exception can be pickled.
        super().__init__(reason, message)
        self.reason = reason

    def __str__(self) -> str:
        return str(self.args[1])


def install_command(extra: str = "") -> str:
    """Return the command to install or upgrade the package, with an extra.

    Anyone can register the name on PyPI until the first release, so it names a clone.
    """
    package = f".[{extra}]" if extra else "."
    return f"in an up-to-date clone of pgsimhash: pip install -e '{package}'"


class PageError(PgsimhashError, ValueError):
    """A page has no usable fingerprint. The other pages of a batch are not affected.

    Verdicts and failures of pages use the same codes.
    """

    reasons: ClassVar[_Codes] = {
        "too_short": "it has too little text: its simhash would match every other short page",
        "cut_short": "its selectors (`content`, `ignore`) leave too little text",
        "error_page": 'it says "page not found" and has almost no other text',
        "blocked": "it asks for a captcha, JavaScript or cookies first",
        "needs_script": "it is empty until a browser runs its scripts",
        "policy": "it has fewer words than `min_tokens`",
        "too_large": "it is larger than `max_bytes`, or has too many elements",
        "not_html": "it is a PDF, an image or another binary format, or only a path or URL",
        "unreadable": "a missing file, a broken record, or a value that cannot be stored",
        "invalid_url": "its URL is not absolute, or is too long",
        "crashed": "its process crashed, or an unexpected exception, which the detail names",
        "too_slow": "it took longer to read than `page_seconds`",
        "no_memory": "reading it needs too much memory",
    }


class NotFoundError(PgsimhashError, LookupError):
    """A page or run does not exist in the collection."""

    reasons: ClassVar[_Codes] = {
        "unknown_page": "the collection has no page of this URL",
        "unknown_run": "the collection has no such run, or none to undo",
    }


class ArgumentError(PgsimhashError, ValueError):
    """An argument, or a file that it names, is invalid.

    Every function may raise it, so docstrings name it only where the reason is not obvious.
    """

    reasons: ClassVar[_Codes] = {
        "invalid_argument": "an argument is invalid; the message says what to pass",
        "invalid_file": "a file of pairs or a Parquet file has errors; the message names them",
        "contrary_mark": "the mark contradicts other marks",
        "no_process": "a process that reads pages cannot start; the message says why",
        "unknown_scheme": "no scheme with this name is registered in this process",
    }


def invalid_argument(message: str) -> ArgumentError:
    """Return the error of the general code, ``invalid_argument``."""
    return ArgumentError("invalid_argument", message)


def check_type(value: object, kinds: Any, rule: str) -> None:
    """Raise ArgumentError unless ``value`` is of a type; ``rule`` begins the message."""
    if not isinstance(value, kinds):
        raise invalid_argument(f"{rule}, not {short_repr(value)}")


def check_number(
    name: str, value: Any, least: float = 1, most: float = 2**31 - 1, kind: Any = Integral
) -> Any:
    """Return a number of an argument, if it is one of ``least`` to ``most``."""
    with suppress(TypeError, OverflowError):  # numpy says that a timedelta64 is a number
        if isinstance(value, kind) and not isinstance(value, bool):
            number = (index if kind is Integral else float)(value)
            if least <= number <= most:
                return number
    raise invalid_argument(f"{name} is a number from {least:,} to {most:,}, not {value!r:.80}")


class MissingPackageError(PgsimhashError, ImportError):
    """An optional dependency of this package is not installed."""

    reasons: ClassVar[_Codes] = {"not_installed": "an extra is not installed; the message names it"}


class StoreError(PgsimhashError):
    """The database or the connection cannot be used in its present state."""

    reasons: ClassVar[_Codes] = {
        "closed": "the connection, the pool or the store is closed",
        "pool_exhausted": "all connections of the pool are in use",
        "wrong_transaction": "it failed: roll it back; or the call needs one, or cannot be in one",
        "unsuitable": "a version, driver, pooler, setting or table of the database rules it out",
        "read_only": "the database is read-only",
        "not_permitted": "the user lacks a permission",
        "locked": "a lock was not available within `lock_timeout`",
        "gave_up": "a timeout, a cancelled query or a full disk; committed work stays",
        "moved": "the collection was replaced or deleted during the call: try again",
        "refused": "the server refuses a statement or value, as a trigger of yours may",
    }


class NoServerError(StoreError):
    """No PostgreSQL server can be reached. Try again later, or use another DSN."""

    reasons: ClassVar[_Codes] = {
        "invalid_dsn": "the DSN is invalid, or names another database system",
        "no_server": "no server answers, or it starts, stops or has too many connections",
        "login_refused": "the server refuses the user, password, database or encryption",
        "connection_lost": "the connection was lost; committed work stays",
        "embedded": "the embedded server is not installed, cannot use its folder or does not start",
    }


class SchemaError(StoreError):
    """The schema has another version than this package: migrate."""

    reasons: ClassVar[_Codes] = {
        "missing": "the schema is not in the database",
        "older": "the schema is older than this package: migrate",
        "newer": "the schema is newer than this package: upgrade the package",
        "unversioned": "it has tables but no recorded revision, like a copy without rows",
        "other_owner": "the schema, or an object in it, belongs to an untrusted role",
    }


class CollectionError(StoreError):
    """The collection does not exist, has changed, or differs from what the caller expects."""

    reasons: ClassVar[_Codes] = {
        "unknown": "no collection has this name, or not any more",
        "other_settings": "its scheme, layout or settings differ from the requested ones",
        "being_rebuilt": "a rebuild replaces it; try again when it has ended",
        "taken": "the name is empty or taken",
    }
