"""Read the words and numbers of a page by text block, and tell data from volatile numbers.

A number is a run of digits. It is volatile if it is part of a date, a time of day or a counter:
``12:30``, ``7/5/2016``, "12 March", "3 days ago", "1,204 views". Volatile numbers have little
weight in a simhash, and so have telephone numbers. Passing numbers count visitors or stand in a
note such as "Updated 12 March". They change between visits, so the digest of a text leaves them
out.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pgsimhash.hashing.tokens import SIGNS, tokenize_signed
from pgsimhash.html.blocks import Outline, flags_of, words
from pgsimhash.html.tree import Floats, Integers, Tree, sums_of

_LEGAL: Final = words(
    "copyright trademark trademarks rights reserved licensed license warranty disclaimer terms"
    " privacy powered logo registered rechte vorbehalten droits réservés derechos reservados"
    " diritti riservati защищены"
)

_LISTED_FROM: Final = 0.4
"""From this likelihood on, a table or list contains data, and its dates are data too."""

WORD, NUMBER, LISTED, VOLATILE, PASSING = range(5)
"""The kinds of tokens. LISTED are parts of dates and times in data tables and lists, so they are
data. PASSING are volatile, and the digest of the text leaves them out."""

_DATE: Final = SIGNS[4]
# The digits come first, because re skips to them quickly; the lookbehind then sees them.
_DATES: Final = re.compile(
    r"[0-9](?<![0-9][0-9])[0-9]{0,3}"
    r"(?:(?<![0-9]{3}):[0-9]{2}(?::[0-9]{2})?|([./-])[0-9]{1,2}\1[0-9]{1,4})(?![0-9])"
    # A telephone number with the code of a country.
    r"|\+[0-9](?:[ ()./-]{0,3}[0-9]){6,}"
)
_MONTHS: Final = words(
    "jan january feb february mar march apr april may jun june jul july aug august sep sept"
    " september oct october nov november dec december januar februar märz mai juni juli oktober"
    " dezember janvier février mars avril juin juillet août septembre octobre novembre décembre"
    " enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre"
    " gennaio febbraio aprile maggio giugno luglio settembre ottobre dicembre"
    " января февраля марта апреля мая июня июля августа сентября октября ноября декабря"
    " mon tue wed thu fri sat sun monday tuesday wednesday thursday friday saturday sunday"
)
_POSTED: Final = words("posted published copyright")
_UPDATED: Final = words(
    "updated modified generated retrieved accessed aktualisiert geändert actualizado modificado"
    " aggiornato обновлено"
)
_HOURS: Final = words("am pm utc gmt est edt pst pdt cet cest uhr")
_VISITS: Final = words(
    "views view visits hits visitors online comments comment replies reply likes shares followers"
    " downloads aufrufe kommentare"
)
_COUNTED: Final = words(
    "reads read like share reactions votes vote points readers members users posts"
)
_CONTACTS: Final = words(
    "tel telephone telefon téléphone telefono teléfono tél тел телефон 電話 هاتف tlf phone phones"
    " fax faks telefax факс فاكس 傳真 传真 电话 mobil gsm"
)
_CONTACT_WORDS: Final = 30
_CONTACT_DIGITS: Final = 5
"""Runs of so many digits are telephone numbers in a block of at most this many words with one such
as "fax"."""

_NOTE_WORDS: Final = 12
"""A block of at most this many words with one such as "updated" is a note of a date."""

_BEFORE, _BEHIND, _COUNTER, _PASSING, _AGO, _NOTE, _MONTH, _CONTACT = (1 << bit for bit in range(8))
_FLAGS: Final = flags_of(
    (
        (_BEFORE | _BEHIND | _MONTH, _MONTHS),
        (_BEFORE, _POSTED),
        (_BEFORE | _NOTE, _UPDATED),
        (_BEHIND, _HOURS),
        (_COUNTER, _COUNTED),
        (_COUNTER | _PASSING, _VISITS),
        (_AGO, words("ago")),
        (_CONTACT, _CONTACTS),
        (_BEFORE, (SIGNS[3], _DATE)),
    )
)
_YEARS: Final = frozenset(map(str, range(1900, 2100)))


class WeightedWords(NamedTuple):
    """The words of a page in order, and the weights of its text blocks.

    Attributes:
        vocabulary: the distinct words.
        words: the index in ``vocabulary`` of each word of the page (shape (n,), dtype int64).
        kinds: the kind of each word, ``WORD`` to ``PASSING`` (shape (n,), dtype int64).
        blocks: each word's block number, ascending (shape (n,), dtype int64).
        weights: each block's weight, 0 to 1 (shape (m,), dtype float64).
        shown: whether each block is part of the visible main content (shape (m,), dtype bool).
    """

    vocabulary: list[str]
    words: NDArray[np.int64]
    kinds: NDArray[np.int64]
    blocks: NDArray[np.int64]
    weights: NDArray[np.float64]
    shown: NDArray[np.bool_]

    @property
    def length(self) -> int:
        """The number of words of the visible main content."""
        return int(np.count_nonzero(self.shown[self.blocks]))

    @property
    def unseen(self) -> tuple[float, list[int]]:
        """The share of words in low-weight blocks, and these blocks, those with most words first.

        A low-weight block has less than a tenth of the mean weight of the page's words, so it
        hardly affects the simhash.
        """
        counts = np.bincount(self.blocks, minlength=len(self.weights))
        words = max(len(self.blocks), 1)
        is_light = self.weights < 0.1 * (counts @ self.weights) / words
        light = np.flatnonzero(is_light & (counts > 0))
        largest_first = light[np.argsort(-counts[light], kind="stable")]
        return float(counts[light].sum() / words), largest_first.tolist()

    def lasting_words(self) -> list[str]:
        """Return the visible words and numbers in order, without the passing ones."""
        lasting = self.words[self.shown[self.blocks] & (self.kinds != PASSING)].tolist()
        return [self.vocabulary[word] for word in lasting]


@dataclass(frozen=True)
class Page:
    """The words of a page, and the counts of its blocks with words.

    Attributes:
        outline: the elements.
        vocabulary: the distinct words.
        words: the index in ``vocabulary`` of each word of the page (shape (n,)).
        own_kinds: the kind of each word by the words beside it (shape (n,)).
        blocks: each word's block number (shape (n,)).
        places: the outline's blocks with words (shape (m,)).
        counts: their numbers of words (shape (m,)).
        linked: their numbers of words in links (shape (m,)).
        copyrights: whether they have a copyright sign, 0 or 1 (shape (m,)).
        legal: their numbers of legal words (shape (m,)).
        numeric: their numbers of numbers, without volatile ones (shape (m,)).
    """

    outline: Outline
    vocabulary: list[str]
    words: Integers
    own_kinds: Integers
    blocks: Integers
    places: Integers
    counts: Floats
    linked: Floats
    copyrights: Floats
    legal: Floats
    numeric: Floats

    @cached_property
    def tree(self) -> Tree:
        """The elements as arrays."""
        return Tree(self.outline, self.places, self.counts, self.linked, self.copyrights)

    @cached_property
    def kinds(self) -> Integers:
        """The kind of each word (shape (n,)); dates in data tables and lists are LISTED."""
        _, in_table, in_run = self.tree.units
        listed = (np.maximum(in_table, in_run) > _LISTED_FROM)[self.blocks]
        return np.where(listed & (self.own_kinds == VOLATILE), LISTED, self.own_kinds)


def read_words(outline: Outline) -> Page:
    """Return the words of a page, numbers included."""
    numbers: defaultdict[str, int] = defaultdict(count().__next__)
    begin, link, link_end, notice, _ = map(numbers.__getitem__, SIGNS)
    tokens = tokenize_signed(mark_dates(outline.text))
    ids = np.fromiter(map(numbers.__getitem__, tokens), np.int64, len(tokens))
    vocabulary = list(numbers)[len(SIGNS) :]
    block = (ids == begin).cumsum() - 1
    in_link = ((ids == link) * 1 - (ids == link_end)).cumsum() > 0
    blocks = len(outline.owners)
    is_word = ids >= len(SIGNS)
    own = block[is_word]
    counts = np.bincount(own, minlength=blocks)
    linked = sums_of(own, in_link[is_word], blocks)
    small = np.zeros(len(numbers), np.bool_)
    small[[numbers[word] for word in _LEGAL if word in numbers]] = True
    legal = np.bincount(block[small[ids]], minlength=blocks).astype(np.float64)
    copyrights = np.zeros(blocks)
    copyrights[block[(ids == notice) | (ids == numbers.get("copyright", notice))]] = 1.0
    kinds = kinds_of(ids, block, numbers)[is_word]
    numeric = sums_of(own, kinds == NUMBER, blocks)
    places = np.flatnonzero(counts)
    renumbered = (counts > 0).cumsum() - 1
    return Page(
        outline,
        vocabulary,
        ids[is_word] - len(SIGNS),
        kinds,
        renumbered[own],
        places,
        counts[places].astype(np.float64),
        linked[places],
        copyrights[places],
        legal[places],
        numeric[places],
    )


def words_by_line(text: str) -> WeightedWords:
    """Return the words of plain text; each line is a block of weight 1."""
    begin_sign, _, _, notice, _ = SIGNS
    text = text.replace("\0", " ").replace("\xa9", f" {notice} ")
    signed = f" {begin_sign} " + text.replace("\n", f" {begin_sign} ")
    numbers: defaultdict[str, int] = defaultdict(count().__next__)
    begin, *_ = [numbers[sign] for sign in SIGNS]
    tokens = tokenize_signed(mark_dates(signed))
    ids = np.fromiter(map(numbers.__getitem__, tokens), np.int64, len(tokens))
    lines = np.cumsum(ids == begin) - 1
    is_word = ids >= len(SIGNS)
    size = int(lines[-1]) + 1
    return WeightedWords(
        list(numbers)[len(SIGNS) :],
        ids[is_word] - len(SIGNS),
        kinds_of(ids, lines, numbers)[is_word],
        lines[is_word],
        np.ones(size),
        np.ones(size, np.bool_),
    )


def mark_dates(text: str) -> str:
    """Return ``text`` with the fifth sign before each time, date and telephone number in digits."""
    return _DATES.sub(rf" {_DATE} \g<0> ", text)


def kinds_of(ids: Integers, blocks: Integers, numbers: Mapping[str, int]) -> Integers:
    """Return the kind of each token of a page (shape (n,))."""
    is_number = np.fromiter(map(str.isdecimal, numbers), np.bool_, len(numbers))
    kinds = is_number[ids].astype(np.int64)
    places = np.flatnonzero(kinds)
    if not len(places):
        return kinds
    flag_of = np.zeros(len(numbers), np.int64)
    for word in _FLAGS.keys() & numbers.keys():
        flag_of[numbers[word]] = _FLAGS[word]
    flags = flag_of[ids]
    # Drops the signs of links, which may stand between a number and its noun.
    seen = np.flatnonzero((ids >= len(SIGNS)) | (flags > 0))
    places = seen.searchsorted(places)
    # Two tokens of no block follow the last; the one before the first has the index -1.
    at = np.full(len(seen) + 2, -1)
    at[:-2] = blocks[seen]
    flags = np.append(flags[seen], (0, 0))
    # Runs of numbers of one block.
    begins = np.ones(len(places), np.bool_)
    begins[1:] = (places[1:] - places[:-1] > 1) | (at[places[1:]] != at[places[:-1]])
    run = begins.cumsum() - 1
    starts, sizes = places[begins], np.bincount(run)
    ends = starts + sizes
    before, behind, next_but_one = (
        np.where(at[positions] == at[starts], flags[positions], 0)
        for positions in (starts - 1, ends, ends + 1)
    )
    is_year = np.zeros(len(numbers), np.bool_)
    is_year[[numbers[year] for year in _YEARS & numbers.keys()]] = True
    years = np.bincount(run, is_year[ids[seen[places]]])
    ago = next_but_one & _AGO > 0
    volatile = (before & _BEFORE > 0) | (behind & (_BEHIND | _COUNTER) > 0) | ago
    volatile |= (years > 0) & (sizes > 1) & (sizes < 4)
    passing = (behind & _PASSING > 0) | ago
    is_contact = flags[:-2] & _CONTACT > 0
    if is_contact.any():
        contacts = np.bincount(at[:-2][is_contact], minlength=at[:-2].max() + 1) > 0
        contacts &= np.bincount(at[:-2]) <= _CONTACT_WORDS
        length = np.fromiter(map(len, numbers), np.int64, len(numbers))
        volatile |= contacts[at[starts]] & (
            np.bincount(run, length[ids[seen[places]]]) >= _CONTACT_DIGITS
        )
    kinds[seen[places]] = np.where(passing, PASSING, np.where(volatile, VOLATILE, NUMBER))[run]
    at, flags = at[:-2], flags[:-2]
    is_note = flags & _NOTE > 0
    if is_note.any():
        notes = np.bincount(at[is_note], minlength=at[-1] + 1) > 0
        notes &= np.bincount(at) <= _NOTE_WORDS
        dated = (kinds[seen] == VOLATILE) | (flags & _MONTH > 0)
        kinds[seen[dated & notes[at]]] = PASSING
    return kinds
