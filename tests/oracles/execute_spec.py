"""An oracle that executes a specification: its functions really run, as Python functions.

It shares no code with qmodel and knows nothing of graphs, of inlining, or of bits that are packed: `if`, `while`,
calls and operators mean what Python says they mean. Clear, not fast: it is for small specifications.

How a thread is run
    A thread is a function, and all it ever learns of the world are the answers that its accesses get. So a thread is
    known by its answers so far (a `Moment`): to find its next access the function is run from its start, told these
    answers in order, and stopped at the first access for which there is none. Nothing is shared between two such runs;
    memory is changed by the explorer alone, which answers the access.

What a step is
    One access to shared memory, and what the thread does by itself up to just before its next one. What it does before
    its first access is done when everything begins. A choose() belongs to the step before it; where there is none it
    is a step of its own. The accesses within `with atomic():` are one step. spin_lock() and wait_until() wait. A step
    in which the language is violated (`check`, `domain`, `race`, `locking`, `null`, `once`, a lock taken twice) leads
    nowhere; `order` and `no-leak` end nothing.

What is changed before a function runs
    Python cannot tell a function which variable its argument names, nor let it set a local of its caller. So the text
    is changed in these places, and nowhere else: what an access works on becomes a reference (`WRITE_ONCE(m.x, 1)`),
    try_cmpxchg() is followed by the assignment of its local, the condition of wait_until() is made a function, a
    local that is declared as u8, s8 or u16 is checked where it is assigned, and names that begin with two underscores,
    which Python changes within a class, get another name. An assignment is evaluated from left to right, as qmodel has
    decided: in `m.a[m.i] = m.j` Python would read m.j first.

What it does not know: barriers and memory models (all is sequentially consistent), loops without an access that never
end, the exact step at which a packet is dropped (`no-leak` is seen at the end), whether a choose() that a loop comes
back to is a step of its own.
"""

from __future__ import annotations

import ast
import builtins
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from types import FunctionType, ModuleType, TracebackType
from typing import Any, Literal, Self, overload

Value = int | str | tuple["Packet", ...]
"""What a variable holds: a number, who holds a lock, the packets of a list."""
Answer = Any
"""What an access is answered: a number, a packet, several packets, None."""
Frozen = tuple[tuple[Value, ...], ...]
"""Shared variables in the order of their declaration, each with its elements."""

FREE = "free"
WIRE, FREED, LISTED, NOWHERE = "wire", "freed", "listed", "nowhere"


class Failed(Exception):  # noqa: N818  a verdict, not a fault of this program
    """A violation that ends its path."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


class TooLargeError(Exception):
    """There are more states than was asked for."""


class _Blocked(Exception):  # noqa: N818
    """An access that must wait; its argument, if any, is the label of the thread that it waits for."""


class _Pause(BaseException):
    """Stops the run of a thread at an access that has no answer yet."""


# --- memory -----------------------------------------------------------------------------------------------------------


class Memory:
    """All of memory, while somebody works on it. hidden: budgets and raised softirqs, by name."""

    def __init__(
        self, shared: Mapping[str, Sequence[Value]], hidden: Mapping[str, int], places: Mapping[Packet, str]
    ) -> None:
        self.shared = {name: list(values) for name, values in shared.items()}
        self.hidden = dict(hidden)
        self.places = dict(places)
        self.events: list[str] = []

    def copy(self) -> Memory:
        """Return memory to work on, without the events."""
        return Memory(self.shared, self.hidden, self.places)

    def key(self) -> tuple[Frozen, tuple[tuple[str, int], ...], tuple[tuple[Packet, str], ...]]:
        """Return it as a value that can be compared."""
        shared = tuple(tuple(v) for v in self.shared.values())
        return shared, tuple(sorted(self.hidden.items())), tuple(sorted(self.places.items()))


@dataclass(frozen=True)
class Actor:
    """A thread: its function, kind and CPU. calls: how often its function may run (-1: as often as it is raised).

    `nobody` is a property that looks, or a scenario that is set up: neither needs a lock.
    """

    name: str
    kind: Literal["task", "environment", "softirq", "nobody"]
    cpu: int
    calls: int = 1

    @property
    def label(self) -> str:
        """What stands in a lock that it holds."""
        return f"{self.name}@{self.cpu}"


Operation = Callable[[Memory, Actor], Answer]
"""What an access does to memory. Raises Failed, _Blocked."""


@dataclass(frozen=True)
class Request:
    """What a thread asks for. joined: it belongs to the step before. bh_off: bottom halves are off before it."""

    what: Literal["access", "choose", "end", "fail", "rest"]
    operation: Operation | None = None
    joined: bool = False
    bh_off: bool = False
    name: str = ""


@dataclass(eq=False)
class Moment:
    """A point of a thread's run: the answers so far in this call of its function, and what it asks for now."""

    actor: Actor
    calls: int
    answers: tuple[Answer, ...]
    request: Request
    next: dict[Answer, Moment] = field(default_factory=dict)


class _Now:
    """What is executed at this moment: a run of a thread, or work on memory that needs no steps."""

    def __init__(self) -> None:
        self.actor = Actor("nobody", "nobody", 0)
        self.memory: Memory | None = None
        self.answers: Sequence[Answer] = ()
        self.position = 0
        self.request = Request("end")
        self.bh = 0
        self.atomic = 0
        self.begun = False
        self.found: Answer = None
        self.parked: dict[int, int] = {}
        self.flows: tuple[int, ...] = ()

    def start(self, actor: Actor, answers: Sequence[Answer]) -> None:
        """Begin a run."""
        self.actor, self.answers, self.position, self.memory = actor, answers, 0, None
        self.bh = int(actor.kind == "softirq")
        self.atomic, self.begun = 0, False

    def access(self, operation: Operation, *, joined: bool = False) -> Answer:
        """Answer an access, or stop there."""
        if self.memory is not None:
            return operation(self.memory, self.actor)
        joined = self._join(joined=joined)
        return self._ask(Request("access", operation, joined, self.bh > 0))

    def choose(self, budget: str) -> Answer:
        """Answer a choice, or stop there."""
        return self._ask(Request("choose", name=budget, bh_off=self.bh > 0))

    def _join(self, *, joined: bool) -> bool:
        if joined or not self.atomic:
            return joined
        begun, self.begun = self.begun, True
        return begun

    def _ask(self, request: Request) -> Answer:
        if self.position < len(self.answers):
            self.position += 1
            return self.answers[self.position - 1]
        self.request = request
        raise _Pause


