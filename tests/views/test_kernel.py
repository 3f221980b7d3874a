"""Pictures: what is never wider than a commit message, never out of order, and never left out."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from qmodel.result import Change, Event, MeasureResult, PropertyResult, Report, Run, Step, ThreadInfo, Trace, Verdict
from qmodel.views import kernel
from tests.views.samples import XMIT0, XMIT1, first_only, measured, outcome, run, tail

KINDS = ("lock", "unlock", "load", "store", "list", "wire", "softirq", "wait")


def event(
    thread: int, text: str, kind: str = "load", *, quiet: bool = False, changes: tuple[Change, ...] = ()
) -> Event:
    """Return an event of which only this matters."""
    writes = ("lock",) if kind in ("lock", "unlock") else ()
    return Event(thread, "f", text, kind, "m.py", 1, text, changes, (), writes, quiet=quiet)


def run_of(
    events: list[Event], threads: tuple[ThreadInfo, ...], initial: tuple[tuple[str, str], ...] = ()
) -> tuple[Run, PropertyResult]:
    """Return a run that violates a property by these events, one a step."""
    trace = Trace(tuple(Step(e.thread, 0, (e,)) for e in events), 0, initial, ("Violated: p.",))
    prop = PropertyResult("p", "", Verdict.REFUTED, "", trace)
    return run("v", outcome(Verdict.REFUTED, threads, prop), None), prop


def rows(events: list[Event], *threads: ThreadInfo, full: bool = False) -> list[str]:
    """Return the rows of the picture of these events, without the heads."""
    return kernel.picture(*run_of(events, threads), full=full).split("\n\n")[1].split("\n")[1:]


words = st.text(st.characters(codec="utf-8"), max_size=60)
identifiers = st.from_regex(r"[a-z_]{1,40}", fullmatch=True)


@st.composite
def any_runs(draw: st.DrawFn) -> tuple[Run, PropertyResult]:
    """Runs of up to 20 threads with long names, odd texts and any changes."""
    threads = draw(
        st.lists(
            st.builds(
                ThreadInfo, identifiers, st.integers(-1, 12), st.sampled_from(("task", "softirq", "environment"))
            ),
            min_size=1,
            max_size=20,
        )
    )
    changes = st.lists(st.builds(Change, identifiers, words, words), max_size=3).map(tuple)
    events = st.builds(
        lambda thread, text, kind, quiet, changed: event(thread, text, kind, quiet=quiet, changes=changed),
        st.integers(0, len(threads) - 1),
        words,
        st.sampled_from(KINDS),
        st.booleans(),
        changes,
    )
    initial = st.lists(st.tuples(identifiers, words), max_size=4).map(tuple)
    return run_of(draw(st.lists(events, max_size=25)), tuple(threads), draw(initial))


@settings(deadline=None)
@given(any_runs(), st.booleans())
def test_never_wider_than_a_commit_message(made: tuple[Run, PropertyResult], full: bool) -> None:  # noqa: FBT001
    """Whatever the names, texts and number of CPUs: printable ASCII in 75 columns, and no blanks at a line's end."""
    for line in kernel.picture(*made, full=full).split("\n"):
        assert max(len(line), 75) == 75
        assert re.fullmatch(r"[ -~]*", line)
        assert line.rstrip() == line


TOKENS = st.lists(
    st.tuples(st.integers(0, 3), st.sampled_from(KINDS), st.booleans()).map(
        lambda t: event(t[0], "", t[1], quiet=t[2])
    ),
    min_size=1,
    max_size=30,
).map(lambda events: [event(e.thread, f"e{i}_", e.kind, quiet=e.quiet) for i, e in enumerate(events)])
FOUR = (XMIT0, XMIT1, ThreadInfo("net_tx_action", 1, "softirq"), ThreadInfo("waker", -1, "environment"))


@settings(deadline=None)
@given(TOKENS)
def test_full_shows_every_event_in_the_order_of_the_trace(events: list[Event]) -> None:
    """With `full`, rows and events are the same in number and order."""
    shown = re.findall(r"\be\d+_", "\n".join(rows(events, *FOUR, full=True)))
    assert [e.text for e in events] == shown


@settings(deadline=None)
@given(TOKENS)
def test_short_shows_what_is_not_quiet_in_the_order_of_the_trace(events: list[Event]) -> None:
    """Without `full`, quiet events go, others stay in order; an unlock may stand in the row of its lock."""
    lines = "\n".join(rows(events, *FOUR))
    shown = re.findall(r"\be\d+_", lines)
    loud = [e for e in events if not e.quiet or e is events[-1]]
    folded = [e for e in loud if e.text not in shown]
    assert [e.text for e in loud if e not in folded] == shown
    assert {"unlock"} >= {e.kind for e in folded}
    assert len(re.findall(r"; unlock|[.]{3} unlock", lines)) >= len(folded)


