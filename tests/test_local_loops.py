"""Steps with a loop in them, and what stands behind it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from qmodel.result import Outcome

HEAD = """
from qmodel.lang import Int, Model, WRITE_ONCE, atomic, choose, thread, u8

class Some(Model):
    x = Int(0, high=9)
    y = Int(0, high=9)
"""


def test_choice_behind_a_local_loop_has_both_alternatives(check_source: Callable[..., Outcome]) -> None:
    """A choice in a step that also has a loop in it leads to a state for each answer."""
    outcome = check_source(
        HEAD
        + """
    @thread
    def run(m):
        with atomic():
            WRITE_ONCE(m.x, 1)
            i: u8 = 0
            while i < 3:
                i += 1
            if choose():
                WRITE_ONCE(m.y, i)
"""
    )
    assert (3, 2) == (outcome.states, outcome.transitions)


def test_division_by_a_constant_zero_is_a_violation(check_source: Callable[..., Outcome]) -> None:
    """Where a divisor is known to be 0 on a way, the division there is a violation, and no failure of the tool."""
    outcome = check_source(
        HEAD
        + """
    @thread
    def run(m):
        WRITE_ONCE(m.x, 6)
        n = 0
        if m.x == 6:
            WRITE_ONCE(m.y, 6 // n)
"""
    )
    assert {"domain"} == {p.name for p in outcome.properties if p.verdict.value == "refuted"}
