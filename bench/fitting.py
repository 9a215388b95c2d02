"""Fit the coefficients of block weights to the distances of simhashes of labelled pairs.

The votes of two pages have an angle, and each bit of their simhashes differs with the probability
angle / pi. So the expected share of pairs within k bits is a smooth function of the coefficients.
Gradient descent finds coefficients that find many copies and match few different pages, as a store
decides: up to the largest distance at which the signatures of a pair confirm a match.

Features that occur in the same blocks equally often have the same weight for any coefficients. They
form one group, which makes a fit several times as fast.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.sparse import csr_matrix
from scipy.special import bdtr, comb

from pgsimhash.hashing.bits import BITS, IDENTICAL_MAX, NEAR_MAX
from pgsimhash.hashing.hashes import GOLDEN_RATIO, murmur3_64
from pgsimhash.hashing.votes import signature_hashes, vote
from pgsimhash.html.blocks import outline
from pgsimhash.html.page_words import LISTED, VOLATILE, read_words
from pgsimhash.html.parse import clean_utf8, parse
from pgsimhash.html.weights import COEFFICIENTS, LEVEL, SCORE_MAX, features, weights_of
from pgsimhash.schemes.features import EVENED, OCCURRENCES, BlockWeights, pair_hashes

sys.path.append(str(Path(__file__).parents[1]))

from bench.quality import Pair

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]
Integers = NDArray[np.int64]

NAMES = tuple(COEFFICIENTS)
KINDS = tuple(OCCURRENCES)
HELD = "apart"
"""This coefficient is not fitted: few labelled pages have such parts in one version only."""
REACH = 0.2
"""Different pages with a smaller share of differing bits are pushed apart."""
NEAR = {
    "organic": 3300, "synthetic": 2500, "made-index": 75, "made-footer": 10, "made-data": 150,
    "made-short": 40, "made-post": 150, "made-rows": 60,
    "data-organic": 1800, "data-syn-timestamp": 500, "data-syn-cells-10": 1000,
}  # fmt: skip
FAR = {
    "made-index": 0.2, "made-footer": 0.03, "made-data": 1.5, "made-short": 0.3, "made-post": 0.3,
    "made-rows": 0.3, "hard": 4.0,
}  # fmt: skip
_SALTS = np.random.default_rng(5).integers(1, 2**63, 1 << 16, dtype=np.uint64)


@dataclass(frozen=True)
class PolicySettings:
    """The objective of a fit.

    Attributes:
        damping: of :class:`pgsimhash.schemes.features.BlockWeights`.
        aims: the value of a copy found, and the cost of a false match, within 3 bits, within the
            limit of the pair, and within 8 bits without signatures.
        near: the total value of the copies of a kind, in pairs.
        far: the cost of a pair of different pages of a kind, in pairs; 1 by default.
        root_far: the total cost of the pairs of different pages of a kind and a source in a set of
            data pages, times the root of their number.
        reach: the cost of a pair of different pages that is pushed apart (see ``REACH``).
        hold: how strongly coefficients are held at their initial values.
        turns: the iterations of the optimiser.
    """

    damping: float = BlockWeights().damping
    aims: tuple[tuple[float, float], ...] = ((0.6, 1.5), (1.2, 1.5), (0.1, 0.1))
    near: Mapping[str, float] = field(default_factory=lambda: NEAR)
    far: Mapping[str, float] = field(default_factory=lambda: FAR)
    root_far: float = 4.5
    reach: float = 3.0
    hold: float = 10.0
    turns: int = 80


@dataclass(frozen=True)
class Observed:
    """A page for fitting.

    Attributes:
        known: the features of its blocks (shape (m, f)).
        counts: the numbers of words of its blocks (shape (m,)).
        hashes: the hashes of its words and pairs, ascending (shape (n,)).
        groups: the group of each (shape (n,)).
        sizes: the sizes of the groups (shape (g,)).
        at: the groups and blocks of the occurrences (shape (2, o)).
        times: how often a feature of that group occurs in that block (shape (o,)).
        kinds: the kinds of these occurrences, as in ``KINDS`` (shape (o,)).
    """

    known: Singles
    counts: Singles
    hashes: NDArray[np.uint64]
    groups: NDArray[np.int32]
    sizes: Singles
    at: NDArray[np.int32]
    times: Singles
    kinds: NDArray[np.int8]


def observe(html: bytes) -> Observed | None:
    """Read a page; None if it has no words."""
    root = parse(clean_utf8(html))
    body = root.find("body")
    page = outline(root if body is None else body)
    texts = [text for text in read_words(page) if text.words]
    if not texts:
        return None
    known = [[row[name] for name in NAMES] for row in features(page.elements, texts)]
    counts, blocks = [len(text.words) for text in texts], len(texts)
    words = murmur3_64([word for text in texts for word in text.words])
    block = np.repeat(np.arange(blocks), counts)
    inside = block[1:] == block[:-1]
    row = np.array([text.row for text in texts])[block]
    across = ~inside & (row[1:] == row[:-1]) & (row[1:] > 0)
    pairs = pair_hashes(words[:-1], words[1:])
    voters = np.concatenate((words, pairs[inside], pairs[across]))
    hashes, feature = np.unique(voters, return_inverse=True)
    kinds = np.minimum([kind for text in texts for kind in text.kinds], VOLATILE)
    both = np.maximum(kinds[1:], kinds[:-1])
    block = np.concatenate((block, block[1:][inside], block[1:][across]))
    kind = np.concatenate(
        (kinds, 4 + both[inside], 4 + np.where(both[across] < LISTED, both[across], VOLATILE))
    )
    occurrences, times = np.unique(
        (feature * blocks + block) * len(KINDS) + kind, return_counts=True
    )
    occurrences, kind = np.divmod(occurrences, len(KINDS))
    feature, block = np.divmod(occurrences, blocks)
    # A fingerprint of a feature's blocks identifies its group.
    shape = np.zeros(len(hashes), np.uint64)
    place = block * len(KINDS) + kind
    salt = _SALTS[place % len(_SALTS)] + (place // len(_SALTS)).astype(np.uint64)
    np.add.at(shape, feature, salt * (times.astype(np.uint64) * GOLDEN_RATIO + np.uint64(1)))
    _, example, group, sizes = np.unique(
        shape, return_index=True, return_inverse=True, return_counts=True
    )
    chosen = np.isin(feature, example)
    return Observed(
        np.array(known, np.float32),
        np.array(counts, np.float32),
        hashes,
        group.astype(np.int32),
        sizes.astype(np.float32),
        np.array((group[feature[chosen]], block[chosen]), np.int32),
        times[chosen].astype(np.float32),
        kind[chosen].astype(np.int8),
    )


def sums_of(places: Integers, amounts: Floats, size: int) -> Floats:
    """Return the sum of the ``amounts`` at each place in 0..``size`` - 1."""
    return np.bincount(places, amounts, size).astype(np.float64, copy=False)


class Problem:
    """Pairs of pages, and their distances for given coefficients.

    ``limits`` are the largest distances at which the signatures of the pairs confirm a match, -1
    for none (shape (n,)).
    """

    def __init__(
        self, pages: Mapping[str, Observed | None], pairs: Sequence[Pair], limits: Integers
    ) -> None:
        names = sorted({name for pair in pairs for name in (pair.a, pair.b)})
        number = {name: at for at, name in enumerate(names)}
        seen = [pages[name] for name in names]
        empty = [at for at, page in enumerate(seen) if page is None]
        assert not empty, f"pages without words: {[names[at] for at in empty]}"
        own = [page for page in seen if page is not None]
        blocks = np.concatenate(([0], np.cumsum([len(page.counts) for page in own])))
        groups = np.concatenate(([0], np.cumsum([len(page.sizes) for page in own])))
        self.pairs, self.limits = pairs, limits
        self.known = np.concatenate([page.known for page in own])
        self.counts = np.concatenate([page.counts for page in own]).astype(np.float64)
        self.sizes = np.concatenate([page.sizes for page in own]).astype(np.float64)
        self.page_of_block = np.repeat(np.arange(len(own)), np.diff(blocks))
        self.page_of_group = np.repeat(np.arange(len(own)), np.diff(groups))
        rows = np.concatenate([page.at[0] + groups[at] for at, page in enumerate(own)])
        columns = np.concatenate([page.at[1] + blocks[at] for at, page in enumerate(own)])
        often = np.concatenate([page.times for page in own])
        kinds = np.concatenate([page.kinds for page in own])
        self.stands = [
            csr_matrix((often[own_], (rows[own_], columns[own_])), shape=(groups[-1], blocks[-1]))
            for own_ in (kinds == kind for kind in range(len(KINDS)))
        ]
        self.stands_in = [stands.T.tocsr() for stands in self.stands]
        self.first = np.array([number[pair.a] for pair in pairs])
        self.second = np.array([number[pair.b] for pair in pairs])
        self.near = np.array([pair.near for pair in pairs])
        left, right, times, pair_of = [], [], [], []
        for at, (a, b) in enumerate(zip(self.first, self.second, strict=True)):
            one, other, shared = _shared(own[a], own[b])
            left.append(one + groups[a])
            right.append(other + groups[b])
            times.append(shared)
            pair_of.append(np.full(len(one), at))
        self.left, self.right = np.concatenate(left), np.concatenate(right)
        self.shared = np.concatenate(times).astype(np.float64)
        self.pair_of = np.concatenate(pair_of)

    def apart(self, coefficients: Floats, settings: PolicySettings) -> Floats:
        """Return the probability that a bit differs, for each pair."""
        probability: Floats = np.arccos(self._forward(coefficients, settings).cosine) / np.pi
        return probability

    def loss(
        self, coefficients: Floats, start: Floats, worth: Floats, settings: PolicySettings
    ) -> tuple[float, Floats]:
        """Return the cost of the coefficients, and its gradient."""
        now = self._forward(coefficients, settings)
        apart = np.arccos(now.cosine) / np.pi
        cost, slope = 0.0, np.zeros(len(apart))
        limits = np.where(self.near, np.maximum(self.limits, IDENTICAL_MAX), self.limits)
        bounds = (np.minimum(limits, IDENTICAL_MAX), limits, np.full(len(limits), NEAR_MAX))
        for bound, (found, matched) in zip(bounds, settings.aims, strict=True):
            weight = np.where(self.near, -found, matched) * worth * (bound >= 0)
            k = np.maximum(bound, 0)
            cost += float((weight * bdtr(k, BITS, apart)).sum())
            slope -= weight * BITS * comb(BITS - 1, k) * apart**k * (1 - apart) ** (BITS - 1 - k)
        # Otherwise different pages with a small distance have no slope.
        reach = np.where(self.near, 0.0, settings.reach) * worth * np.where(limits < 0, 0.2, 1.0)
        cost += float((reach * np.maximum(REACH - apart, 0.0)).sum())
        slope -= reach * (apart < REACH)
        slope *= -1 / (np.pi * np.sqrt(1 - now.cosine**2))
        # From the cosines to the votes of the groups ...
        a, b = now.norms[self.first], now.norms[self.second]
        by_dot = (slope / (a * b))[self.pair_of] * self.shared
        groups, pages = len(self.sizes), len(now.norms)
        votes = sums_of(self.left, by_dot * now.votes[self.right], groups)
        votes += sums_of(self.right, by_dot * now.votes[self.left], groups)
        by_norm = np.bincount(self.first, slope * now.cosine / a**2, pages)
        by_norm += np.bincount(self.second, slope * now.cosine / b**2, pages)
        votes -= by_norm[self.page_of_group] * now.votes * self.sizes
        # ... to the weights of the blocks, and through the level of the page to their scores.
        back = (votes * now.vote_slopes).astype(np.float32)
        by_kind = [stands_in @ back for stands_in in self.stands_in]
        counts = counts_of(coefficients)
        weights = np.sum([count * by for count, by in zip(counts, by_kind, strict=True)], 0)
        by_count = [
            count * float(by @ now.weights) for count, by in zip(counts, by_kind, strict=True)
        ]
        scores = weights * now.weights * (1 - now.weights)
        through = np.bincount(self.page_of_block, scores, pages)
        part = (now.ratio / (1 + now.ratio))[self.page_of_block]
        upper, lower = now.squares[self.page_of_block], now.sums[self.page_of_block]
        by_level = 2 * self.counts * now.levels**2 / upper * (
            1 - part
        ) + self.counts * now.levels / lower * (2 * part - 1)
        scores -= through[self.page_of_block] * by_level
        gradient = np.concatenate(
            ((self.known.T @ scores.astype(np.float32)).astype(np.float64), by_count[1:])
        )
        moved = coefficients - start
        cost += settings.hold / 2 * float((moved**2).sum())
        return cost, gradient + settings.hold * moved

    def fit(self, start: Floats, worth: Floats, settings: PolicySettings) -> Floats:
        """Return the coefficients with the smallest cost, near ``start``."""
        held = zip(NAMES, start[: len(NAMES)].tolist(), strict=True)
        found = minimize(
            self.loss,
            start,
            args=(start, worth, settings),
            jac=True,
            method="L-BFGS-B",
            bounds=[(at, at) if name == HELD else (None, None) for name, at in held]
            + [(at, at) for at in start[len(NAMES) :].tolist()],
            options={"maxiter": settings.turns, "maxcor": 20, "ftol": 1e-6},
        )
        coefficients: Floats = found.x
        return coefficients

    def _forward(self, coefficients: Floats, settings: PolicySettings) -> _Forward:
        scores = self.known @ coefficients[: len(NAMES)].astype(np.float32)
        levels = np.exp(np.clip(scores, -SCORE_MAX, SCORE_MAX).astype(np.float64))
        pages = int(self.page_of_block[-1]) + 1
        sums = sums_of(self.page_of_block, self.counts * levels, pages)
        squares = sums_of(self.page_of_block, self.counts * levels**2, pages)
        ratio = LEVEL * squares / sums**2
        level = squares / sums / (1 + ratio)
        weights = levels / (levels + level[self.page_of_block])
        counts = counts_of(coefficients)
        amounts = np.sum(
            [count * (stands @ weights) for count, stands in zip(counts, self.stands, strict=True)],
            0,
        )
        damped = (1 + amounts) ** -settings.damping
        votes = amounts * damped
        slopes = damped * (1 - settings.damping * amounts / (1 + amounts))
        norms = np.sqrt(np.bincount(self.page_of_group, self.sizes * votes**2, pages)) + 1e-9
        dots = np.bincount(
            self.pair_of,
            self.shared * votes[self.left] * votes[self.right],
            len(self.pairs),
        )
        cosine = dots / (norms[self.first] * norms[self.second])
        return _Forward(
            levels, sums, squares, ratio, weights, votes, slopes, norms,
            np.clip(cosine, -0.999999, 0.999999),
        )  # fmt: skip


@dataclass(frozen=True)
class _Forward:
    """The intermediate results from coefficients to cosines."""

    levels: Floats
    sums: Floats
    squares: Floats
    ratio: Floats
    weights: Floats
    votes: Floats
    vote_slopes: Floats
    norms: Floats
    cosine: Floats


def counts_of(coefficients: Floats) -> Floats:
    """Return the weight of an occurrence of each kind; a word has weight 1."""
    counts: Floats = np.exp(np.concatenate(((0.0,), coefficients[len(NAMES) :])))
    return counts


def _shared(a: Observed, b: Observed) -> tuple[Integers, Integers, Integers]:
    """Return the groups of two pages that share features, and the number of shared features."""
    at = np.minimum(np.searchsorted(b.hashes, a.hashes), len(b.hashes) - 1)
    same = b.hashes[at] == a.hashes
    joined = a.groups[same].astype(np.int64) << 32 | b.groups[at[same]]
    joined, times = np.unique(joined, return_counts=True)
    return joined >> 32, joined & 0xFFFFFFFF, times


def aim_of(pair: Pair) -> str:
    """Return the kind of a pair as :class:`PolicySettings` names it."""
    if pair.site:
        # A set of data pages, with the sites of each source.
        kind = pair.kind.partition("-")[0] if pair.kind.startswith("organic") else pair.kind
        return f"data-{kind}"
    return pair.kind if pair.kind.startswith("made") else pair.kind.partition("-")[0]


def vote_by(page: Observed, coefficients: Floats, settings: PolicySettings) -> tuple[int, int]:
    """Return the simhash and the signature of a page for these coefficients."""
    scores = np.clip(page.known @ coefficients[: len(NAMES)], -SCORE_MAX, SCORE_MAX)
    weights = weights_of(np.exp(scores).tolist(), page.counts.tolist())
    own = page.times * np.array(weights)[page.at[1]] * counts_of(coefficients)[page.kinds]
    amounts = np.bincount(page.at[0], own, len(page.sizes))
    votes = (amounts * (1 + amounts) ** -settings.damping)[page.groups]
    flat = (amounts / (amounts + EVENED))[page.groups]
    return vote(page.hashes, votes), signature_hashes(page.hashes, flat, votes)


def worths(pairs: Sequence[Pair], settings: PolicySettings) -> Floats:
    """Return the weight of each pair.

    Copies of a kind share its value, among sources by the root of their numbers.
    """
    worth = np.zeros(len(pairs))
    near = np.array([pair.near for pair in pairs])
    aims = np.array([aim_of(pair) for pair in pairs])
    sources = np.array([pair.source for pair in pairs])
    for kind, total in settings.near.items():
        for source in np.unique(sources[near & (aims == kind)]):
            here = near & (aims == kind) & (sources == source)
            worth[here] = here.sum() ** -0.5
        here = near & (aims == kind)
        worth[here] *= total / max(worth[here].sum(), 1e-9)
    for kind in np.unique(aims[~near]):
        here = ~near & (aims == kind)
        worth[here] = settings.far.get(str(kind), 1.0)
        if str(kind).startswith("data-"):
            for source in np.unique(sources[here]):
                some = here & (sources == source)
                worth[some] *= settings.root_far * some.sum() ** -0.5
    return worth
