"""What short texts say about the block they stand in: an advertisement, comments, other articles.

Names are not always there to tell, or tell nothing; readers go by these words too.
"""

from __future__ import annotations

import re
from typing import Final

LABEL_MAX: Final = 60
"""A longer text is no heading of a block, in characters."""

CALL_MAX: Final = 200
"""A longer text is no call to sign up."""

NOTICE_MAX: Final = 400
"""A longer text is no notice about cookies."""

AD_LABELS: Final = frozenset(
    [
        "advertisement",
        "sponsored",
        "anzeige",
        "werbung",
        "publicité",
        "publicidad",
        "pubblicità",
        "publicidade",
        "reklama",
        "реклама",
        "広告",
        "广告",
        "廣告",
        "광고",
    ]
)
_CALL: Final = re.compile(
    r"(?:sign up|subscribe|get the latest)\b.*\b(?:newsletters?|e-?mails?|inbox)\b", re.DOTALL
)
_COMMENTS: Final = re.compile(
    r"\d[\d.,]* (?:reader )?(?:comments?|kommentare?|commentaires?|comentarios|commenti|reacties)"
    r"|(?:reader )?(?:comments?|kommentare?|commentaires?|comentarios) ?\(\d[\d.,]*\)"
    r"|leave a (?:comment|reply)|join the (?:conversation|discussion)|reader comments"
    r"|(?:schreibe?n? sie )?(?:einen )?kommentar schreiben|laisser un commentaire"
    r"|deja un comentario|оставить комментарий"
    r"|комментарии \(\d+\)|コメント ?[(\uff08]\d+[)\uff09]"
)
_OTHERS: Final = re.compile(
    r"related (?:articles?|posts?|stories|content|links|reading|news|coverage)"
    r"|(?:you (?:may|might) also (?:like|enjoy|be interested in))"
    r"|more (?:articles|stories|news|posts)(?: (?:from|by|in|on) .*)?|read (?:next|also|more)"
    r"|most (?:read|popular|viewed|commented|shared)(?: .*)?|recommended(?: for you| reading)?"
    r"|trending(?: now)?|popular (?:posts|articles|stories|now)|(?:latest|recent) "
    r"(?:news|posts|articles|stories)|keep reading|up next|don't miss|editor'?s'? picks?"
    r"|weitere artikel|mehr zum thema|das könnte (?:sie|dich) auch interessieren|meistgelesen"
    r"|à lire aussi|articles? (?:liés|similaires)|les plus lus"
    r"|(?:artículos|noticias) relacionad[ao]s"
    r"|lo más (?:leído|visto)|articoli correlati|leggi anche|читайте также|похожие статьи"
    r"|関連記事|あわせて読みたい|相关(?:文章|阅读)|관련 ?기사"
)
_COOKIES: Final = re.compile(
    r"\b(?:we|sites?|websites?|page|pages|portal)\b.{0,60}\buses? cookies\b"
    r"|(?:wir|seite|website) (?:verwende[nt]|nutz(?:en|t)|benutzt) cookies"
    r"|utilis\w{1,5} des cookies|(?:usa|usamos|utiliza|utilizamos) cookies"
    r"|(?:usa|utilizza|utilizziamo) (?:i )?cookie\b|gebruik\w{0,4} (?:van )?cookies"
)


def labels_advertisement(text: str) -> bool:
    """Return whether ``text``, stripped and in lower case, is the label of an advertisement."""
    return text.strip("[]():- ") in AD_LABELS


def calls_to_sign_up(text: str) -> bool:
    """Return whether ``text``, stripped and in lower case, calls to sign up for a newsletter."""
    return _CALL.match(text) is not None


def heads_comments(text: str) -> bool:
    """Return whether ``text``, stripped and in lower case, is a heading above comments.

    The bare word is not enough: manuals have chapters about comments.
    """
    return _COMMENTS.fullmatch(text.strip(":!. ")) is not None


def heads_other_articles(text: str) -> bool:
    """Return whether ``text``, stripped and in lower case, is a heading above other articles."""
    return _OTHERS.fullmatch(text.strip(":!.\u2026 ").replace("\u2019", "'")) is not None


def tells_of_cookies(text: str) -> bool:
    """Return whether ``text``, in lower case, is what a banner says about cookies."""
    return "cookie" in text and _COOKIES.search(text) is not None
