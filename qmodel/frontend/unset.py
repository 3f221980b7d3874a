"""Refusing locals that are used on a way on which they have no value."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from qmodel.ir.flow import defines, live_before, uses
from qmodel.ir.graph import simplify
from qmodel.ir.program import Nop, Primitive

if TYPE_CHECKING:
    from qmodel.frontend.diagnostics import File, SpecError
    from qmodel.ir.program import Node

ENTER = "enter"
"""A primitive that marks where an inlined function begins: its locals have no values there, whatever is in them."""


def refuse_unset(nodes: Sequence[Node], files: Mapping[str, File]) -> tuple[Node, ...]:
    """Return the graph without the marks of functions. Raises SpecError where a local may have no value."""
    live = live_before(nodes)
    for number, node in enumerate(nodes):
        entered = node.instruction == Primitive(ENTER)
        for name in sorted(live[number]) if entered or number == 0 else ():
            function, _, short = name.rpartition(".")
            if number == 0 or (function == node.site.function and "%" not in short):
                raise _unset(nodes, number, name, files)
    return simplify([replace(n, instruction=Nop()) if n.instruction == Primitive(ENTER) else n for n in nodes])[0]


def _unset(nodes: Sequence[Node], start: int, name: str, files: Mapping[str, File]) -> SpecError:
    """Return the error at the nearest use of a local that has no value at a node."""
    seen, pending = {start}, [start]
    while name not in uses(nodes[pending[0]].instruction):
        number = pending.pop(0)
        if defines(nodes[number].instruction) != name:
            new = [n for n in nodes[number].next if n not in seen]
            seen.update(new)
            pending += new
    site, short = nodes[pending[0]].site, name.rpartition(".")[2].partition("%")[0]
    file = files[site.file]
    word = re.compile(rf"\b{short}\b").search(file.line(site.line), site.column)
    column, end = word.span() if word else (site.column, site.end_column)
    message = f"`{short}` may have no value here"
    remedy = f"give it one on every way to here, for example `{short} = …` before the branch or loop"
    return file.error_at(site.line, column, end, message, remedy)
