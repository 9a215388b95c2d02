"""Read the words and numbers of a page by text block, and tell data from volatile numbers.

A number is a run of digits. It is volatile if it is part of a date, a time of day, a counter or a
telephone number: ``12:30``, ``7/5/2016``, "12 March", "3 days ago", "1,204 views". Volatile numbers
have little weight in a simhash. Passing numbers count visitors or stand in a note such as "Updated
12 March". They change between visits, so the digest of a text leaves them out.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import compress, groupby
from typing import Final, NamedTuple

from pgsimhash.hashing.tokens import SIGNS, tokenize_signed
from pgsimhash.html.blocks import Element, Outline, outline_of_text, words

# The kinds of tokens. LISTED are parts of dates and times in data tables and lists, so they are
# data. PASSING are volatile, and the digest of the text leaves them out.
WORD, NUMBER, LISTED, VOLATILE, PASSING = range(5)

# The digits come first, because re skips to them quickly; the lookbehind then sees them.
_DATES: Final = re.compile(
    r"[0-9](?<![0-9][0-9])[0-9]{0,3}"
    r"(?:(?<![0-9]{3}):[0-9]{2}(?::[0-9]{2})?|([./-])[0-9]{1,2}\1[0-9]{1,4})(?![0-9])"
    # A telephone number with the code of a country.
    r"|\+[0-9](?:[ ()./-]{0,3}[0-9]){6,}"
)
MONTHS: Final = words(
    "jan january feb february mar march apr april may jun june jul july aug august sep sept"
    " september oct october nov november dec december januar februar märz mai juni juli oktober"
    " dezember janvier février mars avril juin juillet août septembre octobre novembre décembre"
    " enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre"
    " gennaio febbraio aprile maggio giugno luglio settembre ottobre dicembre"
    " января февраля марта апреля мая июня июля августа сентября октября ноября декабря"
    " mon tue wed thu fri sat sun monday tuesday wednesday thursday friday saturday sunday"
)
_POSTED: Final = words("posted published copyright")
UPDATED: Final = words(
    "updated modified generated retrieved accessed aktualisiert geändert actualizado modificado"
    " aggiornato обновлено"
)
_HOURS: Final = words("am pm utc gmt est edt pst pdt cet cest uhr")
VISITS: Final = words(
    "views view visits hits visitors online comments comment replies reply likes shares followers"
    " downloads aufrufe kommentare"
)
_COUNTED: Final = words(
    "reads read like share reactions votes vote points readers members users posts"
)
CONTACTS: Final = words(
    "tel telephone telefon téléphone telefono teléfono tél тел телефон 電話 هاتف tlf phone phones"
    " fax faks telefax факс فاكس 傳真 传真 电话 mobil gsm"
)
# Runs of this many digits are telephone numbers in a block of at most this many words with one such
# as "fax".
_CONTACT_DIGITS, _CONTACT_WORDS = 5, 30

_NOTE_WORDS: Final = 12
"""A block of at most this many words with one such as "updated" is a note of a date."""

YEARS: Final = frozenset(map(str, range(1900, 2100)))
BEFORE: Final = MONTHS | _POSTED | UPDATED | set(SIGNS[3:])
BEHIND: Final = MONTHS | _HOURS | _COUNTED  # what makes the numbers behind or before it volatile


@dataclass(slots=True, eq=False)
class TextBlock:
    """A text block: a line of plain text, or a run of text between two block tags of a page."""

    element: Element  # the one that directly contains it
    words: list[str] = field(default_factory=list)  # and numbers, in order
    kinds: bytes = b""  # the kind of each, WORD to PASSING
    linked: int = 0  # how many of the words are in links
    has_notice: bool = False  # whether it has a copyright sign, or the word
    # The unlinked words of its table or list, times the likelihood (0 to 1) of a data table, or
    # of a list of short items.
    unit: float = 0.0
    in_table: float = 0.0
    in_run: float = 0.0
    weight: float = 1.0  # 0 to 1
    is_apart: bool = False  # whether an element around has a name that says that it is no content
    shown: bool = True  # whether it is part of the visible main content
    counted: bool = True  # the same; no block of a page with nothing but boilerplate is counted


class WeightedWords(NamedTuple):
    """The text blocks of a page that have words, in order and with their weights."""

    blocks: list[TextBlock]

    @property
    def length(self) -> int:
        """The number of words of the visible main content."""
        return sum(len(block.words) for block in self.blocks if block.counted)

    @property
    def unseen(self) -> tuple[float, list[TextBlock]]:
        """The share of words in low-weight blocks, and these blocks, those with most words first.

        A low-weight block has less than a tenth of the mean weight of the page's words, so it
        hardly affects the simhash.
        """
        words = max(sum(len(block.words) for block in self.blocks), 1)
        mean = sum(len(block.words) * block.weight for block in self.blocks) / words
        light = [block for block in self.blocks if block.weight < 0.1 * mean]
        light.sort(key=lambda block: -len(block.words))
        return sum(len(block.words) for block in light) / words, light

    def lasting_words(self) -> list[str]:
        """Return the visible words and numbers in order, without the passing ones."""
        return [
            word
            for block in self.blocks
            if block.counted
            for word, kind in zip(block.words, block.kinds, strict=True)
            if kind != PASSING
        ]


def read_words(outline: Outline) -> list[TextBlock]:
    """Return all text blocks of a page with their words, numbers included."""
    begin, link, link_end, notice, _ = SIGNS
    blocks = list(map(TextBlock, outline.owners))
    following = iter(blocks)
    tokens = tokenize_signed(mark_dates(outline.text))
    block, in_link = TextBlock(outline.elements[0]), False
    for token in tokens:
        if token[0] != "\0":
            block.words.append(token)
            block.linked += in_link
        elif token == begin:
            block = next(following)
        elif token in (link, link_end):
            in_link = token == link
        else:
            block.words.append(token)
    has_numbers = any(map(str.isdecimal, tokens))
    for block in blocks:
        signed = block.words
        kinds = kinds_of(signed) if has_numbers else bytes(len(signed))
        block.has_notice = notice in signed or "copyright" in signed
        is_word = [token[0] != "\0" for token in signed]
        block.words, block.kinds = list(compress(signed, is_word)), bytes(compress(kinds, is_word))
    return blocks


def words_by_line(text: str) -> WeightedWords:
    """Return the words of plain text; each line is a block of weight 1."""
    return WeightedWords([block for block in read_words(outline_of_text(text)) if block.words])


def mark_dates(text: str) -> str:
    """Return ``text`` with the fifth sign before each time, date and telephone number in digits."""
    return _DATES.sub(rf" {SIGNS[4]} \g<0> ", text)


def kinds_of(tokens: Sequence[str]) -> Sequence[int]:
    """Return the kinds of the tokens of a text block, among them signs of copyright and dates."""
    has_contact = len(tokens) <= _CONTACT_WORDS and not CONTACTS.isdisjoint(tokens)
    kinds: list[int] = []
    for is_number, run in groupby(tokens, str.isdecimal):
        size = len(list(run))
        kind = _kind_of_run(tokens, len(kinds), size, has_contact) if is_number else WORD
        kinds += [kind] * size
    if len(tokens) <= _NOTE_WORDS and not UPDATED.isdisjoint(tokens):
        for place, token in enumerate(tokens):
            if kinds[place] == VOLATILE or token in MONTHS:
                kinds[place] = PASSING
    return kinds


def _kind_of_run(tokens: Sequence[str], start: int, size: int, has_contact: bool) -> int:
    """Return the kind of a run of numbers by the tokens around it."""
    numbers = tokens[start : start + size]
    before = tokens[start - 1] if start else ""
    behind, second = [*tokens[start + size : start + size + 2], "", ""][:2]
    if behind in VISITS or second == "ago":
        return PASSING
    if (
        before in BEFORE
        or behind in BEHIND
        or (1 < size < 4 and not YEARS.isdisjoint(numbers))
        or (has_contact and sum(map(len, numbers)) >= _CONTACT_DIGITS)
    ):
        return VOLATILE
    return NUMBER
