"""`qmodel explore`: a walk through the states by lines of input."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from qmodel.ir.interpreter import Interpreter
from tests.cli.conftest import Command
from tests.support import program_of

LOCKS = '''
from qmodel.lang import Int, Model, SpinLock, measure, spin_lock, spin_unlock, thread


class Locks(Model):
    """Two locks, in two orders."""

    a = SpinLock()
    b = SpinLock()
    n = Int(0, high=2, guarded_by=a)

    @thread
    def first(m):
        spin_lock(m.a)
        m.n = 2
        m.inner()
        spin_unlock(m.a)

    @thread
    def second(m):
        spin_lock(m.b)
        spin_lock(m.a)
        spin_unlock(m.a)
        spin_unlock(m.b)

    def inner(m): ...

    @measure("n")
    def value(m):
        """What n is."""
        return m.n


class Abba(Locks):
    """The other order."""

    def inner(m):
        spin_lock(m.b)
        spin_unlock(m.b)


class Single(Locks):
    """One lock."""

    def inner(m):
        pass
'''

SOFTIRQ = '''
from qmodel.lang import (
    Bool, Budget, Int, Model, SpinLock, choose, invariant, quiescent, raise_softirq, softirq, spin_lock, spin_unlock,
    thread,
)


class Soft(Model):
    """A task that may raise a softirq, and a softirq that forgets a lock."""

    luck = Budget(1, doc="how often the answer is yes")

    lock = SpinLock()
    n = Int(0, high=1, guarded_by=lock)
    seen = Bool()

    @thread
    def task(m):
        batch = 1
        spin_lock(m.lock)
        spin_unlock(m.lock)
        if choose(m.luck, "lucky()"):
            raise_softirq(m.action)
            m.seen = batch == 2

    @softirq
    def action(m, cpu):
        m.seen = True
        m.n = 1

    @invariant("unseen")
    def unseen(m):
        """Nothing is seen."""
        return not m.seen

    @quiescent("counted")
    def counted(m):
        """In the end there is one."""
        return m.n == 1
'''

STORES = '''
from qmodel.lang import Bool, Int, Model, thread


class Stores(Model):
    """Stores that others see later."""

    x = Int(0, high=3)
    y = Bool()

    @thread
    def writer(m):
        m.x = 3
        m.y = True
'''


def pages(output: str) -> list[str]:
    """Return the answers to each command, the page of the initial state first."""
    return output.split("\n> ")


def page(output: str, number: int = 1) -> list[str]:
    """Return the lines of the answer to a command, without the command."""
    return pages(output)[number].splitlines()[1:]


def test_first_page(qmodel: Command, spec: Callable[[str], Path]) -> None:
    """A page has memory, where each thread is with its next access, and the steps by number; then comes the prompt."""
    done = qmodel("explore", spec(SOFTIRQ), stdin="q\n")
    expected = """\
soft/soft: luck=1 memory=sc
? shows the commands, q quits

soft/soft: 0 steps taken

  lock    free
  n       0
  seen    false
  action  not raised
  luck    1 left

CPU0 (task) at task:20; batch = 1
   1  spin_lock(&lock)
CPU0 (action) rests

