"""Convert Markdown back to text, for pages whose HTML is no longer available."""

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

    They are the hashed words of the page, except at the ends of links and emphasis within a word:
    there a word may become two, or two words one.
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
    # Slow to import, and only kept Markdown needs it.
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": False, "maxNesting": _NESTING_MAX}).enable("table")
    # Links are not followed, so any URL is valid, also that of a file.
    parser.validateLink = lambda url: True  # type: ignore[method-assign]
    return parser
