"""Remove dates, times and counters, which change on a page while its text does not."""

from __future__ import annotations

import re
from typing import Final

_MONTH: Final = (
    "(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?"
    r"|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\b\.?"
)
_WEEKDAY: Final = r"(?:(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?\.?,? +)?"
_DAY: Final = r"\d{1,2}(?:st|nd|rd|th)?"
_DATE: Final = (
    rf"\b{_WEEKDAY}(?:{_DAY} +(?:of +)?{_MONTH}(?:,? +\d{{4}})?"
    rf"|{_MONTH} +{_DAY}\b(?:,? +\d{{4}})?|{_MONTH} +\d{{4}})"
    r"|\b\d{1,4}([./-])\d{1,2}\1\d{1,4}(?:t(?=\d))?"
)
_TIME: Final = (
    r"\b\d{1,2}(?::\d{2}){1,2}(?:\.\d+)?(?: *[ap]\.?m\b\.?)?(?: *(?:utc|gmt|[cemp][ds]t)\b|z)?"
)
_COUNTED: Final = (
    r"(?:views?|reads?|comments?|repl(?:y|ies)|likes?|shares?|reactions?|votes?|points?|followers?"
    r"|downloads?|visitors?|readers?|(?:sec(?:ond)?|min(?:ute)?|hour|day|week|month|year)s? +ago"
    r"|min(?:ute)?s? +read)"
)
_COUNTER: Final = rf"\b\d(?:[\d.,]{{0,20}}\d)?[km]?\+? +{_COUNTED}\b"
_CHANGING: Final = re.compile(rf"{_DATE}|{_TIME}|{_COUNTER}", re.IGNORECASE)


def drop_counters(text: str) -> str:
    """Return ``text`` with each date, time of day and counter replaced by a space.

    Numeric dates are found in every language. Month names and counters ("12 views", "5 minutes
    ago") are found in English.
    """
    return _CHANGING.sub(" ", text)
