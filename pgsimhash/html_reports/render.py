"""Render templates to pages that load nothing and run nothing, for any content.

The content security policy of each page allows no script, no request and no style except the page's
own, by its hash (W3C, "Content Security Policy Level 3", 2.3.1). Mako escapes all expressions for
HTML. Templates write only numbers computed by this package unescaped.
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
    """Return ``templates/<template>.html`` filled with ``values``."""
    style = _style()
    page: str = (
        _templates()
        .get_template(f"{template}.html")
        .render(title=title, style=style, policy=_content_policy(style), link=web_link, **values)
    )
    return page


def web_link(url: str | None) -> str | None:
    """Return ``url`` if it is an http or https URL, which is safe to link to, else None."""
    try:
        parts = urlsplit(url or "")
        return url if parts.scheme in ("http", "https") and parts.hostname else None
    except ValueError:
        return None


def _content_policy(style: str) -> str:
    """Return the policy of a page whose only style is ``style``."""
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
