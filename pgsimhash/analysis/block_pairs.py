"""Align the text blocks of two pages, or the paragraphs of two texts, and compare their words."""

import re
from collections import Counter, defaultdict
from collections.abc import Container, Iterator, Sequence
from difflib import SequenceMatcher
from itertools import takewhile
from operator import eq
from typing import Any, Final, Literal, NamedTuple

from pgsimhash.analysis.wording import counted
from pgsimhash.html import Article
from pgsimhash.html.blocks import BESIDE_TAGS, Element, Named
from pgsimhash.html.page_words import TextBlock, WeightedWords
from pgsimhash.schemes.features import BlockWeights, occurrences, words_of

Place = Literal["text", "menu", "header", "footer", "overlay", "beside the text"]
Kind = Literal["same", "changed", "moved", "only_a", "only_b", "apart"]

BLOCKS_MAX: Final = 1_000
"""How many blocks of a page are compared: those with the largest shares of its vote."""

CHARS_MAX: Final = 100_000
"""How many characters of a text without blocks are compared."""

_QUIET: Final = 0.12  # a block below this share of the largest weight hardly votes
_ALIKE: Final = 0.4  # Dice's coefficient of the words of a changed block
_MOVED: Final = 0.6  # likewise, of one that is elsewhere, and has as many words:
_MOVED_WORDS: Final = 8
_MOVED_MAX: Final = 10_000  # pairs of them that are compared
_AHEAD: Final = 20
_TEXT: Final = 20_000  # characters of a block's text
_WORDS_MAX: Final = 2_000  # with more, what is between the equal ends of a block has changed
_CONTEXT: Final = 3  # equal words on each side of changed ones
_MORE: Final = ("more blocks",)  # the tokens of what is on both pages and beyond the limit

_PLACES: Final[dict[Place, tuple[Container[str], int]]] = {
    "menu": (("nav", "menu"), 0),
    "footer": (("footer",), Named.FOOTER),
    "overlay": (("dialog",), Named.OVERLAY),
    "beside the text": (BESIDE_TAGS, Named.BESIDE),
    "header": (("header",), Named.HEADER),
}
"""The tags, and the kinds of names, of the elements of each place."""

# Words with the space after them; single characters in scripts without spaces.
_WORD: Final = re.compile(r"\d+(?:[.,]\d+)*\s*|[^\W\u2e80-\U0003ffff]+\s*|.\s*", re.DOTALL)


class Piece(NamedTuple):
    """A run of text, and whether it is missing on the other side."""

    text: str
    changed: bool


class Block(NamedTuple):
    """A text block: its text, number of words, weight, share of the page's vote, and place.

    ``weight`` is 1 for the page's loudest block. The shares of a page's blocks sum to 1. Blocks are
    aligned by their ``tokens``, which comparisons do not keep.
    """

    text: str
    words: int
    weight: float
    share: float
    place: Place
    tokens: tuple[str, ...] = ()

    @property
    def is_quiet(self) -> bool:
        """Whether it hardly votes: below 12% of the weight of the loudest block."""
        return self.weight < _QUIET


class BlockPair(NamedTuple):
    """A block of each page, or of one.

    ``same`` blocks have the same words, ``moved`` ones are elsewhere on the other page.
    ``changed`` ones share words; ``left`` and ``right`` are the texts in pieces then, as of
    ``moved`` ones that changed. On an HTML page, different blocks stand side by side, ``apart``.
    """

    kind: Kind
    a: Block | None = None
    b: Block | None = None
    left: tuple[Piece, ...] = ()
    right: tuple[Piece, ...] = ()

    @property
    def blocks(self) -> list[Block]:
        """The blocks of both pages."""
        return [block for block in (self.a, self.b) if block is not None]

    @property
    def words(self) -> int:
        """The words of the larger block."""
        return max(block.words for block in self.blocks)

    @property
    def is_quiet(self) -> bool:
        """Whether no block of it votes much."""
        return all(block.is_quiet for block in self.blocks)

    def unshared(self, block: Block) -> float:
        """Return which share of one of its blocks, 0 to 1, the other page does not have."""
        pieces = self.left if block is self.a else self.right
        if self.kind in ("same", "moved") and not pieces:
            return 0.0
        whole = sum(len(piece.text) for piece in pieces)
        if not whole:
            return 1.0
        return sum(len(piece.text) for piece in pieces if piece.changed) / whole

    @property
    def lost(self) -> tuple[float, float]:
        """The share of each page's vote that the other page does not have."""
        a, b = (block.share * self.unshared(block) if block else 0.0 for block in (self.a, self.b))
        return a, b

    @property
    def difference(self) -> float:
        """The larger share of a vote that only one of the pages has."""
        return max(self.lost)

    def runs(self) -> list[tuple[str, str]]:
        """Return what changed as runs of text: ``gone``, ``new``, or ``same``.

        Of ``same`` text there are three words next to a change.
        """
        if not (self.left or self.right):
            return [(self.blocks[0].text, "gone" if self.b is None else "new")]
        runs: list[tuple[str, str]] = []
        rest = list(self.right)
        for piece in self.left:
            if piece.changed:
                runs.append((piece.text.strip(), "gone"))
            while rest and rest[0].changed:
                runs.append((rest.pop(0).text.strip(), "new"))
            if not piece.changed:
                runs.append((_shortened(piece.text, first=not runs), "same"))
                del rest[:1]
        for piece in rest:
            same = _shortened(piece.text, first=not runs), "same"
            runs.append((piece.text.strip(), "new") if piece.changed else same)
        return [run for run in runs if run[0]]

    def as_json(self) -> dict[str, Any]:
        """Return the kind and the blocks as JSON values, with the changed pieces of each."""
        values: dict[str, Any] = {"kind": self.kind}
        for name, block, pieces in (("a", self.a, self.left), ("b", self.b, self.right)):
            if block is not None:
                values[name] = block._asdict()
                del values[name]["tokens"]
                if pieces:
                    values[name]["changed"] = [p.text.strip() for p in pieces if p.changed]
        return values


