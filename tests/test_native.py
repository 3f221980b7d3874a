"""The native engine against the python engine and the interpreter, and what it refuses."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pytest

from qmodel.engines.layout import Layout
from qmodel.engines.native import build, library
from qmodel.engines.native.engine import UnsuitableError, available, run, source
from qmodel.engines.options import Options
from qmodel.engines.python import engine as python
from qmodel.frontend.diagnostics import SpecError
from qmodel.ir.expr import OPERATORS, Apply, Const, Domain, Expr, Local, Lookup, Read
from qmodel.ir.graph import GraphBuilder
from qmodel.ir.interpreter import Interpreter, SetupError
from qmodel.ir.program import (
    Assign,
    Choose,
    Fail,
    LocalVariable,
    Nop,
    Packets,
    Program,
    Property,
    Site,
    Template,
    Thread,
    Variable,
)
from qmodel.passes.memory import UnknownMemoryError
from qmodel.result import Verdict
from tests.random_specs import specification
from tests.support import CLASSICS, program_of, refuted, trace_of, variants_of

if TYPE_CHECKING:
    from qmodel.result import Outcome

pytestmark = pytest.mark.skipif(not available(), reason="there is no C compiler")

ROOT = Path(__file__).parents[1]
REQUEUE = ROOT / "specs" / "requeue.py"
REQUEUE_CASES = [(v.name, s) for v in variants_of(REQUEUE) for s in v.scenarios]
CLASSIC_CASES = [
    (path.stem, v.name, scenario)
    for path in sorted(CLASSICS.glob("*.py"))
    if path.stem != "__init__"
    for v in variants_of(path)
    for scenario in v.scenarios
]
SITE = Site("made.py", 1, 0, 4, "f", "f()")
BITS = 3  # of the number of a packet, in programs that are made here


@pytest.fixture(scope="module", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A cache of libraries for these tests alone."""
    path = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(path))
        yield path


def plain(outcome: Outcome) -> Outcome:
    """Return an outcome without what engines differ in: their name, the time and the memory they take."""
    return replace(outcome, engine="", seconds=0.0, bytes_per_state=None)


def assert_same(program: Program, options: Options) -> None:
    """Compare the native engine with the python engine: all figures, verdicts and traces."""
    assert plain(python.run(program, options)) == plain(run(program, options))


# --- as the python engine ---------------------------------------------------------------------------------------------


def test_same_as_python_on_a_refuted_variant() -> None:
    """A refuted variant of requeue has the states, transitions, depth, verdicts and traces of the python engine."""
    program = program_of(REQUEUE, "tail")
    assert_same(program, Options())
    assert {"order"} == refuted(run(program, Options()))


@pytest.mark.slow
@pytest.mark.ci
@pytest.mark.parametrize(("variant", "scenario"), REQUEUE_CASES)
def test_same_as_python_on_requeue(variant: str, scenario: str) -> None:
    """Every variant of requeue in every scenario comes out as it does from the python engine."""
    assert_same(program_of(REQUEUE, variant, scenario), Options())


@pytest.mark.parametrize(("name", "variant", "scenario"), CLASSIC_CASES)
def test_same_as_python_on_classics(name: str, variant: str, scenario: str) -> None:
    """Classic programs (deadlocks, softirqs, measures, arrays of locks) come out as they do from the python engine."""
    assert_same(program_of(CLASSICS / f"{name}.py", variant, scenario), Options())


@pytest.mark.slow
@pytest.mark.ci
@pytest.mark.parametrize("memory", ["tso", "weak"])
@pytest.mark.parametrize("variant", ["tail", "head"])
def test_same_as_python_on_store_buffers(variant: str, memory: str) -> None:
    """With store buffers, whose commits are no context switches, both engines find the same too."""
    assert_same(program_of(REQUEUE, variant, "queued", memory), Options())


@pytest.mark.parametrize("limit", [1, 1000, 3000, 7000])
def test_same_as_python_at_a_limit_of_states(limit: int) -> None:
    """A limit of states ends both engines at the same state."""
    assert_same(program_of(REQUEUE, "tail"), Options(max_states=limit))


def test_same_as_python_at_the_first_violation() -> None:
    """With stop_first both engines end at the same depth."""
    program = program_of(REQUEUE, "single-pointer")
    assert_same(program, Options(stop_first=True))
    assert run(program, Options(stop_first=True)).states < run(program, Options()).states


