"""From the syntax tree of a litmus test to a program.

Registers are locals. Those that the test looks at are put into ghost variables where their thread ends, within its last
step: a ghost has no store buffer, so that nothing is ordered or delayed by it. A test declares no bounds; those of
variables and registers are found from what is stored to them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from qmodel.frontend.declarations import BUILTIN, OF_PACKETS
from qmodel.frontend.diagnostics import SpecError, did_you_mean
from qmodel.frontend.litmus.condition import Location
from qmodel.frontend.litmus.primitives import ORDER_LESS, SIGNATURES, Signature, operation
from qmodel.frontend.litmus.syntax import (
    Binary,
    Call,
    Declare,
    Deref,
    Do,
    Expression,
    If,
    Initial,
    Litmus,
    Name,
    Number,
    Set,
    Span,
    Statement,
    Store,
    Thread,
    Unary,
)
from qmodel.ir import program as ir
from qmodel.ir.expr import Const, Domain, Expr, Local, Own, Read, apply, interval
from qmodel.ir.graph import Ends, GraphBuilder
from qmodel.ir.program import (
    RCU_AWAITED,
    RCU_DEPTH,
    RCU_PRESENT,
    Assign,
    Label,
    LocalVariable,
    Node,
    Nop,
    Packets,
    Primitive,
    Program,
    Show,
    Site,
    Template,
    Variable,
)

_NUMBER = Domain("int", 0, 0)
_INT = 2**31
"""What C's int holds is below this, and not below its negative."""
_MOST_BITS = 16
_AT_ONCE = frozenset(
    {"smp_mb", "smp_rmb", "smp_wmb", "smp_mb__before_atomic", "smp_mb__after_atomic", "rcu_read_unlock"}
)
"""What is no step of its own, unless the memory model makes it one."""


@dataclass(frozen=True, slots=True)
class _Kinds:
    """What variables are used as: locks, and words of single bits with how many there are."""

    locks: frozenset[str]
    bits: dict[str, int]


def build(test: Litmus) -> Program:
    """Compile a test. Raises SpecError."""
    kinds = _kinds(test)
    observed = {place: at for place, at in test.named.items() if place.thread is not None}
    compilers = [_ThreadCompiler(test, t, kinds, [p for p in observed if p.thread == t.number]) for t in test.threads]
    for place, at in test.named.items():
        _check_named(test, kinds, compilers, place, at)
    graphs = [c.compile() for c in compilers]
    names = dict.fromkeys([*test.initial, *(p for t in test.threads for p in t.parameters)])
    initial = {n: test.initial.get(n, Initial(0, test.threads[0].at)) for n in names}
    for name in kinds.locks:
        if initial[name].value:
            at = initial[name].at
            raise test.file.error_at(
                at.line, at.column, at.end, f"`{name}` is a lock, and free at first", "leave the value out"
            )
    bounds = _bounds(test, graphs, {n: initial[n].value for n in names if n not in kinds.locks})
    variables = {n: _variable(test, kinds, bounds, n, initial[n], len(compilers)) for n in names}
    for place in observed:
        register = compilers[place.thread or 0].register(place.name)
        variables[place.key] = Variable(place.key, Domain("int", *bounds[register]), None, (0,), ghost=True)
    variables |= _rcu(graphs)
    templates = {c.thread.name: c.template(g, bounds) for c, g in zip(compilers, graphs, strict=True)}
    site = compilers[0].site(test.threads[0].at)
    return Program(
        model=test.name,
        variant="",
        variables=variables,
        templates=templates,
        threads=tuple(ir.Thread(t.number, t.name, "task", t.number) for t in test.threads),
        setup=Template("setup", "task", (Node(Nop(), (), site, boundary=True),), {}, "", site),
        properties=(),
        measures=(),
        packets=Packets(),
        builtin=tuple((name, doc) for name, doc in BUILTIN.items() if name not in OF_PACKETS),
    )


def _kinds(test: Litmus) -> _Kinds:
    """Find what is a lock and what is a word of bits, from how it is used."""
    locks: set[str] = set()
    bits: dict[str, int] = {}
    for thread in test.threads:
        locks |= {n for n, kind in thread.parameters.items() if kind == "spinlock_t"}
        for call in _calls(thread.body):
            signature = SIGNATURES.get(call.name)
            if signature is None or len(call.arguments) != len(signature.takes):
                continue
            for letter, argument in zip(signature.takes, call.arguments, strict=True):
                if letter == "l" and isinstance(argument, Name):
                    locks.add(argument.name)
            match call.arguments:
                case (Number(bit), Name(name)) if signature.word:
                    bits[name] = max(bits.get(name, 1), bit + 1)
                case _:
                    pass
    return _Kinds(frozenset(locks), bits)