NOW = _Now()


# --- what stands in the body of a model -------------------------------------------------------------------------------


class Variable:
    """A shared variable, or what the elements of an array are like."""

    def __init__(
        self,
        init: Value,
        low: int = 0,
        high: int = 0,
        *,
        guarded_by: Variable | Array | None = None,
        rest: int | None = None,
    ) -> None:
        self.init, self.low, self.high, self.guard, self.rest = init, low, high, guarded_by, rest
        self.name = ""

    def __set_name__(self, _owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, model: None, _owner: type) -> Variable: ...
    @overload
    def __get__(self, model: object, _owner: type) -> Answer: ...
    def __get__(self, model: object, _owner: type) -> Answer:
        return self if model is None else self.get(Cell(self.name, 0, self))

    def __set__(self, _model: object, value: Answer) -> None:
        self.set(Cell(self.name, 0, self), value)

    def get(self, cell: Cell) -> Answer:
        """Do what reading does."""
        return NOW.access(_load(cell))

    def set(self, cell: Cell, value: Answer) -> None:
        """Do what assigning does."""
        NOW.access(_store(cell, int(value)))

    def shown(self, value: Value) -> Answer:
        """Return a value as a function sees it."""
        return value


@dataclass(frozen=True)
class Cell:
    """A variable, or one element of an array."""

    name: str
    index: int
    like: Variable

    def read(self, memory: Memory) -> Answer:
        """Return what it holds."""
        return memory.shared[self.name][self.index]

    def write(self, memory: Memory, value: Value) -> None:
        """Let it hold something. Raises Failed."""
        if isinstance(value, int) and not self.like.low <= value <= self.like.high:
            raise Failed("domain")
        if isinstance(value, tuple) and len(value) > self.like.high:
            raise Failed("domain")
        memory.shared[self.name][self.index] = value

    def guarded(self, memory: Memory, actor: Actor) -> None:
        """Raise Failed where a lock is needed that the thread does not hold."""
        guard = self.like.guard
        if guard is None or actor.kind == "nobody":
            return
        index = self.index if isinstance(guard, Array) else 0
        if memory.shared[guard.name][index] != actor.label:
            raise Failed("race")


class Bool(Variable):
    """A truth value."""

    def __init__(self, init: bool = False, **more: Any) -> None:  # noqa: ANN401, FBT001, FBT002
        super().__init__(int(init), 0, 1, guarded_by=more.get("guarded_by"), rest=more.get("rest"))

    def shown(self, value: Value) -> Answer:
        """Return it as True or False."""
        return bool(value)


class Int(Variable):
    """A number."""

    def __init__(self, init: int = 0, *, low: int = 0, high: int, **more: Any) -> None:  # noqa: ANN401
        super().__init__(int(init), low, high, guarded_by=more.get("guarded_by"), rest=more.get("rest"))


class Flags(Variable):
    """A word of bits."""

    def __init__(self, bits: type[IntEnum], init: int = 0, **more: Any) -> None:  # noqa: ANN401
        high = (1 << len(bits)) - 1
        super().__init__(init, 0, high, guarded_by=more.get("guarded_by"), rest=more.get("rest"))


class SpinLock(Variable):
    """A lock. Reading it is no access: a function gets the lock itself."""

    def __init__(self, **_more: object) -> None:
        super().__init__(FREE)

    def get(self, cell: Cell) -> Cell:
        """Return the lock."""
        return cell


class SkbList(Variable):
    """A list of packets. Reading it is no access: a function gets the list itself."""

    def __init__(self, *, limit: int | None = None, **more: Any) -> None:  # noqa: ANN401
        high = sys.maxsize if limit is None else limit
        super().__init__((), 0, high, guarded_by=more.get("guarded_by"), rest=more.get("rest"))

    def get(self, cell: Cell) -> SharedQueue:
        """Return the list."""
        return SharedQueue(cell)

    def set(self, cell: Cell, value: SkbQueue) -> None:
        """Replace all of it; packets that it held and does not hold now are nowhere."""

        def replace(memory: Memory, actor: Actor) -> None:
            cell.guarded(memory, actor)
            for packet in value.packets:
                _in_hands(memory, actor, packet)
            for packet in cell.read(memory):
                if packet not in value.packets:
                    memory.places[packet] = NOWHERE
                    memory.events.append("no-leak")
            cell.write(memory, tuple(value.packets))
            memory.places.update(dict.fromkeys(value.packets, LISTED))

        NOW.access(replace)


class Array:
    """Several variables of one kind. size None: one for each CPU that has a thread."""

    def __init__(
        self, element: Variable, *, size: int | None = None, guarded_by: Variable | Array | None = None
    ) -> None:
        self.element, self.size, self.name = element, size, ""
        if guarded_by is not None:
            element.guard = guarded_by

    def __set_name__(self, _owner: type, name: str) -> None:
        self.name = name

    def __get__(self, model: object, _owner: type) -> Answer:
        return self if model is None else Elements(self)


class PerCpu(Array):
    """A variable for each CPU."""


class Elements:
    """An array, as a function sees it."""

    def __init__(self, array: Array) -> None:
        self._array = array

    def cell(self, index: int) -> Cell:
        """Return an element, without an access. Raises Failed."""
        if not 0 <= index < len(self):
            raise Failed("domain")
        return Cell(self._array.name, int(index), self._array.element)

    def __getitem__(self, index: int) -> Answer:
        return self._array.element.get(self.cell(index))

    def __setitem__(self, index: int, value: Answer) -> None:
        self._array.element.set(self.cell(index), value)

    def __len__(self) -> int:
        assert self._array.size is not None
        return self._array.size


class Parameter:
    """A parameter, until the name that it is assigned to is known."""

    def __init__(self, default: Answer, *, each: int | None = None, budget: bool = False) -> None:
        self.default, self.each, self.budget = default, each, budget

    def settle(self, name: str, given: Mapping[str, Answer]) -> Answer:
        """Return its value."""
        value = given.get(name, self.default)
        if self.each is not None:
            numbers = value if isinstance(value, tuple) else (value,)
            return Flows((*numbers, *(numbers[-1:] * (self.each - len(numbers)))))
        return Budget(value, name) if self.budget else value


