"""`qmodel bound`: exact maxima, lower bounds, and runs that reach them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from qmodel.ir.interpreter import Interpreter
from tests.cli.conftest import Command
from tests.support import program_of

SPEC = '''
"""A list that is not to grow past its limit."""

from qmodel.lang import (
    READ_ONCE, Int, Model, Param, Refutes, atomic_inc, invariant, measure, thread, try_cmpxchg,
)


class Length(Model):
    """Who finds room adds one."""

    cpus = Param(3, low=1, high=3, grows=True, doc="CPUs that add")
    limit = Param(1, low=1, high=2, doc="how many there may be")
    n = Int(0, high=3)

    @thread(each=cpus)
    def add(m, cpu):
        m.put()

    def put(m): ...

    @measure("length")
    def length(m):
        """How long the list gets."""
        return m.n

    @measure("room")
    def room(m):
        """How much room there is."""
        return m.limit - m.n

    @invariant("limit")
    def within_limit(m):
        """The list is never longer than its limit."""
        return m.n <= m.limit


class Checked(Length):
    """Look, then add: others add in between."""

    def put(m):
        if READ_ONCE(m.n) < m.limit:
            atomic_inc(m.n)

    expect = [Refutes("limit")]


class Exact(Length):
    """Add only where nobody else did."""

    def put(m):
        n = READ_ONCE(m.n)
        while n < m.limit:
            if try_cmpxchg(m.n, n, n + 1):
                break


class Careless(Length):
    """Add without looking, up to the end of what the variable holds and further."""

    def put(m):
        atomic_inc(m.n)
        atomic_inc(m.n)

    expect = [Refutes("limit", "domain")]
'''


def reached(path: Path, variant: str, name: str) -> int:
    """Return the greatest value of a measure over all states, found by nothing but the definition of a step."""
    program = program_of(path, variant)
    interpreter = Interpreter(program)
    (measure,) = (m for m in program.measures if m.name == name)
    seen = {interpreter.initial()}
    pending = list(seen)
    while pending:
        new = {o.state for _, _, o in interpreter.enabled(pending.pop()) if o.state is not None} - seen
        seen |= new
        pending += new
    return max(interpreter.evaluate(state, measure.value) for state in seen)


def test_maxima_of_each_variant(qmodel: Command, spec: Callable[[str], Path]) -> None:
    """Each variant has a row for each measure, with its maximum and what it is; an exact answer is a success."""
    done = qmodel("bound", spec(SPEC), "--variant", "checked", "--variant", "exact")
    assert 0 == done.code
    rows = [line for line in done.out.splitlines() if "How " in line]
    assert [
        "checked  length   3        How long the list gets.",
        "         room     1        How much room there is.",
        "exact    length   1        How long the list gets.",
        "         room     1        How much room there is.",
    ] == rows


def test_maximum_is_that_of_all_states(qmodel: Command, spec: Callable[[str], Path]) -> None:
    """The maximum is the greatest value over all reachable states."""
    path = spec(SPEC)
    done = qmodel("bound", path, "--variant", "checked", "--variant", "exact", "--measure", "length", "--json")
    found = {run["variant"]: run["measures"][0]["max"] for run in json.loads(done.out)["runs"]}
    assert {variant: reached(path, variant, "length") for variant in ("checked", "exact")} == found


def test_parameters_are_options(qmodel: Command, spec: Callable[[str], Path]) -> None:
    """The maximum is one of the given parameters."""
    done = qmodel("bound", spec(SPEC), "--variant", "exact", "--limit", "2", "--measure", "length")
    assert "exact    length   2        How long the list gets." in done.out.splitlines()


def test_witness_reaches_the_maximum(qmodel: Command, spec: Callable[[str], Path]) -> None:
    """The witness is a picture that ends where the maximum is reached, and says so."""
    done = qmodel("bound", spec(SPEC), "--variant", "checked", "--measure", "length")
    picture = done.out[done.out.index("length/checked:") :]
    assert 3 == picture.count("atomic_inc(&n)")
    assert "length = 3 is the maximum." in picture


def test_same_witness_is_drawn_once(qmodel: Command, spec: Callable[[str], Path]) -> None:
    """A run that reaches the maximum in two variants alike is drawn for the first and named for the second."""
    done = qmodel("bound", spec(SPEC), "--variant", "checked", "--variant", "exact", "--measure", "room")
    assert 1 == done.out.count("room = 1 is the maximum.")
    assert "length/exact: the run that checked has leads to room = 1 too." in done.out.splitlines()


def test_incomplete_search_gives_a_lower_bound(qmodel: Command, spec: Callable[[str], Path]) -> None:
    """Where a limit ends the search, each maximum is `at least`, and that is inconclusive."""
    done = qmodel("bound", spec(SPEC), "--variant", "checked", "--max-states", "1", "--measure", "room")
    assert 3 == done.code
    assert "checked  room     at least 1  How much room there is." in done.out.splitlines()
    assert "    not complete: the limit of 1 states is reached" in done.out.splitlines()
    assert "was reached; the search is not complete." in done.out


def test_error_of_the_language_leaves_a_lower_bound(qmodel: Command, spec: Callable[[str], Path]) -> None:
    """Where a path ends in an error nobody knows what comes after it: the maximum is `at least`."""
    done = qmodel("bound", spec(SPEC), "--variant", "careless", "--measure", "length", "--json")
    (run,) = json.loads(done.out)["runs"]
    assert 3 == done.code
    assert (False, 3) == (run["complete"], run["measures"][0]["max"])
    assert "end in an error of the language" in run["why"]


def test_only_the_measures_that_are_named(qmodel: Command, spec: Callable[[str], Path]) -> None:
    """--measure leaves the others out."""
    done = qmodel("bound", spec(SPEC), "--variant", "exact", "--measure", "room", "--json")
    assert ["room"] == [m["name"] for m in json.loads(done.out)["runs"][0]["measures"]]


def test_unknown_measure_is_answered_with_those_there_are(qmodel: Command, spec: Callable[[str], Path]) -> None:
    """A measure that does not exist is wrong usage; the nearest name is proposed."""
    done = qmodel("bound", spec(SPEC), "--measure", "lenght")
    assert (2, "") == (done.code, done.out)
    assert "qmodel: length has no measure `lenght`; did you mean `length`? there are: length, room\n" == done.err


def test_model_without_measures_is_told_what_to_add(qmodel: Command) -> None:
    """A model without a measure has no bound: the message says how to declare one."""
    done = qmodel("bound", "requeue")
    assert (2, "") == (done.code, done.out)
    assert done.err.startswith("qmodel: requeue has no measure; add one to the model:")
    assert '@measure("name")' in done.err


def test_parameters_stand_behind_the_model(qmodel: Command, spec: Callable[[str], Path]) -> None:
    """A parameter in front of the model is taken for it: the message says where it belongs."""
    done = qmodel("bound", "--cpus", "3", spec(SPEC))
    assert 2 == done.code
    assert "parameters come behind it: qmodel bound MODEL --cpus" in done.err
