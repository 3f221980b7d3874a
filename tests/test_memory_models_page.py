"""docs/memory-models.md: each line of its table against what the code does."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from qmodel.cli.litmus import answer, text
from qmodel.engines.options import Options
from qmodel.frontend.litmus import parse, read
from qmodel.frontend.litmus.primitives import SIGNATURES

PAGE = Path(__file__).parents[1] / "docs" / "memory-models.md"

# Whether each can be seen by another CPU, by the word that stands in the table:
# - an earlier store after a later load; an earlier store after a later store;
# - what the primitive itself does after a later load; before an earlier store; after a later store.
SHOWN = {
    "sc": dict.fromkeys(("-", "load", "at once"), (False, False, False, False, False)),
    "tso": {
        "-": (True, False, False, False, False),
        "load": (True, False, False, False, False),
        "store": (True, False, True, False, False),
        "drain": (False, False, False, False, False),
        "at once": (False, False, False, False, False),
    },
    "weak": {
        "-": (True, True, False, False, False),
        "load": (True, True, False, False, False),
        "store": (True, True, True, True, True),
        "pending": (True, True, True, True, True),
        "release": (True, True, True, False, True),
        "take": (True, True, False, True, False),
        "order": (True, False, False, False, False),
        "drain": (False, False, False, False, False),
        "at once": (False, False, False, False, False),
    },
}


@dataclass(frozen=True)
class Probe:
    """A primitive in a place where another CPU can watch it.

    call: the primitive, on the variable v. taken: what its result, in r9, must be. before and after: what surrounds the
    accesses around it. initial: of v. look: how v is read; new: what tells that the primitive has been seen. other: one
    more thread.
    """

    call: str
    taken: str = ""
    before: str = ""
    after: str = ""
    initial: int = 0
    look: str = "READ_ONCE(*v)"
    new: int | None = None
    other: str = ""


def _lock(call: str, taken: str = "") -> Probe:
    return Probe(call, taken, look="spin_is_locked(v)", after="if (r9) { spin_unlock(v); }", new=1)


PROBES = {
    "READ_ONCE": Probe("r9 = READ_ONCE(*v);"),
    "a plain load": Probe("r9 = *v;"),
    "atomic_read": Probe("r9 = atomic_read(v);"),
    "test_bit": Probe("r9 = test_bit(0, v);"),
    "smp_load_acquire": Probe("r9 = smp_load_acquire(v);"),
    "atomic_read_acquire": Probe("r9 = atomic_read_acquire(v);"),
    "WRITE_ONCE": Probe("WRITE_ONCE(*v, 1);", new=1),
    "a plain store": Probe("*v = 1;", new=1),
    "atomic_set": Probe("atomic_set(v, 1);", new=1),
    "smp_store_release": Probe("smp_store_release(v, 1);", new=1),
    "atomic_set_release": Probe("atomic_set_release(v, 1);", new=1),
    "smp_store_mb": Probe("smp_store_mb(v, 1);"),  # what it stores is pending at first, as any store is
    "smp_mb": Probe("smp_mb();"),
    "smp_wmb": Probe("smp_wmb();"),
    "smp_rmb": Probe("smp_rmb();"),
    "smp_mb__before_atomic": Probe("smp_mb__before_atomic();"),
    "smp_mb__after_atomic": Probe("smp_mb__after_atomic();"),
    "atomic_inc": Probe("atomic_inc(v);", new=1),
    "atomic_dec": Probe("atomic_dec(v);", new=-1),
    "atomic_add": Probe("atomic_add(2, v);", new=2),
    "atomic_sub": Probe("atomic_sub(2, v);", new=-2),
    "set_bit": Probe("set_bit(1, v);", new=2),
    "clear_bit": Probe("clear_bit(1, v);", initial=3, new=1),
    "xchg": Probe("r9 = xchg(v, 1);", new=1),
    "atomic_xchg": Probe("r9 = atomic_xchg(v, 1);", new=1),
    "cmpxchg that succeed": Probe("r9 = cmpxchg(v, 0, 1);", new=1),
    "atomic_cmpxchg that succeed": Probe("r9 = atomic_cmpxchg(v, 0, 1);", new=1),
    "cmpxchg that fail": Probe("r9 = cmpxchg(v, 1, 2);"),
    "atomic_cmpxchg that fail": Probe("r9 = atomic_cmpxchg(v, 1, 2);"),
    "atomic_inc_return": Probe("r9 = atomic_inc_return(v);", new=1),
    "atomic_dec_return": Probe("r9 = atomic_dec_return(v);", new=-1),
    "atomic_add_return": Probe("r9 = atomic_add_return(1, v);", new=1),
    "atomic_sub_return": Probe("r9 = atomic_sub_return(1, v);", new=-1),
    "atomic_fetch_inc": Probe("r9 = atomic_fetch_inc(v);", new=1),
    "atomic_fetch_dec": Probe("r9 = atomic_fetch_dec(v);", new=-1),
    "atomic_fetch_add": Probe("r9 = atomic_fetch_add(1, v);", new=1),
    "atomic_fetch_sub": Probe("r9 = atomic_fetch_sub(1, v);", new=-1),
    "atomic_dec_and_test": Probe("r9 = atomic_dec_and_test(v);", initial=1, new=0),
    "atomic_inc_and_test": Probe("r9 = atomic_inc_and_test(v);", new=1),
    "atomic_sub_and_test": Probe("r9 = atomic_sub_and_test(1, v);", initial=1, new=0),
    "atomic_add_negative": Probe("r9 = atomic_add_negative(1, v);", new=1),
    "test_and_set_bit": Probe("r9 = test_and_set_bit(0, v);", new=1),
    "test_and_clear_bit": Probe("r9 = test_and_clear_bit(0, v);", initial=1, new=0),
    "spin_lock": _lock("spin_lock(v); r9 = 1;"),
    "spin_trylock that succeeds": _lock("r9 = spin_trylock(v);", taken="0:r9=1"),
    "spin_trylock that fails": Probe(
        "r9 = spin_trylock(v);",
        taken="0:r9=0",
        after="if (r9) { spin_unlock(v); }",
        look="1",
        other="spin_lock(v); spin_unlock(v);",
    ),
    "spin_is_locked": Probe("r9 = spin_is_locked(v);", look="spin_is_locked(v)"),
    "spin_unlock": Probe("spin_unlock(v);", before="spin_lock(v);", look="spin_is_locked(v)", new=0),
    "rcu_read_lock": Probe("rcu_read_lock();", after="rcu_read_unlock();"),
    "rcu_read_unlock": Probe("rcu_read_unlock();", before="rcu_read_lock();"),
    "synchronize_rcu": Probe("synchronize_rcu();"),
}


def rows() -> Iterator[tuple[str, str, str, str]]:
    """Yield each primitive of the page with what it says under sc, tso and weak."""
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if not line.startswith("|") or len(cells) != 5 or cells[0] in {"primitive", "---"}:
            continue
        names, _, condition = cells[0].partition(" that ")
        for name in names.split(", "):
            yield name.strip("`") + (f" that {condition}" if condition else ""), cells[1], cells[2], cells[3]


ROWS = list(rows())


def sometimes(memory: str, watched: str, watching: str, probe: Probe, condition: str) -> bool:
    """Tell whether two threads, one with a primitive and one that watches it, can end so."""
    kind = "spinlock_t" if "spin_" in probe.call + probe.look else "atomic_t"
    end = " /\\ ".join(part for part in (probe.taken, condition) if part)
    text = f"""C probe
{{ {"" if kind == "spinlock_t" else f"v={probe.initial};"} }}
P0(int *a, int *b, {kind} *v) {{ {probe.before} {watched} {probe.after} }}
P1(int *a, int *b, {kind} *v) {{ {watching} }}
{f"P2({kind} *v) {{ {probe.other} }}" if probe.other else ""}
exists ({end})
"""
    return answer(parse(text, "probe"), memory, Options()).observation == "Sometimes"


def shown(memory: str, probe: Probe) -> tuple[bool, bool, bool, bool, bool]:
    """Return what another CPU can see of the five."""

    def load_after(watching: str, condition: str) -> bool:
        return sometimes(memory, f"WRITE_ONCE(*a, 1); {probe.call} r0 = READ_ONCE(*b);", watching, probe, condition)

    def store_after(watching: str, condition: str) -> bool:
        return sometimes(memory, f"WRITE_ONCE(*a, 1); {probe.call} WRITE_ONCE(*b, 1);", watching, probe, condition)

    late_load = load_after("WRITE_ONCE(*b, 1); smp_mb(); r1 = READ_ONCE(*a);", "0:r0=0 /\\ 1:r1=0")
    late_store = store_after("r2 = READ_ONCE(*b); smp_mb(); r1 = READ_ONCE(*a);", "1:r2=1 /\\ 1:r1=0")
    if probe.new is None:
        return late_load, late_store, False, False, False
    # A lock comes and goes: what is not there yet is there later, and what is there now was not there before.
    appears = f"1:r3!={probe.new} /\\ 1:r4={probe.new}"
    twice = f"r3 = {probe.look}; r4 = {probe.look};"
    return (
        late_load,
        late_store,
        load_after(f"WRITE_ONCE(*b, 1); smp_mb(); {twice}", f"0:r0=0 /\\ {appears}"),
        load_after(f"{twice} smp_mb(); r1 = READ_ONCE(*a);", f"{appears} /\\ 1:r1=0"),
        store_after(f"r2 = READ_ONCE(*b); smp_mb(); {twice}", f"1:r2=1 /\\ {appears}"),
    )


def test_page_has_every_primitive_of_litmus_tests() -> None:
    """Each primitive stands in the table, and nothing else does."""
    names = {name.partition(" that ")[0] for name, *_ in ROWS} - {"a plain load", "a plain store"}
    assert set(SIGNATURES) == names


@pytest.mark.parametrize("memory", [pytest.param("sc", marks=pytest.mark.slow), "tso", "weak"])
@pytest.mark.parametrize("row", ROWS, ids=lambda row: str(row[0]))
def test_page_says_what_others_can_see(row: tuple[str, str, str, str], memory: str) -> None:
    """What another CPU can see out of order around a primitive is what the word in the table means."""
    name, *words = row
    word = words[["sc", "tso", "weak"].index(memory)]
    assert SHOWN[memory][word] == shown(memory, PROBES[name])


def test_page_shows_what_the_command_prints() -> None:
    """The example of the page is the answer to a test in this repository."""
    test = Path(__file__).parent / "litmus" / "SB.litmus"
    printed = text(answer(read(test), "tso", Options()))
    example = re.search(r"(?:^    .*\n)+", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert example is not None
    assert printed == "\n".join(line[4:] for line in example[0].splitlines())
