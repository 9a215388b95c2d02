"""Classify the numbers of a page as data or as volatile.

A number is a run of digits. It is volatile if it is part of a date, a time of day or a counter:
``12:30``, ``7/5/2016``, "12 March", "3 days ago", "1,204 views". Volatile numbers have little
weight in a simhash. Passing numbers count visitors or stand in a note such as "Updated 12 March".
They change between visits, so the digest of a text leaves them out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

import numpy as np

from pgsimhash.hashing.tokens import SIGNS
from pgsimhash.html.names import flags_of, words
from pgsimhash.html.tree import Integers

WORD, NUMBER, LISTED, VOLATILE, PASSING = range(5)
"""The kinds of tokens. LISTED are parts of dates and times in data tables and lists, so they are
data. PASSING are volatile, and the digest of the text leaves them out."""

_DATE: Final = SIGNS[4]
# The digits come first, because re skips to them quickly; the lookbehind then sees them.
_DATES: Final = re.compile(
    r"[0-9](?<![0-9][0-9])[0-9]{0,3}"
    r"(?:(?<![0-9]{3}):[0-9]{2}(?::[0-9]{2})?|([./-])[0-9]{1,2}\1[0-9]{1,4})(?![0-9])"
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
_NOTE_WORDS: Final = 12
"""A block of at most this many words with one such as "updated" is a note of a date."""

_BEFORE, _BEHIND, _COUNTER, _PASSING, _AGO, _NOTE, _MONTH = (1 << bit for bit in range(7))
_FLAGS: Final = flags_of(
    (
        (_BEFORE | _BEHIND | _MONTH, _MONTHS),
        (_BEFORE, _POSTED),
        (_BEFORE | _NOTE, _UPDATED),
        (_BEHIND, _HOURS),
        (_COUNTER, _COUNTED),
        (_COUNTER | _PASSING, _VISITS),
        (_AGO, words("ago")),
        (_BEFORE, (SIGNS[3], _DATE)),
    )
)
_YEARS: Final = frozenset(map(str, range(1900, 2100)))


def mark_dates(text: str) -> str:
    """Return ``text`` with the fifth sign before each time of day and each date in digits."""
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
    kinds[seen[places]] = np.where(passing, PASSING, np.where(volatile, VOLATILE, NUMBER))[run]
    at, flags = at[:-2], flags[:-2]
    is_note = flags & _NOTE > 0
    if is_note.any():
        notes = np.bincount(at[is_note], minlength=at[-1] + 1) > 0
        notes &= np.bincount(at) <= _NOTE_WORDS
        dated = (kinds[seen] == VOLATILE) | (flags & _MONTH > 0)
        kinds[seen[dated & notes[at]]] = PASSING
    return kinds
