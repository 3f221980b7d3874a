"""`qmodel litmus` on the tests in tests/litmus and on random ones: against the definitions, and against an oracle."""

from functools import cache
from pathlib import Path
from typing import get_args

import pytest

from qmodel.cli.litmus import Answer, answer
from qmodel.engines.options import Options
from qmodel.frontend.litmus import parse, read
from tests.oracles.store_buffers import Memory, final_states
from tests.random_litmus import litmus

FOLDER = Path(__file__).parent / "litmus"
MEMORIES = get_args(Memory)

# What each test can end in: S sometimes, N never, A always. Under sc, tso and weak it follows from the definitions, as
# the head of each file says; for tso it is what the published tables of x86-TSO say, where they have the test.
# kernel: what LKMM says; - where it does not have the primitive. arm64: what ARMv8 allows, where weak is stricter than
# LKMM: S is a behaviour of arm64 that qmodel does not model.
TABLE = """
test                            sc tso weak kernel arm64
SB                              N  S   S    S      -
SB+mbs                          N  N   N    N      -
SB+mb+po                        N  S   S    S      -
SB+wmbs                         N  S   S    S      -
SB+rmbs                         N  S   S    S      -
SB+rels+acqs                    N  S   S    S      -
SB+store-mbs                    N  N   N    -      -
SB+before_atomics               N  S   N    S      N
SB+after_atomics                N  S   N    S      N
SB+xchgs                        N  N   N    N      -
SB+inc_returns                  N  N   N    N      -
SB+incs                         N  N   S    S      -
SB+incs+after_atomics           N  N   N    N      -
SB+set_bit+mb                   N  N   S    -      -
SB+set_bit+after_atomic+mb      N  N   N    -      -
SB+before_atomic+set_bit+mb     N  N   S    -      -
SB+clear_bit+mb                 N  N   S    -      -
SB+clear_bit+after_atomic+mb    N  N   N    -      -
SB+test_and_set_bit+mb          N  N   N    -      -
SB+cmpxchg-ok+mb                N  N   N    N      -
SB+cmpxchg-fails+mb             N  N   S    S      -
SB+rfis                         N  S   S    S      -
SB+unlock+mb                    N  S   S    S      -
SB+locks                        N  N   N    N      -
SB+lock-between+mb              N  N   S    S      -
SB+trylock-ok+mb                N  N   S    S      -
SB+trylock-fails+mb             N  S   S    S      -
3.SB                            N  S   S    S      -
SB+synchronize_rcus             N  N   N    N      -
n6                              N  S   S    S      -
n5                              N  N   N    N      -
n4b                             N  N   N    N      -
amd3                            N  S   S    S      -
MP                              N  N   S    S      -
MP+wmb+po                       N  N   N    S      S
MP+po+rmb                       N  N   S    S      -
MP+wmb+rmb                      N  N   N    N      -
MP+rel+acq                      N  N   N    N      -
MP+rel+po                       N  N   N    S      S
MP+po+acq                       N  N   S    S      -
MP+mbs                          N  N   N    N      -
MP+wmb+ctrl                     N  N   N    S      S
MP+locks                        N  N   N    N      -
MP+lock+rmb                     N  N   S    S      -
MP+unlock-between+rmb           N  N   S    S      -
MP+xchg+rmb                     N  N   N    N      -
MP+inc+rmb                      N  N   S    S      -
MP+before_atomic+inc+rmb        N  N   N    N      -
MP+inc_return+rmb               N  N   N    N      -
MP+inc-first+rmb                N  N   S    S      -
MP+inc-first+wmb+rmb            N  N   N    N      -
MP+inc-first+rel+acq            N  N   N    N      -
MP+set_bit+rmb                  N  N   S    -      -
MP+before_atomic+set_bit+rmb    N  N   N    -      -
MP+wmb+set_bit+rmb              N  N   N    -      -
MP+test_and_set_bit+rmb         N  N   N    -      -
MP+cmpxchg-fails+rmb            N  N   S    S      -
LB                              N  N   N    S      S
LB+mbs                          N  N   N    N      -
LB+ctrls                        N  N   N    N      -
LB+acqs                         N  N   N    N      -
LB+datas                        N  N   N    N      -
S                               N  N   S    S      -
S+wmb+po                        N  N   N    S      S
S+wmb+data                      N  N   N    N      -
S+rel+acq                       N  N   N    N      -
R                               N  S   S    S      -
R+po+mb                         N  N   S    S      -
R+mb+po                         N  S   S    S      -
R+wmb+mb                        N  N   N    S      N
R+mbs                           N  N   N    N      -
2+2W                            N  N   S    S      -
2+2W+wmbs                       N  N   N    S      N
2+2W+wmb+po                     N  N   S    S      -
2+2W+rels                       N  N   N    S      N
2+2W+mbs                        N  N   N    N      -
CoRR                            N  N   N    N      -
CoWW                            N  N   N    N      -
CoWR                            N  N   N    N      -
CoWR-own                        A  A   A    A      -
CoRW                            N  N   N    N      -
CoRW2                           N  N   N    N      -
CoRR2                           N  N   N    N      -
Co+release                      N  N   N    N      -
Co+set-clear                    N  N   N    -      -
Co+set-test                     A  A   A    -      -
Co+set-other-bit                N  N   N    -      -
Co+set-store                    N  N   N    -      -
inc+inc                         A  A   A    A      -
inc+dec_and_test                S  S   S    S      -
load+store-lost                 S  S   S    S      -
xchg+xchg                       N  N   N    N      -
cmpxchg+cmpxchg                 N  N   N    N      -
test_and_set+test_and_set       N  N   N    -      -
IRIW                            N  N   N    S      S
IRIW+rmbs                       N  N   N    S      N
IRIW+mbs                        N  N   N    N      -
IRIW+xchgs                      N  N   N    S      S
WRC                             N  N   N    S      S
WRC+rel+rmb                     N  N   N    N      -
RWC                             N  S   S    S      -
RWC+po+mb                       N  N   N    S      S
RWC+mbs                         N  N   N    N      -
ISA2                            N  N   S    S      -
ISA2+wmb+po+po                  N  N   N    S      S
ISA2+rel+rel+acq                N  N   N    N      -
W+RWC                           N  S   S    S      -
W+RWC+rel+acq+mb                N  N   N    S      N
Z6.0+rel+rel+mb                 N  N   N    S      N
lock+lock                       A  A   A    A      -
trylock+trylock                 N  N   N    N      -
is_locked+is_locked             N  N   N    S      S
is_locked-then-data             N  N   N    S      S
MP+wmb-lock+rmb                 N  N   S    N      -
missed                          N  S   S    -      -
missed+mb                       N  N   S    -      -
missed+after_atomic             N  S   S    -      -
missed+mb+after_atomic          N  N   N    -      -
missed+mb+test_and_set          N  N   N    -      -
sched                           N  N   S    -      -
sched+before_atomic             N  N   S    -      -
sched+after_atomic              N  N   N    -      -
RCU+read-before                 N  N   N    N      -
RCU+read-after                  N  N   N    N      -
RCU+no-reader                   S  S   S    S      -
RCU+reader-stores               N  N   N    N      -
RCU+nested                      N  N   N    N      -
RCU+two-sections                S  S   S    S      -
RCU+two-readers                 N  S   S    S      -
"""
VERDICTS = {"S": "Sometimes", "N": "Never", "A": "Always"}


