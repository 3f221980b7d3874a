"""The command where all is well: exit codes, reports, parameters as options, counterexamples."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from qmodel.cli.main import cli
from qmodel.cli.specs import shipped_names
from qmodel.frontend.declarations import OPTIONS

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.cli.conftest import Command, Done

ROOT = Path(__file__).parents[2]

SPEC = '''
"""Two ways to count."""

from qmodel.lang import (
    Budget, Holds, Int, Kernel, Model, Param, Refutes, atomic_inc, choose, invariant, measure, quiescent, scenario,
    thread,
)


class Count(Model):
    """Everybody counts up to a number."""

    cpus = Param(2, low=1, high=3, grows=True, doc="CPUs that count")
    times = Param(1, low=0, high=3, doc="how often each counts")
    twice_a_turn = Param(False, doc="each counts two")
    drops = Budget(0, doc="how often a count is dropped")
    n = Int(0, high=20, doc="what is counted")
    told = Int(0, high=20)

    @thread(each=cpus)
    def work(m, cpu):
        for i in range(m.times):
            if not choose(m.drops, "dropped"):
                m.add()
                if m.twice_a_turn:
                    m.add()

    def add(m): ...

    @quiescent("sum")
    def nothing_is_lost(m):
        """Every count counts."""
        return m.n == m.told + m.cpus * m.times * (1 + m.twice_a_turn)

    @invariant("small")
    def small(m):
        """It stays small."""
        return m.n < 20

    @measure("count")
    def count(m):
        """How far it is counted."""
        return m.n

    @scenario("one", cpus=1)
    def one_is_counted(m):
        """Somebody has counted before."""
        m.n = 1
        m.told = 1


class Plain(Count):
    """By a read and a store."""

    kernel = Kernel("0123456789ab", since="6.1", until="6.2")

    def add(m):
        m.n += 1

    expect = [Refutes("sum"), Holds(cpus=1), Holds(scenario="one")]


class Atomic(Count):
    """In one step."""

    kernel = Kernel(since="6.2")

    def add(m):
        atomic_inc(m.n)

    expect = [Holds(cpus=3), Refutes("sum", drops=1)]
'''


@pytest.fixture
def count(spec: Callable[[str], Path]) -> Path:
    """Return the file of a small specification whose expectations are met."""
    return spec(SPEC)


_SCRIPT = """
import sys
from qmodel.cli.main import main
for words in sys.argv[1:]:
    try:
        main(words.split())
    except SystemExit as ended:
        print("exit", int(ended.code), flush=True)
