"""Names in the comments of the C extension and of SQL exist."""

import re
from collections.abc import Iterator

from tests.conftest import ROOT

_COMMENTS = {
    "native/*.[ch]": re.compile(r"/\*.*?\*/", re.DOTALL),
    "sql/*.sql": re.compile(r"--[^\n]*"),
}
_PYTHON_COMMENT = re.compile(r"#[^\n]*|\"\"\".*?\"\"\"", re.DOTALL)
_FUNCTION = re.compile(r"(?<![.\w])(\w+)\(\)")
# A word with an underscore is a name of the code.
_NAME = re.compile(r"(?<![.\w/])(_?[a-z0-9]+(?:_[a-z0-9]+)+|_[a-z0-9]+)\b(?!\.py|/)")

_OF_POSTGRESQL = {"deadlock_timeout"}
"""Names of PostgreSQL that only comments have."""


def _parts() -> Iterator[tuple[str, list[str], str]]:
    """The name of each file, its comments, and its code without them."""
    for pattern, comment in _COMMENTS.items():
        for path in sorted(ROOT.glob(pattern)):
            source = path.read_text(encoding="utf-8")
            yield path.name, comment.findall(source), comment.sub(" ", source)


def test_what_comments_name_exists() -> None:
    parts = list(_parts())
    python = "\n".join(
        _PYTHON_COMMENT.sub(" ", path.read_text(encoding="utf-8"))
        for path in (ROOT / "pgsimhash").rglob("*.py")
    )
    code = "\n".join([python, *(code for *_, code in parts)])
    functions = {*re.findall(r"(\w+)\(", code)}
    names = {*re.findall(r"\w+", code)}
    called, named = (
        {
            (file, name)
            for file, comments, _ in parts
            for name in pattern.findall("\n".join(comments))
        }
        for pattern in (_FUNCTION, _NAME)
    )
    assert min(len(called), len(named)) > 20
    assert {(file, name) for file, name in called if name not in functions} == set()
    assert {(file, name) for file, name in named if name not in names | _OF_POSTGRESQL} == set()
