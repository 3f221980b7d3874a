"""Bounds: a value that could leave the domain of what it is stored to is checked before it is."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from qmodel.ir.expr import Const, Domain, Expr, Local, Own, Read, apply, interval
from qmodel.ir.graph import Piece, expand
from qmodel.ir.program import Assign, Fail, Node, Program, Show, Template

if TYPE_CHECKING:
    from collections.abc import Callable

_CHECKED = {"int", "flags", "queue"}


def add(program: Program) -> Program:
    """Return the program with a check before every store that may leave its bounds, and without checks that pass."""
    templates = {name: _add(program, t) for name, t in program.templates.items()}
    return replace(program, templates=templates, setup=_add(program, program.setup))


def bounds_of(program: Program, template: Template) -> Callable[[Local | Read | Own], tuple[int, int]]:
    """Return a function that gives the bounds of a variable by its domain."""

    def bounds(part: Local | Read | Own) -> tuple[int, int]:
        match part:
            case Local(name):
                domain = template.locals[name].domain
            case Read(var):
                domain = program.variables[var].domain
            case Own("tid"):
                return 0, len(program.threads)
            case Own("cpu"):
                return 0, program.cpus - 1
            case _:
                return 0, 1
        return domain.lo, domain.hi

    return bounds


def _add(program: Program, template: Template) -> Template:
    bounds = bounds_of(program, template)
    full = (1 << program.skb_bits * len(program.packets.names)) - 1

    def rewrite(_number: int, node: Node) -> list[Piece] | None:
        match node.instruction:
            case Fail(cond) if interval(cond, bounds, program.skb_bits)[1] == 0:
                return []
            case Assign(target, value):
                domain, name = _domain(program, template, target)
                if domain is None or (domain.kind == "queue" and domain.hi == full):
                    return None  # a list of packets that are each in one list has room for all of them
                low, high = interval(value, bounds, program.skb_bits)
                if domain.lo <= low and high <= domain.hi:
                    return None
                return [_check(domain, name, value, (low, high)), node.instruction]
            case _:
                return None

    return expand(template, rewrite)


def _domain(program: Program, template: Template, target: Local | Read) -> tuple[Domain | None, str]:
    if isinstance(target, Local):
        variable = template.locals[target.name]
        return (variable.domain if variable.declared else None), target.name.rpartition(".")[2]
    domain = program.variables[target.var].domain
    return (domain if domain.kind in _CHECKED else None), target.var


def _check(domain: Domain, name: str, value: Expr, reach: tuple[int, int]) -> Fail:
    parts = []
    if reach[0] < domain.lo:
        parts.append(apply("<", value, Const(domain.lo)))
    if reach[1] > domain.hi:
        parts.append(apply(">", value, Const(domain.hi)))
    cond = apply("or", *parts)
    if domain.kind == "queue":
        return Fail(cond, "domain", (f"{name} grows longer than its limit",))
    shown = Show(value, Domain("int", *reach))
    return Fail(cond, "domain", (f"{name} becomes ", shown, f", outside {domain.lo} to {domain.hi}"))
