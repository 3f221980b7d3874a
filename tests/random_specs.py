"""Small random specifications, as source text: all that the language has, in every position, and valid by construction.

`specification(random)` writes one; `specifications()` is the same as a Hypothesis strategy. Every one of them is
accepted by qmodel and has a finite number of states, most have some hundreds: two or three threads with a few accesses
each. What they do is without any sense; many violate something.

A local is read only where it was assigned on every way, and it is a number or a truth value for good: what a program of
another form means Python decides only when it runs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from random import Random

from hypothesis import strategies as st

_HEAD = '''"""A random specification."""

from qmodel.lang import (
    BIT,
    READ_ONCE,
    WRITE_ONCE,
    Array,
    Bits,
    Bool,
    Budget,
    Flags,
    Int,
    Model,
    Packets,
    PerCpu,
    SkbList,
    SkbQueue,
    SpinLock,
    __clear_bit,
    __set_bit,
    __skb_dequeue,
    __skb_queue_head,
    __skb_queue_tail,
    atomic,
    atomic_add,
    atomic_add_return,
    atomic_dec,
    atomic_dec_and_test,
    atomic_dec_return,
    atomic_fetch_add,
    atomic_inc,
    atomic_inc_return,
    atomic_read,
    atomic_set,
    atomic_sub,
    check,
    choose,
    clear_bit,
    cmpxchg,
    environment,
    invariant,
    kfree_skb,
    local_bh_disable,
    local_bh_enable,
    measure,
    quiescent,
    raise_softirq,
    s8,
    set_bit,
    skb_peek,
    skb_queue_empty,
    skb_queue_len,
    skb_queue_splice_init,
    skb_queue_splice_tail_init,
    smp_load_acquire,
    smp_mb,
    smp_processor_id,
    smp_store_release,
    softirq,
    spin_is_locked,
    spin_lock,
    spin_lock_bh,
    spin_trylock,
    spin_unlock,
    spin_unlock_bh,
    test_and_clear_bit,
    test_and_set_bit,
    test_bit,
    thread,
    transmit,
    try_cmpxchg,
    u8,
    wait_until,
    xchg,
)


class Word(Bits):
    """Two bits."""

    A = 0
    B = 1


class Some(Model):
    """A model."""

'''


@dataclass(frozen=True)
class _Number:
    """A shared number: how it is written, and its bounds."""

    text: str
    low: int
    high: int
    guard: str = ""


@dataclass(frozen=True)
class _Helper:
    """A function of the model: what it takes and gives, its accesses, and whether it may wait or choose."""

    name: str
    parameters: tuple[str, ...]
    returns: str
    cost: int
    waits: bool
    chooses: bool


@dataclass
class _Model:
    """What is declared."""

    numbers: list[_Number] = field(default_factory=list)
    array: str = ""
    truths: list[str] = field(default_factory=list)
    word: str = ""
    locks: list[str] = field(default_factory=list)
    lock_array: str = ""
    budget: str = ""
    handler: str = ""
    queues: list[str] = field(default_factory=list)
    helpers: list[_Helper] = field(default_factory=list)


@dataclass(frozen=True)
class _Scope:
    """What may be used at a place of a function.

    ints, truths: locals that surely have a value; limited: those of them that are declared with bounds. loops: around
    this place within the function. held: locks that are held. block: in a block that must not be left, because a lock
    or bottom halves would be forgotten. chooses: choose() may stand here, but not in a loop of an atomic block.
    """

    ints: tuple[str, ...] = ()
    truths: tuple[str, ...] = ()
    limited: tuple[str, ...] = ()
    packets: tuple[str, ...] = ()
    counters: tuple[str, ...] = ()
    loops: int = 0
    held: tuple[str, ...] = ()
    block: bool = False
    atomic: bool = False
    chooses: bool = True


class _Writer:
    """Writes functions. left: accesses that may still be written, each counted as often as it runs."""

    def __init__(self, random: Random, model: _Model) -> None:
        self.random, self.model = random, model
        self.lines: list[str] = []
        self.indent = 1
        self.left = 0.0
        self.times = 1
        self.returns = ""
        self.waited = self.chosen = False
        self.names = 0
        self.may_wait = True
        self.may_choose = True

    # --- choosing -----------------------------------------------------------------------------------------------------

    def one_in(self, number: int) -> bool:
        """Decide: true once in so many times."""
        return self.random.randrange(number) == number - 1

    def pick(self, items: list[str] | tuple[str, ...]) -> str:
        """Choose one."""
        return items[self.random.randrange(len(items))]

    def line(self, text: str) -> None:
        """Write a line."""
        self.lines.append("    " * self.indent + text)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """Write the head of a block, and then the block."""
        self.line(head)
        self.indent += 1
        yield
        self.indent -= 1

    def spend(self, accesses: int = 1) -> bool:
        """Take accesses from what is left; tell whether there were enough."""
        if self.left < accesses * self.times:
            return False
        self.left -= accesses * self.times
        return True

    # --- shared variables ---------------------------------------------------------------------------------------------

    def number(self) -> _Number:
        """Choose a shared number; an element of the array has an index that is within it, nearly always."""
        model = self.model
        if model.array and self.one_in(4):
            index = self.pick(["0", "1", "0", "1", *self._indices])
            return _Number(f"m.{model.array}[{index}]", 0, 3)
        return model.numbers[self.random.randrange(len(model.numbers))]

    _indices: tuple[str, ...] = ()

    def lock(self, scope: _Scope) -> str:
        """Choose a lock, nearly always one that is not held."""
        free = [name for name in self.model.locks if name not in scope.held]
        return self.pick(free) if free and not self.one_in(25) else self.pick(self.model.locks)

    # --- numbers ------------------------------------------------------------------------------------------------------

    def int_(self, scope: _Scope, depth: int = 2) -> str:
        """Write an expression that is a number."""
        kinds = ["leaf"] * 3
        if depth:
            kinds += ["binary"] * 3 + ["access"] * 3 + ["if", "min", "call", "named", "truth", "minus", "xchg"]
        match self.pick(kinds):
            case "binary":
                return self._binary(scope, depth)
            case "access":
                return self._read(scope)
            case "if":
                first, test = self.int_(scope, depth - 1), self.condition(scope, depth - 1)
                second = self.truth(scope, depth - 1) if self.one_in(4) else self.int_(scope, depth - 1)
                return f"(({first} if {test} else {second}) + 0)"
            case "min":
                first, second = self.int_(scope, depth - 1), self.int_(scope, depth - 1)
                return f"{self.pick(['min', 'max'])}({first}, {second})"
            case "call":
                return self.call(scope, "int") or self._leaf(scope)
            case "named" if scope.ints:
                target = self.pick(scope.ints)
                return f"({target} := {self.bounded(self.int_(scope, depth - 1), target in scope.limited)})"
            case "truth":
                return f"({self.truth(scope, depth - 1)} + 0)"
            case "minus":
                return f"(-{self.int_(scope, depth - 1)})"
            case "xchg":
                return self._exchange(scope, depth)
        return self._leaf(scope)

    def _leaf(self, scope: _Scope) -> str:
        if scope.ints and not self.one_in(3):
            return self.pick(scope.ints)
        return self.pick(["0", "1", "2", "3", "1", "2", "BIT(Word.B)", "smp_processor_id()"])

    def _read(self, scope: _Scope) -> str:
        if not self.spend():
            return self._leaf(scope)
        variable = self.number()
        words = ["", "", "", "READ_ONCE", "atomic_read", "smp_load_acquire"]
        if variable.guard and variable.guard not in scope.held and not self.one_in(6):
            words = ["READ_ONCE"]
        word = self.pick(words)
        if self.model.word and self.one_in(6):
            return f"m.{self.model.word}"
        return f"{word}({variable.text})" if word else variable.text

    def _binary(self, scope: _Scope, depth: int) -> str:
        first = self.int_(scope, depth - 1)
        op = self.pick(["+", "+", "-", "*", "//", "%", "&", "|", "^", "<<", ">>"])
        if op in {"//", "%"}:
            second = self.pick(["2", "3", "-2"]) if not (scope.ints and self.one_in(6)) else self.pick(scope.ints)
        elif op in {"<<", ">>"}:
            second = self.pick(["1", "2", f"({self._leaf(scope)} & 1)"])
        else:
            second = self.int_(scope, depth - 1)
        return f"({first} {op} {second})"

    def _exchange(self, scope: _Scope, depth: int) -> str:
        if not self.spend():
            return self._leaf(scope)
        variable = self.number()
        new = self.fitting(scope, variable, depth - 1)
        match self.random.randrange(7):
            case 0:
                return f"xchg({variable.text}, {new})"
            case 1:
                return f"cmpxchg({variable.text}, {self.fitting(scope, variable, depth - 1)}, {new})"
            case 2:
                return f"atomic_fetch_add({self.pick(['1', '-1', new])}, {variable.text})"
            case 3:
                return f"atomic_add_return({self.pick(['1', '-1', new])}, {variable.text})"
            case 4:
                return f"atomic_inc_return({variable.text})"
            case 5:
                return f"atomic_dec_return({variable.text})"
        return f"xchg({variable.text}, {self.random.randint(variable.low, variable.high)})"

    def bounded(self, text: str, limited: bool = False) -> str:  # noqa: FBT001, FBT002
        """Write a number that stays within small bounds, whatever locals it is made of."""
        if limited:
            return f"(({text}) & 7)" if not self.one_in(8) else text
        return self.pick([f"({text}) % 3", f"({text}) & 3", f"min(max({text}, -1), 3)", f"({text}) % 4 - 1"])

    def fitting(self, scope: _Scope, variable: _Number, depth: int = 1) -> str:
        """Write a number that fits into a variable, nearly always."""
        if self.one_in(2):
            return str(self.random.randint(variable.low, variable.high))
        text = self.int_(scope, depth)
        return text if self.one_in(8) else f"min(max({text}, {variable.low}), {variable.high})"

    # --- truth values -------------------------------------------------------------------------------------------------

    def truth(self, scope: _Scope, depth: int = 2) -> str:
        """Write an expression that is True or False."""
        kinds = ["compare"] * 3 + ["leaf"]
        if depth:
            kinds += ["and", "or", "not", "access", "bit", "choose", "call", "test", "try", "is locked", "bit"]
        match self.pick(kinds):
            case "compare":
                op = self.pick(["==", "!=", "<", "<=", ">", ">="])
                return f"({self.int_(scope, depth - 1 if depth else 0)} {op} {self.int_(scope, 0)})"
            case "and" | "or" as op:
                words = f" {op} ".join(self.truth(scope, depth - 1) for _ in range(self.random.randint(2, 3)))
                return f"({words})"
            case "not":
                return f"(not {self.condition(scope, depth - 1)})"
            case "access" if self.model.truths and self.spend():
                return self.pick([f"m.{self.pick(self.model.truths)}", f"READ_ONCE(m.{self.pick(self.model.truths)})"])
            case "bit" if self.model.word and self.spend():
                word = self.pick(["test_bit", "test_and_set_bit", "test_and_clear_bit"])
                bit = self.pick(["Word.A", "Word.B", f"({self._leaf(scope)} & 1)"])
                return f"{word}({bit}, m.{self.model.word})"
            case "choose" if self.may_choose and scope.chooses:
                self.chosen = True
                return f"choose(m.{self.model.budget})" if self.model.budget and self.one_in(2) else "choose()"
            case "call":
                found = self.call(scope, "bool")
                if found:
                    return found
            case "test" if self.spend():
                return f"atomic_dec_and_test({self.number().text})"
            case "try" if scope.ints and self.spend():
                variable = self.number()
                return f"try_cmpxchg({variable.text}, {self.pick(scope.ints)}, {self.fitting(scope, variable, 0)})"
            case "is locked" if self.model.locks and self.spend():
                return f"spin_is_locked(m.{self.pick(self.model.locks)})"
        return self.pick(scope.truths) if scope.truths else self.pick(["True", "False"])

    def condition(self, scope: _Scope, depth: int = 2) -> str:
        """Write what is tested: a truth value, or a number that is 0 or not."""
        if self.one_in(5):
            return self.int_(scope, depth)
        if depth and self.one_in(5):
            op = self.pick(["and", "or"])
            return f"({self.condition(scope, depth - 1)} {op} {self.condition(scope, depth - 1)})"
        return self.truth(scope, depth)

    def call(self, scope: _Scope, returns: str) -> str:
        """Write a call of a function that returns a number, a truth value, or nothing; empty where there is none."""
        for helper in self.random.sample(self.model.helpers, len(self.model.helpers)):
            allowed = self.may_wait and not scope.atomic and not (scope.held and not self.one_in(6))
            allowed = allowed or not helper.waits
            allowed &= not helper.chooses or (self.may_choose and not scope.atomic)
            if helper.returns == returns and allowed and self.spend(helper.cost):
                self.waited |= helper.waits
                self.chosen |= helper.chooses
                arguments = ", ".join(self.int_(scope, 1) for _ in helper.parameters)
                return f"m.{helper.name}({arguments})"
        return ""

    # --- statements ---------------------------------------------------------------------------------------------------

    def body(self, scope: _Scope, depth: int, statements: int) -> _Scope:
        """Write statements; return the scope behind them."""
        before = len(self.lines)
        for _ in range(statements):
            scope = self.statement(scope, depth)
        if len(self.lines) == before:
            self.line("pass")
        return scope

    def statement(self, scope: _Scope, depth: int) -> _Scope:
        """Write a statement; return the scope behind it."""
        simple = ["store"] * 4 + ["store truth", "augment", "augment", "rmw", "rmw", "local", "local", "truth local"]
        simple += ["bit", "check", "call", "limited", "leave", "mb", "raise"]
        nested = ["if"] * 4 + [
            "for",
            "for",
            "while",
            "lock",
            "lock",
            "trylock",
            "atomic",
            "atomic",
            "cas",
            "wait",
            "bh",
        ]
        match self.pick(simple + (nested if depth else [])):
            case "store" if self.spend():
                self._store(scope)
            case "store truth" if self.model.truths and self.spend():
                name = f"m.{self.pick(self.model.truths)}"
                value = self.truth(scope)
                self.line(self.pick([f"{name} = {value}", f"WRITE_ONCE({name}, {value})"]))
            case "augment" if self.spend(2):
                self._augment(scope)
            case "rmw" if self.spend():
                self._rmw(scope)
            case "local":
                return self._local(scope)
            case "truth local":
                return self._truth_local(scope)
            case "limited":
                return self._limited(scope)
            case "bit" if self.model.word and self.spend(2):
                word = self.pick(["set_bit", "clear_bit", "__set_bit", "__clear_bit"])
                self.line(
                    f"{word}({self.pick(['Word.A', 'Word.B', f'({self._leaf(scope)} & 1)'])}, m.{self.model.word})"
                )
            case "check" if self.one_in(3):
                self.line(f'check({self.condition(scope, 1)}, "as it should be")')
            case "call":
                text = self.call(scope, self.pick(["", "", "int", "bool"]))
                if text:
                    self.line(text)
            case "leave":
                self._leave(scope)
            case "mb":
                self.line("smp_mb()")
            case "raise" if self.model.handler and self.spend():
                self.line(f"raise_softirq(m.{self.model.handler})")
            case "if":
                return self._if(scope, depth)
            case "for":
                return self._for(scope, depth)
            case "while":
                return self._while(scope, depth)
            case "lock" if self.model.locks and self.may_wait and not scope.atomic and self.spend(2):
                return self._lock(scope, depth)
            case "trylock" if self.model.locks and self.spend(2):
                lock = self.pick(self.model.locks)
                with self.block(f"if {self.pick(['', 'not '])}spin_trylock(m.{lock}):"[:]):
                    positive = "not spin" not in self.lines[-1]
                    inner = replace(scope, held=(*scope.held, lock), block=True) if positive else scope
                    self.body(inner, depth - 1, self.random.randint(1, 2))
                    if positive:
                        self.line(f"spin_unlock(m.{lock})")
                if not positive:
                    with self.block("else:"):
                        self.line(f"spin_unlock(m.{lock})")
            case "atomic":
                return self._atomic(scope, depth)
            case "cas" if scope.ints and self.spend(2):
                self._cas_loop(scope)
            case "wait" if self.may_wait and not scope.atomic and self.spend():
                self.waited = True
                self._wait(scope)
            case "bh" if self.model.handler and not scope.atomic and self.spend():
                self.line("local_bh_disable()")
                scope = self.body(replace(scope, block=True), depth - 1, 1)
                self.line("local_bh_enable()")
                return replace(scope, block=False)
            case _:
                pass
        return scope

    def _store(self, scope: _Scope) -> None:
        variable = self.number()
        value = self.fitting(scope, variable)
        words = ["", "", "", "", "WRITE_ONCE", "atomic_set", "smp_store_release"]
        if variable.guard and variable.guard not in scope.held and not self.one_in(6):
            words = ["WRITE_ONCE"]
        word = self.pick(words)
        self.line(f"{word}({variable.text}, {value})" if word else f"{variable.text} = {value}")

    def _augment(self, scope: _Scope) -> None:
        variable = self.number()
        if variable.guard and variable.guard not in scope.held and not self.one_in(6):
            return
        op = self.pick(["+", "+", "+", "-", "|", "&", "^", "*"])
        self.line(f"{variable.text} {op}= {self.int_(scope, 1)}")

    def _rmw(self, scope: _Scope) -> None:
        variable = self.number()
        word = self.pick(["atomic_inc", "atomic_dec", "atomic_add", "atomic_sub", "xchg", "cmpxchg"])
        match word:
            case "atomic_add" | "atomic_sub":
                self.line(f"{word}({self.int_(scope, 1)}, {variable.text})")
            case "xchg":
                self.line(f"xchg({variable.text}, {self.fitting(scope, variable)})")
            case "cmpxchg":
                self.line(f"cmpxchg({variable.text}, {self.int_(scope, 1)}, {self.fitting(scope, variable)})")
            case _:
                self.line(f"{word}({variable.text})")

    def _local(self, scope: _Scope) -> _Scope:
        known = [name for name in scope.ints if name not in scope.limited]
        if known and self.one_in(2):
            name = self.pick(known)
            self.line(f"{name} = {self.bounded(self.int_(scope))}")
            return scope
        name = self._new("n")
        self.line(f"{name} = {self.bounded(self.int_(scope))}")
        return replace(scope, ints=(*scope.ints, name))

    def _limited(self, scope: _Scope) -> _Scope:
        if scope.limited and not self.one_in(3):
            name = self.pick(scope.limited)
            self.line(f"{name} {self.pick(['+', '-', '+'])}= {self.int_(scope, 1)}")
            return scope
        name = self._new("k")
        self.line(f"{name}: u8 = {self.pick(['0', '1', f'({self.int_(scope, 1)}) & 3'])}")
        return replace(scope, ints=(*scope.ints, name), limited=(*scope.limited, name))

    def _truth_local(self, scope: _Scope) -> _Scope:
        name = self.pick(scope.truths) if scope.truths and self.one_in(2) else self._new("b")
        self.line(f"{name} = {self.truth(scope)}")
        return scope if name in scope.truths else replace(scope, truths=(*scope.truths, name))

    def _new(self, letter: str) -> str:
        self.names += 1
        return f"{letter}{self.names}"

    def _leave(self, scope: _Scope) -> None:
        """Leave a loop, or the function, on a condition."""
        if scope.block and not self.one_in(10):
            return
        words = ["break", "continue"] if scope.loops else []
        if self.returns == "" and self.one_in(2):
            words.append("return")
        if not words:
            return
        with self.block(f"if {self.condition(scope, 1)}:"):
            self.line(self.pick(words))

    def _return(self, scope: _Scope) -> None:
        match self.returns:
            case "int":
                self.line(f"return {self.bounded(self.int_(scope))}")
            case "bool":
                self.line(f"return {self.truth(scope)}")
            case _:
                self.line("return")

    def _if(self, scope: _Scope, depth: int) -> _Scope:
        with self.block(f"if {self.condition(scope)}:"):
            scopes = [self.body(scope, depth - 1, self.random.randint(1, 2))]
            ended = self._maybe_return(scopes[-1])
        if ended:
            return scope
        if self.one_in(4):
            with self.block(f"elif {self.condition(scope)}:"):
                scopes.append(self.body(scope, depth - 1, 1))
        if self.one_in(2):
            with self.block("else:"):
                scopes.append(self.body(scope, depth - 1, self.random.randint(1, 2)))
        else:
            scopes.append(scope)
        ints = tuple(n for n in scopes[0].ints if all(n in s.ints for s in scopes))
        return replace(
            scope, ints=ints, truths=tuple(n for n in scopes[0].truths if all(n in s.truths for s in scopes))
        )

    def _maybe_return(self, scope: _Scope) -> bool:
        if scope.block or not self.returns or self.one_in(2):
            return False
        self._return(scope)
        return True

    def _inner(self, scope: _Scope) -> _Scope:
        return replace(scope, loops=scope.loops + 1, block=False, chooses=scope.chooses and not scope.atomic)

    def _for(self, scope: _Scope, depth: int) -> _Scope:
        name = self.pick(["i", "j", self._new("i")])
        if name in scope.counters and not self.one_in(3):
            return scope
        turns = self.random.randint(1, 2)
        start = self.random.randint(0, 1)
        end = start + turns
        limits = self.pick([f"{end - start}", f"{start}, {end}", f"{start}, {end}"])
        known = [n for n in scope.ints if n not in scope.limited]
        if known and self.one_in(3):
            bound = self.pick(known)
            limits, turns = self.pick([bound, f"({bound} & 1), 2", f"0, {bound} & 1", f"{bound}, 2"]), 3
        times, self.times = self.times, self.times * turns
        inner = replace(self._inner(scope), ints=(*scope.ints, name), counters=(*scope.counters, name))
        with self.block(f"for {name} in range({limits}):"):
            if self.model.array and name.startswith("i") and self.one_in(2):
                kept, self._indices = self._indices, (f"{name} & 1", f"({name} + 1) & 1")
                self.body(inner, depth - 1, self.random.randint(1, 2))
                self._indices = kept
            else:
                self.body(inner, depth - 1, self.random.randint(1, 2))
        self.times = times
        return scope

    def _while(self, scope: _Scope, depth: int) -> _Scope:
        """Write a loop with a counter, which nothing else in it can change."""
        name = self._new("w")
        turns = self.random.randint(1, 2)
        times, self.times = self.times, self.times * (turns + 1)
        more = f" and {self.condition(scope, 1)}" if self.one_in(2) else ""
        self.line(f"{name}: u8 = 0")
        head = f"while {name} < {turns}{more}:" if not self.one_in(4) else f"while True{more}:"
        with self.block(head):
            if head.startswith("while True"):
                with self.block(f"if {name} == {turns}:"):
                    self.line("break")
            self.line(f"{name} += 1")
            self.body(self._inner(scope), depth - 1, self.random.randint(1, 2))
        self.times = times
        return scope

    def _lock(self, scope: _Scope, depth: int) -> _Scope:
        self.waited = True
        name = self.lock(scope)
        text = f"m.{name}"
        if self.model.lock_array and self.one_in(3):
            name = self.pick(["0", "1", f"({self._leaf(scope)} & 1)"])
            text = f"m.{self.model.lock_array}[{name}]"
            if not name.isdecimal():
                index = self._new("x")
                self.line(f"{index} = {name}")
                text = f"m.{self.model.lock_array}[{index}]"
        suffix = "_bh" if self.model.handler and self.one_in(2) and self.spend() else ""
        self.line(f"spin_lock{suffix}({text})")
        inner = self.body(replace(scope, held=(*scope.held, name), block=True), depth - 1, self.random.randint(1, 2))
        if suffix or not self.one_in(25):
            self.line(f"spin_unlock{suffix}({text})")
        return replace(inner, held=scope.held, block=scope.block)

    def _atomic(self, scope: _Scope, depth: int) -> _Scope:
        with self.block("with atomic():"):
            if self.model.locks and self.may_wait and not scope.atomic and self.one_in(8) and self.spend(2):
                lock = self.lock(scope)
                self.waited = True
                self.line(f"spin_lock(m.{lock})")
                inner = replace(scope, held=(*scope.held, lock), atomic=True, block=True)
                inner = self.body(inner, depth - 1, self.random.randint(1, 2))
                self.line(f"spin_unlock(m.{lock})")
            else:
                inner = self.body(replace(scope, atomic=True), depth - 1, self.random.randint(1, 3))
        return replace(inner, atomic=scope.atomic, held=scope.held, block=scope.block)

    def _cas_loop(self, scope: _Scope) -> None:
        variable = self.model.numbers[self.random.randrange(len(self.model.numbers))]
        name = self.pick(scope.ints)
        if self.one_in(2):
            self.line(f"{name} = READ_ONCE({variable.text})" if name not in scope.limited else "pass")
        new = self.pick([f"min(max({name} + 1, {variable.low}), {variable.high})", str(variable.high)])
        with self.block(f"while not try_cmpxchg({variable.text}, {name}, {new}):"):
            self.line("pass")

    def _wait(self, scope: _Scope) -> None:
        if self.model.truths and self.one_in(3):
            self.line(f"wait_until({self.pick(['', 'not '])}m.{self.pick(self.model.truths)})")
            return
        variable = self.model.numbers[self.random.randrange(len(self.model.numbers))]
        op = self.pick(["!=", "<=", ">=", "!="])
        leaf = self.pick(scope.ints) if scope.ints else str(variable.high)
        self.line(f"wait_until({variable.text} {op} {leaf})")

    # --- functions ----------------------------------------------------------------------------------------------------

    def helper(self, number: int) -> None:
        """Write a function that others call."""
        parameters = ("p", "q")[: self.random.randint(0, 2)]
        self.returns, self.left, self.times = self.pick(["int", "int", "bool", ""]), 2, 1
        self.waited = self.chosen = False
        arguments = ", ".join(("m", *parameters))
        before = self.left
        with self.block(f"def f{number}({arguments}):"):
            scope = self.body(_Scope(ints=parameters), 1, self.random.randint(1, 2))
            if self.returns:
                self._return(scope)
        self.lines.append("")
        cost = int(before - self.left)
        self.model.helpers.append(_Helper(f"f{number}", parameters, self.returns, cost, self.waited, self.chosen))

    def thread(self, number: int, accesses: int, decorator: str = "@thread") -> None:
        """Write a thread."""
        self.returns, self.left, self.times = "", accesses, 1
        cpu = self.one_in(3)
        self.line(decorator)
        with self.block(f"def t{number}(m, cpu):" if cpu else f"def t{number}(m):"):
            scope = _Scope(ints=("cpu",)) if cpu else _Scope()
            self.body(scope, 2, self.random.randint(2, 4))
        self.lines.append("")

    def environment(self) -> None:
        """Write a thread of the environment. It begins with an access: what comes before is another question."""
        self.returns, self.left, self.times, self.may_wait = "", 1, 1, False
        self.line(f"@environment(budget={self.random.randint(1, 2)})")
        with self.block("def env(m):"):
            variable = self.model.numbers[0]
            self.line(f"WRITE_ONCE({variable.text}, {self.random.randint(variable.low, variable.high)})")
            self.body(_Scope(), 1, 1)
        self.lines.append("")
        self.may_wait = True

    def softirq(self) -> None:
        """Write a softirq."""
        self.returns, self.left, self.times, self.may_wait, self.may_choose = "", 2, 1, self.one_in(2), False
        handler, self.model.handler = self.model.handler, ""
        self.line("@softirq")
        with self.block(f"def {handler}(m, cpu):"):
            self.body(_Scope(ints=("cpu",)), 1, 1)
        self.model.handler = handler
        self.lines.append("")
        self.may_wait = self.may_choose = True

    def properties(self) -> None:
        """Write properties and measures."""
        model = self.model
        first = model.numbers[self.random.randrange(len(model.numbers))].text
        second = model.numbers[self.random.randrange(len(model.numbers))].text
        values = [f"{first} <= {second} + 1", f"{first} != 1 or {second} < 2", f"not {first} or {second}"]
        if model.array:
            values += [
                f"all(m.{model.array}[i] < 3 for i in range(2))",
                f"sum(m.{model.array}[i] for i in range(2)) < 4",
            ]
        if model.truths:
            values.append(f"m.{model.truths[0]} or {first} < 2")
        for kind, name in (("invariant", "inv"), ("quiescent", "qui"), ("measure", "mea")):
            if self.one_in(2):
                self.line(f'@{kind}("{name}")')
                with self.block(f"def {name}(m):"):
                    text = self.pick([f"{first} + 2 * {second}", f"max({first}, {second})"])
                    self.line(f"return {text if kind == 'measure' else self.pick(values)}")
                self.lines.append("")


def _declarations(writer: _Writer) -> None:
    model, random = writer.model, writer.random
    model.locks = [f"l{i}" for i in range(random.randint(0, 2))]
    for name in model.locks:
        writer.line(f"{name} = SpinLock()")
    if model.locks and writer.one_in(3):
        model.lock_array = "la"
        writer.line("la = Array(SpinLock(), size=2)")
    for number in range(random.randint(1, 3)):
        low = random.choice((0, 0, 0, -1, -2, 1))
        high = random.choice((2, 3, 3, 4))
        init = random.randint(low, high)
        guard = writer.pick(model.locks) if model.locks and writer.one_in(3) else ""
        text = f"x{number} = Int({init}, low={low}, high={high}" + (f", guarded_by={guard})" if guard else ")")
        writer.line(text)
        model.numbers.append(_Number(f"m.x{number}", low, high, guard))
    if writer.one_in(2):
        model.truths = ["t"]
        writer.line(f"t = Bool({writer.pick(['True', 'False'])})")
    if writer.one_in(3):
        model.word = "w"
        writer.line(f"w = Flags(Word, {random.randint(0, 3)})")
    if writer.one_in(2):
        model.array = "a"
        writer.line("a = Array(Int(0, high=3), size=2)" if writer.one_in(2) else "a = Array(Int(1, high=3), size=2)")
    if writer.one_in(3):
        model.budget = "busy"
        writer.line(f"busy = Budget({random.randint(0, 2)})")
    if writer.one_in(6):
        model.handler = "action"
    writer.lines.append("")


def specification(random: Random) -> str:
    """Return the source of a specification."""
    writer = _Writer(random, _Model())
    _declarations(writer)
    for number in range(random.randint(0, 3)):
        writer.helper(number)
    threads = random.choice((2, 2, 2, 3))
    each = writer.one_in(4)
    if each:
        writer.thread(0, 4, f"@thread(each={threads})")
    else:
        for number in range(threads):
            writer.thread(number, random.randint(2, 5) if threads == 2 else random.randint(1, 3))
    if not each and threads == 2 and writer.one_in(5):
        writer.environment()
    if writer.model.handler:
        writer.softirq()
    writer.properties()
    return _HEAD + _used("\n".join(writer.lines))


def _used(body: str) -> str:
    """Return the body of the model without what it declares and does not use, which qmodel refuses."""
    members = re.split(r"\n(?=    \S)", body)
    merged: list[str] = []
    for member in members:
        if merged and merged[-1].lstrip().startswith("@") and "\n" not in merged[-1]:
            merged[-1] += "\n" + member
        else:
            merged.append(member)
    while True:
        text = "\n".join(merged)
        kept = [m for m in merged if _kept(m, text)]
        if kept == merged:
            return text.rstrip() + "\n"
        merged = kept


def _kept(member: str, text: str) -> bool:
    found = re.match(r"    (?:@softirq\n    )?(?:def )?(\w+)(?: =|\()", member)
    if found is None or (member.startswith("    @") and not member.startswith("    @softirq")):
        return True
    return re.search(rf"\bm\.{found[1]}\b|guarded_by={found[1]}\b", text) is not None


def specifications() -> st.SearchStrategy[str]:
    """Return a strategy for specifications."""
    return st.randoms(use_true_random=False).map(specification)