def random_program(seed: int, memory: str, path: Path) -> Program:
    """Return a random program; skip the test where there is none for a seed and a memory model."""
    path.write_text(specification(Random(seed)), encoding="utf-8")  # noqa: S311  not for secrets
    try:
        program = program_of(path, memory=memory)
        Interpreter(program).initial()
    except (SetupError, SpecError, UnknownMemoryError) as error:
        pytest.skip(f"no program: {str(error).splitlines()[0]}")
    return program


@pytest.mark.parametrize("seed", range(10))
def test_same_as_python_on_random_specs(seed: int, tmp_path: Path) -> None:
    """Random specifications come out as they do from the python engine."""
    assert_same(random_program(seed, "sc", tmp_path / "spec.py"), Options(max_states=8000))


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "memory"), list(product(range(100, 160), ["sc", "tso", "weak"])))
def test_same_as_python_on_more_random_specs(seed: int, memory: str, tmp_path: Path) -> None:
    """More random specifications come out as they do from the python engine, with store buffers too."""
    assert_same(random_program(seed, memory, tmp_path / "spec.py"), Options(max_states=8000))


# --- workers ----------------------------------------------------------------------------------------------------------

COUNTERS = """\
from qmodel.lang import Int, Model, Param, PerCpu, READ_ONCE, WRITE_ONCE, invariant, measure, thread


class Counters(Model):
    \"\"\"Threads that count by themselves: layers are wide.\"\"\"

    counters = Param(6, low=4)

    counts = PerCpu(Int(0, high=4))
    sum = Int(0, high=24)

    @thread(each=counters)
    def counter(m, cpu):
        for n in range(3):
            WRITE_ONCE(m.counts[cpu], n + 1)
        WRITE_ONCE(m.sum, READ_ONCE(m.sum) + 1)

    @invariant("ahead")
    def nobody_is_ahead(m):
        return m.counts[3] < 3 or m.counts[2] < 3 or m.counts[0] > 0

    @measure("most")
    def most(m):
        return m.sum + m.counts[2]
"""


@pytest.fixture(scope="module")
def counters(tmp_path_factory: pytest.TempPathFactory) -> Program:
    """A program with layers of many thousand states, a violation and a measure."""
    path = tmp_path_factory.mktemp("counters") / "counters.py"
    path.write_text(COUNTERS, encoding="utf-8")
    return program_of(path)


@pytest.mark.parametrize("workers", [2, 3, 5])
@pytest.mark.parametrize("options", [Options(), Options(max_states=9000), Options(stop_first=True)], ids=str)
def test_workers_change_nothing(counters: Program, workers: int, options: Options) -> None:
    """With any number of workers figures, verdicts, traces and steps taken are those of one worker."""
    assert plain(run(counters, options)) == plain(run(counters, options, workers))


def test_wide_layers_are_as_in_python(tmp_path: Path) -> None:
    """What workers find together in layers of some thousand states is what the python engine finds."""
    path = tmp_path / "counters.py"
    path.write_text(COUNTERS, encoding="utf-8")
    program = program_of(path, counters=5)
    for options in (Options(), Options(max_states=9000)):
        assert plain(python.run(program, options)) == plain(run(program, options, workers=3))


# --- programs that are made here --------------------------------------------------------------------------------------


def made(
    graph: GraphBuilder,
    variables: dict[str, Variable],
    locals_: dict[str, Domain] | None = None,
    properties: tuple[Property, ...] = (),
    packets: int = 0,
) -> Program:
    """Return a program with one thread."""
    nodes = graph.finish(SITE)
    known = {name: LocalVariable(domain, declared=False, site=SITE) for name, domain in (locals_ or {}).items()}
    setup = GraphBuilder(SITE).finish(SITE)
    return Program(
        model="made",
        variant="here",
        variables=variables,
        templates={"f": Template("f", "task", nodes, known, "", SITE)},
        threads=(Thread(0, "f", "task", 0),),
        setup=Template("setup", "task", setup, {}, "", SITE),
        properties=properties,
        measures=(),
        packets=Packets(tuple(f"p{i}" for i in range(packets)), (0,) * packets, tuple(range(packets))),
        memory="sc",
        builtin=(("deadlock", ""), ("endless", ""), ("check", "")),
    )


def variable(name: str, domain: Domain, *init: int, size: int | None = None) -> Variable:
    """Return a shared variable."""
    return Variable(name, domain, size, init or (0,) * (size or 1))


