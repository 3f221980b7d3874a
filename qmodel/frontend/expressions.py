"""Compiling expressions: names, operators and comparisons, alike in functions and in properties.

What differs is how a shared variable is read: a function makes a step of it, a property just looks.
"""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from qmodel.frontend.constants import MOST_BITS, Bit, Constant, bit_names, bits_with, evaluate
from qmodel.frontend.diagnostics import SpecError, did_you_mean
from qmodel.frontend.source import find_constant
from qmodel.frontend.values import AMBIGUOUS, NONE, UNKNOWN, WORDS, Scope, Value, ValueKind, number, truth
from qmodel.ir.expr import BOOL, Const, Domain, Expr, Local, Lookup, Own, Read, apply
from qmodel.ir.program import Site

if TYPE_CHECKING:
    from qmodel.frontend.configure import Configuration

_BINARY: dict[type[ast.operator], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.BitAnd: "&",
    ast.BitOr: "|",
    ast.BitXor: "^",
    ast.LShift: "<<",
    ast.RShift: ">>",
}
_COMPARE: dict[type[ast.cmpop], str] = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Is: "==",
    ast.IsNot: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
}
_REFUSED: dict[type[ast.operator], tuple[str, str]] = {
    ast.Div: ("/", "write `//`"),
    ast.Pow: ("**", "write a product with `*`, or a shift with `<<`"),
}
_CONDITIONS: dict[ValueKind, str] = {
    "lock": "ask spin_is_locked() whether somebody holds it",
    "array": "name one of its elements: m.NAME[index]",
    "bit": "ask test_bit() whether it is set",
}
"""What to write for what is no condition."""
FIRST = ".first"
"""The name of a reference to the head of a list."""
SCALARS: set[ValueKind] = {"bool", "int", "flags", "skb"}


