"""Who may run on a CPU: a task stops while a softirq runs on its CPU; a softirq starts where bottom halves are on."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from qmodel.ir.expr import At, Const, Inside, Own, apply, substitute, walk
from qmodel.ir.graph import Piece, expand
from qmodel.ir.program import Guard, Node, Program, Template
from qmodel.ir.text import expr_text

if TYPE_CHECKING:
    from qmodel.ir.expr import Expr

_ALONE: Expr = Own("alone")
_ENABLED: Expr = Own("enabled")


def add(program: Program) -> Program:
    """Return the program with the guards that say when a thread may run on its CPU."""
    if not any(t.kind == "softirq" for t in program.threads):
        return program
    return replace(program, templates={name: _guarded(t) for name, t in program.templates.items()})


def place(program: Program) -> Program:
    """Return the program with what properties say of functions turned into places of threads."""

    def inside(part: Expr) -> Expr | None:
        if not isinstance(part, Inside):
            return None
        total: Expr = Const(0)
        for thread in program.threads:
            nodes = program.template_of(thread.tid).nodes
            named = set(part.functions)
            at = frozenset(i for i, n in enumerate(nodes) if n.boundary and n.next and named & set(n.site.stack))
            total = apply("+", total, At(thread.tid, at)) if at else total
        return total

    return replace(
        program,
        properties=tuple(
            replace(
                p,
                cond=substitute(p.cond, inside),
                inside=tuple((expr_text(e), substitute(e, inside)) for e in walk(p.cond) if isinstance(e, Inside)),
            )
            for p in program.properties
        ),
        measures=tuple(replace(m, value=substitute(m.value, inside)) for m in program.measures),
    )


def _guarded(template: Template) -> Template:
    def rewrite(_number: int, node: Node) -> list[Piece] | None:
        if not node.boundary or not node.next:
            return None
        if template.kind == "softirq":
            # Only its start waits: once it runs nothing else on its CPU does.
            return [Guard(apply("and", _ALONE, _ENABLED)), node.instruction] if node.rest else None
        return None if node.bh_off else [Guard(_ALONE), node.instruction]

    return expand(template, rewrite)
