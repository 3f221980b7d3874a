"""What a machine does with an access: the interface of the memory models, and the simplest of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qmodel.ir.expr import Const, Local, Own, Read, apply
from qmodel.ir.program import RCU_AWAITED, RCU_PRESENT, Assign

if TYPE_CHECKING:
    from qmodel.ir.expr import Domain, Expr
    from qmodel.ir.graph import Piece
    from qmodel.ir.program import Program


class Machine:
    """A memory model. Every method returns pieces of a step; an expression it returns is valid after its pieces."""

    fences: frozenset[str] = frozenset()
    """Barriers that are steps of their own on this machine."""

    def __init__(self, program: Program, buffer: int) -> None:
        self.program, self.buffer = program, buffer
        self.locals: dict[str, Domain] = {}
        """Locals that the pieces use, for the template that they are put into."""

    def prepared(self) -> Program:
        """Return the program with what the machine adds before primitives are turned into instructions."""
        return self.program

    def finished(self, program: Program) -> Program:
        """Return the program with what the machine adds afterwards."""
        return program

    def load(self, place: Read) -> tuple[list[Piece], Expr]:
        """Read a variable as the running thread sees it."""
        return [], place

    def store(self, place: Read, value: Expr, *, release: bool = False) -> list[Piece]:
        """Store to a variable."""
        del release
        return [Assign(place, value)]

    def modify(self, place: Read, name: str, argument: Expr, new: Expr) -> list[Piece]:
        """Change a variable by an atomic that returns nothing; new: what it becomes where it acts on memory."""
        del name, argument
        return [Assign(place, new)]

    def drain(self, place: Read | None = None) -> list[Piece]:
        """Wait until the running CPU's stores are seen by all: to one place, or all of them."""
        del place
        return []

    def fence(self, name: str) -> list[Piece]:
        """Return what a barrier does."""
        del name
        return []

    def temporary(self, name: str, domain: Domain) -> Local:
        """Return a local for use within a step."""
        self.locals[name] = domain
        return Local(name)

    def leave_section(self) -> list[Piece]:
        """End a read-side critical section."""
        return ended(self.program, Own("tid"))

    locked_failure_drains = True
    """Whether a cmpxchg that fails drains as one that succeeds does."""
    lock_drains = True
    """Whether taking a lock waits for every store of the CPU, or only for those to the lock."""


def ended(program: Program, reader: Expr) -> list[Piece]:
    """Return what happens when the end of a reader's section is seen by all: one less is waited for."""
    present = Read(RCU_PRESENT, reader)
    pieces: list[Piece] = [Assign(present, apply("-", present, Const(1)))]
    if RCU_AWAITED not in program.variables:
        return pieces
    waiting = {t.tid for t in program.threads if _synchronizes(program, t.template)}
    for tid in sorted(waiting):
        awaited = Read(RCU_AWAITED, apply("+", Const(tid * len(program.threads)), reader))
        pieces.append(Assign(awaited, apply("max", apply("-", awaited, Const(1)), Const(0))))
    return pieces


def _synchronizes(program: Program, template: str) -> bool:
    nodes = program.templates[template].nodes
    return any(n.access is not None and n.access.name == "synchronize_rcu" for n in nodes)


class SequentialConsistency(Machine):
    """Every store is seen by all at once; barriers have nothing to do."""
