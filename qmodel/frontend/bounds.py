"""Finding the bounds of numbers that threads keep for themselves, from all that is ever assigned to them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from qmodel.ir.expr import Domain, Local, Own, Read, interval
from qmodel.ir.program import Assign, Choose, Primitive, Template

if TYPE_CHECKING:
    from qmodel.frontend.diagnostics import File
    from qmodel.ir.program import Variable

_ROUNDS = 300


def settle(
    template: Template,
    variables: dict[str, Variable],
    packets: int,
    skb_bits: int,
    cpus: int,
    files: Mapping[str, File],
) -> Template:
    """Return the template with the domain of every number found. Raises SpecError where one grows for ever."""
    known = {n: v.domain for n, v in template.locals.items() if v.declared or v.domain.kind != "int"}
    bounds: dict[str, tuple[int, int]] = {}

    def of(part: Local | Read | Own) -> tuple[int, int]:
        match part:
            case Local(name):
                if name in known:
                    return known[name].lo, known[name].hi
                return bounds.get(name, (0, 0))
            case Read(var):
                domain = variables[var].domain if var in variables else Domain("int", 0, 0)
                return domain.lo, domain.hi
            case Own("tid"):
                return 0, 64
            case _:
                return 0, max(cpus - 1, 0)

    changed: set[str] = set()
    for _ in range(_ROUNDS):
        changed = set()
        for node in template.nodes:
            match node.instruction:
                case Assign(Local(name), value) if name not in known:
                    new = interval(value, of, skb_bits)
                case Choose(name, count) if name not in known:
                    new = (0, count - 1)
                case Primitive(target=str() as name, place=Read(var)) if name not in known:
                    domain = variables[var].domain
                    new = (0, packets) if domain.kind == "queue" else (domain.lo - 1, domain.hi + 1)
                    if node.instruction.name in {"load", "READ_ONCE", "data_race", "smp_load_acquire", "atomic_read"}:
                        new = (domain.lo, domain.hi)
                case _:
                    continue
            old = bounds.get(name)
            joined = new if old is None else (min(old[0], new[0]), max(old[1], new[1]))
            if joined != old:
                bounds[name] = joined
                changed.add(name)
        if not changed:
            break
    if changed:
        name = min(changed, key=lambda n: (template.locals[n].site.line, n))
        site = template.locals[name].site
        short = name.rpartition(".")[2].partition("%")[0] or "this value"
        remedy = f"declare it where it is first assigned: `{short}: u8 = …` (0 to 255), s8 or u16"
        message = f"no bound is known for `{short}`: it may grow with each turn of a loop"
        raise files[site.file].error_at(site.line, site.column, site.end_column, message, remedy)
    settled = {
        n: v if n in known else replace(v, domain=Domain("int", *bounds.get(n, (0, 0))))
        for n, v in template.locals.items()
    }
    return replace(template, locals=settled)
