"""Writing expressions in Python. An atom is a number that is known already, or the code of one."""

from __future__ import annotations

from abc import ABC, abstractmethod

from qmodel.ir.expr import OPERATORS, Apply, At, Const, Expr, Local, Lookup, Read

Atom = int | str

_SYMBOLS = {"+", "-", "*", "//", "%", "&", "|", "^", "<<", ">>", "==", "!=", "<", "<=", ">", ">="}


def packets(bits: int, queue: int) -> list[int]:
    """Return the packets of a queue value: used by the generated code for what is rare."""
    mask, found = (1 << bits) - 1, []
    while queue:
        found.append(queue & mask)
        queue >>= bits
    return found


class ExpressionWriter(ABC):
    """Turns expressions into code; what a variable is, a subclass knows."""

    def __init__(self, bits: int) -> None:
        self.bits = bits

    @abstractmethod
    def local(self, name: str) -> Atom:
        """Return the code of a local."""

    @abstractmethod
    def read(self, place: Read) -> Atom:
        """Return the code of a shared variable."""

    @abstractmethod
    def at(self, part: At) -> Atom:
        """Return the code that tells whether a thread is at one of some places."""

    def value(self, expr: Expr) -> Atom:
        """Return the code of a value; a truth value may be Python's True and False, which are 1 and 0."""
        match expr:
            case Const(value):
                return value
            case Local(name):
                return self.local(name)
            case Read():
                return self.read(expr)
            case At():
                return self.at(expr)
            case Lookup(table, index):
                at = self.value(index)
                return table[at] if isinstance(at, int) else f"{table}[{at}]"
            case Apply(op, args):
                return self._apply(op, args)
            case _:  # Own and Inside are gone by now
                raise AssertionError("the expression was not bound to a thread")

    def condition(self, expr: Expr) -> Atom:
        """Return code that is true where the value is not 0."""
        if isinstance(expr, Apply):
            op, args = expr.op, expr.args
            if op in {"and", "or"}:
                return self._logic(op, args)
            if op == "not":
                inner = self.condition(args[0])
                return int(not inner) if isinstance(inner, int) else f"not ({inner})"
            if op == "!=" and args[1] == Const(0):
                return self.condition(args[0])
            if op == "==" and args[1] == Const(0):
                inner = self.condition(args[0])
                return int(not inner) if isinstance(inner, int) else f"not ({inner})"
        return self.value(expr)

    def _logic(self, op: str, args: tuple[Expr, ...]) -> Atom:
        parts = []
        for arg in args:
            code = self.condition(arg)
            if isinstance(code, int):
                if bool(code) == (op == "or"):
                    return int(op == "or")
                continue
            parts.append(f"({code})")
        return f" {op} ".join(parts) if parts else int(op == "and")

    def _apply(self, op: str, args: tuple[Expr, ...]) -> Atom:
        if op in {"and", "or", "not"}:
            code = self.condition(Apply(op, args))
            return code if isinstance(code, int) else f"(True if {code} else False)"
        if op == "if":
            cond = self.condition(args[0])
            if isinstance(cond, int):
                return self.value(args[1] if cond else args[2])
            return f"({self.value(args[1])} if {cond} else {self.value(args[2])})"
        values = [self.value(a) for a in args]
        if all(isinstance(v, int) for v in values):
            try:
                return OPERATORS[op](self.bits, tuple(v for v in values if isinstance(v, int)))
            except (ArithmeticError, ValueError):
                return self._code(op, values)  # a check before it ends the step; this is never run
        return self._code(op, values)

    def _code(self, op: str, v: list[Atom]) -> str:
        bits, mask = self.bits, (1 << self.bits) - 1
        if op in _SYMBOLS:
            return f"({v[0]} {op} {v[1]})"
        match op:
            case "min" | "max":
                return f"{op}({', '.join(map(str, v))})"
            case "andnot":
                return f"({v[0]} & ~{v[1]})"
            case "len":
                return self._length(v[0])
            case "head":
                return f"({v[0]} & {mask})"
            case "rest":
                return f"({v[0]} >> {bits})"
            case "push":
                return f"({v[0]} << {bits} | {v[1]})"
            case "append":
                return f"({v[0]} | {v[1]} << {bits} * {self._length(v[0])})"
            case "item":
                return f"({v[0]} >> {bits} * {v[1]} & {mask})"
            case "in":
                return f"({v[0]} in packets({bits}, {v[1]}))"
            case "reverse":
                return f"join({bits}, packets({bits}, {v[0]})[::-1])"
        raise AssertionError(f"no code for {op}")

    def _length(self, queue: Atom) -> str:
        return (
            f"({queue}).bit_length()"
            if self.bits == 1
            else f"((({queue}).bit_length() + {self.bits - 1}) // {self.bits})"
        )


def join(bits: int, items: list[int]) -> int:
    """Return the queue value of some packets, head first."""
    return sum(item << bits * i for i, item in enumerate(items))