def _calls(part: Sequence[Statement] | Statement | Expression | None) -> Iterator[Call]:
    match part:
        case Call(_, arguments):
            yield part
            for argument in arguments:
                yield from _calls(argument)
        case Unary(_, argument):
            yield from _calls(argument)
        case Binary(_, first, second):
            yield from _calls(first)
            yield from _calls(second)
        case Declare(_, value) | Set(_, value) | Store(_, value) | Do(value):
            yield from _calls(value)
        case If(test, then, otherwise):
            yield from _calls(test)
            yield from _calls(then)
            yield from _calls(otherwise)
        case tuple():
            for statement in part:
                yield from _calls(statement)
        case _:
            pass


def _check_named(test: Litmus, kinds: _Kinds, compilers: list[_ThreadCompiler], place: Location, at: Span) -> None:
    """What the condition names must be there."""

    def wrong(message: str, remedy: str) -> SpecError:
        return test.file.error_at(at.line, at.column, at.end, message, remedy)

    if place.thread is None:
        known = {*test.initial, *(p for t in test.threads for p in t.parameters)}
        if place.name not in known:
            raise wrong(f"no thread has a variable `{place.name}`", did_you_mean(place.name, known))
        if place.name in kinds.locks:
            raise wrong(f"`{place.name}` is a lock", "ask for a variable that it protects")
    elif place.thread >= len(compilers):
        raise wrong(f"there is no thread P{place.thread}", f"they are P0 to P{len(compilers) - 1}")
    else:
        registers = compilers[place.thread].registers
        if place.name not in registers:
            raise wrong(f"P{place.thread} has no register `{place.name}`", did_you_mean(place.name, registers))


# --- variables --------------------------------------------------------------------------------------------------------


def _variable(
    test: Litmus, kinds: _Kinds, bounds: dict[str, tuple[int, int]], name: str, initial: Initial, threads: int
) -> Variable:
    if name in kinds.locks:
        return Variable(name, Domain("lock", 0, threads), None, (0,))
    low, high = bounds[name]
    domain = Domain("int", low, high)
    if name in kinds.bits:
        if low < 0:
            at = initial.at
            raise test.file.error_at(at.line, at.column, at.end, f"`{name}` is a word of bits, and may be negative")
        width = max(kinds.bits[name], high.bit_length())
        domain = Domain("flags", 0, (1 << width) - 1, tuple(map(str, range(width))))
    return Variable(name, domain, None, (initial.value,))


def _rcu(graphs: list[tuple[Node, ...]]) -> dict[str, Variable]:
    """Declare what RCU counts, where a thread uses it."""
    used = [[n.access.name for n in nodes if n.access is not None] for nodes in graphs]
    deepest = max(names.count("rcu_read_lock") for names in used)
    waits = len(graphs) ** 2 if any("synchronize_rcu" in names for names in used) else 0
    if not deepest and not waits:
        return {}
    domain, threads = Domain("int", 0, max(deepest, 1)), len(graphs)
    found = {RCU_PRESENT: Variable(RCU_PRESENT, domain, threads, (0,) * threads, ghost=True, rest=0)}
    found[RCU_DEPTH] = Variable(RCU_DEPTH, domain, threads, (0,) * threads, ghost=True)
    if waits:
        found[RCU_AWAITED] = Variable(RCU_AWAITED, domain, waits, (0,) * waits, ghost=True)
    return found