@settings(deadline=None)
@given(TOKENS)
def test_never_two_rows_of_dots(events: list[Event]) -> None:
    """What is left out on several CPUs at once is one row, not several."""
    dots = [set(line.split()) == {"..."} for line in rows(events, *FOUR)]
    assert (True, True) not in set(pairwise(dots))


@settings(deadline=None)
@given(TOKENS)
def test_events_start_in_the_column_of_their_cpu(events: list[Event]) -> None:
    """A row starts where the head of its CPU starts, also where columns overlap."""
    head, *lines = kernel.picture(*run_of(events, FOUR), full=True).split("\n\n")[1].split("\n")
    starts = {thread: head.find(f"CPU{FOUR[thread].cpu}") for thread in (0, 1, 2)} | {3: head.find("(waker)")}
    rows_of = {m[0]: m.start() for line in lines if (m := re.search(r"e\d+_", line))}
    assert [starts[e.thread] for e in events] == [rows_of[e.text] for e in events]


def test_only_cpus_with_events_have_a_column() -> None:
    """A CPU that does nothing in the trace is not drawn."""
    assert "CPU0" not in kernel.picture(*run_of([event(1, "x")], (XMIT0, XMIT1)))


def test_the_last_event_is_always_shown() -> None:
    """The event that violates the property is shown, quiet or not."""
    assert ["...", "b"] == rows([event(0, "a", quiet=True), event(0, "b", quiet=True)], XMIT0)


def test_left_out_on_two_cpus_is_one_row() -> None:
    """Quiet events of two CPUs in succession share a row of dots, each in its column."""
    shown = rows([event(0, "a", quiet=True), event(1, "b", quiet=True), event(1, "c")], XMIT0, XMIT1)
    assert [["...", "..."], ["c"]] == [line.split() for line in shown]


def test_lock_and_unlock_with_only_quiet_between_are_one_row() -> None:
    """A critical section in which nothing matters is one row."""
    section = [event(0, "spin_lock(&l)", "lock"), event(0, "q", quiet=True), event(0, "spin_unlock(&l)", "unlock")]
    assert ["spin_lock(&l) ... unlock", "x"] == rows([*section, event(0, "x")], XMIT0)


def test_empty_critical_section_is_one_row() -> None:
    """A critical section with nothing in it shows no dots."""
    section = [event(0, "spin_lock(&l)", "lock"), event(0, "spin_unlock(&l)", "unlock")]
    assert ["spin_lock(&l); unlock", "x"] == rows([*section, event(0, "x")], XMIT0)


def test_lock_and_unlock_around_another_thread_are_two_rows() -> None:
    """A critical section that another thread's event falls into is not folded, even if that event is quiet."""
    section = [event(0, "lock", "lock"), event(1, "q", quiet=True), event(0, "unlock", "unlock"), event(0, "x")]
    assert ["lock", "...", "unlock", "x"] == [line.strip() for line in rows(section, XMIT0, XMIT1)]


def test_unlock_that_violates_is_a_row_of_its_own() -> None:
    """The last event is not folded into the row of its lock."""
    section = [event(0, "lock", "lock"), event(0, "q", quiet=True), event(0, "unlock", "unlock")]
    assert ["lock", "...", "unlock"] == rows(section, XMIT0)


def test_only_the_unlock_of_the_same_lock_is_folded() -> None:
    """Locks that are handed over from one to the next are no critical section."""
    other = replace(event(0, "spin_unlock(&b)", "unlock"), writes=("b",))
    events = [event(0, "spin_lock(&a)", "lock"), other, event(0, "x")]
    assert ["spin_lock(&a)", "spin_unlock(&b)", "x"] == rows(events, XMIT0)


def test_quiet_lock_is_left_out() -> None:
    """A lock that does not matter is not shown for the sake of its unlock."""
    section = [event(0, "lock", "lock", quiet=True), event(0, "unlock", "unlock", quiet=True)]
    assert ["...", "x"] == rows([*section, event(0, "x")], XMIT0)


def test_threads_without_a_cpu_come_last_each_in_its_column() -> None:
    """Environment threads that run on no CPU share no column."""
    threads = (ThreadInfo("waker", -1, "environment"), ThreadInfo("freezer", -1, "environment"), XMIT1)
    head = kernel.picture(*run_of([event(n, "x") for n in (0, 1, 2)], threads)).split("\n\n")[1].split("\n")[0]
    assert ["CPU1 (dev_queue_xmit)", "(waker)", "(freezer)"] == re.split(" {2,}", head)


