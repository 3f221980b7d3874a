"""Every final state of a litmus test under sc, tso and weak, by brute force: an oracle that shares no code with qmodel.

Each CPU has a list of what it has done and nobody else has seen, in program order:

- A *load* gives the value in memory with the CPU's own pending entries for that variable applied in order.
- *sc*: nothing is ever pending.
- *tso*: stores, releases and unlocks are appended, and only the oldest entry may be committed. LOCKed operations (all
  atomics but reads and sets, cmpxchg also where it fails, spin_lock, a spin_trylock that succeeds) and smp_mb can be
  taken only when nothing is pending, and act on memory. A spin_trylock that fails is a load.
- *weak*: void atomics are appended too, and are applied to the value that memory has when they are committed. An entry
  may be committed when no older one for its variable is pending, none that is older than an smp_wmb before it, and, if
  it is a release or an unlock, none at all. Full barriers (smp_mb and both smp_mb__*_atomic), value-returning atomics,
  xchg, test_and_*_bit and a cmpxchg that succeeds need an empty list, and act on memory. A cmpxchg and a spin_trylock
  that fail are loads. Taking a lock needs no entry for the lock itself to be pending.
- Loads are taken in program order.
- synchronize_rcu begins and ends with an empty list, and between the two waits for each section that is there when it
  begins to be over and seen: the end of a section is an entry that is committed as a release is.

Tests are straight lines of simple statements, with `if` around them: an expression has one operator at most.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Literal, NamedTuple

Memory = Literal["sc", "tso", "weak"]
Final = dict[str, int]
"""A final state: `0:r1` and `[x]` to values."""

_TOKEN = re.compile(r"\w+|==|!=|<=|>=|&&|\|\||<<|>>|\S")
_INFIX: dict[str, Callable[[int, int], int]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "&": operator.and_, "|": operator.or_, "^": operator.xor,
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, ">": operator.gt, "<=": operator.le, ">=": operator.ge,
    "&&": lambda a, b: int(bool(a) and bool(b)), "||": lambda a, b: int(bool(a) or bool(b)),
}  # fmt: skip


class Operation(NamedTuple):
    """A call: what it is, the variable it works on, its values, and the register that takes the result."""

    name: str
    variable: str = ""
    values: tuple[list[str], ...] = ()
    result: str = ""


class Assignment(NamedTuple):
    """A register takes the value of an expression."""

    register: str
    value: list[str]


class Jump(NamedTuple):
    """Goes on elsewhere where the condition is 0."""

    condition: list[str]
    to: int


Code = list[Operation | Assignment | Jump]


@dataclass(frozen=True)
class Program:
    """A litmus test without its condition."""

    initial: dict[str, int]
    threads: list[Code]


# --- reading ----------------------------------------------------------------------------------------------------------


def read(text: str) -> Program:
    """Read a litmus test in C."""
    head, _, rest = re.sub(r"\(\*\s.*?\*\)", " ", text, flags=re.DOTALL).partition("{")
    assert head.startswith("C "), head
    rest = re.sub(r"/\*.*?\*/|//[^\n]*", " ", rest, flags=re.DOTALL)
    values, _, rest = rest.partition("}")
    initial = {
        name: int(value or 0)
        for name, value in re.findall(r"(\w+)\s*(?:=\s*(?:ATOMIC_INIT\()?(-?\d+)\)?\s*)?(?:;|$)", values.strip())
    }
    threads: list[Code] = []
    while found := re.match(r"\s*P\d+\(([^)]*)\)\s*", rest):
        for parameter in re.findall(r"\*\s*(\w+)", found[1]):
            initial.setdefault(parameter, 0)
        tokens = _TOKEN.findall(_braced(rest[found.end() :]))
        rest = rest[found.end() + len(_braced(rest[found.end() :])) :]
        code: Code = []
        _statement(tokens, code)
        threads.append(code)
    return Program(initial, threads)


def _braced(text: str) -> str:
    """Return the beginning of a text up to the brace that closes its first one."""
    depth = 0
    for position, letter in enumerate(text):
        depth += {"{": 1, "}": -1}.get(letter, 0)
        if depth == 0:
            return text[: position + 1]
    raise AssertionError(text)


def _statement(tokens: list[str], code: Code) -> None:
    """Take one statement off the front of the tokens."""
    match tokens:
        case ["{", *_]:
            del tokens[0]
            while tokens[0] != "}":
                _statement(tokens, code)
            del tokens[0]
        case ["if", "(", *_]:
            condition = tokens[2 : tokens.index(")")]
            assert "(" not in condition, condition
            del tokens[: len(condition) + 3]
            jump = len(code)
            code.append(Jump(condition, 0))
            _statement(tokens, code)
            if tokens[0] == "else":
                del tokens[0]
                over = len(code)
                code.append(Jump(["0"], 0))
                code[jump] = Jump(condition, len(code))
                _statement(tokens, code)
                code[over] = Jump(["0"], len(code))
            else:
                code[jump] = Jump(condition, len(code))
        case ["int" | "long" | "bool", register, *_]:
            del tokens[0]
            if tokens[1] in {";", ","}:
                code.append(Assignment(register, ["0"]))
                tokens[:2] = ["int"] if tokens[1] == "," else []
            else:
                _statement(tokens, code)
        case _:
            end = tokens.index(";")
            _simple(tokens[:end], code)
            del tokens[: end + 1]


def _simple(words: list[str], code: Code) -> None:
    match words:
        case []:
            pass
        case ["*", variable, "=", *value]:
            code.append(Operation("plain_store", variable, (value,)))
        case [register, "=", "*", variable]:
            code.append(Operation("plain_load", variable, (), register))
        case [register, "=", name, "(", *_, ")"] if name.isidentifier():
            code += _call(name, words[4:-1], register)
        case [name, "(", *_, ")"]:
            code += _call(name, words[2:-1], "")
        case [register, "=", *value]:
            code.append(Assignment(register, value))
        case _:
            raise AssertionError(words)


def _call(name: str, words: list[str], result: str) -> Code:
    arguments: list[list[str]] = [[]]
    for word in words:
        if word == ",":
            arguments.append([])
        else:
            arguments[-1].append(word)
    if arguments == [[]]:
        if name == "synchronize_rcu":
            return [Operation("grace_begins"), Operation("grace_ends")]
        return [Operation(name)]
    # The variable comes first, but for atomic_add(v, x) and its like and for bits.
    value_first = "_bit" in name or re.fullmatch(r"atomic_(fetch_)?(add|sub)(_return|_and_test|_negative)?", name)
    variable = arguments.pop(1 if value_first else 0)
    place = Operation(name, variable[-1], tuple(arguments), result)
    return [place, Operation("smp_mb")] if name == "smp_store_mb" else [place]


# --- states -----------------------------------------------------------------------------------------------------------


class Entry(NamedTuple):
    """What is pending: a store, an `add`, `or`, `andnot`, the end of an RCU section (of a number) or an smp_wmb."""

    kind: str
    variable: str = ""
    value: int = 0
    release: bool = False


Items = tuple[tuple[str, int], ...]
Section = tuple[int, int]


class Cpu(NamedTuple):
    """A thread: where it is, its registers, what is pending, RCU sections begun, and those that it waits for."""

    at: int = 0
    registers: Items = ()
    pending: tuple[Entry, ...] = ()
    sections: tuple[int, ...] = ()
    awaited: frozenset[Section] = frozenset()


class State(NamedTuple):
    """All of it. readers: the outermost RCU sections whose end is not seen yet."""

    memory: Items
    cpus: tuple[Cpu, ...]
    readers: frozenset[Section] = frozenset()


def final_states(text: str, memory: Memory) -> list[Final]:
    """Return every state in which all threads have ended and nothing is pending, each once."""
    return _Search(read(text), memory).run()


_RETURNING: dict[str, Callable[[int, list[int]], tuple[int, int]]] = {
    "xchg": lambda old, v: (v[0], old),
    "atomic_inc_return": lambda old, _: (old + 1, old + 1),
    "atomic_dec_return": lambda old, _: (old - 1, old - 1),
    "atomic_add_return": lambda old, v: (old + v[0], old + v[0]),
    "atomic_sub_return": lambda old, v: (old - v[0], old - v[0]),
    "atomic_fetch_add": lambda old, v: (old + v[0], old),
    "atomic_fetch_sub": lambda old, v: (old - v[0], old),
    "atomic_fetch_inc": lambda old, _: (old + 1, old),
    "atomic_fetch_dec": lambda old, _: (old - 1, old),
    "atomic_dec_and_test": lambda old, _: (old - 1, int(old == 1)),
    "atomic_inc_and_test": lambda old, _: (old + 1, int(old == -1)),
    "atomic_sub_and_test": lambda old, v: (old - v[0], int(old == v[0])),
    "atomic_add_negative": lambda old, v: (old + v[0], int(old + v[0] < 0)),
    "test_and_set_bit": lambda old, v: (old | 1 << v[0], old >> v[0] & 1),
    "test_and_clear_bit": lambda old, v: (old & ~(1 << v[0]), old >> v[0] & 1),
}
"""Atomics that return a value: from the old value to the new one and the result."""
_VOID: dict[str, Callable[[list[int]], tuple[str, int]]] = {
    "atomic_inc": lambda _: ("add", 1),
    "atomic_dec": lambda _: ("add", -1),
    "atomic_add": lambda v: ("add", v[0]),
    "atomic_sub": lambda v: ("add", -v[0]),
    "set_bit": lambda v: ("or", 1 << v[0]),
    "clear_bit": lambda v: ("andnot", 1 << v[0]),
}
"""Atomics that return nothing: what they do to the value of their variable."""
_LOADS = {
    "READ_ONCE",
    "smp_load_acquire",
    "atomic_read",
    "atomic_read_acquire",
    "plain_load",
    "test_bit",
    "spin_is_locked",
}
_STORES = {"WRITE_ONCE", "atomic_set", "plain_store", "smp_store_mb"}
_RELEASES = {"smp_store_release", "atomic_set_release", "spin_unlock"}
_EFFECT: dict[str, Callable[[int, int], int]] = {
    "store": lambda _, v: v,
    "add": operator.add,
    "or": operator.or_,
    "andnot": lambda old, v: old & ~v,
}


class _Search:
    def __init__(self, program: Program, memory: Memory) -> None:
        self.program, self.memory = program, memory

    def run(self) -> list[Final]:
        cpus = tuple(self._settled(t, Cpu()) for t in range(len(self.program.threads)))
        start = State(tuple(sorted(self.program.initial.items())), cpus)
        seen, stack = {start}, [start]
        found: dict[tuple[Items, ...], Final] = {}
        while stack:
            state = stack.pop()
            for following in self._successors(state):
                if following not in seen:
                    seen.add(following)
                    stack.append(following)
            if all(c.at == len(self.program.threads[t]) and not c.pending for t, c in enumerate(state.cpus)):
                final = {f"[{name}]": value for name, value in state.memory}
                for t, cpu in enumerate(state.cpus):
                    final |= {f"{t}:{name}": value for name, value in cpu.registers}
                found[state.memory, *(c.registers for c in state.cpus)] = final
        return list(found.values())

    def _successors(self, state: State) -> Iterator[State]:
        for t, cpu in enumerate(state.cpus):
            for position in range(len(cpu.pending)):
                if self._may_commit(cpu.pending, position):
                    yield self._commit(state, t, position)
            if cpu.at < len(self.program.threads[t]):
                operation = self.program.threads[t][cpu.at]
                assert isinstance(operation, Operation)
                yield from self._step(state, t, operation)

    # --- the store buffer ---------------------------------------------------------------------------------------------

    def _may_commit(self, pending: tuple[Entry, ...], position: int) -> bool:
        entry, older = pending[position], pending[:position]
        if entry.kind == "wmb":
            return False
        if self.memory == "tso" or entry.release:
            return all(e.kind == "wmb" for e in older)
        fences = [i for i, e in enumerate(older) if e.kind == "wmb"]
        behind = older[: fences[-1]] if fences else ()
        return not any(e.kind != "wmb" for e in behind) and all(e.variable != entry.variable for e in older)

    def _commit(self, state: State, t: int, position: int) -> State:
        cpu = state.cpus[t]
        entry = cpu.pending[position]
        rest = cpu.pending[:position] + cpu.pending[position + 1 :]
        while rest and rest[0].kind == "wmb":
            rest = rest[1:]
        return self._seen(_with(state, t, cpu._replace(pending=rest)), t, entry)

    def _seen(self, state: State, t: int, entry: Entry) -> State:
        """Let memory take what was pending."""
        if entry.kind == "section_end":
            return state._replace(readers=state.readers - {(t, entry.value)})
        old = dict(state.memory)[entry.variable]
        return _write(state, entry.variable, _EFFECT[entry.kind](old, entry.value))

    def _append(self, state: State, t: int, entry: Entry) -> State:
        if self.memory == "sc":
            return self._seen(state, t, entry)
        return _with(state, t, state.cpus[t]._replace(pending=(*state.cpus[t].pending, entry)))

    def _view(self, state: State, t: int, variable: str) -> int:
        """Return the value that a load gives."""
        value = dict(state.memory)[variable]
        for entry in state.cpus[t].pending:
            if entry.variable == variable:
                value = _EFFECT[entry.kind](value, entry.value)
        return value

    # --- steps --------------------------------------------------------------------------------------------------------

    def _step(self, state: State, t: int, operation: Operation) -> Iterator[State]:
        """Yield what the next operation of a thread leads to: nothing where it cannot be taken now."""
        cpu = state.cpus[t]
        registers = dict(cpu.registers)
        values = [_value(words, registers) for words in operation.values]
        name, variable = operation.name, operation.variable
        done = partial(self._done, t=t, result=operation.result)
        drained = not cpu.pending
        if name in _LOADS:
            seen = self._view(state, t, variable)
            yield done(
                state, value=seen >> values[0] & 1 if name == "test_bit" else int(seen != 0) if "lock" in name else seen
            )
        elif name in _STORES | _RELEASES:
            value = 0 if name == "spin_unlock" else values[0]
            yield done(self._append(state, t, Entry("store", variable, value, name in _RELEASES)))
        elif name in _VOID:
            kind, value = _VOID[name](values)
            entry = Entry(kind, variable, value)
            if self.memory == "weak":
                yield done(self._append(state, t, entry))
            elif drained:
                yield done(self._seen(state, t, entry))
        elif name.removeprefix("atomic_") == "xchg" or name in _RETURNING:
            if drained:
                old = dict(state.memory)[variable]
                new, result = _RETURNING["xchg" if name.endswith("xchg") else name](old, values)
                yield done(_write(state, variable, new), value=result)
        elif name.removeprefix("atomic_") == "cmpxchg":
            seen = self._view(state, t, variable)
            if seen != values[0] and (drained or self.memory == "weak"):
                yield done(state, value=seen)
            elif seen == values[0] and drained:
                yield done(_write(state, variable, values[1]), value=seen)
        elif name in {"spin_lock", "spin_trylock"}:
            if name == "spin_trylock" and self._view(state, t, variable):
                yield done(state, value=0)
            elif not dict(state.memory)[variable] and self._may_lock(cpu, variable):
                yield done(_write(state, variable, t + 1), value=1)
        else:
            after = self._order(state, t, name, drained=drained)
            if after is not None:
                yield done(after)

    def _may_lock(self, cpu: Cpu, lock: str) -> bool:
        if self.memory == "weak":
            return all(e.variable != lock for e in cpu.pending)
        return not cpu.pending

    def _order(self, state: State, t: int, name: str, *, drained: bool) -> State | None:
        """Return the state after a barrier or an operation of RCU; None where it must wait."""
        cpu = state.cpus[t]
        match name:
            case "smp_mb":
                return state if drained else None
            case "smp_mb__before_atomic" | "smp_mb__after_atomic":
                return state if drained or self.memory == "tso" else None
            case "smp_wmb" if self.memory == "weak" and not drained:
                return self._append(state, t, Entry("wmb"))
            case "smp_wmb" | "smp_rmb" | "barrier":
                return state
            case "rcu_read_lock":
                begun = _with(state, t, cpu._replace(sections=(*cpu.sections, cpu.at)))
                return begun if cpu.sections else begun._replace(readers=state.readers | {(t, cpu.at)})
            case "rcu_read_unlock":
                ended = _with(state, t, cpu._replace(sections=cpu.sections[:-1]))
                if len(cpu.sections) > 1:
                    return ended
                return self._append(ended, t, Entry("section_end", "", cpu.sections[0], release=True))
            case "grace_begins":
                return _with(state, t, cpu._replace(awaited=state.readers)) if drained else None
            case "grace_ends":
                over = drained and not cpu.awaited & state.readers
                return _with(state, t, cpu._replace(awaited=frozenset())) if over else None
        raise AssertionError(name)

    def _done(self, state: State, t: int, result: str, value: int = 0) -> State:
        """Go on to the next operation, with the result in its register."""
        cpu = state.cpus[t]
        registers = dict(cpu.registers) | ({result: value} if result else {})
        return _with(
            state, t, self._settled(t, cpu._replace(at=cpu.at + 1, registers=tuple(sorted(registers.items()))))
        )

    def _settled(self, t: int, cpu: Cpu) -> Cpu:
        """Do what touches registers only."""
        code, registers, at = self.program.threads[t], dict(cpu.registers), cpu.at
        while at < len(code) and not isinstance(code[at], Operation):
            match code[at]:
                case Assignment(register, value):
                    registers[register] = _value(value, registers)
                    at += 1
                case Jump(condition, to):
                    at = at + 1 if _value(condition, registers) else to
        return cpu._replace(at=at, registers=tuple(sorted(registers.items())))


def _with(state: State, t: int, cpu: Cpu) -> State:
    return state._replace(cpus=(*state.cpus[:t], cpu, *state.cpus[t + 1 :]))


def _write(state: State, variable: str, value: int) -> State:
    return state._replace(memory=tuple(sorted((dict(state.memory) | {variable: value}).items())))


def _value(words: list[str], registers: dict[str, int]) -> int:
    """Return the value of an expression: an operand, its negation, or two with an operator between them."""
    match words:
        case ["(", *inner, ")"]:
            return _value(inner, registers)
        case [word]:
            return int(word) if word.isdigit() else registers[word]
        case ["!", word]:
            return int(not _value([word], registers))
        case ["-", word]:
            return -_value([word], registers)
        case [first, sign, second]:
            return int(_INFIX[sign](_value([first], registers), _value([second], registers)))
    raise AssertionError(words)
