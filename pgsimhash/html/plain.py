"""From Markdown back to text, for pages whose HTML is not at hand any more."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

_NESTING_MAX: Final = 100


def plain_text(markdown: str) -> str:
    """Return the words of ``markdown`` without markup, URLs or images, a line for each block.

    It has the words of the text that was hashed when the page was read, as far as Markdown holds
    them: a word of which a part was a link or bold may come back as two, and the other way round.
    """
    lines: list[str] = []
    for token in _parser().parse(markdown):
        if token.type == "inline":
            lines.append(_words(token.children or ()))
        elif token.type in ("fence", "code_block"):
            lines.append(token.content)
    return "\n".join(lines)


def _words(tokens: Sequence[Token]) -> str:
    return "".join(
        "\n" if token.type in ("softbreak", "hardbreak") else token.content
        for token in tokens
        if token.type in ("text", "text_special", "code_inline", "softbreak", "hardbreak")
    )


@cache
def _parser() -> MarkdownIt:
    # Takes a while to import, and only kept Markdown needs it.
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": False, "maxNesting": _NESTING_MAX}).enable("table")
    # Nothing is followed here: a link is one wherever it leads, to a file too.
    parser.validateLink = lambda url: True  # type: ignore[method-assign]
    return parser
