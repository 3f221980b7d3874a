"""Compiling functions: statements and inlined calls become a control-flow graph of primitives."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from qmodel.frontend import calls
from qmodel.frontend.declarations import is_abstract
from qmodel.frontend.diagnostics import Diagnostic, SpecError, did_you_mean
from qmodel.frontend.expressions import FIRST, OWN_CPU, SCALARS, Expressions
from qmodel.frontend.shape import ASK
from qmodel.frontend.unset import ENTER
from qmodel.frontend.values import AMBIGUOUS, UNKNOWN, VOID, WORDS, Loop, Scope, Value, ValueKind, number, truth
from qmodel.ir.expr import BOOL, Const, Domain, Expr, Local, Own, Read, apply, locals_of
from qmodel.ir.graph import Ends, GraphBuilder
from qmodel.ir.program import (
    BUDGET,
    PENDING,
    WHERE,
    Assign,
    Choose,
    Fail,
    Label,
    LocalVariable,
    Node,
    Nop,
    Place,
    Primitive,
    Show,
    Site,
)

if TYPE_CHECKING:
    from qmodel.frontend.configure import Configuration
    from qmodel.frontend.source import Owned

_DECLARED = {"u8": (0, 255), "s8": (-128, 127), "u16": (0, 65535)}
_NUMBERS: tuple[ValueKind, ...] = ("int", "bool", "bit", "flags")
_PACKETS: tuple[ValueKind, ...] = ("skb", "none")
_TYPES: dict[str, tuple[ValueKind, ...]] = {
    **dict.fromkeys([*_DECLARED, "int"], _NUMBERS), "bool": ("bool",), "SkbQueue": ("queue",), "Skb": _PACKETS,
    "Skb | None": _PACKETS,
}  # fmt: skip
"""The types that a local can be declared with, and what can be assigned to each."""
_UNDECIDED = Domain("int", 0, 0)
_REFUSED: dict[type[ast.stmt], tuple[str, str]] = {
    ast.AsyncFor: ("async for", "write `for`"),
    ast.AsyncFunctionDef: ("async def", "write a function of the class without `async`"),
    ast.AsyncWith: ("async with", "write `with atomic():`"),
    ast.ClassDef: ("class", "keep to the functions of one class"),
    ast.Delete: ("del", "free a packet with kfree_skb(); nothing else is deleted"),
    ast.FunctionDef: ("def", "write it as a function of the class"),
    ast.Global: ("global", "declare shared variables in the class"),
    ast.Import: ("import", "import at the top of the file"),
    ast.ImportFrom: ("import", "import at the top of the file"),
    ast.Match: ("match", "use `if` and `elif`"),
    ast.Nonlocal: ("nonlocal", "declare shared variables in the class"),
    ast.Raise: ("raise", "nothing is raised in C: return a value, or use check()"),
    ast.Try: ("try", "nothing is raised in C: use `if`"),
}
"""Statements of Python that a model does not have, and what to write instead."""


class FunctionCompiler(Expressions):
    """Compiles a thread (or the function of a scenario) with everything it calls into one graph."""

    def __init__(self, config: Configuration, owned: Owned, *, parking: bool = False) -> None:
        super().__init__(config)
        assert isinstance(owned.node, ast.FunctionDef)
        self.owned = owned
        self.function = owned.node
        self.parking = parking
        self.locals: dict[str, LocalVariable] = {}
        self.loops: list[Loop] = []
        self.diagnostics: list[Diagnostic] = []
        self.atomic: bool | None = None  # None: outside; False: nothing in the block yet; True: the step has begun
        self.turning = 0  # loops around here, within an atomic block those in it
        self.changing: set[str] = set()
        self._temporaries = 0
        self._parked = dict.fromkeys(range(len(config.flow_sizes)), 0)
        self._enter(owned, self.function.name)
        self.graph = GraphBuilder(self.site(self.function))

    # --- threads ----------------------------------------------------------------------------------------------------

    def task(self) -> tuple[Node, ...]:
        """Compile the function as a task, or as a scenario: it runs once."""
        self._bind_cpu()
        self.block(self.function.body)
        return self._finish()

    def softirq(self) -> tuple[Node, ...]:
        """Compile the function as a softirq: it rests until it is raised, runs, and rests again."""
        self._bind_cpu()
        site = self.site(self.function)
        place = Read(PENDING + self.function.name, Own("cpu"))
        label = Label("softirq", (f"<softirq {self.function.name}>",))
        access = Primitive("softirq_entry", place=place)
        head = self.graph.emit(access, site, boundary=True, label=label, access=access)
        self.block(self.function.body)
        self.graph.link([*self.graph.take(), *self.scope.returns], head)
        self.scope.returns = []
        return self._finish()

    def environment(self, budget: int) -> tuple[Node, ...]:
        """Compile the function as an environment thread that acts at most `budget` times."""
        self._bind_cpu()
        site = self.site(self.function)
        left = f"{self.function.name}.%left"
        self.locals[left] = LocalVariable(Domain("int", 0, budget), declared=True, site=site)
        self.graph.emit(Assign(Local(left), Const(budget)), site)
        head = self.graph.emit(Nop(), site)
        more, done = self.graph.branch(apply("!=", Local(left), Const(0)), site)
        self.graph.ends = more
        self.graph.emit(Assign(Local(left), apply("-", Local(left), Const(1))), site)
        self.graph.emit(Primitive("rest"), site)
        self.block(self.function.body)
        self.graph.link([*self.graph.take(), *self.scope.returns], head)
        self.scope.returns = []
        self.graph.ends = done
        return self._finish()

    def _bind_cpu(self) -> None:
        names = [a.arg for a in self.function.args.args]
        if len(names) > 1 and self.parking:
            raise self.error(self.function.args.args[1], "a scenario is told nothing", "read it from the model: m.NAME")
        if len(names) > 2:
            raise self.error(
                self.function.args.args[2], "a thread is told its CPU only", "read the rest from the model"
            )
        if len(names) == 2 and names[1] in _assigned_names(self.function):
            self.assign_local(ast.copy_location(ast.Name(names[1]), self.function.args.args[1]), OWN_CPU)
        elif len(names) == 2:
            self.scope.names[names[1]] = OWN_CPU

    def _finish(self) -> tuple[Node, ...]:
        self.graph.ends += self.scope.returns
        if self.diagnostics:
            raise SpecError(self.diagnostics)
        return self.graph.finish(self.site(self.function.body[-1]))

    def _enter(self, owned: Owned, name: str) -> Scope:
        assert isinstance(owned.node, ast.FunctionDef)
        arguments = owned.node.args
        if arguments.vararg or arguments.kwarg or arguments.kwonlyargs or arguments.defaults or arguments.posonlyargs:
            remedy = "name each argument, without a default"
            raise owned.module.file.error(owned.node, "a function of a model takes plain arguments", remedy)
        if not arguments.args:
            remedy = f"write `def {name}(m, …)`"
            raise owned.module.file.error(owned.node, "the first argument is the model", remedy)
        names = [a.arg for a in arguments.args]
        twice = next((a for i, a in enumerate(arguments.args) if a.arg in names[:i]), None)
        if twice is not None:
            raise owned.module.file.error(twice, f"two arguments are called `{twice.arg}`", "name each differently")
        scope = Scope(name, owned.module, names[0])
        self.scopes.append(scope)
        return scope

    # --- statements -------------------------------------------------------------------------------------------------

    def block(self, statements: Sequence[ast.stmt]) -> None:
        """Compile statements in order; a mistake in one does not hide those in the next."""
        for statement in statements:
            depth, loops, turning = len(self.scopes), self.loops, self.turning
            try:
                self._statement(statement)
            except SpecError as error:
                for diagnostic in error.diagnostics:
                    if diagnostic not in self.diagnostics:
                        self.diagnostics.append(diagnostic)
                del self.scopes[depth:]
                self.loops, self.turning = loops, turning
                self.scope.failed = True
                self.scope.names |= dict.fromkeys(_assigned_names(statement), UNKNOWN)

    def _statement(self, node: ast.stmt) -> None:
        outer, self.changing = self.changing, _changed_on_the_way(node)
        try:
            self._any_statement(node)
        finally:
            self.changing = outer

    def _any_statement(self, node: ast.stmt) -> None:
        match node:
            case ast.Expr(value=ast.Constant()) | ast.Pass():
                pass
            case ast.Expr(value=ast.Compare() as value):
                raise self.error(value, "nothing uses what this comparison returns", "write `=` to assign")
            case ast.Expr(value=ast.BinOp() | ast.UnaryOp() as value):
                raise self.error(value, "nothing uses this value", "assign it, or remove it")
            case ast.Expr(value=value):
                self.evaluate(value)
            case ast.Assign(targets=[target], value=value):
                self._assign(node, target, value)
            case ast.AnnAssign(target=ast.Name() as target, annotation=annotation, value=ast.expr() as value):
                self._annotated(target, annotation, value)
            case ast.AugAssign(target=target, op=op, value=value):
                self._augmented(node, target, op, value)
            case ast.If():
                self._if(node)
            case ast.While() | ast.For():
                self.turning += 1
                self._while(node) if isinstance(node, ast.While) else self._for(node)
                self.turning -= 1
            case ast.Return():
                self._return(node)
            case ast.Break() | ast.Continue():
                self._leave(node)
            case ast.With():
                self._with(node)
            case ast.Assert():
                raise self.error(node, "`assert` has no meaning in a model", 'write check(condition, "what it says")')
            case ast.Assign():
                raise self.error(node, "one name or variable is assigned at a time", "write one assignment a line")
            case ast.AnnAssign(target=ast.Name(), value=None):
                raise self.error(node, "a local gets its value where it is declared", "write `name: type = value`")
            case ast.AnnAssign():
                raise self.error(node, "only a local is declared here", "declare shared variables in the class")
            case _:
                otherwise = (type(node).__name__.lower(), "use assignments, if, while, for, return and calls")
                what, remedy = _REFUSED.get(type(node), otherwise)
                raise self.error(node, f"`{what}` has no meaning in a model", remedy)

    def _assign(self, node: ast.stmt, target: ast.expr, value_node: ast.expr) -> None:
        if isinstance(target, ast.Name):
            self.assign_local(target, self.evaluate(value_node))
            return
        place = self._target(target)
        self.store(place, self.evaluate(value_node), value_node, node)

    def _target(self, node: ast.expr) -> Value:
        """Return the shared variable that is stored to."""
        if isinstance(node, ast.Tuple | ast.List | ast.Starred):
            raise self.error(node, "one name or variable is assigned at a time", "write one assignment a line")
        place = self.reference(node)
        if isinstance(place.place, Read):
            return place
        what, remedy = f"`{ast.unparse(node)}` is {WORDS[place.kind]}", "assign to a shared variable or to a local"
        if place.kind == "array":
            remedy = f"assign to one of its elements: {ast.unparse(node)}[index]"
        if isinstance(node, ast.Attribute) and node.attr in self.config.constants:
            what, remedy = f"`{node.attr}` is a constant", "declare a variable: Int(…), Bool(…)"
        raise self.error(node, what, remedy)

    def store(self, place: Value, value: Value, value_node: ast.expr, node: ast.AST, name: str = "store") -> None:
        """Store to a shared variable."""
        assert isinstance(place.place, Read)
        assert place.domain is not None
        if place.name == FIRST:
            remedy = "use try_cmpxchg(m.NAME.first, old, skb), llist_add() or llist_del_all()"
            raise self.error(node, "the head of a list cannot be stored to", remedy)
        if place.kind == "lock":
            raise self.error(node, "a lock is not assigned", "take it with spin_lock(), release it with spin_unlock()")
        if place.kind == "queue":
            if value.kind != "queue" or value.place is None or isinstance(value.place, Read):
                remedy = "assign a list of the thread's own, or move packets with skb_queue_splice_tail_init()"
                raise self.error(value_node, f"`{ast.unparse(value_node)}` is no list of the thread's own", remedy)
            expr: Expr = value.place
        else:
            expr = self.converted(place.kind, value, value_node)
        parts = (*self.place_text(place), " = ", Show(expr, place.domain))
        label = Label("list" if place.kind == "queue" else "store", parts)
        if name != "store":
            label = Label("store", (f"{name}(", *self.place_text(place), ", ", Show(expr, place.domain), ")"))
        marked = name in {"WRITE_ONCE", "smp_store_release", "atomic_set"}
        primitive = "store_list" if place.kind == "queue" else name
        self.access(node, Primitive(primitive, None, place.place, (expr,), marked), label)

    def converted(self, kind: str, value: Value, node: ast.expr) -> Expr:
        """Return a value as one of the wanted kind: C's conversions that lose nothing."""
        fits = {
            "bool": {"bool"},
            "int": {"int", "bool", "bit", "flags"},
            "flags": {"int", "flags"},
            "skb": {"skb", "none"},
        }.get(kind, {kind})
        if value.kind not in fits:
            words = f"`{ast.unparse(node)}` is {WORDS[value.kind]}, and {WORDS[kind]} is needed"  # type: ignore[index]
            raise self.error(node, words, _conversion(kind, value, node))
        return value.value

    def assign_local(self, target: ast.Name, value: Value) -> None:
        """Give a local a value, and make it known."""
        name = target.id
        scope = self.scope
        if name == scope.model:
            raise self.error(target, f"`{name}` is the model", "use another name")
        if value.kind == "void":
            raise self.error(target, "the call returns nothing", "call it without assigning what it returns")
        known = scope.names.get(name)
        if value.kind in {"lock", "array", "handler"} or (value.kind == "queue" and isinstance(value.place, Read)):
            self._alias(target, value, known)
            return
        if value.kind == "queue" and isinstance(value.place, Local) and not _is_fresh(value.place):
            remedy = "move its packets with skb_queue_splice_tail_init(), or use the list under its one name"
            raise self.error(target, "a list of the thread's own has one name", remedy)
        if known is not None and (known.kind in {"lock", "array", "handler"} or isinstance(known.place, Read)):
            raise self.error(target, f"`{name}` stands for a shared variable here", "use another name")
        kind = "skb" if value.kind == "none" else "int" if value.kind in {"bit", "flags"} else value.kind
        local = self.declare(name, kind, target)
        if self.locals[local].domain.kind not in {kind, "int" if kind == "bool" else kind}:
            what = f"`{name}` was {WORDS[self.local_value(local).kind]} and becomes {WORDS[kind]}"
            raise self.error(target, what, "use a second name")
        expr = value.place if value.kind == "queue" and value.place is not None else value.value
        self.graph.emit(Assign(Local(local), expr), self.site(target))
        scope.names[name] = self.local_value(local)

    def _alias(self, target: ast.Name, value: Value, known: Value | None) -> None:
        """Give a shared variable a second name, for good: a name does not stand for one thing now and another later."""
        index = value.place.index if isinstance(value.place, Read) else None
        if index is not None and locals_of(index):
            raise self.error(
                target, "this names an element whose index may change", "use the element where it is needed"
            )
        if known is not None and known != value:
            raise self.error(target, f"`{target.id}` stands for something else already", "use another name")
        if known is None and self.loops:
            raise self.error(target, "a shared variable is named in a loop", "name it before the loop")
        self.scope.names[target.id] = value

    def _local_name(self, name: str) -> str:
        return f"{self.scope.function}.{name}"

    def declare(self, name: str, kind: str, node: ast.AST, bounds: tuple[int, int] | None = None) -> str:
        """Make a local of the innermost function, and return its full name."""
        local = self._local_name(name)
        if local not in self.locals:
            domain = Domain("int", *bounds) if bounds else self.domain_of_kind(kind)
            self.locals[local] = LocalVariable(domain, bounds is not None, self.site(node))
        return local

    def temporary(self, kind: str, node: ast.AST) -> str:
        """Make a local without a name."""
        self._temporaries += 1
        return self.declare(f"%{self._temporaries}", kind, node)

    def domain_of_kind(self, kind: str) -> Domain:
        """Return the domain of locals of a kind; numbers get theirs when everything is compiled."""
        if kind in {"skb", "queue"}:
            return self.config.skb_domain if kind == "skb" else self.config.queue_domain
        return BOOL if kind == "bool" else _UNDECIDED

    def local_value(self, local: str) -> Value:
        """Return a local as a value."""
        domain = self.locals[local].domain
        kind = domain.kind
        assert kind in {"bool", "int", "skb", "queue"}
        place = Local(local) if kind == "queue" else None
        return Value(kind, Local(local), place, domain, local)

    def _annotated(self, target: ast.Name, annotation: ast.expr, value_node: ast.expr) -> None:
        words = ast.unparse(annotation)
        if words not in _TYPES:
            raise self.error(annotation, f"unknown type `{words}`", did_you_mean(words, _TYPES))
        value = self.evaluate(value_node)
        if value.kind not in _TYPES[words]:
            kind = _TYPES[words][0]
            message = f"`{ast.unparse(value_node)}` is {WORDS[value.kind]}, and {WORDS[kind]} is needed"
            raise self.error(value_node, message, _conversion(kind, value, value_node))
        if words in _DECLARED:
            local = self.declare(target.id, "int", target, _DECLARED[words])
            if self.locals[local].domain != Domain("int", *_DECLARED[words]):
                raise self.error(annotation, f"`{target.id}` has a value already", "declare it where it gets the first")
        elif words == "int" and value.kind == "bool":
            self.declare(target.id, "int", target)
        self.assign_local(target, value)

    def _augmented(self, node: ast.stmt, target: ast.expr, op: ast.operator, value_node: ast.expr) -> None:
        whole = ast.copy_location(ast.BinOp(target, op, value_node), node)
        if isinstance(target, ast.Name):
            self.assign_local(target, self.evaluate(whole))
            return
        place = self._target(target)
        old = self.load(place, target) if place.kind in SCALARS else place
        new = self.operate(whole, op, (old, target), (self.evaluate(value_node), value_node))
        self.store(place, new, whole, node)

    def _if(self, node: ast.If) -> None:
        yes, no = self.condition(node.test)
        before = dict(self.scope.names)
        self.graph.ends = yes
        self.block(node.body)
        after_yes, names_yes = self.graph.take(), self.scope.names
        self.scope.names = before
        self.graph.ends = no
        self.block(node.orelse)
        self._merge_names(names_yes if after_yes else None, here=bool(self.graph.ends))
        self.graph.ends += after_yes

    def _merge_names(self, other: dict[str, Value] | None, *, here: bool) -> None:
        """After a branch a name is known if it was known on every way that leads here, or is a local on one."""
        if other is None:
            return
        if not here:
            self.scope.names = other
            return
        names = self.scope.names
        for name in [*other, *(n for n in names if n not in other)]:
            first, second = other.get(name), names.get(name)
            known = first or second
            assert known is not None
            if first != second and not (isinstance(known.expr, Local) and None in {first, second}):
                known = AMBIGUOUS if UNKNOWN not in {first, second} else UNKNOWN
            names[name] = known

    def _while(self, node: ast.While) -> None:
        if node.orelse:
            raise self.error(
                node.orelse[0], "`else` after a loop has no meaning in a model", "set a local before `break`"
            )
        head = self.graph.emit(Nop(), self.site(node))
        yes, no = self.condition(node.test)
        self.graph.ends = yes
        self._loop_body(node.body, head, no)

    def _loop_body(self, body: list[ast.stmt], head: int, out: Ends) -> None:
        loop = Loop(head)
        self.loops.append(loop)
        self.block(body)
        self.loops.pop()
        self.graph.link(self.graph.take(), head)
        self.graph.ends = [*out, *loop.breaks]

    def _for(self, node: ast.For) -> None:
        if node.orelse:
            raise self.error(
                node.orelse[0], "`else` after a loop has no meaning in a model", "set a local before `break`"
            )
        if not isinstance(node.target, ast.Name):
            raise self.error(node.target, "a loop has one variable", "write `for name in …`")
        match node.iter:
            case ast.Call(func=ast.Attribute(value=ast.Name(id=owner), attr="flow"), args=[cpu]) if (
                owner == self.scope.model
            ):
                self._for_flow(node, node.target, cpu)
            case ast.Call(func=ast.Name(id="range"), args=bounds, keywords=[]) if 1 <= len(bounds) <= 2:
                self._for_range(node, node.target, bounds)
            case _:
                remedy = (
                    f"write `for skb in {self.scope.model}.flow(cpu)`, `for i in range(n)`, or for a list "
                    "`while (skb := __skb_dequeue(list)) is not None`"
                )
                raise self.error(node.iter, "this cannot be iterated over", remedy)

    def _for_flow(self, node: ast.For, target: ast.Name, cpu_node: ast.expr) -> None:
        config = self.config
        if self.parking:
            raise self.error(node.iter, "a scenario hands nothing over", f"use {self.scope.model}.parked(flow)")
        if not config.flow_sizes:
            raise self.error(node.iter, "the model declares no Packets", "write `packets = Packets(2, each=cpus)`")
        cpu = self.as_number(cpu_node)
        self.element_bounds(cpu, len(config.flow_sizes), cpu_node)
        site = self.site(node.iter)
        if not isinstance(cpu, Const | Own):  # it may change while the flow is sent
            kept = self.temporary("int", node.iter)
            self.graph.emit(Assign(Local(kept), cpu), site)
            cpu = Local(kept)
        self._temporaries += 1  # loops within loops may have variables of one name
        sent = self.declare(f"{target.id}%{self._temporaries}", "int", target, (0, max(config.flow_sizes)))
        self.graph.emit(Assign(Local(sent), Const(0)), site)
        head = self.graph.emit(Nop(), site)
        size = self._table(config.flow_sizes, cpu)
        more, out = self.graph.branch(apply("<", Local(sent), size), site)
        self.graph.ends = more
        skb = self.declare(target.id, "skb", target)
        first = self._table(config.first_sent, cpu)
        self.graph.emit(Assign(Local(skb), apply("+", first, Local(sent))), site)
        self.graph.emit(Assign(Local(sent), apply("+", Local(sent), Const(1))), site)
        self._born(Local(skb), site)
        self.scope.names[target.id] = self.local_value(skb)
        self._loop_body(node.body, head, out)

    def _born(self, skb: Expr, site: Site) -> None:
        where = Read(WHERE, apply("-", skb, Const(1)))
        again = (Show(skb, self.config.skb_domain), " is handed over a second time")
        self.graph.emit(Fail(apply("!=", where, Const(Place.NOWHERE)), "once", again), site)
        self.graph.emit(Assign(where, apply("+", Own("tid"), Const(Place.HELD))), site)

    def _table(self, table: tuple[int, ...], index: Expr) -> Expr:
        value = self._constant_table(table, index)
        return value.value

    def _constant_table(self, table: tuple[int, ...], index: Expr) -> Value:
        from qmodel.ir.expr import Lookup  # noqa: PLC0415

        if len(set(table)) == 1:
            return number(table[0])
        return Value("int", Lookup(table, index))

    def _for_range(self, node: ast.For, target: ast.Name, bounds: list[ast.expr]) -> None:
        start = self.as_number(bounds[0]) if len(bounds) == 2 else Const(0)
        stop = self.as_number(bounds[-1])
        site = self.site(node.iter)
        if not isinstance(stop, Const):
            kept = self.temporary("int", node.iter)
            self.graph.emit(Assign(Local(kept), stop), site)
            stop = Local(kept)
        self._temporaries += 1  # loops within loops may have variables of one name
        counter = self.declare(f"{target.id}%{self._temporaries}", "int", target)
        self.graph.emit(Assign(Local(counter), start), site)
        head = self.graph.emit(Nop(), site)
        more, out = self.graph.branch(apply("<", Local(counter), stop), site)
        self.graph.ends = more
        name = self.declare(target.id, "int", target)
        self.graph.emit(Assign(Local(name), Local(counter)), site)
        # The upper bound of the counter is what the loop's condition leaves of it.
        self.graph.emit(
            Assign(Local(counter), apply("+", apply("min", Local(counter), apply("-", stop, Const(1))), Const(1))), site
        )
        self.scope.names[target.id] = self.local_value(name)
        self._loop_body(node.body, head, out)

    def _leave(self, node: ast.Break | ast.Continue) -> None:
        if not self.loops:
            raise self.error(node, "there is no loop here", "use `return`")
        if isinstance(node, ast.Break):
            self.loops[-1].breaks += self.graph.take()
        else:
            self.graph.link(self.graph.take(), self.loops[-1].head)

    def _with(self, node: ast.With) -> None:
        match node.items:
            case [ast.withitem(context_expr=ast.Call(func=ast.Name(id="atomic"), args=[]), optional_vars=None)]:
                pass
            case _:
                raise self.error(node.items[0].context_expr, "`with` has one use", "write `with atomic():`")
        outer, turning = self.atomic, self.turning
        if outer is None:
            self.turning = 0
            self.atomic = not _waits(node.body[0])
            if self.atomic:
                self.graph.emit(Nop(), self.site(node), boundary=True)
        self.block(node.body)
        self.atomic, self.turning = outer, turning

    # --- calls of the model's own functions ---------------------------------------------------------------------------

    def inline(self, node: ast.Call, name: str) -> Value:
        """Compile a call of another function of the model, in place."""
        owned = self.config.variant.functions[name]
        function = owned.node
        assert isinstance(function, ast.FunctionDef)
        if is_abstract(function):
            raise self.error(node, f"`{name}` has no body in this variant", "override it")
        if any(scope.function == name for scope in self.scopes):
            remedy = "write it as a loop"
            raise self.error(node, f"`{name}` calls itself", remedy)
        parameters = [a.arg for a in function.args.args][1:]
        if node.keywords or len(node.args) != len(parameters):
            takes = f"`{name}` takes {len(parameters)} argument{'s' * (len(parameters) != 1)} beside the model"
            raise self.error(node, takes, f"write {self.scope.model}.{name}({', '.join(parameters)})")
        arguments = [self.evaluate(a) for a in node.args]
        for value, argument in zip(arguments, node.args, strict=True):
            if value.kind == "void":
                raise self.error(argument, "this call returns nothing", "pass a value")
        loops, self.loops = self.loops, []
        scope = self._enter(owned, name)
        self.graph.emit(Primitive(ENTER), self.site(function))
        assigned = _assigned_names(function)
        for parameter, value, place in zip(parameters, arguments, function.args.args[1:], strict=True):
            if value.kind not in SCALARS | {"none", "bit"} and parameter in assigned:
                what = f"`{name}` assigns `{parameter}`, which is {WORDS[value.kind]} of its caller"
                raise self.error(place, what, "use another name for what is assigned")
            simple = value.kind not in SCALARS | {"none"} or isinstance(value.expr, Const | Local | Own)
            if simple and parameter not in assigned:
                scope.names[parameter] = value
            else:
                self.assign_local(ast.copy_location(ast.Name(parameter), place), value)
        scope.given = frozenset(v.place for v in arguments if v.kind == "queue" and isinstance(v.place, Local))
        self.block(function.body)
        self.loops = loops
        if scope.failed:
            self.graph.ends += scope.returns
            raise SpecError(())  # what is wrong in it has been told
        result = self._result(scope, function)
        self.scopes.pop()
        return result

    def _result(self, scope: Scope, function: ast.FunctionDef) -> Value:
        if not scope.returned:
            self.graph.ends += scope.returns
            return VOID
        if self.graph.reachable:
            raise self.error(function, f"`{scope.function}` does not return a value on every way", "add a `return`")
        self.graph.ends = scope.returns
        assert scope.result is not None
        return scope.result

    def _return(self, node: ast.Return) -> None:
        scope = self.scope
        if node.value is None or (len(self.scopes) == 1 and not self.parking and _is_none(node.value)):
            ends = self.graph.take()
            if scope.returned:
                raise self.error(node, f"`{scope.function}` returns a value elsewhere", "return one here too")
            scope.returns += ends
            return
        if len(self.scopes) == 1:
            what = "a scenario" if self.parking else "a thread"
            raise self.error(node, f"{what} returns to nobody", "write `return` alone")
        value = self.evaluate(node.value)
        if value.kind in {"void", "lock", "array", "handler"} or isinstance(value.place, Read):
            remedy = (
                "return a number, a packet or a list of the thread's own; name shared variables where they are used"
            )
            raise self.error(node.value, f"{WORDS[value.kind]} cannot be returned", remedy)
        if isinstance(value.place, Local) and value.place in scope.given:
            remedy = "let the caller use it under the name that it has there"
            raise self.error(node.value, "a list that was given to a function is not returned", remedy)
        if scope.returns and not scope.returned:
            raise self.error(node, f"`{scope.function}` returns nothing elsewhere", "return a value there too")
        if not self.graph.reachable:
            return
        kind = "skb" if value.kind == "none" else "int" if value.kind in {"bit", "flags"} else value.kind
        if scope.result is None:
            scope.result = self.local_value(self.temporary(kind, node.value))
        if scope.result.kind != kind and not (scope.result.kind == "int" and kind == "bool"):
            what = f"`{scope.function}` returns {WORDS[scope.result.kind]} elsewhere, and {WORDS[kind]} here"
            raise self.error(node.value, what, "return the same kind of value everywhere")
        scope.returned.append(value)
        expr = value.place if value.kind == "queue" and value.place is not None else value.value
        self.graph.emit(Assign(Local(scope.result.name), expr), self.site(node))
        scope.returns += self.graph.take()

    # --- expressions ------------------------------------------------------------------------------------------------

    def condition(self, node: ast.expr) -> tuple[Ends, Ends]:
        """Compile a condition to where it holds and where it does not; what need not be read is not read."""
        match node:
            case ast.BoolOp(op=op, values=values):
                short: Ends = []
                for value in values:
                    yes, no = self.condition(value)
                    on, off = (yes, no) if isinstance(op, ast.And) else (no, yes)
                    short += off
                    self.graph.ends = on
                rest = self.graph.take()
                return (rest, short) if isinstance(op, ast.And) else (short, rest)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                yes, no = self.condition(operand)
                return no, yes
            case _:
                return self.graph.branch(self.as_truth(node), self.site(node))

    def logic(self, node: ast.BoolOp) -> Value:
        """Compile `and`, `or` as a value: that of the operand which decides, so that what need not be read is not."""
        after: Ends = []
        local: str | None = None
        for position, operand in enumerate(node.values):
            value = self.evaluate(operand)
            local = self._take(node, local, value)
            if position == len(node.values) - 1:
                break
            yes, no = self.graph.branch(self.truth_of(value, operand), self.site(operand))
            on, off = (yes, no) if isinstance(node.op, ast.And) else (no, yes)
            after += off
            self.graph.ends = on
        self.graph.ends += after
        assert local is not None
        return self.local_value(local)

    def _take(self, node: ast.expr, local: str | None, value: Value) -> str:
        """Let a local take one of several values of an expression, and return it; a new one where there is none yet."""
        if value.kind not in SCALARS | {"none", "bit"}:
            raise self.error(node, f"{WORDS[value.kind]} cannot be chosen so", "write an `if` statement")
        kind = "skb" if value.kind == "none" else "int" if value.kind in {"bit", "flags"} else value.kind
        if local is None:
            local = self.temporary(kind, node)
        known = self.locals[local].domain.kind
        if known != kind and (known, kind) != ("int", "bool"):
            raise self.error(node, "the values are of different kinds", "write an `if` statement")
        self.graph.emit(Assign(Local(local), value.value), self.site(node))
        return local

    def as_truth(self, node: ast.expr) -> Expr:
        """Compile a condition to a truth value; what stands in `and` and `or` need not be one itself."""
        if isinstance(node, ast.BoolOp):
            return self._chosen(node, node, lambda: truth(Const(1)), lambda: truth(Const(0))).value
        return super().as_truth(node)

    def conditional(self, node: ast.IfExp) -> Value:
        """Compile `a if c else b`: only one of them is read."""
        return self._chosen(node, node.test, lambda: self.evaluate(node.body), lambda: self.evaluate(node.orelse))

    def _chosen(self, node: ast.expr, test: ast.expr, yes: Callable[[], Value], no: Callable[[], Value]) -> Value:
        ends_yes, ends_no = self.condition(test)
        after: Ends = []
        local: str | None = None
        for ends, make in ((ends_yes, yes), (ends_no, no)):
            if not ends:
                continue
            self.graph.ends = ends
            local = self._take(node, local, make())
            after += self.graph.take()
        self.graph.ends = after
        if local is None:  # nothing can reach this expression
            return truth(Const(0))
        return self.local_value(local)

    def named(self, node: ast.NamedExpr) -> Value:
        """Compile `name := value`."""
        self.assign_local(node.target, self.evaluate(node.value))
        return self._name(node.target, node.target.id)

    def _name(self, node: ast.Name, name: str) -> Value:
        """Return what a name stands for; its value now, where the statement changes it before it is done."""
        value = super()._name(node, name)
        if name in self.changing and value.kind in SCALARS and isinstance(value.expr, Local):
            kept = self.temporary("int" if value.kind == "flags" else value.kind, node)
            self.graph.emit(Assign(Local(kept), value.expr), self.site(node))
            return replace(value, expr=Local(kept), name=kept)
        return value

    def load(self, reference: Value, node: ast.expr, name: str = "load") -> Value:
        """Read a shared scalar into a temporary."""
        assert reference.domain is not None
        assert isinstance(reference.place, Read)
        local = self.temporary("int" if reference.kind == "flags" else reference.kind, node)
        shown = Show(Local(local), reference.domain)
        text = self.place_text(reference)
        parts = (*text, " == ", shown) if name == "load" else (f"{name}(", *text, ") = ", shown)
        marked = name in {"READ_ONCE", "data_race", "smp_load_acquire", "atomic_read"}
        if reference.name == FIRST:
            name = "llist_first"
        self.access(node, Primitive(name, local, reference.place, (), marked), Label("load", parts))
        kind = reference.kind
        return Value(kind, Local(local), None, reference.domain, local)

    def length(self, queue: Value, node: ast.expr) -> Value:
        """Return the length of a list: an access where the list is shared."""
        if isinstance(queue.place, Local):
            return Value("int", apply("len", queue.place))
        local = self.temporary("int", node)
        domain = Domain("int", 0, len(self.config.packets.names))
        parts = ("skb_queue_len(", *self.address(queue), ") = ", Show(Local(local), domain))
        self.access(node, Primitive("skb_queue_len", local, queue.place), Label("load", parts))
        return Value("int", Local(local), None, domain)

    def call(self, node: ast.Call) -> Value:
        """Compile a call: a function of the model, or a primitive."""
        match node.func:
            case ast.Attribute(value=ast.Name(id=owner), attr=name) if owner == self.scope.model:
                if name in self.config.variant.functions:
                    return self.inline(node, name)
                if name == "parked":
                    return self._park(node)
                if name == "flow":
                    raise self.error(node, "a flow is iterated over", f"write `for skb in {owner}.flow(cpu)`")
                self.refuse_decorated(node, name)
                known = [*self.config.variant.functions]
                if name in self.config.variables or name in self.config.constants:
                    raise self.error(node, f"`{name}` is no function", f"write `{owner}.{name}`")
                raise self.error(node, f"the model has no function `{name}`", did_you_mean(name, known))
            case ast.Name(id=name):
                if name in self.config.variant.functions:
                    raise self.error(
                        node, f"`{name}` is a function of the model", f"write {self.scope.model}.{name}(…)"
                    )
                return calls.compile_call(self, node, name)
        remedy = f"call a primitive or {self.scope.model}.FUNCTION(…)"
        raise self.error(node.func, f"`{ast.unparse(node.func)}` cannot be called", remedy)

    def _park(self, node: ast.Call) -> Value:
        if not self.parking or len(self.scopes) != 1:
            remedy = f"in a thread use `for skb in {self.scope.model}.flow(cpu)`"
            raise self.error(node, "packets are parked in a scenario itself only", remedy)
        if not self.config.flow_sizes:
            raise self.error(node, "the model declares no Packets", "write `packets = Packets(2, each=cpus)`")
        flow = self.as_number(node.args[0]) if len(node.args) == 1 else None
        if not isinstance(flow, Const) or flow.value not in self._parked:
            remedy = f"write a number from 0 to {len(self.config.flow_sizes) - 1}"
            raise self.error(node, "parked() takes the number of a flow", remedy)
        index = self._parked[flow.value]
        self._parked[flow.value] += 1
        local = self.temporary("skb", node)
        packet = self.config.first_sent[flow.value] - self.config.parked[flow.value] + index
        self.graph.emit(Assign(Local(local), Const(packet)), self.site(node))
        self._born(Local(local), self.site(node))
        return self.local_value(local)

    def use_packet(self, packet: Expr, node: ast.expr) -> None:
        """Looking at a packet that is NULL or gone is an error."""
        self.fail(node, apply("==", packet, Const(0)), "null", ("a NULL packet is used",))
        where = Read(WHERE, apply("-", packet, Const(1)))
        gone = apply("or", apply("==", where, Const(Place.WIRE)), apply("==", where, Const(Place.FREED)))
        shown = Show(packet, self.config.skb_domain)
        self.fail(node, gone, "once", (shown, " is used after it has gone"))

    def outside(self, node: ast.expr, cond: Expr, what: str) -> None:
        """Let an operator that is not defined be an error of the run, where it cannot be ruled out."""
        self.fail(node, cond, "domain", (what,))

    def element_bounds(self, index: Expr, size: int, node: ast.expr) -> None:
        """An index outside its array is an error: at once where it is a constant, else where it happens."""
        if index == Own("cpu") and size >= self.config.cpus:
            return
        outside = apply("or", apply("<", index, Const(0)), apply(">=", index, Const(size)))
        if outside == Const(1):
            raise self.error(node, f"there is no element with this index: there are {size}", f"use 0 to {size - 1}")
        shown = Show(index, Domain("int", 0, size))
        self.fail(node, outside, "domain", ("index ", shown, f" is outside an array of {size}"))

    def fail(
        self, node: ast.AST, cond: Expr, name: str, message: tuple[str | Show, ...], *, fatal: bool = True
    ) -> None:
        """Let a property be violated where a condition holds."""
        if cond != Const(0):
            self.graph.emit(Fail(cond, name, message, fatal), self.site(node))

    def choose(self, budget: str | None, text: str, node: ast.Call) -> Value:
        """Let the environment answer true or false, true as long as the budget lasts; `text` is printed for true."""
        local = self.temporary("bool", node)
        site = self.site(node)
        none: Ends = []
        left = Read(BUDGET + (budget or ""))
        if self.atomic is not None and self.turning:
            raise self.error(node, "a choice in a loop is a step of its own", "take the loop out of `with atomic():`")
        if budget is not None:
            self.graph.emit(Primitive(ASK), site)
            some, self.graph.ends = self.graph.branch(apply("!=", left, Const(0)), site)
            self.graph.emit(Assign(Local(local), Const(0)), site)
            none, self.graph.ends = self.graph.take(), some
        self.graph.emit(Choose(local, 2), site)
        yes, no = self.graph.branch(Local(local), site)
        self.graph.ends = yes
        label = Label("choose", (text or f"{self.scope.function}(): {budget or 'choose()'}",))
        taken = Assign(left, apply("-", left, Const(1))) if budget is not None else Nop()
        self.graph.emit(taken, site, label=label)
        self.graph.ends += [*no, *none]
        return self.local_value(local)

    def access(self, node: ast.AST, primitive: Primitive, label: Label, *, boundary: bool = True) -> None:
        """Add an access to shared memory: one step, unless it is within an atomic block."""
        if self.atomic is True:
            if primitive.name in {"spin_lock", "wait_until"}:
                remedy = "wait before the block, or make it the first thing in it"
                raise self.error(node, "nothing can wait in the middle of an atomic block", remedy)
            boundary = False
            primitive = replace(primitive, joined=True)
        elif self.atomic is False and boundary:
            self.atomic = True
        self.graph.emit(primitive, self.site(node), boundary=boundary, label=label, access=primitive)

    def place_text(self, value: Value) -> tuple[str | Show, ...]:
        """Return how a variable is printed: `qlen`, `slots[2]`, `defer_list.first`."""
        place = value.place
        assert isinstance(place, Read)
        suffix = FIRST if value.name == FIRST else ""
        if place.index is None:
            return (place.var + suffix,)
        size = self.config.variables[place.var].size or 0
        return (place.var, "[", Show(place.index, Domain("int", 0, size)), "]" + suffix)

    def address(self, value: Value) -> tuple[str | Show, ...]:
        """Return how the address of a variable or of a list of the thread's own is printed: `&gso_skb`."""
        if isinstance(value.place, Local):
            return (f"&{value.place.name.rpartition('.')[2].lstrip('%0123456789') or 'list'}",)
        return ("&", *self.place_text(value))