class Budget(int):
    """The value of a budget, which knows its name."""

    name: str

    def __new__(cls, value: int, name: str) -> Self:
        """Make one."""
        self = super().__new__(cls, value)
        self.name = name
        return self


class Flows(tuple[int, ...]):
    """How many packets each flow sends."""

    __slots__ = ()


class _Body(dict[str, object]):
    """The names of a class body, in which a parameter is its value at once."""

    def __init__(self, given: Mapping[str, Answer]) -> None:
        super().__init__()
        self.given = given

    def __setitem__(self, name: str, value: object) -> None:
        super().__setitem__(name, value.settle(name, self.given) if isinstance(value, Parameter) else value)


def model_class(given: Mapping[str, Answer]) -> type:
    """Return the class `Model`, for parameters with these values."""

    class Declaring(type):
        @classmethod
        def __prepare__(cls, _name: str, _bases: tuple[type, ...], /, **_more: object) -> _Body:
            return _Body(given)

    class Model(metaclass=Declaring):
        def flow(self, cpu: int) -> Iterator[Packet]:
            if not 0 <= cpu < len(NOW.flows):
                raise Failed("domain")
            for index in range(NOW.flows[cpu]):
                yield _born(Packet(cpu, NOW.parked.get(cpu, 0) + index))

        def parked(self, flow: int) -> Packet:
            index = NOW.parked.get(flow, 0)
            NOW.parked[flow] = index + 1
            return _born(Packet(flow, index))

    return Model


def _marker(kind: str) -> Callable[..., Any]:
    """Return a decorator that notes down what it was given."""

    def decorate(function: FunctionType | None = None, *args: object, **arguments: object) -> Any:  # noqa: ANN401
        if isinstance(function, FunctionType):
            function.__dict__.update(kind=kind, arguments=arguments, title=args[0] if args else "")
            return function
        title = function
        return lambda marked: decorate(marked, title, **arguments)

    return decorate


# --- packets ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, order=True)
class Packet:
    """A packet: where it comes from, and which one of its flow it is."""

    number: int
    place: int

    @property
    def flow(self) -> int:
        """Look at the flow."""
        _used(self)
        return self.number

    @property
    def index(self) -> int:
        """Look at its place within the flow."""
        _used(self)
        return self.place

    def __str__(self) -> str:
        return f"{chr(ord('a') + self.number)}{self.place}"


class SkbQueue:
    """A list of the thread's own."""

    def __init__(self) -> None:
        self.packets: list[Packet] = []

    def __len__(self) -> int:
        return len(self.packets)


@dataclass(frozen=True)
class SharedQueue:
    """A shared list; asking how long it is is an access."""

    cell: Cell

    def __len__(self) -> int:
        def count(memory: Memory, actor: Actor) -> int:
            self.cell.guarded(memory, actor)
            return len(self.cell.read(memory))

        return int(NOW.access(count))


def _held(actor: Actor) -> str:
    return f"held by {actor.label}"


def _born(packet: Packet) -> Packet:
    def hand_over(memory: Memory, actor: Actor) -> None:
        if memory.places.get(packet, NOWHERE) != NOWHERE:
            raise Failed("once")
        memory.places[packet] = _held(actor)

    NOW.access(hand_over, joined=True)
    return packet


def _used(packet: Packet) -> None:
    def look(memory: Memory, _actor: Actor) -> None:
        if memory.places[packet] in {WIRE, FREED}:
            raise Failed("once")

    NOW.access(look, joined=True)


def _in_hands(memory: Memory, actor: Actor, packet: Packet | None) -> Packet:
    if packet is None:
        raise Failed("null")
    if memory.places[packet] != _held(actor):
        raise Failed("once")
    return packet


def _enqueue(queue: SkbQueue | SharedQueue, packet: Packet | None, *, first: bool) -> None:
    if isinstance(queue, SkbQueue):
        if packet is None:
            raise Failed("null")
        queue.packets.insert(0 if first else len(queue.packets), packet)
        return
    cell = queue.cell

    def put(memory: Memory, actor: Actor) -> None:
        cell.guarded(memory, actor)
        skb = _in_hands(memory, actor, packet)
        cell.write(memory, (skb, *cell.read(memory)) if first else (*cell.read(memory), skb))
        memory.places[skb] = LISTED

    NOW.access(put)


def kernel_skb_queue_tail(queue: SkbQueue | SharedQueue, packet: Packet | None) -> None:
    """Put a packet at the end."""
    _enqueue(queue, packet, first=False)


def kernel_skb_queue_head(queue: SkbQueue | SharedQueue, packet: Packet | None) -> None:
    """Put a packet in front."""
    _enqueue(queue, packet, first=True)


def kernel_skb_dequeue(queue: SkbQueue | SharedQueue) -> Packet | None:
    """Take the first packet."""
    if isinstance(queue, SkbQueue):
        return queue.packets.pop(0) if queue.packets else None
    cell = queue.cell

    def take(memory: Memory, actor: Actor) -> Packet | None:
        cell.guarded(memory, actor)
        packets = cell.read(memory)
        if not packets:
            return None
        cell.write(memory, packets[1:])
        memory.places[packets[0]] = _held(actor)
        return packets[0]  # type: ignore[no-any-return]

    return NOW.access(take)  # type: ignore[no-any-return]


def skb_peek(queue: SkbQueue | SharedQueue) -> Packet | None:
    """Look at the first packet."""
    if isinstance(queue, SkbQueue):
        return queue.packets[0] if queue.packets else None
    cell = queue.cell

    def look(memory: Memory, actor: Actor) -> Packet | None:
        cell.guarded(memory, actor)
        return next(iter(cell.read(memory)), None)

    return NOW.access(look)  # type: ignore[no-any-return]


def skb_queue_empty(queue: SkbQueue | SharedQueue) -> bool:
    """Tell whether a list is empty."""
    return len(queue) == 0


def _splice(source: SkbQueue | SharedQueue, queue: SkbQueue | SharedQueue, *, first: bool) -> None:
    taken = NOW.access(_take_all(source.cell)) if isinstance(source, SharedQueue) else tuple(source.packets)
    if isinstance(queue, SkbQueue):
        queue.packets[:] = [*taken, *queue.packets] if first else [*queue.packets, *taken]
    else:
        NOW.access(_put_all(queue.cell, taken, first=first))
    if isinstance(source, SkbQueue):
        source.packets.clear()


