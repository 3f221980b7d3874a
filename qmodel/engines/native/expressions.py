"""Writing expressions in C. All values are int64_t; what the bounds do not show to stay within that is watched."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from qmodel.ir.expr import Apply, At, Const, Expr, Local, Lookup, Own, Read, interval

INT64 = (-(1 << 63), (1 << 63) - 1)
"""What C can hold."""

_ATOM, _UNARY, _BINARY, COMPARE, _AND, _OR, _IF = range(7)
_ARITHMETIC = {"+": "add", "-": "sub", "*": "mul"}
_COMPARISONS = {"==", "!=", "<", "<=", ">", ">="}
_QUEUES = {"len": "q_len", "head": "q_head", "rest": "q_rest", "push": "q_push", "append": "q_append", "in": "q_has",
           "reverse": "q_reverse", "item": "q_item"}  # fmt: skip
_GROWING = {"push", "append", "reverse"}


@dataclass(frozen=True, slots=True)
class Code:
    """An expression in C, and how strongly it binds: the higher the level, the sooner it needs parentheses."""

    text: str
    level: int = _ATOM

    def within(self, level: int) -> str:
        """Return the text as it stands in an expression of a level."""
        return f"({self.text})" if self.level > level or self.level == level == _BINARY else self.text

    def negated(self) -> Code:
        """Return the condition that holds where this one does not."""
        if self.text.startswith("!") and self.level == _UNARY:
            return Code(self.text[1:], _ATOM)
        return Code(f"!{self.within(_UNARY)}", _UNARY)

    def __str__(self) -> str:
        return self.text


class ExpressionWriter(ABC):
    """Turns expressions into C; what a variable is, a subclass knows."""

    def __init__(self, bits: int) -> None:
        self.bits = bits

    @abstractmethod
    def bounds(self, part: Local | Read | Own) -> tuple[int, int]:
        """Return the bounds of a variable."""

    @abstractmethod
    def local(self, name: str) -> Code:
        """Return the code of a local."""

    @abstractmethod
    def read(self, place: Read) -> Code:
        """Return the code of a shared variable."""

    @abstractmethod
    def at(self, part: At) -> Code:
        """Return the code that tells whether a thread is at one of some places."""

    @abstractmethod
    def table(self, values: tuple[int, ...]) -> str:
        """Return the name of a constant array."""

    @abstractmethod
    def trap(self) -> int:
        """Return the number of the place that is being written, for what is watched there."""

    # --- bounds -----------------------------------------------------------------------------------------------------

    def reach(self, expr: Expr) -> tuple[int, int]:
        """Return bounds on a value as C has it: what goes beyond 64 bits is caught, and so is within them."""
        low, high = interval(expr, self.bounds, self.bits)
        return max(low, INT64[0]), min(high, INT64[1])

    def fits(self, expr: Expr) -> bool:
        """Tell whether a value surely has 64 bits."""
        return self.inside(expr, *INT64)

    def inside(self, expr: Expr, low: int, high: int) -> bool:
        """Tell whether a value is surely between two others."""
        least, most = interval(expr, self.bounds, self.bits)
        return low <= least and most <= high

    def within(self, expr: Expr, low: int, high: int) -> Code:
        """Return the code of a value that must be between two others, and is watched where that is not sure."""
        code = self.value(expr)
        if self.inside(expr, low, high):
            return code
        return self._watched("qm_within", code, number(low), number(high))

    def index(self, expr: Expr, size: int) -> Code:
        """Return the code of an index into an array."""
        code = self.value(expr)
        return code if self.inside(expr, 0, size - 1) else self._watched("qm_index", code, Code(str(size)))

    # --- code -------------------------------------------------------------------------------------------------------

    def value(self, expr: Expr) -> Code:
        """Return the code of a value."""
        match expr:
            case Const(value):
                return number(value)
            case Local(name):
                return self.local(name)
            case Read():
                return self.read(expr)
            case At():
                return _truth(self.at(expr))
            case Lookup(table, index):
                return Code(f"{self.table(table)}[{self.index(index, len(table))}]")
            case Apply(op, args):
                return self._apply(op, args, expr)
            case _:
                raise AssertionError(f"{expr} was not filled in")

    def condition(self, expr: Expr) -> Code:
        """Return code that is not 0 where the value is not 0."""
        match expr:
            case Apply("and" | "or" as op, args):
                level = _AND if op == "and" else _OR
                # A compiler warns of && within ||, so that both are put into parentheses within each other.
                parts = [self.condition(a) for a in args]
                texts = [f"({p})" if p.level > COMPARE and p.level != level else p.within(level) for p in parts]
                joined = (" && " if op == "and" else " || ").join(texts)
                return Code(joined, level if len(parts) > 1 else parts[0].level) if parts else number(int(op == "and"))
            case At():
                return self.at(expr)
            case Apply("not", (arg,)) | Apply("==", (arg, Const(0))):
                return self.condition(arg).negated()
            case Apply("!=", (arg, Const(0))):
                return self.condition(arg)
            case Apply(op, (first, second)) if op in _COMPARISONS:
                return Code(f"{self.value(first).within(_BINARY)} {op} {self.value(second).within(_BINARY)}", COMPARE)
            case _:
                return self.value(expr)

    def _apply(self, op: str, args: tuple[Expr, ...], whole: Apply) -> Code:
        if op in {"and", "or", "not"} or op in _COMPARISONS:
            return _truth(self.condition(whole))
        if op == "if":
            cond, first, second = self.condition(args[0]), self.value(args[1]), self.value(args[2])
            if isinstance(args[1], Const):
                first = Code(f"(int64_t){first}", _UNARY)  # two numbers would make an int
            return Code(f"{cond.within(_OR)} ? {first.within(_OR)} : {second.within(_OR)}", _IF)
        if op in {"min", "max"}:
            code = self.value(args[0])
            for arg in args[1:]:
                code = Code(f"qm_{op}({code}, {self.value(arg)})")
            return code
        if op in _QUEUES:
            return self._queue(op, args, whole)
        if op in {"+", "-"} and args[1] == Const(0):
            return self.value(args[0])
        if op == "+" and args[0] == Const(0):
            return self.value(args[1])
        values = [self.value(a) for a in args]
        if op in _ARITHMETIC:
            return _binary(op, values) if self.fits(whole) else self._watched(f"qm_{_ARITHMETIC[op]}_watched", *values)
        if op in {"//", "%"}:
            low, high = self.reach(args[1])
            sure = (low > 0 or high < -1) and self.fits(args[0])
            name = "qm_div" if op == "//" else "qm_mod"
            return _call(name, *values) if sure else self._watched(f"{name}_watched", *values)
        if op in {"<<", ">>"}:
            sure = self.inside(args[1], 0, 63) and self.fits(whole)
            if op == ">>":
                return _binary(op, values) if sure else self._watched("qm_right_watched", *values)
            return _call("qm_left", *values) if sure else self._watched("qm_left_watched", *values)
        if op == "andnot":
            return Code(f"{values[0].within(_BINARY)} & ~{values[1].within(_UNARY)}", _BINARY)
        if op in {"&", "|", "^"}:
            return _binary(op, values)
        raise AssertionError(f"no code for {op}")

    def _queue(self, op: str, args: tuple[Expr, ...], whole: Apply) -> Code:
        """Queues and packets are not negative, and a position in a queue is not either."""
        values = [self.within(a, 0, INT64[1]) for a in args]
        if op in _GROWING and not self.fits(whole):
            return self._watched(f"{_QUEUES[op]}_watched", *values)
        return _call(_QUEUES[op], *values)

    def _watched(self, name: str, *values: Code) -> Code:
        return Code(f"{name}(out, {self.trap()}, {', '.join(map(str, values))})")


def _truth(code: Code) -> Code:
    """Return a condition as a number. Truth is an int in C: here it is one of 64 bits, and 0 or 1."""
    sure = code.level in {COMPARE, _AND, _OR} or code.text.startswith("!")
    return Code(f"(int64_t){'' if sure else '!!'}({code})", _UNARY)


def _call(name: str, *values: Code) -> Code:
    return Code(f"{name}({', '.join(map(str, values))})")


def _binary(op: str, values: list[Code]) -> Code:
    """All operators of numbers count as binding alike, so that nobody needs to know C's order of them."""
    return Code(f"{values[0].within(_BINARY)} {op} {values[1].within(_BINARY)}", _BINARY)


def number(value: int) -> Code:
    """Return a number as C writes it."""
    if value == INT64[0]:
        return Code("INT64_MIN")
    text = str(value) if abs(value) < 1 << 31 else f"INT64_C({value})"
    return Code(text, _UNARY if value < 0 else _ATOM)


def unsigned(value: int) -> str:
    """Return a pattern of bits as C writes it."""
    return f"UINT64_C({value:#x})"
