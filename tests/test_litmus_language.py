"""`qmodel litmus`: what it reads, what it prints, and what it says of mistakes."""

import json
import re
from pathlib import Path

import pytest

from qmodel.cli.litmus import Answer, answer
from qmodel.cli.main import main
from qmodel.engines.options import Options
from qmodel.frontend.diagnostics import SpecError
from qmodel.frontend.litmus import build, parse
from qmodel.frontend.litmus.condition import text as condition_text

FOLDER = Path(__file__).parent / "litmus"


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    """Run the command: exit code, output, errors."""
    with pytest.raises(SystemExit) as ended:
        main(["litmus", *map(str, arguments)])
    out, err = capsys.readouterr()
    return int(ended.value.code or 0), out, err


def one(body: str, end: str, initial: str = "", parameters: str = "int *x, int *y, spinlock_t *s") -> str:
    """Return a test with one thread."""
    return f"C one\n{{ {initial} }}\nP0({parameters})\n{{\n{body}\n}}\n{end}\n"


def ends(text: str, memory: str = "sc") -> Answer:
    """Search a test."""
    return answer(parse(text, "test"), memory, Options())


def mistake(text: str) -> str:
    """Return what is said of a wrong test: line, column, message and remedy."""
    with pytest.raises(SpecError) as caught:
        answer(parse(text, "test.litmus"), "sc", Options())
    (diagnostic,) = caught.value.diagnostics
    remedy = f" ({diagnostic.remedy})" if diagnostic.remedy else ""
    return f"{diagnostic.line}:{diagnostic.column + 1}: {diagnostic.message}{remedy}"


# --- what is printed --------------------------------------------------------------------------------------------------


def test_report_is_as_herd7_prints_it(capsys: pytest.CaptureFixture[str]) -> None:
    """Each memory model has its report in herd7's words, below a line that names it."""
    code, out, _ = run(capsys, FOLDER / "MP.litmus")
    head = r"""Test MP Allowed
States 3
1:r0=0; 1:r1=0;
1:r0=0; 1:r1=1;
1:r0=1; 1:r1=1;
No
Witnesses
Positive: 0 Negative: 3
Condition exists (1:r0=1 /\ 1:r1=0)
Observation MP Never 0 3
"""
    weak = r"""Test MP Allowed
States 4
1:r0=0; 1:r1=0;
1:r0=0; 1:r1=1;
1:r0=1; 1:r1=0;
1:r0=1; 1:r1=1;
Ok
Witnesses
Positive: 1 Negative: 3
Condition exists (1:r0=1 /\ 1:r1=0)
Observation MP Sometimes 1 3
"""
    promise = "loads are taken in program order here, so that Never is no promise for arm64"
    expected = f"% memory sc\n{head}\n% memory tso\n{head}\n% memory weak: {promise}\n{weak}"
    assert (0, expected) == (code, out)


def test_one_memory_model_may_be_chosen(capsys: pytest.CaptureFixture[str]) -> None:
    """With --memory only that model is asked."""
    _, out, _ = run(capsys, FOLDER / "SB.litmus", "--memory", "tso")
    assert ["% memory tso"] == re.findall("^% .*", out, re.MULTILINE)


