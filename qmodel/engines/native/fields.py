"""Functions in C that read and write a field of a state."""

from __future__ import annotations

from qmodel.engines.layout import Field
from qmodel.engines.native.expressions import number, unsigned
from qmodel.engines.native.unit import WORD


def accessors(name: str, bits: Field, get: str, put: str, *, indexed: bool = False) -> list[str]:
    """Return a function that reads a field and one that writes it; indexed: it is an array."""
    index = ", int64_t i" if indexed else ""
    reads = f"static inline int64_t {get}_{name}(const qm_state *s{index})"
    writes = f"static inline void {put}_{name}(qm_state *t{index}, int64_t v)"
    if not bits.width:
        unused = "(void)i; " if indexed else ""
        return [
            f"{reads} {{ (void)s; {unused}return {number(bits.low)}; }}",
            f"{writes} {{ (void)t; {unused}(void)v; }}",
        ]
    word, shift = divmod(bits.shift, WORD)
    at, by = str(word), str(shift) if shift else ""
    if bits.row:
        at, by = f"{word} + i / {bits.row}", f"i % {bits.row} * {bits.width}"
    elif indexed:
        by = f"{shift} + i * {bits.width}" if shift else f"i * {bits.width}"
    mask = unsigned(bits.mask)
    low = f" + {number(bits.low)}" if bits.low else ""
    value = f"(uint64_t)(v - {number(bits.low)})" if bits.low else "(uint64_t)v"
    found, cleared, put_there = (f"s->w[{at}]", mask, value)
    if by:
        found, cleared, put_there = f"{found} >> ({by})", f"({mask} << ({by}))", f"{value} << ({by})"
    return [
        f"{reads} {{ return (int64_t)({found} & {mask}){low}; }}",
        f"{writes} {{ t->w[{at}] = (t->w[{at}] & ~{cleared}) | {put_there}; }}",
    ]
