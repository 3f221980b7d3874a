"""What a litmus test may call: what each primitive takes, the operation that it is, and the values that it makes.

What an operation *means* under a memory model is decided in `qmodel.passes.memory`. The values are said here all the
same, since a test declares no bounds: they are found from what is stored.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from qmodel.ir.expr import BOOL, Const, Domain, Expr, apply
from qmodel.ir.program import EventKind

Values = Callable[[Expr, Sequence[Expr]], Expr]
"""From what a variable holds and the values given to what it becomes, or to what the call returns."""


@dataclass(frozen=True, slots=True)
class Signature:
    """A primitive. takes: in C's order `*` for `*x`, `x` for a pointer, `l` for a lock, `b` for a bit, `v` for a value.

    name: the operation that it is. given: values that the operation takes, from those of the call. stored: what the
    variable becomes, None where it is not stored to. returned: what the operation returns; answer: what the call
    returns then. after: an operation that follows.
    """

    takes: str
    name: str
    kind: EventKind
    stored: Values | None = None
    returned: Values | Domain | None = None
    given: Callable[[Sequence[Expr]], Sequence[Expr]] = tuple
    answer: Callable[[Expr], Expr] | None = None
    after: str = ""

    @property
    def word(self) -> bool:
        """Tell whether it works on single bits of a variable."""
        return "b" in self.takes


def _old(held: Expr, _given: Sequence[Expr]) -> Expr:
    return held


def _given(_held: Expr, given: Sequence[Expr]) -> Expr:
    return given[-1]


def _increased(held: Expr, _given: Sequence[Expr]) -> Expr:
    return apply("+", held, Const(1))


def _decreased(held: Expr, _given: Sequence[Expr]) -> Expr:
    return apply("-", held, Const(1))


def _added(held: Expr, given: Sequence[Expr]) -> Expr:
    return apply("+", held, given[0])


def _subtracted(held: Expr, given: Sequence[Expr]) -> Expr:
    return apply("-", held, given[0])


def _set(held: Expr, given: Sequence[Expr]) -> Expr:
    return apply("|", held, apply("<<", Const(1), given[0]))


def _cleared(held: Expr, given: Sequence[Expr]) -> Expr:
    return apply("andnot", held, apply("<<", Const(1), given[0]))


def _negated(given: Sequence[Expr]) -> Sequence[Expr]:
    return (apply("-", Const(0), given[0]),)


def _one(_given: Sequence[Expr]) -> Sequence[Expr]:
    return (Const(1),)


def _minus_one(_given: Sequence[Expr]) -> Sequence[Expr]:
    return (Const(-1),)


def _is_zero(value: Expr) -> Expr:
    return apply("==", value, Const(0))


def _is_negative(value: Expr) -> Expr:
    return apply("<", value, Const(0))


def _sum(
    takes: str, given: Callable[[Sequence[Expr]], Sequence[Expr]] = tuple, answer: Callable[[Expr], Expr] | None = None
) -> Signature:
    """Return an atomic that adds and returns something of the new value."""
    return Signature(takes, "atomic_add_return", "atomic", _added, _added, given, answer)


def _fetch(takes: str, given: Callable[[Sequence[Expr]], Sequence[Expr]] = tuple) -> Signature:
    """Return an atomic that adds and returns the old value."""
    return Signature(takes, "atomic_fetch_add", "atomic", _added, _old, given)


SIGNATURES: dict[str, Signature] = {
    "READ_ONCE": Signature("*", "READ_ONCE", "load", returned=_old),
    "WRITE_ONCE": Signature("*v", "WRITE_ONCE", "store", _given),
    "smp_load_acquire": Signature("x", "smp_load_acquire", "load", returned=_old),
    "smp_store_release": Signature("xv", "smp_store_release", "store", _given),
    "smp_store_mb": Signature("xv", "WRITE_ONCE", "store", _given, after="smp_mb"),
    "smp_mb": Signature("", "smp_mb", "atomic"),
    "smp_rmb": Signature("", "smp_rmb", "atomic"),
    "smp_wmb": Signature("", "smp_wmb", "atomic"),
    "smp_mb__before_atomic": Signature("", "smp_mb__before_atomic", "atomic"),
    "smp_mb__after_atomic": Signature("", "smp_mb__after_atomic", "atomic"),
    "xchg": Signature("xv", "xchg", "atomic", _given, _old),
    "cmpxchg": Signature("xvv", "cmpxchg", "atomic", _given, _old),
    "atomic_xchg": Signature("xv", "xchg", "atomic", _given, _old),
    "atomic_cmpxchg": Signature("xvv", "cmpxchg", "atomic", _given, _old),
    "atomic_read": Signature("x", "atomic_read", "load", returned=_old),
    "atomic_set": Signature("xv", "atomic_set", "store", _given),
    "atomic_read_acquire": Signature("x", "smp_load_acquire", "load", returned=_old),
    "atomic_set_release": Signature("xv", "smp_store_release", "store", _given),
    "atomic_inc": Signature("x", "atomic_inc", "atomic", _increased),
    "atomic_dec": Signature("x", "atomic_dec", "atomic", _decreased),
    "atomic_add": Signature("vx", "atomic_add", "atomic", _added),
    "atomic_sub": Signature("vx", "atomic_sub", "atomic", _subtracted),
    "atomic_inc_return": Signature("x", "atomic_inc_return", "atomic", _increased, _increased),
    "atomic_dec_return": Signature("x", "atomic_dec_return", "atomic", _decreased, _decreased),
    "atomic_add_return": _sum("vx"),
    "atomic_sub_return": _sum("vx", _negated),
    "atomic_fetch_add": _fetch("vx"),
    "atomic_fetch_sub": _fetch("vx", _negated),
    "atomic_fetch_inc": _fetch("x", _one),
    "atomic_fetch_dec": _fetch("x", _minus_one),
    "atomic_dec_and_test": Signature("x", "atomic_dec_and_test", "atomic", _decreased, BOOL),
    "atomic_inc_and_test": _sum("x", _one, _is_zero),
    "atomic_sub_and_test": _sum("vx", _negated, _is_zero),
    "atomic_add_negative": _sum("vx", answer=_is_negative),
    "test_bit": Signature("bx", "test_bit", "load", returned=BOOL),
    "set_bit": Signature("bx", "set_bit", "atomic", _set),
    "clear_bit": Signature("bx", "clear_bit", "atomic", _cleared),
    "test_and_set_bit": Signature("bx", "test_and_set_bit", "atomic", _set, BOOL),
    "test_and_clear_bit": Signature("bx", "test_and_clear_bit", "atomic", _cleared, BOOL),
    "spin_lock": Signature("l", "spin_lock", "lock"),
    "spin_unlock": Signature("l", "spin_unlock", "unlock"),
    "spin_trylock": Signature("l", "spin_trylock", "lock", returned=BOOL),
    "spin_is_locked": Signature("l", "spin_is_locked", "lock", returned=BOOL),
    "rcu_read_lock": Signature("", "rcu_read_lock", "rcu"),
    "rcu_read_unlock": Signature("", "rcu_read_unlock", "rcu"),
    "synchronize_rcu": Signature("", "synchronize_rcu", "rcu", after="synchronize_rcu_end"),
}
"""Every primitive by its name in C: those of herd7's file for the kernel, and the bit operations."""

ORDER_LESS = ("_relaxed", "_acquire", "_release")
"""Endings of atomics that order less than a full barrier: none of the models has them."""


def operation(name: str) -> Signature | None:
    """Return the signature of an operation by its own name, for the values that it makes."""
    return _OPERATIONS.get(name)


_PLAIN = (Signature("*", "load", "load", returned=_old), Signature("*v", "store", "store", _given))
_OPERATIONS = {s.name: s for s in (*SIGNATURES.values(), *_PLAIN)}
