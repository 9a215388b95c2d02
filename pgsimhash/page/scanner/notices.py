"""Judges the lines of a page's text by their words, as compiled loops."""

from __future__ import annotations

from typing import Final

import numpy as np

from pgsimhash.jit import compiled
from pgsimhash.page.scanner import phrases
from pgsimhash.page.scanner.octets import Keys, Octets, Values, look_up, lower, step

_LINE_MAX: Final = 400
"""A longer line says nothing of its block, in bytes; nor does a longer label or call."""
LABEL_MAX: Final = 60
_CALL_MAX: Final = 200
_CALL_WORDS: Final = 3
# The hashes of the signs alone, ! and ?.
_PHRASE: Final = np.uint64(0xAF639C4C86017FCC)
_WORD: Final = np.uint64(0xAF63B24C8601A52E)
_IN_WORDS: Final = np.array(
    [bytes([byte]).isalnum() or byte >= 0x80 or byte in b"-'" for byte in range(256)]
)
_DIGITS: Final = np.array([0x30 <= byte <= 0x39 for byte in range(256)])


@compiled
def line_end(text: Octets, at: int, end: int) -> int:
    """Return where the line at ``at`` ends, ``end`` at the latest."""
    while at < end and text[at] != 0x0A:
        at += 1
    return at


@compiled
def kind_of_line(text: Octets, at: int, end: int, keys: Keys, values: Values) -> int:
    """Return which of the ``phrases`` a line is, or ``phrases.CALL`` for a whole notice."""
    length = end - at
    if length > _LINE_MAX:
        return 0
    phrase = _PHRASE
    count = 0
    number = False
    calls = False
    before = 0
    while at < end:
        if not _IN_WORDS[text[at]]:
            at += 1
            continue
        word = _WORD
        first = at
        digits = True
        while at < end and _IN_WORDS[text[at]]:
            byte = text[at]
            digits = digits and _DIGITS[byte]
            word = step(word, lower(byte))
            at += 1
        if digits and number:
            continue
        number = digits
        wanted = length <= LABEL_MAX or count < _CALL_WORDS
        if count and wanted:
            phrase = step(phrase, 0x20)
        if digits:
            phrase = step(phrase, 0x30)
        elif wanted:
            for place in range(first, at):
                phrase = step(phrase, lower(text[place]))
        count += 1
        if count <= _CALL_WORDS and look_up(phrase, keys, values) == phrases.CALL:
            calls = True
        meaning = look_up(word, keys, values)
        if calls and meaning == phrases.LETTER and length <= _CALL_MAX:
            return phrases.CALL
        if meaning == phrases.COOKIES and before == phrases.USED:
            return phrases.CALL
        before = meaning
    if length > LABEL_MAX:
        return 0
    kind = look_up(phrase, keys, values)
    return 0 if kind == phrases.CALL else kind


@compiled
def without_notices(text: Octets, size: int, keys: Keys, values: Values) -> Octets:
    """Return the first ``size`` bytes without lines that are labels of advertisements, or calls."""
    write = 0
    at = 0
    while at < size:
        end = line_end(text, at, size)
        kind = kind_of_line(text, at, end, keys, values)
        if kind != phrases.ADVERTISEMENT and kind != phrases.CALL:
            for place in range(at, min(end + 1, size)):
                text[write] = text[place]
                write += 1
        at = end + 1
    return text[:write]
