"""What stands in the body of a model: parameters, shared variables, threads, properties, expectations.

A specification is read, never run: these classes exist so that an editor, mypy and a reader know what each word takes
and gives. `qmodel.frontend.declarations` reads the same words from the source.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Generic, Self, TypeVar, overload

from qmodel.lang.values import Bits, Lock, Skb, SkbQueue

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])


class Model:
    """Base of every model. A class that derives from it directly is a model; a class that derives from that, a variant.

    A variant overrides only what a patch changed. `kernel` says what it stands for, `expect` what must come out.
    A model whose methods are all complete counts as a variant itself; a method whose body is `...` is not complete.
    """

    kernel: Kernel
    expect: list[Refutes | Holds]

    def flow(self, cpu: int) -> Iterator[Skb]:
        """Yield the packets that the thread on `cpu` sends, in order; each is in the thread's hands from then on."""
        raise NotImplementedError(_READ_ONLY)

    def parked(self, flow: int) -> Skb:
        """Return the next packet of a flow that was handed over before the run begins. In a scenario only."""
        raise NotImplementedError(_READ_ONLY)


_READ_ONLY = "a specification is read, never run: use `qmodel check FILE`"


class Number:
    """A whole number that is known before the search begins: a parameter, or what is computed from parameters."""

    def __add__(self, other: int | Number) -> Number:
        """Return the sum, known before the search begins."""
        return Number()

    __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __floordiv__ = __add__

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self, instance: Model, owner: type) -> int: ...
    def __get__(self, instance: Model | None, owner: type) -> Self | int:
        """In the body of a class the declaration, in a method the number."""
        return self if instance is None else 0


class Param(Number):
    """A parameter of the model, an option of the command: `cpus = Param(2, low=1, high=4, doc="CPUs that send")`.

    default: a number or a truth value. low, high: what may be given. grows: a greater value allows all that a smaller
    one does, so that a refutation holds for greater values too and a proof for smaller ones. doc: for `--help`.
    """

    def __init__(
        self, default: int, *, low: int = 0, high: int | None = None, grows: bool = False, doc: str = ""
    ) -> None: ...


class Budget(Number):
    """How often `choose()` may answer true, or an environment thread may act, in a whole run. Grows by its nature."""

    def __init__(self, default: int, *, high: int | None = None, doc: str = "") -> None: ...


class Packets(Number):
    """How many packets each flow sends: `packets = Packets(2, each=cpus)`; one number for all, or one a flow (2, 1).

    Where fewer numbers than flows are given the last one stands for the rest. `packets.total` is their sum.
    """

    @property
    def total(self) -> int:
        """All packets of all flows together, known before the search begins."""
        return 0

    def __init__(self, default: int | tuple[int, ...], *, each: int | Number, doc: str = "") -> None: ...


class Shared(Generic[T]):
    """A shared variable."""

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self, instance: Model, owner: type) -> T: ...
    def __get__(self, instance: Model | None, owner: type) -> Self | T:
        """In the body of a class the declaration, in a method the value."""
        if instance is None:
            return self
        raise NotImplementedError(_READ_ONLY)

    def __set__(self, instance: Model, value: T) -> None:
        """Store a value: one step."""
        raise NotImplementedError(_READ_ONLY)


class SpinLock(Shared[Lock]):
    """A spinlock_t. It knows who holds it: taking it twice is a self-deadlock, releasing another's lock an error."""

    def __init__(self, *, doc: str = "") -> None: ...


class Bool(Shared[bool]):
    """A truth value. rest: a run is over only where the variable has this value."""

    def __init__(
        self,
        init: bool = False,  # noqa: FBT001, FBT002  Bool(False) is how it reads best
        *,
        guarded_by: SpinLock | Array[Lock] | None = None,
        rest: bool | None = None,
        doc: str = "",
    ) -> None: ...


class Int(Shared[int]):
    """A whole number from low to high, also an atomic_t. A value outside is an error with its line, never a wrap."""

    def __init__(
        self,
        init: int | Number = 0,
        *,
        low: int | Number = 0,
        high: int | Number,
        guarded_by: SpinLock | Array[Lock] | None = None,
        rest: int | None = None,
        doc: str = "",
    ) -> None: ...


class Flags(Shared[int]):
    """A word of bits, as `unsigned long state`: `state = Flags(QdiscState)`, where QdiscState is a class of Bits."""

    def __init__(
        self,
        bits: type[Bits],
        init: int = 0,
        *,
        guarded_by: SpinLock | Array[Lock] | None = None,
        rest: int | None = None,
        doc: str = "",
    ) -> None: ...


