"""`qmodel diff`: source, steps and verdicts of two variants."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Command

SPEC = '''
from qmodel.lang import (
    READ_ONCE, WRITE_ONCE, Holds, Int, Model, Param, Refutes, atomic_inc, measure, quiescent, thread,
)


class Counter(Model):
    """CPUs count."""

    cpus = Param(2, low=1, high=3, grows=True, doc="CPUs that count")
    n = Int(0, high=9)

    @thread(each=cpus)
    def count(m, cpu):
        m.add()
        m.again()

    @thread
    def look(m):
        READ_ONCE(m.n)

    def add(m): ...

    def again(m):
        pass

    @quiescent("sum")
    def nothing_is_lost(m):
        """Each CPU counts once."""
        return m.n == m.cpus

    @measure("n")
    def value(m):
        """What was counted."""
        return m.n


class Plain(Counter):
    """A read and a store."""

    def add(m):
        m.n += 1

    expect = [Refutes("sum")]


class Atomic(Counter):
    """One step."""

    def add(m):
        # As the kernel does.
        atomic_inc(m.n)

    expect = [Holds(), Holds(cpus=3)]


class Twice(Atomic):
    """Counts twice, and looks before it does."""

    by = Param(1, low=1, high=2, doc="how much is added the second time")
    n = Int(0, high=20)

    @thread
    def look(m):
        m.n = READ_ONCE(m.n)

    def again(m):
        atomic_inc(m.n)
        m.more()

    def more(m):
        WRITE_ONCE(m.n, m.by)


class Swapped(Atomic):
    """The same in another order."""

    def again(m):
        WRITE_ONCE(m.n, 1)
        READ_ONCE(m.n)


class Straight(Atomic):
    """The same in one order."""

    def again(m):
        READ_ONCE(m.n)
        WRITE_ONCE(m.n, 1)


class Wrong(Plain):
    """Says that it holds."""

    def add(m):
        m.n += 1

    expect = [Holds()]
'''


@pytest.fixture
def path(spec: Callable[[str], Path]) -> Path:
    """The specification above, as a file."""
    return spec(SPEC)


def sides(diff: str) -> dict[str, tuple[list[str], list[str]]]:
    """Return the lines that each side of a unified diff has, by the name of the function."""
    found: dict[str, tuple[list[str], list[str]]] = {}
    for line in diff.splitlines():
        if line.startswith(("--- ", "+++ ")):
            if not line.endswith("/dev/null"):
                current = found.setdefault(line.rpartition(".")[2], ([], []))
        elif not line.startswith("@@"):
            if line[:1] != "+":
                current[0].append(line[1:])
            if line[:1] != "-":
                current[1].append(line[1:])
    return found


def test_source_is_a_unified_diff(qmodel: Command, path: Path) -> None:
    """The functions that differ are shown as a patch shows them, with their lines in the file."""
    done = qmodel("diff", path, "plain", "atomic", "--no-check")
    source = done.out.partition("\n\n")[0]
    expected = f"""\
--- {path} Plain.add
+++ {path} Atomic.add
@@ -41,2 +50,3 @@
 def add(m):
-    m.n += 1
+    # As the kernel does.
+    atomic_inc(m.n)"""
    assert expected == source


def test_each_side_of_the_diff_is_the_source(qmodel: Command, path: Path) -> None:
    """Functions, their decorators and declarations are compared, also those that one variant alone has."""
    done = qmodel("diff", path, "atomic", "twice", "--no-check")
    found = sides(done.out.partition("\n\n")[0])
    assert {
        "n": (["n = Int(0, high=9)"], ["n = Int(0, high=20)"]),
        "look": (
            ["@thread", "def look(m):", "    READ_ONCE(m.n)"],
            ["@thread", "def look(m):", "    m.n = READ_ONCE(m.n)"],
        ),
        "again": (["def again(m):", "    pass"], ["def again(m):", "    atomic_inc(m.n)", "    m.more()"]),
        "by": ([], ['by = Param(1, low=1, high=2, doc="how much is added the second time")']),
        "more": ([], ["def more(m):", "    WRITE_ONCE(m.n, m.by)"]),
    } == found


def test_steps_that_one_variant_has(qmodel: Command, path: Path) -> None:
    """For each thread: how many steps there are, and those that only one variant has, with their places."""
    done = qmodel("diff", path, "plain", "atomic", "--no-check")
    expected = """\
