"""Build the manual as a site: `./run site` writes it to build/site. Any warning is an error."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Final

from manual import reference

ROOT: Final = Path(__file__).resolve().parent.parent
SOURCE: Final = ROOT / "build" / "manual"
SITE: Final = ROOT / "build" / "site"

PARTS: Final = {
    "Tutorial": ["first-hour"],
    "Crawl": ["ingest", "files", "crawlers", "policies", "maintain", "lookups", "analyse"],
    "Your own data": [
        "sql",
        "sql-write",
        "sql-only",
        "sqlalchemy",
        "alembic",
        "web-service",
        "texts",
        "frames",
        "other-tools",
        "scale",
    ],
    "Operation": [
        "install",
        "operate",
        "monitor",
        "upgrade",
        "connections",
        "timeouts",
        "testing",
    ],
    "Reference": [
        *(f"reference/{name}" for name in reference.PYTHON),
        "reference/results",
        "reference/command-line",
        "reference/sql",
        "errors",
        "reference/error-codes",
        "settings",
        "stability",
        "schemes",
        "reference/recipes",
        "layouts",
        "reference/sample-report",
    ],
    "Explanation": [
        "limits",
        "how-it-works",
        "what-is-seen",
        "reliability",
        "alternatives",
        "from-the-blog",
        "simhash-py",
        "measurements",
    ],
    "Project": ["contributing", "releasing", "security", "changes"],
}
"""The parts of the manual and their pages. Other pages of docs/ end the part about operation."""

MOVED: Final = {
    "README.md": "index.md",
    "CHANGELOG.md": "changes.md",
    "CONTRIBUTING.md": "contributing.md",
    "RELEASING.md": "releasing.md",
    "SECURITY.md": "security.md",
    "bench/README.md": "measurements.md",
    # Sphinx has its own page at search.html.
    "docs/search.md": "lookups.md",
    "tests/vectors/README.md": "reference/recipes.md",
}
"""The pages with another path on the site."""

SAMPLE: Final = """Of a whole site it says how many pages are copies, and where they come from:
<a href="report.html">a sample report</a>.
"""
"""What the first page says beyond the README."""

LOADING: Final = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href"}
"""The tags that make a browser load something, and their attributes."""


def main() -> None:
    """Assemble the pages, let Sphinx build them, and check what they load."""
    for folder in (SOURCE, SITE):
        shutil.rmtree(folder, ignore_errors=True)
    assemble()
    config = str(Path(__file__).parent)
    command = ["-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html", "-c", config]
    subprocess.run([sys.executable, *command, str(SOURCE), str(SITE)], check=True, cwd=ROOT)
    external = loaded_from_elsewhere(SITE)
    if external:
        sys.exit("pages load from elsewhere:\n" + "\n".join(external))
    sys.stderr.write(f"{SITE.relative_to(ROOT)}/index.html\n")


def assemble() -> None:
    """Write all pages into one folder, with links that work there."""
    inside = [*(ROOT / "docs").glob("*.md"), *(ROOT / "docs").glob("*.svg")]
    pictures = [*inside, *(ROOT / "bench").glob("*.svg")]
    places = {path: path.name for path in pictures}
    places |= {ROOT / source: page for source, page in MOVED.items()}
    for path, place in places.items():
        target = SOURCE / place
        target.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".md":
            target.write_text(_linked(path, places), encoding="utf-8")
        else:
            shutil.copyfile(path, target)
    index = SOURCE / "index.md"
    first_page = index.read_text(encoding="utf-8").replace("\n## Try it", f"\n{SAMPLE}\n## Try it")
    index.write_text(first_page + _contents(), encoding="utf-8")
    for name, text in reference.pages().items():
        (SOURCE / name).write_text(text, encoding="utf-8")
    (SOURCE / "llms.txt").write_text(_for_models(), encoding="utf-8")
    sample = SOURCE / "reference" / "sample-report.md"
    if reference.screenshot(SOURCE / "report.html", sample.with_suffix(".png")):
        with sample.open("a", encoding="utf-8") as page:
            page.write(f"\n{reference.PICTURE}")


def _parts() -> dict[str, list[str]]:
    placed = {page for pages in PARTS.values() for page in pages}
    others = sorted({path.stem for path in SOURCE.glob("*.md")} - placed - {"index"})
    return PARTS | {"Operation": [*PARTS["Operation"], *others]}


def _contents() -> str:
    return "".join(
        f"\n```{{toctree}}\n:hidden:\n:caption: {part}\n\n" + "\n".join(pages) + "\n```\n"
        for part, pages in _parts().items()
    )


def _for_models() -> str:
    """Return the contents for language models (llmstxt.org)."""
    summary = (SOURCE / "index.md").read_text(encoding="utf-8").split("\n\n")[1]
    lines = ["# pgsimhash", "", "> " + " ".join(summary.split())]
    for part, pages in _parts().items():
        lines += ["", f"## {part}", ""]
        for page in pages:
            title = (SOURCE / f"{page}.md").read_text(encoding="utf-8").partition("\n")[0]
            lines.append(f"- [{title.lstrip('# ')}]({page}.html)")
    return "\n".join(lines) + "\n"


def _linked(path: Path, places: dict[Path, str]) -> str:
    """Return a page of the repository with links to the pages of the site."""
    up = "../" * places[path].count("/")

    def link(found: re.Match[str]) -> str:
        target, mark, heading = found[1].partition("#")
        if not target or "://" in target:
            return found[0]
        page = places.get((path.parent / target).resolve())
        if page is None:
            sys.exit(f"{path.relative_to(ROOT)} links to {target}, which is not on the site")
        return f"]({up}{page}{mark}{heading})"

    return re.sub(r"\]\(([^)\s]+)\)", link, path.read_text(encoding="utf-8"))


class _Loaded(HTMLParser):
    """The addresses that a browser loads for a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.addresses: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        address = dict(attrs).get(LOADING.get(tag, ""))
        if address:
            self.addresses.append(address)


def loaded_from_elsewhere(site: Path) -> list[str]:
    """Return the requests of the site's pages and style sheets to other hosts."""
    loaded = {
        path: _Loaded(path.read_text(encoding="utf-8")).addresses for path in site.rglob("*.html")
    } | {
        path: re.findall(
            r"(?:url\(|@import )[\"']?((?:\w+:)?//[^)\"']+)", path.read_text(encoding="utf-8")
        )
        for path in site.rglob("*.css")
    }
    return [
        f"{path.relative_to(site)}: {address}"
        for path, addresses in loaded.items()
        for address in addresses
        if re.match(r"(\w+:)?//", address)
    ]


if __name__ == "__main__":
    main()
