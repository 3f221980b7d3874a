"""Writing in C what is asked of a state: what moves on from it, what it violates, what is measured in it."""

from __future__ import annotations

from collections.abc import Iterable

from qmodel.engines.native.expressions import COMPARE, number
from qmodel.engines.native.naming import comment, where
from qmodel.engines.native.unit import Unit, ValueWriter
from qmodel.ir.expr import At, Read


class LookWriter(ValueWriter):
    """Writes what is asked of a state, and the table of the model."""

    def __init__(self, unit: Unit) -> None:
        super().__init__(unit, "s")

    def text(self) -> str:
        """Return the functions."""
        parts = (self._expand(), self._waits_on(), self._quiescent(), self._observe())
        return "\n\n".join(parts)

    def _expand(self) -> str:
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
            lines += [
                f"\t/* {comment(prop.name)}: {where(prop.site)} */",
                f"\tif ({parts})",
                f"\t\tbad |= {_bit(index)};",
            ]
        for index, measure in enumerate(program.measures):
            self.site = measure.site
            guards = self._free(measure.locks)
            lines += [f"\t/* {comment(measure.name)}: {where(measure.site)} */"]
            lines += [f"\tif ({' && '.join(guards)}) {{" if guards else "\t{"]
            lines += [f"\t\tvalues[{index}] = {self.value(measure.value)};", f"\t\t*judged |= {_bit(index)};", "\t}"]
        return "\n".join([*lines, "\treturn bad;", "}"])

    def _free(self, locks: Iterable[Read]) -> list[str]:
        return [f"!{self.read(lock)}" for lock in locks]


def _bit(number: int) -> str:
    return f"UINT64_C(1) << {number}"