def test_negated_exists_counts_witnesses_the_other_way_round(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`~exists` is Forbidden, and its witnesses are the states that do not satisfy it; exit code 1 where one does."""
    path = tmp_path / "t.litmus"
    text = (FOLDER / "SB.litmus").read_text()
    path.write_text(text.replace("exists", "~exists"))
    code, out, _ = run(capsys, path, "--memory", "tso")
    assert 1 == code
    assert "Test SB Forbidden" in out
    assert "No\nWitnesses\nPositive: 3 Negative: 1\n" in out
    assert "Observation SB Sometimes 1 3" in out
    code, out, _ = run(capsys, path, "--memory", "sc")
    assert 0 == code
    assert "Ok\nWitnesses\nPositive: 3 Negative: 0\n" in out
    assert "Observation SB Never 0 3" in out


def test_forall_is_required_of_every_state(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`forall` is Required: Ok where every state satisfies it, No and exit code 1 where one does not."""
    path = tmp_path / "t.litmus"
    path.write_text((FOLDER / "SB.litmus").read_text().replace("exists", "forall"))
    code, out, _ = run(capsys, path, "--memory", "sc")
    assert (1, ["Test SB Required", "No"]) == (code, re.findall("^(?:Test.*|Ok|No)$", out, re.MULTILINE))
    code, out, _ = run(capsys, FOLDER / "inc+inc.litmus", "--memory", "weak")
    assert (0, ["Test inc+inc Required", "Ok"]) == (code, re.findall("^(?:Test.*|Ok|No)$", out, re.MULTILINE))


def test_exists_is_a_question(capsys: pytest.CaptureFixture[str]) -> None:
    """Whatever the answer to `exists` is, the exit code is 0."""
    code, out, _ = run(capsys, FOLDER / "SB.litmus")
    assert (0, ["No", "Ok", "Ok"]) == (code, re.findall("^(?:Ok|No)$", out, re.MULTILINE))


def test_json_has_every_answer(capsys: pytest.CaptureFixture[str]) -> None:
    """--json gives one document with a record for each file and memory model."""
    code, out, _ = run(capsys, FOLDER / "CoWW.litmus", FOLDER / "CoRW.litmus", "--json", "--memory", "sc")
    document = json.loads(out)
    assert (0, 1) == (code, document["schema"])
    assert [
        {
            "file": str(FOLDER / "CoWW.litmus"),
            "name": "CoWW",
            "memory": "sc",
            "condition": "exists ([x]=1)",
            "ok": False,
            "observation": "Never",
            "positive": 0,
            "negative": 1,
            "deadlock": False,
            "inconclusive": "",
            "explored": 3,
            "states": [{"[x]": 2}],
        },
        ("CoRW", [{"0:r0": 0}]),
    ] == [document["tests"][0], (document["tests"][1]["name"], document["tests"][1]["states"])]


def test_limit_ends_as_inconclusive(capsys: pytest.CaptureFixture[str]) -> None:
    """A search that a limit ends says so, and its exit code is 3."""
    code, out, _ = run(capsys, FOLDER / "IRIW.litmus", "--memory", "weak", "--max-states", "10")
    assert 3 == code
    assert out.endswith("% inconclusive: the limit of 10 states is reached\n")


def test_deadlock_is_flagged() -> None:
    """Where a way never ends it is flagged, and only the others have final states."""
    threads = ["spin_lock(s); spin_lock(t); WRITE_ONCE(*x, 1); spin_unlock(t); spin_unlock(s);"]
    threads += ["spin_lock(t); spin_lock(s); WRITE_ONCE(*x, 2); spin_unlock(s); spin_unlock(t);"]
    code = "\n".join(f"P{i}(spinlock_t *s, spinlock_t *t, int *x) {{ {body} }}" for i, body in enumerate(threads))
    found = ends(f"C ABBA\n{{}}\n{code}\nexists (x=0)")
    assert (True, ((1,), (2,))) == (found.deadlock, found.states)
    assert not ends(
        f"C ABBA\n{{}}\n{code.replace('spin_lock(t); spin_lock(s)', 'spin_lock(s); spin_lock(t)')}\nexists (x=0)"
    ).deadlock


@pytest.mark.parametrize(
    "proposition",
    [
        r"0:r0=1 /\ [x]=2 \/ [y]=3",
        r"0:r0=1 /\ ([x]=2 \/ [y]=3)",
        r"([x]=1 => [y]=1) /\ 0:r0=-1",
        r"([x]=1 => [y]=1) => [x]=1",
        r"[x]=1 => [y]=1 => [x]=1",
        r"not ([x]=1 /\ true) \/ false",
        "0:r0=[x]",
    ],
)
def test_conditions_are_printed_as_they_are_read(proposition: str) -> None:
    """The text of a condition stands for the same condition, without brackets that it does not need."""
    text = one("int r0;", f"exists ({proposition})")
    assert proposition == condition_text(parse(text, "test").condition)


# --- what is read -----------------------------------------------------------------------------------------------------


def test_kernel_style_file_is_read() -> None:
    """Comments of both languages, information lines, types and qualifiers may stand where herd7 takes them."""
    text = r"""C name-of-it (* a *)
"information" Orig=Rfe PodWW

(* { is no brace here *)
{
  int x = 1; (* b *)
  [y] = 0x10;
  atomic_t c = ATOMIC_INIT(-2);
} // c

// d
P0(volatile int *x, atomic_t *c, spinlock_t *s) /* e */
{
	int r0, r1 = 1;	/* f */
	unsigned long r2 = READ_ONCE(*x);

	r0 = atomic_read(c); // g
	{ r3 = (int)(r0 + 1) * 2; } ;
	if (r1) ; else r2 = 9;
}

P1(int *y)
{
}

locations [x int; 0:r1; y;]
exists (* h *) (0:r0=-2 (* i *) /\ P0:r2=1 /\ 0:r3=-2 /\ [y]=16)
"""
    found = ends(text)
    assert (
        "name-of-it",
        ["0:r0", "0:r1", "0:r2", "0:r3", "[x]", "[y]"],
        ((-2, 1, 1, -2, 1, 16),),
        "Always",
    ) == (found.test.name, [str(place) for place in found.test.shown], found.states, found.observation)


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("2 + 3 * 4", 14),
        ("(2 + 3) * 4", 20),
        ("10 - 3 - 2", 5),
        ("1 << 3 | 1", 9),
        ("12 >> 1 & 3", 2),
        ("6 ^ 3 == 3", 7),
        ("-3 + ~0", -4),
        ("!5 + !0", 1),
        ("1 < 2 == 3 > 2", 1),
        ("2 <= 1 || 2 >= 1 && 3 != 4", 1),
        ("0 && *x", 0),
        ("7 && 8", 1),
        ("*x + READ_ONCE(*x) * 2", 15),
        ("0x1F", 31),
    ],
)
def test_expressions_are_those_of_c(expression: str, value: int) -> None:
    """Operators bind and mean what they do in C; accesses may stand in them."""
    assert ((value,),) == ends(one(f"int r0 = {expression};", "exists (0:r0=0)", "x=5;")).states


