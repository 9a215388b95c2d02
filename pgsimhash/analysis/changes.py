"""Show how a page changed from version to version."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, ClassVar, Final, Literal

from pgsimhash.analysis.block_pairs import aligned, blocks_of_text
from pgsimhash.errors import NotFoundError
from pgsimhash.hashing.bits import band, hamming_distance
from pgsimhash.html.blocks import SAME_TEMPLATE_MAX
from pgsimhash.pages.records import JsonRecord
from pgsimhash.store import Store

Change = Literal["same", "edited", "rewritten", "redesign"]

_LINK: Final = re.compile(r"!?\[([^\[\]]*)\]\([^()\s]*\)")
_SIGNS: Final = re.compile(r"^[|: -]+$|[*_`#>|\\]+|^\s*[-+] ", re.MULTILINE)

VALUES: Final = (
    *("url", "simhash", "fetched_at", "seen_at", "gone_at", "title", "structure", "html_bytes"),
    *("text_digest", "markdown"),
)
"""The values of stored pages that :class:`Version` has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WithWords(JsonRecord):
    """A record with the words that changed, if both texts are known.

    ``words`` has runs of ``same``, ``gone`` and ``new`` text of each place, large changes first.
    """

    _omitted: ClassVar[tuple[str, ...]] = ("words",)
    _computed = ("removed", "added")

    words: list[list[tuple[str, str]]] | None = None

    @property
    def removed(self) -> list[str] | None:
        """The texts that are gone."""
        return self._texts("gone")

    @property
    def added(self) -> list[str] | None:
        """The texts that are new."""
        return self._texts("new")

    def _texts(self, kind: str) -> list[str] | None:
        if self.words is None:
            return None
        return [text for runs in self.words for text, own in runs if own == kind]


@dataclass(frozen=True, slots=True)
class Version(WithWords):
    """One version of a page, compared with the versions before it.

    ``number`` counts from 1, the oldest. ``seen_at`` is when the version was last seen;
    ``fetched_at`` if it was not seen again; ``gone_at`` is when the page was found gone after it.
    ``distance`` and ``structure_distance`` are the bits to the previous version, ``change`` is the
    kind of change; all three are None for the oldest. ``distance_to_first`` are the bits to that.
    """

    _omitted = ("structure", "markdown", "text_digest", "words")

    number: int
    url: str
    simhash: int
    fetched_at: datetime
    seen_at: datetime
    gone_at: datetime | None
    title: str | None
    structure: int | None
    html_bytes: int | None
    markdown: str | None
    text_digest: int | None
    distance: int | None = None
    distance_to_first: int = 0
    structure_distance: int | None = None
    change: Change | None = None


def versions(store: Store, url: str, *, markdown: bool = True) -> list[Version]:
    """Return all versions of a page in the order in which they were added.

    Each has its distances to the previous and to the first version, and the kind of change:
    ``same``, ``edited``, ``rewritten`` or ``redesign``. A page that is seen again unchanged adds no
    version, but updates ``seen_at``. Without ``markdown``, kept Markdown is not read or compared.

    Raises:
        NotFoundError: the collection does not have the URL.
    """
    names = VALUES if markdown else VALUES[:-1]
    return compared_versions(stored_versions(store, url, names, versions=None))


def compared_versions(pages: Iterable[dict[str, Any]]) -> list[Version]:
    """Return stored versions of a page, each compared with the one before and the first."""
    history: list[Version] = []
    for number, page in enumerate(pages, 1):
        version = Version(number, **{"markdown": None, **page})
        history.append(_compared(version, history[0], history[-1]) if history else version)
    return history


def stored_versions(
    store: Store, url: str, names: Iterable[str], *, versions: int | None = 1
) -> list[dict[str, Any]]:
    """Return values of a page's last versions, None: of all; raise NotFoundError without any."""
    with store._session.calls_to_read() as calls:
        urls = [calls.collection.page_url(url)]
        pages = calls.stored_pages(urls, names, versions=versions)
    if not pages:
        raise NotFoundError(
            "unknown_page",
            f"collection {store.collection.name!r} does not know {url}: URLs are compared as "
            "given; correct it, name another --collection, or ingest the page first",
        )
    return pages


def judge(distance: int, structure_distance: int | None = None, *, same: bool) -> Change:
    """Return the kind of change, given the changed bits, and whether the texts are the same."""
    if not same and band(distance) == "different":
        return "rewritten"
    if structure_distance is not None and structure_distance > SAME_TEMPLATE_MAX:
        return "redesign"
    return "same" if same else "edited"


def known_distance(a: int | None, b: int | None) -> int | None:
    """Return the differing bits of two values, None if one is unknown."""
    return None if a is None or b is None else (a ^ b).bit_count()


def _compared(version: Version, first: Version, before: Version) -> Version:
    distance = hamming_distance(before.simhash, version.simhash)
    structure_distance = known_distance(before.structure, version.structure)
    same = before.text_digest == version.text_digest
    if before.text_digest is None or version.text_digest is None:
        same = band(distance) == "duplicate"
    return replace(
        version,
        distance=distance,
        distance_to_first=hamming_distance(first.simhash, version.simhash),
        structure_distance=structure_distance,
        change=judge(distance, structure_distance, same=same),
        words=changed_words(before.markdown, version.markdown),
    )


def changed_words(before: str | None, after: str | None) -> list[list[tuple[str, str]]] | None:
    """Return where two Markdown texts differ, as ``words`` of :class:`WithWords`.

    A paragraph that only moved is no change. Without one of the texts it is None.
    """
    if before is None or after is None:
        return None
    # Without the signs of links and emphasis, one paragraph a line as before.
    texts = (_SIGNS.sub("", _LINK.sub(r"\1", _LINK.sub(r"\1", text))) for text in (before, after))
    pairs = aligned(*map(blocks_of_text, texts))
    places = [pair.runs() for pair in pairs if pair.difference]

    def size(runs: list[tuple[str, str]]) -> tuple[bool, int]:
        # Changed words in their context say more than whole paragraphs.
        sizes = [len(text) for text, kind in runs if kind != "same"]
        return len(sizes) < len(runs), sum(sizes)

    return sorted(places, key=size, reverse=True)
