"""Pictures: what is never wider than a commit message, never out of order, and never left out."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qmodel.result import Change, Event, MeasureResult, PropertyResult, Report, Run, Step, ThreadInfo, Trace, Verdict
from qmodel.views import kernel
from tests.views.samples import XMIT0, XMIT1, first_only, measured, outcome, run, tail

KINDS = ("lock", "unlock", "load", "store", "list", "wire", "softirq", "wait", "fail")
VIOLATES = "  /* violates p */"


def event(
    thread: int, text: str, kind: str = "load", *, quiet: bool = False, changes: tuple[Change, ...] = ()
) -> Event:
    """Return an event of which only this matters."""
    return Event(thread, "f", text, kind, "m.py", 1, text, changes, quiet=quiet)


def lock(thread: int, name: str, *, quiet: bool = False) -> Event:
    """Return a spin_lock()."""
    return event(thread, f"spin_lock(&{name})", "lock", quiet=quiet)


def unlock(thread: int, name: str, *, quiet: bool = False) -> Event:
    """Return a spin_unlock()."""
    return event(thread, f"spin_unlock(&{name})", "unlock", quiet=quiet)


def entry(thread: int, name: str = "net_tx_action") -> Event:
    """Return the beginning of a run of a softirq, as engines write it."""
    return event(thread, f"<softirq {name}>", "softirq", quiet=True)


def run_of(
    events: list[Event],
    threads: tuple[ThreadInfo, ...],
    initial: tuple[tuple[str, str], ...] = (),
    *,
    name: str = "p",
    story: tuple[str, ...] = ("Violated: p.",),
) -> tuple[Run, PropertyResult]:
    """Return a run that violates a property by these events, one a step."""
    trace = Trace(tuple(Step(e.thread, 0, (e,)) for e in events), 0, initial, story)
    prop = PropertyResult(name, "", Verdict.REFUTED, "", trace)
    return run("v", outcome(Verdict.REFUTED, threads, prop), None), prop


def rows(events: list[Event], *threads: ThreadInfo, full: bool = False) -> list[str]:
    """Return the rows of the picture of these events, without the heads and without saying what is violated."""
    blocks = kernel.picture(*run_of(events, threads), full=full).split("\n\n")
    return blocks[1].replace(VIOLATES, "").split("\n")[1:]


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
    """With `full`, each event has a row, in order, and nothing is said to be left out."""
    shown = [m for line in rows(events, *FOUR, full=True) for m in re.findall(r"\be\d+_", line)[:1]]
    assert [e.text for e in events] == shown
    assert "left out" not in kernel.picture(*run_of(events, FOUR), full=True)


@settings(deadline=None)
@given(TOKENS)
def test_short_shows_what_is_not_quiet_in_the_order_of_the_trace(events: list[Event]) -> None:
    """Without `full`, quiet events go, others stay in order; how many went is said."""
    text = kernel.picture(*run_of(events, FOUR))
    shown = re.findall(r"\be\d+_", text)
    assert [e.text for e in events if not e.quiet or e.text == shown[-1]] == shown
    said = re.search(r"^\((\d+) access", text, re.MULTILINE)
    assert len(events) - len(shown) == (int(said[1]) if said else 0)


@settings(deadline=None)
@given(TOKENS)
def test_a_row_is_an_event_or_two_locks(events: list[Event]) -> None:
    """At most two events share a row: a lock that is given back and one that is taken, by one thread."""
    by_text = {e.text: e for e in events}
    for line in rows(events, *FOUR):
        found = [by_text[text] for text in re.findall(r"\be\d+_", line)]
        if len(found) > 1:
            assert {"lock", "unlock"} == {e.kind for e in found}
            assert 1 == len({e.thread for e in found})
            assert 2 == len(found)
            assert events[-1] not in found


@settings(deadline=None)
@given(TOKENS)
def test_events_start_in_the_column_of_their_cpu(events: list[Event]) -> None:
    """A row starts where the head of its CPU starts, also where columns overlap."""
    head, *lines = kernel.picture(*run_of(events, FOUR), full=True).split("\n\n")[1].split("\n")
    starts = {thread: head.find(f"CPU{FOUR[thread].cpu}") for thread in (0, 1, 2)} | {3: head.find("(waker)")}
    rows_of = {m[0]: m.start() for line in lines if (m := re.search(r"\be\d+_", line))}
    assert [starts[e.thread] for e in events] == [rows_of[e.text] for e in events]


def test_only_cpus_with_events_have_a_column() -> None:
    """A CPU that does nothing in the trace is not drawn."""
    assert "CPU0" not in kernel.picture(*run_of([event(1, "x")], (XMIT0, XMIT1)))


def test_a_cpu_whose_every_event_is_left_out_has_no_column() -> None:
    """What has no row has no column; the others keep theirs."""
    shown = kernel.picture(*run_of([event(0, "q", quiet=True), event(1, "x"), event(2, "y")], FOUR))
    assert "CPU0" not in shown
    assert ["x", "<softirq net_tx_action>", "y"] == rows(
        [event(0, "q", quiet=True), event(1, "x"), event(2, "y")], *FOUR
    )


@pytest.mark.parametrize(
    ("quiet", "said"),
    [
        (0, ""),
        (1, "(1 access that does not bear on this is left out; --full shows it)\n\n"),
        (12, "(12 accesses that do not bear on this are left out; --full shows them)\n\n"),
    ],
)
def test_what_is_left_out_is_counted_below(quiet: int, said: str) -> None:
    """Quiet events leave no row, but a line under the picture."""
    events = [*(event(0, f"q{n}", quiet=True) for n in range(quiet)), event(0, "x")]
    text = kernel.picture(*run_of(events, (XMIT0,)))
    assert f"\n\nCPU0 (dev_queue_xmit)\nx{VIOLATES}\n\n{said}Violated: p.\n" == text.removeprefix(
        "requeue/v: memory=sc"
    )


def test_the_last_event_is_always_shown() -> None:
    """The event that violates the property is shown, quiet or not."""
    assert ["b"] == rows([event(0, "a", quiet=True), event(0, "b", quiet=True)], XMIT0)


def test_a_quiet_end_of_bottom_halves_is_not_what_goes_wrong() -> None:
    """Behind the last access to memory, `local_bh_enable()` has no row; the row before it is the last."""
    events = [lock(0, "l"), unlock(0, "l"), event(0, "local_bh_enable()", "softirq", quiet=True)]
    assert ["spin_lock(&l)", "spin_unlock(&l)"] == rows(events, XMIT0)
    assert f"spin_unlock(&l){VIOLATES}\n" in kernel.picture(*run_of(events, (XMIT0,)))


# --- what is violated -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["store", "fail"])
def test_the_last_row_says_what_it_violates(kind: str) -> None:
    """An access that was made, or that failed, is marked with the property; those before it are not."""
    shown = kernel.picture(*run_of([event(0, "a"), event(0, "b", kind)], (XMIT0,)))
    assert "\na\nb  /* violates p */\n\n" in shown


def test_a_comment_is_not_followed_by_another() -> None:
    """A text that has a comment gets none."""
    assert "x /* y */\n" in kernel.picture(*run_of([event(0, "x /* y */", "fail")], (XMIT0,)))


def test_what_is_violated_is_left_out_where_there_is_no_room() -> None:
    """A text is not shortened for the sake of the remark."""
    long = "f(" + "x, " * 19 + "y)"
    shown = kernel.picture(*run_of([event(0, long)], (XMIT0,)))
    assert f"\n{long}\n" in shown


def test_a_remark_keeps_clear_of_the_state() -> None:
    """The last row has its text, the remark and the state, in this order and apart."""
    shown = kernel.picture(*run_of([event(0, "qlen++", changes=(Change("qlen", "0", "1"),))], (XMIT0,)))
    assert re.search(r"^qlen\+\+  /\* violates p \*/ {2,}qlen: 1$", shown, re.MULTILINE)


def test_a_remark_gives_way_to_the_state() -> None:
    """Where text, remark and state do not fit beside one another, the remark goes and nothing is shortened."""
    changed = (Change("child", "[]", "[a0 a1 a2 a3 a4 a5]"),)
    shown = rows([event(0, "x"), event(1, "y" * 24, changes=changed)], XMIT0, XMIT1)
    assert [["x"], ["y" * 24, "child: [a0 a1 a2 a3 a4 a5]"]] == [re.split(" {2,}", line.strip()) for line in shown]


def test_deadlock_says_who_waits() -> None:
    """In a deadlock, the locks that are waited for are marked, and the end is called by its name."""
    events = [event(0, "spin_lock(&b)", "wait"), event(1, "waits for x == 1", "wait")]
    shown = kernel.picture(*run_of(events, (XMIT0, XMIT1), name="deadlock"))
    assert "\nspin_lock(&b)  /* waits */\n" in shown
    assert "waits for x == 1\n\n *** DEADLOCK ***\n\nViolated: p.\n" in shown
    assert "violates" not in shown


def test_witness_violates_nothing() -> None:
    """The run to a measure's maximum ends in an access like any other."""
    made, prop = run_of([event(0, "x")], (XMIT0,))
    assert "\nx\n\nViolated: p. m = 1 was" in kernel.witness(
        replace(made, outcome=replace(made.outcome, complete=False)), MeasureResult("m", "", 1, prop.trace)
    )


