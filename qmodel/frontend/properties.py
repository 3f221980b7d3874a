"""Compiling properties and measures: expressions over shared variables that just look, and take no step."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from qmodel.frontend.diagnostics import did_you_mean
from qmodel.frontend.expressions import FIRST, Expressions
from qmodel.frontend.values import WORDS, Scope, Value, truth
from qmodel.ir.expr import Const, Expr, Inside, Read, apply, reads_of

if TYPE_CHECKING:
    from qmodel.frontend.configure import Configuration
    from qmodel.frontend.source import Owned


class PropertyCompiler(Expressions):
    """Compiles functions that are one `return`, and what they call."""

    hint = "a property sees what the model declares and nothing else: m.NAME"

    def __init__(self, config: Configuration, scopes: list[Scope] | None = None) -> None:
        super().__init__(config)
        self.scopes = scopes or []

    def function(self, owned: Owned, arguments: list[Value] | None = None) -> tuple[Value, ast.expr]:
        """Compile a function to the value that it returns, and say where that stands. Raises SpecError."""
        node = owned.node
        assert isinstance(node, ast.FunctionDef)
        file = owned.module.file
        body = [s for s in node.body if not (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))]
        match body:
            case [ast.Return(value=ast.expr() as returned)]:
                pass
            case _:
                where = body[0] if body else node
                remedy = "write `return CONDITION`; helpers may be functions of the same form"
                raise file.error(where, f"`{node.name}` is not one `return`", remedy)
        names = [a.arg for a in node.args.args]
        given = arguments or []
        if len(names) != len(given) + 1:
            remedy = f"write `def {node.name}(m):`"
            raise file.error(node, "a property takes the model and nothing else", remedy)
        self.scopes.append(Scope(node.name, owned.module, names[0], dict(zip(names[1:], given, strict=True))))
        value = self.evaluate(returned)
        if value.kind in {"queue", "none", "lock", "array", "handler"}:
            raise self.error(
                returned, f"`{ast.unparse(returned)}` is {WORDS[value.kind]}", "return a number or a condition"
            )
        self.scopes.pop()
        return value, returned

    def load(self, reference: Value, node: ast.expr) -> Value:  # noqa: ARG002  the interface of Expressions
        """Return what a shared scalar is, without a step."""
        assert isinstance(reference.place, Read)
        if reference.name == FIRST:
            return Value("skb", apply("head", reference.place), None, reference.domain)
        return Value(reference.kind, reference.place, None, reference.domain, reference.name)

    def length(self, queue: Value, node: ast.expr) -> Value:
        """Return the length of a shared list."""
        return Value("int", apply("len", self._list(queue, node)))

    def _list(self, queue: Value, node: ast.expr) -> Expr:
        if queue.kind != "queue" or not isinstance(queue.place, Read):
            raise self.error(node, f"`{ast.unparse(node)}` is {WORDS[queue.kind]}", "name a shared list")
        return queue.place

    def logic(self, node: ast.BoolOp) -> Value:
        """Compile `and` and `or`."""
        op = "and" if isinstance(node.op, ast.And) else "or"
        return truth(apply(op, *(self.as_truth(v) for v in node.values)))

    def conditional(self, node: ast.IfExp) -> Value:
        """Compile `a if c else b`."""
        cond, first, second = self.as_truth(node.test), self.evaluate(node.body), self.evaluate(node.orelse)
        if first.kind != second.kind:
            raise self.error(node, "the two values are of different kinds", "make them alike")
        return Value(first.kind, apply("if", cond, first.value, second.value))

    def element_bounds(self, index: Expr, size: int, node: ast.expr) -> None:
        """An index must be a constant within the array."""
        if not isinstance(index, Const) or not 0 <= index.value < size:
            raise self.error(
                node, f"this index is not within 0 to {size - 1} in every state", "use a constant index, or all()"
            )

    def call(self, node: ast.Call) -> Value:
        """Compile a call of what may stand in a property."""
        match node.func:
            case ast.Attribute(value=ast.Name(id=owner), attr=name) if owner == self.scope.model:
                functions = self.config.variant.functions
                if name not in functions:
                    self.refuse_decorated(node, name)
                    raise self.error(node, f"the model has no function `{name}`", did_you_mean(name, functions))
                called = functions[name].node
                assert isinstance(called, ast.FunctionDef)
                names = [a.arg for a in called.args.args[1:]]
                if node.keywords or len(node.args) != len(names):
                    takes = f"`{name}` takes {len(names)} argument{'s' * (len(names) != 1)} beside the model"
                    raise self.error(node, takes, f"write {owner}.{name}({', '.join(names)})")
                if any(scope.function == name for scope in self.scopes):
                    raise self.error(node, f"`{name}` calls itself", "write it out")
                return self.function(functions[name], [self.evaluate(a) for a in node.args])[0]
            case ast.Name(id="inside") if node.args and not node.keywords:
                return Value("int", Inside(tuple(self._function_name(a) for a in node.args)))
            case ast.Name(id="all" | "any" | "sum" as name):
                return self._quantified(node, name)
            case ast.Name(id="min" | "max" as name) if len(node.args) < 2 or node.keywords:
                raise self.error(node, f"`{name}` takes two numbers or more", f"write {name}(number, number)")
            case ast.Name(id="min" | "max" as name):
                return Value("int", apply(name, *(self.as_number(a) for a in node.args)))
            case ast.Name(id=name) if name in _LOOKS:
                if len(node.args) != len(_LOOKS[name]) or node.keywords:
                    takes = ", ".join(_LOOKS[name])
                    raise self.error(node, f"`{name}` takes: {takes}", f"write {name}({takes})")
                return self._look(node, name)
            case ast.Name(id=name):
                known = [*_LOOKS, "inside", "all", "any", "sum", "min", "max"]
                remedy = "a condition here only looks, and takes no step: " + ", ".join(sorted(known))
                raise self.error(node, f"`{name}` has no meaning here", remedy)
        remedy = "a property only looks: write a comparison"
        raise self.error(node, f"`{ast.unparse(node.func)}` cannot be called here", remedy)

    def _function_name(self, node: ast.expr) -> str:
        known = [*self.config.variant.functions, *self.config.threads, *self.config.handlers]
        match node:
            case ast.Attribute(value=ast.Name(id=owner), attr=name) if owner == self.scope.model and name in known:
                return name
        remedy = did_you_mean(ast.unparse(node).rpartition(".")[2], known)
        raise self.error(node, "inside() takes a function of the model", remedy)

    def _look(self, node: ast.Call, name: str) -> Value:
        first = node.args[0]
        match name:
            case "len" | "skb_queue_len":
                found = self.reference(first)
                if found.kind == "array":
                    return Value("int", Const(self.config.variables[found.name].size or 0))
                return self.length(found, first)
            case "skb_queue_empty" | "llist_empty":
                return truth(apply("==", self._list(self.reference(first), first), Const(0)))
            case "skb_peek":
                return Value("skb", apply("head", self._list(self.reference(first), first)))
            case "spin_is_locked":
                lock = self.reference(first)
                if lock.kind != "lock" or not isinstance(lock.place, Read):
                    raise self.error(first, f"`{ast.unparse(first)}` is no lock", "name a SpinLock")
                return truth(apply("!=", lock.place, Const(0)))
            case "test_bit":
                bit, word = self.evaluate(first), self.evaluate(node.args[1])
                if word.kind != "flags":
                    what = f"`{ast.unparse(node.args[1])}` is {WORDS[word.kind]}, and a flag word is needed"
                    raise self.error(node.args[1], what, "declare it as Flags(…)")
                refuse_other_bit(self, node, bit, word)
                mask = self.shift(node, "<<", Const(1), self.number_of(bit, first)).value
                return truth(apply("!=", apply("&", word.value, mask), Const(0)))
            case "BIT":
                return self.shift(node, "<<", Const(1), self.as_number(first))
            case _:  # READ_ONCE, atomic_read, data_race
                return self.evaluate(first)

    def _quantified(self, node: ast.Call, name: str) -> Value:
        match node.args:
            case [
                ast.GeneratorExp(
                    elt=element,
                    generators=[
                        ast.comprehension(
                            target=ast.Name(id=variable),
                            iter=ast.Call(func=ast.Name(id="range"), args=bounds),
                            ifs=[],
                        )
                    ],
                )
            ]:
                pass
            case _:
                remedy = f"write {name}(… for i in range(n))"
                raise self.error(node, f"{name}() ranges over numbers", remedy)
        limits = [limit.value for b in bounds if isinstance(limit := self.as_number(b), Const)]
        if len(limits) != len(bounds) or not 1 <= len(limits) <= 2:
            raise self.error(node, "the range is not known before the search begins", "write range(n), n a parameter")
        values = range(*limits)
        if len(values) > _MOST_PARTS:
            raise self.error(node, f"{name}() ranges over {len(values)} numbers", f"use at most {_MOST_PARTS}")
        kept = self.scope.names.get(variable)
        parts: list[Expr] = []
        for i in values:
            self.scope.names[variable] = Value("int", Const(i))
            parts.append(self.as_number(element) if name == "sum" else self.as_truth(element))
        self.scope.names.pop(variable, None)
        if kept is not None:
            self.scope.names[variable] = kept
        if name == "sum":
            total: Expr = Const(0)
            for part in parts:
                total = apply("+", total, part)
            return Value("int", total)
        return truth(apply("and" if name == "all" else "or", *parts))


_MOST_PARTS = 1000
_LOOKS = {
    "len": ("list",),
    "skb_queue_len": ("list",),
    "skb_queue_empty": ("list",),
    "llist_empty": ("list",),
    "skb_peek": ("list",),
    "spin_is_locked": ("lock",),
    "test_bit": ("bit", "flag word"),
    "BIT": ("bit",),
    "READ_ONCE": ("shared variable",),
    "data_race": ("shared variable",),
    "atomic_read": ("shared variable",),
}


def refuse_other_bit(compiler: Expressions, node: ast.Call, bit: Value, word: Value) -> str:
    """Return the name of a bit of a word, or nothing where it is not constant. Raises SpecError: it has no such bit."""
    assert word.domain is not None
    names = word.domain.names
    if not isinstance(bit.expr, Const):
        return ""
    number = bit.expr.value
    if 0 <= number < len(names) and bit.name in {"", names[number]}:
        return names[number]
    remedy = f"its bits are {', '.join(names)}"
    raise compiler.error(node.args[0], f"`{ast.unparse(node.args[1])}` has no bit `{bit.name or number}`", remedy)


class _Look(PropertyCompiler):
    """Compiles a condition within a function, which may name the function's locals."""

    hint = Expressions.hint

    def __init__(self, compiler: Expressions) -> None:
        super().__init__(compiler.config, compiler.scopes)
        self.compiler = compiler

    def element_bounds(self, index: Expr, size: int, node: ast.expr) -> None:
        """An index is constant or local, and is checked by the function."""
        if reads_of(index):
            raise self.error(
                node, "this index is read from shared memory in the same step", "read it into a local before"
            )
        self.compiler.element_bounds(index, size, node)


def pure_condition(compiler: Expressions, node: ast.expr) -> Expr:
    """Compile a condition within a function without making steps of what it reads. Raises SpecError."""
    return _Look(compiler).as_truth(node)
