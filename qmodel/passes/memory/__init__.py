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
    """A memory model that is not there."""


def lower(program: Program, model: str, buffer: int = BUFFER) -> Program:
    """Return the program with every primitive turned into plain instructions. Raises UnknownMemoryError."""
    machines = {"sc": SequentialConsistency, "tso": Tso, "weak": Weak}
    if model not in machines:
        raise UnknownMemoryError(f"no memory model `{model}`: there are {', '.join(machines)}")
    machine: Machine = machines[model](program, buffer)
    program = context.add(machine.prepared())
    meaning = Meaning(program, machine)
    templates = {name: meaning.template(t) for name, t in program.templates.items()}
    setup = Meaning(program, SequentialConsistency(program, 0), alone=True).template(program.setup)
    return machine.finished(replace(program, templates=templates, setup=setup, memory=model))
