"""The public Python names as a type checker reads them: from the source, without an import."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from manual.reference import PYTHON, RESULTS
from tests.conftest import ROOT

MODULES = [module for modules in PYTHON.values() for module in modules]
"""The public modules."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


class Definition(NamedTuple):
    """A name at the top of a module, and the statements that define it there."""

    module: str
    name: str
    nodes: list[ast.stmt]


def python_names() -> Iterator[str]:
    """A line for each public name with its signature, and for each member of a public class."""
    known: dict[tuple[str, str], str] = {}
    for module in MODULES:
        for name in exported(module):
            defined, full = definition(module, name), f"{module}.{name}"
            before = known.setdefault((defined.module, defined.name), full)
            if before != full:
                yield f"{full} is {before}"
            elif isinstance(defined.nodes[-1], ast.ClassDef):
                yield from _class_lines(full, defined)
            else:
                for node in _callable(defined.nodes):
                    yield f"{full}{_described(node)}"
    for module, names in RESULTS.items():
        for name in names.split():
            yield from _class_lines(f"result {name}", definition(module, name))


def exported(module: str) -> list[str]:
    """The names of ``__all__``, or those that an ``import A as A`` exports."""
    names = names_at_the_top(module)
    for node in names.get("__all__", ()):
        assert isinstance(node, ast.Assign)
        return list(ast.literal_eval(node.value))
    imports = (node for nodes in names.values() for node in nodes)
    aliases = (each for node in imports if isinstance(node, ast.ImportFrom) for each in node.names)
    return sorted({each.name for each in aliases if each.asname == each.name})


def definition(module: str, name: str) -> Definition:
    """Where a name is defined; it follows imports within the package."""
    nodes = names_at_the_top(module)[name]
    if isinstance(nodes[0], ast.ImportFrom) and (nodes[0].module or "").startswith("pgsimhash"):
        aliases = {each.asname or each.name: each.name for each in nodes[0].names}
        return definition(nodes[0].module or "", aliases[name])
    return Definition(module, name, nodes)


@cache
def names_at_the_top(module: str) -> dict[str, list[ast.stmt]]:
    """The names that a module binds, with the statements, also those in ``if`` and ``with``."""
    names: dict[str, list[ast.stmt]] = {}
    waiting = ast.parse(_path(module).read_text(encoding="utf-8")).body[::-1]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.If | ast.With):
            waiting += [*getattr(node, "orelse", ()), *node.body[::-1]]
        for name in _bound(node):
            names.setdefault(name, []).append(node)
    return names


def _path(module: str) -> Path:
    path = ROOT / module.replace(".", "/")
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def _bound(node: ast.stmt) -> list[str]:
    match node:
        case ast.Import() | ast.ImportFrom():
            return [(each.asname or each.name).partition(".")[0] for each in node.names]
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            return [node.name]
        case ast.Assign() | ast.AnnAssign():
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            parts = [each for target in targets for each in ast.walk(target)]
            return [each.id for each in parts if isinstance(each, ast.Name)]
        case _:
            return []


def _class_lines(full: str, defined: Definition) -> Iterator[str]:
    members: dict[str, list[ast.stmt]] = {}
    for each in reversed(list(_with_bases(defined))):
        own = [node for node in _class(each).body if each == defined or not _is_called(node)]
        for node in own:
            for name in _bound(node):
                members[name] = [*(members.get(name, ()) if _is_overload(node) else ()), node]
    public = {
        name: nodes for name, nodes in members.items() if name[0] != "_" or name == "__init__"
    }
    fields = [name for name, (node, *_) in public.items() if isinstance(node, ast.AnnAssign)]
    bases = ", ".join(map(ast.unparse, _class(defined).bases))
    yield f"{full} is a class ({bases}) of fields ({', '.join(fields)})"
    for name, nodes in public.items():
        # Stores come from `connect`, so their arguments are not public.
        if name != "__init__" or not defined.name.endswith("Store"):
            for node in _callable(nodes):
                yield f"{full}.{name}{_described(node)}"


def _class(defined: Definition) -> ast.ClassDef:
    node = defined.nodes[-1]
    assert isinstance(node, ast.ClassDef)
    return node


def _with_bases(defined: Definition) -> Iterator[Definition]:
    """A class, and its bases in the package."""
    yield defined
    for base in map(ast.unparse, _class(defined).bases):
        if base in names_at_the_top(defined.module):
            found = definition(defined.module, base)
            if isinstance(found.nodes[-1], ast.ClassDef):
                yield from _with_bases(found)


def _is_called(node: ast.stmt) -> bool:
    return isinstance(node, ast.FunctionDef) and node.name == "__init__"


def _is_overload(node: ast.stmt) -> bool:
    return isinstance(node, Function) and "overload" in map(ast.unparse, node.decorator_list)


def _callable(nodes: list[ast.stmt]) -> list[ast.stmt]:
    """The statements that a caller sees: of an overloaded function, its overloads."""
    return [node for node in nodes if _is_overload(node)] or nodes[-1:]


def _described(node: ast.stmt) -> str:
    """A signature, a type or a short value."""
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            result = ast.unparse(node.returns) if node.returns else "Any"
            if "property" in map(ast.unparse, node.decorator_list):
                return f": {result}"
            arguments = ast.unparse(node.args).removeprefix("self").removeprefix("cls")
            awaited = " async" * isinstance(node, ast.AsyncFunctionDef)
            return f"({arguments.removeprefix(', ')}) -> {result}{awaited}"
        case ast.AnnAssign(annotation=annotation, value=ast.Constant() | ast.Call() as value):
            short = isinstance(value, ast.Constant) or ast.unparse(value).startswith("field(")
            return f": {ast.unparse(annotation)}" + f" = {ast.unparse(value)}" * short
        case ast.AnnAssign():
            return f": {ast.unparse(node.annotation)}"
        case ast.Assign(value=ast.Subscript() | ast.Name() | ast.Call() as value):
            return f" = {ast.unparse(value)}"
        case _:
            return ""
