"""Pages that are slow to read, of some two hundred kinds and any size."""

import codecs
import gzip
import random
from collections.abc import Callable
from itertools import count
from typing import Final, NamedTuple

from tests.html import texts

TEXT: Final = f"{texts.TEXT} "
STORY: Final = f"<!DOCTYPE html><title>A ledger</title><h1>A ledger</h1><p>{TEXT}</p>"

Maker = Callable[[int, random.Random], bytes]


class Hostile(NamedTuple):
    """Generates a page of a kind of a size, and returns the encoding in its HTTP header."""

    make: Maker
    charset: str | None = None


def many(
    unit: str | bytes,
    before: str | bytes = STORY,
    after: str = "",
    charset: str | None = None,
    codec: str = "utf-8",
) -> Hostile:
    """A unit, repeated; text in an encoding, with or without a label."""
    start, body, end = (
        part if isinstance(part, bytes) else part.encode(codec) for part in (before, unit, after)
    )

    def make(size: int, rng: random.Random) -> bytes:
        return start + body * ((size - len(start) - len(end)) // len(body)) + end

    return Hostile(make, charset)


def numbered(unit: str, before: str = STORY, after: str = "") -> Hostile:
    """A unit, repeated with a number in place of ``#``."""

    def make(size: int, rng: random.Random) -> bytes:
        parts, held = [before], len(before) + len(after)
        numbers = count(rng.randrange(1000))
        while held < size:
            part = unit.replace("#", str(next(numbers)))
            parts.append(part)
            held += len(part.encode())
        return "".join([*parts[:-1], after]).encode()

    return Hostile(make)


def nested(opened: str, closed: str, inner: str = TEXT, before: str = "") -> Hostile:
    """Nested elements, all of them closed."""

    def make(size: int, rng: random.Random) -> bytes:
        times = (size - len(before + inner)) // len(opened + closed)
        return f"{before}{opened * times}{inner}{closed * times}".encode()

    return Hostile(make)


def characters(first: int, last: int, before: str = STORY, space: int = 0) -> Hostile:
    """Random characters of a range, with regular spaces."""

    def make(size: int, rng: random.Random) -> bytes:
        pool = [chr(code) for code in range(first, last) if not 0xD800 <= code < 0xE000]
        width = len("".join(pool).encode()) / len(pool) + (1 / space if space else 0)
        chosen = rng.choices(pool, k=int(size / width * 0.98))
        if space:
            chosen[space::space] = [f" {character}" for character in chosen[space::space]]
        return (before + "".join(chosen)).encode()[:size]

    return Hostile(make)


def _bomb(size: int, rng: random.Random) -> bytes:
    levels = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 20))
    start = f'<!DOCTYPE html [<!ENTITY l0 "boat">{levels}]>{STORY}<p>'
    return (start + "&l19;" * ((size - len(start)) // 5)).encode()


def _words(size: int, rng: random.Random) -> bytes:
    letters = "abcdefghijklmnopqrstuvwxyz"
    words = ("".join(rng.choices(letters, k=7)) for _ in range((size - len(STORY)) // 8))
    return f"{STORY}<p>{' '.join(words)}".encode()


HIGH: Final = bytes(range(128, 256)) * 2
SURROGATES: Final = b"\xed\xa0\x80\xed\xb0\x80"
FAMILY: Final = "\U0001f468\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466\ufe0f"
JSON_LD: Final = '{"@type":"Article","articleBody":"boats, nets and rope","n":['

KINDS: Final[dict[str, Hostile]] = {
    # Nesting.
    "div, nested": nested("<div>", "</div>"), "div, never closed": many("<div>", TEXT),
    "div, never opened": many("</div>"), "inline, nested": nested("<b><i><u>", "</u></i></b>"),
    "span with text, nested": many("<span>boat "), "lists, nested": many("<ul><li>boat"),
    "tables, nested": many("<table><tr><td>boat"), "quotes, nested": many("<blockquote>boat"),
    "sections, nested": many("<section><h2>boat</h2><p>net"),
    "articles, nested": many("<article><p>boats, nets, and rope"),
    "named to be beside, nested": many("<div class='sidebar ad' id=nav>boats "),
    "hidden, nested": many("<div hidden>boats "),
    "forms, nested": many("<form action=x><input name=a>boat"),
    "links, nested": many("<a href=/boat>boat "), "buttons, nested": many("<button>boat"),
    "text in a drawing, and behind its parts": many(
        "boat ", f"{STORY}<svg>{'<g>' * 2000}<p></p>", "</g>x " * 2000 + "</svg>"
    ),
    "svg, nested": many("<svg><g>"), "math, nested": many("<math><mi>x"),
    "templates, nested": many("<template><p>boat"),
    "noscript, nested": many("<noscript><img src=x>"),
    "select and option": many("<select><option>boat"),
    "objects, nested": many("<object><embed>boat"),
    "shallow, again and again": many("<div>" * 200 + "boat " + "</div>" * 200),
    "two thousand deep, again": many("<div>" * 2000 + "boat " + "</div>" * 2000),
    # Elements in a row.
    "paragraphs": many("<p>boat and net"), "paragraphs of a letter": many("<p>x"),
    "line breaks": many("<br>"), "line breaks with text": many("boat<br>"), "rulers": many("<hr>"),
    "empty inline": many("<i></i>"), "letters in italics": many("<i>x</i> "),
    "links": many("<a href=/boat>boat</a> "),
    "links of their own": numbered("<a href='/b/#?x=#'>boat #</a> "),
    "links elsewhere": many("<a href='https://h.example/a/../b?c#d'>b</a> "),
    "broken links": many("<a href='http://[::1'>b</a> "),
    "huge links": many(f"<a href='/{'../' * 2000}a'>b</a> "),
    "one huge link": many("a/", f"{STORY}<a href='/", "'>boats</a>"),
    "pictures": many("<img srcset='a 1x, b 2x' alt='boat'>"),
    "pictures with long sets": many(f"<img srcset='{'a 1x, ' * 2000}'>"),
    "pictures in noscript": many("<img><noscript><img src=/b.png></noscript>"),
    "headings": many("<h1>Boats</h1>"),
    "headings that hold pages": many("<h2>Boats and nets <p>rope "),
    "articles in a row": many("<article><p>boats, nets, and more rope</p></article>"),
    "cells": many("<td>boat", f"{STORY}<table><tr>"),
    "rows": many("<tr><td>boat<td>net", f"{STORY}<table>"),
    "spanning cells": many("<th colspan=1000>x", f"{STORY}<table><tr>"),
    "an uneven table": many("<tr><td>y", f"{STORY}<table><tr>{'<th>x' * 200}"),
    "cells without a table": many("<td>boat<tr>"),
    "text in a table": many("<tr>boat ", f"{STORY}<table>"), "list items": many("<li>boat"),
    "definitions": many("<dt>boat<dd>net"), "options": many("<option>boat", f"{STORY}<select>"),
    "frames": many("<frame src=x>", f"<frameset>{TEXT}"),
    "inline frames": many("<iframe src=x>boat</iframe>"),
    "unknown elements": numbered("<x-#>boat</x-#>"), "elements with colons": numbered("<a:b#>boat"),
    "classes of their own": numbered("<p class='c# d#' id=e#>w# v"),
    # Misnested: work for the adoption agency algorithm.
    "formatting across blocks": many("<b><p>x</b></p>"),
    "formatting, all open": many("<font color=red><b><p>x"),
    "formatting, crossed": many("<a><b></a><i></b></i>x"),
    "anchors across tables": many("<a href=x><table><tr><td></a>x"),
    "ends of nothing": many("</b>", f"{STORY}{'<div>' * 2000}"),
    "ends of nothing, in between": many("<br></b>", f"{STORY}{'<div>' * 2000}"),
    "ends of nothing, deeper and deeper": many("<div></p>"),
    "ends of the page that stay open": many("</body ", STORY),
    "noscripts that stay open": many("<noscript "),
    "a long tag of a script": many("a", f"{STORY}<script ", "/>"),
    "ends that something is before": many("<dt><dt></dt></dt>", f"<dt>{TEXT}{'<div>' * 1900}"),
    "ends of paragraphs": many("<hr>x</p>"),
    "divs that other tags end": many("<nav><div></nav>"),
    "bodies and heads": many("<body class=x><head><html lang=y>x"),
    # Attributes.
    "a million attributes": numbered(" a#=1", f"{STORY}<p", ">boat"),
    "the same attribute": many(" class=x", f"{STORY}<p", ">boat"),
    "attributes, many tags": many(f"<p {' '.join(f'a{n}=1' for n in range(400))}>x"),
    "an attribute each": numbered("<i a#=b>x</i>"),
    "a long attribute": many("boat ", f'{STORY}<p title="', '">net'),
    "a long class": many("aB-c_ ", f'{STORY}<p class="', '">net'),
    "a long class without end": many("adNav", f'{STORY}<p class="', '">net'),
    "a long style": many("a:b; ", f'{STORY}<p style="', 'display:none">net'),
    "white space in a style": many(" ", f'{STORY}<p style="display:', 'none">net'),
    "a quote that stays open": many("<p>boat", f'{STORY}<p title="'),
    "a tag that stays open": many("a ", f"{STORY}<p "),
    "a data URI": many("AbC/", f'{STORY}<img src="data:image/png;base64,', '">'),
    # The head.
    "base addresses": many("<base href='/../x/'>", "", TEXT),
    "one long base address": many("a/", "<base href='http://h.example/", f"'>{TEXT}<a href=x>y"),
    "links below a long base": many("<a href=../b>c</a>",
        f"<base href='http://h.example/{'a/' * 3000}'>{STORY}"),
    "refreshes": many("<meta http-equiv=refresh content='0;url=/x'>", "", TEXT),
    "labels of encodings": many("<meta charset=x>", "", TEXT),
    "open labels": many("<meta charset=", "", TEXT),
    "open declarations": many("<?xml encoding=", "", TEXT),
    "titles": many("<title>boat</title>", "", TEXT),
    "empty titles": many("<title> </title>", "", TEXT),
    "a long title": many("boat ", "<title>", f"</title>{TEXT}"),
    "titles in drawings": many("<svg><title>x</title>", "", TEXT),
    "canonical links": many("<link rel=canonical href='http://['>", "", TEXT),
    "a long rel": many("canonical ", '<link href=/x rel="', f'">{TEXT}'),
    "long language": many("x-", '<html lang="', f'">{TEXT}'),
    "empty mounts": many("<div id=root></div>", TEXT[:150]),
    "mounts in mounts": many("<b id=root>?", TEXT[:150]),
    "JSON-LD, many": many(f"<script type=application/ld+json>{JSON_LD}]}}</script>"),
    "JSON-LD, deep": many("[", f"{STORY}<script type=application/ld+json>{JSON_LD}"),
    # Content that is not text.
    "scripts": many("<script>x</script>"),
    "a script that stays open": many("<!--<script>", f"{STORY}<script>"),
    "brackets in a script": many("<", f"{STORY}<script>"), "styles": many("<style>a{}</style>"),
    "comments": many("<!-- x -->"), "an open comment": many("-", f"{STORY}<!--"),
    "comments that never begin": many("<!- x ->"), "comments in comments": many("<!--", STORY),
    "CDATA": many("<![CDATA[boat]]>"), "CDATA, open": many("<![CDATA[boat"),
    "instructions": many("<?php boat ?>"),
    "an internal subset": many('<!ENTITY a "&a;">', "<!DOCTYPE x [", f"]>&a;{TEXT}"),
    "entities of entities": Hostile(_bomb),
    "document types": many("<!DOCTYPE html PUBLIC 'x' 'y'>", "", TEXT),
    "plain text": many("<p>boat ", f"{STORY}<plaintext>"),
    "a text area": many("<p>boat ", f"{STORY}<textarea>"),
    # Texts.
    "entities": many("&amp;&lt;&eacute;"), "numbered entities": many("&#101;&#x65;"),
    "entities of nothing": many("&bogus;&#1;&#x110000;&#xD800;"), "entities without end": many("&"),
    "an endless entity": many("a", f"{STORY}&"), "a long number": many("9", f"{STORY}&#"),
    "one long word": many("a"), "one long word with accents": many("aé"), "words": Hostile(_words),
    "words of a letter": many("a b c d "), "a word a block": numbered("<p>#z"),
    "numbers": numbered("# "), "one long number": many("7"), "white space": many(" \n\t"),
    "white space between words": many("boat" + " " * 1000),
    "spaces of other kinds": many("\u00a0\u2003\u3000\u2028"), "form feeds": many("boat\f"),
    "nothing visible": many("\u200b\u2060\ufeff\u00ad"), "marks on a letter": many("\u0301"),
    "marks in turn": many("\u0301\u0316"), "marks to sort": many("\u0344\u0f71\u0345\u0316"),
    "marks on many letters": many("a" + "\u0316\u0301" * 20),
    "marks on many words": many("boat\u0301\u0316 net\u0308 "),
    "marks after ligatures": many("\ufdfa\u0316\u0301"), "any marks": characters(0x300, 0x370),
    "marks of scripts": characters(0x591, 0x5BD, space=9),
    "Hangul in parts": many("\u1112\u1161\u11ab"), "Hangul vowels": many("\u1161\u11ab"),
    "Indic signs": many("\u0915\u093c\u094d"), "ligatures of eighteen": many("\ufdfa"),
    "squares of six": many("\u3316"), "full width": many("\uff21\uff42\uff76\uff9e"),
    "capitals that grow": many("\u0130\u1e9e\ufb03\u0390"),
    "superscripts": many("\u00b2\u2075\u2160\u2474"),
    "right to left": characters(0x5D0, 0x5EB, space=6), "Arabic": characters(0x620, 0x64B, space=6),
    "Arabic forms": characters(0xFB50, 0xFDFB, space=6),
    "bidirectional signs": many("\u202e\u2066boat\u202c\u2069"),
    "ideographs": characters(0x4E00, 0x9FFF), "ideographs beyond": characters(0x20000, 0x2A6D0),
    "ideographs of old": characters(0xF900, 0xFAD9), "kana": many("\u3042\u304b\u3099"),
    "Thai": many("\u0e19\u0e49\u0e33"), "emoji in chains": many(FAMILY),
    "emoji": characters(0x1F300, 0x1F650), "flags": many("\U0001f1e9\U0001f1ea"),
    "letters of mathematics": characters(0x1D400, 0x1D6A4),
    "any characters": characters(0x20, 0x30000), "private characters": characters(0xE000, 0xF8FF),
    "noncharacters": many("boat\ufffe\uffff\ufdd0"), "controls": many("bo\x01\x02\x08at\x7f\x85 "),
    "copyright signs": many("\u00a9 "), "copyright blocks": many("<p>\u00a9 boats"),
    # Markdown.
    "backticks": many("`", f"{STORY}<pre>"), "backticks in code": many("`", f"{STORY}<code>"),
    "code": many("<code>`x``</code> "),
    "lines of code": many("<div>x = 1</div>\n", f"{STORY}<pre>"),
    "signs of Markdown": many("*_[](|)#>~\\ "), "underscores": many("_"), "brackets": many("["),
    "pipes in cells": many("<tr><td>a|b<td>|", f"{STORY}<table><tr><th>x<th>y"),
    "backslashes": many("\\"), "numbered lines": many("<p>1. x"), "lines of dashes": many("<p>---"),
    # For the package's own patterns.
    "dates": many("12 Jan 2020 "), "almost dates": many("12 "), "almost counters": many("1,"),
    "clocks": many("12:34:56.7 "), "dots of a counter": many("1.2,3 views "),
    "almost addresses": many("http:/"), "addresses": many("http://a.example/b "),
    "one long address": many("a", f"{STORY}http://h.example/"),
    "labels of publications": many("isbn 97"), "almost publications": many("doi doi:10.1"),
    "digits of publications": many("0000-"), "references": many("<sup><a href=#cite>[1]</a></sup>"),
    "titles of errors": many("404 not ", "<title>", f"</title>{TEXT[:200]}"),
    "bars in a title": many(" | ", "<title>", f"</title>{TEXT[:200]}"),
    "white space in a title": many(" ", "<title>x", f"x</title>{TEXT[:200]}"),
    "advertisements": many("<div>Advertisement</div>"),
    # Bytes.
    "NUL": many("bo\0at "), "only NUL": many("\0"), "high bytes": Hostile(
        lambda size, rng: STORY.encode() + rng.randbytes(size - len(STORY)).translate(HIGH)),
    "any bytes": Hostile(lambda size, rng: STORY.encode() + rng.randbytes(size - len(STORY))),
    "gzip": Hostile(lambda size, rng: gzip.compress(STORY.encode()) + rng.randbytes(size - 1000)),
    "broken UTF-8": many(b"\xc3(\xe2\x82(\xf0\x9f\x98"), "UTF-8 without begin": many(b"\x80\xbf"),
    "long UTF-8": many(b"\xc0\xaf\xe0\x80\xaf"), "surrogates": many(SURROGATES),
    "accents of windows-1252": many(b"\xe9 "), "mixed encodings": many(b"\xc3\xa9" * 9 + b"\xe9 "),
    "UTF-7": many(b"+AGIAbwBhAHQ- ", charset="utf-7"),
    "UTF-16": many("boat\u0301 ", f"\ufeff{STORY}", codec="utf-16-le"),
    "UTF-16, not marked": many("boat ", codec="utf-16-le"),
    "UTF-16, a lie": many("boat \u00e9", charset="utf-16"),
    "UTF-32": many("boat ", f"\ufeff{STORY}", codec="utf-32-le"),
    "UTF-32, broken": many(b"\xff\xff\xff\xff", codecs.BOM_UTF32_LE),
    "a mark, then a lie": many(b"boat ", codecs.BOM_UTF16_BE + STORY.encode()),
    "Shift JIS": many("\u671d\u5e02\u306e\uff76\uff9e", charset="shift_jis", codec="shift_jis"),
    "Shift JIS, a lie": many(b"\x81\xff\xfd\xe9 ", charset="shift_jis"),
    "GB 18030": many("\u671d\u5e02\U00020000", charset="gb2312", codec="gb18030"),
    "GB 18030, a lie": many(b"\x81\x30\x81\xff ", charset="gb18030"),
    "ISO 2022": many(b"\x1b$B%+%+\x1b(B", charset="iso-2022-jp"),
    "ISO 2022, a lie": many(b"\x1b$B\xff", charset="iso-2022-jp"),
    "HZ": many(b"~{<:Ky~}", charset="hz-gb-2312"),
    "Big5": many("\u671d\u5e02", charset="big5", codec="big5"),
    "Windows-1258": many("e\u0301 ", charset="windows-1258"),
}  # fmt: skip
"""Kinds of pages by what makes them slow."""


def page(kind: str, size: int, seed: int = 0) -> bytes:
    """Return a page of a kind with about ``size`` bytes; the seed decides the rest."""
    return KINDS[kind].make(max(size, 5000), random.Random(f"{kind} {seed}"))