# --- locks ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([lock(0, "l"), unlock(0, "l")], ["spin_lock(&l); spin_unlock(&l)"]),
        ([lock(0, "l"), event(0, "q", quiet=True), unlock(0, "l")], ["spin_lock(&l); spin_unlock(&l)"]),
        ([unlock(0, "a"), lock(0, "b")], ["spin_unlock(&a); spin_lock(&b)"]),
        ([unlock(0, "l"), lock(0, "l")], ["spin_unlock(&l)", "spin_lock(&l)"]),
        ([lock(0, "a"), lock(0, "b")], ["spin_lock(&a)", "spin_lock(&b)"]),
        ([lock(0, "a"), unlock(0, "a"), lock(0, "b")], ["spin_lock(&a); spin_unlock(&a)", "spin_lock(&b)"]),
        ([lock(0, "l"), event(0, "x"), unlock(0, "l")], ["spin_lock(&l)", "x", "spin_unlock(&l)"]),
        ([lock(0, "l", quiet=True), unlock(0, "l", quiet=True)], []),
        (
            [event(0, "spin_trylock(&l) = true", "lock"), unlock(0, "l")],
            ["spin_trylock(&l) = true", "spin_unlock(&l)"],
        ),
    ],
)
def test_giving_back_and_taking_share_a_row(events: list[Event], expected: list[str]) -> None:
    """A section in which nothing matters is one row, and so are the two ends of neighbouring sections."""
    assert [*expected, "x"] == rows([*events, event(0, "x")], XMIT0)


