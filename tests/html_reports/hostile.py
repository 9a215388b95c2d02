"""Pages that attack a report."""

from datetime import UTC, datetime, timedelta
from typing import Final

from pgsimhash import Store, analysis, connect
from pgsimhash.analysis.explanation import Explanation, Side, explain_sides
from pgsimhash.hashing.bits import format_simhash, to_bigint
from pgsimhash.html_reports import explanation_page, report_page
from pgsimhash.reading.kept_markdown import kept_article

TEXTS: Final = [
    "<script>window.hacked = 1; fetch('https://tracker.invalid/1')</script>",
    '"><script src="https://tracker.invalid/2.js"></script>',
    "<img src=https://tracker.invalid/3.png onerror='window.hacked = 3'>",
    "</title></style></svg><svg onload='window.hacked = 4'>",
    "' autofocus onfocus='window.hacked = 5' x='",
    "<iframe src='javascript:parent.hacked = 6'></iframe>",
    "<meta http-equiv=refresh content='0;url=https://tracker.invalid/7'>",
    "<link rel=stylesheet href=https://tracker.invalid/8.css><base href=https://tracker.invalid/>",
    "<style>body { background: url(https://tracker.invalid/9.png) }</style>",
    "</details></section><form action=https://tracker.invalid/10><button>",
    "${__import__('os').system('true')} <%def name='x()'></%def> {{7777*7777}}\n% endif\n## x",
    "[link](javascript:window.hacked=12) ![i](https://tracker.invalid/12.png) <!-- -->",
    "\u202eright to left\u2066 &lt;script&gt; &amp; \u0000 \U000e0001 " + "w" * 500,
]

URLS: Final = [
    "javascript:window.hacked=20", "JaVaScRiPt:window.hacked=21",
    "data:text/html,<script>window.hacked=22</script>",
    'https://a.example/?q="><script>window.hacked=23</script>',
    "https://a.example/' onmouseover='window.hacked=24", "//tracker.invalid/25",
    "vbscript:window.hacked=26", " javascript:window.hacked=27", "https://[",
    "https://a.example/" + "long" * 400,
]  # fmt: skip

BEGIN: Final = datetime(2026, 1, 1, tzinfo=UTC)


def explanation() -> Explanation:
    """An explanation of two hostile pages."""
    sides = []
    for number, url in ((0, URLS[0]), (7, URLS[3])):
        told = TEXTS[number % len(TEXTS)]
        article = kept_article("\n\n".join(f"{text} {number}" for text in TEXTS), told)
        sides.append(Side(number, url, told, BEGIN, 0, 0, article, "markdown", 0.5, tuple(TEXTS)))
    return explain_sides(sides[0], sides[1], top=50)


def fill(store: Store) -> None:
    """Insert clusters and histories of hostile pages into a collection that stores Markdown.

    By SQL, because other programs may write these tables: it includes pages that `ingest` refuses.
    """
    collection_id = store.opened.collection_id
    rows = []
    for number in range(60):
        own = f"https://host{number % 7}.example/{number}"
        url = own if number % 3 == 1 else URLS[number % len(URLS)]
        told = TEXTS[number % len(TEXTS)].replace("\0", "")
        simhash = to_bigint((number % 5) << 60 | (1 << number % 4) - 1)
        rows.append(
            (
                collection_id, url, simhash, BEGIN + timedelta(days=number * 3), told, number * 999,
                to_bigint(int(format_simhash(number * 2**40), 16)),
                "\n\n".join(f"{text} {number}" for text in TEXTS).replace("\0", ""),
                number % 9 if number else None,
            )
        )  # fmt: skip
    with store.session.read() as connection, connection.cursor() as cursor:
        columns = "simhash, fetched_at, title, html_bytes, structure, markdown, distance"
        into = f"INSERT INTO pgsimhash.pages (collection_id, url, {columns})"
        cursor.executemany(f"{into} VALUES (%s{', %s' * 8})".encode(), rows)


def pages(dsn: str) -> dict[str, str]:
    """Each kind of HTML page with hostile content."""
    with connect(dsn, collection="hostile", keep_markdown=True) as store:
        fill(store)
        report = report_page(analysis.report(store))
    return {"report": report, "explanation": explanation_page(explanation())}
