"""Register schemes and find them by name."""

from __future__ import annotations

from pgsimhash.errors import ArgumentError
from pgsimhash.schemes.recipe import Scheme
from pgsimhash.schemes.shipped import SHIPPED

_schemes: dict[str, Scheme] = {scheme.name: scheme for scheme in SHIPPED}


def get_scheme(name: str | Scheme) -> Scheme:
    """Return the scheme of that name; return a scheme unchanged.

    Raises:
        ArgumentError: no scheme has this name; the message lists the names.
    """
    if isinstance(name, Scheme):
        return name
    try:
        return _schemes[name]
    except KeyError:
        raise ArgumentError(
            "unknown_scheme",
            f"there is no scheme {name!r}, only {', '.join(scheme_names())}; "
            "register yours in this process with pgsimhash.schemes.register_scheme()",
        ) from None


def scheme_names() -> list[str]:
    """Return the names of all schemes in order of registration, built-in schemes first."""
    return list(_schemes)


def register_scheme(scheme: Scheme) -> Scheme:
    """Register ``scheme`` by its name in this process, and return it.

    The same recipe may be registered again. Other processes do not learn of it: functions that use
    several processes pickle the scheme itself.

    Raises:
        ArgumentError: another recipe has this name.
    """
    known = _schemes.setdefault(scheme.name, scheme)
    if known != scheme:
        raise ArgumentError(
            "invalid_argument",
            f"the name {scheme.name!r} is taken by another recipe; simhashes of the two cannot be "
            "compared, so choose a different name",
        )
    return known