class SkbList(Shared[SkbQueue]):
    """A list of packets, as sk_buff_head. limit: its greatest length; by default there is room for every packet."""

    def __init__(
        self,
        *,
        limit: int | Number | None = None,
        guarded_by: SpinLock | Array[Lock] | None = None,
        rest: int | None = None,
        doc: str = "",
    ) -> None: ...


class SkbPtr(Shared["Skb | None"]):
    """A pointer to a packet, or NULL, such as a slot of a ring.

    Storing a packet gives it out of the thread's hands; storing over one takes that one back into them.
    """

    def __init__(
        self, *, guarded_by: SpinLock | Array[Lock] | None = None, rest: None = None, doc: str = ""
    ) -> None: ...


class Array(Generic[T]):
    """As many shared variables of one kind: `slots = Array(Int(0, high=3), size=4)`, used as `m.slots[i]`."""

    def __init__(
        self, element: Shared[T], *, size: int | Number, guarded_by: SpinLock | Array[Lock] | None = None
    ) -> None: ...

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self, instance: Model, owner: type) -> Cells[T]: ...
    def __get__(self, instance: Model | None, owner: type) -> Self | Cells[T]:
        """In the body of a class the declaration, in a method the elements."""
        if instance is None:
            return self
        raise NotImplementedError(_READ_ONLY)


class PerCpu(Array[T]):
    """One shared variable for each CPU that has a thread: `sd = PerCpu(Bool())`, used as `m.sd[smp_processor_id()]`."""

    def __init__(self, element: Shared[T], *, guarded_by: SpinLock | Array[Lock] | None = None) -> None: ...


class Cells(Generic[T]):
    """The elements of an Array."""

    def __getitem__(self, index: int) -> T:
        """Read an element: one step. An index outside the array is an error that names the line."""
        raise NotImplementedError(_READ_ONLY)

    def __setitem__(self, index: int, value: T) -> None:
        """Store an element: one step."""
        raise NotImplementedError(_READ_ONLY)

    def __len__(self) -> int:
        """Return the number of elements."""
        raise NotImplementedError(_READ_ONLY)


class Kernel:
    """What a variant stands for in the kernel's history: commit, first release, release that replaced it, file."""

    def __init__(self, commit: str = "", *, since: str = "", until: str = "", source: str = "") -> None: ...


class Refutes:
    """An expectation: in this configuration the named properties, and only they, are refuted.

    For other parameters it extends upwards in those that grow. Parameters that are not named have their defaults.
    """

    def __init__(
        self,
        *properties: str,
        scenario: str = "default",
        memory: str | tuple[str, ...] = "sc",
        **params: int | tuple[int, ...],
    ) -> None: ...


class Holds:
    """An expectation: in this configuration every property holds. It extends downwards in parameters that grow."""

    def __init__(
        self, *, scenario: str = "default", memory: str | tuple[str, ...] = "sc", **params: int | tuple[int, ...]
    ) -> None: ...


@overload
def thread(function: F) -> F: ...
@overload
def thread(*, each: Number | int) -> Callable[[F], F]: ...
def thread(function: F | None = None, *, each: Number | int = 1) -> F | Callable[[F], F]:
    """Mark a task: it must come to its end. each: one on each of so many CPUs, told its CPU as the first argument.

    A task without `each` has a CPU of its own.
    """
    return _keep if function is None else function


def softirq(function: F) -> F:
    """Mark a softirq handler: one on each CPU that raises it, told its CPU as the first argument.

    It starts where it is raised and that CPU's bottom halves are on, and that CPU's task goes on when it is done.
    """
    return function


def environment(*, budget: Number | int) -> Callable[[F], F]:
    """Mark a thread of the environment, on a CPU of its own: acts at any moment, at most `budget` times, or never."""
    return _keep


def invariant(name: str) -> Callable[[F], F]:
    """Mark a property of every state: `@invariant("qlen")`. The function is one `return` of a condition.

    It is judged only where nobody holds a lock that guards a variable it reads.
    """
    return _keep


def quiescent(name: str) -> Callable[[F], F]:
    """Mark a property of the end: where every task has ended, nothing is raised and nothing is pending."""
    return _keep


def measure(name: str) -> Callable[[F], F]:
    """Mark a number whose greatest value over all states is reported with a witness."""
    return _keep


def scenario(name: str, **params: int | tuple[int, ...]) -> Callable[[F], F]:
    """Mark an initial state: `@scenario("parked", cpus=1)`. The function runs once, alone, before everything else.

    The parameters given here replace the defaults; its docstring is what `qmodel list` prints.
    """
    return _keep


def _keep(function: F) -> F:
    return function
