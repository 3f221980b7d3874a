"""The command with what nobody can carry out: one message, the right exit code, and never a traceback."""

from __future__ import annotations

import io
import json
import os
import pty
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from qmodel.cli.progress import ProgressLine
from qmodel.cli.running import run as search
from qmodel.engines.options import Progress

if TYPE_CHECKING:
    from collections.abc import Callable

    from qmodel.cli.running import Configuration
    from qmodel.engines.options import Options
    from qmodel.result import Run
    from tests.cli.conftest import Command

ROOT = Path(__file__).parents[2]

SPEC = '''
"""Threads that count."""

from qmodel.lang import Int, Model, Param, PerCpu, Refutes, quiescent, thread


class Count(Model):
    """Everybody counts for itself."""

    cpus = Param(2, low=1, high=8, doc="CPUs that count")
    times = Param(2, doc="how often each counts")
    n = PerCpu(Int(0, high=100))

    @thread(each=cpus)
    def work(m, cpu):
        for i in range(m.times):
            m.n[cpu] = i
        m.end(cpu)

    def end(m, cpu): ...

    @quiescent("end")
    def everybody_ends(m):
        """The first one ends at 7."""
        return m.n[0] == 7


class Slow(Count):
    """Ends elsewhere — on purpose."""

    def end(m, cpu):
        m.n[cpu] = 8

    expect = [Refutes("end")]


class Right(Count):
    """Ends where it must."""

    def end(m, cpu):
        m.n[cpu] = 7
'''


@pytest.fixture
def count(spec: Callable[[str], Path]) -> Path:
    """Return the file of a specification that can be made as large as one likes."""
    return spec(SPEC)


# --- words ------------------------------------------------------------------------------------------------------------