def _take_all(cell: Cell) -> Operation:
    def take(memory: Memory, actor: Actor) -> tuple[Packet, ...]:
        cell.guarded(memory, actor)
        packets: tuple[Packet, ...] = cell.read(memory)
        cell.write(memory, ())
        memory.places.update(dict.fromkeys(packets, _held(actor)))
        return packets

    return take


def _put_all(cell: Cell, packets: tuple[Packet, ...], *, first: bool) -> Operation:
    def put(memory: Memory, actor: Actor) -> None:
        cell.guarded(memory, actor)
        for packet in packets:
            _in_hands(memory, actor, packet)
        there = cell.read(memory)
        cell.write(memory, (*packets, *there) if first else (*there, *packets))
        memory.places.update(dict.fromkeys(packets, LISTED))

    return put


def skb_queue_splice_init(source: SkbQueue | SharedQueue, queue: SkbQueue | SharedQueue) -> None:
    """Move all packets in front of another list."""
    _splice(source, queue, first=True)


def skb_queue_splice_tail_init(source: SkbQueue | SharedQueue, queue: SkbQueue | SharedQueue) -> None:
    """Move all packets behind another list."""
    _splice(source, queue, first=False)


def transmit(packet: Packet | None) -> None:
    """Put a packet on the wire."""

    def send(memory: Memory, actor: Actor) -> None:
        skb = _in_hands(memory, actor, packet)
        if any(p.number == skb.number and p > skb and where == WIRE for p, where in memory.places.items()):
            memory.events.append("order")
        memory.places[skb] = WIRE

    NOW.access(send)


def kfree_skb(packet: Packet | None) -> None:
    """Free a packet: no step, nobody else can see it."""

    def free(memory: Memory, actor: Actor) -> None:
        memory.places[_in_hands(memory, actor, packet)] = FREED

    NOW.access(free, joined=True)


# --- accesses ---------------------------------------------------------------------------------------------------------


def _load(cell: Cell, *, marked: bool = False) -> Operation:
    def load(memory: Memory, actor: Actor) -> Answer:
        if not marked:
            cell.guarded(memory, actor)
        return cell.like.shown(cell.read(memory))

    return load


def _store(cell: Cell, value: int, *, marked: bool = False) -> Operation:
    def store(memory: Memory, actor: Actor) -> None:
        if not marked:
            cell.guarded(memory, actor)
        cell.write(memory, value)

    return store


def _update(cell: Cell, new: Callable[[int], int], answer: Callable[[int], Answer] | None = None) -> Answer:
    """Read, change and write in one access; answer: from the old value to what the thread is told."""

    def update(memory: Memory, _actor: Actor) -> Answer:
        old = cell.read(memory)
        cell.write(memory, int(new(old)))
        return cell.like.shown(old) if answer is None else answer(old)

    return NOW.access(update)


def read_marked(cell: Cell) -> Answer:
    """READ_ONCE() and its kin."""
    return NOW.access(_load(cell, marked=True))


def write_marked(cell: Cell, value: int) -> None:
    """WRITE_ONCE() and its kin."""
    NOW.access(_store(cell, int(value), marked=True))


def xchg(cell: Cell, value: int) -> Answer:
    """Exchange."""
    return _update(cell, lambda _: value)


def cmpxchg(cell: Cell, old: int, new: int) -> Answer:
    """Compare and exchange; return what was found."""
    return _update(cell, lambda found: new if found == old else found)


def try_cmpxchg(cell: Cell, old: int, new: int) -> bool:
    """Compare and exchange; tell whether it was done. What was found is kept for `found`."""
    NOW.found = cmpxchg(cell, old, new)
    return bool(NOW.found == old)


def found() -> Answer:
    """Return what the last try_cmpxchg() found."""
    return NOW.found


def atomic_add(value: int, cell: Cell) -> None:
    """Add."""
    _update(cell, lambda old: old + value)


def atomic_add_return(value: int, cell: Cell) -> Answer:
    """Add and return the sum."""
    return _update(cell, lambda old: old + value, lambda old: old + value)


def atomic_fetch_add(value: int, cell: Cell) -> Answer:
    """Add and return the old value."""
    return _update(cell, lambda old: old + value)


def atomic_dec_and_test(cell: Cell) -> Answer:
    """Subtract 1, tell whether 0 was reached."""
    return _update(cell, lambda old: old - 1, lambda old: old == 1)


def _bit(bit: int, cell: Cell) -> int:
    """Return the mask of a bit that the word has. Raises Failed."""
    if bit < 0 or 1 << bit > cell.like.high:
        raise Failed("domain")
    return 1 << bit


def test_bit(bit: int, cell: Cell) -> Answer:
    """Read a bit."""
    mask = _bit(bit, cell)
    return _update(cell, lambda old: old, lambda old: bool(old & mask))


def test_and_set_bit(bit: int, cell: Cell) -> Answer:
    """Set a bit, tell whether it was set."""
    mask = _bit(bit, cell)
    return _update(cell, lambda old: old | mask, lambda old: bool(old & mask))


def test_and_clear_bit(bit: int, cell: Cell) -> Answer:
    """Clear a bit, tell whether it was set."""
    mask = _bit(bit, cell)
    return _update(cell, lambda old: old & ~mask, lambda old: bool(old & mask))


def kernel_set_bit(bit: int, cell: Cell) -> None:
    """Set a bit by a read and a write."""
    mask = _bit(bit, cell)
    cell.like.set(cell, cell.like.get(cell) | mask)


def kernel_clear_bit(bit: int, cell: Cell) -> None:
    """Clear a bit by a read and a write."""
    mask = _bit(bit, cell)
    cell.like.set(cell, cell.like.get(cell) & ~mask)


# --- locks, bottom halves, softirqs -----------------------------------------------------------------------------------


def spin_lock(lock: Cell) -> None:
    """Take a lock, or wait."""

    def take(memory: Memory, actor: Actor) -> None:
        holder = lock.read(memory)
        if holder == actor.label:
            raise Failed("deadlock")
        if holder != FREE:
            raise _Blocked(holder)
        lock.write(memory, actor.label)

    NOW.access(take)


