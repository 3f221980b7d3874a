"""Working out what is known before the search begins: defaults, sizes, bounds, bit names."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from qmodel.frontend.diagnostics import did_you_mean
from qmodel.frontend.source import Module, find_class, find_constant, is_bits, model_class

Resolve = Callable[[str], "Constant | None"]


@dataclass(frozen=True, slots=True)
class Bit:
    """A member of a class of Bits."""

    owner: str
    name: str
    number: int


@dataclass(frozen=True, slots=True)
class Declared:
    """The name of a variable or function of the model."""

    name: str


@dataclass(frozen=True, slots=True)
class BitNames:
    """A class of Bits: its members, lowest bit first."""

    owner: str
    names: tuple[str, ...]


Constant = int | bool | str | None | tuple[Any, ...] | Bit | Declared | BitNames

_BINARY: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
    ast.BitOr: operator.or_,
    ast.BitAnd: operator.and_,
    ast.BitXor: operator.xor,
}
MOST_BITS = 64
"""No number is shifted by more."""
FUNCTIONS: dict[str, Callable[..., int]] = {"len": len, "min": min, "max": max, "sum": sum}


def bit_names(module: Module, name: str) -> BitNames | None:
    """Return the bits of a class of Bits that a name stands for in a module, else None. Raises SpecError."""
    found = find_class(module, name)
    if found is None or not is_bits(found[1]):
        return None
    home, node = found
    members: dict[int, str] = {}
    for statement in node.body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=member)], value=value):
                number = evaluate(home, value, lambda _: None)
                if not isinstance(number, int) or number < 0 or number in members or member in members.values():
                    remedy = "give each bit a name and a number of its own: 0, 1, 2 …"
                    raise home.file.error(statement, f"`{ast.unparse(statement)}` is no new bit", remedy)
                members[number] = member
            case ast.Expr(value=ast.Constant()):
                pass
            case _:
                raise home.file.error(statement, "a class of Bits has members only", "write `NAME = number`")
    if not members:
        raise home.file.error(node, f"`{name}` has no bits", "write `NAME = 0` in its body")
    if sorted(members) != list(range(len(members))):
        raise home.file.error(node, f"the bits of `{name}` have gaps", "number them 0, 1, 2 …")
    return BitNames(name, tuple(members[i] for i in range(len(members))))


def bits_with(module: Module, member: str) -> str:
    """Return a class of Bits that a module knows and that has such a member, or nothing."""
    for name in [*module.classes, *module.imported]:
        found = find_class(module, name)
        if found is not None and is_bits(found[1]):
            targets = [t for s in found[1].body if isinstance(s, ast.Assign) for t in s.targets]
            if any(isinstance(t, ast.Name) and t.id == member for t in targets):
                return name
    return ""


def evaluate(module: Module, node: ast.expr, resolve: Resolve) -> Constant:
    """Return the value of an expression. resolve: what a name of the model stands for. Raises SpecError."""
    match node:
        case ast.Constant(value=int() | str() | None as value):
            return value
        case ast.Name(id=name):
            return _name(module, node, name, resolve)
        case ast.Attribute(value=ast.Name() | ast.Attribute() as owner_node, attr="total") if isinstance(
            total := evaluate(module, owner_node, resolve), tuple
        ):
            return sum(total)
        case ast.Attribute(value=ast.Name(id=owner), attr=member) if model_class(module, owner) is not None:
            # `Base.cpus` in the body of a class: a member of the model itself, by inheritance.
            return _name(module, ast.copy_location(ast.Name(member), node), member, resolve)
        case ast.Attribute(value=ast.Name(id=owner), attr=member):
            bits = bit_names(module, owner)
            if bits is None:
                remedy = f"write `{member}` alone" if member in _declared(module) else "write CLASS.BIT"
                raise module.file.error(node, f"`{owner}` is no class of Bits", remedy)
            if member not in bits.names:
                raise module.file.error(node, f"`{owner}` has no bit `{member}`", did_you_mean(member, bits.names))
            return Bit(owner, member, bits.names.index(member))
        case ast.Tuple(elts=items) | ast.List(elts=items):
            return tuple(evaluate(module, item, resolve) for item in items)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_number(module, operand, resolve)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return not evaluate(module, operand, resolve)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
            first, second = _number(module, left, resolve), _number(module, right, resolve)
            if isinstance(op, ast.FloorDiv | ast.Mod) and second == 0:
                raise module.file.error(node, "this divides by 0", "divide by another number")
            if isinstance(op, ast.LShift | ast.RShift) and not 0 <= second <= MOST_BITS:
                raise module.file.error(node, f"this shifts by {second} bits", f"shift by 0 to {MOST_BITS} bits")
            return _BINARY[type(op)](first, second)
        case ast.IfExp(test=test, body=body, orelse=orelse):
            return evaluate(module, body if evaluate(module, test, resolve) else orelse, resolve)
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in FUNCTIONS:
            values = [evaluate(module, a, resolve) for a in args]
            try:
                return FUNCTIONS[name](*values)
            except (TypeError, ValueError):
                raise module.file.error(node, f"`{name}` cannot work on this", "give it numbers") from None
    raise module.file.error(
        node,
        f"`{ast.unparse(node)}` is not known before the search begins",
        "use numbers, parameters, bits, and + - * // % on them",
    )


def _number(module: Module, node: ast.expr, resolve: Resolve) -> int:
    value = evaluate(module, node, resolve)
    if isinstance(value, Bit):
        return value.number
    if not isinstance(value, int):
        raise module.file.error(node, f"`{ast.unparse(node)}` is no number", "use a number or a parameter here")
    return int(value)


def _name(module: Module, node: ast.Name, name: str, resolve: Resolve) -> Constant:
    value = resolve(name)
    if value is not None:
        return value
    bits = bit_names(module, name)
    if bits is not None:
        return bits
    found = find_constant(module, name)
    if found is not None:
        return evaluate(*found, lambda _: None)
    known = [*module.constants, *module.classes, *module.imported, *_declared(module)]
    raise module.file.error(node, f"unknown name `{name}`", did_you_mean(name, known, "define it above, or import it"))


def _declared(module: Module) -> list[str]:
    """Return the names that the models of a file declare: what may have been meant by one that is unknown."""
    found: list[str] = []
    for node in module.classes.values():
        for statement in node.body:
            match statement:
                case ast.Assign(targets=[ast.Name(id=name)]) if not is_bits(node):
                    found.append(name)
                case _:
                    pass
    return found