END = Property("end", "quiescent", Const(0), (), "a run has no end", SITE)
"""Refuted by a whole run, so that every state on it is compared with the interpreter's."""


def arguments(op: str, random: Random) -> tuple[int, ...]:
    """Return values that an operator can be applied to."""
    small = [random.randint(-40, 40) for _ in range(3)]
    queue = sum(random.randint(1, 6) << BITS * i for i in range(random.randint(0, 4)))
    packet = random.randint(1, 6)
    match op:
        case "//" | "%":
            return small[0], small[1] or 7
        case "<<" | ">>":
            return small[0], abs(small[1]) % 9
        case "len" | "head" | "rest" | "reverse":
            return (queue,)
        case "push":
            return queue, packet
        case "append":
            return queue, random.choice((packet, sum(random.randint(1, 6) << BITS * i for i in range(3)), 0))
        case "item":
            return queue, random.randint(0, 9)
        case "in":
            return random.randint(0, 6), queue
        case "not":
            return (random.choice((small[0], 0)),)
        case "and" | "or" | "min" | "max" | "if":
            return tuple(random.choice((value, 0)) for value in small)
        case _:
            return small[0], random.choice((small[1], small[0]))


@pytest.mark.parametrize("reach", [1 << 30, 1 << 61], ids=["narrow", "wide"])
def test_operators(reach: int) -> None:
    """Every operator means in C what the interpreter says, whether values surely fit 64 bits or are watched."""
    random = Random(1)  # noqa: S311  not for secrets
    graph = GraphBuilder(SITE)
    graph.emit(Assign(Local("b"), Const(0)), SITE)
    for op in OPERATORS:
        for _ in range(8):
            values = arguments(op, random)
            operands: tuple[Expr, ...] = (Read("a"), Local("b"), Read("c", Const(1)))
            graph.emit(Assign(Read("a"), Const(values[0])), SITE, boundary=True)
            targets: tuple[Local | Read, ...] = (Local("b"), Read("c", Const(1)))
            for target, value in zip(targets, values[1:], strict=False):
                graph.emit(Assign(target, Const(value)), SITE)
            result = Apply(op, operands[: len(values)])
            graph.emit(Assign(Read("r"), result), SITE)
            graph.emit(Assign(Read("taken"), Apply("if", (result, Const(7), Const(5)))), SITE)
            graph.emit(Assign(Read("sum"), Apply("+", (Apply("*", (result, Const(3))), Read("taken")))), SITE)
    low = 0 if reach == 1 << 30 else -reach
    domain = Domain("int", -64, reach)
    variables = {
        "a": variable("a", domain),
        "c": variable("c", domain, size=2),
        "r": variable("r", Domain("int", -(1 << 60), 1 << 61)),
        "taken": variable("taken", Domain("int", 0, 7)),
        "sum": variable("sum", Domain("int", -(1 << 61), 1 << 61)),
    }
    program = made(graph, variables, {"b": Domain("int", min(low, -64), reach)}, (END,), packets=6)
    assert 8 * len(OPERATORS) == len(trace_of(run(program, Options()), "end").steps)


def test_a_value_beyond_64_bits_is_refused() -> None:
    """Where a value leaves 64 bits the engine gives up and names the line: it never wraps."""
    graph = GraphBuilder(SITE)
    square: Expr = Apply("*", (Read("a"), Read("a")))
    graph.emit(Assign(Read("r"), Apply("%", (Apply("*", (square, square)), Const(5)))), SITE, boundary=True)
    variables = {
        "a": variable("a", Domain("int", 0, 1 << 40), 1 << 40),
        "r": variable("r", Domain("int", 0, 4)),
    }
    with pytest.raises(UnsuitableError, match=r"^made\.py:1: a value leaves its bounds$"):
        run(made(graph, variables), Options())


def test_an_index_out_of_an_array_is_refused() -> None:
    """An index that leaves its array is no access to what stands beside it."""
    graph = GraphBuilder(SITE)
    graph.emit(Assign(Read("a", Read("i")), Const(1)), SITE, boundary=True)
    variables = {"i": variable("i", Domain("int", 0, 3), 3), "a": variable("a", Domain("int", 0, 3), size=2)}
    with pytest.raises(UnsuitableError, match="leaves its bounds"):
        run(made(graph, variables), Options())


