"""Draw the README's picture from examples/pages: python -m manual.picture."""

from html import escape
from pathlib import Path
from typing import Final

from pgsimhash.analysis import compare_pages
from pgsimhash.html_reports.drawing import skyline

ROOT: Final = Path(__file__).parent.parent
PAIRS: Final = (
    (
        "tide-pools",
        "tide-pools-redesign",
        "Same article, new template",
        "other menus, other advertisements, other class names",
    ),
    (
        "tide-pools",
        "night-train",
        "Same template, other article",
        "same menus, same footer, same advertisements",
    ),
)
STYLE: Final = """text{font-family:system-ui,-apple-system,"Segoe UI",Helvetica,Arial,sans-serif}
.h{font-size:17px;font-weight:600;fill:#16191d}.q{font-size:13px;fill:#57606a}
.paper{fill:#fff;stroke:#d5dbe1}.both{fill:#0a5dc2}.only{fill:#b04304}
@media (prefers-color-scheme:dark){.h{fill:#e8ebef}.q{fill:#9da7b3}.paper{fill:#101318;
stroke:#30363d}.both{fill:#6cb2ff}.only{fill:#ff9d5c}}"""
_HIGH: Final = 216  # of a pair


def picture() -> str:
    """Return the picture as SVG, which follows the reader's light or dark mode."""
    found = [
        (what, also, compare_pages(*(_html(name) for name in (a, b)))) for a, b, what, also in PAIRS
    ]
    label = escape("; ".join(f"{what}: {pair.headline}" for what, _, pair in found))
    parts = []
    for place, (what, also, pair) in enumerate(found):
        both, only = skyline(pair.blocks, 800, 64)
        color = "both" if pair.matches else "only"
        parts.append(
            f'<g transform="translate(24 {place * _HIGH + 34})"><text class="h">{what}</text>\n'
            f'<text y="20" class="q">{also}</text>\n'
            f'<text x="832" class="h {color}" text-anchor="end">{escape(pair.headline)}</text>\n'
            f'<g transform="translate(32 40)"><path class="both" d="{both}"/>\n'
            f'<path class="only" d="{only}"/></g>\n'
            '<text x="4" y="96" class="q">A</text><text x="4" y="118" class="q">B</text></g>\n'
        )
    high = _HIGH * len(found) + 36
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 880 {high}" width="880" '
        f'height="{high}" role="img" aria-label="{label}"><style>{STYLE}</style>\n'
        f'<rect class="paper" width="880" height="{high}" rx="10"/>\n{"".join(parts)}'
        f'<g transform="translate(24 {high - 20})">'
        '<rect class="both" x="32" y="-10" width="11" height="11" rx="2"/>'
        '<text x="49" class="q">on both pages</text>\n'
        '<rect class="only" x="160" y="-10" width="11" height="11" rx="2"/>'
        '<text x="177" class="q">only on one</text>\n<text x="832" class="q" text-anchor="end">'
        "width: words · height: how loud they vote · area: their share of the vote"
        "</text></g></svg>\n"
    )


def _html(name: str) -> bytes:
    return (ROOT / "examples" / "pages" / f"{name}.html").read_bytes()


if __name__ == "__main__":
    (ROOT / "docs" / "seen.svg").write_text(picture(), encoding="utf-8")