def test_full_has_a_row_for_each_lock() -> None:
    """With `full`, nothing shares a row."""
    events = [lock(0, "l"), unlock(0, "l"), event(0, "x")]
    assert ["spin_lock(&l)", "spin_unlock(&l)", "x"] == rows(events, XMIT0, full=True)


def test_lock_and_unlock_around_another_thread_are_two_rows() -> None:
    """A section that another thread's row falls into is not one row."""
    shown = rows([lock(0, "l"), event(1, "y"), unlock(0, "l"), event(0, "x")], XMIT0, XMIT1)
    assert ["spin_lock(&l)", "y", "spin_unlock(&l)", "x"] == [line.strip() for line in shown]


def test_unlock_that_violates_is_a_row_of_its_own() -> None:
    """The last event shares no row: it is what goes wrong."""
    assert ["spin_lock(&l)", "spin_unlock(&l)"] == rows([lock(0, "l"), unlock(0, "l")], XMIT0)


def test_two_locks_in_a_row_keep_out_of_the_next_cpu() -> None:
    """Where two would run into the column of another CPU, each has its row; the state's column is free there."""
    changed = (Change("child", "[]", "[" + "a0 " * 6 + "a0]"),)
    events = [lock(n, "root_lock") for n in (0, 1)]
    events = [step for e in events for step in (e, unlock(e.thread, "root_lock"))]
    shown = rows([*events, event(1, "x", changes=changed)], XMIT0, XMIT1)
    assert ["spin_lock(&root_lock)", "spin_unlock(&root_lock)", "spin_lock(&root_lock); spin_unlock(&root_lock)"] == [
        line.strip() for line in shown[:3]
    ]


# --- columns --------------------------------------------------------------------------------------------------------


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


def test_heads_of_two_lines_have_the_names_below() -> None:
    """Where heads do not fit on a line, the CPUs stand above the names; a thread without a CPU has its name only."""
    threads = (*(ThreadInfo("dev_queue_xmit", cpu, "task") for cpu in range(3)), ThreadInfo("waker", -1, "environment"))
    shown = kernel.picture(*run_of([event(n, "x" * 60) for n in range(4)], threads)).split("\n\n")[1]
    cpus, names = (line.split() for line in shown.split("\n")[:2])
    assert ["CPU0", "CPU1", "CPU2"] == cpus
    assert (4, "(waker)") == (len(names), names[-1])


def test_state_begins_behind_every_head() -> None:
    """The head of the state stands behind that of a CPU whose texts are shorter than its name."""
    threads = (XMIT0, ThreadInfo("f" * 30, 1, "task"))
    changed = (Change("qlen", "0", "1"),)
    events = [event(0, "x" * 40, changes=changed), event(1, "y", changes=changed)]
    head, *shown = kernel.picture(*run_of(events, threads)).split("\n\n")[1].split("\n")
    assert ["CPU0 (dev_queue_xmit)", f"CPU1 ({'f' * 30})", "state"] == re.split(" {2,}", head)
    assert [head.index("state")] * 2 == [line.index("qlen") for line in shown]