def spin_trylock(lock: Cell) -> Answer:
    """Take a lock if it is free."""

    def attempt(memory: Memory, actor: Actor) -> bool:
        if lock.read(memory) != FREE:
            return False
        lock.write(memory, actor.label)
        return True

    return NOW.access(attempt)


def spin_unlock(lock: Cell) -> None:
    """Release a lock."""

    def release(memory: Memory, actor: Actor) -> None:
        if lock.read(memory) != actor.label:
            raise Failed("locking")
        lock.write(memory, FREE)

    NOW.access(release)


def spin_is_locked(lock: Cell) -> Answer:
    """Tell whether somebody holds a lock."""
    return NOW.access(lambda memory, _: lock.read(memory) != FREE)


def local_bh_disable() -> None:
    """Switch bottom halves off: a step, so that a softirq can come in before it."""
    NOW.access(lambda _memory, _actor: None)
    NOW.bh += 1


def local_bh_enable() -> None:
    """Switch bottom halves on: no step."""
    NOW.bh -= 1


def spin_lock_bh(lock: Cell) -> None:
    """Both."""
    local_bh_disable()
    spin_lock(lock)


def spin_unlock_bh(lock: Cell) -> None:
    """Both."""
    spin_unlock(lock)
    local_bh_enable()


def _pending(name: str, cpu: int) -> str:
    return f"pending {name}@{cpu}"


def raise_softirq(handler: Callable[..., object]) -> None:
    """Raise a softirq on this CPU."""

    def mark(memory: Memory, actor: Actor) -> None:
        memory.hidden[_pending(handler.__name__, actor.cpu)] = 1

    NOW.access(mark)


# --- the model's own --------------------------------------------------------------------------------------------------


def choose(budget: int | None = None, _text: str = "") -> Answer:
    """Let the environment answer."""
    return NOW.choose(budget.name if isinstance(budget, Budget) else "")


def check(condition: object, _text: str) -> None:
    """Demand a condition."""
    if not condition:
        raise Failed("check")


def wait_until(condition: Callable[[], object]) -> None:
    """Wait for a condition, which is looked at without steps."""

    def wait(memory: Memory, actor: Actor) -> None:
        if not look(memory, condition, cpu=actor.cpu):
            raise _Blocked

    NOW.access(wait)


class atomic:  # noqa: N801  the word of the language
    """Makes a block one step, which begins with the block, or with what the block waits for first."""

    def __init__(self, *, waits: bool = False) -> None:
        self.waits = waits

    def __enter__(self) -> None:
        NOW.atomic += 1
        if not self.waits:
            NOW.access(lambda _memory, _actor: None)

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _at: TracebackType | None
    ) -> None:
        NOW.atomic -= 1
        NOW.begun = NOW.begun and NOW.atomic > 0


_LIMITS = {"u8": (0, 255), "s8": (-128, 127), "u16": (0, 65535)}


def within(kind: str, value: int) -> int:
    """Return the value of a declared local. Raises Failed."""
    low, high = _LIMITS[kind]
    if not low <= value <= high:
        raise Failed("domain")
    return value


def look(memory: Memory, function: Callable[..., Answer], *args: object, cpu: int = 0) -> Answer:
    """Call a function that works on memory without steps and without locks."""
    kept = NOW.memory, NOW.actor
    NOW.memory, NOW.actor = memory, Actor("nobody", "nobody", cpu)
    try:
        return function(*args)
    finally:
        NOW.memory, NOW.actor = kept


def language(given: Mapping[str, Answer]) -> ModuleType:
    """Return the module that a specification imports, for parameters with these values."""

    class Bits(IntEnum):
        pass

    def nothing() -> None:
        pass

    module = ModuleType("qmodel.lang")
    words: list[object] = [
        Bool, Int, Flags, SpinLock, SkbList, Array, PerCpu, SkbQueue, transmit, kfree_skb, skb_peek, skb_queue_empty,
        skb_queue_splice_init, skb_queue_splice_tail_init, xchg, cmpxchg, try_cmpxchg, atomic_add, atomic_add_return,
        atomic_fetch_add, atomic_dec_and_test, test_bit, test_and_set_bit, test_and_clear_bit, spin_lock, spin_trylock,
        spin_unlock, spin_is_locked, spin_lock_bh, spin_unlock_bh, local_bh_disable, local_bh_enable, raise_softirq,
        choose, check, wait_until, atomic, kernel_skb_queue_tail, kernel_skb_queue_head, kernel_skb_dequeue,
        kernel_set_bit, kernel_clear_bit, Bits,
    ]  # fmt: skip
    names: dict[str, object] = {str(getattr(word, "__name__", "")): word for word in words}
    names |= dict.fromkeys(("READ_ONCE", "data_race", "smp_load_acquire", "atomic_read"), read_marked)
    names |= dict.fromkeys(("WRITE_ONCE", "smp_store_release", "atomic_set"), write_marked)
    names |= dict.fromkeys(
        (
            "smp_mb", "smp_rmb", "smp_wmb", "smp_mb__before_atomic", "smp_mb__after_atomic", "barrier", "cpu_relax",
        ),
        nothing,
    )  # fmt: skip
    names |= dict.fromkeys(("u8", "s8", "u16"), int) | dict.fromkeys(("Skb", "Lock"), object)
    names |= {
        "Model": model_class(given),
        "Param": lambda default, **_: Parameter(default),
        "Budget": lambda default, **_: Parameter(default, budget=True),
        "Packets": lambda default, *, each, **_: Parameter(default, each=each),
        "Kernel": lambda *_, **__: None,
        "Refutes": lambda *_, **__: None,
        "Holds": lambda *_, **__: None,
        "BIT": lambda bit: 1 << bit,
        "skb_queue_len": len,
        "smp_processor_id": lambda: NOW.actor.cpu,
        "set_bit": lambda bit, cell: (test_and_set_bit(bit, cell), None)[1],
        "clear_bit": lambda bit, cell: (test_and_clear_bit(bit, cell), None)[1],
        "atomic_inc": lambda cell: atomic_add(1, cell),
        "atomic_dec": lambda cell: atomic_add(-1, cell),
        "atomic_sub": lambda value, cell: atomic_add(-value, cell),
        "atomic_inc_return": lambda cell: atomic_add_return(1, cell),
        "atomic_dec_return": lambda cell: atomic_add_return(-1, cell),
    }
    kinds = ("thread", "softirq", "environment", "invariant", "quiescent", "measure", "scenario")
    names |= {kind: _marker(kind) for kind in kinds}
    module.__dict__.update(names)
    return module