def test_condition_reads_no_more_than_c_does() -> None:
    """What stands behind `&&` and `||` is not read where what stands before decides."""
    text = one(
        "if (xchg(x, 1) || xchg(y, 1)) r0 = xchg(x, 2) && 0 && xchg(y, 3);", "exists (x=0 /\\ y=0 /\\ 0:r0=0)", "x=4;"
    )
    assert ((0, 2, 0),) == ends(text).states


def test_arguments_are_evaluated_from_left_to_right() -> None:
    """An access may be an argument of another one."""
    text = one("r0 = cmpxchg(x, xchg(y, 3), READ_ONCE(*y));", "exists (0:r0=0 /\\ x=0 /\\ y=0)", "x=2; y=2;")
    assert ((2, 3, 3),) == ends(text).states


def test_registers_are_zero_at_first() -> None:
    """A register that is never set is 0 in the end."""
    assert ((0,),) == ends(one("int r0; if (*x) r0 = 1;", "exists (0:r0=0)")).states


def test_looking_at_a_register_orders_nothing() -> None:
    """A store is still pending when its thread has ended, whatever registers the test looks at."""
    text = (FOLDER / "SB.litmus").read_text()
    assert ((0, 0), (0, 1), (1, 0), (1, 1)) == ends(text, "tso").states
    assert ((0, 0), (0, 1), (1, 0), (1, 1)) == ends(text, "weak").states


def test_filter_keeps_states_and_is_not_shown() -> None:
    """Only states that satisfy the filter count; what it alone names is not shown."""
    text = (FOLDER / "SB.litmus").read_text().replace("exists (0:r0=0 /\\ 1:r0=0)", "filter (0:r0=1) exists (1:r0=1)")
    found = ends(text)
    assert (["1:r0"], ((0,), (1,))) == ([str(place) for place in found.test.shown], found.states)


def test_counters_have_bounds_that_nobody_declares() -> None:
    """Values that threads count up for each other stay within the bounds that are found."""
    body = "r0 = READ_ONCE(*{0}); WRITE_ONCE(*{1}, r0 + 1);"
    code = f"P0(int *x, int *y) {{ {body.format('x', 'y')} }}\nP1(int *x, int *y) {{ {body.format('y', 'x')} }}"
    found = ends(f"C up\n{{ x=3; }}\n{code}\nexists (x=3 /\\ y=4)")
    assert ((1, 2), (1, 4), (5, 4)) == tuple((x, y) for x, y in found.states)


def test_long_chain_of_stores_fits_the_buffer() -> None:
    """A store buffer has room for every store of a thread."""
    body = " ".join(f"WRITE_ONCE(*x, {value});" for value in range(1, 9))
    assert ((8,),) == ends(one(body, "exists (x=8)"), "weak").states


