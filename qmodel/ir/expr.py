"""Domains and expressions. Every value is a non-negative or negative integer; a domain says how to read it.

- `bool`: 0 or 1. `int`: lo to hi. `flags`: a word of named bits.
- `skb`: 0 is NULL, else the number of a packet. `queue`: a sequence of packets, `Program.skb_bits` bits each, the head
  in the lowest bits; packet numbers are not 0, so the highest non-zero element marks the end and the empty queue is 0.
- `lock`: 0 is free, else 1 + the number of the thread that holds it. `place`: where a packet is, see `program.Place`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

Kind = Literal["bool", "int", "flags", "skb", "queue", "lock", "place"]


@dataclass(frozen=True, slots=True)
class Domain:
    """The finite set of values of a variable: lo to hi. `names` are the bits of a flag word, lowest first."""

    kind: Kind
    lo: int
    hi: int
    names: tuple[str, ...] = ()

    @property
    def width(self) -> int:
        """Bits that hold every value, counted from `lo`."""
        return (self.hi - self.lo).bit_length()


BOOL = Domain("bool", 0, 1)


@dataclass(frozen=True, slots=True)
class Const:
    """A number."""

    value: int


@dataclass(frozen=True, slots=True)
class Local:
    """A variable of the running thread, by its name within the template."""

    name: str


@dataclass(frozen=True, slots=True)
class Read:
    """A shared variable; `index` is None for a scalar."""

    var: str
    index: Expr | None = None


@dataclass(frozen=True, slots=True)
class Own:
    """What the running thread knows of itself.

    Its number (`tid`), its CPU (`cpu`), whether no other softirq runs on its CPU (`alone`), and whether the bottom
    halves of its CPU are on (`enabled`). `qmodel.ir.own` fills them in for one thread.
    """

    what: Literal["tid", "cpu", "alone", "enabled"]


@dataclass(frozen=True, slots=True)
class Lookup:
    """An entry of a constant table."""

    table: tuple[int, ...]
    index: Expr


@dataclass(frozen=True, slots=True)
class At:
    """1 where the next step of thread `tid` starts at one of `nodes`, else 0."""

    tid: int
    nodes: frozenset[int]


@dataclass(frozen=True, slots=True)
class Inside:
    """How many threads have their next step in one of some functions, or in what they call. In properties only."""

    functions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Apply:
    """An operator applied to its arguments. `OPERATORS` has the meaning of each."""

    op: str
    args: tuple[Expr, ...]


Expr = Const | Local | Read | Own | Lookup | At | Inside | Apply

TRUE, FALSE = Const(1), Const(0)


def queue_length(bits: int, queue: int) -> int:
    """Return the number of packets in a queue value whose elements have `bits` bits."""
    return (queue.bit_length() + bits - 1) // bits


def queue_items(bits: int, queue: int) -> list[int]:
    """Return the packets of a queue value, head first."""
    items = []
    while queue:
        items.append(queue & ((1 << bits) - 1))
        queue >>= bits
    return items


def _append(bits: int, queue: int, tail: int) -> int:
    return queue | tail << bits * queue_length(bits, queue)


def _reverse(bits: int, queue: int) -> int:
    result = 0
    for item in queue_items(bits, queue):
        result = result << bits | item
    return result


OPERATORS: dict[str, Callable[[int, tuple[int, ...]], int]] = {
    "+": lambda _, a: a[0] + a[1],
    "-": lambda _, a: a[0] - a[1],
    "*": lambda _, a: a[0] * a[1],
    "//": lambda _, a: a[0] // a[1],
    "%": lambda _, a: a[0] % a[1],
    "&": lambda _, a: a[0] & a[1],
    "|": lambda _, a: a[0] | a[1],
    "^": lambda _, a: a[0] ^ a[1],
    "<<": lambda _, a: a[0] << a[1],
    ">>": lambda _, a: a[0] >> a[1],
    "==": lambda _, a: int(a[0] == a[1]),
    "!=": lambda _, a: int(a[0] != a[1]),
    "<": lambda _, a: int(a[0] < a[1]),
    "<=": lambda _, a: int(a[0] <= a[1]),
    ">": lambda _, a: int(a[0] > a[1]),
    ">=": lambda _, a: int(a[0] >= a[1]),
    "not": lambda _, a: int(not a[0]),
    "and": lambda _, a: int(all(a)),
    "or": lambda _, a: int(any(a)),
    "if": lambda _, a: a[1] if a[0] else a[2],
    "min": lambda _, a: min(a),
    "max": lambda _, a: max(a),
    "andnot": lambda _, a: a[0] & ~a[1],
    "len": lambda bits, a: queue_length(bits, a[0]),
    "head": lambda bits, a: a[0] & ((1 << bits) - 1),
    "rest": lambda bits, a: a[0] >> bits,
    "push": lambda bits, a: a[0] << bits | a[1],
    "append": lambda bits, a: _append(bits, a[0], a[1]),
    "reverse": lambda bits, a: _reverse(bits, a[0]),
    "item": lambda bits, a: a[0] >> bits * a[1] & ((1 << bits) - 1),
    "in": lambda bits, a: int(a[0] in queue_items(bits, a[1])),
}
"""Operator name to meaning. The first parameter is `Program.skb_bits`, which only the queue operators use.