# --- the text of a specification --------------------------------------------------------------------------------------

_PLACES = {
    **dict.fromkeys(("READ_ONCE", "data_race", "smp_load_acquire", "atomic_read", "WRITE_ONCE"), 0),
    **dict.fromkeys(("smp_store_release", "atomic_set", "xchg", "cmpxchg", "try_cmpxchg"), 0),
    **dict.fromkeys(("atomic_inc", "atomic_dec", "atomic_inc_return", "atomic_dec_return", "atomic_dec_and_test"), 0),
    **dict.fromkeys(("atomic_add", "atomic_sub", "atomic_add_return", "atomic_fetch_add"), 1),
    **dict.fromkeys(("set_bit", "clear_bit", "test_bit", "test_and_set_bit", "test_and_clear_bit"), 1),
    **dict.fromkeys(("kernel_set_bit", "kernel_clear_bit"), 1),
}
"""Which argument of an access is the variable that it works on."""


class _Changes(ast.NodeTransformer):
    """The changes to the text that the head of this file lists."""

    def __init__(self) -> None:
        self.declared: dict[str, str] = {}

    @staticmethod
    def rename(name: str) -> str:
        """Return a name that Python leaves as it is within a class."""
        return f"kernel_{name[2:]}" if name.startswith("__") and not name.endswith("__") else name

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        """Rename it; note down the locals that it declares."""
        node.name = self.rename(node.name)
        self.declared = {
            n.target.id: n.annotation.id
            for n in ast.walk(node)
            if isinstance(n, ast.AnnAssign) and isinstance(n.target, ast.Name) and isinstance(n.annotation, ast.Name)
            if n.annotation.id in _LIMITS
        }
        self.generic_visit(node)
        self.declared = {}
        return node

    def visit_Name(self, node: ast.Name) -> ast.AST:
        """Rename it."""
        node.id = self.rename(node.id)
        return node

    def visit_alias(self, node: ast.alias) -> ast.AST:
        """Rename what is imported."""
        node.name = self.rename(node.name)
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        """Rename it."""
        self.generic_visit(node)
        node.attr = self.rename(node.attr)
        return node

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        """Check a declared local; look at the index of an element before the value."""
        self.generic_visit(node)
        (target,) = node.targets
        if isinstance(target, ast.Subscript):
            return ast.Expr(_call("assign", _reference(target), node.value))
        if isinstance(target, ast.Name):
            node.value = self._within(target.id, node.value)
        return node

    def visit_With(self, node: ast.With) -> ast.AST:
        """Tell an atomic block whether it begins with what may wait."""
        match node.body[0]:
            case ast.Expr(value=ast.Call(func=ast.Name(id="spin_lock" | "wait_until"))):
                call = node.items[0].context_expr
                assert isinstance(call, ast.Call)
                call.keywords = [ast.keyword("waits", ast.Constant(value=True))]
        return self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        """Check a declared local."""
        self.generic_visit(node)
        if isinstance(node.target, ast.Name) and node.value is not None:
            node.value = self._within(node.target.id, node.value)
        return node

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        """Check a declared local."""
        self.generic_visit(node)
        if isinstance(node.target, ast.Name) and node.target.id in self.declared:
            total = ast.BinOp(ast.Name(node.target.id, ast.Load()), node.op, node.value)
            return ast.Assign([node.target], self._within(node.target.id, total))
        return node

    def visit_NamedExpr(self, node: ast.NamedExpr) -> ast.AST:
        """Check a declared local."""
        self.generic_visit(node)
        node.value = self._within(node.target.id, node.value)
        return node

    def _within(self, name: str, value: ast.expr) -> ast.expr:
        if name not in self.declared:
            return value
        return _call("within", ast.Constant(self.declared[name]), value)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Give an access its variable, wait_until() a function, and the local of try_cmpxchg() what was found."""
        self.generic_visit(node)
        if not isinstance(node.func, ast.Name):
            return node
        name = node.func.id
        if name in _PLACES:
            at = _PLACES[name]
            node.args[at] = _reference(node.args[at])
        if name == "wait_until":
            nothing = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
            node.args[0] = ast.Lambda(nothing, node.args[0])
        if name == "try_cmpxchg" and isinstance(node.args[1], ast.Name):
            local = node.args[1].id
            after = ast.NamedExpr(ast.Name(local, ast.Store()), self._within(local, _call("found")))
            return ast.Subscript(ast.Tuple([node, after], ast.Load()), ast.Constant(0), ast.Load())
        return node


def _call(name: str, *args: ast.expr) -> ast.expr:
    return ast.Call(ast.Name(name, ast.Load()), list(args), [])


def _reference(node: ast.expr) -> ast.expr:
    """Turn `m.x` into the variable itself, and `m.a[i]` into the element."""
    if isinstance(node, ast.Subscript):
        return ast.Call(ast.Attribute(node.value, "cell", ast.Load()), [node.slice], [])
    assert isinstance(node, ast.Attribute)
    return _call("variable", node.value, ast.Constant(node.attr))


def assign(cell: Cell, value: Answer) -> None:
    """Do what assigning to an element does."""
    cell.like.set(cell, value)


def variable(model: object, name: str) -> Cell:
    """Return a variable of a model, without an access."""
    declared = getattr(type(model), name)
    assert isinstance(declared, Variable)
    return Cell(name, 0, declared)


class Spec:
    """A specification, ready to be executed: one variant, parameters, a scenario."""

    def __init__(
        self,
        source: str,
        *,
        variant: str | None = None,
        params: Mapping[str, Answer] | None = None,
        scenario: str = "default",
    ) -> None:
        words = language(params or {})

        def imports(name: str, *rest: Any, **more: Any) -> ModuleType:  # noqa: ANN401
            return words if name == "qmodel.lang" else builtins.__import__(name, *rest, **more)

        space: dict[str, Any] = {
            "__name__": "specification",
            "__builtins__": {**builtins.__dict__, "__import__": imports},
            "within": within,
            "found": found,
            "variable": variable,
            "assign": assign,
        }
        tree = ast.fix_missing_locations(_Changes().visit(ast.parse(source)))
        exec(compile(tree, "<specification>", "exec"), space)  # noqa: S102  to execute it is what this is for
        root = words.__dict__["Model"]
        models = [c for c in space.values() if isinstance(c, type) and issubclass(c, root) and c is not root]
        self.cls = space[variant] if variant else models[-1]
        self.model = self.cls()
        self.moments: dict[tuple[Actor, int, tuple[Answer, ...]], Moment] = {}
        members: dict[str, Any] = {}
        for base in reversed(self.cls.__mro__):
            members |= {n: v for n, v in vars(base).items() if base not in {object, root}}
        self.functions = {n: f for n, f in members.items() if isinstance(f, FunctionType)}
        NOW.flows = next((tuple(v) for v in members.values() if isinstance(v, Flows)), ())
        self.flows = NOW.flows
        self.actors = tuple(self._actors())
        declared = {n: v for n, v in members.items() if isinstance(v, Variable | Array)}
        for value in declared.values():
            if isinstance(value, PerCpu):
                value.size = sum(a.kind != "softirq" for a in self.actors)
        self.variables = {n: v.element if isinstance(v, Array) else v for n, v in declared.items()}
        for n, v in declared.items():
            self.variables[n].name = n
            v.name = n
        shared = {
            n: (self.variables[n].init,) * ((v.size or 0) if isinstance(v, Array) else 1) for n, v in declared.items()
        }
        hidden = {f"budget {v.name}": int(v) for v in members.values() if isinstance(v, Budget)}
        self.start = Memory(shared, hidden, {})
        NOW.parked = {}
        for f in self.functions.values():
            if getattr(f, "kind", "") == "scenario" and f.__dict__["title"] == scenario:
                look(self.start, f, self.model)
        self.parked = NOW.parked
        for flow, size in enumerate(self.flows):
            for index in range(self.parked.get(flow, 0) + size):
                self.start.places.setdefault(Packet(flow, index), NOWHERE)
        self.properties = self._judges("invariant", "quiescent")
        self.measures = self._judges("measure")

    def marked(self, *kinds: str) -> list[FunctionType]:
        """Return the functions that a decorator marks."""
        return [f for f in self.functions.values() if getattr(f, "kind", "") in kinds]

    def _actors(self) -> Iterator[Actor]:
        cpu = 0
        for function in self.marked("thread"):
            for _ in range(function.__dict__["arguments"].get("each", 1)):
                yield Actor(function.__name__, "task", cpu)
                cpu += 1
        for function in self.marked("environment"):
            budget = int(function.__dict__["arguments"]["budget"])
            if budget:
                yield Actor(function.__name__, "environment", cpu, budget)
                cpu += 1
        for function in self.marked("softirq"):
            for number in range(cpu):
                yield Actor(function.__name__, "softirq", number, -1)

    def _judges(self, *kinds: str) -> list[Judge]:
        return [Judge(f.__dict__["title"], f.__dict__["kind"], f, self._guards(f)) for f in self.marked(*kinds)]

    def _guards(self, function: FunctionType) -> list[str]:
        """Return the locks of all variables that a property names, itself or in what it calls."""
        names = set(function.__code__.co_names)
        for constant in function.__code__.co_consts:  # a generator expression
            names |= set(getattr(constant, "co_names", ()))
        guards = [g.name for n in names if n in self.variables and (g := self.variables[n].guard) is not None]
        for name in names & set(self.functions):
            guards += self._guards(self.functions[name])
        return guards

    # --- runs ---------------------------------------------------------------------------------------------------------

    def moment(self, actor: Actor, calls: int, answers: tuple[Answer, ...]) -> Moment:
        """Return where a thread is after some answers. calls: how often its function may still run, this time too."""
        request = self._run(actor, calls, answers)
        while request is None:  # the function has returned: where it may run once more it does
            answers, calls = (), max(calls - 1, -1)
            request = self._run(actor, calls, answers)
        key = actor, calls, answers
        return self.moments.setdefault(key, Moment(*key, request))

    def _run(self, actor: Actor, calls: int, answers: tuple[Answer, ...]) -> Request | None:
        """Run the function of a thread up to what it asks for behind these answers; None where it returns."""
        if actor.kind == "softirq" and not answers:
            return Request("rest", self._entry(actor))
        if calls == 0:
            return Request("end")
        NOW.start(actor, answers[1:] if actor.kind == "softirq" else answers)
        NOW.flows, NOW.parked = self.flows, self.parked
        function = self.functions[actor.name]
        try:
            function(self.model, *([actor.cpu] if function.__code__.co_argcount > 1 else []))
        except _Pause:
            return NOW.request
        except Failed as failed:
            return Request("fail", name=failed.name)
        except (ZeroDivisionError, ValueError):  # division by 0, shift by a negative number
            return Request("fail", name="domain")
        return None

    def _entry(self, actor: Actor) -> Operation:
        def enter(memory: Memory, _actor: Actor) -> None:
            name = _pending(actor.name, actor.cpu)
            if not memory.hidden.get(name):
                raise _Blocked
            memory.hidden[name] = 0

        return enter

    def after(self, moment: Moment, answer: Answer) -> Moment:
        """Return where a thread is after one more answer."""
        if answer not in moment.next:
            moment.next[answer] = self.moment(moment.actor, moment.calls, (*moment.answers, answer))
        return moment.next[answer]


@dataclass(frozen=True)
class Judge:
    """A property or a measure: a function of the specification, judged where nobody holds one of some locks."""

    name: str
    kind: str
    function: FunctionType
    locks: Sequence[str]


# --- the search -------------------------------------------------------------------------------------------------------


@dataclass
class Found:
    """What there is.

    memories: every shared memory that can be reached, and in how many steps at least. finals: those in which every
    task has ended, everything else rests and nothing is raised. violated: every property that can be violated, and by
    how many steps at least. cut: some step ended in a violation. complete: nothing was left out for its depth.
    """

    memories: dict[Frozen, int] = field(default_factory=dict)
    finals: set[Frozen] = field(default_factory=set)
    violated: dict[str, int] = field(default_factory=dict)
    maxima: dict[str, int] = field(default_factory=dict)
    states: int = 0
    cut: bool = False
    complete: bool = True


@dataclass(frozen=True)
class _State:
    memory: Memory
    moments: tuple[Moment, ...]


class _Search:
    def __init__(self, spec: Spec) -> None:
        self.spec = spec
        self.found = Found()

    def violated(self, name: str, steps: int) -> None:
        self.found.violated[name] = min(steps, self.found.violated.get(name, steps))

    def initial(self) -> list[_State]:
        """Return the first state; none where something fails before it."""
        memory, moments = self.spec.start.copy(), []
        for actor in self.spec.actors:
            moment = self.spec.moment(actor, actor.calls, ())
            while moment.request.what == "access" and moment.request.joined:
                assert moment.request.operation is not None
                moment = self.spec.after(moment, moment.request.operation(memory, actor))
            if moment.request.what == "fail":
                raise Failed(moment.request.name)
            moments.append(moment)
        return [_State(memory, tuple(moments))]

    def waits(self, state: _State, tid: int) -> str | None:
        """Return why a thread cannot take a step: whom it waits for, or nothing known; None where it can."""
        moment = state.moments[tid]
        actor, request = moment.actor, moment.request
        if request.what == "end":
            return ""
        running = [
            m.actor.label
            for m in state.moments
            if m.actor.kind == "softirq" and m.actor.cpu == actor.cpu and m.request.what != "rest" and m is not moment
        ]
        if actor.kind != "softirq" and not request.bh_off and running:
            return running[0]
        if request.what == "rest":
            others = [m for m in state.moments if m.actor.cpu == actor.cpu and m.actor.kind != "softirq"]
            if running or any(m.request.bh_off for m in others):
                return ""
        if request.operation is None:
            return None
        try:
            request.operation(state.memory.copy(), actor)
        except _Blocked as blocked:
            return str(blocked.args[0]) if blocked.args else ""
        except Failed:
            pass
        return None

    def steps(self, state: _State, tid: int, depth: int) -> Iterator[_State]:
        """Yield what a step of a thread can lead to."""
        pending = [(state.memory.copy(), state.moments[tid], True)]
        while pending:
            memory, moment, first = pending.pop()
            request = moment.request
            answers: list[tuple[Memory, Answer]] = []
            if request.what == "choose":
                answers.append((memory.copy(), False))
                budget = f"budget {request.name}"
                if not request.name or memory.hidden[budget]:
                    taken = memory.copy()
                    if request.name:
                        taken.hidden[budget] -= 1
                    answers.append((taken, True))
            elif request.what in {"access", "rest"} and (first or request.joined):
                assert request.operation is not None
                try:
                    answers.append((memory, request.operation(memory, moment.actor)))
                except Failed as failed:
                    self._cut(failed.name, depth)
                for event in memory.events:
                    self.violated(event, depth + 1)
                memory.events.clear()
            elif request.what == "fail":
                self._cut(request.name, depth)
            elif request.what in {"end", "rest"} and self._holds(memory, moment.actor):
                self._cut("locking", depth)
            else:
                moments = tuple(moment if i == tid else m for i, m in enumerate(state.moments))
                yield _State(memory, moments)
            pending += [(m, self.spec.after(moment, answer), False) for m, answer in answers]

    def _cut(self, name: str, depth: int) -> None:
        self.violated(name, depth + 1)
        self.found.cut = True

    @staticmethod
    def _holds(memory: Memory, actor: Actor) -> bool:
        return any(v == actor.label for values in memory.shared.values() for v in values)

    def judge(self, state: _State, depth: int, *, moving: bool) -> None:
        """Judge a state; moving: some thread can take a step."""
        memory = state.memory
        shared = memory.key()[0]
        self.found.memories.setdefault(shared, depth)
        ended = all(m.request.what == "end" for m in state.moments if m.actor.kind == "task")
        if self._circle(state) or (not moving and not ended):
            self.violated("deadlock", depth)
        rests = ended and self._rests(state)
        if rests:
            self.found.finals.add(shared)
            if any(where.startswith("held by") for where in memory.places.values()):
                self.violated("no-leak", depth)
        quiet = rests and all(
            v.rest is None or all((len(x) if isinstance(x, tuple) else x) == v.rest for x in memory.shared[n])
            for n, v in self.spec.variables.items()
        )
        for judge in (*self.spec.properties, *self.spec.measures):
            if any(holder != FREE for lock in judge.locks for holder in memory.shared[lock]):
                continue
            if judge.kind == "quiescent" and not quiet:
                continue
            value = look(memory, judge.function, self.spec.model)
            if judge.kind == "measure":
                self.found.maxima[judge.name] = max(int(value), self.found.maxima.get(judge.name, int(value)))
            elif not value:
                self.violated(judge.name, depth)

    def _rests(self, state: _State) -> bool:
        if any(n.startswith("pending ") and raised for n, raised in state.memory.hidden.items()):
            return False
        for moment in state.moments:
            what = moment.request.what
            if moment.actor.kind == "softirq" and what != "rest":
                return False
            if moment.actor.kind == "environment" and what != "end" and moment.answers:
                return False
        return True

    def _circle(self, state: _State) -> bool:
        """Tell whether threads wait for one another in a circle."""
        waits = {m.actor.label: self.waits(state, i) for i, m in enumerate(state.moments)}
        for start in waits:
            seen: list[str] = []
            here: str | None = start
            while here and waits.get(here) and here not in seen:
                seen.append(here)
                here = waits[here]
            if here in seen:
                return True
        return False


def explore(spec: Spec, *, max_states: int | None = None, max_depth: int | None = None) -> Found:
    """Take all steps in every order, breadth first. Raises TooLargeError, Failed (before the first access)."""
    search = _Search(spec)
    layer = search.initial()
    seen = {(s.memory.key(), s.moments) for s in layer}
    depth = 0
    while layer:
        following: list[_State] = []
        for state in layer:
            able = [tid for tid in range(len(state.moments)) if search.waits(state, tid) is None]
            search.judge(state, depth, moving=bool(able))
            if max_depth is not None and depth >= max_depth:
                search.found.complete = search.found.complete and not able
                continue
            for tid in able:
                for new in search.steps(state, tid, depth):
                    key = new.memory.key(), new.moments
                    if key not in seen:
                        seen.add(key)
                        following.append(new)
            if max_states is not None and len(seen) > max_states:
                raise TooLargeError
        layer, depth = following, depth + 1
    search.found.states = len(seen)
    return search.found