> q
"""
    assert (0, expected, "") == (done.code, done.out, done.err)


def test_step_marks_what_it_changed(qmodel: Command, spec: Callable[[str], Path]) -> None:
    """After a step the page says which it was, what it changed and from what; the thread is a line further."""
    lines = page(qmodel("explore", spec(SOFTIRQ), stdin="1\n").out)
    assert "soft/soft: 1 step taken; the last: CPU0 (task) spin_lock(&lock)" in lines
    assert "* lock    CPU0 (task) (was free)" in lines
    assert "  seen    false" in lines
    assert "CPU0 (task) at task:21; batch = 1" in lines


def test_choose_has_several_alternatives(qmodel: Command, spec: Callable[[str], Path]) -> None:
    """Where the environment answers, each answer is a step of its own; what is left of the budget is shown."""
    found = qmodel("explore", spec(SOFTIRQ), stdin="1\n2\n").out
    expected = ["   1  spin_unlock(&lock); choose() = false", "   2  spin_unlock(&lock); lucky()"]
    assert expected == [line.partition(" <-")[0] for line in page(found) if line.startswith("   ")]
    assert "* luck    0 left (was 1 left)" in page(found, 2)


def test_numbers_are_the_steps_of_the_interpreter(qmodel: Command, spec: Callable[[str], Path]) -> None:
    """On every page the steps are those that the definition of the language allows, and each leads where it says."""
    path = spec(LOCKS)
    interpreter = Interpreter(program_of(path, "single"))
    state = interpreter.initial()
    expected: list[tuple[int, str]] = []
    moves: list[str] = []
    while True:
        options = list(interpreter.enabled(state))
        expected.append((len(options), str(interpreter.read(state, "n")[0])))
        if not options:
            break
        number = len(moves) % len(options)
        moves.append(str(number + 1))
        following = options[number][2].state
        assert following is not None
        state = following
    output = qmodel("explore", path, "--variant", "single", stdin="\n".join(moves)).out
    found = []
    for text in pages(output)[:-1]:
        lines = [line.removeprefix("*").split() for line in text.splitlines()[1:]]
        (value,) = (words[1] for words in lines if words[:1] == ["n"])
        found.append((sum(words[0].isdecimal() for words in lines if words), value))
    assert 8 == len(expected)
    assert expected == found


def test_several_numbers_are_several_steps(qmodel: Command, spec: Callable[[str], Path]) -> None:
    """Numbers on one line are steps one after another, with one page at the end."""
    path = spec(LOCKS)
    one = qmodel("explore", path, "--variant", "single", stdin="1\n1\n1\n")
    together = qmodel("explore", path, "--variant", "single", stdin="1 1 1\n")
    assert page(one.out, 3) == page(together.out)


def test_back_undoes_a_step(qmodel: Command, spec: Callable[[str], Path]) -> None:
    """`b` leads back to the page before the step."""
    found = qmodel("explore", spec(LOCKS), "--variant", "abba", stdin="1\n2\nb\n").out
    assert page(found, 1) == page(found, 3)
    assert page(found, 1) != page(found, 2)


def test_restart(qmodel: Command, spec: Callable[[str], Path]) -> None:
    """`r` leads back to the initial state, where `b` has nothing to undo."""
    found = qmodel("explore", spec(LOCKS), "--variant", "abba", stdin="1 2\nr\nb\n").out
    assert "locks/abba: 0 steps taken" in page(found, 2)
    assert ["this is the initial state: there is no step to undo"] == page(found, 3)


def test_waiting_thread_says_for_what(qmodel: Command, spec: Callable[[str], Path]) -> None:
    """A thread that cannot move has no number, but the access that it waits to make, and who has the lock."""
    lines = page(qmodel("explore", spec(LOCKS), "--variant", "single", stdin="1 2\n").out)
    assert ["CPU1 (second) at second:22", "   -  spin_lock(&a) (waits for a, which CPU0 (first) has)"] == lines[-2:]


def test_deadlock(qmodel: Command, spec: Callable[[str], Path]) -> None:
    """Where nothing can move any more the page says so, and names the circle of waits."""
    lines = page(qmodel("explore", spec(LOCKS), "--variant", "abba", stdin="1 2 1\n").out)
    assert "*** violates deadlock: CPU0 (first) waits for b, which CPU1 (second) has; CPU1" in lines
    assert "Nothing can move any more." == lines[-1]


def test_softirq_runs_before_its_task_goes_on(qmodel: Command, spec: Callable[[str], Path]) -> None:
    """A softirq that was raised can start, and until it is done the task of its CPU waits."""
    found = qmodel("explore", spec(SOFTIRQ), stdin="1 2 1\n2\n").out
    assert "* action  raised on CPU0 (was not raised)" in page(found, 1)
    expected = """\
CPU0 (task) at task:24; batch = 1
   -  seen = batch == 2 (waits until action is done on this CPU)
