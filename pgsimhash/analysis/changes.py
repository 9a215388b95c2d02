"""Show how a page changed from version to version, and how two texts differ."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from difflib import SequenceMatcher
from itertools import groupby
from typing import Any, ClassVar, Final, Literal, NamedTuple

from pgsimhash.analysis.wording import shortened
from pgsimhash.errors import NotFoundError
from pgsimhash.hashing.bits import band, hamming_distance
from pgsimhash.html.blocks import SAME_TEMPLATE_MAX
from pgsimhash.pages.records import JsonRecord
from pgsimhash.store import Store

Change = Literal["same", "edited", "rewritten", "redesign"]
Kind = Literal["same", "changed", "removed", "added", "skipped"]

CHARS_MAX: Final = 100_000
"""How many characters of each text are compared; ``Difference.cut`` says if there are more."""

_LINES_MAX: Final = 2_000
_WORDS_MAX: Final = 2_000
_AHEAD: Final = 20  # paragraphs among which one is searched
_ALIKE: Final = 0.3

# Words with the space after them; single characters in scripts without spaces.
_WORD: Final = re.compile(r"\d+(?:[.,]\d+)*\s*|[^\W\u2e80-\U0003ffff]+\s*|.\s*", re.DOTALL)

_LINK: Final = re.compile(r"!?\[([^\[\]]*)\]\([^()\s]*\)")
_SIGNS: Final = re.compile(r"[*_`#>|\\]+|^\s*[-+] ", re.MULTILINE)

_VALUES: Final = (
    *("url", "simhash", "fetched_at", "seen_at", "title", "structure", "html_bytes"),
    "text_digest",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class WithWords(JsonRecord):
    """A record with the words that changed, if both texts are known.

    ``words`` has runs of text for each place, the largest changes first; a run is ``same``,
    ``gone`` or ``new``.
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
    ``fetched_at`` if it was not seen again. ``distance`` and ``structure_distance`` are the bits to
    the previous version, and ``change`` is the kind of change; all three are None for the oldest.
    ``distance_to_first`` are the bits to the oldest.
    """

    _omitted = ("structure", "markdown", "text_digest", "words")

    number: int
    url: str
    simhash: int
    fetched_at: datetime
    seen_at: datetime
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
    names = (*_VALUES, "markdown") if markdown else _VALUES
    history: list[Version] = []
    for number, page in enumerate(stored_versions(store, url, names, all_versions=True), 1):
        version = Version(number, **{"markdown": None, **page})
        history.append(_compared(version, history[0], history[-1]) if history else version)
    return history


def stored_versions(
    store: Store, url: str, names: Iterable[str], *, all_versions: bool = False
) -> list[dict[str, Any]]:
    """Return values of a page's current version, or of all; raise NotFoundError without any."""
    with store._session.calls_to_read() as calls:
        urls = [calls.collection.page_url(url)]
        pages = calls.stored_pages(urls, names, all_versions=all_versions)
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
    """Return the version, compared with the first and the previous one."""
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
        words=kept_words(before.markdown, version.markdown),
    )


class Piece(NamedTuple):
    """A run of text, and whether it is missing on the other side."""

    text: str
    changed: bool


class Row(NamedTuple):
    """A paragraph of each text, side by side.

    ``same`` and ``changed`` have both sides, ``removed`` only the left, ``added`` only the right.
    ``skipped`` is a number of equal paragraphs.
    """

    kind: Kind
    left: tuple[Piece, ...] = ()
    right: tuple[Piece, ...] = ()
    skipped: int = 0


class Difference(NamedTuple):
    """The rows of a comparison; ``cut`` says whether texts or rows were cut off."""

    rows: tuple[Row, ...]
    cut: bool

    def as_json(self) -> dict[str, Any]:
        """Return the rows as JSON values: both texts, and for ``changed`` the unshared pieces."""
        return {"cut": self.cut, "rows": [_row_json(row) for row in self.rows]}