def _shortened(text: str, *, first: bool) -> str:
    words = text.split()
    if len(words) <= 2 * _CONTEXT + 1:
        return " ".join(words)
    before, behind = words[:_CONTEXT], words[-_CONTEXT:]
    return " ".join(["…", *behind] if first else [*before, "…", *behind])


def vote_shares(words: WeightedWords, weigh: BlockWeights) -> list[float]:
    """Return the share of each block in the vote of a page; they sum to 1.

    A feature's weight in the vote is damped by all its occurrences; each block has its part of it.
    """
    found = list(occurrences(words))
    sums: defaultdict[str, float] = defaultdict(float)
    for _, name, weight in found:
        sums[name] += weight
    damped = {name: (1.0 + weight) ** -weigh.damping for name, weight in sums.items()}
    votes = [0.0] * len(words.blocks)
    for place, name, weight in found:
        votes[place] += weight * damped[name]
    total = sum(votes) or 1.0
    return [vote / total for vote in votes]


def blocks_of(article: Article, weigh: BlockWeights) -> list[Block]:
    """Return the blocks of an article."""
    words = words_of(article)
    loudest = max((block.weight for block in words.blocks), default=1.0) or 1.0
    shares, texts = vote_shares(words, weigh), words.texts()
    return [
        Block(text[:_TEXT], len(own), block.weight / loudest, share, _place(block), own)
        for text, block, share in zip(texts, words.blocks, shares, strict=True)
        for own in [tuple(block.words)]
    ]


def blocks_of_text(text: str) -> list[Block]:
    """Return the paragraphs of a text, a line each; all weigh the same."""
    lines = [line for line in map(str.strip, text[:CHARS_MAX].splitlines()) if line]
    words = [_words(line) for line in lines]
    whole = sum(map(len, words)) or 1
    return [
        Block(line[:_TEXT], len(own), 1.0, len(own) / whole, "text", own)
        for line, own in zip(lines, words, strict=True)
    ]


def equal_ends(a: Sequence[str], b: Sequence[str]) -> tuple[int, int]:
    """Return the number of equal words at the beginning, and of the others at the end."""
    head, tail = (sum(takewhile(bool, map(eq, a[::step], b[::step]))) for step in (1, -1))
    return head, min(tail, len(a) - head, len(b) - head)


def _words(text: str) -> tuple[str, ...]:
    return tuple(word.rstrip() for word in _WORD.findall(text))


def _bounded(blocks: Sequence[Block], known: Container[tuple[str, ...]]) -> Sequence[Block]:
    """Return the blocks with the largest shares, and the others as two: known ones, and not."""
    if len(blocks) <= BLOCKS_MAX:
        return blocks
    order = sorted(range(len(blocks)), key=lambda at: -blocks[at].share)
    bounded = [blocks[at] for at in sorted(order[: BLOCKS_MAX - 2])]
    for is_known in (True, False):
        own = [
            block
            for at in order[BLOCKS_MAX - 2 :]
            if ((block := blocks[at]).tokens in known) is is_known
        ]
        if own:
            words, share = sum(block.words for block in own), sum(block.share for block in own)
            tokens = _MORE if is_known else (repr(own[0].tokens),)
            weight = max(block.weight for block in own)
            text = counted(len(own), "more block")
            bounded.append(Block(text, words, weight, share, "text", tokens))
    return bounded


def _place(block: TextBlock) -> Place:
    """Return where a block is on the page, by the tags and names around it."""
    element: Element = block.element
    while element.parent is not element:
        for place, (tags, names) in _PLACES.items():
            if element.tag in tags or element.names.flags & names:
                return place
        element = element.parent
    return "text"