# --- mistakes ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("READ_ONCE(*z);", "5:11: P0 has no parameter `z` (add `int *z` to the parameters of P0)"),
        ("r0 = r1;", "5:6: P0 has no register `r1` (declare it: `int r1;`)"),
        ("r0 = x;", "5:6: `x` is a pointer, and a register is needed (write *x, or READ_ONCE(*x))"),
        ("x = 1;", "5:1: `x` is a pointer, and a register is needed (write *x, or READ_ONCE(*x))"),
        ("r0 = READ_ONCE(x);", "5:16: `READ_ONCE` takes *x (write *x)"),
        ("smp_store_release(*x, 1);", "5:19: `smp_store_release` takes a pointer (write x)"),
        ("WRITE_ONCE(*x);", "5:1: `WRITE_ONCE` takes 2 arguments (write WRITE_ONCE(*x, value))"),
        ("r0 = smp_mb();", "5:6: `smp_mb` returns nothing (do not use its value)"),
        ("smp_mbb();", "5:1: `smp_mbb` has no meaning here (did you mean `smp_mb`?)"),
        (
            "xchg_relaxed(x, 1);",
            "5:1: `xchg_relaxed` has no meaning here (no model knows an order between none and full: write xchg)",
        ),
        ("while (1) ;", "5:1: `while` has no meaning in a litmus test (write the accesses out, one by one)"),
        (
            "r0 = 1 / 2;",
            "5:8: `/` has no meaning in a litmus test (the operators are + - * & | ^ << >> == != < <= > >= ! ~ && ||)",
        ),
        ("r0 = 1 << *x;", "5:11: a shift is by a constant from 0 to 16"),
        ("r0;", "5:1: this does nothing (assign it to a register)"),
        ("1 = 2;", "5:1: this cannot be assigned to (assign to a register, or to `*x`)"),
        ("r0 = 1", "6:1: `}` comes here, and `;` is needed after a statement"),
        ("int *r0;", "5:5: a register that holds an address has no meaning here (use numbers)"),
        ("r0 = &x;", "5:6: an address has no meaning here (a parameter is a pointer already: write `x` or `*x`)"),
        ("int r0; int r0;", "5:13: `r0` is there already (use another name)"),
        ("int x;", "5:5: `x` is there already (use another name)"),
        ("WRITE_ONCE(*s, 1);", "5:12: `s` is a lock (use spin_lock, spin_trylock, spin_unlock or spin_is_locked)"),
        ("set_bit(*y, x);", "5:9: a bit is a constant from 0 to 15"),
        ("spin_lock(1);", "5:11: `spin_lock` works on a shared variable (name a parameter)"),
        ("spin_unlock(s);", "5:1: s is released by one who does not hold it (now: free)"),
        ("spin_lock(s);", "3:1: the task ends and still holds s"),
        ("rcu_read_unlock();", "5:1: no RCU section has begun here (call rcu_read_lock() before)"),
        ("rcu_read_lock();", "3:1: P0 ends within an RCU section (call rcu_read_unlock())"),
        (
            "rcu_read_lock(); if (*x) rcu_read_unlock();",
            "5:18: an RCU section ends on one way only (begin and end it on both ways)",
        ),
        (
            "rcu_read_lock(); synchronize_rcu();",
            "5:18: this waits for its own RCU section, for ever (end the section before)",
        ),
        ("r0 = 70000 * 70000;", "5:1: `r0` may leave the range of an int here (use small numbers)"),
        ("r0 = @;", "5:6: `@` has no meaning here"),
        ("/* no end", "5:1: this comment has no end (end it by `*/`)"),
    ],
)
def test_mistake_in_a_thread(body: str, message: str) -> None:
    """A mistake in a thread is told with line, column, what is wrong and what to write instead."""
    assert message == mistake(one(body, "exists (x=0)"))


