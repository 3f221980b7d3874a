"""What each primitive reads, writes and demands. When others see it is the business of the machine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from qmodel.ir.expr import TRUE, Const, Domain, Expr, Local, Lookup, Own, Read, apply, queue_length, substitute, walk
from qmodel.ir.graph import Piece, Skip, expand
from qmodel.ir.program import (
    LAST_SENT,
    RCU_AWAITED,
    RCU_DEPTH,
    RCU_PRESENT,
    WHERE,
    Assign,
    Fail,
    Guard,
    LocalVariable,
    Node,
    Place,
    Primitive,
    Program,
    Show,
    Template,
)

if TYPE_CHECKING:
    from qmodel.passes.memory.machine import Machine

OWN_HOLD: Expr = apply("+", Own("tid"), Const(1))
"""The value of a lock that the running thread holds."""
OWN_HANDS: Expr = apply("+", Own("tid"), Const(Place.HELD))
"""The place of a packet that is in the running thread's hands."""

ATOMICS: dict[str, Callable[[Expr, Sequence[Expr]], tuple[Expr, Expr]]] = {
    "xchg": lambda old, a: (a[0], old),
    "cmpxchg": lambda old, a: (apply("if", apply("==", old, a[0]), a[1], old), old),
    "try_cmpxchg": lambda old, a: (apply("if", apply("==", old, a[0]), a[1], old), old),
    "atomic_inc": lambda old, _: (apply("+", old, Const(1)), old),
    "atomic_dec": lambda old, _: (apply("-", old, Const(1)), old),
    "atomic_add": lambda old, a: (apply("+", old, a[0]), old),
    "atomic_sub": lambda old, a: (apply("-", old, a[0]), old),
    "atomic_inc_return": lambda old, _: (apply("+", old, Const(1)), apply("+", old, Const(1))),
    "atomic_dec_return": lambda old, _: (apply("-", old, Const(1)), apply("-", old, Const(1))),
    "atomic_add_return": lambda old, a: (apply("+", old, a[0]), apply("+", old, a[0])),
    "atomic_fetch_add": lambda old, a: (apply("+", old, a[0]), old),
    "atomic_dec_and_test": lambda old, _: (apply("-", old, Const(1)), apply("==", old, Const(1))),
    "set_bit": lambda old, a: (apply("|", old, _mask(a[0])), old),
    "clear_bit": lambda old, a: (apply("andnot", old, _mask(a[0])), old),
    "test_and_set_bit": lambda old, a: (apply("|", old, _mask(a[0])), _bit(old, a[0])),
    "test_and_clear_bit": lambda old, a: (apply("andnot", old, _mask(a[0])), _bit(old, a[0])),
}
"""Read-modify-write primitives: from the old value and the arguments to the new value and the result."""

_LOADS = {"load", "READ_ONCE", "data_race", "smp_load_acquire", "atomic_read"}
_STORES = {"store", "WRITE_ONCE", "smp_store_release", "atomic_set"}
VOID_ATOMICS: dict[str, Callable[[Sequence[Expr]], Expr]] = {
    "atomic_inc": lambda _: Const(1),
    "atomic_dec": lambda _: Const(-1),
    "atomic_add": lambda a: a[0],
    "atomic_sub": lambda a: apply("-", Const(0), a[0]),
    "set_bit": lambda a: _mask(a[0]),
    "clear_bit": lambda a: _mask(a[0]),
}
"""Atomics that return nothing, with what they add, set or clear."""

_BARRIERS = {"smp_mb", "smp_rmb", "smp_wmb", "smp_mb__before_atomic", "smp_mb__after_atomic"}
_SILENT = {"local_bh_disable", "local_bh_enable", "rest"}  # fmt: skip


def _mask(bit: Expr) -> Expr:
    return apply("<<", Const(1), bit)


def _bit(word: Expr, bit: Expr) -> Expr:
    return apply("&", apply(">>", word, bit), Const(1))


def where_is(packet: Expr) -> Read:
    """Return the ghost variable that says where a packet is."""
    return Read(WHERE, apply("-", packet, Const(1)))


