"""From rows to lines: how the columns of a picture share the width of a page.

Columns are as wide as their content. Where they do not fit side by side they overlap: as a row holds one event, its
text may run on over the idle cells to its right, and where it starts shows whose event it is. The first that fits:

1. a column per CPU, and a last one with the shared state that each event changed;
2. the same, the columns of the CPUs overlapping, but no head shortened;
3. the columns of the CPUs alone, and what changed below its event;
4. the same, overlapping; what would leave the page is shortened.
"""

from __future__ import annotations

from itertools import accumulate

from qmodel.views.lanes import Lane, Row
from qmodel.views.words import shorten

WIDTH = 75
_GAPS = (4, 3, 2)
_GAP = _GAPS[-1]
_NARROWEST = 14
"""How far apart overlapping columns begin at least, where there are few enough."""
_STATE = "state"


def draw(lanes: list[Lane], rows: list[Row]) -> list[str]:
    """Return the picture of some rows, its heads first."""
    heads = [len(lane.head) for lane in lanes]
    widths = [max(head, _widest(rows, n)) for n, head in enumerate(heads)]
    starts = _with_state(heads, widths, rows)
    if starts:
        last = len(lanes)
        head = {**dict(enumerate(lane.head for lane in lanes)), last: _STATE}
        return [_line(head, starts), *(_line({**row.cells, last: _state(row)}, starts) for row in rows)]
    starts = _side_by_side(widths) or _overlapping(widths, heads) or _squeezed(widths)
    lines = _heads(lanes, starts)
    for row in rows:
        lines += [_line(row.cells, starts), *_below(row, starts)]
    return lines


def _with_state(heads: list[int], widths: list[int], rows: list[Row]) -> list[int] | None:
    """Return where columns begin, the last of them for the state, or None where it does not fit or is not needed."""
    changing = [row for row in rows if row.notes]
    if not changing:
        return None
    state = max(len(_STATE), *(len(_state(row)) for row in changing))
    starts = _side_by_side([*widths, state])
    if starts:
        return starts
    beside = [_widest(changing, n) for n in range(len(heads))]
    beside[-1] = max(beside[-1], heads[-1])
    starts = _overlapping([max(width, text + _GAP + state) for width, text in zip(widths, beside, strict=True)], heads)
    if starts:
        starts.append(max(start + width for start, width in zip(starts, beside, strict=True)) + _GAP)
    return starts


def _widest(rows: list[Row], lane: int) -> int:
    return max((len(row.cells.get(lane, "")) for row in rows), default=0)


def _state(row: Row) -> str:
    return ", ".join(row.notes)


def _side_by_side(widths: list[int]) -> list[int] | None:
    """Return where columns of these widths begin, or None where they do not fit."""
    for gap in _GAPS:
        if sum(widths) + gap * (len(widths) - 1) <= WIDTH:
            return [0, *accumulate(width + gap for width in widths[:-1])]
    return None


def _overlapping(widths: list[int], heads: list[int]) -> list[int] | None:
    """Return where columns begin of which only the heads do not overlap, or None where a text leaves the page."""
    starts: list[int] = []
    end = WIDTH
    for width, head in zip(reversed(widths), reversed(heads), strict=True):
        starts.insert(0, min(WIDTH - width, end - head))
        end = starts[0] - _GAP
    return [0, *starts[1:]] if starts[0] >= 0 else None


def _squeezed(widths: list[int]) -> list[int]:
    """Return columns as far to the left as their texts need and their number allows, spread evenly."""
    narrowest = min(_NARROWEST, WIDTH // len(widths))
    starts: list[int] = []
    after = WIDTH
    for number in reversed(range(len(widths))):
        even = after * number // (number + 1)
        after = max(min(even, WIDTH - widths[number]), number * narrowest)
        starts.insert(0, after)
    return starts


def _heads(lanes: list[Lane], starts: list[int]) -> list[str]:
    """Return the heads: `CPU0 (dev_queue_xmit)` on one line if all fit, else on two."""
    heads = dict(enumerate(lane.head for lane in lanes))
    line = _line(heads, starts)
    if all(head in line for head in heads.values()):
        return [line]
    parts = {number: head.rpartition(" ") for number, head in heads.items()}
    return [_line({n: p[0] for n, p in parts.items()}, starts), _line({n: p[2] for n, p in parts.items()}, starts)]


def _line(cells: dict[int, str], starts: list[int]) -> str:
    """Return a line: each text up to where the next one of the line begins."""
    filled = sorted(number for number, text in cells.items() if text)
    line = ""
    for number, following in zip(filled, [*filled[1:], None], strict=True):
        end = WIDTH if following is None else starts[following] - _GAP
        line = line.ljust(starts[number]) + shorten(cells[number], end - starts[number])
    return line.rstrip()


def _below(row: Row, starts: list[int]) -> list[str]:
    """Return what an event changed as lines of its own, indented below it."""
    if not row.notes:
        return []
    start = starts[next(iter(row.cells))] + 4
    return [(" " * start + shorten(note, WIDTH - start)).rstrip() for note in row.notes]
