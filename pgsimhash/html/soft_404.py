"""Detect error pages, bot checks and JavaScript-rendered pages.

They often come with status 200, and those of one site are near-duplicates. Each rule requires
little text and a whole phrase in the right place, so articles about such pages are not affected.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from pgsimhash.errors import PageError

TEXT_CHARS_MAX: Final = 800
"""The most characters of main text of a page that is checked."""

PAGE_WORDS_MAX: Final = 400
"""The most words of a page that is checked, including navigation."""

TEXT_WORDS_MIN: Final = 20
"""The fewest words, separated by white space, of main text that is checked.

The ``min_tokens`` of a scheme is different: the fewest tokens for which simhashes separate pages.
"""

_ERROR: Final = re.compile(
    r"""
    (?:(?:error|http|fehler|erreur)\s)?(?:40[0134]|410|429|50[0234])
        (?:[\s:.!-]*(?:error|not\ found|page\ not\ found|gone|forbidden|unauthorized|access\ denied
        |bad\ request|too\ many\ requests|internal\ server\ error|bad\ gateway
        |service\ (?:temporarily\ )?unavailable|gateway\ time-?out))?
    | (?:error\s)?(?:the\ )?(?:page|file|document|article|resource)
        \ (?:was\ |could\ )?not\ (?:be\ )?found
    | not\ found | this\ page\ (?:doesn't|does\ not)\ exist | page\ (?:missing|unavailable)
    | (?:this|the)\ page\ (?:isn't|is\ not|is\ no\ longer)\ available
    | (?:oops|sorry)[\s,!.]*(?:(?:this|the|that)\ )?page\ (?:not\ found|can'?t\ be\ found)
    | access\ denied | forbidden | internal\ server\ error | bad\ gateway | server\ error
    | service\ unavailable | too\ many\ requests
    | seite\ nicht\ gefunden | page\ (?:introuvable|non\ trouvée) | página\ no\ encontrada
    | página\ não\ encontrada | pagina\ non\ trovata | pagina\ niet\ gevonden
    | страница\ не\ найдена | (?:お探しの)?ページ[がは]見つかりません(?:でした)?
    | 页面不存在 | 找不到页面
    """,
    re.VERBOSE,
)
_BLOCK_TITLE: Final = re.compile(
    r"just a moment|attention required|are you (?:a robot|human)|robot check|security check"
    r"|pardon our interruption|access to this page has been denied|human verification|captcha"
    r"|(?:please )?(?:checking|verifying) your browser|one more step|ddos-guard"
)
_BLOCK: Final = re.compile(
    r"(?:please|must|need to|have to) (?:enable|turn on|activate) (?:javascript|cookies)"
    r"|javascript (?:is|has been) (?:disabled|turned off|not enabled|required) (?:in|to|for|on)"
    r"|(?:verify|confirm|make sure) (?:that )?you(?:'re| are) (?:a |not a )?(?:human|robot)"
    r"|checking (?:if the site connection is secure|your browser before)"
    r"|(?:complete|solve) the (?:captcha|security check)|unusual traffic from your"
    r"|(?:bitte|veuillez) (?:aktivieren sie|activer) javascript"
)
_PARTS: Final = re.compile(r"\s[|·•»/\u2013\u2014-]\s|\s*[|»]\s*|:\s|\n")
_MOUNTS: Final = frozenset(
    ["root", "app", "__next", "__nuxt", "___gatsby", "app-root", "react-root"]
)


def check_stand_in(title: str | None, text: str, empty_ids: Iterable[str | None] = ()) -> None:
    """Raise if a page is an error page, a bot check or JavaScript-rendered.

    Raises:
        PageError: a part of the title or the first line names an error (``error_page``), the page
            is a bot check (``blocked``), or a script fills an empty element (``needs_script``).
    """
    words = text.split()
    content = " ".join(words).lower()
    if len(content) > TEXT_CHARS_MAX or len(words) < TEXT_WORDS_MIN:
        return
    content = content.replace("\u2019", "'")
    first = next(line for line in text.split("\n") if line.strip())
    label = f"{title or ''}\n{first}".lower().replace("\u2019", "'")
    parts = [part.strip(" .!…\t\r") for part in _PARTS.split(label)]
    if any(_ERROR.fullmatch(part) for part in parts):
        raise PageError("error_page", "the page says that there is no such page")
    if any(_BLOCK_TITLE.fullmatch(part.rstrip("?")) for part in parts) or _BLOCK.search(content):
        raise PageError("blocked", "the page asks for a check, JavaScript or cookies first")
    if not _MOUNTS.isdisjoint(empty_ids):
        raise PageError(
            "needs_script", "the page is a shell that scripts fill; fetch it with a browser"
        )
