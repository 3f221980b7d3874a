"""Memory models: what each primitive does, as plain instructions.

Under `sc` (sequential consistency) every store is seen by all at once, so that each primitive acts on memory in one
step and barriers do nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from qmodel.ir.expr import TRUE, Const, Domain, Expr, Local, Lookup, Own, Read, apply, queue_length
from qmodel.ir.graph import Piece, Skip, expand
from qmodel.ir.program import (
    LAST_SENT,
    WHERE,
    Assign,
    Fail,
    Guard,
    Node,
    Place,
    Primitive,
    Program,
    Show,
    Template,
)

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
_SILENT = {
    "smp_mb", "smp_rmb", "smp_wmb", "smp_mb__before_atomic", "smp_mb__after_atomic", "local_bh_disable",
    "local_bh_enable", "rest",
}  # fmt: skip


class UnknownMemoryError(ValueError):
    """A memory model that is not there."""


def lower(program: Program, model: str) -> Program:
    """Return the program with every primitive turned into plain instructions. Raises UnknownMemoryError."""
    if model != "sc":
        raise UnknownMemoryError(f"no memory model `{model}`: there is sc")
    lowering = _Lowering(program)
    templates = {name: lowering.template(t) for name, t in program.templates.items()}
    setup = _Lowering(program, alone=True).template(program.setup)
    return replace(program, templates=templates, setup=setup, memory=model)


def _mask(bit: Expr) -> Expr:
    return apply("<<", Const(1), bit)


def _bit(word: Expr, bit: Expr) -> Expr:
    return apply("&", apply(">>", word, bit), Const(1))


def where_is(packet: Expr) -> Read:
    """Return the ghost variable that says where a packet is."""
    return Read(WHERE, apply("-", packet, Const(1)))


class _Lowering:
    """Turns primitives into instructions. alone: nothing else runs, so that no lock is needed."""

    def __init__(self, program: Program, *, alone: bool = False) -> None:
        self.program = program
        self.alone = alone

    def template(self, template: Template) -> Template:
        return expand(template, self._node)

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
            f"{p.place.var} is touched without {guard}, which ",
            Show(lock, self.program.variables[guard].domain),
            " has",
        )
        return [Fail(apply("!=", lock, OWN_HOLD), "race", message)]

    def _primitive(self, p: Primitive) -> list[Piece]:
        name, place = p.name, p.place
        if name in _SILENT:
            return []
        if name == "wait_until":
            return [Guard(p.args[0])]
        assert isinstance(place, Read)
        if name in _LOADS:
            return self._result(p, place)
        if name in _STORES:
            return [Assign(place, p.args[0])]
        if name in ATOMICS:
            # The result may name what it replaced, so that the old value is kept first.
            new, result = ATOMICS[name](place, p.args)
            return [*self._result(p, result), Assign(place, new)]
        match name:
            case "test_bit":
                return self._result(p, _bit(place, p.args[0]))
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

    def _lock(self, p: Primitive, lock: Read) -> list[Piece]:
        free = apply("==", lock, Const(0))
        mine = apply("==", lock, OWN_HOLD)
        take = Assign(lock, OWN_HOLD)
        domain = self.program.variables[lock.var].domain
        match p.name:
            case "spin_lock":
                message = (f"{lock.var} is taken by the thread that holds it",)
                return [Guard(apply("or", free, mine), lock), Fail(mine, "deadlock", message), take]
            case "spin_trylock":
                assert p.target is not None
                return [Assign(Local(p.target), free), Skip(Local(p.target), 1), take]
            case "spin_is_locked":
                return self._result(p, apply("!=", lock, Const(0)))
            case _:
                other = (f"{lock.var} is released, which ", Show(lock, domain), " has")
                return [Fail(apply("!=", lock, OWN_HOLD), "locking", other), Assign(lock, Const(0))]

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
        match p.name:
            case "__skb_queue_tail" | "__skb_queue_head":
                (packet,) = p.args
                op = "append" if p.name == "__skb_queue_tail" else "push"
                return [
                    *self._in_hands(packet, "queued"),
                    Assign(place, apply(op, place, packet)),
                    Assign(where_is(packet), Const(Place.LISTED)),
                ]
            case "__skb_dequeue":
                assert p.target is not None
                taken = Local(p.target)
                return [
                    Assign(taken, apply("head", place)),
                    Assign(place, apply("rest", place)),
                    Skip(apply("!=", taken, Const(0)), 1),
                    Assign(where_is(taken), OWN_HANDS),
                ]
            case "skb_peek":
                return self._result(p, apply("head", place))
            case "skb_queue_len":
                return self._result(p, apply("len", place))
            case "skb_queue_empty":
                return self._result(p, apply("==", place, Const(0)))
            case "take_list":
                assert p.target is not None
                taken = Local(p.target)
                moved = self._move(taken, capacity, OWN_HANDS)
                return [Assign(taken, place), Assign(place, Const(0)), *moved]
            case "append_list" | "push_list":
                (queue,) = p.args
                joined = apply("append", place, queue) if p.name == "append_list" else apply("append", queue, place)
                return [*self._held(queue), Assign(place, joined), *self._move(queue, self._all, Const(Place.LISTED))]
            case "store_list":
                (queue,) = p.args
                return [
                    *self._held(queue),
                    *self._replaced(place, queue, capacity),
                    Assign(place, queue),
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

    def _replaced(self, place: Read, new: Expr, capacity: int) -> list[Piece]:
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
