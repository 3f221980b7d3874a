"""Finding what a specification declares and never uses: mostly a misspelt name somewhere else."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from difflib import get_close_matches

from qmodel.frontend.diagnostics import Diagnostic, SpecError, did_you_mean
from qmodel.frontend.source import RESERVED, ModelClass, Module, Owned

_STATED = {"kernel", "expect", "model", "name"}
_USED_BY_THE_LANGUAGE = {"thread", "environment", "invariant", "quiescent", "measure", "scenario"}


def refuse_unused(module: Module, classes: Sequence[ModelClass]) -> None:
    """Refuse functions that nothing calls, and variables and parameters that nothing reads or writes."""
    used = _used_names(module)
    found: list[Diagnostic] = []
    for cls in classes:
        for name in cls.own - _STATED:
            owned = cls.members[name]
            if name in used or name in cls.overriding or _works_by_itself(owned, used):
                continue
            found += _unused(cls, name, owned, used - set(cls.members)).diagnostics
    if found:
        raise SpecError(sorted(found, key=lambda d: d.line))


def _used_names(module: Module) -> set[str]:
    """Return the names that stand somewhere as `m.NAME`, or as NAME: where `m.` is missing, that is told there."""
    nodes = list(ast.walk(module.tree))
    used = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    return used | {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}


def _works_by_itself(owned: Owned, used: set[str]) -> bool:
    match owned.node:
        case ast.FunctionDef(decorator_list=[decorator, *_]):
            called = decorator.func if isinstance(decorator, ast.Call) else decorator
            return isinstance(called, ast.Name) and called.id in _USED_BY_THE_LANGUAGE
        case ast.Call(func=ast.Name(id="Packets")):
            return bool(used & set(RESERVED))
    return False


def _unused(cls: ModelClass, name: str, owned: Owned, elsewhere: set[str]) -> SpecError:
    """Return the error on a name that is not used; elsewhere: names that are used and not declared."""
    error = owned.module.file.error
    meant = get_close_matches(name, elsewhere, n=1)
    if not isinstance(owned.node, ast.FunctionDef):
        remedy = f"is it meant by `m.{meant[0]}`?" if meant else f"write m.{name} where it belongs, or remove it"
        return error(owned.node, f"`{name}` is never used", remedy)
    functions = [n for n, m in cls.members.items() if isinstance(m.node, ast.FunctionDef) and n not in cls.own]
    otherwise = f"call it: m.{name}(…)" if not owned.node.decorator_list else f"raise it: raise_softirq(m.{name})"
    what = "overrides nothing, and nothing calls it" if cls.bases else "is never called"
    remedy = f"is it meant by `m.{meant[0]}`?" if meant else did_you_mean(name, functions, otherwise)
    return error(owned.node, f"`{name}` {what}", remedy)
