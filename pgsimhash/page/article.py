"""What reading a page gives, whichever way it is read."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Article:
    """The main content of a page: ``markdown`` for people, ``text`` for the simhash.

    ``structure`` is the simhash of the page's shape, None where the reader does not see it.
    """

    markdown: str
    text: str
    title: str | None
    canonical_url: str | None
    language: str | None
    structure: int | None = None