def aligned(a: Sequence[Block], b: Sequence[Block]) -> Iterator[BlockPair]:
    """Yield the blocks of both pages in one order: equal ones side by side, alike ones paired."""
    known_a, known_b = ({_MORE, *(block.tokens for block in blocks)} for blocks in (a, b))
    a, b = _bounded(a, known_b), _bounded(b, known_a)

    def only_a(block: Block) -> BlockPair:
        return BlockPair("moved" if block.tokens in known_b else "only_a", a=block)

    def only_b(block: Block) -> BlockPair:
        return BlockPair("moved" if block.tokens in known_a else "only_b", b=block)

    def between(own: Sequence[Block], others: Sequence[Block]) -> Iterator[BlockPair]:
        # Blocks that are there very often are only paired below, which bounds the time.
        matcher = SequenceMatcher(None, [x.tokens for x in own], [x.tokens for x in others])
        for tag, i, j, k, m in matcher.get_opcodes():
            if tag == "equal":
                yield from map(_paired, own[i:j], others[k:m])
            else:
                yield from differing(own[i:j], others[k:m])

    def differing(own: Sequence[Block], others: Sequence[Block]) -> Iterator[BlockPair]:
        sets = [set(other.tokens) for other in others]
        start = 0
        for block in own:
            words = set(block.tokens)
            ahead = enumerate(sets[start : start + _AHEAD], start)
            shares = {at: _alike(words, set_) for at, set_ in ahead}
            at = max(shares, key=shares.__getitem__, default=start)
            if shares.get(at, 0.0) >= _ALIKE:
                yield from map(only_b, others[start:at])
                yield _paired(block, others[at])
                start = at + 1
            else:
                yield only_a(block)
        yield from map(only_b, others[start:])

    def in_order() -> Iterator[BlockPair]:
        before_a = before_b = 0
        for at, other in _anchors(a, b):
            yield from between(a[before_a:at], b[before_b:other])
            yield BlockPair("same", a[at], b[other])
            before_a, before_b = at + 1, other + 1
        yield from between(a[before_a:], b[before_b:])

    yield from _moved(list(in_order()))


def _alike(words: set[str], others: set[str]) -> float:
    return 2 * len(words & others) / (len(words) + len(others) or 1)


def _moved(pairs: list[BlockPair]) -> list[BlockPair]:
    """Return the pairs; of blocks that one page has, alike ones become moved ones that changed."""
    alone = {
        at: (pair.kind, set(pair.blocks[0].tokens))
        for at, pair in enumerate(pairs)
        if pair.kind.startswith("only") and pair.words >= _MOVED_WORDS
    }
    own, others = ([at for at in alone if alone[at][0] == kind] for kind in ("only_a", "only_b"))
    if len(own) * len(others) > _MOVED_MAX:
        return pairs
    for at in own:
        shares = {other: _alike(alone[at][1], alone[other][1]) for other in others}
        best = max(shares, key=shares.__getitem__, default=at)
        a, b = pairs[at].a, pairs[best].b
        if a is not None and b is not None and shares[best] >= _MOVED:
            others.remove(best)
            both = _paired(a, b)
            pairs[at] = BlockPair("moved", a=a, left=both.left)
            pairs[best] = BlockPair("moved", b=b, right=both.right)
    return pairs


def _paired(a: Block, b: Block) -> BlockPair:
    """Return two blocks side by side, in pieces that are marked where their words differ."""
    if a.tokens == b.tokens:
        return BlockPair("same", a, b)
    before, after = _WORD.findall(a.text), _WORD.findall(b.text)
    one, other = _words(a.text), _words(b.text)
    if max(len(one), len(other)) > _WORDS_MAX:
        head, tail = equal_ends(one, other)

        def pieces(words: list[str]) -> tuple[Piece, ...]:
            end = len(words) - tail
            parts = ("".join(words[:head]), "".join(words[head:end]), "".join(words[end:]))
            return tuple(Piece(text, at == 1) for at, text in enumerate(parts) if text)

        return BlockPair("changed", a, b, pieces(before), pieces(after))
    runs = SequenceMatcher(None, one, other).get_opcodes()
    left = tuple(Piece("".join(before[i:j]), tag != "equal") for tag, i, j, *_ in runs if i < j)
    right = tuple(Piece("".join(after[i:j]), tag != "equal") for tag, *_, i, j in runs if i < j)
    return BlockPair("changed", a, b, left, right)


def _anchors(a: Sequence[Block], b: Sequence[Block]) -> list[tuple[int, int]]:
    """Return the places of equal blocks in the same order that have the most words together.

    Only blocks that are on each page once, so a menu of few words never moves the text.
    """
    once_a, once_b = (Counter(block.tokens for block in blocks) for blocks in (a, b))
    places = {block.tokens: at for at, block in enumerate(b) if once_b[block.tokens] == 1}
    found = [
        (at, places[block.tokens])
        for at, block in enumerate(a)
        if once_a[block.tokens] == 1 and block.tokens in places
    ]
    best: list[tuple[int, int]] = []  # the words up to each, and the one before it
    for at, (own, other) in enumerate(found):
        earlier = ((best[i][0], i) for i in range(at) if found[i][1] < other)
        most, before = max(earlier, default=(0, -1))
        best.append((most + len(a[own].tokens), before))
    at = max(range(len(best)), key=lambda at: best[at], default=-1)
    chain = []
    while at >= 0:
        chain.append(found[at])
        at = best[at][1]
    return chain[::-1]
