"""Programs: shared variables, control-flow graphs, threads and properties.

A template is the control-flow graph of one kind of thread; threads are its instances. A node holds one instruction.
A node that is a `boundary` is a place where a thread can wait for its next step: a *step* runs from one boundary to
the next along the graph, without anything in between being seen by others. The frontend gives *primitives*
(`spin_lock`, `load`, `__skb_dequeue` …); the memory pass turns each into the plain instructions that engines run.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import Literal

from qmodel.ir.expr import Const, Domain, Expr, Local, Read


class Place(IntEnum):
    """Where a packet is. HELD + t: in the hands of thread number t."""

    NOWHERE = 0
    LISTED = 1
    WIRE = 2
    FREED = 3
    HELD = 4


WHERE = "__where"
"""Ghost array: the `Place` of each packet, at index packet - 1."""
LAST_SENT = "__last_sent"
"""Ghost array: for each flow 1 + the greatest index of a packet on the wire, 0 when none is."""
RCU_PRESENT = "__rcu_present"
"""Ghost array: for each thread the read-side critical sections whose end is not seen by all yet."""
RCU_DEPTH = "__rcu_depth"
"""Ghost array: how deep each thread is in read-side critical sections; only the outermost one counts."""
RCU_AWAITED = "__rcu_awaited"
"""Ghost array, thread by thread: for each other thread the sections that a synchronize_rcu() still waits for."""
PENDING = "__pending"
"""Prefix of the ghost array of a softirq: whether it is raised, for each CPU."""
BOUND = "buffer-bound"
"""Not a property of the model: a store buffer was full, so that the search is not complete."""
BUDGET = "__left"
"""Prefix of the ghost variable that counts what is left of a budget."""


@dataclass(frozen=True, slots=True)
class Site:
    """A place in a specification: the innermost function, and file, line and columns (0-based) of the expression.

    stack: the functions that are being run there, outermost first.
    """

    file: str
    line: int
    column: int
    end_column: int
    function: str
    source: str
    stack: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Variable:
    """A shared variable. size: None for a scalar, else the number of elements; init: one value each.

    guard: the lock (an array of the same size for an array of locks) that protects it. rest: the value without which
    a run is not over. ghost: bookkeeping of the language, no memory of the kernel.
    """

    name: str
    domain: Domain
    size: int | None
    init: tuple[int, ...]
    guard: str | None = None
    rest: int | None = None
    ghost: bool = False
    doc: str = ""
    site: Site | None = None


EventKind = Literal[
    "lock", "unlock", "load", "store", "atomic", "list", "wire", "free", "choose", "softirq", "wait", "flush", "rcu"
]


@dataclass(frozen=True, slots=True)
class Show:
    """A value within an event's text, printed as its domain says."""

    expr: Expr
    domain: Domain


@dataclass(frozen=True, slots=True)
class Label:
    """How an instruction is printed once it has run: `parts` are joined, values filled in."""

    kind: EventKind
    parts: tuple[str | Show, ...]


@dataclass(frozen=True, slots=True)
class Primitive:
    """An operation of the language, before the memory pass: its name as in the kernel, and what it works on.

    target: the local that takes the result. place: the shared variable (or, for a local queue, the local). marked:
    it may be touched without the lock that guards it (READ_ONCE, atomics). joined: part of a step that has begun.
    """

    name: str
    target: str | None = None
    place: Read | Local | None = None
    args: tuple[Expr, ...] = ()
    marked: bool = False
    joined: bool = False


@dataclass(frozen=True, slots=True)
class Assign:
    """target := value."""

    target: Local | Read
    value: Expr


@dataclass(frozen=True, slots=True)
class Branch:
    """Goes on at the first successor if the condition is not 0, else at the second."""

    cond: Expr


@dataclass(frozen=True, slots=True)
class Choose:
    """target := any of 0 to count - 1; each is an alternative of the step."""

    target: str
    count: int


@dataclass(frozen=True, slots=True)
class Guard:
    """The step, or what is left of it after a choice, can be taken only where the condition holds.

    lock: the lock that is waited for, for the search of deadlocks; None for any other wait.
    """

    cond: Expr
    lock: Read | None = None


@dataclass(frozen=True, slots=True)
class Fail:
    """Where the condition holds, the named property is violated; a fatal one ends the path."""

    cond: Expr
    property: str
    message: tuple[str | Show, ...]
    fatal: bool = True


@dataclass(frozen=True, slots=True)
class Nop:
    """Nothing."""


@dataclass(frozen=True, slots=True)
class Drop:
    """The last use of a local that may hold packets has passed. `kept` are the locals that still live."""

    name: str
    kept: tuple[str, ...]