"""


def in_one_process(commands: list[str], **environment: str) -> subprocess.CompletedProcess[str]:
    """Run commands one after another in a process of their own, at 80 columns."""
    environ = {**os.environ, "COLUMNS": "80", **environment}
    command = [sys.executable, "-c", _SCRIPT, *commands]
    return subprocess.run(command, cwd=ROOT, env=environ, check=False, capture_output=True, text=True)


def runs(done: Done) -> list[dict[str, Any]]:
    """Return what a JSON report says of each run."""
    found: list[dict[str, Any]] = json.loads(done.out)["runs"]
    return found


# --- exit codes -------------------------------------------------------------------------------------------------------


def test_everything_as_expected(qmodel: Command, count: Path) -> None:
    """A proof that is expected and a refutation that is expected are a success."""
    done = qmodel("check", count)
    assert (0, "") == (done.code, done.err)
    assert "2 runs: 1 holds, 1 refuted as expected" in done.out


def test_refutation_that_nobody_expects(qmodel: Command, count: Path) -> None:
    """A refuted variant that is expected to hold is exit code 1."""
    count.write_text(SPEC.replace('Refutes("sum"), Holds(cpus=1)', "Holds()"), encoding="utf-8")
    done = qmodel("check", count, "--variant", "plain")
    assert 1 == done.code
    assert "1 run: 1 refuted UNEXPECTEDLY" in done.out


def test_proof_that_nobody_expects(qmodel: Command, count: Path) -> None:
    """A variant that holds and is expected to be refuted is exit code 1."""
    count.write_text(SPEC.replace("[Holds(cpus=3), ", '[Refutes("small"), '), encoding="utf-8")
    done = qmodel("check", count, "--variant", "atomic")
    assert 1 == done.code
    assert "1 run: 1 holds UNEXPECTEDLY" in done.out


def test_refutation_of_which_nothing_is_said(qmodel: Command, count: Path) -> None:
    """A refutation where nothing is expected is exit code 1: somebody has to look at it."""
    done = qmodel("check", count, "--variant", "atomic", "--cpus", "1", "--drops", "1")
    assert 1 == done.code
    assert "1 run: 1 refuted where nothing is expected" in done.out


@pytest.mark.parametrize(
    ("limit", "why"),
    [
        (("--max-states", "5"), "the limit of 5 states is reached"),
        (("--timeout", "0"), "the limit of 0 seconds is reached"),
        (("--max-memory", "1M"), "the limit of 1 MiB of memory is reached"),
    ],
)
def test_limit_that_is_reached(qmodel: Command, count: Path, limit: tuple[str, str], why: str) -> None:
    """A search that a limit ends is inconclusive, exit code 3, and says which limit it was."""
    done = qmodel("check", count, "--variant", "atomic", "--cpus", "3", "--times", "3", *limit, "--json")
    (found,) = runs(done)
    assert 3 == done.code
    assert ("inconclusive", why, False, None) == (found["verdict"], found["why"], found["complete"], found["strength"])
    assert found["states"] >= 1


def test_limit_that_is_not_reached(qmodel: Command, count: Path) -> None:
    """Limits that are wide enough change nothing."""
    limits = ("--max-states", "9" * 30, "--timeout", "1e9", "--max-memory", "100T")
    done = qmodel("check", count, "--variant", "atomic", *limits, "--json")
    (found,) = runs(done)
    assert (0, "holds", True) == (done.code, found["verdict"], found["complete"])


def test_worst_exit_code_counts(qmodel: Command, count: Path) -> None:
    """A variant with an unexpected verdict is not hidden by one that is inconclusive."""
    count.write_text(SPEC.replace("[Holds(cpus=3), ", '[Refutes("small", cpus=1), '), encoding="utf-8")
    assert 1 == qmodel("check", count, "--cpus", "1", "--max-states", "7").code


# --- reports ----------------------------------------------------------------------------------------------------------


def test_json_is_as_the_schema_says(qmodel: Command, count: Path) -> None:
    """What `--json` prints is one document of the form that docs/ states."""
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads((ROOT / "docs" / "report.schema.json").read_text(encoding="utf-8"))
    for words in (("check", count), ("check", count, "--max-states", "5"), ("gate", count)):
        document = json.loads(qmodel(*words, "--json").out)
        jsonschema.validate(document, schema)
        assert 1 == document["schema"]


def test_format_json_is_json(qmodel: Command, count: Path) -> None:
    """`--json` is short for `--format json`."""
    short, long = qmodel("check", count, "--json").out, qmodel("check", count, "--format", "json").out
    assert without_seconds(short) == without_seconds(long)


def test_format_kernel_is_pictures_alone(qmodel: Command, count: Path) -> None:
    """`--format kernel` prints what is pasted into a commit message, and nothing for a variant that holds."""
    done = qmodel("check", count, "--format", "kernel")
    assert (0, True) == (done.code, done.out.startswith("count/plain:"))
    assert max(map(len, done.out.split("\n"))) <= 75
    assert "atomic" not in done.out


def test_full_shows_every_access(qmodel: Command) -> None:
    """`--full` leaves no access out of a picture."""
    words = ("check", "requeue", "--variant", "tail", "--scenario", "queued", "--format", "kernel")
    short, full = qmodel(*words).out, qmodel(*words, "--full").out
    assert (True, False) == ("left out; --full shows" in short, "left out" in full)
    assert len(short.split("\n")) < len(full.split("\n"))


@pytest.mark.parametrize("columns", [1, 20, 40, 1000])
def test_report_on_a_terminal_of_any_width(
    qmodel: Command, count: Path, monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    """However narrow the terminal is, there is a report; however wide it is, lines end at 100 columns."""
    monkeypatch.setattr("shutil.get_terminal_size", lambda _: os.terminal_size((columns, 24)))
    done = qmodel("check", count, "--variant", "atomic")
    assert (0, "1run:1holds") == (done.code, "".join(done.out.split())[-11:])
    assert max(map(len, done.out.split("\n"))) <= 100


def without_seconds(text: str) -> str:
    """Return a report without what differs from run to run: how long it took."""
    return re.sub(r'("seconds": |, )[\d.]+( s\b)?', r"\1", text)


def test_same_bytes_whatever_the_hash_seed(count: Path, tmp_path: Path) -> None:
    """A report is the same to the byte, seconds aside, however Python orders its sets; so are mistakes."""
    wrong = tmp_path / "wrong.py"
    mistakes = SPEC.replace("m.n += 1", "m.nn += 1; m.mm = 1; x = yy").replace("atomic_inc(m.n)", "atomic_inc(m.nnn)")
    wrong.write_text(mistakes, encoding="utf-8")
    commands = [
        f"check {count}",
        f"check {count} --json",
        f"check {count} --format kernel --full",
        f"gate {count} --json",
        "check requeue --variant head-each --json",
        "list",
        f"show {count}",
        "show requeue --thread net_tx_action",
        f"check {wrong}",
    ]
    first, second = (in_one_process(commands, PYTHONHASHSEED=seed) for seed in ("1", "2"))
    assert without_seconds(first.stdout) == without_seconds(second.stdout)
    assert first.stderr == second.stderr
    assert first.stdout.split("\n").count("exit 0") == len(commands) - 1
    assert "4 mistakes in the specification" in first.stderr


# --- parameters and variants ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ((), {"cpus": 2, "times": 1, "twice_a_turn": 0, "drops": 0}),
        (("--cpus", "3", "--times=0"), {"cpus": 3, "times": 0, "twice_a_turn": 0, "drops": 0}),
        (("--twice-a-turn",), {"cpus": 2, "times": 1, "twice_a_turn": 1, "drops": 0}),
        (("--twice-a-turn", "no"), {"cpus": 2, "times": 1, "twice_a_turn": 0, "drops": 0}),
        (("--twice_a_turn=YES", "--drops", "1"), {"cpus": 2, "times": 1, "twice_a_turn": 1, "drops": 1}),
        (("--twice-a-turn", "--no-twice-a-turn"), {"cpus": 2, "times": 1, "twice_a_turn": 0, "drops": 0}),
        (("--scenario", "one"), {"cpus": 1, "times": 1, "twice_a_turn": 0, "drops": 0}),
        (("--scenario", "one", "--cpus", "2"), {"cpus": 2, "times": 1, "twice_a_turn": 0, "drops": 0}),
    ],
)
def test_parameters_are_options(qmodel: Command, count: Path, words: tuple[str, ...], expected: dict[str, int]) -> None:
    """Every parameter is an option: a value behind it or after `=`, a truth value alone or with `no-`."""
    (found,) = runs(qmodel("check", count, "--variant", "atomic", *words, "--json"))
    assert expected == found["params"]


def test_packets_for_each_cpu(qmodel: Command) -> None:
    """`--packets` takes one number for all CPUs, or one for each, the last standing for the rest."""
    for text, expected in (("1", [1, 1]), ("1,0", [1, 0]), ("0,1", [0, 1])):
        (found,) = runs(qmodel("check", "requeue", "--variant", "head", "--packets", text, "--json"))
        assert expected == found["params"]["packets"]


def test_variants_are_chosen(qmodel: Command, count: Path) -> None:
    """`--variant` may be repeated; without it every variant is checked, in the order of the file."""
    every = [found["variant"] for found in runs(qmodel("check", count, "--json"))]
    both = [
        found["variant"]
        for found in runs(qmodel("check", count, "--variant", "atomic", "--variant", "plain", "--json"))
    ]
    one = [found["variant"] for found in runs(qmodel("check", count, "--variant", "atomic", "--json"))]
    assert (["plain", "atomic"], ["plain", "atomic"], ["atomic"]) == (every, both, one)


def test_no_parameter_can_be_called_like_an_option() -> None:
    """The names that the frontend refuses for parameters are the options of the commands that take parameters."""
    commands = [c for c in cli.commands.values() if c.context_settings.get("ignore_unknown_options")]
    options = {
        o.removeprefix("--").replace("-", "_") for c in commands for p in c.params for o in p.opts if o[:2] == "--"
    }
    assert {"check", "show"} <= {c.name for c in commands}
    assert options | {"help"} == OPTIONS


# --- list, show, gate, replay -----------------------------------------------------------------------------------------


def test_list_names_every_model(qmodel: Command) -> None:
    """`qmodel list` has every specification that comes with qmodel, its variants and their commits."""
    done = qmodel("list")
    models = [line.partition(":")[0] for line in done.out.split("\n") if line and line[0] != " "]
    assert (0, [name.replace("_", "-") for name in shipped_names()]) == (done.code, models)
    assert (
        "  tail            Every packet of the chain is put behind what was requeued before. [9540d977618c, "
        in done.out
    )


def test_list_of_a_file(qmodel: Command, count: Path) -> None:
    """A file is listed like what comes with qmodel."""
    expected = """\
