"""The graph of one step: in what order it is written, and where its ways meet."""

from __future__ import annotations

from collections.abc import Callable, Sequence


class Flow:
    """The graph of one step. order: its nodes, each before those that it goes on to, but for loops.

    meetings: the nodes that several ways lead to. under: for each node the meetings that every way to comes through it,
    and through no meeting or branch after it.
    """

    def __init__(self, start: int, following: Callable[[int], Sequence[int]]) -> None:
        self.order = _reverse_postorder(start, following)
        place = {n: i for i, n in enumerate(self.order)}
        before: dict[int, list[int]] = {n: [] for n in self.order}
        for n in self.order:
            for successor in following(n):
                before[successor].append(n)
        back = {n for n, origins in before.items() if any(place[o] >= place[n] for o in origins)}
        self.cyclic = bool(back)
        self.meetings = {n for n, origins in before.items() if len(origins) > 1} | back
        self.under: dict[int, list[int]] = {n: [] for n in self.order}
        for n, dominator in _dominators(self.order, place, before).items():
            if n in self.meetings:
                self.under[dominator].append(n)
        for nodes in self.under.values():
            nodes.sort(key=lambda n: place[n])


def _reverse_postorder(start: int, following: Callable[[int], Sequence[int]]) -> list[int]:
    done: list[int] = []
    seen = {start}
    stack = [(start, iter(following(start)))]
    while stack:
        number, rest = stack[-1]
        for successor in rest:
            if successor not in seen:
                seen.add(successor)
                stack.append((successor, iter(following(successor))))
                break
        else:
            done.append(number)
            stack.pop()
    return done[::-1]


def _dominators(order: Sequence[int], place: dict[int, int], before: dict[int, list[int]]) -> dict[int, int]:
    """Return for each node but the first the last one that every way to it comes through."""
    found = {order[0]: order[0]}
    changed = True
    while changed:
        changed = False
        for n in order[1:]:
            known = [o for o in before[n] if o in found]
            common = known[0]
            for origin in known[1:]:
                other = origin
                while common != other:
                    while place[other] > place[common]:
                        other = found[other]
                    while place[common] > place[other]:
                        common = found[common]
            if found.get(n) != common:
                found[n] = common
                changed = True
    del found[order[0]]
    return found
