"""What a thread knows of itself, filled in: the code of a template becomes the code of one thread."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qmodel.ir.expr import At, Const, Expr, Own, apply, substitute

if TYPE_CHECKING:
    from qmodel.ir.program import Program, Thread


def bind(program: Program, thread: Thread, expr: Expr) -> Expr:
    """Return an expression with what the thread knows of itself filled in."""

    def own(part: Expr) -> Expr | None:
        if not isinstance(part, Own):
            return None
        match part.what:
            case "tid":
                return Const(thread.tid)
            case "cpu":
                return Const(thread.cpu)
            case "alone":
                others = [t for t in program.softirqs_on(thread.cpu) if t != thread.tid]
                return apply("and", *(At(t, program.template_of(t).rests) for t in others))
            case "enabled":
                return apply("and", *(At(t.tid, _enabled_at(program, t)) for t in _tasks_on(program, thread.cpu)))

    return substitute(expr, own)


def _tasks_on(program: Program, cpu: int) -> list[Thread]:
    return [t for t in program.threads if t.cpu == cpu and t.kind in {"task", "environment"}]


def _enabled_at(program: Program, thread: Thread) -> frozenset[int]:
    nodes = program.template_of(thread.tid).nodes
    return frozenset(i for i, n in enumerate(nodes) if n.boundary and not n.bh_off)
