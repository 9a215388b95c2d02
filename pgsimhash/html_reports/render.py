"""From a template to a page that loads nothing and runs nothing, whatever stands in it.

Each page carries a policy that makes sure of it: no script, no request, and no style but the page's
own, which it knows by its hash (W3C, "Content Security Policy Level 3", 2.3.1).
Mako escapes every expression for HTML here; what a template writes unescaped is numbers that
this package drew.
"""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib.resources import files
from typing import Final
from urllib.parse import urlsplit

from mako.lookup import TemplateLookup

_POLICY: Final = "default-src 'none'; style-src 'sha256-{}'; base-uri 'none'; form-action 'none'"


def render_page(template: str, title: str, **values: object) -> str:
    """Return the page that ``templates/<template>.html`` makes of ``values``."""
    style = _style()
    page: str = (
        _templates()
        .get_template(f"{template}.html")
        .render(title=title, style=style, policy=_content_policy(style), link=web_link, **values)
    )
    return page


def web_link(url: str | None) -> str | None:
    """Return ``url``, if it is one that a page may link to: http or https, never a script."""
    try:
        parts = urlsplit(url or "")
        return url if parts.scheme in ("http", "https") and parts.hostname else None
    except ValueError:
        return None


def _content_policy(style: str) -> str:
    """Return the policy of a page with nothing but ``style`` in its one style element."""
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return _POLICY.format(digest)


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