`and`, `or` take any number of arguments; `andnot` clears the bits of its second argument; `push` puts a packet in
front of a queue, `append` puts a packet or a queue behind one, `item` is the packet at a position or 0.
"""


def apply(op: str, *args: Expr) -> Expr:
    """Build an operator application, folding what is constant already (queue operators stay as they are)."""
    if op == "not" and isinstance(args[0], Apply) and args[0].op in _NEGATION:
        return Apply(_NEGATION[args[0].op], args[0].args)
    if op in {"and", "or"}:
        return _fold_logic(op, args)
    if op == "if" and isinstance(args[0], Const):
        return args[1] if args[0].value else args[2]
    if op not in _QUEUE_OPERATORS and all(isinstance(a, Const) for a in args):
        values = tuple(a.value for a in args if isinstance(a, Const))
        if op not in {"//", "%"} or values[1]:
            return Const(OPERATORS[op](1, values))
    return Apply(op, args)


_NEGATION = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
_QUEUE_OPERATORS = {"len", "head", "rest", "push", "append", "reverse", "item", "in"}
COMPARISONS = frozenset({"==", "!=", "<", "<=", ">", ">=", "not", "and", "or", "in"})


def _fold_logic(op: str, args: tuple[Expr, ...]) -> Expr:
    absorbing = int(op == "or")
    kept: list[Expr] = []
    for arg in args:
        if isinstance(arg, Const):
            if bool(arg.value) == bool(absorbing):
                return Const(absorbing)
            continue
        kept.extend(arg.args if isinstance(arg, Apply) and arg.op == op else (arg,))
    if not kept:
        return Const(1 - absorbing)
    return kept[0] if len(kept) == 1 and is_logical(kept[0]) else Apply(op, tuple(kept))


def is_logical(expr: Expr) -> bool:
    """Tell whether the value is 0 or 1 by its form."""
    return isinstance(expr, At) or (isinstance(expr, Apply) and expr.op in COMPARISONS)


def walk(expr: Expr) -> Iterator[Expr]:
    """Yield the expression and all that stands in it."""
    yield expr
    match expr:
        case Read(_, index) if index is not None:
            yield from walk(index)
        case Lookup(_, index):
            yield from walk(index)
        case Apply(_, args):
            for arg in args:
                yield from walk(arg)
        case _:
            pass


def locals_of(expr: Expr) -> set[str]:
    """Return the names of the locals that the expression uses."""
    return {e.name for e in walk(expr) if isinstance(e, Local)}


def reads_of(expr: Expr) -> set[str]:
    """Return the names of the shared variables that the expression reads."""
    return {e.var for e in walk(expr) if isinstance(e, Read)}


def substitute(expr: Expr, replace: Callable[[Expr], Expr | None]) -> Expr:
    """Return the expression with every part for which `replace` gives one exchanged, and constants folded."""
    new = replace(expr)
    if new is not None:
        return new
    match expr:
        case Read(var, index) if index is not None:
            return Read(var, substitute(index, replace))
        case Lookup(table, index):
            inner = substitute(index, replace)
            return Const(table[inner.value]) if isinstance(inner, Const) else Lookup(table, inner)
        case Apply(op, args):
            return apply(op, *(substitute(a, replace) for a in args))
        case _:
            return expr


def interval(expr: Expr, domain_of: Callable[[Local | Read | Own], tuple[int, int]], skb_bits: int) -> tuple[int, int]:
    """Return bounds (lowest, highest) on the value, given the bounds of every variable in it."""
    match expr:
        case Const(value):
            return value, value
        case Local() | Own() | Read():
            return domain_of(expr)
        case At():
            return 0, 1
        case Inside():
            return 0, 64
        case Lookup(table, index):
            low, high = interval(index, domain_of, skb_bits)
            part = table[max(low, 0) : high + 1] or table
            return min(part), max(part)
        case Apply(op, args):
            return _interval(op, [interval(a, domain_of, skb_bits) for a in args], skb_bits)


def _interval(op: str, bounds: list[tuple[int, int]], skb_bits: int) -> tuple[int, int]:
    if op in {"and", "or"}:
        pick = min if op == "and" else max
        return pick(int(low > 0 or high < 0) for low, high in bounds), pick(
            int(low != 0 or high != 0) for low, high in bounds
        )
    (a, b), *others = bounds
    c, d = others[0] if others else (0, 0)
    match op:
        case "not":
            return int(a == b == 0), int(a <= 0 <= b)
        case "<" | "<=" | ">" | ">=" | "==" | "!=":
            return _compare(op, (a, b), (c, d))
        case "in":
            return 0, 1
        case "+":
            return a + c, b + d
        case "-":
            return a - d, b - c
        case "*" | "//" | "<<" | ">>":
            return _corners(op, (a, b), (c, d))
        case "%":
            return (0, d - 1) if c > 0 else (min(c + 1, 0), max(d - 1, 0))
        case "min":
            return min(low for low, _ in bounds), min(high for _, high in bounds)
        case "max":
            return max(low for low, _ in bounds), max(high for _, high in bounds)
        case "if":
            return min(c, others[1][0]), max(d, others[1][1])
        case "|" | "^" | "&" | "andnot":
            return _bitwise(op, (a, b), (c, d))
        case "len":
            return 0, queue_length(skb_bits, b)
        case "head" | "item":
            return 0, min(b, (1 << skb_bits) - 1)
        case "rest":
            return 0, b >> skb_bits
        case "push" | "append":
            length = queue_length(skb_bits, b) + max(1, queue_length(skb_bits, d))
            return 0, (1 << skb_bits * length) - 1
        case _:  # reverse
            return 0, (1 << skb_bits * queue_length(skb_bits, b)) - 1


def _bitwise(op: str, first: tuple[int, int], second: tuple[int, int]) -> tuple[int, int]:
    """Bounds of an operator on bits: no result has more of them than the longest operand, in two's complement."""
    (a, b), (c, d) = first, second
    longest = max((x if x >= 0 else ~x).bit_length() for x in (a, b, c, d))
    if op == "&" and (a >= 0 or c >= 0):
        return 0, min(b if a >= 0 else d, d if c >= 0 else b)
    if op == "andnot" and a >= 0:
        return 0, b
    negative = a < 0 or c < 0
    return -(1 << longest) if negative else 0, (1 << longest) - 1


def _compare(op: str, first: tuple[int, int], second: tuple[int, int]) -> tuple[int, int]:
    (a, b), (c, d) = first, second
    match op:
        case "<":
            return int(b < c), int(a < d)
        case "<=":
            return int(b <= c), int(a <= d)
        case ">" | ">=":
            return _compare("<" if op == ">" else "<=", second, first)
        case "==":
            return int(a == b == c == d), int(a <= d and c <= b)
        case _:
            return int(b < c or d < a), int(not a == b == c == d)


def _corners(op: str, first: tuple[int, int], second: tuple[int, int]) -> tuple[int, int]:
    """Bounds of a monotone operator: those of its corner values."""
    divisors = [y for y in second if y] or [1]
    if op == "//" and second[0] <= 0 <= second[1]:
        divisors += [1, -1]
    seconds = divisors if op == "//" else [max(0, min(y, 64)) for y in second] if op in {"<<", ">>"} else list(second)
    values = [OPERATORS[op](1, (x, y)) for x in first for y in seconds]
    return min(values), max(values)
