"""Who may run on a CPU: a task stops while a softirq runs on its CPU; a softirq starts where bottom halves are on."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from qmodel.ir.expr import Own, apply
from qmodel.ir.graph import Piece, expand
from qmodel.ir.program import Guard, Node, Program, Template

if TYPE_CHECKING:
    from qmodel.ir.expr import Expr

_ALONE: Expr = Own("alone")
_ENABLED: Expr = Own("enabled")


def add(program: Program) -> Program:
    """Return the program with the guards that say when a thread may run on its CPU."""
    if not any(t.kind == "softirq" for t in program.threads):
        return program
    return replace(program, templates={name: _guarded(t) for name, t in program.templates.items()})


def _guarded(template: Template) -> Template:
    def rewrite(_number: int, node: Node) -> list[Piece] | None:
        if not node.boundary or not node.next:
            return None
        if template.kind == "softirq":
            # Only its start waits: once it runs nothing else on its CPU does.
            return [Guard(apply("and", _ALONE, _ENABLED)), node.instruction] if node.rest else None
        return None if node.bh_off else [Guard(_ALONE), node.instruction]

    return expand(template, rewrite)
