"""Memory models: what each primitive does on a machine, as plain instructions.

`meaning` says what a primitive reads, writes and demands; `sc`, `tso` and `weak` say when others see a store, and what
must have been seen before. `table` is the page that states it for each primitive.

Sources: P. Sewell et al., x86-TSO, CACM 2010; the kernel's Documentation/memory-barriers.txt, atomic_t.txt and
atomic_bitops.txt; tools/memory-model/Documentation/explanation.txt.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from qmodel.passes import context
from qmodel.passes.memory.buffers import Tso, Weak
from qmodel.passes.memory.machine import Machine, SequentialConsistency
from qmodel.passes.memory.meaning import Meaning

if TYPE_CHECKING:
    from qmodel.ir.program import Program

BUFFER = 4
"""Stores of a CPU that may be pending at once, unless one says otherwise; a run that needs more is inconclusive."""


class UnknownMemoryError(ValueError):
    """A memory model that is not there, or that says nothing of what a program does."""


def lower(program: Program, model: str, buffer: int = BUFFER) -> Program:
    """Return the program with every primitive turned into plain instructions. Raises UnknownMemoryError."""
    machines = {"sc": SequentialConsistency, "tso": Tso, "weak": Weak}
    if model not in machines:
        raise UnknownMemoryError(f"no memory model `{model}`: there are {', '.join(machines)}")
    if model != "sc":
        _refuse_blocks(program, model)
    machine: Machine = machines[model](program, buffer)
    program = context.add(machine.prepared())
    meaning = Meaning(program, machine)
    templates = {name: meaning.template(t) for name, t in program.templates.items()}
    setup = Meaning(program, SequentialConsistency(program, 0), alone=True).template(program.setup)
    return machine.finished(replace(program, templates=templates, setup=setup, memory=model))


def _refuse_blocks(program: Program, model: str) -> None:
    """Refuse atomic blocks: what others see of their stores, and when, is not defined on a machine with buffers."""
    for template in program.templates.values():
        for node in template.nodes:
            if node.access is not None and node.access.joined:
                place = f"{node.site.file}:{node.site.line}"
                text = f"{place}: `with atomic():` has no meaning under {model}; write what the kernel does, or use sc"
                raise UnknownMemoryError(text)
