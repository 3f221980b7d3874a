"""Compiling calls of primitives: what each takes, and the instruction it becomes.

What a primitive *means* under a memory model is not decided here but in `qmodel.passes.memory`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from qmodel.frontend.diagnostics import did_you_mean
from qmodel.frontend.expressions import FIRST, OWN_CPU, SCALARS
from qmodel.frontend.properties import pure_condition, refuse_other_bit
from qmodel.frontend.values import VOID, WORDS, Value, ValueKind, truth
from qmodel.ir.expr import BOOL, Const, Domain, Expr, Local, Own, Read, apply, reads_of, walk
from qmodel.ir.program import PENDING, WHERE, Assign, EventKind, Label, Place, Primitive, Show

if TYPE_CHECKING:
    from qmodel.frontend.functions import FunctionCompiler

Handler = Callable[["FunctionCompiler", ast.Call, list[Value]], Value]


@dataclass(frozen=True, slots=True)
class Signature:
    """What a primitive takes: a kind for each argument, its names for messages, and how it is compiled."""

    kinds: tuple[str, ...]
    compile: Handler
    optional: bool = False


SIGNATURES: dict[str, Signature] = {}
"""Every primitive of the language by name."""


def primitive(
    names: str, *kinds: str, optional: bool = False
) -> Callable[[Callable[..., Value]], Callable[..., Value]]:
    """Register the compilation of primitives; `names` are separated by blanks, the function is told which it is."""

    def register(function: Callable[..., Value]) -> Callable[..., Value]:
        for name in names.split():

            def handler(c: FunctionCompiler, node: ast.Call, values: list[Value], name: str = name) -> Value:
                return function(c, node, name, *values)

            SIGNATURES[name] = Signature(kinds, handler, optional)
        return function

    return register


def compile_call(c: FunctionCompiler, node: ast.Call, name: str) -> Value:
    """Compile the call of a primitive. Raises SpecError."""
    if c.parking and name in _NOT_IN_SCENARIOS:
        remedy = "put values into variables and packets into lists; threads begin after it"
        raise c.error(node, f"`{name}` has no meaning in a scenario, which runs alone and has one outcome", remedy)
    if name in {"min", "max"}:
        if len(node.args) < 2 or node.keywords:
            raise c.error(node, f"`{name}` takes two numbers or more", f"write {name}(number, number)")
        return Value("int", apply(name, *(c.as_number(a) for a in node.args)))
    if name in _SPECIAL:
        return _SPECIAL[name](c, node)
    signature = SIGNATURES.get(name)
    if signature is None:
        otherwise = _ELSEWHERE.get(name, f"functions of the model are called {c.scope.model}.NAME(…)")
        raise c.error(node.func, f"unknown function `{name}`", did_you_mean(name, [*SIGNATURES, *_SPECIAL], otherwise))
    low, most = 0 if signature.optional else len(signature.kinds), len(signature.kinds)
    if node.keywords or not low <= len(node.args) <= most:
        takes = ", ".join(_KIND_WORDS[k] for k in signature.kinds)
        count = f"{'up to ' if low < most else ''}{most} argument{'s' * (most != 1)}" if most else "nothing"
        raise c.error(node, f"`{name}` takes {count}" + (f": {takes}" if takes else ""), f"write {name}({takes})")
    values = [argument(c, kind, a) for kind, a in zip(signature.kinds, node.args, strict=False)]
    return signature.compile(c, node, values)


_ELSEWHERE = {
    "range": "range() stands in `for i in range(n)` only",
    "all": "all() is for properties: write a loop",
    "any": "any() is for properties: write a loop",
    "sum": "sum() is for properties: write a loop",
    "print": "a trace shows every access; say more with choose(text=…) and check()",
}
"""What to write instead of functions that Python has and a function of a model has not."""
_NOT_IN_SCENARIOS = frozenset({
    "choose", "local_bh_disable", "local_bh_enable", "rcu_read_lock", "rcu_read_unlock",
    "smp_processor_id", "spin_lock", "spin_lock_bh", "spin_trylock", "spin_unlock", "spin_unlock_bh",
    "synchronize_rcu", "transmit", "wait_until",
})  # fmt: skip
_KIND_WORDS = {
    "place": "shared variable",
    "counter": "shared number",
    "word": "flag word",
    "value": "value",
    "bit": "bit",
    "skb": "packet",
    "queue": "list",
    "lock": "lock",
    "handler": "softirq",
    "budget": "budget",
    "condition": "condition",
    "text": '"text"',
}


def argument(c: FunctionCompiler, kind: str, node: ast.expr) -> Value:
    """Compile one argument, and make sure that it is of the kind that is needed."""
    if kind == "handler" and not _names_softirq(c, node):
        raise c.error(node, f"`{ast.unparse(node)}` is no softirq", _HELP[kind])
    if kind in _WANTED:
        value = c.reference(node)
        shared = kind in {"queue", "handler"} or isinstance(value.place, Read)
        if value.kind not in _WANTED[kind] or not shared:
            local = isinstance(node, ast.Name) and not isinstance(value.expr, Const)
            what = WORDS[value.kind] if value.kind not in _WANTED[kind] else "a local" if local else "a constant"
            remedy = f"name one of its elements: {ast.unparse(node)}[index]" if value.kind == "array" else _HELP[kind]
            raise c.error(node, f"`{ast.unparse(node)}` is {what}, and a {_KIND_WORDS[kind]} is needed", remedy)
        return value
    if kind == "budget":
        budgets = [name for name in c.config.budgets if name in c.config.params]
        match node:
            case ast.Attribute(value=ast.Name(id=owner), attr=name) if owner == c.scope.model and name in budgets:
                return Value("handler", name=name)
        name = ast.unparse(node).rpartition(".")[2]
        remedy = did_you_mean(name, budgets, "declare `name = Budget(2)` in the model")
        if name in budgets:
            remedy = f"write {c.scope.model}.{name}"
        raise c.error(node, f"`{ast.unparse(node)}` is no budget", remedy)
    if kind == "text":
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            return Value("void", name=node.value)
        raise c.error(node, "a text is needed here", 'write it between quotes: "…"')
    if kind == "condition":
        return truth(c.as_truth(node))
    value = c.evaluate(node)
    if kind == "bit" and value.kind not in {"bit", "int"}:
        raise c.error(node, f"`{ast.unparse(node)}` is no bit", "write the member of a class of Bits")
    if kind == "skb" and value.kind not in {"skb", "none"}:
        remedy = "name a local that holds a packet, as __skb_dequeue() returns it"
        raise c.error(node, f"`{ast.unparse(node)}` is {WORDS[value.kind]}, and a packet is needed", remedy)
    if kind == "value" and value.kind not in SCALARS | {"none", "bit"}:
        remedy = "give a number, a truth value or a packet"
        raise c.error(node, f"`{ast.unparse(node)}` is {WORDS[value.kind]}, and a value is needed", remedy)
    return value


def _names_softirq(c: FunctionCompiler, node: ast.expr) -> bool:
    """Tell whether something names a softirq, or a plain name that may have been meant to."""
    match node:
        case ast.Attribute(value=ast.Name(id=owner), attr=name) if owner == c.scope.model:
            return name in c.config.handlers
    return isinstance(node, ast.Name)


_WANTED: dict[str, set[ValueKind]] = {
    "place": SCALARS,
    "counter": {"int"},
    "word": {"flags"},
    "lock": {"lock"},
    "queue": {"queue"},
    "handler": {"handler"},
}


_HELP = {
    "place": "name a shared number, truth value or packet: m.NAME or m.NAME[index]; a list has skb_queue_len()",
    "counter": "declare it as Int(…) and write m.NAME",
    "word": "declare it as Flags(…) and write m.NAME",
    "lock": "declare it as SpinLock() and write m.NAME",
    "queue": "declare it as SkbList(), or make one with SkbQueue()",
    "handler": "name a function marked @softirq: raise_softirq(m.NAME)",
}


def _shared(value: Value) -> Read:
    assert isinstance(value.place, Read)
    return value.place


def _domain(value: Value) -> Domain:
    assert value.domain is not None
    return value.domain


# --- plain and marked accesses --------------------------------------------------------------------------------------


@primitive("READ_ONCE data_race smp_load_acquire atomic_read", "place")
def _read(c: FunctionCompiler, node: ast.Call, name: str, place: Value) -> Value:
    return c.load(place, node, name)


@primitive("WRITE_ONCE smp_store_release atomic_set", "place", "value")
def _write(c: FunctionCompiler, node: ast.Call, name: str, place: Value, value: Value) -> Value:
    c.store(place, value, node.args[1], node, name)
    return VOID


@primitive("smp_mb smp_rmb smp_wmb smp_mb__before_atomic smp_mb__after_atomic")
def _barrier(c: FunctionCompiler, node: ast.Call, name: str) -> Value:
    c.access(node, Primitive(name), Label("atomic", (f"{name}()",)), boundary=False)
    return VOID


@primitive("barrier cpu_relax")
def _nothing(_c: FunctionCompiler, _node: ast.Call, _name: str) -> Value:
    return VOID


# --- atomics --------------------------------------------------------------------------------------------------------


def _atomic(c: FunctionCompiler, node: ast.Call, name: str, place: Value, *args: Expr, result: str = "") -> Value:
    """Add a read-modify-write; result: the kind of what it returns, none where it is empty."""
    local = c.temporary(result, node) if result else None
    words = tuple(w for a in args for w in (Show(a, _domain(place)), ", "))
    address = ("&", *c.place_text(place))
    value_first = name in {"atomic_add", "atomic_sub", "atomic_add_return", "atomic_fetch_add"}
    inner = (
        (*words, *address) if value_first else (*address, *(w for a in args for w in (", ", Show(a, _domain(place)))))
    )
    parts: tuple[str | Show, ...] = (f"{name.replace('llist_cmpxchg', 'try_cmpxchg')}(", *inner, ")")
    if local:
        domain = BOOL if result == "bool" else _domain(place)
        parts = (*parts, " = ", Show(Local(local), domain))
    c.access(node, Primitive(name, local, _shared(place), args, marked=True), Label("atomic", parts))
    if local is None:
        return VOID
    return Value(place.kind if result != "bool" else "bool", Local(local), None, _domain(place), local)


@primitive("xchg", "place", "value")
def _xchg(c: FunctionCompiler, node: ast.Call, name: str, place: Value, value: Value) -> Value:
    new = c.converted(place.kind, value, node.args[1])
    return _atomic(c, node, name, place, new, result=_local_kind(place))


@primitive("cmpxchg", "place", "value", "value")
def _cmpxchg(c: FunctionCompiler, node: ast.Call, name: str, place: Value, old: Value, new: Value) -> Value:
    args = (c.converted(place.kind, old, node.args[1]), c.converted(place.kind, new, node.args[2]))
    return _atomic(c, node, name, place, *args, result=_local_kind(place))


def _local_kind(place: Value) -> str:
    return "int" if place.kind == "flags" else place.kind


def _try_cmpxchg(c: FunctionCompiler, node: ast.Call) -> Value:
    if len(node.args) != 3 or node.keywords or not isinstance(node.args[1], ast.Name):
        remedy = "write try_cmpxchg(m.NAME, old, new), where `old` is a local"
        raise c.error(node, "`try_cmpxchg` takes a shared variable, a local and a value", remedy)
    place, old, new = argument(c, "place", node.args[0]), c.evaluate(node.args[1]), c.evaluate(node.args[2])
    args = (c.converted(place.kind, old, node.args[1]), c.converted(place.kind, new, node.args[2]))
    kept = c.temporary(_local_kind(place), node)
    c.graph.emit(Assign(Local(kept), args[0]), c.site(node))
    name = "llist_cmpxchg" if place.name == FIRST else "try_cmpxchg"
    found = _atomic(c, node, name, place, Local(kept), args[1], result=_local_kind(place))
    success = c.temporary("bool", node)
    c.graph.emit(Assign(Local(success), apply("==", found.value, Local(kept))), c.site(node))
    c.assign_local(node.args[1], found)
    return c.local_value(success)


@primitive("atomic_inc atomic_dec", "counter")
def _count(c: FunctionCompiler, node: ast.Call, name: str, place: Value) -> Value:
    return _atomic(c, node, name, place)


@primitive("atomic_inc_return atomic_dec_return", "counter")
def _count_return(c: FunctionCompiler, node: ast.Call, name: str, place: Value) -> Value:
    return _atomic(c, node, name, place, result="int")


@primitive("atomic_dec_and_test", "counter")
def _count_test(c: FunctionCompiler, node: ast.Call, name: str, place: Value) -> Value:
    return _atomic(c, node, name, place, result="bool")


@primitive("atomic_add atomic_sub", "value", "counter")
def _add(c: FunctionCompiler, node: ast.Call, name: str, value: Value, place: Value) -> Value:
    return _atomic(c, node, name, place, c.converted("int", value, node.args[0]))


@primitive("atomic_add_return atomic_fetch_add", "value", "counter")
def _add_return(c: FunctionCompiler, node: ast.Call, name: str, value: Value, place: Value) -> Value:
    return _atomic(c, node, name, place, c.converted("int", value, node.args[0]), result="int")


# --- bits -----------------------------------------------------------------------------------------------------------


def _bit(c: FunctionCompiler, node: ast.Call, bit: Value, word: Value) -> tuple[Expr, str]:
    """Return the number of a bit and how it is printed; a bit of another word is an error."""
    names = _domain(word).names
    known = refuse_other_bit(c, node, bit, word)
    if known:
        return bit.value, known
    outside = apply("or", apply("<", bit.value, Const(0)), apply(">=", bit.value, Const(len(names))))
    c.outside(node.args[0], outside, f"{ast.unparse(node.args[1])} has no such bit")
    return bit.value, ast.unparse(node.args[0])


def _bit_access(c: FunctionCompiler, node: ast.Call, name: str, bit: Value, word: Value, *, result: bool) -> Value:
    number, text = _bit(c, node, bit, word)
    local = c.temporary("bool", node) if result else None
    parts: tuple[str | Show, ...] = (f"{name}({text}, &", *c.place_text(word), ")")
    if local:
        parts = (*parts, " = ", Show(Local(local), Domain("int", 0, 1)))
    kind: EventKind = "load" if name == "test_bit" else "atomic"
    c.access(node, Primitive(name, local, _shared(word), (number,), marked=True), Label(kind, parts))
    return c.local_value(local) if local else VOID


@primitive("set_bit clear_bit", "bit", "word")
def _set_bit(c: FunctionCompiler, node: ast.Call, name: str, bit: Value, word: Value) -> Value:
    return _bit_access(c, node, name, bit, word, result=False)


@primitive("test_bit test_and_set_bit test_and_clear_bit", "bit", "word")
def _test_bit(c: FunctionCompiler, node: ast.Call, name: str, bit: Value, word: Value) -> Value:
    return _bit_access(c, node, name, bit, word, result=True)


@primitive("__set_bit __clear_bit", "bit", "word")
def _plain_bit(c: FunctionCompiler, node: ast.Call, name: str, bit: Value, word: Value) -> Value:
    number, text = _bit(c, node, bit, word)
    old = c.load(word, node)
    mask = apply("<<", Const(1), number)
    new = apply("|" if name == "__set_bit" else "andnot", old.value, mask)
    label = Label("store", (f"{name}({text}, &", *c.place_text(word), ")"))
    c.access(node, Primitive("store", None, _shared(word), (new,)), label)
    return VOID


@primitive("BIT", "bit")
def _mask(c: FunctionCompiler, node: ast.Call, _name: str, bit: Value) -> Value:
    return c.shift(node, "<<", Const(1), bit.value)


# --- locks, bottom halves, softirqs ---------------------------------------------------------------------------------


@primitive("spin_lock spin_unlock", "lock")
def _lock(c: FunctionCompiler, node: ast.Call, name: str, lock: Value) -> Value:
    kind: EventKind = "lock" if name == "spin_lock" else "unlock"
    label = Label(kind, (f"{name}(", *c.address(lock), ")"))
    c.access(node, Primitive(name, None, _shared(lock)), label)
    return VOID


@primitive("spin_lock_bh", "lock")
def _lock_bh(c: FunctionCompiler, node: ast.Call, _name: str, lock: Value) -> Value:
    _bottom_half(c, node, "local_bh_disable")
    return _lock(c, node, "spin_lock", lock)


@primitive("spin_unlock_bh", "lock")
def _unlock_bh(c: FunctionCompiler, node: ast.Call, _name: str, lock: Value) -> Value:
    _lock(c, node, "spin_unlock", lock)
    return _bottom_half(c, node, "local_bh_enable")


@primitive("spin_trylock spin_is_locked", "lock")
def _trylock(c: FunctionCompiler, node: ast.Call, name: str, lock: Value) -> Value:
    local = c.temporary("bool", node)
    shown = Show(Local(local), Domain("int", 0, 1))
    label = Label("lock", (f"{name}(", *c.address(lock), ") = ", shown))
    c.access(node, Primitive(name, local, _shared(lock)), label)
    return c.local_value(local)


@primitive("local_bh_disable local_bh_enable")
def _bottom_half(c: FunctionCompiler, node: ast.Call, name: str) -> Value:
    label = Label("softirq", (f"{name}()",))
    # Switching off is a step, so that there is a place before it where a softirq can come in.
    c.access(node, Primitive(name), label, boundary=name == "local_bh_disable")
    return VOID


@primitive("raise_softirq", "handler")
def _raise(c: FunctionCompiler, node: ast.Call, name: str, handler: Value) -> Value:
    place = Read(PENDING + handler.name, Own("cpu"))
    c.access(node, Primitive(name, None, place, marked=True), Label("softirq", (f"{name}({handler.name})",)))
    return VOID


@primitive("smp_processor_id")
def _cpu(_c: FunctionCompiler, _node: ast.Call, _name: str) -> Value:
    return OWN_CPU


# --- packets --------------------------------------------------------------------------------------------------------


@primitive("SkbQueue")
def _new_queue(c: FunctionCompiler, node: ast.Call, _name: str) -> Value:
    local = c.temporary("queue", node)
    c.graph.emit(Assign(Local(local), Const(0)), c.site(node))
    return c.local_value(local)


@primitive("__skb_queue_tail __skb_queue_head", "queue", "skb")
def _enqueue(c: FunctionCompiler, node: ast.Call, name: str, queue: Value, skb: Value) -> Value:
    if isinstance(queue.place, Local):
        c.fail(node, apply("==", skb.value, Const(0)), "null", (f"{name}() of a NULL packet",))
        op = "append" if name == "__skb_queue_tail" else "push"
        c.graph.emit(Assign(queue.place, apply(op, queue.place, skb.value)), c.site(node))
        return VOID
    label = Label("list", (f"{name}(", *c.address(queue), ", ", Show(skb.value, c.config.skb_domain), ")"))
    c.access(node, Primitive(name, None, queue.place, (skb.value,)), label)
    return VOID


@primitive("__skb_dequeue skb_peek", "queue")
def _dequeue(c: FunctionCompiler, node: ast.Call, name: str, queue: Value) -> Value:
    local = c.temporary("skb", node)
    if isinstance(queue.place, Local):
        c.graph.emit(Assign(Local(local), apply("head", queue.place)), c.site(node))
        if name == "__skb_dequeue":
            c.graph.emit(Assign(queue.place, apply("rest", queue.place)), c.site(node))
        return c.local_value(local)
    shown = Show(Local(local), c.config.skb_domain)
    label = Label("list" if name == "__skb_dequeue" else "load", (f"{name}(", *c.address(queue), ") = ", shown))
    c.access(node, Primitive(name, local, queue.place), label)
    return c.local_value(local)


def _length(c: FunctionCompiler, node: ast.Call) -> Value:
    if len(node.args) != 1 or node.keywords:
        raise c.error(node, "`len` takes a list or an array", "write len(list)")
    queue = c.reference(node.args[0])
    if queue.kind == "array":
        size = c.config.variables[queue.name].size or 0
        return Value("int", Const(size))
    if queue.kind != "queue":
        remedy = "len() is for lists and arrays"
        raise c.error(node.args[0], f"`{ast.unparse(node.args[0])}` is {WORDS[queue.kind]}", remedy)
    return c.length(queue, node)


@primitive("skb_queue_len", "queue")
def _queue_len(c: FunctionCompiler, node: ast.Call, _name: str, queue: Value) -> Value:
    return c.length(queue, node)


@primitive("skb_queue_empty skb_queue_empty_lockless", "queue")
def _queue_empty(c: FunctionCompiler, node: ast.Call, name: str, queue: Value) -> Value:
    if isinstance(queue.place, Local):
        return truth(apply("==", queue.place, Const(0)))
    local = c.temporary("bool", node)
    label = Label("load", (f"{name}(", *c.address(queue), ") = ", Show(Local(local), BOOL)))
    marked = name == "skb_queue_empty_lockless"
    c.access(node, Primitive("skb_queue_empty", local, queue.place, marked=marked), label)
    return c.local_value(local)


@primitive("skb_queue_splice_init skb_queue_splice_tail_init", "queue", "queue")
def _splice(c: FunctionCompiler, node: ast.Call, name: str, source: Value, queue: Value) -> Value:
    taken = source.place
    assert isinstance(taken, Read | Local)
    text = (f"{name}(", *c.address(source), ", ", *c.address(queue), ")")
    if isinstance(taken, Read):
        local = Local(c.temporary("queue", node))
        shown: tuple[str | Show, ...] = (" = ", Show(local, c.config.queue_domain))
        c.access(node, Primitive("take_list", local.name, taken), Label("list", (*text, *shown)))
    else:
        local = taken
    order = (
        ("push_list", local, queue.place) if name == "skb_queue_splice_init" else ("append_list", queue.place, local)
    )
    if isinstance(queue.place, Local):
        first, second = order[1], order[2]
        assert isinstance(first, Read | Local)
        assert isinstance(second, Read | Local)
        c.graph.emit(Assign(queue.place, apply("append", first, second)), c.site(node))
    else:
        # While it is empty nothing happens to the list, but it is looked at all the same.
        shown = (" /* ", Show(local, c.config.queue_domain), " */")
        c.access(node, Primitive(str(order[0]), None, queue.place, (local,)), Label("list", (*text, *shown)))
    if isinstance(taken, Local):
        c.graph.emit(Assign(taken, Const(0)), c.site(node))
    return VOID


@primitive("llist_add", "skb", "queue")
def _llist_add(c: FunctionCompiler, node: ast.Call, name: str, skb: Value, queue: Value) -> Value:
    _need_shared(c, node.args[1], queue)
    local = c.temporary("bool", node)
    shown = (Show(skb.value, c.config.skb_domain), ", ", *c.address(queue), ") = ", Show(Local(local), BOOL))
    access = Primitive(name, local, queue.place, (skb.value,), marked=True)
    c.access(node, access, Label("list", (f"{name}(", *shown)))
    return c.local_value(local)


@primitive("llist_del_all", "queue")
def _llist_del_all(c: FunctionCompiler, node: ast.Call, name: str, queue: Value) -> Value:
    _need_shared(c, node.args[0], queue)
    local = c.temporary("queue", node)
    shown = (*c.address(queue), ") = ", Show(Local(local), c.config.queue_domain))
    c.access(node, Primitive(name, local, queue.place, marked=True), Label("list", (f"{name}(", *shown)))
    return c.local_value(local)


@primitive("llist_empty", "queue")
def _llist_empty(c: FunctionCompiler, node: ast.Call, name: str, queue: Value) -> Value:
    _need_shared(c, node.args[0], queue)
    local = c.temporary("bool", node)
    label = Label("load", (f"{name}(", *c.address(queue), ") = ", Show(Local(local), BOOL)))
    c.access(node, Primitive("skb_queue_empty", local, queue.place, marked=True), label)
    return c.local_value(local)


def _need_shared(c: FunctionCompiler, node: ast.expr, queue: Value) -> None:
    if not isinstance(queue.place, Read):
        raise c.error(node, f"`{ast.unparse(node)}` is a list of the thread's own", "name a shared list: m.NAME")


@primitive("llist_reverse_order", "queue")
def _llist_reverse(c: FunctionCompiler, node: ast.Call, _name: str, queue: Value) -> Value:
    if not isinstance(queue.place, Local):
        raise c.error(node.args[0], "only a list of the thread's own is turned round", "take it by llist_del_all()")
    local = c.temporary("queue", node)
    c.graph.emit(Assign(Local(local), apply("reverse", queue.place)), c.site(node))
    if queue.place != Local(local):
        c.graph.emit(Assign(queue.place, Const(0)), c.site(node))
    return c.local_value(local)


@primitive("rcu_read_lock rcu_read_unlock")
def _rcu(c: FunctionCompiler, node: ast.Call, name: str) -> Value:
    # Beginning is a step, so that a grace period may begin before it; ending early only shortens the section.
    c.access(node, Primitive(name), Label("rcu", (f"{name}()",)), boundary=name == "rcu_read_lock")
    return VOID


@primitive("synchronize_rcu")
def _synchronize(c: FunctionCompiler, node: ast.Call, name: str) -> Value:
    c.access(node, Primitive(name), Label("rcu", (f"{name}() begins",)))
    c.access(node, Primitive("synchronize_rcu_end"), Label("rcu", (f"{name}() ends",)))
    return VOID


@primitive("transmit kfree_skb", "skb")
def _consume(c: FunctionCompiler, node: ast.Call, name: str, skb: Value) -> Value:
    kind: EventKind = "wire" if name == "transmit" else "free"
    label = Label(kind, (f"{name}(", Show(skb.value, c.config.skb_domain), ")"))
    place = Read(WHERE, apply("-", skb.value, Const(1)))
    # Freeing what one holds is the thread's own affair; the wire is seen by everyone.
    c.access(node, Primitive(name, None, place, (skb.value,), marked=True), label, boundary=kind == "wire")
    return VOID


# --- the model's own ------------------------------------------------------------------------------------------------


@primitive("choose", "budget", "text", optional=True)
def _choose(
    c: FunctionCompiler, node: ast.Call, _name: str, budget: Value | None = None, text: Value | None = None
) -> Value:
    return c.choose(budget.name if budget else None, text.name if text else "", node)


@primitive("check", "condition", "text")
def _check(c: FunctionCompiler, node: ast.Call, _name: str, condition: Value, text: Value) -> Value:
    c.fail(node, apply("not", condition.value), "check", (text.name,))
    return VOID


def _demand(c: FunctionCompiler, node: ast.Call) -> Value:
    match node.args:
        case [ast.Constant(value=str() as name), condition] if not node.keywords:
            cond = pure_condition(c, condition)
            wanted = ast.unparse(condition).replace(c.scope.model + ".", "")
            text = f"{c.scope.function}() demands {wanted}, and it does not hold"
            c.fail(node, apply("not", cond), name, (text,), fatal=False)
            return VOID
    raise c.error(node, "`demand` takes a name and a condition", 'write demand("name", condition)')


def _wait_until(c: FunctionCompiler, node: ast.Call) -> Value:
    if len(node.args) != 1 or node.keywords:
        raise c.error(node, "`wait_until` takes a condition", "write wait_until(condition)")
    cond = pure_condition(c, node.args[0])
    if not reads_of(cond):
        raise c.error(node.args[0], "nothing changes what this waits for", "wait for a shared variable: m.NAME")
    if len({part for part in walk(cond) if isinstance(part, Read)}) > 1 and c.atomic is None:
        remedy = "wait for one variable, or wrap the wait into `with atomic():`"
        raise c.error(node.args[0], "this waits for several variables in one step", remedy)
    label = Label("load", (ast.unparse(node).replace(f"{c.scope.model}.", ""),))
    c.access(node, Primitive("wait_until", None, None, (cond,), marked=True), label)
    return VOID


def _atomic_call(c: FunctionCompiler, node: ast.Call) -> Value:
    raise c.error(node, "atomic() makes a block one step", "write `with atomic():` and the block below it")


_SPECIAL: dict[str, Callable[[FunctionCompiler, ast.Call], Value]] = {
    "len": _length,
    "demand": _demand,
    "wait_until": _wait_until,
    "atomic": _atomic_call,
    "try_cmpxchg": _try_cmpxchg,
}

__all__ = ["SIGNATURES", "Own", "Place", "compile_call"]
