"""Each error has a listed reason, and each listed reason is used."""

import ast
import pickle
import re
from collections.abc import Iterator
from functools import cache
from operator import attrgetter

import pgsimhash
from manual.reference import error_codes
from pgsimhash import errors
from pgsimhash.errors import MissingPackageError, NotFoundError, PageError, PgsimhashError
from tests.conftest import ROOT

_TYPES = {name: kind for name, kind in vars(errors).items() if isinstance(kind, type)}
CLASSES = {name: kind for name, kind in _TYPES.items() if issubclass(kind, PgsimhashError)}

PRIVATE = {"MovedCollectionError": "StoreError"}
"""Classes that only the package itself catches."""

FAILURES = {"PageFailure"}
"""Failures that are not raised; their second argument is a code of PageError."""


@cache
def nodes() -> list[tuple[str, ast.AST]]:
    """Return the parts of the package's code, each with the name of its file."""
    paths = sorted((ROOT / "pgsimhash").rglob("*.py"))
    trees = ((path.name, ast.parse(path.read_text(encoding="utf-8"))) for path in paths)
    return [(name, node) for name, tree in trees for node in ast.walk(tree)]


def codes() -> Iterator[tuple[str, str]]:
    """Yield the class and the code of each call of a class in CLASSES or FAILURES."""
    for _, node in nodes():
        if isinstance(node, ast.Call):
            called = ast.unparse(node.func).rpartition(".")[2]
            called = PRIVATE.get(called, called)
            code = node.args[called in FAILURES] if called in {*CLASSES, *FAILURES} else None
            if isinstance(code, ast.Constant):
                yield "PageError" if called in FAILURES else called, str(code.value)


def test_each_raise_has_a_listed_reason_and_each_listed_reason_is_used() -> None:
    listed = {(name, code) for name, kind in CLASSES.items() for code in kind.reasons}
    assert set(codes()) <= listed
    constants = (node for name, node in nodes() if name != "errors.py")
    texts = {node.value for node in constants if isinstance(node, ast.Constant)}
    assert {code for _, code in listed} <= texts


def test_the_manual_lists_every_class_and_reason() -> None:
    page, there = error_codes(), set(CLASSES) - {"PgsimhashError"}
    sections = dict(re.findall(r"^## (\w+)\n(.*?)(?=^## |\Z)", page, re.DOTALL | re.MULTILINE))
    assert set(sections) == there
    for name, section in sections.items():
        rows = dict(re.findall(r"^\| `(\w+)` \| (.+) \|$", section, re.MULTILINE))
        assert rows == CLASSES[name].reasons
    page = (ROOT / "docs" / "errors.md").read_text(encoding="utf-8")
    # As a program that uses the package names them.
    named = re.findall(r"^\| `([\w.]+)` \|", page, re.MULTILINE)
    assert {attrgetter(name)(pgsimhash) for name in named} == {CLASSES[name] for name in there}


def test_errors_can_be_pickled_and_have_base_classes_and_public_names() -> None:
    for kind in CLASSES.values():
        copy = pickle.loads(pickle.dumps(kind("some_code", "what is wrong; what to do")))
        assert (type(copy), copy.reason) == (kind, "some_code")
        assert str(copy) == "what is wrong; what to do"
    for kind in (PageError, errors.ArgumentError):
        assert issubclass(kind, ValueError)
    assert issubclass(NotFoundError, LookupError)
    assert issubclass(MissingPackageError, ImportError)
    assert not issubclass(errors.StoreError, ValueError)
    public = {name for name in vars(pgsimhash)["__all__"] if name.endswith("Error")}
    assert public == set(CLASSES) - {"MissingPackageError"}
    # None installs the package from an index, where its name is free until a release.
    for path in (ROOT / "pgsimhash").rglob("*.py"):
        assert not re.search(r"pip install[^.\n]*pgsimhash", path.read_text("utf-8")), path
    assert errors.install_command("frames").endswith("pip install -e '.[frames]'")