def side_by_side(left: str, right: str, *, context: int = 1, rows: int = 1_000) -> Difference:
    """Return the difference of two texts; each line is a paragraph.

    Equal paragraphs are matched first (Ratcliff and Metzener, "Pattern Matching: The Gestalt
    Approach", 1988, as in Python's difflib). Of the others, those that share words are paired, and
    their words are compared. ``context`` is the number of equal paragraphs that are kept around
    those that differ. Text beyond ``CHARS_MAX`` is ignored, which bounds the time.
    """
    a, cut_a = _lines(left)
    b, cut_b = _lines(right)
    collapsed = list(_collapsed(_rows(a, b), context))
    return Difference(tuple(collapsed[:rows]), cut_a or cut_b or len(collapsed) > rows)


def _row_json(row: Row) -> dict[str, Any]:
    values: dict[str, Any] = {"kind": row.kind}
    if row.kind == "skipped":
        values["paragraphs"] = row.skipped
    for name, pieces in (("a", row.left), ("b", row.right)):
        if pieces:
            values[name] = "".join(piece.text for piece in pieces)
            if row.kind == "changed":
                values[f"only_{name}"] = [piece.text.strip() for piece in pieces if piece.changed]
    return values


def _lines(text: str) -> tuple[list[str], bool]:
    lines = [line for line in map(str.strip, text[:CHARS_MAX].splitlines()) if line]
    return lines[:_LINES_MAX], len(text) > CHARS_MAX or len(lines) > _LINES_MAX


def _rows(a: Sequence[str], b: Sequence[str]) -> Iterator[Row]:
    for tag, a_start, a_end, b_start, b_end in SequenceMatcher(None, a, b).get_opcodes():
        if tag == "equal":
            for line in a[a_start:a_end]:
                yield Row("same", (Piece(line, False),), (Piece(line, False),))
        else:
            yield from _differing(a[a_start:a_end], b[b_start:b_end])


def _differing(a: Sequence[str], b: Sequence[str]) -> Iterator[Row]:
    """Pair each paragraph with the next one of the other text that shares enough words."""
    words_b = [set(_words(line)) for line in b]
    start = 0
    for left in a:
        words = set(_words(left))
        for place in range(start, min(start + _AHEAD, len(b))):
            # Dice's coefficient.
            if 2 * len(words & words_b[place]) >= _ALIKE * (len(words) + len(words_b[place])):
                yield from map(_added, b[start:place])
                yield Row("changed", *changed_words(left, b[place]))
                start = place + 1
                break
        else:
            yield Row("removed", left=(Piece(left, True),))
    yield from map(_added, b[start:])


def _added(line: str) -> Row:
    return Row("added", right=(Piece(line, True),))


def changed_words(before: str, after: str) -> tuple[tuple[Piece, ...], tuple[Piece, ...]]:
    """Return both texts in pieces, which are marked as changed where their words differ."""
    a, b = _WORD.findall(before), _WORD.findall(after)
    if len(a) > _WORDS_MAX or len(b) > _WORDS_MAX:
        return (Piece(before, True),), (Piece(after, True),)
    runs = SequenceMatcher(None, _words(before), _words(after)).get_opcodes()
    left = tuple(Piece("".join(a[i:j]), tag != "equal") for tag, i, j, *_ in runs if i < j)
    right = tuple(Piece("".join(b[i:j]), tag != "equal") for tag, *_, i, j in runs if i < j)
    return left, right


