"""From a template to a page that loads nothing and runs nothing, whatever stands in it.

Mako escapes every expression for HTML here; what a template writes unescaped is numbers that
this package drew.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from urllib.parse import urlsplit

from mako.lookup import TemplateLookup

from pgsimhash.content_policy import content_policy


def render_page(template: str, title: str, **values: object) -> str:
    """Return the page that ``templates/<template>.html`` makes of ``values``."""
    style = _style()
    page: str = (
        _templates()
        .get_template(f"{template}.html")
        .render(title=title, style=style, policy=content_policy(style), link=web_link, **values)
    )
    return page


def web_link(url: str | None) -> str | None:
    """Return ``url``, if it is one that a page may link to: http or https, never a script."""
    try:
        parts = urlsplit(url or "")
        return url if parts.scheme in ("http", "https") and parts.hostname else None
    except ValueError:
        return None


@cache
def _style() -> str:
    return files(__package__).joinpath("templates/style.css").read_text(encoding="utf-8")


@cache
def _templates() -> TemplateLookup:
    return TemplateLookup(
        [str(files(__package__).joinpath("templates"))],
        default_filters=["h"],
        strict_undefined=True,
    )