def test_a_wide_list_is_refused() -> None:
    """A list that does not fit into a word is refused with its length, before anything is compiled."""
    graph = GraphBuilder(SITE)
    graph.emit(Assign(Read("q"), Const(0)), SITE, boundary=True)
    domain = Domain("queue", 0, (1 << 5 * 16) - 1)
    with pytest.raises(UnsuitableError, match="`q` is a list of 16 packets"):
        run(made(graph, {"q": variable("q", domain)}, packets=16), Options())


def test_arrays_of_several_words() -> None:
    """An array that is longer than a word is read and written at a computed index, as are values below 0."""
    graph = GraphBuilder(SITE)
    for index in range(9):
        graph.emit(Assign(Read("a", Const(index)), Const(index - 20)), SITE, boundary=True)
    graph.emit(Assign(Local("i"), Const(0)), SITE, boundary=True)
    head = graph.emit(Nop(), SITE, boundary=True)
    graph.ends, out = graph.branch(Apply("<", (Local("i"), Const(9))), SITE)
    last: Expr = Apply("-", (Const(8), Local("i")))
    graph.emit(Assign(Read("b", last), Apply("+", (Read("a", Local("i")), Read("b", last)))), SITE)
    graph.emit(Assign(Local("i"), Apply("+", (Local("i"), Const(1)))), SITE)
    graph.link(graph.take(), head)
    graph.ends = out
    wide = Domain("int", -1000, 1_000_000)
    variables = {"a": variable("a", wide, size=9), "b": variable("b", wide, *range(9), size=9)}
    program = made(graph, variables, {"i": Domain("int", 0, 9)}, (END,))
    assert 20 == len(trace_of(run(program, Options()), "end").steps)


def looping(bound: Expr, *, choosing: bool) -> Program:
    """Return a program with a loop within one step, which a choice may leave earlier."""
    graph = GraphBuilder(SITE)
    graph.emit(Assign(Local("i"), Const(0)), SITE, boundary=True)
    head = graph.emit(Nop(), SITE)
    graph.ends, out = graph.branch(Apply("<", (Local("i"), bound)), SITE)
    graph.emit(Assign(Local("i"), Apply("%", (Apply("+", (Local("i"), Const(1))), Const(5)))), SITE)
    if choosing:
        graph.emit(Choose("c", 3), SITE)
        leaving, graph.ends = graph.branch(Apply("==", (Local("c"), Const(2))), SITE)
        out += leaving
    graph.link(graph.take(), head)
    graph.ends = out
    found: Expr = Lookup((3, 1, 4, 1, 5), Local("i"))
    graph.emit(Fail(Apply("==", (found, Const(4))), "check", ("found",), fatal=False), SITE)
    graph.emit(Assign(Read("r"), found), SITE)
    locals_ = {"i": Domain("int", 0, 4), "c": Domain("int", 0, 2)}
    return made(graph, {"r": variable("r", Domain("int", 0, 9))}, locals_, (END,))


def test_a_loop_within_a_step() -> None:
    """A loop that touches no shared memory is one step."""
    assert_same(looping(Const(4), choosing=False), Options())
    assert 2 == run(looping(Const(4), choosing=False), Options()).states


def test_a_loop_without_end() -> None:
    """A step that does not end is reported as endless."""
    outcome = run(looping(Const(9), choosing=False), Options())
    assert ({"endless"}, 1, 0) == (refuted(outcome), outcome.states, outcome.transitions)


def test_choices_in_a_loop() -> None:
    """Each choice in a loop within a step is made anew, in the interpreter's order."""
    program = looping(Const(4), choosing=True)
    interpreter = Interpreter(program)
    found = interpreter.outcomes(interpreter.initial(), 0)
    outcome = run(program, Options())
    assert (len(found), 1 + len({o.state for o in found})) == (outcome.transitions, outcome.states)
    assert_same(program, Options())