CPU0 (action) at action:28
   1  seen = true <- violates unseen"""
    assert expected.splitlines() == page(found, 2)[-4:]


def test_violation_is_announced_and_shown(qmodel: Command, spec: Callable[[str], Path]) -> None:
    """A step that leads to a violation says so before it is taken; the page after it says what is violated."""
    found = qmodel("explore", spec(SOFTIRQ), stdin="1 2 1 2\n1\n").out
    assert "   1  seen = true <- violates unseen" in page(found, 1)
    assert [line for line in page(found, 2) if line.startswith("*** violates unseen: ")]


def test_error_of_the_language_ends_the_path(qmodel: Command, spec: Callable[[str], Path]) -> None:
    """A step that ends in an error shows its message; there is no way on, and `b` leads back."""
    found = qmodel("explore", spec(SOFTIRQ), stdin="1 2 1 2 1\n1\n1\nb\n").out
    assert "   1  m.n = 1 <- violates race" in page(found, 1)
    assert [line for line in page(found, 2) if line.startswith("*** violates race: n is touched without lock")]
    assert "There is no way on: the last step ended in an error. b goes back." == page(found, 2)[-1]
    assert ["no step 1 after 6 steps: no step can be taken here"] == page(found, 3)
    assert page(found, 1) == page(found, 4)


def test_rest_is_said_and_judged(qmodel: Command, spec: Callable[[str], Path]) -> None:
    """Where everything has come to rest the page says so, and what must hold there is judged."""
    lines = page(qmodel("explore", spec(SOFTIRQ), stdin="1 1\n").out)
    assert "CPU0 (task) has ended" in lines
    assert [line for line in lines if line.startswith("*** violates counted: ")]
    assert "Everything has come to rest." == lines[-1]


def test_properties(qmodel: Command, spec: Callable[[str], Path]) -> None:
    """`p` tells of each property whether it holds here, or why it is not judged."""
    lines = page(qmodel("explore", spec(SOFTIRQ), stdin="p\n").out)
    expected = """\
  unseen    holds here
  counted   not judged here: not everything has come to rest
  deadlock  not violated on this walk"""
    assert expected.splitlines() == lines[:3]


def test_properties_remember_the_way(qmodel: Command, spec: Callable[[str], Path]) -> None:
    """`p` tells what was violated on the way, and by which step."""
    lines = page(qmodel("explore", spec(SOFTIRQ), stdin="1 2 1 2 1 1\np\n").out, 2)
    assert "  unseen    violated here; violated after step 5 of this walk" in lines
    assert "  race      violated by step 6 of this walk" in lines


def test_measures_have_their_value(qmodel: Command, spec: Callable[[str], Path]) -> None:
    """`p` tells what each measure is, and that it is not judged while its lock is held."""
    found = qmodel("explore", spec(LOCKS), "--variant", "single", stdin="1 1\np\n1\np\n").out
    assert "  n         is 2, not judged: a lock that guards it is held" in page(found, 2)
    assert "  n         is 2" in page(found, 4)


def test_counterexample_can_be_saved_and_replayed(qmodel: Command, spec: Callable[[str], Path], tmp_path: Path) -> None:
    """`s FILE` saves the way to a violation; `qmodel replay` finds the same violation at its end."""
    file = tmp_path / "found.json"
    done = qmodel("explore", spec(LOCKS), "--variant", "abba", stdin=f"1 2 1\ns {file}\ns {file}\n")
    assert 0 == done.code
    assert "has the way to the violation of deadlock" in done.out
    assert [f"{file} cannot be written: File exists"] == page(done.out, 3)
    assert [[0, 0], [1, 0], [0, 0]] == json.loads(file.read_text(encoding="utf-8"))["moves"]
    again = qmodel("replay", file)
    assert (0, "") == (again.code, again.err)
    assert "deadlock is violated after 3 steps." in again.out


def test_nothing_to_save(qmodel: Command, spec: Callable[[str], Path], tmp_path: Path) -> None:
    """Where nothing is violated nothing is saved."""
    found = qmodel("explore", spec(LOCKS), "--variant", "abba", stdin=f"s {tmp_path / 'x'}\ns\n").out
    assert ["nothing is violated here: a counterexample ends where a property is"] == page(found, 1)
    assert ["name the file: s FILE"] == page(found, 2)
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize("line", ["x", "-1", "1x", "99999999999999999999", "b b", "\u00b2"])
def test_unknown_command(qmodel: Command, spec: Callable[[str], Path], line: str) -> None:
    """What is no command is told so, and the walk goes on."""
    found = qmodel("explore", spec(LOCKS), "--variant", "abba", stdin=f"{line}\n1\n").out
    assert [f"`{line}` is no command; ? shows those that there are"] == page(found, 1)
    assert "locks/abba: 1 step taken; the last: CPU0 (first) spin_lock(&a)" in page(found, 2)


def test_number_without_a_step(qmodel: Command, spec: Callable[[str], Path]) -> None:
    """A number that no step has is told so; the steps before it on the line are taken."""
    found = qmodel("explore", spec(LOCKS), "--variant", "abba", stdin="3\n0\n1 9\n").out
    assert ["no step 3 after 0 steps: steps 1 to 2 can be taken here"] == page(found, 1)
    assert ["no step 0 after 0 steps: steps 1 to 2 can be taken here"] == page(found, 2)
    assert "no step 9 after 1 step: steps 1 to 2 can be taken here" == page(found, 3)[0]
    assert "locks/abba: 1 step taken; the last: CPU0 (first) spin_lock(&a)" in page(found, 3)


def test_empty_line_shows_the_page_again(qmodel: Command, spec: Callable[[str], Path]) -> None:
    """An empty line changes nothing."""
    found = qmodel("explore", spec(LOCKS), "--variant", "abba", stdin="1\n\n").out
    assert page(found, 1) == page(found, 2)


def test_help(qmodel: Command, spec: Callable[[str], Path]) -> None:
    """`?` explains every command."""
    lines = page(qmodel("explore", spec(LOCKS), "--variant", "abba", stdin="?\n").out)
    assert ["NUMBER", "b", "r", "p", "s", "?", "q"] == [line.split()[0] for line in lines]


def test_store_buffers_are_shown(qmodel: Command, spec: Callable[[str], Path]) -> None:
    """Under tso what a CPU has stored and others do not see yet is shown, and committing it is a step."""
    found = qmodel("explore", spec(STORES), "--memory", "tso", stdin="1 1\n1\n").out
    assert "* CPU0 stores  pending: x = 3, y = true (was pending: x = 3)" in page(found, 1)
    assert "CPU0 (store_buffer)" == page(found, 1)[-2]
    assert page(found, 1)[-1].startswith("   1  ")
    assert page(found, 1)[-1].endswith(" x = 3")
    assert "* x            3 (was 0)" in page(found, 2)


def test_full_store_buffer_ends_the_path(qmodel: Command, spec: Callable[[str], Path]) -> None:
    """Where a store finds no room in the buffer the way ends, and that is no violation."""
    text = STORES.replace("        m.x = 3\n", "        for i in range(17):\n            m.x = 3\n")
    lines = page(qmodel("explore", spec(text), "--memory", "tso", stdin=" 1" * 17 + "\n").out)
    expected = """\
