"""Generating C: the model unit of a program, one function for each step of each thread.

A step function works on a copy `t` of the state `s` and hands it to `qm_emit` where the step ends. It follows the graph:
what only one way leads to stands where that way goes, nested; where ways meet again there is a label. A step with
choices is run again for each alternative.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from qmodel.engines.layout import Field, Layout
from qmodel.engines.native.expressions import COMPARE, INT64, Code, ExpressionWriter, number, unsigned
from qmodel.ir.expr import At, Const, Expr, Local, Own, Read, interval
from qmodel.ir.flow import defines, live_before
from qmodel.ir.own import bind
from qmodel.ir.program import (
    BOUND,
    Assign,
    Branch,
    Choose,
    Fail,
    Guard,
    Nop,
    Program,
    Site,
    Template,
    Thread,
)
from qmodel.passes.domains import bounds_of
from qmodel.passes.locks import maybe_held

WORD = 64
MOST = 64
"""Threads, properties and measures are the bits of a word."""

_RESERVED = re.compile(
    r"""(auto|break|case|char|const|continue|default|do|double|else|enum|extern|float|for|goto|if|inline|int|long
    |register|restrict|return|short|signed|sizeof|static|struct|switch|typedef|union|unsigned|void|volatile|while
    |asm|typeof|s|t|out|picks|waits|passed|(int|uint)\d*_t|.*_t|INT64_.*|UINT64_.*|UINT32_.*|NULL|(qm|q|get|put|at|go|load|save|table|places)_.*|QM_.*
    |_[A-Z_].*)""",
    re.VERBOSE,
)


_ENDED = """\
static unsigned ended(const qm_state *s, qm_sink *out)
{
	(void)s;
	(void)out;
	return 0;
}"""


class UnsuitableError(Exception):
    """A program that C cannot run as it is: why, for a person."""


@dataclass(frozen=True, slots=True)
class Source:
    """A model unit. properties: what its numbers of properties mean. traps: what its numbers of places mean."""

    text: str
    layout: Layout
    words: int
    properties: tuple[str, ...]
    traps: tuple[str, ...]


def generate(program: Program) -> Source:
    """Return the model unit of a lowered program. Raises UnsuitableError."""
    _refuse(program)
    layout = Layout(program, WORD)
    unit = _Unit(program, layout)
    text = unit.text()
    return Source(text, layout, unit.words, tuple(unit.properties), tuple(unit.traps))


def _refuse(program: Program) -> None:
    """Refuse what does not fit. Raises UnsuitableError."""
    for things, count in (
        ("threads", len(program.threads)),
        ("properties", len(program.properties)),
        ("measures", len(program.measures)),
    ):
        if count > MOST:
            raise UnsuitableError(f"it has {count} {things}, and the native engine takes {MOST}")
    domains = {name: v.domain for name, v in program.variables.items()}
    for template in program.templates.values():
        domains |= {name: v.domain for name, v in template.locals.items()}
    for name, domain in domains.items():
        if domain.lo < INT64[0] or domain.hi > INT64[1]:
            packets = len(program.packets.names)
            what = f"a queue of {packets} packets" if domain.kind == "queue" else f"{domain.lo} to {domain.hi}"
            raise UnsuitableError(f"{name} is {what}, which is wider than the 63 bits of the native engine")


@dataclass
class _Names:
    """Names in C for names of a specification, each once. alone: they stand in C without anything before them."""

    alone: bool
    known: dict[str, str] = field(default_factory=dict)
    taken: set[str] = field(default_factory=set)

    def __getitem__(self, name: str) -> str:
        if name not in self.known:
            short = name if name.startswith(("%", "__")) else name.rpartition(".")[2]
            plain = re.sub(r"[^0-9A-Za-z_]", "_", short)
            plain = f"{plain}_" if self.alone and _RESERVED.fullmatch(plain) else plain
            unique, count = plain, 1
            while unique in self.taken:
                count += 1
                unique = f"{plain}_{count}"
            self.known[name] = unique
            self.taken.add(unique)
        return self.known[name]


class _Unit:
    """The whole unit."""

    def __init__(self, program: Program, layout: Layout) -> None:
        self.program, self.layout = program, layout
        self.words = max(1, layout.bits // WORD)
        self.shared = _Names(alone=False)
        self.locals = {name: _Names(alone=True) for name in program.templates}
        self.properties = _property_names(program)
        self.traps: list[str] = []
        self._tables: dict[str, str] = {}

    def text(self) -> str:
        """Return the source."""
        steps = [_Steps(self, thread).text() for thread in self.program.threads]
        looks = _Looks(self).text()
        accessors = [self._accessors(t) for t in self.program.threads]
        tables = [f"static const {kind};" for kind in self._tables]
        parts = [self._head(), self._shared(), *accessors, "\n".join(tables), _ENDED, *steps, looks, self._model()]
        return "\n\n".join(p for p in parts if p) + "\n"

    def table(self, kind: str, values: Iterable[str], prefix: str) -> str:
        """Return the name of a constant array."""
        key = f"[] = {{{', '.join(values)}}}"
        for known, name in self._tables.items():
            if known.startswith(f"{kind} ") and known.endswith(key):
                return name
        name = f"{prefix}_{len(self._tables)}"
        self._tables[f"{kind} {name}{key}"] = name
        return name

    def trap(self, site: Site | None, what: str) -> int:
        """Return the number of a place at which something is watched."""
        text = f"{site.file}:{site.line}: {what}" if site is not None else what
        if text not in self.traps:
            self.traps.append(text)
        return self.traps.index(text) + 1

    def at(self, part: At) -> Code:
        """Return the code that tells whether a thread is at one of some nodes."""
        places = self.layout.places[self.program.threads[part.tid].template]
        numbers = sorted(places.number[n] for n in part.nodes if n in places.number)
        if not numbers or len(numbers) == len(places.boundaries):
            return number(int(bool(numbers)))
        here = f"at_{part.tid}(s)"
        if len(numbers) == 1:
            return Code(f"{here} == {numbers[0]}", COMPARE)
        bits = sum(1 << n for n in numbers)
        if len(places.boundaries) <= WORD:
            return Code(f"({unsigned(bits)} >> {here} & 1)")
        words = [unsigned(bits >> i & (1 << WORD) - 1) for i in range(0, len(places.boundaries), WORD)]
        name = self.table("uint64_t", words, "places")
        return Code(f"({name}[{here} / {WORD}] >> {here} % {WORD} & 1)")

    # --- parts of the text ------------------------------------------------------------------------------------------

    def _head(self) -> str:
        p = self.program
        return (
            f"/* {_comment(p.model)} {_comment(p.variant)} ({p.memory}): generated, one function for each step */\n"
            f"#define QM_WORDS {self.words}\n#define QM_BITS {p.skb_bits}\n"
            '#include "qmodel.h"'
        )

    def _shared(self) -> str:
        lines = ["/* --- shared variables --- */"]
        for name, variable in self.program.variables.items():
            bits = self.layout.shared[name]
            doc = f": {_comment(variable.doc)}" if variable.doc else ""
            indexed = "" if variable.size is None else ", int64_t i"
            lines += ["", f"/* {_comment(name)}{doc} */", *_accessor(self.shared[name], bits, "get", "put", indexed)]
        return "\n".join(lines)

    def _accessors(self, thread: Thread) -> str:
        """Write how the counter and the locals of a thread are read and written."""
        lines = [f"/* --- thread {thread.tid}: {thread.template} on CPU{thread.cpu} --- */", ""]
        names = self.locals[thread.template]
        lines += _accessor(str(thread.tid), self.layout.counters[thread.tid], "at", "go")
        for name, bits in self.layout.locals[thread.tid].items():
            lines += ["", *_accessor(f"{thread.tid}_{names[name]}", bits, "load", "save")]
        return "\n".join(lines)

    def _model(self) -> str:
        p = self.program
        bound = self.properties.index(BOUND) if BOUND in self.properties else "UINT32_MAX"
        buffers = sum(1 << t for t in p.buffers)
        return "\n".join(
            [
                "const struct qm_model qm_model = {",
                f"\t.words = QM_WORDS, .threads = {len(p.threads)},",
                f"\t.properties = {len(self.properties)}, .measures = {len(p.measures)},",
                f"\t.deadlock = {self.properties.index('deadlock')}, .bound = {bound}, .buffers = {unsigned(buffers)},",
                "\t.expand = expand, .step = step, .observe = observe, .waits_on = waits_on, .unfinished = unfinished,",
                "};",
            ]
        )


def _property_names(program: Program) -> list[str]:
    names = [*(p.name for p in program.properties), *(name for name, _ in program.builtin), "deadlock", "endless"]
    for template in program.templates.values():
        names += [n.instruction.property for n in template.nodes if isinstance(n.instruction, Fail)]
    return list(dict.fromkeys(names))


def _accessor(name: str, bits: Field, get: str, put: str, indexed: str = "") -> list[str]:
    """Return the functions that read and write a field of a state; indexed: the parameter of an array."""
    head = f"static inline int64_t {get}_{name}(const qm_state *s{indexed})"
    if not bits.width:
        silent = ["(void)s;", *(["(void)i;"] if indexed else [])]
        more = ["(void)t;", "(void)v;", *silent[1:]]
        return [
            f"{head} {{ {' '.join(silent)} return {number(bits.low)}; }}",
            f"static inline void {put}_{name}(qm_state *t{indexed}, int64_t v) {{ {' '.join(more)} }}",
        ]
    word, shift = divmod(bits.shift, WORD)
    at, by = str(word), str(shift)
    if bits.row:
        at, by = f"{word} + i / {bits.row}", f"(i % {bits.row} * {bits.width})"
    elif indexed:
        by = f"({shift} + i * {bits.width})" if shift else f"i * {bits.width}"
    mask = unsigned(bits.mask)
    value = f"(s->w[{at}] >> {by} & {mask})" if by != "0" else f"(s->w[{at}] & {mask})"
    low = f" + {number(bits.low)}" if bits.low else ""
    stored = f"(uint64_t)(v - {number(bits.low)})" if bits.low else "(uint64_t)v"
    cleared, shifted = (f"({mask} << {by})", f"{stored} << {by}") if by != "0" else (mask, stored)
    return [
        f"{head} {{ return (int64_t){value}{low}; }}",
        f"static inline void {put}_{name}(qm_state *t{indexed}, int64_t v) "
        f"{{ t->w[{at}] = (t->w[{at}] & ~{cleared}) | {shifted}; }}",
    ]


def _comment(text: str) -> str:
    """Return a text as it may stand in a comment: on one line, and without an end of it."""
    return " ".join(text.split()).replace("*/", "* /").replace("/*", "/ *")


# --- values -----------------------------------------------------------------------------------------------------------


class _Values(ExpressionWriter):
    """Writes expressions over a state: `state` is a pointer to it."""

    def __init__(self, unit: _Unit, state: str) -> None:
        super().__init__(unit.program.skb_bits)
        self.unit, self.state = unit, state
        self.site: Site | None = None

    def bounds(self, part: Local | Read | Own) -> tuple[int, int]:
        assert isinstance(part, Read), f"{part} has no value here"
        domain = self.unit.program.variables[part.var].domain
        return domain.lo, domain.hi

    def local(self, name: str) -> Code:
        raise AssertionError(f"the local {name} has no value here")

    def read(self, place: Read) -> Code:
        return Code(f"get_{self.unit.shared[place.var]}({self.state}{self.subscript(place)})")

    def subscript(self, place: Read) -> str:
        """Return what names the element of an array."""
        size = self.unit.program.variables[place.var].size
        if place.index is None or size is None:
            return ""
        return f", {self.index(place.index, size)}"

    def at(self, part: At) -> Code:
        return self.unit.at(part)

    def table(self, values: tuple[int, ...]) -> str:
        return self.unit.table("int64_t", [str(number(v)) for v in values], "table")

    def trap(self) -> int:
        return self.unit.trap(self.site, "a value leaves its bounds")


def _loose(program: Program, template: Template, packed: Iterable[str]) -> frozenset[str]:
    """Return the locals that no state holds and whose values may leave their domain: they may have any value."""
    declared = bounds_of(program, template)
    loose: set[str] = set()

    def bounds(part: Local | Read | Own) -> tuple[int, int]:
        return INT64 if isinstance(part, Local) and part.name in loose else declared(part)

    while True:
        before = len(loose)
        for node in template.nodes:
            match node.instruction:
                case Assign(Local(name), value):
                    low, high = interval(value, bounds, program.skb_bits)
                case Choose(name, count):
                    low, high = 0, count - 1
                case _:
                    continue
            domain = template.locals[name].domain
            if name not in packed and not domain.lo <= low <= high <= domain.hi:
                loose.add(name)
        if len(loose) == before:
            return frozenset(loose)


# --- steps ------------------------------------------------------------------------------------------------------------


class _Flow:
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
            for other in known[1:]:
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


class _Steps(_Values):
    """Writes the steps of one thread."""

    def __init__(self, unit: _Unit, thread: Thread) -> None:
        super().__init__(unit, "&t")
        self.thread = thread
        self.template = unit.program.template_of(thread.tid)
        self.nodes = self.template.nodes
        self.places = unit.layout.places[thread.template]
        self.numbers = self.places.number
        self.packed = unit.layout.locals[thread.tid]
        self.names = unit.locals[thread.template]
        self.live = live_before(self.nodes)
        self.maybe = maybe_held(unit.program, self.template)
        self.loose = _loose(unit.program, self.template, self.packed)
        self.filled: dict[Expr, Expr] = {}
        self.lines: list[str] = []
        self.comment = ""
        self.depth = 1
        self.used: set[str] = set()
        self.labels: set[int] = set()
        self.start = 0
        self.choosing = False
        self.flow = _Flow(0, lambda _: ())
        self.changed: set[str] = set()

    def text(self) -> str:
        """Return the functions of all steps, the table of them, and what the thread waits for."""
        parts, names = [], []
        for start in self.places.boundaries:
            if self.nodes[start].next:
                parts.append(self._function(start))
                names.append(self._name(start))
            else:
                names.append("ended")
        table = "".join(f"\n\t{name}," for name in names)
        parts.append(f"static unsigned (*const steps_{self.thread.tid}[])(const qm_state *s, qm_sink *out) = {{{table}\n}};")
        return "\n\n".join([*parts, self._waits()])

    def _name(self, start: int) -> str:
        plain = re.sub(r"[^0-9A-Za-z_]", "_", self.template.name)
        return f"{plain}_{self.thread.tid}_{self.numbers[start]}"

    # --- values -----------------------------------------------------------------------------------------------------

    def fill(self, expr: Expr) -> Expr:
        """Return an expression with what the thread knows of itself."""
        if expr not in self.filled:
            self.filled[expr] = bind(self.unit.program, self.thread, expr)
        return self.filled[expr]

    def bounds(self, part: Local | Read | Own) -> tuple[int, int]:
        if not isinstance(part, Local):
            return super().bounds(part)
        domain = self.template.locals[part.name].domain
        return INT64 if part.name in self.loose else (domain.lo, domain.hi)

    def local(self, name: str) -> Code:
        if self.state == "s":
            return Code(f"load_{self.thread.tid}_{self.names[name]}(s)")
        self.used.add(name)
        return Code(self.names[name])

    # --- a step -----------------------------------------------------------------------------------------------------

    def line(self, text: str, *, depth: int | None = None) -> None:
        """Write a line."""
        if self.comment and depth is None:
            self.lines.append("\t" * self.depth + self.comment)
            self.comment = ""
        self.lines.append("\t" * (self.depth if depth is None else depth) + text)

    def _following(self, number: int) -> list[int]:
        """Return the nodes of the same step that a node can go on to."""
        return [n for n in dict.fromkeys(self._targets(number)) if not self.nodes[n].boundary]

    def _targets(self, number: int) -> tuple[int, ...]:
        node = self.nodes[number]
        if isinstance(node.instruction, Branch) and isinstance(cond := self.fill(node.instruction.cond), Const):
            return (node.next[0 if cond.value else 1],)
        return node.next

    def _function(self, start: int) -> str:
        self.flow = _Flow(start, self._following)
        instructions = [self.nodes[n].instruction for n in self.flow.order]
        self.choosing = any(isinstance(i, Choose) for i in instructions)
        self.changed = {name for i in instructions if (name := defines(i)) is not None}
        self.lines, self.comment, self.depth, self.used, self.labels = [], "", 1, set(), set()
        self.start, self.state, self.site = start, "&t", self.nodes[start].site
        self._emit(start, None)
        if self.lines[-1] == "\tgoto next;" and not self.flow.cyclic:
            self.lines.pop()
        body = [line for line in self.lines if not (m := _LABEL.fullmatch(line)) or int(m[1]) in self.labels]
        return "\n".join([*self._opening(), *body, *self._closing(), "}"])

    def _opening(self) -> list[str]:
        site = self.nodes[self.start].site
        lines = [
            f"/* {_where(site)} */",
            f"static unsigned {self._name(self.start)}(const qm_state *s, qm_sink *out)",
            "{",
        ]
        live = [n for n in sorted(self.used) if n in self.live[self.start]]
        loads = [f"{self.names[n]} = load_{self.thread.tid}_{self.names[n]}(s)" for n in live]
        others = [f"{self.names[n]} = 0" for n in sorted(self.used - set(live))]
        if self.choosing:
            lines += ["\tqm_picks picks;", "\tunsigned waits = 0;", "\tqm_state t;"]
            lines += [f"\tint64_t {self.names[n]};" for n in live]
        else:
            lines += ["\tqm_state t = *s;", *(f"\tint64_t {load};" for load in loads)]
        lines += [f"\tint64_t {other};" for other in others]
        lines += ["\tunsigned passed = 0;"] if self.flow.cyclic else []
        if self.choosing:
            lines += ["", "\tpicks.made = picks.used = 0;", "again:", "\tt = *s;", *(f"\t{load};" for load in loads)]
            lines += ["\tpassed = 0;"] if self.flow.cyclic else []
        return [*lines, ""]

    def _closing(self) -> list[str]:
        lines = []
        if self.flow.cyclic:
            number = self.unit.properties.index("endless")
            lines += ["endless:", f"\tout->event(out, {number} /* endless */, {self.thread.tid}, 1);"]
            lines += [] if self.choosing else ["\treturn 0;"]
        if self.choosing:
            lines += ["next:", "\tif (qm_again(&picks))", "\t\tgoto again;", "\treturn waits;"]
        return lines

    def _emit(self, number: int, follow: int | None) -> bool:
        """Write a node and what only it leads to. Return whether that can run on into what is written next: `follow`."""
        while True:
            meetings = self.flow.under[number]
            inner = meetings[0] if meetings else follow
            targets, cond = self._write(number)
            if not meetings and len(targets) == 1 and self._plain(targets[0]):
                number = targets[0]
                continue
            falls = bool(targets) and self._jump(targets[0], inner) if cond is None else False
            if cond is not None:
                rest = self._split(cond, targets, inner)
                if rest is not None and not meetings and self._plain(rest):
                    number = rest
                    continue
                falls = rest is None or self._jump(rest, inner)
            if not meetings:
                return falls
            for here, after in zip(meetings, [*meetings[1:], follow], strict=True):
                self.line(f"L{here}:", depth=0)
                if after is not follow or here != meetings[-1]:
                    self._emit(here, after)
            number = meetings[-1]

    def _plain(self, target: int) -> bool:
        """Tell whether a node stands where the only way to it goes."""
        return not self.nodes[target].boundary and target not in self.flow.meetings

    def _jump(self, target: int, follow: int | None) -> bool:
        """Go on at a node. Return whether that means to run on into what is written next."""
        if self.nodes[target].boundary:
            self._leave(target)
            return False
        if target not in self.flow.meetings:
            return self._emit(target, follow)
        if target == follow:
            return True
        self.labels.add(target)
        self.line(f"goto L{target};")
        return False

    def _split(self, cond: Code, targets: Sequence[int], follow: int | None) -> int | None:
        """Write a branch. Return the node at which it goes on where the first way was not taken; None: none is left."""
        yes, no = targets
        site, comment, self.comment = self.site, self.comment, ""
        first, falls = self._arm(yes, follow)
        second: list[str] = []
        if falls and first and no != follow and self.depth >= _NESTED:
            assert follow is not None
            self.labels.add(follow)
            first.append("\t" * (self.depth + 1) + f"goto L{follow};")
            falls = False
        elif falls:
            second, _ = self._arm(no, follow)
        self.site, self.comment = site, comment
        if first or second:
            self.line(f"if ({cond if first else cond.negated()}) {{")
            self.lines += first or second
            if first and second:
                self.line("} else {")
                self.lines += second
            self.line("}")
        return None if falls or no == follow else no

    def _arm(self, target: int, follow: int | None) -> tuple[list[str], bool]:
        """Return the lines of one way of a branch, and whether it runs on into what is written next."""
        outer, self.lines = self.lines, []
        self.depth += 1
        falls = self._jump(target, follow)
        self.depth -= 1
        lines, self.lines, self.comment = self.lines, outer, ""
        return lines, falls

    def _write(self, number: int) -> tuple[tuple[int, ...], Code | None]:
        """Write an instruction. Return where it goes on, and for a branch on what condition it is the first."""
        node = self.nodes[number]
        if node.site.file and (node.site.file, node.site.line) != (self.site and (self.site.file, self.site.line)):
            self.comment = f"/* {_where(node.site)} */"
        self.site = node.site
        if self.flow.cyclic:
            self.line("if (QM_UNLIKELY(++passed > QM_LOCAL_STEPS))")
            self.line("\tgoto endless;")
        targets = self._targets(number)
        match node.instruction:
            case Assign(Local(name), value):
                if any(name in self.live[n] for n in node.next):
                    self.line(f"{self._set(name)} = {self._checked(name, self.fill(value))};")
            case Assign(Read(var) as target, value):
                filled = self.fill(target)
                assert isinstance(filled, Read)
                domain = self.unit.program.variables[var].domain
                subscript = self.subscript(filled)
                code = self.within(self.fill(value), domain.lo, domain.hi)
                self.line(f"put_{self.unit.shared[var]}(&t{subscript}, {code});")
            case Branch(cond):
                if len(dict.fromkeys(targets)) > 1:
                    return targets, self.condition(self.fill(cond))
                return targets[:1], None
            case Choose(name, count):
                self.line(f"{self._set(name)} = qm_choose(out, {self.trap()}, &picks, {count});")
            case Guard(cond, lock):
                self._guard(number, self.fill(cond), risky=lock is not None and self._risky(number))
            case Fail(cond, name, _, fatal):
                return (targets, None) if self._fail(self.fill(cond), name, fatal=fatal) else ((), None)
            case Nop():
                pass
            case other:
                raise AssertionError(f"{other} was not lowered")
        return targets, None

    def _set(self, name: str) -> str:
        self.used.add(name)
        return self.names[name]

    def _checked(self, name: str, value: Expr) -> Code:
        domain = self.template.locals[name].domain
        return self.value(value) if name in self.loose else self.within(value, domain.lo, domain.hi)

    def _guard(self, number: int, cond: Expr, *, risky: bool) -> None:
        del number
        if isinstance(cond, Const) and cond.value:
            return
        self.line(f"if ({self.condition(cond).negated()})")
        if not self.choosing:
            self.line(f"\treturn {int(risky)};")
        elif risky:
            self.lines[-1] += " {"
            self.line("\twaits = 1;")
            self.line("\tgoto next;")
            self.line("}")
        else:
            self.line("\tgoto next;")

    def _fail(self, cond: Expr, name: str, *, fatal: bool) -> bool:
        """Write a check. Return whether the step can go on behind it."""
        sure = isinstance(cond, Const)
        if isinstance(cond, Const) and not cond.value:
            return True
        event = f"out->event(out, {self.unit.properties.index(name)} /* {name} */, {self.thread.tid}, {int(fatal)});"
        end = [self._end()] if fatal else []
        if sure:
            for text in (event, *end):
                self.line(text)
            return not fatal
        self.line(f"if ({self.condition(cond)})" + (" {" if fatal else ""))
        for text in (event, *end):
            self.line(f"\t{text}")
        if fatal:
            self.line("}")
        return True

    def _end(self) -> str:
        return "goto next;" if self.choosing else "return 0;"

    def _risky(self, number: int) -> bool:
        """Tell whether waiting for a lock here can be part of a circle: another lock is held, or a task preempted."""
        return bool(self.maybe[number]) or self.thread.kind == "softirq"

    def _leave(self, target: int) -> None:
        """Write the end of a step. What does not live behind it is cleared before anything is put in its place."""
        tid, before, after = self.thread.tid, set(self.places.live[self.start]), set(self.places.live[target])
        for name in sorted(before - after):
            if self.packed[name].width:
                self.line(f"save_{tid}_{self.names[name]}(&t, {number(self.packed[name].low)});")
        for name in sorted(after):
            if self.packed[name].width and (name in self.changed or name not in before):
                self.line(f"save_{tid}_{self.names[name]}(&t, {self.local(name)});")
        if target != self.start:
            self.line(f"go_{tid}(&t, {self.numbers[target]});")
        self.line("qm_emit(out, &t);")
        self.line(self._end())

    # --- waiting ----------------------------------------------------------------------------------------------------

    def _waits(self) -> str:
        """Return the function that says which thread this one waits for, as the interpreter does."""
        self.state = "s"
        lines = [f"static int waits_on_{self.thread.tid}(const qm_state *s, qm_sink *out)", "{"]
        cases: list[str] = []
        for start in self.places.boundaries:
            guards = self._guards(start)
            if guards:
                cases.append(f"\tcase {self.numbers[start]}: /* {_where(self.nodes[start].site)} */")
                cases += [text for guard in guards for text in self._waiting(guard)]
                cases.append("\t\tbreak;")
        if cases:
            lines += [f"\tswitch (at_{self.thread.tid}(s)) {{", *cases, "\t}"]
        return "\n".join([*lines, "\treturn -1;", "}"])

    def _guards(self, start: int) -> list[Guard]:
        found: list[Guard] = []
        number = start
        while isinstance(guard := self.nodes[number].instruction, Guard | Nop) and self.nodes[number].next:
            if isinstance(guard, Guard):
                found.append(guard)
            number = self.nodes[number].next[0]
            if self.nodes[number].boundary:
                break
        return found

    def _waiting(self, guard: Guard) -> list[str]:
        """Return the code for a condition that a thread waits for: who can make it true."""
        cond = self.fill(guard.cond)
        if isinstance(cond, Const) and cond.value:
            return []
        lines = [f"\t\tif ({self.condition(cond).negated()}) {{"]
        if guard.lock is not None:
            return [*lines, f"\t\t\treturn {self.value(self.fill(guard.lock))} - 1;", "\t\t}"]
        program = self.unit.program
        others = program.softirqs_on(self.thread.cpu) if self.thread.kind != "softirq" else ()
        for other in others:
            at = self.at(At(other, program.template_of(other).rests))
            lines += [f"\t\t\tif ({at.negated()})", f"\t\t\t\treturn {other};"]
        return [*lines, "\t\t\treturn -1;", "\t\t}"]


_LABEL = re.compile(r"L(\d+):")
_NESTED = 6
"""So deep an `else` is written as a jump."""


def _where(site: Site) -> str:
    return _comment(f"{site.file}:{site.line}: {site.function}(): {site.source}" if site.file else site.function)


# --- states -----------------------------------------------------------------------------------------------------------


class _Looks(_Values):
    """Writes what is asked of a state, and the table of the model."""

    def __init__(self, unit: _Unit) -> None:
        super().__init__(unit, "s")

    def text(self) -> str:
        """Return the functions."""
        return "\n\n".join([self._ended_and_expand(), self._waits_on(), self._quiescent(), self._observe()])

    def _ended_and_expand(self) -> str:
        tids = range(len(self.unit.program.threads))
        calls = "".join(f"\twaits |= steps_{t}[at_{t}(s)](s, out);\n" for t in tids)
        cases = "".join(f"\tcase {t}: return steps_{t}[at_{t}(s)](s, out);\n" for t in tids)
        return (
            "static unsigned expand(const qm_state *s, qm_sink *out)\n{\n\tunsigned waits = 0;\n\n"
            f"{calls}\treturn waits;\n}}\n\n"
            "static unsigned step(unsigned thread, const qm_state *s, qm_sink *out)\n{\n\tswitch (thread) {\n"
            f"{cases}\t}}\n\treturn 0;\n}}"
        )

    def _waits_on(self) -> str:
        program = self.unit.program
        cases = "".join(f"\tcase {t.tid}: return waits_on_{t.tid}(s, out);\n" for t in program.threads)
        unfinished = [
            self.at(At(t.tid, program.template_of(t.tid).ends)).negated().text
            for t in program.threads
            if t.kind == "task"
        ]
        return (
            "static int waits_on(unsigned thread, const qm_state *s, qm_sink *out)\n{\n\tswitch (thread) {\n"
            f"{cases}\t}}\n\treturn -1;\n}}\n\n"
            "static int unfinished(const qm_state *s)\n{\n"
            f"\treturn {' || '.join(unfinished) or '0'};\n}}"
        )

    def _quiescent(self) -> str:
        """Return the function that tells whether everything rests."""
        program = self.unit.program
        parts = []
        for thread in program.threads:
            template = program.template_of(thread.tid)
            at = At(thread.tid, template.ends if thread.kind == "task" else template.rests)
            parts.append(self.at(at).text)
        for name, variable in program.variables.items():
            if variable.rest is not None:
                for index in range(variable.size or 1):
                    subscript = "" if variable.size is None else f", {index}"
                    parts.append(f"get_{self.unit.shared[name]}(s{subscript}) == {number(variable.rest)}")
        joined = "\n\t       && ".join(parts) or "1"
        return f"static int quiescent(const qm_state *s)\n{{\n\treturn {joined};\n}}"

    def _observe(self) -> str:
        program = self.unit.program
        lines = [
            "static uint64_t observe(const qm_state *s, qm_sink *out, int64_t *values, uint64_t *judged)",
            "{",
            "\tuint64_t bad = 0;",
            "",
            "\t*judged = 0;",
        ]
        for index, prop in enumerate(program.properties):
            self.site = prop.site
            guards = ["quiescent(s)"] if prop.kind == "quiescent" else []
            guards += self._free(prop.locks)
            parts = " && ".join([*guards, self.condition(prop.cond).negated().within(COMPARE)])
            lines += [f"\t/* {_comment(prop.name)}: {_where(prop.site)} */", f"\tif ({parts})", f"\t\tbad |= {_bit(index)};"]
        for index, measure in enumerate(program.measures):
            self.site = measure.site
            guards = self._free(measure.locks)
            lines += [f"\t/* {_comment(measure.name)}: {_where(measure.site)} */"]
            lines += [f"\tif ({' && '.join(guards)}) {{" if guards else "\t{"]
            lines += [f"\t\tvalues[{index}] = {self.value(measure.value)};", f"\t\t*judged |= {_bit(index)};", "\t}"]
        return "\n".join([*lines, "\treturn bad;", "}"])

    def _free(self, locks: Iterable[Read]) -> list[str]:
        return [f"!{self.read(lock)}" for lock in locks]


def _bit(number: int) -> str:
    return f"UINT64_C(1) << {number}"