count: 2 steps in plain, 1 in atomic
  - add:42  n == ...
  - add:42  n = ...
  + add:52  atomic_inc(&n)
look: the same 1 step
"""
    assert expected == done.out.partition("\n\n")[2]


def test_steps_in_another_order(qmodel: Command, path: Path) -> None:
    """Where both have the same steps, but not in the same order, that is said."""
    done = qmodel("diff", path, "swapped", "straight", "--no-check")
    assert "count: the same 3 steps in another order\nlook: the same 1 step\n" == done.out.partition("\n\n")[2]


def test_steps_in_more_places(qmodel: Command, spec: Callable[[str], Path]) -> None:
    """A function that is called once more brings no new step, and is named."""
    text = SPEC + "\n\nclass Again(Atomic):\n    def again(m):\n        m.add()\n"
    done = qmodel("diff", spec(text), "atomic", "again", "--no-check")
    expected = """\
count: 1 step in atomic, 2 in again
  ~ in a different number of places: steps of add
look: the same 1 step
"""
    assert expected == done.out.partition("\n\n")[2]


def test_verdicts_side_by_side(qmodel: Command, path: Path) -> None:
    """What comes out differently has a row, what comes out alike shares one; all as expected is a success."""
    done = qmodel("diff", path, "plain", "atomic")
    expected = """\
counter: cpus=2 memory=sc

          plain             atomic
sum       refuted, 5 steps  holds
verdict   refuted           holds
expected  as expected       as expected
max n     2                 2
states    24                8
depth     5                 3
deadlock, race, domain, locking, null, check, endless hold in both
"""
    assert 0 == done.code
    assert expected == done.out[done.out.index("counter:") :]


def test_verdicts_are_those_of_the_parameters(qmodel: Command, path: Path) -> None:
    """Parameters are given as in `qmodel check`."""
    done = qmodel("diff", path, "plain", "atomic", "--cpus", "1")
    assert "counter: cpus=1 memory=sc" in done.out.splitlines()
    assert "verdict   holds       holds" in done.out.splitlines()


def test_parameter_that_one_variant_has(qmodel: Command, path: Path) -> None:
    """A parameter that the patch adds can be given: it is the other variant's alone."""
    done = qmodel("diff", path, "atomic", "twice", "--by", "2", "--no-check")
    assert 0 == done.code


def test_unexpected_verdict(qmodel: Command, path: Path) -> None:
    """A verdict that is not as expected is no success, as in `qmodel check`."""
    done = qmodel("diff", path, "atomic", "wrong")
    assert 1 == done.code
    assert "expected  as expected  UNEXPECTED" in done.out.splitlines()


def test_incomplete_search(qmodel: Command, path: Path) -> None:
    """What a limit leaves undecided is inconclusive, and the limit is named."""
    done = qmodel("diff", path, "plain", "atomic", "--max-states", "2")
    assert 3 == done.code
    assert "plain is not complete: the limit of 2 states is reached" in done.out.splitlines()
    assert "verdict   inconclusive  inconclusive" in done.out.splitlines()


def test_nothing_is_searched_without_check(qmodel: Command, path: Path) -> None:
    """--no-check compares source and steps alone."""
    done = qmodel("diff", path, "plain", "wrong", "--no-check")
    assert 0 == done.code
    assert "wrong have the same source.\n" in done.out
    assert "verdict" not in done.out


def test_variant_with_itself(qmodel: Command, path: Path) -> None:
    """Comparing a variant with itself is wrong usage."""
    done = qmodel("diff", path, "plain", "plain")
    assert (2, "") == (done.code, done.out)
    assert done.err.startswith("qmodel: this compares plain with itself; name two variants")


def test_unknown_variant(qmodel: Command, path: Path) -> None:
    """A variant that does not exist is answered with those there are."""
    done = qmodel("diff", path, "plain", "atomik")
    assert (2, "") == (done.code, done.out)
    assert "counter has no variant `atomik`; did you mean `atomic`?" in done.err