def _assigned_names(node: ast.AST) -> set[str]:
    """Return the names that a function, a statement or an expression assigns."""
    names = {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    return names | _exchanged(node)


def _exchanged(node: ast.AST) -> set[str]:
    """Return the locals that try_cmpxchg() sets."""
    found = set()
    for call in ast.walk(node):
        match call:
            case ast.Call(func=ast.Name(id="try_cmpxchg"), args=[_, ast.Name(id=name), *_]):
                found.add(name)
            case _:
                pass
    return found


def _changed_on_the_way(node: ast.stmt) -> set[str]:
    """Return the locals that an expression of a statement changes while others of it may still need them."""
    match node:
        case ast.If(test=test) | ast.While(test=test):
            whole: ast.AST = test
        case ast.For(iter=values):
            whole = values
        case ast.With():
            return set()
        case _:
            whole = node
    return {n.target.id for n in ast.walk(whole) if isinstance(n, ast.NamedExpr)} | _exchanged(whole)


def _is_fresh(place: Local) -> bool:
    """Tell whether a list was just made or returned, and has no name yet."""
    return place.name.rpartition(".")[2].startswith("%")


def _conversion(kind: str, value: Value, node: ast.expr) -> str:
    """Return what to write where a value of another kind is needed."""
    text = ast.unparse(node)
    match kind, value.kind:
        case "bool", "int" if isinstance(node, ast.Constant):
            return f"write {bool(node.value)}"
        case "bool", "int" | "flags":
            return f"write a condition: `{text} != 0`"
        case "flags", "bit":
            return f"write BIT({text})"
        case "int", "queue":
            return f"write len({text}) for its length"
        case _, "void":
            return "call something that returns a value"
    needed = {"skb": "a packet, or None", "queue": "SkbQueue(), or a list of the thread's own"}
    return f"write {needed.get(kind, WORDS[kind])} here"  # type: ignore[index]


def _waits(node: ast.stmt) -> bool:
    """Tell whether a statement is what an atomic block can begin with and nothing else can: it waits."""
    match node:
        case ast.Expr(value=ast.Call(func=ast.Name(id="spin_lock" | "wait_until"))):
            return True
    return False


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None