class Expressions(ABC):
    """Turns the syntax of an expression into a Value. `scopes` has the innermost function last."""

    hint = "give it a value first, or write m.NAME for what the model declares"
    """What to write instead of an unknown name that is like no other."""

    def __init__(self, config: Configuration) -> None:
        self.config = config
        self.scopes: list[Scope] = []

    @abstractmethod
    def load(self, reference: Value, node: ast.expr) -> Value:
        """Read a shared scalar."""

    @abstractmethod
    def call(self, node: ast.Call) -> Value:
        """Compile a call."""

    @abstractmethod
    def length(self, queue: Value, node: ast.expr) -> Value:
        """Return the length of a list."""

    @abstractmethod
    def logic(self, node: ast.BoolOp) -> Value:
        """Compile `and` and `or`."""

    @abstractmethod
    def element_bounds(self, index: Expr, size: int, node: ast.expr) -> None:
        """Make sure that an index is within an array."""

    @property
    def scope(self) -> Scope:
        """The innermost function."""
        return self.scopes[-1]

    def error(self, node: ast.AST, message: str, remedy: str = "") -> SpecError:
        """Return an error at a place of the innermost function, for the caller to raise."""
        return self.scope.module.file.error(node, message, remedy)

    def site(self, node: ast.AST) -> Site:
        """Return the place of a piece of syntax."""
        file = self.scope.module.file
        line, column, end = file.place(node)
        stack = tuple(scope.function for scope in self.scopes)
        return Site(file.name, line, column, end, self.scope.function, file.line(line).strip(), stack)

    # --- names ------------------------------------------------------------------------------------------------------

    def evaluate(self, node: ast.expr) -> Value:
        """Compile an expression to a value; shared scalars in it are read, in the order of the text."""
        match node:
            case ast.Constant(value=bool() as value):
                return truth(Const(int(value)))
            case ast.Constant(value=int() as value):
                return number(value)
            case ast.Constant(value=None):
                return NONE
            case ast.Name() | ast.Attribute() | ast.Subscript():
                found = self.reference(node)
                return self.load(found, node) if isinstance(found.place, Read) and found.kind in SCALARS else found
            case ast.BinOp():
                return self._binary(node, node.left, node.op, node.right)
            case ast.UnaryOp():
                return self._unary(node)
            case ast.Compare():
                return self._compare(node)
            case ast.BoolOp():
                return self.logic(node)
            case ast.Call():
                return self.call(node)
            case ast.IfExp():
                return self.conditional(node)
            case ast.NamedExpr():
                return self.named(node)
        match node:
            case ast.Constant(value=str()) | ast.JoinedStr():
                remedy = "text stands in check(), choose() and doc= only"
            case ast.Constant():
                remedy = "numbers are whole: write 3"
            case ast.Tuple() | ast.List() | ast.Set() | ast.Dict():
                remedy = "use variables one by one, or declare an Array"
            case _:
                remedy = "use names, whole numbers, operators and calls"
        raise self.error(node, f"`{ast.unparse(node)}` has no meaning in a model", remedy)

    def conditional(self, node: ast.IfExp) -> Value:
        """Compile `a if c else b`."""
        raise self.error(node, "a conditional expression has no meaning here", "write an `if` statement")

    def named(self, node: ast.NamedExpr) -> Value:
        """Compile `name := value`."""
        raise self.error(node, "nothing can be assigned here", "write the value where it is used")

    def reference(self, node: ast.expr) -> Value:
        """Return what a name, an attribute or an element stands for, without reading it."""
        match node:
            case ast.Name(id=name):
                return self._name(node, name)
            case ast.Attribute(value=ast.Name(id=owner), attr=attribute) if owner == self.scope.model:
                return self._member(node, attribute)
            case ast.Attribute(value=ast.Name(id=owner)) if bit_names(self.scope.module, owner):
                return self._constant(node, evaluate(self.scope.module, node, lambda _: None))
            case ast.Attribute(value=owner_node, attr=attribute):
                return self._packet_attribute(node, self.evaluate(owner_node), attribute)
            case ast.Subscript(value=array_node, slice=index_node):
                return self._element(node, array_node, index_node)
        return self.evaluate(node)

    def _name(self, node: ast.Name, name: str) -> Value:
        if name in self.scope.names:
            if self.scope.names[name] is UNKNOWN:
                raise SpecError(())  # what is wrong with it has been told
            if self.scope.names[name] is AMBIGUOUS:
                message = f"`{name}` does not stand for the same shared variable on every way to here"
                raise self.error(node, message, "call a function with it on each of the ways")
            return self.scope.names[name]
        if name == self.scope.model:
            raise self.error(node, "the model itself is no value", f"write `{name}.NAME`")
        if find_constant(self.scope.module, name):
            return self._constant(node, evaluate(self.scope.module, node, lambda _: None))
        known = [*self.scope.names, *self.scope.module.constants]
        remedy = did_you_mean(name, known, self.hint)
        if name in self.config.variant.cls.members:
            remedy = f"write `{self.scope.model}.{name}`"
        elif name in self.scope.module.classes:
            remedy = f"write `{name}.NAME`"
        elif any(name == scope.model for scope in self.scopes):
            remedy = f"the model is called `{self.scope.model}` in this function"
        elif owner := bits_with(self.scope.module, name):
            remedy = f"write {owner}.{name}"
        elif name in self.scope.module.from_lang:
            remedy = f"call it: {name}(…)"
        raise self.error(node, f"unknown name `{name}`", remedy)

    def _constant(self, node: ast.expr, value: Constant) -> Value:
        if isinstance(value, Bit):
            return Value("bit", Const(value.number), name=value.name)
        if isinstance(value, bool):
            return truth(Const(int(value)))
        if isinstance(value, int):
            return number(value)
        raise self.error(node, f"`{ast.unparse(node)}` is no number", "use numbers and bits in functions")

    def _member(self, node: ast.Attribute, name: str) -> Value:
        config = self.config
        if name in config.variables and not config.variables[name].ghost:
            variable = config.variables[name]
            if variable.size is not None:
                return Value("array", domain=variable.domain, name=name)
            return _shared(name, variable.domain, None)
        if name in config.constants:
            value = config.constants[name]
            if isinstance(value, tuple):
                raise self.error(node, f"`{name}` has a number for each CPU", f"write `{name}[cpu]`")
            return truth(Const(int(value))) if isinstance(value, bool) else number(value)
        if name in config.handlers:
            return Value("handler", name=name)
        if name in config.variant.functions:
            raise self.error(node, f"`{name}` is a function", f"call it: `{self.scope.model}.{name}(…)`")
        self.refuse_decorated(node, name)
        variables = [n for n, v in config.variables.items() if not v.ghost]
        known = [*variables, *config.constants, *config.handlers, *config.variant.functions]
        raise self.error(node, f"the model has no `{name}`", did_you_mean(name, known))

    def refuse_decorated(self, node: ast.AST, name: str) -> None:
        """Refuse the name of a thread, a property or a scenario: functions do not use these."""
        for decorated in self.config.variant.decorated:
            if decorated.function == name:
                remedy = "it runs by itself: move what is needed here too into a function of its own"
                if decorated.decorator == "softirq":
                    remedy = f"raise it: raise_softirq({self.scope.model}.{name})"
                raise self.error(node, f"`{name}` is marked @{decorated.decorator}", remedy)

    def _packet_attribute(self, node: ast.Attribute, owner: Value, attribute: str) -> Value:
        if owner.kind == "queue" and attribute == "first" and isinstance(owner.place, Read):
            return Value("skb", place=owner.place, domain=self.config.skb_domain, name=FIRST)
        if owner.kind != "skb":
            remedy = f"shared variables are attributes of `{self.scope.model}`"
            raise self.error(node, f"{WORDS[owner.kind]} has no `{attribute}`", remedy)
        tables = {"flow": self.config.packets.flows, "index": self.config.packets.indices}
        if attribute not in tables:
            raise self.error(node, f"a packet has no `{attribute}`", did_you_mean(attribute, tables))
        self.use_packet(owner.value, node)
        table = (0, *tables[attribute])
        return Value("int", Lookup(table, owner.value), domain=Domain("int", 0, max(table)))

    def use_packet(self, packet: Expr, node: ast.expr) -> None:  # noqa: B027  a property may look at any packet
        """Make sure that a packet may be looked at."""

    def _element(self, node: ast.Subscript, array_node: ast.expr, index_node: ast.expr) -> Value:
        if isinstance(array_node, ast.Attribute) and isinstance(array_node.value, ast.Name):
            value = self.config.constants.get(array_node.attr)
            if array_node.value.id == self.scope.model and isinstance(value, tuple):
                index = self.as_number(index_node)
                self.element_bounds(index, len(value), index_node)
                return Value("int", _lookup(value, index), domain=Domain("int", min(value), max(value)))
        array = self.reference(array_node)
        if array.kind != "array":
            remedy = "only an Array or PerCpu variable has elements"
            raise self.error(node, f"`{ast.unparse(array_node)}` is {WORDS[array.kind]}", remedy)
        index = self.as_number(index_node)
        variable = self.config.variables[array.name]
        assert variable.size is not None
        self.element_bounds(index, variable.size, index_node)
        return _shared(array.name, variable.domain, index)

    # --- operators --------------------------------------------------------------------------------------------------

    def as_number(self, node: ast.expr) -> Expr:
        """Compile an expression that must be a number (a truth value counts as 0 or 1, a bit as its number)."""
        return self.number_of(self.evaluate(node), node)

    def number_of(self, value: Value, node: ast.expr) -> Expr:
        """Return a value as a number."""
        if value.kind not in {"int", "bool", "flags", "bit"}:
            raise self.error(node, f"`{ast.unparse(node)}` is {WORDS[value.kind]}", "write a number here")
        return value.value

    def as_truth(self, node: ast.expr) -> Expr:
        """Compile a condition: numbers, words, packets and lists count as true where they are not 0, NULL, empty."""
        return self.truth_of(self.evaluate(node), node)

    def truth_of(self, value: Value, node: ast.expr) -> Expr:
        """Return whether a value counts as true."""
        if value.kind == "queue":
            if isinstance(value.place, Local):
                return apply("!=", value.place, Const(0))
            return apply("!=", self.length(value, node).value, Const(0))
        if value.kind == "bool":
            return value.value
        if value.kind in {"int", "flags", "skb", "none"}:
            return apply("!=", value.value, Const(0))
        remedy = _CONDITIONS.get(value.kind, "write a condition here: a comparison, or a call that returns one")
        raise self.error(node, f"`{ast.unparse(node)}` is {WORDS[value.kind]}", remedy)

    def _binary(self, node: ast.expr, left: ast.expr, op: ast.operator, right: ast.expr) -> Value:
        first, second = (self.evaluate(left), left), (self.evaluate(right), right)
        return self.operate(node, op, first, second)

    def operate(
        self, node: ast.expr, op: ast.operator, first: tuple[Value, ast.expr], second: tuple[Value, ast.expr]
    ) -> Value:
        """Apply an arithmetic operator to two values, each with where it stands."""
        name = _BINARY.get(type(op))
        if name is None:
            sign, remedy = _REFUSED.get(type(op), ("@", "write a product with `*`"))
            raise self.error(node, f"`{sign}` has no meaning for whole numbers", remedy)
        if name in {"&", "|", "^"} and {first[0].kind, second[0].kind} == {"flags", "bit"}:
            raise self._no_mask(*(first if first[0].kind == "bit" else second))
        left, right = self.number_of(*first), self.number_of(*second)
        if name in {"//", "%"}:
            if right == Const(0):
                raise self.error(node, "this divides by 0", "divide by another number")
            self.outside(node, apply("==", right, Const(0)), "division by 0")
        if name in {"<<", ">>"}:
            return self.shift(node, name, left, right)
        return Value("int", apply(name, left, right))

    def shift(self, node: ast.expr, name: str, value: Expr, bits: Expr) -> Value:
        """Shift a value by a number of bits."""
        if isinstance(bits, Const) and not 0 <= bits.value <= MOST_BITS:
            raise self.error(node, f"this shifts by {bits.value} bits", f"shift by 0 to {MOST_BITS} bits")
        few = apply("or", apply("<", bits, Const(0)), apply(">", bits, Const(MOST_BITS)))
        self.outside(node, few, f"a shift by less than 0 or more than {MOST_BITS} bits")
        return Value("int", apply(name, value, bits))

    def outside(self, node: ast.expr, cond: Expr, what: str) -> None:
        """Make sure that an operator is defined: it is not where the condition holds."""
        if cond != Const(0):
            raise self.error(node, f"{what} is not ruled out", "use a constant here: a property is not checked")

    def _no_mask(self, bit: Value, node: ast.expr) -> SpecError:
        name, number = ast.unparse(node), bit.value
        assert isinstance(number, Const)
        return self.error(node, f"`{name}` is the number of a bit, {number.value}, and no mask", f"write BIT({name})")

    def _unary(self, node: ast.UnaryOp) -> Value:
        match node.op:
            case ast.Not():
                return truth(apply("not", self.as_truth(node.operand)))
            case ast.USub():
                return Value("int", apply("-", Const(0), self.as_number(node.operand)))
            case ast.UAdd():
                return Value("int", self.as_number(node.operand))
        raise self.error(node, "`~` has no meaning for a bounded number", "use `& mask`, or clear_bit()")

    def _compare(self, node: ast.Compare) -> Value:
        if len(node.ops) > 1:
            raise self.error(node, "a chain of comparisons reads a variable twice", "write them apart, with `and`")
        op, right_node = node.ops[0], node.comparators[0]
        if type(op) not in _COMPARE:
            raise self.error(node, "`in` has no meaning here", "compare with ==, !=, <, <=, >, >= or `is`")
        left, right = self.evaluate(node.left), self.evaluate(right_node)
        for value, place in ((left, node.left), (right, right_node)):
            if value.kind not in {"int", "bool", "flags", "skb", "none", "bit"}:
                remedy = "compare numbers, packets, or the length of a list: len()"
                raise self.error(place, f"`{ast.unparse(place)}` is {WORDS[value.kind]}", remedy)
        if {left.kind, right.kind} == {"flags", "bit"}:
            raise self._no_mask(*((left, node.left) if left.kind == "bit" else (right, right_node)))
        packets = [v.kind in {"skb", "none"} for v in (left, right)]
        if packets[0] != packets[1]:
            raise self.error(node, "a packet is compared with a number", "compare with a packet or None")
        if packets[0] and _COMPARE[type(op)] not in {"==", "!="}:
            raise self.error(node, "packets have no order", "compare with == or `is`, or compare their `index`")
        return truth(apply(_COMPARE[type(op)], left.value, right.value))


def _lookup(table: tuple[int, ...], index: Expr) -> Expr:
    return Const(table[index.value]) if isinstance(index, Const) else Lookup(table, index)


def _shared(name: str, domain: Domain, index: Expr | None) -> Value:
    kind: ValueKind = "int" if domain.kind == "place" else domain.kind
    return Value(kind, place=Read(name, index), domain=domain, name=name)


OWN_CPU = Value("int", Own("cpu"))
FALSE = Value("bool", Const(0), domain=BOOL)

__all__ = ["FALSE", "FIRST", "OWN_CPU", "SCALARS", "Expressions", "Local"]
