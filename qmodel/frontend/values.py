"""What an expression of a specification stands for while it is being compiled, and where names are looked up."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from qmodel.ir.expr import BOOL, Const, Domain, Expr, Local, Read

if TYPE_CHECKING:
    from qmodel.frontend.source import Module
    from qmodel.ir.graph import Ends

ValueKind = Literal["bool", "int", "flags", "skb", "queue", "none", "lock", "array", "handler", "bit", "void"]

WORDS: dict[ValueKind, str] = {
    "bool": "a truth value",
    "int": "a number",
    "flags": "a word of bits",
    "skb": "a packet",
    "queue": "a list of packets",
    "none": "None",
    "lock": "a lock",
    "array": "an array",
    "handler": "a softirq",
    "bit": "a bit",
    "void": "nothing",
}
"""How each kind is called in a message."""


@dataclass(frozen=True, slots=True)
class Value:
    """The meaning of an expression.

    expr: the value, where there is one already. place: where it is kept, for what can be stored to or waited for.
    domain: how it is printed, and its bounds as far as they are declared. name: of an array, a handler or a bit.
    """

    kind: ValueKind
    expr: Expr | None = None
    place: Read | Local | None = None
    domain: Domain | None = None
    name: str = ""

    @property
    def value(self) -> Expr:
        """The expression, for a kind that has one."""
        assert self.expr is not None
        return self.expr


NONE = Value("none", Const(0))
VOID = Value("void")
UNKNOWN = Value("void", name="unknown")
"""What a local stands for after a mistake where it was assigned."""
AMBIGUOUS = Value("void", name="ambiguous")
"""What a name stands for that means one shared variable on one way to here, and another or none on another way."""


def number(value: int) -> Value:
    """Return a constant number."""
    return Value("int", Const(value), domain=Domain("int", value, value))


def truth(expr: Expr) -> Value:
    """Return a truth value."""
    return Value("bool", expr, domain=BOOL)


@dataclass(slots=True)
class Scope:
    """A function that is being inlined: its module, the name of the model in it, and its names.

    result: the local that takes what it returns, once a return has been seen. returns: open ends of its returns.
    failed: there is a mistake in it, so that nothing is known of what it returns.
    """

    function: str
    module: Module
    model: str
    names: dict[str, Value] = field(default_factory=dict)
    result: Value | None = None
    returns: Ends = field(default_factory=list)
    returned: list[Value] = field(default_factory=list)
    given: frozenset[Local] = frozenset()
    failed: bool = False


@dataclass(slots=True)
class Loop:
    """A loop that is being compiled: the node where it begins again, and the open ends of its breaks."""

    head: int
    breaks: Ends = field(default_factory=list)