def _bounds(test: Litmus, graphs: list[tuple[Node, ...]], initial: dict[str, int]) -> dict[str, tuple[int, int]]:
    """Return bounds of every variable and register.

    Each node runs once at most, so that a value comes from a chain of no more of them than there are: after so many
    rounds the bounds hold all values, also where two threads count each other up and no round changes nothing.
    """
    bounds = {name: (value, value) for name, value in initial.items()}
    nodes = [node for graph in graphs for node in graph]

    def of(part: Local | Read | Own) -> tuple[int, int]:
        name = part.var if isinstance(part, Read) else getattr(part, "name", "")
        return bounds.get(name, (0, 0))

    for _ in nodes:
        before = dict(bounds)
        for node in nodes:
            for name, value in _made(node):
                low, high = value if isinstance(value, tuple) else interval(value, of, 1)
                known = bounds.get(name, (0, 0))
                bounds[name] = min(known[0], low), max(known[1], high)
                if low < -_INT or high >= _INT:
                    site = node.site
                    message = f"`{name.rpartition('.')[2]}` may leave the range of an int here"
                    raise test.file.error_at(site.line, site.column, site.end_column, message, "use small numbers")
        if bounds == before:
            break
    return bounds


def _made(node: Node) -> Iterator[tuple[str, Expr | tuple[int, int]]]:
    """Yield what a node gives values to, with the value."""
    match node.instruction:
        case Assign(Local(name), value):
            yield name, value
        case Primitive(name, target, Read(var) as place, arguments) if (signature := operation(name)) is not None:
            if signature.stored is not None:
                yield var, signature.stored(place, arguments)
            match signature.returned:
                case Domain(_, low, high) if target is not None:
                    yield target, (low, high)
                case Domain() | None:
                    pass
                case returned if target is not None:
                    yield target, returned(place, arguments)
        case _:
            pass


# --- threads ----------------------------------------------------------------------------------------------------------


