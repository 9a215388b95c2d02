"""Compute the simhashes of many plain texts, and choose a scheme for them."""

import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, count
from typing import Final

import numpy as np

from pgsimhash.errors import PageError, invalid_argument
from pgsimhash.hashing.hashes import murmur3_64
from pgsimhash.hashing.tokens import TOKENS_MAX
from pgsimhash.hashing.votes import WEIGHT_UNIT
from pgsimhash.schemes.features import DAMPINGS, ShingleWeights, murmur3_64_of_words, pair_hashes
from pgsimhash.schemes.registry import SHORT_SCHEME, TEXT_SCHEME, Scheme, get_scheme

BATCH_TEXTS: Final = 64  # texts read before the first simhash is yielded
BATCH_CHARS: Final = 1_000_000  # characters of these texts together, without the last one
START_CHARS: Final = 1_000  # characters of a text, enough to compare lengths


def scheme_for_texts(texts: Iterable[str]) -> Scheme:
    """Return the scheme for plain texts of these lengths.

    It is "pgsimhash-short-1" if more than half of the texts with words are too short for
    "pgsimhash-text-1", else "pgsimhash-text-1". Only simhashes of one scheme can be compared, so
    choose once for all texts.

    Args:
        texts: all texts, or a sample of them.

    Raises:
        TypeError: an item is not a string.
    """
    lengths = [len(TEXT_SCHEME.tokenize(text[:START_CHARS])) for text in _strings(texts)]
    short = sum(0 < length < TEXT_SCHEME.min_tokens for length in lengths)
    return SHORT_SCHEME if 2 * short > np.count_nonzero(lengths) else TEXT_SCHEME


def simhash_texts(texts: Iterable[str], scheme: Scheme | str = TEXT_SCHEME) -> Iterator[int | None]:
    """Yield the simhash of each text, in order; None for a text that is too short.

    The simhashes are those of ``scheme.simhash(text)``. Schemes of words and pairs, such as the
    default, process up to 64 texts at once. If more than half of the texts are too short, a
    ``UserWarning`` at the end says how many.

    Args:
        texts: the main contents.
        scheme: the recipe, or the name of a registered one, without its extraction;
            :func:`scheme_for_texts` chooses one by the lengths of texts.

    Raises:
        TypeError: an item is not a string.
    """
    if isinstance(texts, str | Mapping):
        raise invalid_argument(f"texts are a list, not a {type(texts).__name__}")
    recipe = get_scheme(scheme)

    def simhashes() -> Iterator[int | None]:
        done = short = 0
        for simhash in vote_texts(_strings(texts), recipe):
            done += 1
            short += simhash is None
            yield simhash
        if 2 * short > done:
            warnings.warn(too_short(short, done, recipe), stacklevel=2)

    return simhashes()


def _strings(texts: Iterable[str]) -> Iterator[str]:
    for place, text in enumerate(texts):
        if not isinstance(text, str):
            kind = type(text).__name__
            raise TypeError(
                f"texts[{place}] is of type {kind}, not str; fill missing texts with ''"
            )
        yield text


def too_short(short: int, texts: int, scheme: Scheme) -> str:
    """Return the warning about texts that are too short for a scheme."""
    message = (
        f"{short:,} of {texts:,} texts have fewer than the {scheme.min_tokens} words that "
        f"{scheme.name} needs, so they have no simhash"
    )
    if 2 * short > texts and scheme.min_tokens > SHORT_SCHEME.min_tokens:
        message += f"; the scheme for short texts is {SHORT_SCHEME.name!r}"
    return message


def vote_texts(texts: Iterable[str], scheme: Scheme) -> Iterator[int | None]:
    """Yield the simhashes of texts as :func:`simhash_texts` does, without a warning."""
    weigh = scheme.weigh
    if (
        isinstance(weigh, ShingleWeights)
        and weigh.sizes == (1, 2)
        and scheme.hash_features is murmur3_64_of_words
    ):
        for batch in _batches(texts):
            yield from _vote_batch(batch, scheme, DAMPINGS[weigh.damping])
        return
    for text in texts:
        try:
            yield scheme.simhash(text)
        except PageError:
            yield None


def _batches(texts: Iterable[str]) -> Iterator[list[str]]:
    batch: list[str] = []
    size = 0
    for text in texts:
        batch.append(text)
        size += len(text)
        if len(batch) == BATCH_TEXTS or size > BATCH_CHARS:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _vote_batch(
    texts: Sequence[str], scheme: Scheme, damp: Callable[[int], float]
) -> list[int | None]:
    """Return the simhashes of texts by a scheme of words and pairs, in arrays of features.

    Weights are whole units, which doubles add exactly in any order.
    """
    tokens = [scheme.tokenize(text)[:TOKENS_MAX] for text in texts]
    lengths = [len(words) for words in tokens]
    numbers: defaultdict[str, int] = defaultdict(count().__next__)
    words = np.fromiter(
        map(numbers.__getitem__, chain.from_iterable(tokens)), np.int64, sum(lengths)
    )
    hashes, size = murmur3_64(numbers), max(len(numbers), 1)
    text = np.repeat(np.arange(len(texts)), lengths)
    singles, single_counts = np.unique(text * size + words, return_counts=True)
    inside = text[1:] == text[:-1]
    all_pairs = ((text[1:] * size + words[:-1]) * size + words[1:])[inside]
    pairs, pair_counts = np.unique(all_pairs, return_counts=True)
    first, second = np.divmod(pairs % (size * size), size)
    voters = np.concatenate((hashes[singles % size], pair_hashes(hashes[first], hashes[second])))
    owners = np.concatenate((singles // size, pairs // (size * size)))
    tf = np.concatenate((single_counts, pair_counts))
    weights = np.array([0.0, *map(damp, range(1, int(tf.max(initial=0)) + 1))])
    units = np.rint(weights / WEIGHT_UNIT)[tf]
    totals = np.bincount(owners, units, len(texts))
    hash_bytes = voters.astype("<u8").view(np.uint8).reshape(-1, 8)
    ones = np.empty((len(texts), 64))
    for place in range(8):
        # The weight of each of 256 byte values in each text, then the sums of those with a bit.
        sums = np.bincount(owners * 256 + hash_bytes[:, place], units, len(texts) * 256)
        for bit in range(8):
            halves = sums.reshape(len(texts), -1, 2, 1 << bit)
            ones[:, 8 * place + bit] = halves[:, :, 1].sum((1, 2))
    bits = 2.0 * ones > totals[:, np.newaxis]
    simhashes = np.packbits(bits, axis=1, bitorder="little").view("<u8")[:, 0].tolist()
    return [
        simhash if total > 0 and length >= scheme.min_tokens else None
        for simhash, total, length in zip(simhashes, totals.tolist(), lengths, strict=True)
    ]
