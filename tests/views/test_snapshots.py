"""The views' whole output for results written by hand; `stored` says how to update the stored files."""

from __future__ import annotations

from qmodel.result import Report
from qmodel.views import json_view, kernel, text
from tests.views.samples import SAMPLES, deadlock, first_only, inconclusive, measured, softirq, tail
from tests.views.stored import snapshot


def test_tail_picture() -> None:
    """Two CPUs: an event a row, the lists beside them, each run of the softirq told, and how much is left out."""
    run = tail()
    actual = kernel.picture(run, run.outcome.properties[0])
    assert snapshot("tail.txt", actual) == actual


def test_tail_picture_in_full() -> None:
    """`full` shows the events that were left out."""
    run = tail()
    actual = kernel.picture(run, run.outcome.properties[0], full=True)
    assert snapshot("tail-full.txt", actual) == actual


def test_first_only_picture() -> None:
    """One CPU: one column and the state beside it."""
    run = first_only()
    actual = kernel.picture(run, run.outcome.properties[0])
    assert snapshot("first-only.txt", actual) == actual


def test_deadlock_picture() -> None:
    """A deadlock ends with what each thread waits for, as lockdep prints it."""
    run = deadlock()
    actual = kernel.picture(run, run.outcome.properties[1])
    assert snapshot("deadlock.txt", actual) == actual


def test_softirq_picture() -> None:
    """Three CPUs: columns overlap, changes stand below, a softirq and the return from it are told in their column."""
    run = softirq()
    actual = kernel.picture(run, run.outcome.properties[2])
    assert snapshot("softirq.txt", actual) == actual


def test_witness_picture() -> None:
    """A measure's witness ends with the maximum."""
    run = measured()
    actual = kernel.witness(run, run.outcome.measures[0])
    assert snapshot("witness.txt", actual) == actual


def test_inconclusive_report() -> None:
    """A run that reached its limit is inconclusive and says why, for itself and for every property."""
    actual = text.report(Report("0.1.0", (inconclusive(),)), color=False, width=80)
    assert snapshot("inconclusive.txt", actual) == actual


def test_report() -> None:
    """All samples in one report at 80 columns."""
    actual = text.report(Report("0.1.0", tuple(make() for make in SAMPLES.values())), color=False, width=80)
    assert snapshot("report.txt", actual) == actual


def test_report_in_color_without_pictures() -> None:
    """Colours are ANSI codes; without pictures, a run that is refuted as expected has its row alone."""
    report = Report("0.1.0", tuple(make() for make in SAMPLES.values()))
    actual = text.report(report, color=True, width=100, pictures=False)
    assert snapshot("report-color.txt", actual) == actual


def test_json() -> None:
    """The document for scripts, with a trace, a measure and nulls."""
    actual = json_view.document(Report("0.1.0", (first_only(), inconclusive(), measured())))
    assert snapshot("report.json", actual) == actual