There is no way on: more than 16 stores of a CPU are pending, which is where
qmodel stops. b goes back."""
    assert expected.splitlines() == lines[-2:]
    assert [] == [line for line in lines if "***" in line]


def test_variant_must_be_chosen(qmodel: Command, spec: Callable[[str], Path]) -> None:
    """A model with several variants asks for one, and lists them."""
    path = spec(LOCKS)
    done = qmodel("explore", path)
    assert (2, "") == (done.code, done.out)
    assert f"qmodel: {path} has several variants; choose one with --variant: abba, single\n" == done.err


def test_no_line_is_wider_than_the_terminal(qmodel: Command, spec: Callable[[str], Path]) -> None:
    """At 80 columns no line of a page is cut by the terminal."""
    found = qmodel("explore", spec(SOFTIRQ), stdin="1 2 1 2 1 1\np\n?\nb\n").out
    assert [] == [line for line in found.splitlines() if len(line) > 80]


def test_any_bytes_can_be_read(spec: Callable[[str], Path]) -> None:
    """Bytes that are no text are no command, and the walk goes on."""
    command = [sys.executable, "-m", "qmodel", "explore", str(spec(LOCKS)), "--variant", "abba"]
    done = subprocess.run(command, input=b"\xff\xfe\n1\n", capture_output=True, check=False)
    assert (0, b"") == (done.returncode, done.stderr)
    assert b"is no command" in done.stdout
    assert b"1 step taken" in done.stdout