class _ThreadCompiler:
    """Compiles one thread. observed: the registers whose last values the test looks at."""

    def __init__(self, test: Litmus, thread: Thread, kinds: _Kinds, observed: list[Location]) -> None:
        self.test, self.thread, self.kinds, self.observed = test, thread, kinds, observed
        self.registers: dict[str, Span] = {}
        self._declare(thread.body)
        self._temporaries = 0
        self._sections = 0
        self.graph = GraphBuilder(self.site(thread.at))

    def compile(self) -> tuple[Node, ...]:
        """Return the graph of the thread."""
        start = self.site(self.thread.at)
        for name in self.registers:
            self.graph.emit(Assign(Local(self.register(name)), Const(0)), start)
        self._block(self.thread.body)
        if self._sections:
            raise self._wrong(
                self.thread.at, f"{self.thread.name} ends within an RCU section", "call rcu_read_unlock()"
            )
        for place in self.observed:
            self.graph.emit(Assign(Read(place.key), Local(self.register(place.name))), start)
        return self.graph.finish(start)

    def template(self, nodes: tuple[Node, ...], bounds: dict[str, tuple[int, int]]) -> Template:
        """Return the compiled thread with the bounds of its locals."""
        site = self.site(self.thread.at)
        names = [name for name in bounds if name.startswith(f"{self.thread.name}.")]
        declared = {n: LocalVariable(Domain("int", *bounds[n]), declared=False, site=site) for n in names}
        return Template(self.thread.name, "task", nodes, declared, "", site)

    def register(self, name: str) -> str:
        """Return the full name of a register."""
        return f"{self.thread.name}.{name}"

    def site(self, at: Span) -> Site:
        """Return a place in the thread's text."""
        file, name = self.test.file, self.thread.name
        return Site(file.name, at.line, at.column, at.end, name, file.line(at.line).strip(), (name,))

    def _wrong(self, at: Span, message: str, remedy: str = "") -> SpecError:
        return self.test.file.error_at(at.line, at.column, at.end, message, remedy)

    def _declare(self, body: Sequence[Statement]) -> None:
        """Collect the registers: what is declared, and as in herd7 whatever else is assigned."""
        for statement in body:
            match statement:
                case Set(name, _, at) if name not in self.thread.parameters:
                    self.registers.setdefault(name, at)
                case Declare(name, _, at):
                    if name in self.registers or name in self.thread.parameters:
                        raise self._wrong(at, f"`{name}` is there already", "use another name")
                    self.registers[name] = at
                case If(_, then, otherwise):
                    self._declare(then)
                    self._declare(otherwise)
                case _:
                    pass

    # --- statements ---------------------------------------------------------------------------------------------------

    def _block(self, body: Sequence[Statement]) -> None:
        for statement in body:
            self._statement(statement)

    def _statement(self, statement: Statement) -> None:
        match statement:
            case Declare(name, value):
                if value is not None:
                    self._assign(statement, name, value)
            case Set(name, value, at):
                self._need_register(name, at)
                self._assign(statement, name, value)
            case Store(target, value, at):
                place = self._place(target.name, target.at)
                self._access(Primitive("store", None, place, (self._value(value),), marked=True), at)
            case Do(value):
                assert isinstance(value, Call)
                self._call(value, wanted=False)
            case If():
                self._if(statement)

    def _assign(self, statement: Statement, name: str, value: Expression) -> None:
        new = self._value(value)
        self.graph.emit(Assign(Local(self.register(name)), new), self.site(statement.at))

    def _if(self, statement: If) -> None:
        yes, no = self._condition(statement.test)
        before = self._sections
        self.graph.ends = yes
        self._block(statement.then)
        after_yes, sections = self.graph.take(), self._sections
        self._sections = before
        self.graph.ends = no
        self._block(statement.otherwise)
        if sections != self._sections:
            raise self._wrong(statement.at, "an RCU section ends on one way only", "begin and end it on both ways")
        self.graph.ends += after_yes

    # --- values -------------------------------------------------------------------------------------------------------

    def _value(self, expression: Expression) -> Expr:
        """Compile an expression, its accesses from left to right, and return its value."""
        match expression:
            case Number(value):
                return Const(value)
            case Name(name, at):
                self._need_register(name, at)
                return Local(self.register(name))
            case Deref(name, at):
                target = self._temporary()
                self._access(Primitive("load", target, self._place(name, at), (), marked=True), at)
                return Local(target)
            case Call():
                return self._call(expression, wanted=True)
            case Unary("!", argument):
                return apply("not", self._value(argument))
            case Unary("-", argument):
                return apply("-", Const(0), self._value(argument))
            case Unary("~", argument):
                return apply("-", Const(-1), self._value(argument))
            case Unary(_, argument):
                return self._value(argument)
            case Binary("&&" | "||"):
                return self._logic(expression)
            case Binary(op, first, second):
                left, right = self._value(first), self._value(second)
                if op in {"<<", ">>"} and not (isinstance(right, Const) and 0 <= right.value <= _MOST_BITS):
                    raise self._wrong(second.at, f"a shift is by a constant from 0 to {_MOST_BITS}")
                return apply(op, left, right)

    def _logic(self, expression: Binary) -> Expr:
        """Compile `&&`, `||`: what stands behind is not read where what stands before decides."""
        target = Local(self._temporary())
        yes, no = self._condition(expression)
        after: Ends = []
        for ends, value in ((yes, 1), (no, 0)):
            self.graph.ends = ends
            if ends:
                self.graph.emit(Assign(target, Const(value)), self.site(expression.at))
            after += self.graph.take()
        self.graph.ends = after
        return target

    def _condition(self, expression: Expression) -> tuple[Ends, Ends]:
        """Compile a condition to where it holds and where it does not."""
        match expression:
            case Binary("&&" | "||" as op, first, second):
                yes, no = self._condition(first)
                on, decided = (yes, no) if op == "&&" else (no, yes)
                self.graph.ends = on
                yes, no = self._condition(second)
                return (yes, [*no, *decided]) if op == "&&" else ([*yes, *decided], no)
            case Unary("!", argument):
                yes, no = self._condition(argument)
                return no, yes
            case _:
                value = self._value(expression)
                return self.graph.branch(apply("!=", value, Const(0)), self.site(expression.at))

    # --- accesses -----------------------------------------------------------------------------------------------------

    def _call(self, call: Call, *, wanted: bool) -> Expr:
        """Compile a call, and return what it returns. wanted: something is done with that."""
        signature = SIGNATURES.get(call.name)
        if call.name == "barrier" and not call.arguments and not wanted:
            return Const(0)  # it stops the compiler, and nothing is compiled out of order here
        if signature is None:
            raise self._wrong(call.at, f"`{call.name}` has no meaning here", self._instead(call.name))
        if len(call.arguments) != len(signature.takes):
            words = {"*": "*x", "x": "x", "l": "lock", "b": "bit", "v": "value"}
            form = f"{call.name}({', '.join(words[letter] for letter in signature.takes)})"
            raise self._wrong(call.at, f"`{call.name}` takes {len(signature.takes)} arguments", f"write {form}")
        if wanted and signature.returned is None:
            raise self._wrong(call.at, f"`{call.name}` returns nothing", "do not use its value")
        self._section(call)
        place: Read | None = None
        values: list[Expr] = []
        for letter, argument in zip(signature.takes, call.arguments, strict=True):
            if letter == "v":
                values.append(self._value(argument))
            elif letter == "b":
                values.append(self._bit(argument))
            else:
                place = self._pointer(call, letter, argument)
        return self._operate(call, signature, place, tuple(signature.given(values)))

    def _operate(self, call: Call, signature: Signature, place: Read | None, values: tuple[Expr, ...]) -> Expr:
        target = self._temporary() if signature.returned is not None else None
        self._access(Primitive(signature.name, target, place, values, marked=True), call.at)
        if signature.after:
            self._access(Primitive(signature.after), call.at)
        if target is None:
            return Const(0)
        return Local(target) if signature.answer is None else signature.answer(Local(target))

    def _access(self, primitive: Primitive, at: Span) -> None:
        signature = operation(primitive.name)
        kind = signature.kind if signature else "rcu"
        words = self.test.file.line(at.line)[at.column : at.end]
        shown: tuple[Show | str, ...] = ()
        if primitive.target is not None:
            shown = (" = ", Show(Local(primitive.target), _NUMBER))
        label = Label(kind, (words, *shown))
        boundary = primitive.name not in _AT_ONCE
        self.graph.emit(primitive, self.site(at), boundary=boundary, label=label, access=primitive)

    def _section(self, call: Call) -> None:
        """Count RCU sections: they end in the thread that they began in."""
        self._sections += {"rcu_read_lock": 1, "rcu_read_unlock": -1}.get(call.name, 0)
        if self._sections < 0:
            raise self._wrong(call.at, "no RCU section has begun here", "call rcu_read_lock() before")
        if call.name == "synchronize_rcu" and self._sections:
            raise self._wrong(call.at, "this waits for its own RCU section, for ever", "end the section before")

    def _pointer(self, call: Call, letter: str, argument: Expression) -> Read:
        """Compile the argument that says where a primitive works."""
        match argument:
            case Deref(name, at) if letter == "*":
                return self._place(name, at)
            case Name(name, at) if letter == "l":
                self._need_parameter(name, at)
                return Read(name)
            case Name(name, at) if letter == "x":
                return self._place(name, at)
            case Name(name, at) | Deref(name, at):
                form = name if isinstance(argument, Deref) else f"*{name}"
                raise self._wrong(at, f"`{call.name}` takes {'*x' if letter == '*' else 'a pointer'}", f"write {form}")
            case _:
                raise self._wrong(argument.at, f"`{call.name}` works on a shared variable", "name a parameter")

    def _bit(self, argument: Expression) -> Expr:
        value = self._value(argument)
        if isinstance(value, Const) and 0 <= value.value < _MOST_BITS:
            return value
        raise self._wrong(argument.at, f"a bit is a constant from 0 to {_MOST_BITS - 1}")

    def _place(self, name: str, at: Span) -> Read:
        self._need_parameter(name, at)
        if name in self.kinds.locks:
            raise self._wrong(at, f"`{name}` is a lock", "use spin_lock, spin_trylock, spin_unlock or spin_is_locked")
        return Read(name)

    def _need_parameter(self, name: str, at: Span) -> None:
        if name in self.thread.parameters:
            return
        if name in self.registers:
            raise self._wrong(at, f"`{name}` is a register", "name a parameter")
        parameters = self.thread.parameters
        otherwise = f"add `int *{name}` to the parameters of {self.thread.name}"
        raise self._wrong(
            at, f"{self.thread.name} has no parameter `{name}`", did_you_mean(name, parameters, otherwise)
        )

    def _need_register(self, name: str, at: Span) -> None:
        if name in self.registers:
            return
        if name in self.thread.parameters:
            raise self._wrong(
                at, f"`{name}` is a pointer, and a register is needed", f"write *{name}, or READ_ONCE(*{name})"
            )
        known = did_you_mean(name, self.registers, f"declare it: `int {name};`")
        raise self._wrong(at, f"{self.thread.name} has no register `{name}`", known)

    def _instead(self, name: str) -> str:
        base = next((name.removesuffix(e) for e in ORDER_LESS if name.endswith(e)), "")
        if base in SIGNATURES:
            return f"no model knows an order between none and full: write {base}"
        return did_you_mean(name, SIGNATURES)

    def _temporary(self) -> str:
        self._temporaries += 1
        return self.register(f"%{self._temporaries}")
