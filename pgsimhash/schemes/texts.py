"""Compute the votes of many plain texts, and choose a scheme for them."""

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from hashlib import sha256
from itertools import chain
from typing import Final, NamedTuple, TypeVar

from pgsimhash.errors import PageError, invalid_argument
from pgsimhash.hashing.tokens import tokenize_with_numbers
from pgsimhash.html import Article, native
from pgsimhash.runtime.threads import in_threads
from pgsimhash.schemes.features import votes_in_c
from pgsimhash.schemes.registry import SHORT_SCHEME, TEXT_SCHEME, Scheme, get_scheme, marked

BATCH_TEXTS: Final = 64  # texts read before the first simhash is yielded
BATCH_CHARS: Final = 1_000_000  # characters of these texts together, without the last one
START_CHARS: Final = 1_000  # characters of a text, enough to compare lengths

Data = TypeVar("Data", str | None, bytes)


class Cell(NamedTuple):
    """A text or page that was read: its simhash and signature, or the reason why it has none.

    A text without a simhash has its words, joined by single spaces; a long one their digest.
    """

    simhash: int | None = None
    signature: int | None = None
    reason: str | None = None
    text: str | None = None


def scheme_for_texts(texts: Iterable[str]) -> Scheme:
    """Return the scheme for plain texts of these lengths.

    It is "pgsimhash-short-1" if more than half of the texts with words are too short for
    "pgsimhash-text-1", else "pgsimhash-text-1". Only simhashes of one scheme can be compared, so
    choose once for all texts.

    Args:
        texts: all texts, or a sample of them; another item than a str is a TypeError.
    """
    lengths = [len(tokenize_with_numbers(text[:START_CHARS])) for text in _strings(texts)]
    short = sum(0 < length < TEXT_SCHEME.min_tokens for length in lengths)
    return SHORT_SCHEME if 2 * short > sum(map(bool, lengths)) else TEXT_SCHEME


def simhash_texts(texts: Iterable[str], scheme: Scheme | str = TEXT_SCHEME) -> Iterator[int | None]:
    """Yield the simhash of each text, in order; None for a text that is too short.

    The simhashes are those of ``scheme.simhash(text)``. Up to 64 texts are read at once. If more
    than half of the texts are too short, a ``UserWarning`` at the end says how many.

    Args:
        texts: the main contents; another item than a str is a TypeError.
        scheme: the recipe, or the name of a registered one, without its extraction;
            :func:`scheme_for_texts` chooses one by the lengths of texts.
    """
    recipe = get_scheme(scheme)

    def simhashes() -> Iterator[int | None]:
        done = short = 0
        for cell in read_texts(_strings(texts), recipe):
            done += 1
            short += cell.simhash is None
            yield cell.simhash
        if 2 * short > done:
            warnings.warn(too_short(short, done, recipe), stacklevel=2)

    return simhashes()


def _strings(texts: Iterable[str]) -> Iterator[str]:
    if isinstance(texts, str | Mapping):
        raise invalid_argument(f"texts are a list, not a {type(texts).__name__}")
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


def read_texts(texts: Iterable[str | None], scheme: Scheme, jobs: int = 1) -> Iterator[Cell]:
    """Yield the cell of each text, in order; the C extension reads batches in this many threads."""
    parts = batches(texts, BATCH_TEXTS, BATCH_CHARS)
    return chain.from_iterable(in_threads(partial(_cells, scheme), parts, jobs))


def batches(items: Iterable[Data], most: int, sizes: int) -> Iterator[list[Data]]:
    """Yield lists of ``most`` items, or fewer with ``sizes`` characters before the last one."""
    batch: list[Data] = []
    size = 0
    for item in items:
        batch.append(item)
        size += len(item or ())
        if len(batch) == most or size > sizes:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _cells(scheme: Scheme, texts: Sequence[str | None]) -> list[Cell]:
    weigh, mark = (scheme.weigh, scheme.tokenize, scheme.hash_features), marked(0, scheme)
    votes = votes_in_c(*weigh, [text or "" for text in texts])
    return [
        Cell(reason="null") if text is None else _cell(scheme, mark, text, vote)
        for text, vote in zip(texts, votes, strict=True)
    ]


def _cell(scheme: Scheme, mark: int, text: str, vote: native.VoteFields | None) -> Cell:
    try:
        simhash, signature, _, tokens, *_ = vote or scheme.vote(Article(text, text))
        is_short = tokens < scheme.min_tokens
    except PageError:
        is_short = True
    if is_short:
        words = " ".join(text.split())
        if len(words) > 100:  # such as one in base64
            words = sha256(words.encode(errors="surrogatepass")).hexdigest()
        return Cell(reason="too_short", text=words)
    return Cell(simhash, signature | mark)