Instruction = Primitive | Assign | Branch | Choose | Guard | Fail | Nop | Drop


@dataclass(frozen=True, slots=True)
class Node:
    """An instruction and where it goes on: one successor, two for a branch, none where the thread ends.

    boundary: a step starts here. label: what is printed when the node has run. access: the primitive the node
    stands for, kept by the memory pass for printing and for later passes. bh_off: bottom halves are off before it.
    rest: an environment thread or a softirq may stay here for ever.
    """

    instruction: Instruction
    next: tuple[int, ...]
    site: Site
    boundary: bool = False
    label: Label | None = None
    access: Primitive | None = None
    bh_off: bool = False
    rest: bool = False


@dataclass(frozen=True, slots=True)
class LocalVariable:
    """A variable of a thread. declared: its domain is the author's, and values outside it are errors."""

    domain: Domain
    declared: bool
    site: Site


ThreadKind = Literal["task", "softirq", "environment", "buffer"]
"""What a thread is: a `buffer` commits the stores of a CPU that nobody else has seen yet."""


@dataclass(frozen=True, slots=True)
class Template:
    """The code of one kind of thread: node 0 is the entry."""

    name: str
    kind: ThreadKind
    nodes: tuple[Node, ...]
    locals: dict[str, LocalVariable]
    doc: str
    site: Site

    @property
    def ends(self) -> frozenset[int]:
        """The nodes at which a thread has ended."""
        return frozenset(i for i, node in enumerate(self.nodes) if not node.next)

    @property
    def rests(self) -> frozenset[int]:
        """The nodes at which a thread may stay for ever without being stuck."""
        return frozenset(i for i, node in enumerate(self.nodes) if not node.next or node.rest)


@dataclass(frozen=True, slots=True)
class Thread:
    """An instance of a template: its number and its CPU."""

    tid: int
    template: str
    kind: ThreadKind
    cpu: int


@dataclass(frozen=True, slots=True)
class Property:
    """An invariant (every state) or a quiescent property (every quiescent state): holds where `cond` is not 0.

    Judged only where every lock in `locks` is free. inside: what the condition says of places of threads, by its text.
    """

    name: str
    kind: Literal["invariant", "quiescent"]
    cond: Expr
    locks: tuple[Read, ...]
    doc: str
    site: Site
    inside: tuple[tuple[str, Expr], ...] = ()


@dataclass(frozen=True, slots=True)
class Measure:
    """A number whose greatest value over all states is asked for. Judged only where every lock in `locks` is free."""

    name: str
    value: Expr
    locks: tuple[Read, ...]
    doc: str
    site: Site


@dataclass(frozen=True, slots=True)
class Packets:
    """All packets: name, flow and index within the flow of packet number 1, 2 …; flow f sends from CPU f."""

    names: tuple[str, ...] = ()
    flows: tuple[int, ...] = ()
    indices: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Program:
    """All of a model in one configuration. `setup` is run once, alone, to make the initial state.

    memory: the memory model, once it is lowered. buffer: how many stores of a CPU may be pending; locations: the
    number of the first element of each variable that a pending store may be for.
    """

    model: str
    variant: str
    variables: dict[str, Variable]
    templates: dict[str, Template]
    threads: tuple[Thread, ...]
    setup: Template
    properties: tuple[Property, ...]
    measures: tuple[Measure, ...]
    packets: Packets
    memory: str = "unlowered"
    buffer: int = 0
    locations: dict[str, int] = field(default_factory=dict)
    reductions: tuple[str, ...] = ()
    builtin: tuple[tuple[str, str], ...] = field(default=())
    """Properties that come with the language: name and what they mean."""

    @property
    def skb_bits(self) -> int:
        """Bits of a packet number, 0 (NULL) included."""
        return max(1, len(self.packets.names).bit_length())

    @property
    def cpus(self) -> int:
        """Number of CPUs that have a thread."""
        return 1 + max((t.cpu for t in self.threads), default=0)

    @property
    def buffers(self) -> frozenset[int]:
        """The threads that commit stores of a CPU; they do not count as context switches."""
        return frozenset(t.tid for t in self.threads if t.kind == "buffer")

    def template_of(self, tid: int) -> Template:
        """Return the code of a thread."""
        return self.templates[self.threads[tid].template]

    def softirqs_on(self, cpu: int) -> tuple[int, ...]:
        """Return the softirq threads of a CPU."""
        return tuple(t.tid for t in self.threads if t.cpu == cpu and t.kind == "softirq")


def element(name: str, size: int | None, index: int) -> Read:
    """Return the element of a variable: `Read` without an index for a scalar."""
    return Read(name, None if size is None else Const(index))