SOFTIRQ0 = ThreadInfo("net_tx_action", 0, "softirq")


@pytest.mark.parametrize("full", [False, True])
def test_each_run_of_a_softirq_is_told_once(full: bool) -> None:  # noqa: FBT001
    """A second run is told although the same thread acted last in the column; going on is not."""
    events = [event(0, "a"), entry(1), event(1, "b"), event(1, "c"), entry(1), event(1, "d"), event(0, "e")]
    told = "<softirq net_tx_action>"
    assert ["a", told, "b", "c", told, "d", "<back to dev_queue_xmit>", "e"] == rows(events, XMIT0, SOFTIRQ0, full=full)


def test_a_run_is_told_where_it_begins() -> None:
    """What another CPU does between the entry and the first access stands between them."""
    events = [event(0, "a"), entry(2), event(1, "b"), event(2, "c")]
    shown = rows(events, XMIT0, XMIT1, SOFTIRQ0)
    assert ["a", "<softirq net_tx_action>", "b", "c"] == [line.strip() for line in shown]


def test_a_run_of_which_nothing_is_shown_is_left_out() -> None:
    """A softirq that does nothing to the point has no row, and the task in its column does not come back from it."""
    events = [event(0, "a"), entry(1), event(1, "q", quiet=True), event(0, "b")]
    assert ["a", "b"] == rows(events, XMIT0, SOFTIRQ0)
    assert "\n(2 accesses " in kernel.picture(*run_of(events, (XMIT0, SOFTIRQ0)))
    assert ["a", "<softirq net_tx_action>", "c"] == rows([*events[:3], entry(1), event(1, "c")], XMIT0, SOFTIRQ0)


def test_a_column_that_begins_with_a_softirq_is_named_by_its_cpu() -> None:
    """The row tells what runs; the head need not say it as well."""
    shown = kernel.picture(*run_of([entry(0), event(0, "a")], (SOFTIRQ0,)))
    assert "\nCPU0\n<softirq net_tx_action>\na" in shown


def test_a_column_is_named_after_who_acts_first_shown_or_not() -> None:
    """A task that did something before the softirq came in is in the head."""
    events = [event(0, "q", quiet=True), entry(1), event(1, "a"), event(0, "b")]
    shown = kernel.picture(*run_of(events, (XMIT0, SOFTIRQ0)))
    assert "\nCPU0 (dev_queue_xmit)\n<softirq net_tx_action>\na\n<back to dev_queue_xmit>\nb" in shown


def test_softirq_and_return_are_told_without_an_entry() -> None:
    """Another thread that begins to act in a column says so, and so does the one that goes on."""
    shown = rows([event(0, "a"), event(1, "b"), event(0, "c")], XMIT0, SOFTIRQ0)
    assert ["a", "<softirq net_tx_action>", "b", "<back to dev_queue_xmit>", "c"] == shown


def test_first_act_of_a_second_task_is_no_return() -> None:
    """A task that begins after the softirq in its column is named, not called a return."""
    assert ["b", "<dev_queue_xmit>", "a"] == rows([event(1, "b"), event(0, "a")], XMIT0, SOFTIRQ0)


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


def test_a_single_cpu_has_the_state_behind_its_widest_row() -> None:
    """The state keeps clear of two locks that share a row, but not of a remark that has nothing beside it."""
    changed = (Change("child", "[]", "[a0]"),)
    events = [unlock(0, "root_lock"), lock(0, "tx_lock"), event(0, "x", changes=changed), event(0, "y" * 40)]
    head, locks, *_ = kernel.picture(*run_of(events, (XMIT0,))).split("\n\n")[1].split("\n")
    assert "spin_unlock(&root_lock); spin_lock(&tx_lock)" == locks
    assert len(locks) + 4 == head.index("state")


def test_story_is_one_paragraph_of_sentences() -> None:
    """Sentences follow one another, each with its full stop; packets of a list stay in one line."""
    story = ("It is taken out one by one ", "dev_requeue_skb() leaves a list gso_skb as [a1 a0]: gso_skb = [a1 a0].")
    text = kernel.picture(*run_of([event(0, "x")], (XMIT0,), story=story)).split("\n\n")[-1]
    first = "It is taken out one by one. dev_requeue_skb() leaves a list gso_skb as"
    assert f"{first}\n[a1 a0]: gso_skb = [a1 a0].\n" == text


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