@pytest.mark.parametrize(
    ("text", "message", "remedy"),
    [
        (
            "X86 SB\n{}",
            "1:1: `X86` comes here, and a litmus test in C begins with `C`",
            "begin with `C` and the name of the test",
        ),
        ("C\n{}", "1:1: the test has no name", "write `C NAME`"),
        ("C t\nP0(int *x) ", "1:1: the test has no `{` for its initial values", "write `{}` below its name"),
        ("C t\n{}\nexists (x=1)", "3:1: `exists` comes here, and a thread is needed", "write `P0(int *x) { … }`"),
        ("C t\n{ x=y; }", "2:5: `y` is an address, and the initial value is a number", ""),
        ("C t\n{ 0:r0=1; }", "2:3: registers are 0 at first", "assign them in the thread"),
        ("C t\n{ x=1; x=2; }", "2:8: `x` has an initial value already", ""),
        ("C t\n{ int *p = x; }", "2:7: a variable that holds an address has no meaning here", "use numbers"),
        ("C t\n{}\nP1(int *x) {}", "3:1: `P1` comes here, and P0 is next", "number threads from P0 on"),
        (
            "C t\n{}\nP0(int x) {}",
            "3:9: a parameter is a pointer to a shared variable",
            "write `int *x`: the shared variable x",
        ),
        (
            "C t\n{}\nP0(int **x) {}",
            "3:9: a parameter is a pointer to a shared variable",
            "write `int *x`: the shared variable x",
        ),
        ("C t\n{}\nP0(int *x) { r0 = 1;", "3:12: this `{` has no `}`", ""),
        (
            "C t\n{}\nP0(int *x) {}",
            r"3:13: the test ends here, and the condition of the test is needed",
            r"write exists (0:r0=1 /\ x=0), forall (…) or ~exists (…)",
        ),
        ("C t\n{}\nP0(int *x) {}\nexists (z=1)", "4:9: no thread has a variable `z`", "known here: x"),
        ("C t\n{}\nP0(int *x) {}\nexists (1:r0=1)", "4:9: there is no thread P1", "they are P0 to P0"),
        ("C t\n{}\nP0(int *x) { r1 = 1; }\nexists (0:r2=1)", "4:9: P0 has no register `r2`", "known here: r1"),
        ("C t\n{}\nP0(spinlock_t *s) {}\nexists (s=0)", "4:9: `s` is a lock", "ask for a variable that it protects"),
        (
            "C t\n{ s=1; }\nP0(spinlock_t *s) {}\nexists (true)",
            "2:3: `s` is a lock, and free at first",
            "leave the value out",
        ),
        (
            "C t\n{}\nP0(int *x) {}\nexists (x=y)",
            "4:11: `y` is an address, and what it is compared with is a number",
            "",
        ),
        ("C t\n{}\nP0(int *x) {}\nexists (x)", "4:10: `)` comes here, and `=` is needed after a location", ""),
        ("C t\n{}\nP0(int *x) {}\nexists (x=1) 2", "4:14: `2` comes here after the condition", "a test ends there"),
        (
            "C t\n{ x=-1; }\nP0(int *x) { set_bit(0, x); }\nexists (x=1)",
            "2:3: `x` is a word of bits, and may be negative",
            "",
        ),
    ],
)
def test_mistake_outside_threads(text: str, message: str, remedy: str) -> None:
    """A mistake in the head, the initial values or the condition is told in the same way."""
    assert message + (f" ({remedy})" if remedy else "") == mistake(text)


def test_mistake_ends_the_command_with_its_place(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """On the command line a mistake shows file, line, column and a caret, and the exit code is 2."""
    path = tmp_path / "t.litmus"
    path.write_text(one("  WRITE_ONCE(*q, 1);", "exists (x=0)"))
    code, out, err = run(capsys, path)
    assert (2, "") == (code, out)
    assert [
        f"{path}:5:14: error: P0 has no parameter `q`",
        "    5 |   WRITE_ONCE(*q, 1);",
        "                     ^^",
    ] == err.splitlines()[:3]


def test_missing_file_ends_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file that is not there is an error of usage."""
    code, _, err = run(capsys, tmp_path / "none.litmus")
    assert (2, f"qmodel: {tmp_path}/none.litmus: No such file or directory\n") == (code, err)


def test_file_that_is_no_text_ends_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file that is not UTF-8 is told as a mistake in it."""
    path = tmp_path / "binary.litmus"
    path.write_bytes(b"C \xff\xfe")
    code, _, err = run(capsys, path)
    assert 2 == code
    assert f"{path}:1:1: error: this is no text in UTF-8" == err.splitlines()[0]


def test_every_test_compiles_without_being_run() -> None:
    """A program has a task for each thread on a CPU of its own, and a ghost for each register that is looked at."""
    program = build(parse((FOLDER / "SB.litmus").read_text(), "SB"))
    assert [(0, "P0", "task", 0), (1, "P1", "task", 1)] == [(t.tid, t.template, t.kind, t.cpu) for t in program.threads]
    assert {"x": False, "y": False, "0:r0": True, "1:r0": True} == {n: v.ghost for n, v in program.variables.items()}