WRONG_WORDS = {
    "unknown command": ("chekc requeue", "No such command 'chekc'"),
    "no model": ("check", "Missing argument 'MODEL'"),
    "unknown model": ("check nosuch", "there is no model `nosuch`; there are: bad_txq, "),
    "misspelt model": ("check reqeue", "did you mean `requeue`?"),
    "model with an ending": ("check requeue.txt", "did you mean `requeue`?"),
    "file that is not there": (
        "check ./nosuch.py",
        "./nosuch.py does not exist; give the path of a specification file",
    ),
    "folder": ("check .", ". is a folder; give the path"),
    "folder by path": ("check /", "/ is a folder; give the path"),
    "device": ("check /dev/null", "/dev/null is no regular file"),
    "option in place of the model": ("check --cpus 2 requeue", "parameters come behind it"),
    "unknown variant": ("check requeue --variant tial", "no variant `tial`; did you mean `tail`? there are: single-"),
    "variant that is not named": ("check requeue --variant", "Option '--variant' requires an argument"),
    "unknown scenario": ("check requeue --scenario x", "no scenario `x`; it has: default, queued, requeued"),
    "unknown memory model": ("check requeue --memory pso", "'pso' is not one of 'sc', 'tso', 'weak'"),
    "unknown engine": ("check requeue --engine x", "'x' is not one of 'auto', 'python'"),
    "unknown format": ("check requeue --format yaml", "'yaml' is not one of 'text', 'kernel', 'json'"),
    "two formats": ("check requeue --json --format kernel", "choose one"),
    "unknown option": (
        "check requeue --cpu 2",
        "unknown option --cpu; did you mean `--cpus`?; parameters of this model:",
    ),
    "unknown option of the command": ("check requeue --max-state=2", "did you mean `--max-states`?"),
    "unknown letter": ("check requeue -x", "unexpected argument `-x`; parameters are options: --cpus,"),
    "one word too many": ("check requeue tail", "unexpected argument `tail`; parameters are options: --cpus,"),
    "no value": ("check requeue --cpus", "--cpus needs a value: a number"),
    "empty value": ("check requeue --cpus=", "--cpus : this is not a number"),
    "fraction": ("check requeue --cpus 2.5", "--cpus 2.5: this is not a number"),
    "word": ("check requeue --cpus two", "--cpus two: this is not a number"),
    "number as Python has it": ("check requeue --busy 1_0", "--busy 1_0: this is not a number"),
    "two numbers for one": ("check requeue --cpus 2,2", "--cpus 2,2: this is not a number"),
    "too small": ("check requeue --cpus 0", "`cpus` is at least 1 and at most 8, not 0"),
    "negative": ("check requeue --busy -1", "`busy` is at least 0, not -1"),
    "too great": ("check requeue --cpus 99", "`cpus` is at least 1 and at most 8, not 99"),
    "too many packets": ("check requeue --packets 1,2,3", "`packets` has 3 numbers, one a flow, and there are 2 flows"),
    "packets without a number": (
        "check requeue --packets 1,",
        "--packets 1,: this is not a number, or one for each CPU",
    ),
    "negative packets": ("check requeue --packets 1,-1", "`packets` is at least 0, not -1"),
    "more packets than a model can have": ("check requeue --packets 1000000000", "at most 250 packets"),
    "number that is too long": (f"check requeue --packets {'9' * 5000}", "this is not a number"),
    "truth value": ("check requeue --stop=maybe", "--stop maybe: this is not true or false"),
    "truth value that is 2": ("check requeue --stop=2", "`stop` is at least 0 and at most 1, not 2"),
    "value of a negation": ("check requeue --no-stop=1", "--no-stop takes no value"),
    "no states": ("check requeue --max-states 0", "0 is not in the range x>=1"),
    "states that are no number": ("check requeue --max-states x", "'x' is not a valid integer"),
    "negative time": ("check requeue --timeout -1", "-1.0 is not in the range x>=0"),
    "time that is no number": ("check requeue --timeout nan", "nan is no number of seconds"),
    "unknown unit": ("check requeue --max-memory 5X", "5X is no size; write 512M or 4G"),
    "size that is too long": (f"check requeue --max-memory {'9' * 400}T", "is no size; write 512M or 4G"),
    "scenario of show": ("show requeue --scenario x", "no scenario `x`; it has: default, queued, requeued"),
    "thread of show": (
        "show requeue --thread dev_queue",
        "no thread `dev_queue` runs here; did you mean `dev_queue_xmit`?",
    ),
    "model of show": ("show nosuch", "there is no model `nosuch`"),
    "model of list": ("list requeue nosuch", "there is no model `nosuch`"),
    "model of gate": ("gate requeue nosuch", "there is no model `nosuch`"),
    "size of bench": ("bench --largest 0", "0 is not in the range 1<=x<=4"),
    "file of replay": ("replay nosuch.json", "nosuch.json is no file; `qmodel gate --update` writes"),
    "folder of replay": ("replay .", ". is no file; `qmodel gate --update` writes"),
}


@pytest.mark.parametrize("name", WRONG_WORDS)
def test_wrong_words(qmodel: Command, name: str) -> None:
    """Words that mean nothing are answered with what could be meant, on standard error, and exit code 2."""
    words, message = WRONG_WORDS[name]
    done = qmodel(*words.split(" "))
    assert (2, "") == (done.code, done.out)
    assert message in done.err
    assert "Traceback" not in done.err


def test_no_words(qmodel: Command) -> None:
    """The command alone says what it can do."""
    done = qmodel()
    assert 2 == done.code
    assert "Commands:" in done.err


# --- files ------------------------------------------------------------------------------------------------------------


def test_mistakes_are_counted(qmodel: Command, count: Path) -> None:
    """Mistakes in a specification are printed with their number, each once although two variants have it."""
    count.write_text(SPEC.replace("m.n[cpu] = i", "m.n[cpu] = j; spin_lok()"), encoding="utf-8")
    done = qmodel("check", count)
    assert (2, "") == (done.code, done.out)
    assert 2 == done.err.count(": error: ")
    assert done.err.endswith("\n\n2 mistakes in the specification\n")


def test_mistakes_of_every_variant(qmodel: Command, count: Path) -> None:
    """A mistake in the last variant is told before the first one is searched."""
    text = SPEC.replace("m.n[cpu] = 8", "m.n[cpu] = one").replace("m.n[cpu] = 7", "m.n[cpu] = two")
    count.write_text(text, encoding="utf-8")
    for command in ("check", "gate"):
        done = qmodel(command, count)
        assert (2, "") == (done.code, done.out)
        assert "unknown name `one`" in done.err
        assert "unknown name `two`" in done.err


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_file_that_cannot_be_read(qmodel: Command, count: Path) -> None:
    """A file without the right to read it is named."""
    count.chmod(0)
    done = qmodel("check", count)
    assert (2, f"qmodel: {count} cannot be read: Permission denied\n") == (done.code, done.err)