def test_long_texts_of_many_cpus_start_apart() -> None:
    """Texts that no column is wide enough for are shortened, and still start in columns of their own."""
    threads = tuple(ThreadInfo("f", cpu, "task") for cpu in range(4))
    shown = rows([event(n, "x" * 80) for n in range(4)], *threads)
    assert [0, 14, 28, 42] == [line.index("x") for line in shown]
    assert [75, 75, 75, 75] == [len(line) for line in shown]


def test_state_begins_behind_every_head() -> None:
    """The head of the state stands behind that of a CPU whose texts are shorter than its name."""
    threads = (XMIT0, ThreadInfo("f" * 30, 1, "task"))
    changed = (Change("qlen", "0", "1"),)
    events = [event(0, "x" * 40, changes=changed), event(1, "y", changes=changed)]
    head, *shown = kernel.picture(*run_of(events, threads)).split("\n\n")[1].split("\n")
    assert ["CPU0 (dev_queue_xmit)", f"CPU1 ({'f' * 30})", "state"] == re.split(" {2,}", head)
    assert [head.index("state")] * 2 == [line.index("qlen") for line in shown]


def test_softirq_and_return_are_told() -> None:
    """Another thread that begins to act in a column says so, and so does the one that goes on."""
    softirq = ThreadInfo("net_tx_action", 0, "softirq")
    shown = rows([event(0, "a"), event(1, "b"), event(0, "c")], XMIT0, softirq)
    assert ["a", "<softirq net_tx_action>", "b", "<back to dev_queue_xmit>", "c"] == shown


def test_first_act_of_a_second_task_is_no_return() -> None:
    """A task that begins after the softirq in its column is named, not called a return."""
    softirq = ThreadInfo("net_tx_action", 0, "softirq")
    assert ["b", "<dev_queue_xmit>", "a"] == rows([event(1, "b"), event(0, "a")], XMIT0, softirq)


def test_state_that_the_text_tells_is_not_repeated() -> None:
    """`qlen = 2` needs no `qlen: 2` beside it; a list's new content is always shown."""
    told = event(0, "qlen = 2", changes=(Change("qlen", "1", "2"),))
    untold = event(0, "qlen++", changes=(Change("qlen", "2", "3"),))
    of_list = event(0, "l = [a0]", changes=(Change("l", "[]", "[a0]"),))
    shown = [line.split() for line in rows([told, untold, of_list], XMIT0)]
    assert [["qlen", "=", "2"], ["qlen++", "qlen:", "3"], ["l", "=", "[a0]", "l:", "[a0]"]] == shown


def test_a_value_within_another_word_is_not_told() -> None:
    """The 1 of `a1` does not stand for the counter's 1."""
    shown = rows([event(0, "put(a1)", changes=(Change("qlen", "0", "1"),))], XMIT0)
    assert [["put(a1)", "qlen:", "1"]] == [line.split() for line in shown]


def test_long_names_lose_their_middle() -> None:
    """A text that would leave the page keeps its arguments and both ends of its name."""
    name = "__skb_" + "very_" * 20 + "queue_tail"
    assert "_queue_tail(&gso_skb, a0)" in rows([event(0, f"{name}(&gso_skb, a0)")], XMIT0)[0]


def test_initial_state_is_told_where_it_is_not_empty() -> None:
    """Variables that start as 0, false, NULL, free or empty are not mentioned."""
    initial = (("a", "0"), ("b", "false"), ("c", "[]"), ("d", "free"), ("e", "[0, 0]"), ("f", "[a0]"), ("g", "XOFF"))
    title = kernel.picture(*run_of([event(0, "x")], (XMIT0,), initial)).split("\n\n")[0]
    assert "requeue/v: memory=sc\nInitially: f = [a0], g = XOFF" == title


def test_violation_in_the_initial_state_has_no_columns() -> None:
    """A trace without a step is told by its story."""
    assert "requeue/v: memory=sc\n\nViolated: p.\n" == kernel.picture(*run_of([], (XMIT0,)))


def test_witness_of_an_incomplete_search_is_no_maximum() -> None:
    """The greatest value that was reached is not called the maximum where states are left."""
    found = outcome(Verdict.INCONCLUSIVE, (XMIT0,), why="bound reached")
    text = kernel.witness(run("v", found, None), MeasureResult("m", "", 4))
    assert "requeue/v: memory=sc\n\nm = 4 was reached; the search is not complete.\n" == text


def test_pictures_of_a_report_are_those_of_refuted_properties() -> None:
    """One picture for each refuted property of each run, none for others."""
    report = Report("0.1.0", (tail(), measured(), first_only()))
    assert ["requeue/tail", "requeue/first-only"] == re.findall(
        r"^\S+/\S+(?=: cpus)", kernel.pictures(report), re.MULTILINE
    )
