"""Inspect and use this machine and process: memory, cores, progress, output, lazy imports."""

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module

from pgsimhash.errors import MissingPackageError, install_command


def loaded_later(
    module: str, homes: Mapping[str, str]
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__``, which load names when they are used (PEP 562).

    So importing a package only costs what is used. ``homes`` maps modules to the names that they
    define. They are those that the module imports ``if TYPE_CHECKING``. They become its
    ``__all__``, unless it defines one.
    """
    namespace = vars(sys.modules[module])
    home_of = {name: home for home, names in homes.items() for name in names.split()}
    namespace["__all__"] = sorted(name for name in home_of if not name.startswith("_"))

    def load(name: str) -> object:
        if name not in home_of:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        # Later accesses find the attribute without this function.
        namespace[name] = value = getattr(import_module(home_of[name]), name)
        return value

    return load, lambda: sorted({*namespace, *home_of})


def no_progress(*counts: object) -> None:
    """Ignore the progress."""


@contextmanager
def requires(what: str, package: str, extra: str) -> Iterator[None]:
    """Name the missing extra if an import in the block fails."""
    try:
        yield
    except ImportError as error:
        message = f"{what} needs {package}; install it {install_command(extra)}"
        raise MissingPackageError("not_installed", message) from error
