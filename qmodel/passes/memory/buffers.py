"""x86 and arm64-like machines: each CPU has a list of stores that nobody else has seen yet.

An entry has a location (the number of a variable's element, 0: none), a kind (what happens to the location) and a
value. Entries stand in program order. A thread `store_buffer` for each CPU commits them one by one:

- `tso`: the oldest first.
- `weak`: any entry that has no older one to the same location, no older one than an smp_wmb before it, and, if it is a
  release, no older one at all.

A variable needs no buffer where it is only ever touched under its lock: whoever takes the lock next sees the unlock,
and before it every store under the lock.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from qmodel.ir.expr import FALSE, TRUE, Const, Domain, Expr, Local, Own, Read, apply, reads_of
from qmodel.ir.graph import GraphBuilder, Skip
from qmodel.ir.program import (
    BOUND,
    RCU_PRESENT,
    Assign,
    Choose,
    Fail,
    Guard,
    Label,
    LocalVariable,
    Primitive,
    Program,
    Show,
    Site,
    Template,
    Thread,
    Variable,
)
from qmodel.passes.memory.machine import Machine, ended

if TYPE_CHECKING:
    from qmodel.ir.graph import Piece

LOCATION, VALUE, KIND, RELEASE, FENCED, FENCE = (
    "__buffer_location", "__buffer_value", "__buffer_kind", "__buffer_release", "__buffer_fenced", "__buffer_fence"
)  # fmt: skip
"""Ghost arrays of the buffers: one element an entry, CPU by CPU. FENCE has one element a CPU: an smp_wmb waits for the
next store. FENCED marks an entry with an smp_wmb between it and the one before."""

STORE, OR, ANDNOT, ADD = range(4)
_KINDS = {
    "set_bit": OR,
    "clear_bit": ANDNOT,
    "atomic_inc": ADD,
    "atomic_dec": ADD,
    "atomic_add": ADD,
    "atomic_sub": ADD,
}

_PLAIN = {"store", "WRITE_ONCE", "smp_store_release", "atomic_set", "store_list", "spin_unlock", "__skb_queue_tail",
          "__skb_queue_head", "__skb_dequeue", "append_list", "push_list", "take_list"}  # fmt: skip
_MARKED_READS = {"READ_ONCE", "data_race", "smp_load_acquire", "atomic_read", "test_bit", "wait_until"}


def pending(program: Program, place: Read) -> Expr:
    """Return whether a store of the running CPU to a place is pending."""
    if place.var not in program.locations:
        return FALSE
    first = Const(program.locations[place.var])
    location = first if place.index is None else apply("+", first, place.index)
    start = apply("*", Own("cpu"), Const(program.buffer))
    entries = (Read(LOCATION, apply("+", start, Const(i))) for i in range(program.buffer))
    return apply("or", *(apply("==", entry, location) for entry in entries))


class Tso(Machine):
    """x86-TSO: a first-in first-out buffer for each CPU, which LOCKed operations and smp_mb drain."""

    fences = frozenset({"smp_mb"})
    buffered_primitives = frozenset(_PLAIN)
    weak = False

    def __init__(self, program: Program, buffer: int) -> None:
        super().__init__(program, buffer)
        self.base = self._locations()
        self._value_domain = Domain("int", 0, 0)

    def _locations(self) -> dict[str, int]:
        """Number the elements of every variable that a pending store may be for, from 1."""
        found: dict[str, int] = {}
        following = 1
        for name, variable in self.program.variables.items():
            if self._needs_buffer(variable):
                found[name] = following
                following += variable.size or 1
        self.exits = following
        """The number of the first location that stands for the end of a section: one a thread."""
        if RCU_PRESENT in self.program.variables and found:
            following += len(self.program.threads)
        self.count = following - 1
        return found

    def _needs_buffer(self, variable: Variable) -> bool:
        if variable.ghost or not variable.domain.width:
            return False
        marked = False
        stored = False
        for template in self.program.templates.values():
            for node in template.nodes:
                p = node.access
                if p is not None and p.name == "wait_until" and variable.name in reads_of(p.args[0]):
                    marked = True
                if p is None or not isinstance(p.place, Read) or p.place.var != variable.name:
                    continue
                marked |= p.marked
                stored |= p.name in self.buffered_primitives
        return stored and (variable.guard is None or marked)

    # --- what the machine adds --------------------------------------------------------------------------------------

    def prepared(self) -> Program:
        """Add the buffers, and make the barriers that wait steps of their own."""
        program = self.program
        if self.count:
            widest = max(program.variables[n].domain.hi - program.variables[n].domain.lo for n in self.base)
            # What is added may be negative, so that it is kept from the range of the variable upwards.
            self._value_domain = Domain("int", 0, max(2 * widest if self.weak else widest, 1))
            entries = program.cpus * self.buffer
            variables = dict(program.variables)
            ghosts = [
                Variable(LOCATION, Domain("int", 0, self.count), entries, (0,) * entries, ghost=True, rest=0),
                Variable(VALUE, self._value_domain, entries, (0,) * entries, ghost=True),
            ]
            if self.weak:
                ghosts += [
                    Variable(KIND, Domain("int", 0, 3), entries, (0,) * entries, ghost=True),
                    Variable(RELEASE, Domain("bool", 0, 1), entries, (0,) * entries, ghost=True),
                    Variable(FENCED, Domain("bool", 0, 1), entries, (0,) * entries, ghost=True),
                    Variable(FENCE, Domain("bool", 0, 1), program.cpus, (0,) * program.cpus, ghost=True),
                ]
            variables |= {v.name: v for v in ghosts}
            program = replace(program, variables=variables, buffer=self.buffer, locations=self.base)
        templates = {name: self._with_fences(t) for name, t in program.templates.items()}
        self.program = replace(program, templates=templates)
        return self.program

    def _with_fences(self, template: Template) -> Template:
        if not self.count:
            return template
        return replace(
            template,
            nodes=tuple(
                replace(n, boundary=True)
                if isinstance(n.instruction, Primitive) and n.instruction.name in self.fences
                else n
                for n in template.nodes
            ),
        )

    def finished(self, program: Program) -> Program:
        """Add the threads that commit pending stores."""
        if not self.count:
            return program
        template = self._committer()
        threads = [
            Thread(len(program.threads) + cpu, template.name, "buffer", cpu)
            for cpu in range(program.cpus)
            if any(t.cpu == cpu for t in program.threads)
        ]
        return replace(
            program,
            templates=program.templates | {template.name: template},
            threads=(*program.threads, *threads),
            builtin=(*program.builtin, (BOUND, "the store buffers are long enough")),
        )

    def _committer(self) -> Template:
        """Return the code that commits one entry, for ever."""
        site = Site("", 0, 0, 0, "store_buffer", "")
        graph = GraphBuilder(site)
        head = graph.emit(Guard(apply("!=", self.at(LOCATION, 0), Const(0))), site, boundary=True)
        if self.weak:
            graph.emit(Choose("entry", self.buffer), site)
            graph.emit(Guard(self._may_commit()), site)
        entry: Expr = Local("entry") if self.weak else Const(0)
        location, value = Local("location"), Local("value")
        graph.emit(Assign(location, self.at(LOCATION, entry)), site)
        graph.emit(Assign(value, self.at(VALUE, entry)), site)
        done = []
        for name, first in self.base.items():
            variable = self.program.variables[name]
            for index in range(variable.size or 1):
                place = Read(name, None if variable.size is None else Const(index))
                yes, no = graph.branch(apply("==", location, Const(first + index)), site)
                graph.ends = yes
                new = self._apply(place, self.at(KIND, entry) if self.weak else Const(STORE), value, variable.domain)
                text = (f"[buffer] {name}" + ("" if variable.size is None else f"[{index}]") + " = ",)
                label = Label("flush", (*text, Show(place, variable.domain)))
                graph.emit(Assign(place, new), site, label=label)
                done += graph.take()
                graph.ends = no
        for thread in self.program.threads if self.count >= self.exits else ():
            yes, no = graph.branch(apply("==", location, Const(self.exits + thread.tid)), site)
            graph.ends = yes
            label = Label("flush", (f"[buffer] CPU{thread.cpu} leaves its RCU section",))
            pieces = ended(self.program, Const(thread.tid))
            for piece in pieces:
                assert isinstance(piece, Assign)
                graph.emit(piece, site, label=label if piece is pieces[-1] else None)
            done += graph.take()
            graph.ends = no
        graph.take()  # a location is one of those above
        graph.ends = done
        self._remove(graph, entry, site)
        graph.link(graph.take(), head)
        nodes = graph.finish(site)
        nodes = tuple(replace(n, rest=n.boundary) for n in nodes)
        domains = {
            "entry": Domain("int", 0, self.buffer - 1),
            "location": Domain("int", 0, self.count),
            "value": self._value_domain,
        }
        return Template(
            "store_buffer",
            "buffer",
            nodes,
            {n: LocalVariable(d, declared=False, site=site) for n, d in domains.items()},
            "What a CPU has stored and nobody else has seen.",
            site,
        )

    def _apply(self, place: Expr, kind: Expr, value: Expr, domain: Domain) -> Expr:
        """Return what a location becomes when an entry is applied to it."""
        stored = apply("+", value, Const(domain.lo))
        if not self.weak or domain.kind in {"lock", "queue", "skb", "bool"}:
            return stored
        added = apply("-", apply("+", place, value), Const(domain.hi - domain.lo))
        new = apply("if", apply("==", kind, Const(ADD)), added, stored)
        if domain.kind == "flags":
            new = apply("if", apply("==", kind, Const(OR)), apply("|", place, value), new)
            new = apply("if", apply("==", kind, Const(ANDNOT)), apply("andnot", place, value), new)
        return new

    def _arrays(self) -> list[str]:
        return [LOCATION, VALUE, *([KIND, RELEASE, FENCED] if self.weak else [])]

    def _remove(self, graph: GraphBuilder, entry: Expr, site: Site) -> None:
        """Close the gap that a committed entry leaves."""
        for position in range(self.buffer):
            for array in self._arrays():
                following: Expr = self.at(array, position + 1) if position + 1 < self.buffer else Const(0)
                if array == FENCED and position == 0:
                    following = Const(0)  # nothing is before it any more
                new = following
                if entry != Const(0):
                    new = apply("if", apply("<=", entry, Const(position)), following, self.at(array, position))
                    if array == FENCED and position == 0:
                        new = Const(0)
                graph.emit(Assign(self.at(array, position), new), site)
        if self.weak:
            empty = apply("==", self.at(LOCATION, 0), Const(0))
            waiting = Read(FENCE, Own("cpu"))
            graph.emit(Assign(waiting, apply("and", waiting, apply("not", empty))), site)

    def _may_commit(self) -> Expr:
        """Return whether the entry that was chosen may be committed now."""
        allowed: list[Expr] = []
        for position in range(self.buffer):
            here = [apply("!=", self.at(LOCATION, position), Const(0))]
            for older in range(position):
                here.append(apply("!=", self.at(LOCATION, older), self.at(LOCATION, position)))
                here.append(apply("not", self.at(FENCED, older + 1)))
            if position:
                here.append(apply("not", self.at(RELEASE, position)))
            allowed.append(apply("and", apply("==", Local("entry"), Const(position)), *here))
        return apply("or", *allowed)

    # --- accesses ---------------------------------------------------------------------------------------------------

    def at(self, array: str, position: int | Expr) -> Read:
        """Return an element of a buffer of the running CPU."""
        offset = Const(position) if isinstance(position, int) else position
        return Read(array, apply("+", apply("*", Own("cpu"), Const(self.buffer)), offset))

    def location(self, place: Read) -> Expr | None:
        """Return the number of a location, or None where it needs no buffer."""
        if place.var not in self.base:
            return None
        first = Const(self.base[place.var])
        return first if place.index is None else apply("+", first, place.index)

    def leave_section(self) -> list[Piece]:
        """End a section: at once where nothing is pending, else as a release, when all before it has been seen."""
        if not self.count:
            return super().leave_section()
        location = apply("+", Const(self.exits), Own("tid"))
        return self._append(location, STORE, Const(0), release=True)

    def load(self, place: Read) -> tuple[list[Piece], Expr]:
        """Read memory, and apply the CPU's own pending entries for the place in their order."""
        location = self.location(place)
        if location is None:
            return [], place
        domain = self.program.variables[place.var].domain
        seen = self.temporary(f"%seen.{place.var}", Domain("int", domain.lo, domain.hi))
        pieces: list[Piece] = [Assign(seen, place)]
        for position in range(self.buffer):
            kind: Expr = self.at(KIND, position) if self.weak else Const(STORE)
            new = self._apply(seen, kind, self.at(VALUE, position), domain)
            pieces.append(Assign(seen, apply("if", apply("==", self.at(LOCATION, position), location), new, seen)))
        return pieces, seen

    def store(self, place: Read, value: Expr, *, release: bool = False) -> list[Piece]:
        """Append an entry."""
        location = self.location(place)
        if location is None:
            return [Assign(place, value)]
        domain = self.program.variables[place.var].domain
        kept = self.temporary(f"%stored.{place.var}", domain)
        encoded = apply("-", kept, Const(domain.lo))
        return [Assign(kept, value), *self._append(location, STORE, encoded, release=release)]

    def _append(self, location: Expr, kind: int, value: Expr, *, release: bool) -> list[Piece]:
        full = apply("!=", self.at(LOCATION, self.buffer - 1), Const(0))
        text = (f"more than {self.buffer} stores of a CPU are pending",)
        pieces: list[Piece] = [Fail(full, BOUND, text)]
        body: list[list[Piece]] = []
        for position in range(self.buffer):
            entry: list[Piece] = [
                Assign(self.at(LOCATION, position), location),
                Assign(self.at(VALUE, position), value),
            ]
            if self.weak:
                fence = Read(FENCE, Own("cpu"))
                entry += [
                    Assign(self.at(KIND, position), Const(kind)),
                    Assign(self.at(RELEASE, position), Const(int(release))),
                    Assign(self.at(FENCED, position), fence if position else Const(0)),
                    Assign(fence, Const(0)),
                ]
            body.append(entry)
        # Each entry goes to the first free place; what stands behind it in this list is then skipped.
        placed = self.temporary("%placed", Domain("bool", 0, 1))
        pieces.append(Assign(placed, Const(0)))
        for position, entry in enumerate(body):
            free = apply("==", self.at(LOCATION, position), Const(0))
            here = [*entry, Assign(placed, TRUE)]
            pieces += [Skip(apply("and", apply("not", placed), free), len(here)), *here]
        return pieces

    def drain(self, place: Read | None = None) -> list[Piece]:
        """Wait until nothing of the CPU is pending, or nothing for one place."""
        if not self.count:
            return []
        if place is None:
            return [Guard(apply("==", self.at(LOCATION, 0), Const(0)))]
        location = self.location(place)
        if location is None:
            return []
        others = (apply("!=", self.at(LOCATION, i), location) for i in range(self.buffer))
        return [Guard(apply("and", *others))]

    def modify(self, place: Read, name: str, argument: Expr, new: Expr) -> list[Piece]:
        """Drain and act on memory: on x86 every atomic is LOCKed."""
        del name, argument
        return [*self.drain(), Assign(place, new)]

    def fence(self, name: str) -> list[Piece]:
        """Drain where the barrier is a real one here."""
        return self.drain() if name in self.fences else []


class Weak(Tso):
    """An arm64-like machine: stores become visible in any order unless something orders them.

    Loads are taken in program order, and no load sees a store that comes later: load-load and load-store reordering
    are not modelled.
    """

    fences = frozenset({"smp_mb", "smp_mb__before_atomic", "smp_mb__after_atomic"})
    buffered_primitives = frozenset(_PLAIN | set(_KINDS))
    weak = True
    locked_failure_drains = False
    lock_drains = False

    def modify(self, place: Read, name: str, argument: Expr, new: Expr) -> list[Piece]:
        """Append an entry: the atomic is one, and unordered."""
        location = self.location(place)
        if location is None:
            return [Assign(place, new)]
        domain = self.program.variables[place.var].domain
        value = argument
        if _KINDS[name] == ADD:
            value = apply("+", argument, Const(domain.hi - domain.lo))
        return self._append(location, _KINDS[name], value, release=False)

    def fence(self, name: str) -> list[Piece]:
        """Drain at a full barrier; remember an smp_wmb for the next store."""
        if name == "smp_wmb" and self.count:
            pending = apply("!=", self.at(LOCATION, 0), Const(0))
            return [Assign(Read(FENCE, Own("cpu")), pending)]
        return super().fence(name)
