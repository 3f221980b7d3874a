"""From rows to lines: how the columns of a picture share the width of a page.

Columns are as wide as their content. Where they do not fit side by side they overlap: as a row holds one event, its
text may run on over the idle cells to its right, and where it starts shows whose event it is. The first that fits:

1. a column per CPU, and a last one with the shared state that each event changed; whatever may share a row does;
2. the same; what may share a row does so where there is room;
3. the same, the columns of the CPUs overlapping, but no head shortened;
4. the columns of the CPUs alone, and what changed below its event;
5. the same, overlapping; what would leave the page is shortened.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import accumulate

from qmodel.views.lanes import Picture, Row
from qmodel.views.words import shorten

WIDTH = 75
_GAPS = (4, 3, 2)
_GAP = _GAPS[-1]
_NARROWEST = 14
"""How far apart overlapping columns begin at least, where there are few enough."""
_STATE = "state"
_JOINT = "; "


def draw(picture: Picture) -> list[str]:
    """Return the lines of a picture, its heads first."""
    heads = [len(head) for head in picture.heads]
    with_state = _with_state(heads, picture.rows)
    if with_state:
        *starts, state = with_state
        lines = [_line({**dict(zip(starts, picture.heads, strict=True)), state: _STATE})]
        for row in _joined(picture.rows, partial(_has_room, starts)):
            width = (state - _GAP if row.notes else WIDTH) - starts[row.lane]
            lines.append(_line({starts[row.lane]: _remarked(row, width), state: _state(row)}))
        return lines
    widths = _widths(heads, picture.rows)
    starts = _side_by_side(widths) or _overlapping(widths, heads) or _squeezed(widths)
    lines = _heads(picture.heads, starts)
    for row in _joined(picture.rows, partial(_has_room, starts)):
        start = starts[row.lane]
        lines.append(_line({start: _remarked(row, WIDTH - start)}))
        lines += [_line({start + 4: note}) for note in row.notes]
    return lines


# --- rows -----------------------------------------------------------------------------------------------------------


def _joined(rows: Sequence[Row], fits: Callable[[Row], bool]) -> list[Row]:
    """Return rows in which those that may and can stand behind the one above do so: two in one at most."""
    joined: list[Row] = []
    for row in rows:
        if row.joins and _JOINT not in joined[-1].text:
            both = replace(joined[-1], text=joined[-1].text + _JOINT + row.text)
            if fits(both):
                joined[-1] = both
                continue
        joined.append(row)
    return joined


def _has_room(starts: Sequence[int], row: Row) -> bool:
    """Tell whether a row ends before the column of the next CPU; the state is idle beside a row that changes none."""
    following = row.lane + 1
    end = starts[following] - _GAP if following < len(starts) else WIDTH
    return starts[row.lane] + len(row.text) <= end


def _remarked(row: Row, width: int) -> str:
    """Return the text with its remark, if that is not too wide."""
    text = f"{row.text}  {row.remark}".rstrip()
    return text if len(text) <= width else row.text


def _state(row: Row) -> str:
    return ", ".join(row.notes)


# --- columns --------------------------------------------------------------------------------------------------------


def _with_state(heads: list[int], rows: Sequence[Row]) -> list[int] | None:
    """Return where columns begin, the last of them for the state, or None where it does not fit or is not needed."""
    changing = [row for row in rows if row.notes]
    if not changing:
        return None
    state = max(len(_STATE), *(len(_state(row)) for row in changing))
    roomy = [replace(row, text=_remarked(row, WIDTH)) if row.notes else row for row in _joined(rows, lambda _: True)]
    for widths in (_widths(heads, roomy), _widths(heads, rows)):
        starts = _side_by_side([*widths, state])
        if starts:
            return starts
    beside = [_widest(changing, n) for n in range(len(heads))]
    beside[-1] = max(beside[-1], heads[-1])
    widths = [max(width, text + _GAP + state) for width, text in zip(_widths(heads, rows), beside, strict=True)]
    starts = _overlapping(widths, heads)
    if starts:
        starts.append(max(start + width for start, width in zip(starts, beside, strict=True)) + _GAP)
    return starts


def _widths(heads: list[int], rows: Sequence[Row]) -> list[int]:
    return [max(head, _widest(rows, lane)) for lane, head in enumerate(heads)]


def _widest(rows: Sequence[Row], lane: int) -> int:
    return max((len(row.text) for row in rows if row.lane == lane), default=0)


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


# --- lines ----------------------------------------------------------------------------------------------------------


def _heads(heads: Sequence[str], starts: list[int]) -> list[str]:
    """Return the heads: `CPU0 (dev_queue_xmit)` on one line if all fit, else on two."""
    line = _line(dict(zip(starts, heads, strict=True)))
    if all(head in line for head in heads):
        return [line]
    parts = [("", head) if head.startswith("(") else head.partition(" ")[::2] for head in heads]
    return [_line(dict(zip(starts, half, strict=True))) for half in zip(*parts, strict=True)]


def _line(cells: dict[int, str]) -> str:
    """Return a line of texts by where they start, each up to where the next begins."""
    filled = sorted(start for start, text in cells.items() if text)
    line = ""
    for start, following in zip(filled, [*filled[1:], None], strict=True):
        end = WIDTH if following is None else following - _GAP
        line = line.ljust(start) + shorten(cells[start], end - start)
    return line.rstrip()
