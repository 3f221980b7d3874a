"""Small random litmus tests, each from a number: the same number gives the same test."""

from __future__ import annotations

import random
from collections.abc import Callable

_INTS = ("x", "y")
_WORDS = ("f",)
_PARAMETERS = "(atomic_t *x, atomic_t *y, unsigned long *f, spinlock_t *s)"


class _Writer:
    """Writes one test. Every register and variable is looked at."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)  # noqa: S311  nothing here is a secret
        self.registers = 0
        self.in_section = False
        self.in_lock = False

    def test(self, name: str) -> str:
        """Return a test of two or three threads."""
        pick = self.random
        count = pick.choice((2, 2, 2, 3))
        initial = [f"{v}={pick.choice((0, 0, 0, 1))};" for v in (*_INTS, *_WORDS)]
        lines, shown = [f"C {name}", "", "{ " + " ".join(initial) + " }"], [f"{v};" for v in (*_INTS, *_WORDS)]
        for thread in range(count):
            self.registers = 0
            body: list[str] = []
            size = pick.randint(2, 4) if count == 2 else pick.randint(1, 2)
            while len(body) < size:
                body += self.statements()
            registers = [f"r{i}" for i in range(self.registers)]
            shown += [f"{thread}:{r};" for r in registers]
            lines += ["", f"P{thread}{_PARAMETERS}", "{", *(f"\tint {r};" for r in registers)]
            lines += ["\t" + line for line in body] + ["}"]
        return "\n".join([*lines, "", f"locations [{' '.join(shown)}]", "exists (true)", ""])

    def statements(self) -> list[str]:
        """Return one access, one barrier, or a few accesses that go together."""
        kinds: list[tuple[int, Callable[[], list[str]]]] = [
            (10, self.access),
            (5, self.bit),
            (4, self.barrier),
            (2, self.branch),
            (2, self.locked),
            (2, self.tried),
            (1, lambda: [f"{self.register()} = spin_is_locked(s);"]),
            (2, self.section),
            (1, lambda: [] if self.in_section else ["synchronize_rcu();"]),
        ]
        (make,) = self.random.choices([k for _, k in kinds], [w for w, _ in kinds])
        return make()

    def register(self) -> str:
        """Return a register that nothing has been put into."""
        self.registers += 1
        return f"r{self.registers - 1}"

    def access(self) -> list[str]:
        """Return an access to a number."""
        x, k, m = self.random.choice(_INTS), self.random.randint(1, 2), self.random.randint(0, 2)
        return [
            self.random.choice(
                (
                    lambda: f"WRITE_ONCE(*{x}, {k});",
                    lambda: f"WRITE_ONCE(*{x}, {k});",
                    lambda: f"{self.register()} = READ_ONCE(*{x});",
                    lambda: f"{self.register()} = READ_ONCE(*{x});",
                    lambda: f"*{x} = {k};",
                    lambda: f"{self.register()} = *{x};",
                    lambda: f"smp_store_release({x}, {k});",
                    lambda: f"{self.register()} = smp_load_acquire({x});",
                    lambda: f"atomic_set({x}, {k});",
                    lambda: f"{self.register()} = atomic_read({x});",
                    lambda: f"smp_store_mb({x}, {k});",
                    lambda: f"{self.register()} = xchg({x}, {k});",
                    lambda: f"{self.register()} = cmpxchg({x}, {m}, {k});",
                    lambda: f"{self.register()} = cmpxchg({x}, {m}, {k});",
                    lambda: f"atomic_inc({x});",
                    lambda: f"atomic_dec({x});",
                    lambda: f"atomic_add({k}, {x});",
                    lambda: f"atomic_sub({k}, {x});",
                    lambda: f"{self.register()} = atomic_inc_return({x});",
                    lambda: f"{self.register()} = atomic_fetch_add({k}, {x});",
                    lambda: f"{self.register()} = atomic_sub_return({k}, {x});",
                    lambda: f"{self.register()} = atomic_dec_and_test({x});",
                    lambda: f"{self.register()} = atomic_fetch_inc({x});",
                    lambda: f"{self.register()} = atomic_add_negative({k}, {x});",
                )
            )()
        ]

    def bit(self) -> list[str]:
        """Return an access to a word of bits."""
        b = self.random.randint(0, 1)
        return [
            self.random.choice(
                (
                    lambda: f"set_bit({b}, f);",
                    lambda: f"set_bit({b}, f);",
                    lambda: f"clear_bit({b}, f);",
                    lambda: f"{self.register()} = test_bit({b}, f);",
                    lambda: f"{self.register()} = test_and_set_bit({b}, f);",
                    lambda: f"{self.register()} = test_and_clear_bit({b}, f);",
                    lambda: f"{self.register()} = READ_ONCE(*f);",
                    lambda: f"WRITE_ONCE(*f, {self.random.randint(0, 3)});",
                )
            )()
        ]

    def barrier(self) -> list[str]:
        """Return a barrier."""
        names = ("smp_mb", "smp_wmb", "smp_wmb", "smp_rmb", "smp_mb__before_atomic", "smp_mb__after_atomic")
        return [f"{self.random.choice(names)}();"]

    def branch(self) -> list[str]:
        """Return accesses that depend on what a register holds."""
        if not self.registers:
            return []
        test = (
            f"r{self.random.randrange(self.registers)} {self.random.choice(('==', '!='))} {self.random.randint(0, 1)}"
        )
        yes, no = self.access()[0], self.access()[0]
        return [f"if ({test}) {{ {yes} }}" + (f" else {{ {no} }}" if self.random.random() < 0.5 else "")]

    def locked(self) -> list[str]:
        """Return a critical section."""
        if self.in_lock:
            return []
        self.in_lock = True
        inner = [*self.access(), *(self.access() if self.random.random() < 0.5 else [])]
        self.in_lock = False
        return ["spin_lock(s);", *inner, "spin_unlock(s);"]

    def tried(self) -> list[str]:
        """Return a critical section that is entered where the lock is free."""
        if self.in_lock:
            return []
        got = self.register()
        return [f"{got} = spin_trylock(s);", f"if ({got}) {{ {self.access()[0]} spin_unlock(s); }}"]

    def section(self) -> list[str]:
        """Return an RCU section, perhaps with another one inside."""
        if self.in_section:
            return []
        inner = self.access()[0]
        if self.random.random() < 0.3:
            inner = f"rcu_read_lock(); {inner} rcu_read_unlock();"
        return ["rcu_read_lock();", self.access()[0], inner, self.access()[0], "rcu_read_unlock();"]


def litmus(seed: int) -> str:
    """Return the test of a number."""
    return _Writer(seed).test(f"random-{seed}")
