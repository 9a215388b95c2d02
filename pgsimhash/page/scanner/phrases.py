"""What short lines of a scanned page say of the block they stand in, as a table of hashes.

These are the commonest of what :mod:`pgsimhash.page.labels` knows, as whole phrases. A phrase is
the line's words in lower case, with one space between them and ``0`` for each run of numbers.
"""

from __future__ import annotations

from functools import cache
from typing import Final

from pgsimhash.page.labels import AD_LABELS
from pgsimhash.page.scanner.kinds import Table, table

ADVERTISEMENT, COMMENTS, OTHERS, CALL = range(1, 5)
"""What a line is: the label of an advertisement, a heading above comments or above other articles,
the beginning of a call to sign up."""
LETTER, COOKIES, USED = range(1, 4)
"""What a word is: one for a newsletter, ``cookies``, what stands before that in a notice."""

_COMMENTS: Final = """
    0 comments|0 comment|comments 0|comment 0|0 reader comments|reader comments|leave a comment
    |leave a reply|join the conversation|join the discussion|0 kommentare|0 kommentar|kommentare 0
    |kommentar schreiben|einen kommentar schreiben|0 commentaires|commentaires 0|0 comentarios
    |comentarios 0|0 commenti|0 reacties|laisser un commentaire|deja un comentario
    |оставить комментарий|комментарии 0|コメント 0
"""
_OTHERS: Final = """
    related articles|related article|related posts|related stories|related content|related links
    |related reading|related news|related coverage|you may also like|you might also like
    |you may also enjoy|you may also be interested in|more articles|more stories|more news
    |more posts|read next|read also|read more|most read|most popular|most viewed|most commented
    |most shared|recommended|recommended for you|recommended reading|trending|trending now
    |popular posts|popular articles|popular stories|popular now|latest news|latest posts
    |latest articles|latest stories|recent news|recent posts|recent articles|recent stories
    |keep reading|up next|don't miss|editors' picks|editor's picks|weitere artikel|mehr zum thema
    |das könnte sie auch interessieren|das könnte dich auch interessieren|meistgelesen
    |à lire aussi|articles liés|articles similaires|les plus lus|artículos relacionados
    |noticias relacionadas|lo más leído|lo más visto|articoli correlati|leggi anche
    |читайте также|похожие статьи|関連記事|あわせて読みたい|相关文章|相关阅读|관련 기사|관련기사
"""
_CALLS: Final = "sign up|subscribe|get the latest"
_LETTERS: Final = "newsletter newsletters email emails e-mail e-mails inbox"
_USED: Final = "use uses verwendet verwenden nutzt nutzen benutzt des utiliza usa utilizamos usamos"


@cache
def phrases() -> Table:
    """Return phrases (``!leave a reply``) and words (``?inbox``), and what they are.

    Returns:
        Keys and values, shape (n,) each, n a power of two.
    """
    entries: dict[str, int] = {}
    for said, kind in (
        ("|".join(AD_LABELS), ADVERTISEMENT),
        (_COMMENTS, COMMENTS),
        (_OTHERS, OTHERS),
        (_CALLS, CALL),
    ):
        for phrase in said.split("|"):
            # The scanner lowers the letters of ASCII alone.
            curly = phrase.replace("'", "\u2019")
            for form in (phrase, curly, phrase.upper(), phrase.capitalize()):
                entries[f"!{_ascii_lower(form.strip())}"] = kind
    for members, meaning in ((_LETTERS, LETTER), ("cookies cookie", COOKIES), (_USED, USED)):
        entries |= {f"?{word}": meaning for word in members.split()}
    return table(entries)


def _ascii_lower(text: str) -> str:
    return "".join(letter.lower() if letter.isascii() else letter for letter in text)
