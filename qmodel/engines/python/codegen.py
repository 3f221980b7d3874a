"""Generating Python: one function for each step of each thread.

A step function takes a packed state `s` and `emit`, and calls `emit` with each state that the step leads to. It
returns true where the thread waits for a lock in a way that could close a circle. `event(property, thread)` is called
where a property is violated on the way.

A new state is written as the old one plus what changes: a field that goes from a to b, n bits up, adds `b - a << n`, so
that a step costs one big addition. What is known of a field is kept in `_Env` and read once.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from qmodel.engines.python.expressions import Atom, ExpressionWriter
from qmodel.ir.expr import Apply, At, Const, Expr, Local, Read
from qmodel.ir.flow import defines, live_before
from qmodel.ir.interpreter import LOCAL_STEPS
from qmodel.ir.own import bind
from qmodel.ir.program import Assign, Branch, Choose, Fail, Guard, Nop, Program, Thread
from qmodel.passes.locks import maybe_held

if TYPE_CHECKING:
    from qmodel.engines.layout import Field, Layout

_WAYS = 16
"""Up to so many ways through a step are written out one by one; where there are more they are joined again."""


@dataclass(slots=True)
class _Env:
    """What is known at a point of a step.

    base: the variable that holds the packed state, without `terms` and `constant`, which are still to be added.
    locals: values of the thread's locals now; original: as they were when the step began.
    known: values of shared variables by name and index. touched: variables with terms at a fixed index; blurred: those
    with terms at a computed one.
    """

    base: str = "s"
    locals: dict[str, Atom] = field(default_factory=dict)
    original: dict[str, Atom] = field(default_factory=dict)
    known: dict[tuple[str, Atom], Atom] = field(default_factory=dict)
    terms: list[str] = field(default_factory=list)
    constant: int = 0
    touched: set[str] = field(default_factory=set)
    blurred: set[str] = field(default_factory=set)

    def copy(self) -> _Env:
        return _Env(
            self.base, dict(self.locals), dict(self.original), dict(self.known), list(self.terms), self.constant,
            set(self.touched), set(self.blurred),
        )  # fmt: skip

    def sum(self) -> str:
        """Return the code of the packed state."""
        last = [] if self.constant == 0 else [str(self.constant)]
        return " + ".join([self.base, *self.terms, *last]).replace("+ -", "- ")

    def forget(self, var: str) -> None:
        """Forget what is known of a variable."""
        self.known = {key: atom for key, atom in self.known.items() if key[0] != var}


class StepGenerator:
    """Writes the step functions of one thread. `properties` numbers what `event` is told."""

    def __init__(self, program: Program, layout: Layout, thread: Thread, properties: list[str]) -> None:
        self.program, self.layout, self.thread, self.properties = program, layout, thread, properties
        self.template = program.template_of(thread.tid)
        self.nodes = self.template.nodes
        self.places = layout.places[thread.template]
        self.numbers = self.places.number
        self.live = live_before(self.nodes)
        self.maybe = maybe_held(program, self.template)
        self.fields = layout.locals[thread.tid]
        self.lines: list[str] = []
        self.depth = 1
        self.names = 0
        self.start = 0
        self.joining = False

    def name(self, start: int) -> str:
        """Return the name of the function of the step that starts at a boundary."""
        return f"{self.template.name.strip('_')}_{self.thread.tid}_{self.numbers[start]}"

    def function(self, start: int) -> str:
        """Return the function of the step that starts at a boundary."""
        site = self.nodes[start].site
        self.lines, self.depth, self.names, self.start = [], 0, 0, start
        self.line(f"def {self.name(start)}(s, emit):")
        self.depth = 1
        self.line(f"# {site.file}:{site.line}: {site.source}")
        region = self._region(start)
        if region is None:
            self._machine(start)
        else:
            self.joining = region > _WAYS
            self._write(start, _Env(), None, entering=True)
        self.line("return False")
        return "\n".join(self.lines)

    def line(self, text: str) -> None:
        """Write a line."""
        self.lines.append("    " * self.depth + text)

    def fresh(self, code: str) -> str:
        """Give a value a name."""
        self.names += 1
        self.line(f"v{self.names} = {code}")
        return f"v{self.names}"

    # --- the graph --------------------------------------------------------------------------------------------------

    def _inside(self, number: int) -> tuple[int, ...]:
        """Return the nodes of the same step that a node goes on to."""
        return tuple(n for n in self.nodes[number].next if not self.nodes[n].boundary)

    def _region(self, start: int) -> int | None:
        """Return the number of ways through the step that starts at a node, or None where there is a loop in it."""
        ways: dict[int, int | None] = {}

        def count(number: int) -> int:
            if number in ways:
                known = ways[number]
                if known is None:
                    raise _LoopError
                return known
            ways[number] = None
            total = sum(1 if self.nodes[n].boundary else count(n) for n in self.nodes[number].next)
            ways[number] = total
            return total

        try:
            return count(start)
        except _LoopError:
            return None

    def _meeting(self, branch: int) -> int | None:
        """Return the node where all ways from a branch meet again, or None where a step can end or choose before."""
        order = self._order(branch)
        active = set(self.nodes[branch].next)
        while len(active) > 1:
            number = min(active, key=lambda n: order.get(n, len(order)))
            if self.nodes[number].boundary or isinstance(self.nodes[number].instruction, Choose):
                return None
            active.remove(number)
            active.update(self.nodes[number].next)
        return active.pop()

    def _order(self, start: int) -> dict[int, int]:
        """Return the nodes of a step without loops, each before those that it goes on to, from a node on."""
        done: list[int] = []
        seen: set[int] = set()

        def visit(number: int) -> None:
            seen.add(number)
            for successor in self._inside(number):
                if successor not in seen:
                    visit(successor)
            done.append(number)

        visit(start)
        return {number: i for i, number in enumerate(reversed(done))}

    # --- a step without loops ---------------------------------------------------------------------------------------

    def _write(self, number: int, env: _Env, until: int | None, *, entering: bool = False) -> bool:
        """Write the graph from a node to the end of the step, or to `until`; return whether that is reached."""
        while number != until:
            node = self.nodes[number]
            if node.boundary and not entering:
                self._leave(number, env)
                return False
            entering = False
            if isinstance(node.instruction, Choose):
                self._choose(node.instruction, node.next[0], env)
                return False
            if isinstance(node.instruction, Branch):
                code = self.condition(env, node.instruction.cond)
                if isinstance(code, int):
                    number = node.next[0 if code else 1]
                    continue
                meeting = self._meeting(number) if self.joining else None
                if meeting is None:
                    assert until is None, "a branch within what is joined meets again"
                    self._split(code, (node.next[0], env.copy()), (node.next[1], env))
                    return False
                if not self._join(number, code, meeting, env):
                    return False
                number = meeting
                continue
            if not self._instruction(number, env):
                return False
            number = node.next[0]
        return True

    def _split(self, code: str, yes: tuple[int, _Env], no: tuple[int, _Env]) -> None:
        self.line(f"if {code}:")
        for number, env in (yes, no):
            self.depth += 1
            before = len(self.lines)
            self._write(number, env, None)
            if len(self.lines) == before:
                self.line("pass")
            self.depth -= 1
            if number == yes[0] and env is yes[1]:
                self.line("else:")

    def _join(self, branch: int, code: str, meeting: int, env: _Env) -> bool:
        """Write both sides of a branch up to where they meet, and make what they know the same.

        Return whether the step can go on there: not where both sides end in an error.
        """
        inner = self._between(branch, meeting)
        changed = {d for n in inner if (d := defines(self.nodes[n].instruction)) and d in self.live[meeting]}
        stored = {
            i.target.var
            for n in inner
            if isinstance(i := self.nodes[n].instruction, Assign) and isinstance(i.target, Read)
        }
        self.names += 1
        base = f"s{self.names}"
        names = {name: f"m{self.names}_{i}" for i, name in enumerate(sorted(changed))}
        met = False
        self.line(f"if {code}:")
        for successor, word in zip(self.nodes[branch].next, ("else:", ""), strict=True):
            side = env.copy()
            self.depth += 1
            if self._write(successor, side, meeting):
                met = True
                for name, joined in names.items():
                    self.line(f"{joined} = {self.local(side, name)}")
                self.line(f"{base} = {side.sum()}")
            self.depth -= 1
            if word:
                self.line(word)
        env.base, env.terms, env.constant = base, [], 0
        env.touched, env.blurred = set(), set()
        for var in stored:
            env.forget(var)
        env.locals.update(names)
        return met

    def _between(self, branch: int, meeting: int) -> set[int]:
        found: set[int] = set()
        stack = list(self.nodes[branch].next)
        while stack:
            number = stack.pop()
            if number != meeting and number not in found:
                found.add(number)
                stack.extend(self.nodes[number].next)
        return found

    def _choose(self, choose: Choose, following: int, env: _Env) -> None:
        """Write what follows a choice as a function of the choice, so that each alternative can end by itself."""
        self.names += 1
        name, chosen = f"chosen{self.names}", f"c{self.names}"
        self.line(f"def {name}({chosen}):")
        self.depth += 1
        inner = env.copy()
        inner.locals[choose.target] = chosen
        self._write(following, inner, None)
        self.depth -= 1
        for value in range(choose.count):
            self.line(f"{name}({value})")

    def _instruction(self, number: int, env: _Env) -> bool:
        """Write an instruction with one successor. Return whether the step can ever go on there."""
        node = self.nodes[number]
        match node.instruction:
            case Assign(Local(name), value):
                if any(name in self.live[n] for n in node.next):
                    atom = self.value(env, value)
                    simple = isinstance(atom, int) or atom.isidentifier()
                    env.locals[name] = atom if simple else self.fresh(str(atom))
            case Assign(Read() as target, value):
                self.store(env, target, self.value(env, value))
            case Guard(cond, lock):
                code = self.condition(env, cond)
                risky = lock is not None and self._risky(number)
                if not code or isinstance(code, str):
                    self.line(f"if not ({code}):" if code else "if True:")
                    self.line("    return True" if risky else "    return False")
            case Fail(cond, name, _, fatal):
                code = self.condition(env, cond)
                if code == 0:
                    return True
                self.line(f"if {code}:" if isinstance(code, str) else "if True:")
                self.line(f"    event({self.properties.index(name)}, {self.thread.tid}, {fatal})")
                if fatal:
                    self.line("    return False")
                return not (fatal and isinstance(code, int))
            case Nop():
                pass
            case other:
                raise AssertionError(f"{other} was not lowered")
        return True

    def _risky(self, number: int) -> bool:
        """Tell whether waiting for a lock here can be part of a circle: another lock is held, or a task preempted."""
        return bool(self.maybe[number]) or (
            self.thread.kind == "softirq" and holds_with_softirqs_on(self.program, self.thread.cpu)
        )

    def _leave(self, number: int, env: _Env) -> None:
        """Write the end of a step: the new state, with the thread at its next boundary."""
        before, after = set(self.places.live[self.start]), set(self.places.live[number])
        for name in sorted(before | after):
            if name in before and name in after and env.locals.get(name) == env.original.get(name):
                continue  # as it was
            low = self.fields[name].low
            new = self.local(env, name) if name in after else low
            old = self._original(env, name) if name in before else low
            self._add(env, new, old, str(self.fields[name].shift))
        env.constant += self.layout.counters[self.thread.tid].put(self.numbers[number])
        env.constant -= self.layout.counters[self.thread.tid].put(self.numbers[self.start])
        self.line(f"emit({env.sum()})")

    def _original(self, env: _Env, name: str) -> Atom:
        """Return the code of the value that a local had when the step began."""
        if name not in env.original:
            bits = self.fields[name]
            env.original[name] = self.fresh(read_field("s", bits)) if bits.width else bits.low
        return env.original[name]

    # --- a step with loops ------------------------------------------------------------------------------------------

    def _machine(self, start: int) -> None:
        """Write a step with a loop in it as a machine that goes from node to node; it is rare and need not be fast.

        A choice starts the machine anew behind it, once for each alternative.
        """
        env = _Env()
        inner = sorted(self._order(start))
        used = {name for n in inner for name in self.live[n] | {defines(self.nodes[n].instruction) or ""}} - {""}
        slots = {name: f"l{i}" for i, name in enumerate(sorted(used))}
        self.line(f"def machine({', '.join(['q', 'k', *slots.values()])}):")
        self.depth += 1
        self.line(f"for _ in range({LOCAL_STEPS}):")
        self.depth += 1
        for number in inner:
            self.line(f"if k == {number}:")
            self.depth += 1
            self._turn(number, _Env("q", {name: slots[name] for name in self.live[number]}), slots)
            self.depth -= 1
        self.depth -= 1
        self.line("else:")
        self.line(f"    event({self.properties.index('endless')}, {self.thread.tid}, True)")
        self.line("return False")
        self.depth -= 1
        values = [str(self.local(env, name)) if name in self.live[start] else "0" for name in slots]
        self.line(f"return machine({', '.join(['s', str(start), *values])})")

    def _turn(self, number: int, env: _Env, slots: dict[str, str]) -> None:
        node = self.nodes[number]
        targets = node.next
        code: Atom = 1
        if isinstance(node.instruction, Choose):
            for value in range(node.instruction.count):
                if self.nodes[targets[0]].boundary:
                    ended = env.copy()
                    ended.locals[node.instruction.target] = value
                    self._leave(targets[0], ended)
                    continue
                chosen = [str(value) if name == node.instruction.target else slot for name, slot in slots.items()]
                self.line(f"machine({', '.join(['q', str(targets[0]), *chosen])})")
            self.line("return False")
            return
        if isinstance(node.instruction, Branch):
            code = self.condition(env, node.instruction.cond)
        elif not self._instruction(number, env):
            return
        defined = defines(node.instruction)
        if defined is not None and defined in env.locals:
            self.line(f"{slots[defined]} = {env.locals[defined]}")
            env.locals[defined] = slots[defined]
        self.line(f"q = {env.sum()}")
        env = _Env("q", env.locals, env.original)
        if isinstance(code, str):
            self.line(f"if {code}:")
            self.depth += 1
            self._goto(targets[0], env.copy())
            self.depth -= 1
            self._goto(targets[1], env)
        else:
            self._goto(targets[0 if code else 1], env)

    def _goto(self, number: int, env: _Env) -> None:
        if self.nodes[number].boundary:
            self._leave(number, env)
            self.line("break")
        else:
            self.line(f"k = {number}")
            self.line("continue")

    # --- values -----------------------------------------------------------------------------------------------------

    def value(self, env: _Env, expr: Expr) -> Atom:
        """Return the code of a value."""
        return _Values(self, env).value(bind(self.program, self.thread, expr))

    def condition(self, env: _Env, expr: Expr) -> Atom:
        """Return the code of a condition."""
        return _Values(self, env).condition(bind(self.program, self.thread, expr))

    def local(self, env: _Env, name: str) -> Atom:
        """Return the code of a local, read from the state where it was not set in this step."""
        if name not in env.locals:
            env.locals[name] = self._original(env, name)
        return env.locals[name]

    def load(self, env: _Env, place: Read) -> Atom:
        """Return the code of a shared variable."""
        bits, key, shift = self._slot(env, place)
        if key not in env.known:
            stale = place.var in env.blurred or (place.var in env.touched and isinstance(key[1], str))
            if stale:
                self._flush(env)
            code = f"{env.base} >> {shift} & {bits.mask}"
            code = f"({code}) + {bits.low}" if bits.low else code
            env.known[key] = self.fresh(code) if bits.width else bits.low
        return env.known[key]

    def store(self, env: _Env, place: Read, value: Atom) -> None:
        """Store to a shared variable."""
        old = self.load(env, place)
        _, key, shift = self._slot(env, place)
        if not isinstance(value, int) and not value.isidentifier():
            value = self.fresh(value)
        self._add(env, value, old, shift)
        if isinstance(key[1], int):
            env.known = {k: a for k, a in env.known.items() if k[0] != place.var or isinstance(k[1], int)}
            env.touched.add(place.var)
        else:
            env.forget(place.var)
            env.blurred.add(place.var)
        env.known[key] = value

    def _add(self, env: _Env, new: Atom, old: Atom, shift: str) -> None:
        """Add the change of a field from one value to another."""
        if shift.isdecimal():
            if isinstance(new, int):
                env.constant += new << int(shift)
                new = 0
            if isinstance(old, int):
                env.constant -= old << int(shift)
                old = 0
        if new == old:
            return
        code = f"{new} - {old}" if old else str(new)
        if new == 0 and old:
            code = f"-{old}"
        env.terms.append(f"({code} << {shift})")

    def _slot(self, env: _Env, place: Read) -> tuple[Field, tuple[str, Atom], str]:
        """Return the bits of a variable, its key in `known`, and the code of its shift."""
        whole = self.layout.shared[place.var]
        if place.index is None:
            return whole, (place.var, 0), str(whole.shift)
        expr, offset = bind(self.program, self.thread, place.index), 0
        match expr:
            case Apply("-", (counted, Const(value))):
                expr, offset = counted, -value
            case _:
                pass
        index = self.value(env, expr)
        if isinstance(index, int):
            return whole, (place.var, index + offset), str(whole.element(index + offset).shift)
        if not index.isidentifier():
            index = self.fresh(index)
        start = whole.shift + whole.width * offset
        return whole, (place.var, index if not offset else f"{index}{offset}"), f"({start} + {whole.width} * {index})"

    def _flush(self, env: _Env) -> None:
        env.base = self.fresh(env.sum())
        env.terms, env.constant = [], 0
        env.touched, env.blurred = set(), set()


class _LoopError(Exception):
    """A step has a loop in it."""


class _Values(ExpressionWriter):
    """Writes the expressions of a step."""

    def __init__(self, generator: StepGenerator, env: _Env) -> None:
        super().__init__(generator.program.skb_bits)
        self.generator, self.env = generator, env

    def local(self, name: str) -> Atom:
        return self.generator.local(self.env, name)

    def read(self, place: Read) -> Atom:
        return self.generator.load(self.env, place)

    def at(self, part: At) -> Atom:
        return at_code(self.generator.program, self.generator.layout, part)


def read_field(state: str, bits: Field) -> str:
    """Return the code that reads a field of a packed state."""
    code = f"{state} >> {bits.shift} & {bits.mask}" if bits.shift else f"{state} & {bits.mask}"
    return f"({code}) + {bits.low}" if bits.low else code


def at_code(program: Program, layout: Layout, part: At) -> Atom:
    """Return the code that tells whether a thread is at one of some nodes."""
    places = layout.places[program.threads[part.tid].template]
    numbers = sorted(places.number[n] for n in part.nodes if n in places.number)
    counter = read_field("s", layout.counters[part.tid])
    if len(numbers) == len(places.boundaries):
        return 1
    if len(numbers) == 1:
        return f"(({counter}) == {numbers[0]})"
    return f"({sum(1 << n for n in numbers)} >> ({counter}) & 1)"


def holds_with_softirqs_on(program: Program, cpu: int) -> bool:
    """Tell whether the task of a CPU may hold a lock where a softirq can come in."""
    for thread in program.threads:
        if thread.cpu == cpu and thread.kind != "softirq":
            template = program.template_of(thread.tid)
            held = maybe_held(program, template)
            if any(n.boundary and not n.bh_off and held[i] for i, n in enumerate(template.nodes)):
                return True
    return False