count: Everybody counts up to a number.
  plain   By a read and a store. [0123456789ab, 6.1 to 6.2]
  atomic  In one step. [6.2]
"""
    assert expected == qmodel("list", count).out


def test_show(qmodel: Command, count: Path) -> None:
    """`qmodel show` has parameters with their defaults, scenarios, properties, and what is expected."""
    lines = qmodel("show", count).out.split("\n")
    assert "  --twice-a-turn   each counts two (default false)" in lines
    assert "  one: Somebody has counted before., cpus = 1" in lines
    assert any(line.startswith("properties: sum, small, ") for line in lines)
    assert "plain:  [0123456789ab, 6.1 to 6.2]" in lines
    assert "  refutes sum: cpus=2 memory=sc" in lines
    assert "  holds: cpus=1 scenario=one memory=sc" in lines


def test_show_the_steps_of_a_thread(qmodel: Command, count: Path) -> None:
    """With --thread the steps are listed, each with its line."""
    done = qmodel("show", count, "--variant", "plain", "--thread", "work")
    number = SPEC.split("\n").index("        m.n += 1") + 1
    assert (0, True) == (done.code, done.out.startswith("count plain: work\n"))
    assert str(number) in done.out


def test_gate(qmodel: Command, count: Path) -> None:
    """The gate runs every expectation, and succeeds where all are met."""
    done = qmodel("gate", count, "--json")
    found = [(r["variant"], r["scenario"], r["params"]["cpus"], r["verdict"], r["as_expected"]) for r in runs(done)]
    expected = [
        ("plain", "default", 2, "refuted", True),
        ("plain", "default", 1, "holds", True),
        ("plain", "one", 1, "holds", True),
        ("atomic", "default", 3, "holds", True),
        ("atomic", "default", 2, "refuted", True),
    ]
    assert (0, expected) == (done.code, found)


def test_gate_with_a_wrong_expectation(qmodel: Command, count: Path) -> None:
    """One expectation that is not met is exit code 1, and is named."""
    count.write_text(SPEC.replace("Holds(cpus=3)", 'Refutes("small", cpus=3)'), encoding="utf-8")
    done = qmodel("gate", count)
    assert 1 == done.code
    assert "1 holds UNEXPECTEDLY" in done.out


@pytest.fixture
def stored(qmodel: Command, count: Path, tmp_path: Path) -> Path:
    """Return a counterexample that the gate has written."""
    folder = tmp_path / "counterexamples"
    done = qmodel("gate", count, "--update", "--counterexamples", folder)
    assert 0 == done.code
    names = ["atomic.drops-1.sum.json", "atomic.drops-1.sum.txt", "plain.sum.json", "plain.sum.txt"]
    assert names == sorted(path.name for path in (folder / "count").iterdir())
    return folder / "count" / "plain.sum.json"


def test_replay_of_what_the_gate_writes(qmodel: Command, stored: Path) -> None:
    """Every refuted expectation has its steps and its picture, and the steps can be taken again."""
    steps = len(json.loads(stored.read_text(encoding="utf-8"))["moves"])
    done = qmodel("replay", stored)
    assert (0, "") == (done.code, done.err)
    assert f"{stored}: count plain: sum is violated after {steps} steps.\n" in done.out
    assert "This violates sum" in stored.with_suffix(".txt").read_text(encoding="utf-8").replace("\n", " ")


def test_replay_walks_by_keys(qmodel: Command, stored: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With --step a key goes on, b goes back, and q ends the walk."""
    keys = iter("  b q")
    monkeypatch.setattr("click.getchar", lambda: next(keys))
    done = qmodel("replay", stored, "--step")
    assert (0, []) == (done.code, list(keys))
    assert "sum is violated after" in done.out
