"""How values and expressions are printed: in C's words, packets and bits by name."""

from __future__ import annotations

from qmodel.ir.expr import Apply, At, Const, Domain, Expr, Inside, Local, Lookup, Own, Read, queue_items
from qmodel.ir.program import Place, Program


def value_text(program: Program, domain: Domain, value: int) -> str:
    """Return a value as its domain reads it: `true`, `a1`, `[a0 a1]`, `XOFF|FROZEN`, `CPU1`, `3`."""
    match domain.kind:
        case "bool":
            return "true" if value else "false"
        case "skb":
            return program.packets.names[value - 1] if value else "NULL"
        case "queue":
            names = (program.packets.names[i - 1] for i in queue_items(program.skb_bits, value))
            return "[" + " ".join(names) + "]"
        case "flags":
            return "|".join(n for i, n in enumerate(domain.names) if value >> i & 1) or "0"
        case "lock":
            return thread_text(program, value - 1) if value else "free"
        case "place":
            if value >= Place.HELD:
                return f"held by {thread_text(program, value - Place.HELD)}"
            return _PLACES[Place(value)]
        case "int":
            return str(value)


_PLACES = {Place.NOWHERE: "nowhere", Place.LISTED: "on a list", Place.WIRE: "on the wire", Place.FREED: "freed"}


def thread_text(program: Program, tid: int) -> str:
    """Return a thread as a person names it: `CPU1 (dev_queue_xmit)`."""
    thread = program.threads[tid]
    return f"CPU{thread.cpu} ({thread.template})"


_LEVELS = [
    {"or"}, {"and"}, {"|"}, {"^"}, {"&", "andnot"}, {"==", "!="}, {"<", "<=", ">", ">="}, {"<<", ">>"}, {"+", "-"},
    {"*", "//", "%"},
]  # fmt: skip
_C_NAME = {"or": "||", "and": "&&", "//": "/", "andnot": "& ~"}


def expr_text(expr: Expr, level: int = 0) -> str:
    """Return an expression in C's notation. Locals lose the name of their function."""
    match expr:
        case Const(value):
            return str(value)
        case Local(name):
            return name.rpartition(".")[2]
        case Read(var, index):
            return var if index is None else f"{var}[{expr_text(index)}]"
        case Own(what):
            return "smp_processor_id()" if what == "cpu" else "current"
        case Lookup(table, index):
            return f"{{{','.join(map(str, table))}}}[{expr_text(index)}]"
        case At(tid, nodes):
            return f"at({tid}, {','.join(map(str, sorted(nodes)))})"
        case Inside(functions):
            return f"inside({', '.join(functions)})"
        case Apply(op, args):
            return _apply_text(op, args, level)


def _apply_text(op: str, args: tuple[Expr, ...], level: int) -> str:
    if op == "not":
        return f"!{expr_text(args[0], len(_LEVELS))}"
    if op == "if":
        text = " ".join((expr_text(args[0], 1), "?", expr_text(args[1], 1), ":", expr_text(args[2], 1)))
        return f"({text})" if level else text
    own = next((i for i, ops in enumerate(_LEVELS) if op in ops), None)
    if own is None:
        return f"{op}({', '.join(expr_text(a) for a in args)})"
    text = f" {_C_NAME.get(op, op)} ".join(expr_text(a, own + 1) for a in args)
    return f"({text})" if level > own else text