def test_file_that_fails_to_be_read(qmodel: Command, count: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the system says of a file is told in one line."""

    def fail(*_: object, **__: object) -> str:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_text", fail)
    done = qmodel("check", count)
    assert (2, f"qmodel: {count} cannot be read: Permission denied\n") == (done.code, done.err)


def test_name_that_is_too_long(qmodel: Command) -> None:
    """A name that no file can have is a wrong name."""
    done = qmodel("check", f"./{'x' * 5000}.py")
    assert (2, True) == (done.code, done.err.endswith("File name too long\n"))


def test_scenario_that_is_wrong_from_the_start(qmodel: Command, count: Path) -> None:
    """A scenario that violates the language before anything runs is a mistake of the specification."""
    text = SPEC.replace("thread\n\n", "thread, scenario\n\n").replace(
        "    @quiescent", '    @scenario("high")\n    def high(m):\n        m.n[0] = 101\n\n    @quiescent'
    )
    count.write_text(text, encoding="utf-8")
    done = qmodel("check", count, "--scenario", "high")
    line = text.split("\n").index("        m.n[0] = 101") + 1
    assert (2, "") == (done.code, done.out)
    assert f"qmodel: {count}:{line}: domain: n becomes 101, outside 0 to 100; that is in high()" in done.err


def test_counterexamples_that_cannot_be_written(qmodel: Command, count: Path) -> None:
    """Where no file can be written the report is printed all the same."""
    done = qmodel("gate", count, "--update", "--counterexamples", count / "below")
    assert 2 == done.code
    assert "1 refuted as expected" in done.out
    assert "Not a directory" in done.err


def test_name_in_another_encoding(count: Path) -> None:
    """A file whose name is no text is read, and its name is printed as far as it can be."""
    path = count.with_name(os.fsdecode(b"\xff.py"))
    path.write_text(SPEC, encoding="utf-8")
    done = subprocess.run([sys.executable, "-m", "qmodel", "check", path], cwd=ROOT, check=False, capture_output=True)
    assert (0, b"") == (done.returncode, done.stderr)


# --- stored counterexamples -------------------------------------------------------------------------------------------


@pytest.fixture
def stored(qmodel: Command, count: Path, tmp_path: Path) -> Path:
    """Return a counterexample that can be replayed."""
    qmodel("gate", count, "--update", "--counterexamples", tmp_path)
    return tmp_path / "count" / "slow.end.json"


WRONG_FILES: dict[str, tuple[bytes, str]] = {
    "nothing": (b"", "it is not JSON"),
    "no JSON": (b"{", "it is not JSON"),
    "no text": (b"\xff\xfe{}", "it is no text"),
    "a list": (b"[]", "is no counterexample of schema 1"),
    "a number": (b"3", "is no counterexample of schema 1"),
    "null": (b"null", "is no counterexample of schema 1"),
    "an empty object": (b"{}", "is no counterexample of schema 1"),
    "a report": (b'{"schema": 1, "qmodel": "0.1.0", "runs": []}', "is no counterexample of schema 1"),
    "another schema": (b'{"kind": "counterexample", "schema": 2}', "is no counterexample of schema 1"),
    "brackets without end": (b"[" * 100_000, "a value in it is of the wrong kind"),
}


@pytest.mark.parametrize("name", WRONG_FILES)
def test_file_that_is_no_counterexample(qmodel: Command, tmp_path: Path, name: str) -> None:
    """A file of another kind is refused in one line that names it."""
    file = tmp_path / "file.json"
    content, message = WRONG_FILES[name]
    file.write_bytes(content)
    done = qmodel("replay", file)
    assert (2, "") == (done.code, done.out)
    assert done.err.startswith(f"qmodel: {file} is no counterexample")
    assert message in done.err
    assert done.err.endswith("`qmodel gate --update` writes such files\n")


WRONG_VALUES: dict[str, tuple[str, object, str]] = {
    "params that are a list": ("params", [], "a value in it is of the wrong kind"),
    "parameter that is text": ("params", {"cpus": "x"}, "a value in it is of the wrong kind"),
    "parameter that is null": ("params", {"cpus": None}, "a value in it is of the wrong kind"),
    "parameter that is infinite": ("params", {"cpus": float("inf")}, "a value in it is of the wrong kind"),
    "parameter that is unknown": ("params", {"cpu": 2}, "has no parameter `cpu`; it has: cpus, times"),
    "parameter that is too great": ("params", {"cpus": 9}, "`cpus` is at least 1 and at most 8, not 9"),
    "parameter with two numbers": ("params", {"cpus": [1, 2]}, "`cpus` takes one number"),
    "moves that are text": ("moves", "abc", "a value in it is of the wrong kind"),
    "moves of one number": ("moves", [[1]], "a value in it is of the wrong kind"),
    "moves that are null": ("moves", None, "a value in it is of the wrong kind"),
    "move of a thread that is not there": ("moves", [[7, 0]], "step 1: thread 7 cannot take its alternative 0 here"),
    "move of a negative thread": ("moves", [[-1, 0]], "step 1: thread -1 cannot take its alternative 0 here"),
    "alternative that is not there": ("moves", [[0, 5]], "step 1: thread 0 cannot take its alternative 5 here"),
    "no moves": ("moves", [], "does not violate `end`"),
    "trace that is null": ("trace", None, "a value in it is of the wrong kind"),
    "trace without steps": ("trace", {}, "it has no 'steps'"),
    "steps without text": ("trace", {"steps": [{}]}, "it has no 'text'"),
    "steps that read differently": ("trace", {"steps": [{"text": "x"}]}, "access 1 reads differently now"),
    "unknown property": ("property", "nosuch", "does not violate `nosuch`"),
    "property that holds": ("property", "deadlock", "does not violate `deadlock`"),
    "unknown variant": ("variant", "nosuch", "count has no variant `nosuch`"),
    "unknown scenario": ("scenario", "nosuch", "count has no scenario `nosuch` any more"),
    "unknown memory model": ("memory", "pso", "no memory model `pso`"),
    "unknown specification": ("spec", "specs/nosuch.py", "there is no model `nosuch`"),
    "specification that is gone": ("spec", "./nosuch.py", "./nosuch.py does not exist"),
    "specification that is a number": ("spec", 3, "there is no model `3`"),
}


@pytest.mark.parametrize("name", WRONG_VALUES)
def test_counterexample_with_a_wrong_value(qmodel: Command, stored: Path, name: str) -> None:
    """A counterexample that was changed, or that the specification no longer has, is told why it does not replay."""
    key, value, message = WRONG_VALUES[name]
    content = json.loads(stored.read_text(encoding="utf-8")) | {key: value}
    stored.write_text(json.dumps(content), encoding="utf-8")
    done = qmodel("replay", stored)
    assert (2, "") == (done.code, done.out)
    assert message in done.err
    assert 1 == done.err.count("\n")


@pytest.mark.parametrize("key", ["params", "moves", "trace", "variant", "spec", "scenario", "memory", "property"])
def test_counterexample_without_a_value(qmodel: Command, stored: Path, key: str) -> None:
    """What is missing is named."""
    content = json.loads(stored.read_text(encoding="utf-8"))
    del content[key]
    stored.write_text(json.dumps(content), encoding="utf-8")
    done = qmodel("replay", stored)
    assert (2, True) == (done.code, f"is no counterexample: it has no '{key}';" in done.err)


def test_counterexample_of_another_specification(qmodel: Command, count: Path, stored: Path) -> None:
    """When the specification has changed since, the message says so and what to do."""
    count.write_text(SPEC.replace("m.n[cpu] = 8", "m.n[cpu] = 7"), encoding="utf-8")
    done = qmodel("replay", stored)
    assert 2 == done.code
    assert "The specification has changed since; write it anew with `qmodel gate --update`" in done.err


def test_walk_without_a_terminal(qmodel: Command, stored: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a terminal there are no keys to walk by."""

    def fail() -> str:
        raise OSError(6, "No such device or address", "/dev/tty")

    monkeypatch.setattr("click.getchar", fail)
    done = qmodel("replay", stored, "--step")
    assert (2, "qmodel: --step walks by keys, and there is no terminal to press them on\n") == (done.code, done.err)


@pytest.mark.parametrize("key", ["", "q", "\x1b"])
def test_walk_that_ends(qmodel: Command, stored: Path, monkeypatch: pytest.MonkeyPatch, key: str) -> None:
    """A terminal that goes away ends the walk, as q does."""
    monkeypatch.setattr("click.getchar", lambda: key)
    assert 0 == qmodel("replay", stored, "--step").code


# --- where the output goes --------------------------------------------------------------------------------------------


def process(*words: str | Path, **options: object) -> subprocess.Popen[str]:
    """Start the command as a process of its own."""
    environ = {**os.environ, **options.pop("env", {})}  # type: ignore[dict-item]
    command = [sys.executable, "-m", "qmodel", *map(str, words)]
    return subprocess.Popen(command, cwd=ROOT, env=environ, text=True, **options)  # type: ignore[call-overload,no-any-return]


def test_reader_that_leaves(count: Path) -> None:
    """Where nobody reads the report any more, as with `| head`, the command ends without a word."""
    reader, writer = os.pipe()
    started = process("check", count, stdout=writer, stderr=subprocess.PIPE)
    os.close(writer)
    os.close(reader)
    _, err = started.communicate()
    assert (141, "") == (started.returncode, err)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_disk_that_is_full(count: Path) -> None:
    """A report that cannot be written is one message."""
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        started = process("list", count, stdout=full, stderr=subprocess.PIPE)
        _, err = started.communicate()
    assert (2, "qmodel: No space left on device\n") == (started.returncode, err)


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_locale_that_has_not_every_letter(count: Path, encoding: str) -> None:
    """A letter that the terminal does not have is no reason to fail."""
    environment = {"LC_ALL": "C", "PYTHONIOENCODING": encoding, "PYTHONUTF8": "0"}
    started = process("list", count, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment)
    out, err = started.communicate()
    assert (0, "") == (started.returncode, err)
    assert "on purpose." in out


def test_interrupt(count: Path) -> None:
    """Ctrl-C ends a search with what is known by then, and exit code 130; the line of progress is wiped."""
    terminal, standard_error = pty.openpty()
    words = ("check", count, "--cpus", "8", "--times", "50", "--timeout", "60", "--json")
    started = process(*words, stdout=subprocess.PIPE, stderr=standard_error, env={"COLUMNS": "60"})
    os.close(standard_error)
    seen = b""
    while b" states, " not in seen:
        seen += os.read(terminal, 1000)
    started.send_signal(signal.SIGINT)
    out, _ = started.communicate()
    os.close(terminal)
    (found,) = json.loads(out)["runs"]
    assert 130 == started.returncode
    assert ("slow", "inconclusive", "interrupted", False) == (
        found["variant"],
        found["verdict"],
        found["why"],
        found["complete"],
    )
    assert found["states"] > 1
    assert b"Traceback" not in seen


def test_interrupt_between_two_searches(qmodel: Command, count: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was found before Ctrl-C is reported."""
    searched: list[Configuration] = []

    def run(configuration: Configuration, engine: str, options: Options) -> Run:
        if searched:
            raise KeyboardInterrupt
        searched.append(configuration)
        return search(configuration, engine, options)

    monkeypatch.setattr("qmodel.cli.check.run", run)
    done = qmodel("check", count)
    assert (130, "") == (done.code, done.err)
    assert "1 run: 1 refuted as expected" in done.out


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("columns", [1, 20, 200])
def test_progress_on_a_narrow_terminal(monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    """The line of progress never reaches the last column, where a terminal would begin another line."""
    terminal = _Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setattr("shutil.get_terminal_size", lambda _: os.terminal_size((columns, 24)))
    with ProgressLine() as line:
        line.title = "count slow"
        line(Progress(1234567, 89012.0, 3456, 78, 2**30))
        shown = terminal.getvalue().lstrip("\r")
    whole = "count slow: 1,234,567 states, 89,012/s, frontier 3,456, depth 78, 1,024 MiB"
    assert whole[: max(columns - 1, 1)] == shown
    assert "" == terminal.getvalue().split("\r")[-1]
    assert " " * len(shown) == terminal.getvalue().split("\r")[-2]