def test_fields_do_not_cross_words() -> None:
    """Cut into words no field crosses from one into the next, and states are packed and unpacked without loss."""
    for variant, memory in product(["tail", "head"], ["sc", "weak"]):
        program = program_of(REQUEUE, variant, memory=memory)
        layout = Layout(program, 64)
        fields = [f.element(i) for f in layout.shared.values() for i in range(f.size)]
        fields += [*layout.counters, *(f for own in layout.locals for f in own.values())]
        assert [] == [f for f in fields if f.width and f.shift // 64 != (f.shift + f.width - 1) // 64]
        interpreter = Interpreter(program)
        state = interpreter.initial()
        for _ in range(40):
            assert state == layout.unpack(layout.pack(state))
            state = [o.state for _, _, o in interpreter.enabled(state) if o.state is not None][-1]


# --- the C ------------------------------------------------------------------------------------------------------------


def test_source_quotes_the_specification() -> None:
    """The model unit has a function for each step, under the line of the specification that it stands for."""
    text = source(program_of(CLASSICS / "abba.py", "abba"))
    quoted = r"/\* \S*abba\.py:\d+: lock_both\(\): spin_lock\(m\.b_lock\) \*/\nstatic unsigned b_to_a_1_0\("
    assert 1 == len(re.findall(quoted, text))


@pytest.mark.parametrize("name", ["abba", "philosophers", "softirq_lock", "treiber"])
def test_source_compiles_without_warnings(name: str, tmp_path: Path) -> None:
    """What is generated, and what comes with the package, is C that a compiler has nothing to say about."""
    text = source(program_of(CLASSICS / f"{name}.py", variants_of(CLASSICS / f"{name}.py")[0].name))
    unit = tmp_path / "unit.c"
    unit.write_text(text, encoding="utf-8")
    here = Path(build.__file__).parent
    strict = ["-Wall", "-Wextra", "-Wno-unused-parameter", "-Wno-sign-compare", "-fsyntax-only", "-I", str(here)]
    strict.append("-Wno-unused-but-set-variable")  # what only ways that cannot be taken would use
    for command in (["-std=c11", str(unit)], ["-DQM_WORDS=3", str(here / "engine.c")]):
        done = subprocess.run([build.compiler() or "", *strict, *command], check=False, capture_output=True, text=True)
        assert "" == done.stderr


NAMES = """\
from qmodel.lang import Int, Model, READ_ONCE, WRITE_ONCE, invariant, thread


class Names(Model):
    \"\"\"What C calls otherwise: a comment ends with */ there.\"\"\"

    struct = Int(0, high=3)
    w = Int(0, high=3)
    größe = Int(1, high=3)

    @thread
    def expand(m):
        int_ = READ_ONCE(m.struct)  # */ no end
        register = int_ + 1
        t = register + READ_ONCE(m.w)
        q_len = READ_ONCE(m.größe)
        NULL = t + q_len
        WRITE_ONCE(m.struct, NULL)

    @invariant("register")
    def register(m):
        return m.struct < 2
"""


def test_names_that_c_keeps_for_itself(tmp_path: Path) -> None:
    """A specification may use words that mean something else in C."""
    path = tmp_path / "names.py"
    path.write_text(NAMES, encoding="utf-8")
    assert {"register"} == refuted(run(program_of(path), Options()))


# --- limits -----------------------------------------------------------------------------------------------------------


def test_limit_of_memory(counters: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    """A limit of memory ends a search as inconclusive; a violation that was found before keeps its trace."""
    monkeypatch.setattr("qmodel.engines.native.engine.LEAST", 1 << 19)
    outcome = run(counters, Options(max_memory=1 << 20))
    assert (False, "the limit of 1 MiB of memory is reached") == (outcome.complete, outcome.why)
    assert Verdict.HOLDS not in {p.verdict for p in outcome.properties}


def test_no_memory_at_all(counters: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    """A search that cannot even begin is inconclusive."""
    monkeypatch.setattr("qmodel.engines.native.engine.LEAST", 1)
    outcome = run(counters, Options(max_memory=1))
    assert (Verdict.INCONCLUSIVE, "the memory of the machine is used up") == (outcome.verdict, outcome.why)


def test_limit_of_time(counters: Program) -> None:
    """A limit of time ends a search as inconclusive."""
    outcome = run(counters, Options(timeout=0.0))
    assert (False, "the limit of 0 seconds is reached") == (outcome.complete, outcome.why)


def test_interrupt(counters: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C ends a search between two slices, with what was learnt so far."""
    monkeypatch.setattr("qmodel.engines.native.engine.SLICE", 1)
    search, calls = library.Search.search, []

    def interrupted(self: library.Search, *args: int, stop_first: bool) -> library.Status:
        calls.append(args)
        if len(calls) == 10:
            raise KeyboardInterrupt
        return search(self, *args, stop_first=stop_first)

    monkeypatch.setattr(library.Search, "search", interrupted)
    outcome = run(counters, Options())
    assert (True, False, "interrupted") == (outcome.interrupted, outcome.complete, outcome.why)
    assert 9 == outcome.depth
