"""Passes: from the program that the frontend gives to one that engines run. Each rewrites IR to IR.

`memory` turns primitives into plain instructions under a memory model, `context` adds who may run on a CPU, `packets`
watches what threads drop, `locks` removes checks that always pass, `domains` adds checks of bounds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from qmodel.passes import context, domains, locks, memory, packets

if TYPE_CHECKING:
    from qmodel.ir.program import Program


def lower(program: Program, model: str = "sc", buffer: int = memory.BUFFER) -> Program:
    """Return the program that an engine runs under a memory model, without any reduction.

    buffer: how many stores of a CPU may be pending at once. Raises UnknownMemoryError.
    """
    program = memory.lower(program, model, buffer)
    return context.place(locks.prune(domains.add(packets.add(program))))