def rows() -> dict[str, dict[str, str]]:
    """Return the table: test to column to letter."""
    head, *lines = (line.split() for line in TABLE.strip().splitlines())
    return {name: dict(zip(head[1:], letters, strict=True)) for name, *letters in lines}


ROWS = rows()


@cache
def answered(name: str, memory: str) -> Answer:
    """Return what qmodel says of a file."""
    return answer(read(FOLDER / f"{name}.litmus"), memory, Options())


def by_oracle(text: str, memory: Memory, shown: tuple[str, ...]) -> set[tuple[int, ...]]:
    """Return the final states that the oracle finds, as far as they are shown; a register is 0 where it is not set."""
    return {tuple(final.get(place, 0) for place in shown) for final in final_states(text, memory)}


def test_table_has_every_file() -> None:
    """Each test in the folder stands in the table, under its own name, and nothing else does."""
    assert sorted(ROWS) == sorted(path.stem for path in FOLDER.iterdir())
    assert sorted(ROWS) == sorted(read(path).name for path in FOLDER.iterdir())


@pytest.mark.parametrize("memory", MEMORIES)
@pytest.mark.parametrize("name", ROWS)
def test_observation_is_what_the_definitions_say(name: str, memory: str) -> None:
    """A test ends as the table says."""
    assert VERDICTS[ROWS[name][memory]] == answered(name, memory).observation


@pytest.mark.parametrize("memory", MEMORIES)
@pytest.mark.parametrize("name", ROWS)
def test_final_states_are_those_of_the_oracle(name: str, memory: Memory) -> None:
    """A test ends in exactly the states that brute force finds."""
    found = answered(name, memory)
    shown = tuple(map(str, found.test.shown))
    assert by_oracle((FOLDER / f"{name}.litmus").read_text(), memory, shown) == set(found.states)


def test_weak_shows_one_thing_that_the_kernel_forbids() -> None:
    """What LKMM says never happens does not happen under weak, but for a lock that is taken behind an smp_wmb."""
    forbidden = [name for name, row in ROWS.items() if row["kernel"] == "N"]
    assert ["MP+wmb-lock+rmb"] == [name for name in forbidden if ROWS[name]["weak"] != "N"]


def test_table_says_what_weak_does_not_model() -> None:
    """Where LKMM allows what weak forbids, and only there, the table says what arm64 does."""
    stricter = {name for name, row in ROWS.items() if row["weak"] == "N" and row["kernel"] == "S"}
    assert stricter == {name for name, row in ROWS.items() if row["arm64"] != "-"}


def check_random(seed: int, memory: Memory) -> None:
    """Compare all final states of a random test, every register and variable of them."""
    text = litmus(seed)
    test = parse(text, f"random-{seed}")
    found = answer(test, memory, Options())
    assert by_oracle(text, memory, tuple(map(str, test.shown))) == set(found.states), text


@pytest.mark.parametrize("seed", range(240))
def test_random_tests_end_as_the_oracle_says(seed: int) -> None:
    """Random tests, one memory model each in turn, end in exactly the states that brute force finds."""
    check_random(seed, MEMORIES[seed % len(MEMORIES)])


@pytest.mark.slow
@pytest.mark.parametrize("memory", MEMORIES)
@pytest.mark.parametrize("start", range(1000, 2000, 50))
def test_more_random_tests_end_as_the_oracle_says(start: int, memory: Memory) -> None:
    """A thousand more of them, each under every memory model."""
    for seed in range(start, start + 50):
        check_random(seed, memory)
