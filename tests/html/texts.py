"""Texts of the pages of these tests, and their trees."""

from lxml.html import HtmlElement

from pgsimhash.html.parse import parse

TEXT = (
    "The harbour master keeps a ledger of every boat, its cargo and its temper. On calm days she "
    "reads it aloud to the gulls, who correct her spelling. On stormy days nobody dares to ask "
    "which boats are missing, because the ledger answers before she does."
)
SENTENCES = [
    "The ferryman, who learned the currents from his aunt, rows across the bay every morning.",
    "He carries letters, bread and two goats, and in March a piano for the school on the hill.",
    "Visitors ask about the goats first; the answer, he says, is longer than the crossing.",
    "When fog comes in, the baker rings a bell on the pier, three strokes and then a pause.",
    "In his first winter the old boat froze to the slip, and the whole street came with kettles.",
    "The new one has a motor, which he starts for doctors, brides and the man who reads meters.",
    "Nobody has drowned since the war, though the postmistress went in twice and blames the dog.",
    "He will stop when his knees do, and has shown the currents to a niece who is never seasick.",
]
STORY = "".join(f"<p>{sentence}</p>" for sentence in SENTENCES[:4])
LINKS = "".join(f'<li><a href="/{name}">More about {name}</a></li>' for name in "abcdefgh")


def parsed(page: str) -> HtmlElement:
    return parse(page)


def parsed_body(content: str) -> HtmlElement:
    body = parsed(f"<body>{content}").find("body")
    assert body is not None
    return body
