"""Writing the steps of a thread in C, one function each.

A step works on a copy `t` of the state `s` and hands it to `qm_emit` where it ends. The function follows the graph:
what only one way leads to stands where that way goes, nested; where ways meet again there is a label. A step with
choices is run again for each alternative.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from qmodel.engines.native.expressions import INT64, Code, number
from qmodel.engines.native.flow import Flow
from qmodel.engines.native.naming import where
from qmodel.engines.native.unit import Unit, ValueWriter
from qmodel.ir.expr import At, Const, Expr, Local, Own, Read
from qmodel.ir.flow import defines
from qmodel.ir.own import bind
from qmodel.ir.program import Assign, Branch, Choose, Fail, Guard, Nop, Thread

_LABEL = re.compile(r"L(\d+):")
_NESTED = 6
"""So deep an `else` is written as a jump."""


class StepWriter(ValueWriter):
    """Writes the steps of one thread."""

    def __init__(self, unit: Unit, thread: Thread) -> None:
        super().__init__(unit, "&t")
        self.thread = thread
        self.template = unit.program.template_of(thread.tid)
        self.nodes = self.template.nodes
        self.places = unit.layout.places[thread.template]
        self.numbers = self.places.number
        self.packed = unit.layout.locals[thread.tid]
        self.names = unit.locals[thread.template]
        self.live, self.maybe, self.loose = unit.facts(thread)
        self.filled: dict[Expr, Expr] = {}
        self.lines: list[str] = []
        self.comment = ""
        self.depth = 1
        self.used: set[str] = set()
        self.labels: set[int] = set()
        self.start = self.step = 0
        self.choosing = False
        self.flow = Flow(0, lambda _: ())
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
        parts.append(
            f"static unsigned (*const steps_{self.thread.tid}[])(const qm_state *s, qm_sink *out) = {{{table}\n}};"
        )
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
        """Return the bounds of a variable."""
        if not isinstance(part, Local):
            return super().bounds(part)
        domain = self.template.locals[part.name].domain
        return INT64 if part.name in self.loose else (domain.lo, domain.hi)

    def local(self, name: str) -> Code:
        """Return the code of a local: it is a variable in C, but where a thread waits it is in the state."""
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
        self.flow = Flow(start, self._following)
        instructions = [self.nodes[n].instruction for n in self.flow.order]
        self.choosing = any(isinstance(i, Choose) for i in instructions)
        self.changed = {name for i in instructions if (name := defines(i)) is not None}
        self.lines, self.comment, self.depth, self.used, self.labels = [], "", 1, set(), set()
        self.start, self.state, self.site = start, "&t", self.nodes[start].site
        self.step = self.unit.steps.index((self.thread.tid, self.numbers[start]))
        self._emit(start, None)
        if self.lines[-1] == "\tgoto next;" and not self.flow.cyclic:
            self.lines.pop()
        body = [line for line in self.lines if not (m := _LABEL.fullmatch(line)) or int(m[1]) in self.labels]
        return "\n".join([*self._opening(), *body, *self._closing(), "}"])

    def _opening(self) -> list[str]:
        site = self.nodes[self.start].site
        lines = [
            f"/* {where(site)} */",
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
            lines += ["endless:", f"\t{self._event('endless', fatal=True)}"]
            lines += [] if self.choosing else ["\treturn 0;"]
        if self.choosing:
            lines += ["next:", "\tif (qm_again(&picks))", "\t\tgoto again;", "\treturn waits;"]
        return lines

    def _emit(self, number: int, follow: int | None) -> bool:
        """Write a node and what only it leads to. Return whether that runs on into what is written next: `follow`."""
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
            self.comment = f"/* {where(node.site)} */"
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
        event = self._event(name, fatal=fatal)
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

    def _event(self, name: str, *, fatal: bool) -> str:
        number = self.unit.properties.index(name)
        return f"qm_fail(out, {self.step}, {number} /* {name} */, {self.thread.tid}, {int(fatal)});"

    def _end(self) -> str:
        return "goto next;" if self.choosing else "return 0;"

    def _risky(self, number: int) -> bool:
        """Tell whether waiting for a lock here can be part of a circle: another lock is held, or a task preempted."""
        return bool(self.maybe[number]) or (self.thread.kind == "softirq" and self.unit.preempts(self.thread.cpu))

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
        self.line(f"qm_emit(out, {self.step}, &t);")
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
                cases.append(f"\tcase {self.numbers[start]}: /* {where(self.nodes[start].site)} */")
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
