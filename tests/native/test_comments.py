"""Comments of the C extension name the Python functions that it follows."""

import re

from tests.conftest import ROOT

_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_NAMED = re.compile(r"(?<![.\w])(\w+)\(\)")


def test_each_function_that_a_comment_names_exists() -> None:
    sources = {path: path.read_text() for path in sorted((ROOT / "native").glob("*.[ch]"))}
    python = "\n".join(path.read_text() for path in (ROOT / "pgsimhash").rglob("*.py"))
    defined = {*re.findall(r"def (\w+)\(", python)}
    named = {
        (path.name, name)
        for path, source in sources.items()
        for comment in _COMMENT.findall(source)
        for name in _NAMED.findall(comment)
    }
    assert len(named) > 20
    assert {(file, name) for file, name in named if name not in defined} == set()