class Meaning:
    """Turns primitives into instructions. alone: nothing else runs, so that no lock is needed."""

    def __init__(self, program: Program, machine: Machine, *, alone: bool = False) -> None:
        self.program, self.machine, self.alone = program, machine, alone

    def template(self, template: Template) -> Template:
        """Return the template with every primitive turned into plain instructions."""
        expanded = expand(template, self._node)
        added = {
            name: LocalVariable(domain, declared=name.startswith("%stored"), site=template.site)
            for name, domain in self.machine.locals.items()
        }
        return replace(expanded, locals=expanded.locals | added)

    def _node(self, _number: int, node: Node) -> list[Piece] | None:
        if not isinstance(node.instruction, Primitive):
            return None
        pieces = self._primitive(node.instruction)
        return [*self._race(node.instruction, pieces), *pieces]

    def _race(self, p: Primitive, pieces: list[Piece]) -> list[Piece]:
        """A guarded variable is touched under its lock, unless the access is marked as meant."""
        if self.alone or p.marked or not pieces or not isinstance(p.place, Read):
            return []
        guard = self.program.variables[p.place.var].guard
        if guard is None:
            return []
        lock = Read(guard, p.place.index if self.program.variables[guard].size is not None else None)
        message = (
            f"{p.place.var} is touched without {guard} (now: ",
            Show(lock, self.program.variables[guard].domain),
            ")",
        )
        return [Fail(apply("!=", lock, OWN_HOLD), "race", message)]

    def _primitive(self, p: Primitive) -> list[Piece]:
        name, place, machine = p.name, p.place, self.machine
        if name in _BARRIERS:
            return machine.fence(name)
        if name in _SILENT:
            return []
        if name == "wait_until":
            return self._wait(p.args[0])
        if name in {"rcu_read_lock", "rcu_read_unlock", "synchronize_rcu", "synchronize_rcu_end"}:
            return self._rcu(name)
        assert isinstance(place, Read)
        if name in _LOADS:
            return self._loaded(p, place)
        if name in _STORES:
            return self._store(place, p.args[0], release=name == "smp_store_release")
        if name in ATOMICS:
            return self._atomic(p, place)
        match name:
            case "test_bit":
                pieces, word = machine.load(place)
                return [*pieces, *self._result(p, _bit(word, p.args[0]))]
            case "spin_lock" | "spin_trylock" | "spin_unlock" | "spin_is_locked":
                return self._lock(p, place)
            case "softirq_entry":
                return [Guard(place), Assign(place, Const(0))]
            case "raise_softirq":
                return [Assign(place, TRUE)]
            case "transmit" | "kfree_skb":
                return self._consume(p.args[0], wire=name == "transmit")
        return self._list(p, place)

    def _result(self, p: Primitive, value: Expr) -> list[Piece]:
        return [] if p.target is None else [Assign(Local(p.target), value)]

    def _loaded(self, p: Primitive, place: Read) -> list[Piece]:
        pieces, value = self.machine.load(place)
        return [*pieces, *self._result(p, value)]

    def _store(self, place: Read, value: Expr, *, release: bool = False) -> list[Piece]:
        if self.program.variables[place.var].domain.kind != "skb":
            return self.machine.store(place, value, release=release)
        pieces, old = self.machine.load(place)
        return [*pieces, *self._exchanged(place, old, value), *self.machine.store(place, value, release=release)]

    def _exchanged(self, place: Read, old: Expr, new: Expr) -> list[Piece]:
        """A pointer to a packet changes: the new packet leaves the thread's hands, the old one comes into them."""
        moves = apply("!=", old, new)
        dropped = self.machine.temporary(f"%dropped.{place.var}", self.program.variables[place.var].domain)
        given = [self._in_hands(new, "stored")[1], Assign(where_is(new), Const(Place.LISTED))]
        listed = apply("==", where_is(old), Const(Place.LISTED))
        back: list[Piece] = [Skip(listed, 2), Assign(where_is(old), OWN_HANDS), Assign(dropped, old)]
        return [
            Skip(apply("and", moves, apply("!=", new, Const(0))), len(given)),
            *given,
            Skip(apply("and", moves, apply("!=", old, Const(0))), len(back)),
            *back,
        ]

    def _rcu(self, name: str) -> list[Piece]:
        """Count sections; a grace period waits for as many ends as there were sections when it began."""
        me, threads = Own("tid"), len(self.program.threads)
        present = Read(RCU_PRESENT, me)
        depth = Read(RCU_DEPTH, me)
        outermost = apply("==", depth, Const(0))
        if name == "rcu_read_lock":
            begun = Assign(present, apply("+", present, Const(1)))
            return [Skip(outermost, 1), begun, Assign(depth, apply("+", depth, Const(1)))]
        if name == "rcu_read_unlock":
            left = self.machine.leave_section()
            return [Assign(depth, apply("-", depth, Const(1))), Skip(outermost, len(left)), *left]
        awaited = [
            (Read(RCU_AWAITED, apply("+", apply("*", me, Const(threads)), Const(t))), Read(RCU_PRESENT, Const(t)))
            for t in range(threads)
        ]
        if name == "synchronize_rcu":
            return [*self.machine.drain(), *(Assign(mine, now) for mine, now in awaited)]
        return [*self.machine.drain(), Guard(apply("and", *(apply("==", mine, Const(0)) for mine, _ in awaited)))]

    def _wait(self, cond: Expr) -> list[Piece]:
        """Wait for a condition, as the thread sees what it reads."""
        pieces: list[Piece] = []
        seen: dict[Expr, Expr] = {}
        for part in walk(cond):
            if isinstance(part, Read) and part not in seen:
                more, seen[part] = self.machine.load(part)
                pieces += more
        return [*pieces, Guard(substitute(cond, seen.get))]

    def _atomic(self, p: Primitive, place: Read) -> list[Piece]:
        machine = self.machine
        new, result = ATOMICS[p.name](place, p.args)
        if p.name in VOID_ATOMICS:
            return machine.modify(place, p.name, VOID_ATOMICS[p.name](p.args), new)
        if p.name in {"cmpxchg", "try_cmpxchg"} and not machine.locked_failure_drains:
            pieces, old = machine.load(place)
            swapped = [*machine.drain(), Assign(place, p.args[1])]
            return [*pieces, *self._result(p, old), Skip(apply("==", old, p.args[0]), len(swapped)), *swapped]
        swap: list[Piece] = [Assign(place, new)]
        if self.program.variables[place.var].domain.kind == "skb":
            becomes = machine.temporary(f"%new.{place.var}", Domain("int", 0, self._all))
            swap = [Assign(becomes, new), *self._exchanged(place, place, becomes), Assign(place, becomes)]
        # The result may name what it replaced, so that it is taken first.
        return [*machine.drain(), *self._result(p, result), *swap]

    def _lock(self, p: Primitive, lock: Read) -> list[Piece]:
        machine = self.machine
        free = apply("==", lock, Const(0))
        mine = apply("==", lock, OWN_HOLD)
        take = Assign(lock, OWN_HOLD)
        drained = machine.drain(None if machine.lock_drains else lock)
        domain = self.program.variables[lock.var].domain
        match p.name:
            case "spin_lock":
                message = (f"{lock.var} is taken by the thread that holds it",)
                return [*drained, Guard(apply("or", free, mine), lock), Fail(mine, "deadlock", message), take]
            case "spin_trylock":
                assert p.target is not None
                pieces, seen = machine.load(lock)
                taken = [*drained, take]
                got = Local(p.target)
                return [*pieces, Assign(got, apply("==", seen, Const(0))), Skip(got, len(taken)), *taken]
            case "spin_is_locked":
                pieces, seen = machine.load(lock)
                return [*pieces, *self._result(p, apply("!=", seen, Const(0)))]
            case _:
                other = (f"{lock.var} is released by one who does not hold it (now: ", Show(lock, domain), ")")
                failed = Fail(apply("!=", lock, OWN_HOLD), "locking", other)
                return [failed, *machine.store(lock, Const(0), release=True)]

    # --- packets ----------------------------------------------------------------------------------------------------

    def _show(self, packet: Expr) -> Show:
        return Show(packet, Domain("skb", 0, len(self.program.packets.names)))

    def _in_hands(self, packet: Expr, doing: str) -> list[Piece]:
        """A packet that is queued, sent or freed must be in the thread's own hands."""
        domain = self.program.variables[WHERE].domain
        where = where_is(packet)
        shown = self._show(packet)
        return [
            Fail(apply("==", packet, Const(0)), "null", (f"a NULL packet is {doing}",)),
            Fail(
                apply("!=", where, OWN_HANDS),
                "once",
                (shown, f" is {doing}, and it is ", Show(where, domain), " already"),
            ),
        ]

    def _consume(self, packet: Expr, *, wire: bool) -> list[Piece]:
        checks = self._in_hands(packet, "sent" if wire else "freed")
        if not wire:
            return [*checks, Assign(where_is(packet), Const(Place.FREED))]
        flows, indices = self.program.packets.flows, self.program.packets.indices
        flow, index = Lookup((0, *flows), packet), Lookup((0, *indices), packet)
        last = Read(LAST_SENT, flow)
        message = (self._show(packet), " reaches the wire after a later packet of its flow")
        return [
            *checks,
            Fail(apply(">", last, index), "order", message, fatal=False),
            Assign(where_is(packet), Const(Place.WIRE)),
            Assign(last, apply("max", last, apply("+", index, Const(1)))),
        ]

    def _items(self, queue: Expr, capacity: int) -> list[Expr]:
        return [apply("item", queue, Const(i)) for i in range(capacity)]

    def _list(self, p: Primitive, place: Read) -> list[Piece]:
        capacity = queue_length(self.program.skb_bits, self.program.variables[place.var].domain.hi)
        pieces, now = self.machine.load(place)
        match p.name:
            case "__skb_queue_tail" | "__skb_queue_head":
                (packet,) = p.args
                op = "append" if p.name == "__skb_queue_tail" else "push"
                return [
                    *self._in_hands(packet, "queued"),
                    *pieces,
                    *self._store(place, apply(op, now, packet)),
                    Assign(where_is(packet), Const(Place.LISTED)),
                ]
            case "__skb_dequeue":
                assert p.target is not None
                taken = Local(p.target)
                return [
                    *pieces,
                    Assign(taken, apply("head", now)),
                    *self._store(place, apply("rest", now)),
                    Skip(apply("!=", taken, Const(0)), 1),
                    Assign(where_is(taken), OWN_HANDS),
                ]
            case "llist_first":
                return [*pieces, *self._result(p, apply("head", now))]
            case "llist_cmpxchg":
                assert p.target is not None
                old, packet = p.args
                pushed = [
                    *self._in_hands(packet, "queued"),
                    Assign(place, apply("push", place, packet)),
                    Assign(where_is(packet), Const(Place.LISTED)),
                ]
                found = Local(p.target)
                head = [*self.machine.drain(), Assign(found, apply("head", place))]
                return [*head, Skip(apply("==", found, old), len(pushed)), *pushed]
            case "llist_add":
                (packet,) = p.args
                return [
                    *self._in_hands(packet, "queued"),
                    *self.machine.drain(),
                    *self._result(p, apply("==", place, Const(0))),
                    Assign(place, apply("push", place, packet)),
                    Assign(where_is(packet), Const(Place.LISTED)),
                ]
            case "llist_del_all":
                assert p.target is not None
                taken = Local(p.target)
                moved = self._move(taken, capacity, OWN_HANDS)
                return [*self.machine.drain(), Assign(taken, place), Assign(place, Const(0)), *moved]
            case "skb_peek":
                return [*pieces, *self._result(p, apply("head", now))]
            case "skb_queue_len":
                return [*pieces, *self._result(p, apply("len", now))]
            case "skb_queue_empty":
                return [*pieces, *self._result(p, apply("==", now, Const(0)))]
            case "take_list":
                assert p.target is not None
                taken = Local(p.target)
                moved = self._move(taken, capacity, OWN_HANDS)
                return [*pieces, Assign(taken, now), *self._store(place, Const(0)), *moved]
            case "append_list" | "push_list":
                (queue,) = p.args
                joined = apply("append", now, queue) if p.name == "append_list" else apply("append", queue, now)
                moved = self._move(queue, self._all, Const(Place.LISTED))
                return [*self._held(queue), *pieces, *self._store(place, joined), *moved]
            case "store_list":
                (queue,) = p.args
                return [
                    *self._held(queue),
                    *pieces,
                    *self._replaced(now, queue, capacity),
                    *self._store(place, queue),
                    *self._move(queue, self._all, Const(Place.LISTED)),
                ]
        raise AssertionError(f"no meaning for {p.name}")

    @property
    def _all(self) -> int:
        return len(self.program.packets.names)

    def _held(self, queue: Expr) -> list[Piece]:
        """Every packet of a list that is put somewhere must be in the thread's own hands."""
        pieces: list[Piece] = []
        for item in self._items(queue, self._all):
            pieces += [Skip(apply("!=", item, Const(0)), 1), self._in_hands(item, "queued")[1]]
        return pieces

    def _move(self, queue: Expr, capacity: int, to: Expr) -> list[Piece]:
        pieces: list[Piece] = []
        for item in self._items(queue, capacity):
            pieces += [Skip(apply("!=", item, Const(0)), 1), Assign(where_is(item), to)]
        return pieces

    def _replaced(self, place: Expr, new: Expr, capacity: int) -> list[Piece]:
        """What a list held before it is stored to, and does not hold now, is lost."""
        pieces: list[Piece] = []
        for item in self._items(place, capacity):
            lost = apply("and", apply("!=", item, Const(0)), apply("not", apply("in", item, new)))
            pieces += [Skip(lost, 2), *leak(item, self._show(item))]
        return pieces


def leak(packet: Expr, shown: Show) -> list[Piece]:
    """Return what happens where the last hold on a packet is dropped: it is reported, and then nowhere."""
    message = (shown, " is lost: nobody holds it, and no list does")
    return [Fail(TRUE, "no-leak", message, fatal=False), Assign(where_is(packet), Const(Place.NOWHERE))]
