"""The report in a terminal: each verdict with its strength, what is unexpected, and what one reads first."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qmodel.result import Expected, MeasureResult, PropertyResult, Report, Run, Strength, Verdict
from qmodel.views import text
from tests.views.samples import HOLDS, SAMPLES, XMIT0, first_only, holds, measured, outcome, run, tail, tail_trace

EVERYTHING = Report("0.1.0", tuple(make() for make in SAMPLES.values()))


def plain(*runs: Run, width: int = 80, pictures: bool = True) -> str:
    """Return the report on some runs, without colours."""
    return text.report(Report("0.1.0", runs), color=False, width=width, pictures=pictures)


def held(strength: Strength) -> Run:
    """Return a run that holds, by so much."""
    return run("v", outcome(Verdict.HOLDS, (XMIT0,), strength=strength, states=41_234, depth=9), HOLDS)


@pytest.mark.parametrize(
    ("strength", "words"),
    [
        (Strength.EXHAUSTIVE, "holds (exhaustive, 41,234 states)  as expected"),
        (Strength.BOUNDED, "holds (bounded, within 9 steps)  as expected"),
        (Strength.INDUCTIVE, "holds (inductive, any number of steps)  as expected"),
    ],
)
def test_holds_never_stands_without_its_strength(strength: Strength, words: str) -> None:
    """A verdict says how far it reaches, in the row itself."""
    assert words in plain(held(strength))


def test_refuted_names_every_refuted_property() -> None:
    """The row of a refuted run lists what is refuted."""
    properties = (
        PropertyResult("order", "", Verdict.REFUTED),
        holds("once"),
        PropertyResult("qlen", "", Verdict.REFUTED),
    )
    assert "refuted: order, qlen" in plain(run("v", outcome(Verdict.REFUTED, (XMIT0,), *properties), None))


def test_unexpected_says_what_was_expected() -> None:
    """A run that is not as expected stands out, with the expectation below it."""
    found = run("v", held(Strength.EXHAUSTIVE).outcome, Expected(Verdict.REFUTED, ("order",)))
    lines = plain(found).splitlines()
    assert lines[3].endswith("UNEXPECTED")
    assert lines[4].endswith("; expected: refuted order")


def test_nothing_expected_is_not_stated() -> None:
    """A configuration of which the specification says nothing is neither expected nor unexpected."""
    assert plain(run("v", held(Strength.BOUNDED).outcome, None)).splitlines()[3].endswith("not stated")


def test_stop_first_is_not_taken_for_complete() -> None:
    """A refuted run that ended early says why it ended."""
    found = outcome(Verdict.REFUTED, (XMIT0,), PropertyResult("p", "", Verdict.REFUTED), why="stopped at the first")
    assert "not complete: stopped at the first" in plain(run("v", found, None))


def test_settings_that_differ_stand_with_their_run() -> None:
    """What all runs share is in the head, what differs below each run."""
    one = run("v", held(Strength.EXHAUSTIVE).outcome, HOLDS, cpus=2, busy=1)
    two = replace(one, params=(("cpus", 2), ("busy", 2)), memory="tso")
    lines = plain(one, two).splitlines()
    assert "requeue: cpus=2 engine=native reductions=fusion,symmetry" == lines[0]
    assert "    busy=1 memory=sc; 41,234 states, depth 9, 0.27 s" == lines[4]
    assert "    busy=2 memory=tso; 41,234 states, depth 9, 0.27 s" == lines[6]


def refuted_twice(expected: Expected | None) -> Run:
    """Return a run with two refuted properties: `order`, and the shorter `limit`."""
    long = tail_trace()
    short = replace(long, steps=long.steps[:3], story=("Violated: limit.",))
    order = PropertyResult("order", "", Verdict.REFUTED, "", long)
    limit = PropertyResult("limit", "", Verdict.REFUTED, "", short)
    return replace(tail(), outcome=replace(tail().outcome, properties=(order, limit)), expected=expected)


def test_only_the_shortest_picture_is_drawn() -> None:
    """Of several refuted properties one is drawn, the others are named with the command that draws them."""
    shown = plain(refuted_twice(Expected(Verdict.REFUTED, ("order", "limit"))))
    assert "Violated: limit." in shown
    assert "Violated: order." not in shown
    assert "Pictures of order as well:\n    qmodel check requeue --variant tail --cpus 2 --packets 2,0" in shown


def test_what_nobody_expected_is_drawn_before_what_is_shorter() -> None:
    """The picture is that of the surprise."""
    shown = plain(refuted_twice(Expected(Verdict.REFUTED, ("limit",))))
    assert "Violated: order." in shown
    assert "Violated: limit." not in shown


def test_what_holds_is_named_in_one_row() -> None:
    """What is refuted or undecided has a row each; the rest takes one."""
    names = ("order", "once", "race", "domain", "locking", "null", "check", "endless", "deadlock", "no-leak", "stuck")
    properties = (*map(holds, names), PropertyResult("qlen", "", Verdict.REFUTED, "qlen is 1"))
    found = run("v", outcome(Verdict.REFUTED, (XMIT0,), *properties), None)
    assert (
        "  qlen  refuted  qlen is 1\n"
        "  hold: order, once, race, domain, locking, null, check, endless, deadlock,\n"
        "    no-leak, stuck\n" in plain(found)
    )


def test_why_is_told_once() -> None:
    """Why a property is refuted is told by its picture, or else beside it."""
    found = first_only()
    assert "\n  no-leak  refuted       6 steps, 0 switches\n" in plain(found)
    assert "6 steps, 0 switches: a1 is lost\n" in plain(replace(found, as_expected=False), pictures=False)


def test_full_draws_every_access() -> None:
    """A picture leaves out what explains nothing, and says how to see it."""
    short = plain(tail())
    whole = text.report(Report("0.1.0", (tail(),)), color=False, width=80, full=True)
    assert ("qlen--" in short, "--full shows them" in short) == (False, True)
    assert ("qlen--" in whole, "--full" in whole) == (True, False)


def test_command_that_is_broken_can_be_pasted() -> None:
    """A command that is too long for a line goes on after a backslash."""
    shown = plain(refuted_twice(None), width=60)
    command = shown[shown.index("    qmodel check") : shown.index("\n\n1 run")]
    expected = "qmodel check requeue --variant tail --cpus 2 --packets 2,0 --busy 2 --format kernel"
    assert expected == " ".join(command.replace("\\\n", "").split())


def test_without_pictures_an_expected_refutation_is_its_row() -> None:
    """For a gate: what is as expected takes no more room than its row."""
    assert 7 == len(plain(tail(), pictures=False, width=120).splitlines())


def test_measure_of_an_incomplete_run_is_a_lower_bound() -> None:
    """A maximum is called so only where the search is complete."""
    complete = measured()
    cut = replace(complete, outcome=replace(complete.outcome, complete=False))
    assert ("max 3" in plain(complete), "at least 3" in plain(cut)) == (True, True)
    assert "max 3" not in plain(cut)


def test_measures_are_aligned_with_thousands_set_apart() -> None:
    """Names and maxima are columns."""
    measures = (MeasureResult("a", "first", 1_000), MeasureResult("long", "second", 2))
    found = outcome(Verdict.HOLDS, (XMIT0,), measures=measures, strength=Strength.EXHAUSTIVE)
    assert "  a     max 1,000  first\n  long  max 2      second\n" in plain(run("v", found, HOLDS))


@pytest.mark.parametrize(
    ("runs", "summary"),
    [
        ((), "0 runs: nothing was checked"),
        ((measured(),), "1 run: 1 holds"),
        ((measured(), measured(), tail(), first_only()), "4 runs: 2 hold, 2 refuted as expected"),
        ((replace(tail(), as_expected=None, expected=None),), "1 run: 1 refuted where nothing is expected"),
        ((replace(tail(), as_expected=False),), "1 run: 1 refuted UNEXPECTEDLY"),
        ((replace(measured(), as_expected=False),), "1 run: 1 holds UNEXPECTEDLY"),
        (EVERYTHING.runs[4:5], "1 run: 1 inconclusive"),
    ],
)
def test_last_line_sums_up(runs: tuple[Run, ...], summary: str) -> None:
    """The last line counts verdicts, those that nobody expected apart."""
    assert summary == plain(*runs).splitlines()[-1]


@pytest.mark.parametrize(
    ("worst", "code"),
    [(tail(), "32"), (EVERYTHING.runs[4], "33"), (replace(tail(), as_expected=False), "1;31")],
)
def test_the_summary_has_the_colour_of_the_worst_run(worst: Run, code: str) -> None:
    """Green where all is as expected, yellow where something is open, red where something is unexpected."""
    shown = text.report(Report("0.1.0", (measured(), worst)), color=True, width=80)
    assert shown.splitlines()[-1].startswith(f"\x1b[{code}m2 runs: ")


def test_colours_change_nothing_but_colours() -> None:
    """Without its ANSI codes a coloured report is the plain one."""
    colored = text.report(EVERYTHING, color=True, width=80)
    assert plain(*EVERYTHING.runs) == re.sub(r"\x1b\[[0-9;]*m", "", colored)
    assert "\x1b" not in plain(*EVERYTHING.runs)


@settings(deadline=None)
@given(st.integers(60, 200), st.booleans())
def test_report_keeps_to_its_width(width: int, pictures: bool) -> None:  # noqa: FBT001
    """No line is wider than asked for, pictures (75 columns) aside."""
    shown = plain(*EVERYTHING.runs, width=width, pictures=pictures)
    limit = max(width, 75) if pictures else width
    assert [] == [line for line in shown.splitlines() if len(line) > limit or line != line.rstrip()]