def merged_changes(
    before: str, after: str, *, paragraphs: int = 2, context: int = 9, longest: int = 300
) -> tuple[list[list[tuple[str, str]]], int]:
    """Return the places of two Markdown texts that changed most, and how many more there are.

    Each is a list of runs of words: ``same``, ``gone`` or ``new``, of at most ``longest``
    characters, and of five times as many together. A paragraph that only moved is no change.
    """
    found: list[tuple[int, list[tuple[str, str]]]] = []
    alone: dict[tuple[Kind, str], int] = {}
    for row in side_by_side(_unmarked(before), _unmarked(after), context=0).rows:
        if row.kind == "changed":
            changed = [piece.text for piece in (*row.left, *row.right) if piece.changed]
            runs = merged(row.left, row.right, context)
            found.append((sum(map(len, changed)), _cut(runs, longest)))
        elif row.kind in ("removed", "added"):
            (piece,) = row.left or row.right
            other: Kind = "added" if row.kind == "removed" else "removed"
            if (moved := alone.pop((other, piece.text), None)) is not None:
                found[moved] = (0, [])
                continue
            alone[row.kind, piece.text] = len(found)
            runs = [(piece.text, "gone" if row.left else "new")]
            found.append((len(piece.text), _cut(runs, longest)))
    places = [place for place, (size, _) in enumerate(found) if size]
    # Changed words in their context say more than whole paragraphs.
    places.sort(
        key=lambda place: (all(kind != "same" for _, kind in found[place][1]), -found[place][0])
    )
    shown = sorted(places[:paragraphs])
    return [found[place][1] for place in shown], len(places) - len(shown)


def _cut(runs: list[tuple[str, str]], longest: int) -> list[tuple[str, str]]:
    kept, room = list[tuple[str, str]](), 5 * longest
    for text, kind in runs:
        kept.append((shortened(text, longest), kind))
        room -= len(kept[-1][0])
        if room < 0:
            return [*kept, ("…", "same")]
    return kept


def kept_words(before: str | None, after: str | None) -> list[list[tuple[str, str]]] | None:
    """Return all places where kept Markdown changed; None unless both versions have some."""
    if before is None or after is None:
        return None
    limits = {"paragraphs": _LINES_MAX, "longest": CHARS_MAX}
    return merged_changes(before, after, context=3, **limits)[0]


def merged(left: Sequence[Piece], right: Sequence[Piece], context: int) -> list[tuple[str, str]]:
    """Return both sides of a changed paragraph as one list of runs: their text and its kind.

    A run is ``gone``, ``new`` or ``same``; of this, ``context`` words next to a change.
    """
    runs: list[tuple[str, str]] = []
    rest = list(right)
    for piece in left:
        if piece.changed:
            runs.append((piece.text.strip(), "gone"))
        while rest and rest[0].changed:
            runs.append((rest.pop(0).text.strip(), "new"))
        if not piece.changed:
            runs.append((_shortened(piece.text, context, first=not runs), "same"))
            del rest[:1]
    runs += [(piece.text.strip(), "new") for piece in rest]
    return [run for run in runs if run[0]]


def _shortened(text: str, context: int, *, first: bool) -> str:
    words = text.split()
    if len(words) <= 2 * context + 1:
        return " ".join(words)
    before, behind = words[:context], words[-context:]
    return " ".join(["…", *behind] if first else [*before, "…", *behind])


def _unmarked(markdown: str) -> str:
    """Return Markdown without the signs of links and emphasis, one paragraph a line as before."""
    return _SIGNS.sub("", _LINK.sub(r"\1", _LINK.sub(r"\1", markdown)))


def _words(line: str) -> list[str]:
    return [word.rstrip() for word in _WORD.findall(line)]


def _collapsed(rows: Iterator[Row], context: int) -> Iterator[Row]:
    """Replace runs of equal paragraphs by their number, except near a difference."""
    runs = [(is_same, list(run)) for is_same, run in groupby(rows, lambda row: row.kind == "same")]
    for number, (is_same, run) in enumerate(runs):
        after = context if number > 0 else 0
        before = context if number < len(runs) - 1 else 0
        skipped = len(run) - after - before
        # A single paragraph is not longer than the line that would replace it.
        if not is_same or skipped <= 1:
            yield from run
        else:
            yield from run[:after]
            yield Row("skipped", skipped=skipped)
            yield from run[after + skipped :]
