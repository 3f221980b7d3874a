"""Mistakes in specifications: each is told at its place, with what to write instead, and never by a traceback.

In the texts below « and » stand around what the caret must point at; they are no part of the specification.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

from qmodel import lang
from qmodel.engines.options import Options
from qmodel.engines.python.engine import run
from qmodel.frontend.configure import ParameterError, configure
from qmodel.frontend.declarations import load
from qmodel.frontend.diagnostics import SpecError
from qmodel.passes import lower
from tests.support import refuted, story

if TYPE_CHECKING:
    from qmodel.frontend.diagnostics import Diagnostic
    from qmodel.result import Outcome

IMPORTS = f"from qmodel.lang import {', '.join(sorted(lang.__all__))}\n"

MODEL = '''
class Word(Bits):
    A = 0
    B = 1


class Other(Bits):
    C = 0
    D = 1


NAME = "text"


class Broken(Model):
    """A model with room for one mistake."""

    cpus = Param(2)
    packets = Packets(1, each=cpus)
    busy = Budget(1)
    lock = SpinLock()
    locks = Array(SpinLock(), size=2)
    q = SkbList(guarded_by=lock)
    n = Int(0, high=3)
    flag = Bool()
    word = Flags(Word)
    slots = Array(Int(0, high=3), size=2)
{declared}

    @thread(each=cpus)
    def run(m, cpu):
        for skb in m.flow(cpu):
            spin_lock(m.lock)
            __skb_queue_tail(m.q, skb)
            if choose(m.busy):
                set_bit(Word.A, m.word)
            spin_unlock(m.lock)
            spin_lock(m.lock)
            transmit(__skb_dequeue(m.q))
            spin_unlock(m.lock)
            spin_lock(m.locks[0])
            spin_unlock(m.locks[0])
            m.n = m.helper(1)
            m.slots[1] = 1
            m.flag = True
        raise_softirq(m.handler)
{code}

    def helper(m, x):
        return x

    @softirq
    def handler(m, cpu):
        m.n = 2
{functions}
{after}
'''


class Mistake(NamedTuple):
    """A text with its caret, words of what is said of it and of what to write instead. code: what a thread does too."""

    text: str
    message: str
    remedy: str
    code: str = ""


def model(*, code: str = "", declared: str = "", functions: str = "", after: str = "") -> str:
    """Return the model with something added to it."""

    def indented(text: str, columns: int) -> str:
        return "\n".join(" " * columns + line if line else "" for line in text.split("\n"))

    return IMPORTS + MODEL.format(
        code=indented(code, 8), declared=indented(declared, 4), functions=indented(functions, 4), after=after
    )


def compiled(path: Path) -> None:
    """Compile every variant of a file in every scenario."""
    for spec in load(path, path.name):
        for variant in spec.variants:
            for scenario in variant.scenarios:
                lower(configure(variant, scenario))


def mistakes(folder: Path, text: str) -> tuple[Diagnostic, ...]:
    """Return the mistakes that are found in a specification."""
    path = folder / "spec.py"
    path.write_text(text.replace("«", "").replace("»", ""), encoding="utf-8")
    with pytest.raises(SpecError) as caught:
        compiled(path)
    return caught.value.diagnostics


def caret(text: str) -> tuple[int, int, int]:
    """Return the line (from 1) and the columns (from 0) of what stands between « and »."""
    before, rest = text.split("«")
    inside, _ = rest.split("»")
    first = before.rpartition("\n")[2]
    return before.count("\n") + 1, len(first), len(first) + len(inside)


def check(folder: Path, text: str, mistake: Mistake) -> None:
    """Make sure that a mistake, and nothing else, is told where it is, with its remedy."""
    (found,) = mistakes(folder, text)
    line, column, end = caret(text)
    assert ("spec.py", line, column, end) == (found.file, found.line, found.column, found.end_column), str(found)
    assert mistake.message in found.message
    assert mistake.remedy in found.remedy
    assert mistake.remedy
    first, source, marks, *_ = str(found).split("\n")
    assert f"spec.py:{line}:{column + 1}: error: {found.message}" == first
    assert text.split("\n")[line - 1].replace("«", "").replace("»", "") == source.partition(" | ")[2]
    assert text.split("\n")[line - 1].index("«") + len("      | ") == marks.index("^")
    assert end - column == marks.count("^")


# --- statements and expressions of a thread ---------------------------------------------------------------------------

IN_A_THREAD = {
    "unknown name": Mistake("m.n = «nothing»", "unknown name `nothing`", "write m.NAME"),
    "misspelt name": Mistake("count = 1\nm.n = «cuont»", "unknown name `cuont`", "did you mean `count`?"),
    "m. forgotten": Mistake("spin_lock(«lock»)", "unknown name `lock`", "write `m.lock`"),
    "bit without its class": Mistake("set_bit(«A», m.word)", "unknown name `A`", "write Word.A"),
    "class of bits as a value": Mistake("m.n = «Word»", "unknown name `Word`", "write `Word.NAME`"),
    "primitive without parentheses": Mistake("«smp_mb»", "unknown name `smp_mb`", "call it: smp_mb(…)"),
    "constant that is text": Mistake("m.n = «NAME»", "`NAME` is no number", "use numbers and bits"),
    "model as a value": Mistake("x = «m»", "the model itself is no value", "write `m.NAME`"),
    "misspelt variable": Mistake("m.n = «m.wrod»", "the model has no `wrod`", "did you mean `word`?"),
    "hidden variable": Mistake("m.n = «m.__leftbusy»", "the model has no `__leftbusy`", "known here: busy, cpus,"),
    "misspelt primitive": Mistake("«spin_lok»(m.lock)", "unknown function `spin_lok`", "did you mean `spin_lock`?"),
    "function of Python": Mistake("«print»(1)", "unknown function `print`", "a trace shows every access"),
    "all() in a thread": Mistake("if «all»(m.flag): pass", "unknown function `all`", "write a loop"),
    "range() outside of a loop": Mistake("x = «range»(3)", "unknown function `range`", "for i in range(n)"),
    "unknown function of the model": Mistake("«m.hlper(1)»", "no function `hlper`", "did you mean `helper`?"),
    "variable that is called": Mistake("«m.lock()»", "`lock` is no function", "write `m.lock`"),
    "function called without m": Mistake("«helper(1)»", "`helper` is a function of the model", "write m.helper("),
    "function that is not called": Mistake("m.n = «m.helper»", "`helper` is a function", "call it: `m.helper(…)`"),
    "thread that is called": Mistake("«m.run(0)»", "`run` is marked @thread", "into a function of its own"),
    "softirq that is called": Mistake("«m.handler(0)»", "is marked @softirq", "raise_softirq(m.handler)"),
    "method of something": Mistake("«m.lock.take»()", "`m.lock.take` cannot be called", "call a primitive"),
    "too few arguments": Mistake("«spin_lock()»", "`spin_lock` takes 1 argument: lock", "write spin_lock(lock)"),
    "too many arguments": Mistake("«smp_mb(1)»", "`smp_mb` takes nothing", "write smp_mb()"),
    "named argument": Mistake("«spin_lock(lock=m.lock)»", "takes 1 argument: lock", "write spin_lock(lock)"),
    "named argument of a function": Mistake("m.n = «m.helper(x=1)»", "takes 1 argument beside", "write m.helper(x)"),
    "argument missing of a function": Mistake("m.n = «m.helper()»", "takes 1 argument beside", "write m.helper(x)"),
    "starred argument": Mistake("m.n = m.helper(«*[1]»)", "`*[1]` has no meaning", "use names, whole numbers"),
    "one number for min": Mistake("m.n = «min(1)»", "`min` takes two numbers or more", "write min(number, number)"),
    "len of nothing": Mistake("m.n = «len()»", "`len` takes a list or an array", "write len(list)"),
    "len of a number": Mistake("m.n = len(«m.n»)", "`m.n` is a number", "len() is for lists and arrays"),
    "list where a lock is needed": Mistake("spin_lock(«m.q»)", "is a list of packets, and a lock", "as SpinLock()"),
    "array of locks as a lock": Mistake("spin_lock(«m.locks»)", "is an array, and a lock", "m.locks[index]"),
    "local where a variable is needed": Mistake("x = 1\nm.n = READ_ONCE(«x»)", "`x` is a local", "m.NAME"),
    "number where a variable is needed": Mistake("WRITE_ONCE(«1», m.n)", "`1` is a constant", "m.NAME"),
    "parameter where a variable is needed": Mistake("x = READ_ONCE(«m.cpus»)", "is a constant", "m.NAME"),
    "list read as a number": Mistake("x = READ_ONCE(«m.q»)", "is a list of packets", "skb_queue_len()"),
    "truth value that is counted": Mistake("atomic_inc(«m.flag»)", "a shared number is needed", "as Int(…)"),
    "number where a word is needed": Mistake("set_bit(Word.A, «m.n»)", "a flag word is needed", "as Flags(…)"),
    "word and bit exchanged": Mistake("set_bit(«m.word», Word.A)", "`m.word` is no bit", "member of a class of Bits"),
    "unknown bit": Mistake("set_bit(«Word.Z», m.word)", "`Word` has no bit `Z`", "known here: A, B"),
    "bit of another word": Mistake("set_bit(«Other.D», m.word)", "has no bit `D`", "its bits are A, B"),
    "bit that is too high": Mistake("set_bit(«7», m.word)", "`m.word` has no bit `7`", "its bits are A, B"),
    "bit assigned to a word": Mistake("m.word = «Word.B»", "is a bit, and a word of bits", "write BIT(Word.B)"),
    "bit as a mask": Mistake("x = m.word & «Word.B»", "is the number of a bit, 1, and no mask", "write BIT(Word.B)"),
    "word compared with a bit": Mistake("if m.word == «Word.B»: pass", "and no mask", "write BIT(Word.B)"),
    "bit as a condition": Mistake("if «Word.B»: pass", "`Word.B` is a bit", "ask test_bit()"),
    "lock as a condition": Mistake("if «m.lock»: pass", "`m.lock` is a lock", "ask spin_is_locked()"),
    "array as a condition": Mistake("if «m.slots»: pass", "`m.slots` is an array", "m.NAME[index]"),
    "nothing as a condition": Mistake("if «smp_mb()»: pass", "`smp_mb()` is nothing", "write a condition here"),
    "text as a condition": Mistake("if «'x'»: pass", "`'x'` has no meaning", "text stands in check()"),
    "list assigned to a number": Mistake("m.n = «m.q»", "and a number is needed", "write len(m.q) for its length"),
    "number assigned to a list": Mistake("m.q = «3»", "`3` is no list of the thread's own", "assign a list of"),
    "None assigned to a number": Mistake("m.n = «None»", "`None` is None, and a number", "write a number here"),
    "number assigned to a truth value": Mistake("m.flag = «m.n»", "and a truth value is needed", "`m.n != 0`"),
    "1 assigned to a truth value": Mistake("m.flag = «1»", "and a truth value is needed", "write True"),
    "packet where a number is needed": Mistake("m.n = «skb_peek(m.q)»", "is a packet, and a number", "a number here"),
    "lock that is assigned": Mistake("«m.lock = m.lock»", "a lock is not assigned", "take it with spin_lock()"),
    "array that is assigned": Mistake("«m.slots» = 3", "`m.slots` is an array", "one of its elements: m.slots[index]"),
    "parameter that is assigned": Mistake("«m.cpus» = 3", "`cpus` is a constant", "declare a variable"),
    "model that is assigned": Mistake("«m» = 3", "`m` is the model", "use another name"),
    "nothing that is assigned": Mistake("«x» = smp_mb()", "the call returns nothing", "without assigning"),
    "two names assigned": Mistake(
        "«x, y» = 1, 2", "one name or variable is assigned at a time", "one assignment a line"
    ),
    "chain of assignments": Mistake("«x = y = 1»", "one name or variable is assigned at a time", "assignment a line"),
    "comparison instead of assignment": Mistake("«m.n == 1»", "nothing uses what this comparison", "write `=`"),
    "value that nothing uses": Mistake("«m.n + 1»", "nothing uses this value", "assign it, or remove it"),
    "number that becomes a packet": Mistake("x = 1\n«x» = None", "was a number and becomes a packet", "a second name"),
    "kinds that differ by branch": Mistake(
        "if m.n:\n    x = 1\nelse:\n    «x» = None", "was a number and becomes a packet", "use a second name"
    ),
    "list that differs by branch": Mistake(
        "if m.n:\n    b = m.q\nelse:\n    b = SkbQueue()\nm.n = len(«b»)", "the same shared variable", "on each of the"
    ),
    "local without a value after an if": Mistake(
        "if m.n:\n    x = 1\nm.n = «x»", "`x` may have no value here", "`x = …` before the branch"
    ),
    "local without a value after a loop": Mistake(
        "while m.n:\n    x = 1\n    break\nm.n = «x»", "`x` may have no value here", "on every way to here"
    ),
    "counter after its loop": Mistake(
        "for i in range(m.n):\n    pass\nm.n = «i»", "`i` may have no value here", "on every way to here"
    ),
    "number without a bound": Mistake(
        "«x» = 0\nwhile m.n:\n    x += 1\nm.n = x", "no bound is known for `x`", "`x: u8 = …` (0 to 255), s8 or u16"
    ),
    "bound after the first value": Mistake("x = 0\nx: «u8» = 1\nm.n = x", "`x` has a value already", "gets the first"),
    "unknown type": Mistake("x: «u9» = 1", "unknown type `u9`", "known here: Skb,"),
    "type without a value": Mistake("«x: u8»", "gets its value where it is declared", "write `name: type = value`"),
    "type of a shared variable": Mistake("«m.n: u8 = 1»", "only a local is declared here", "in the class"),
    "number declared as truth value": Mistake("x: bool = «5»", "and a truth value is needed", "write True"),
    "number declared as packet": Mistake("x: Skb = «5»", "is a number, and a packet is needed", "or None"),
    "values of different kinds": Mistake("x = «True if m.n else 5»", "of different kinds", "write an `if` statement"),
    "packet compared with a number": Mistake("if «skb_peek(m.q) == 1»: pass", "compared with a number", "or None"),
    "packets in order": Mistake("if «skb_peek(m.q) < None»: pass", "packets have no order", "compare their `index`"),
    "list compared": Mistake("if «m.q» == 3: pass", "`m.q` is a list of packets", "the length of a list: len()"),
    "chain of comparisons": Mistake("if «0 < m.n < 3»: pass", "reads a variable twice", "apart, with `and`"),
    "in": Mistake("if «m.n in (1, 2)»: pass", "`in` has no meaning here", "compare with =="),
    "fraction": Mistake("m.n = «1.5»", "`1.5` has no meaning", "numbers are whole"),
    "text": Mistake("x = «'abc'»", "`'abc'` has no meaning", "text stands in check()"),
    "f-string": Mistake("x = «f'{m.n}'»", "has no meaning in a model", "text stands in check()"),
    "lambda": Mistake("x = «lambda: 1»", "`lambda: 1` has no meaning", "use names, whole numbers"),
    "list of Python": Mistake("x = «[1, 2]»", "`[1, 2]` has no meaning", "declare an Array"),
    "comprehension": Mistake("x = «[i for i in range(3)]»", "has no meaning in a model", "use names, whole numbers"),
    "division": Mistake("m.n = «m.n / 2»", "`/` has no meaning for whole numbers", "write `//`"),
    "power": Mistake("m.n = «m.n ** 2»", "`**` has no meaning for whole numbers", "write a product"),
    "complement": Mistake("m.n = «~m.n»", "`~` has no meaning for a bounded number", "clear_bit()"),
    "division by 0": Mistake("m.n = «3 // 0»", "this divides by 0", "divide by another number"),
    "negative shift": Mistake("m.n = «1 << -1»", "this shifts by -1 bits", "shift by 0 to 64 bits"),
    "huge shift": Mistake("m.n = «1 << 1000»", "this shifts by 1000 bits", "shift by 0 to 64 bits"),
    "bit that is no bit number": Mistake("m.word = «BIT(-1)»", "this shifts by -1 bits", "shift by 0 to 64"),
    "index outside": Mistake("m.slots[«2»] = 1", "no element with this index: there are 2", "use 0 to 1"),
    "negative index": Mistake("m.slots[«-1»] = 1", "no element with this index", "use 0 to 1"),
    "slice": Mistake("x = m.slots[«0:1»]", "`0:1` has no meaning", "use names, whole numbers"),
    "element of a scalar": Mistake("m.n = «m.n[0]»", "`m.n` is a number", "only an Array or PerCpu"),
    "element of a list": Mistake("x = «m.q[0]»", "`m.q` is a list of packets", "only an Array or PerCpu"),
    "number of each CPU as one": Mistake("m.n = «m.packets»", "has a number for each CPU", "write `packets[cpu]`"),
    "attribute of a number": Mistake("m.n = «m.n.y»", "a number has no `y`", "attributes of `m`"),
    "attribute of a packet": Mistake("m.n = «skb_peek(m.q).len»", "a packet has no `len`", "known here: flow, index"),
    "number that is queued": Mistake("__skb_queue_tail(m.q, «3»)", "and a packet is needed", "__skb_dequeue()"),
    "list and packet exchanged": Mistake("__skb_queue_tail(«skb_peek(m.q)», m.q)", "and a list is needed", "SkbList()"),
    "budget that is a parameter": Mistake("if choose(«m.cpus»): pass", "`m.cpus` is no budget", "Budget(2)"),
    "budget of somebody else": Mistake("if choose(«x.busy»): pass", "`x.busy` is no budget", "write m.busy"),
    "text in place of a budget": Mistake("if choose(«'x'»): pass", "`'x'` is no budget", "Budget(2)"),
    "softirq that is a function": Mistake("raise_softirq(«m.helper»)", "is no softirq", "marked @softirq"),
    "softirq that is a thread": Mistake("raise_softirq(«m.run»)", "`m.run` is no softirq", "marked @softirq"),
    "softirq without m": Mistake("raise_softirq(«handler»)", "unknown name `handler`", "write `m.handler`"),
    "check without text": Mistake("«check(m.n < 9)»", "`check` takes 2 arguments", 'write check(condition, "text")'),
    "check with a number as text": Mistake("check(m.n < 9, «3»)", "a text is needed here", "between quotes"),
    "try_cmpxchg of a number": Mistake("x = «try_cmpxchg(m.n, 2, 3)»", "a local and a value", "`old` is a local"),
    "wait without a condition": Mistake("«wait_until()»", "takes a condition", "write wait_until(condition)"),
    "wait for nothing": Mistake("wait_until(«True»)", "nothing changes what this waits for", "a shared variable"),
    "wait for two variables": Mistake("wait_until(«m.flag and m.n»)", "several variables", "`with atomic():`"),
    "wait with a side effect": Mistake("wait_until(«xchg(m.flag, True)»)", "no meaning here", "only looks"),
    "wait for a shared index": Mistake("wait_until(m.slots[«m.n & 1»])", "read from shared memory", "into a local"),
    "with something else": Mistake("with «m.lock»:\n    pass", "`with` has one use", "write `with atomic():`"),
    "atomic without with": Mistake("«atomic()»", "makes a block one step", "`with atomic():` and the block"),
    "lock in the middle of atomic": Mistake(
        "with atomic():\n    m.n = 1\n    «spin_lock(m.lock)»", "in the middle of an atomic block", "the first thing"
    ),
    "choice in a loop in atomic": Mistake(
        "with atomic():\n    while «choose()»:\n        m.n = 1", "is a step of its own", "out of `with atomic():`"
    ),
    "loop over a list": Mistake("for s in «m.q»:\n    pass", "cannot be iterated over", "while (skb := __skb_dequeue"),
    "loop over a tuple": Mistake("for i in «(1, 2)»:\n    pass", "cannot be iterated over", "for i in range(n)"),
    "loop with two names": Mistake("for «i, s» in m.q:\n    pass", "a loop has one variable", "`for name in …`"),
    "range with a step": Mistake("for i in «range(0, 4, 2)»:\n    pass", "cannot be iterated over", "range(n)"),
    "else of a loop": Mistake("for i in range(2):\n    pass\nelse:\n    «m.n = 1»", "`else` after a loop", "`break`"),
    "flow without its CPU": Mistake("for s in «m.flow()»:\n    pass", "cannot be iterated over", "m.flow(cpu)"),
    "flow that is not there": Mistake("for s in m.flow(«7»):\n    kfree_skb(s)", "no element", "use 0 to 1"),
    "flow as a value": Mistake("x = «m.flow(cpu)»", "a flow is iterated over", "`for skb in m.flow(cpu)`"),
    "parked in a thread": Mistake("x = «m.parked(0)»", "in a scenario itself only", "m.flow(cpu)"),
    "value returned by a thread": Mistake("«return 3»", "a thread returns to nobody", "write `return` alone"),
    "break outside of a loop": Mistake("«break»", "there is no loop here", "use `return`"),
    "loop that never ends": Mistake("«while True:»\n    cpu_relax()", "never ends and touches no", "by `break`"),
    "loop on a local": Mistake("x = 1\nwhile x:\n    «x» = 1", "never ends and touches no", "by `break`"),
    "bottom halves on twice": Mistake("«local_bh_enable()»", "bottom halves are on already", "local_bh_disable()"),
    "bottom halves off at the end": Mistake("«local_bh_disable()»", "with bottom halves off", "local_bh_enable()"),
    "bottom halves off in a loop": Mistake(
        "while m.n:\n    «local_bh_disable()»", "off along another", "in pairs on every way"
    ),
    "assert": Mistake("«assert m.n»", "`assert` has no meaning", "write check(condition"),
    "try": Mistake("«try:»\n    m.n = 1\nexcept E:\n    pass", "`try` has no meaning", "use `if`"),
    "raise": Mistake("«raise E»", "`raise` has no meaning", "use check()"),
    "global": Mistake("«global NAME»", "`global` has no meaning", "declare shared variables in the class"),
    "del": Mistake("«del m.n»", "`del` has no meaning", "kfree_skb()"),
    "nested function": Mistake("«def f():»\n    pass", "`def` has no meaning", "a function of the class"),
    "nested class": Mistake("«class C:»\n    pass", "`class` has no meaning", "the functions of one class"),
    "import in a function": Mistake("«import os»", "`import` has no meaning", "at the top of the file"),
    "match": Mistake("«match m.n:»\n    case 1:\n        pass", "`match` has no meaning", "`if` and `elif`"),
    "await": Mistake("«await x»", "`await x` has no meaning", "use names, whole numbers"),
    "yield": Mistake("«yield 1»", "has no meaning in a model", "use names, whole numbers"),
}


@pytest.mark.parametrize("name", IN_A_THREAD)
def test_mistake_in_a_thread(tmp_path: Path, name: str) -> None:
    """A mistake in the code of a thread is told at the piece of code that is wrong."""
    check(tmp_path, model(code=IN_A_THREAD[name].text), IN_A_THREAD[name])


# --- functions, threads, properties, scenarios ------------------------------------------------------------------------

FUNCTIONS = {
    "recursion": Mistake("def f(m):\n    «m.f()»", "`f` calls itself", "write it as a loop", "m.f()"),
    "recursion through another": Mistake(
        "def f(m):\n    m.g()\n\ndef g(m):\n    «m.f()»", "`f` calls itself", "write it as a loop", "m.f()"
    ),
    "value on one way only": Mistake(
        "«def f(m):»\n    if m.flag:\n        return 1",
        "does not return a value on every way",
        "add a `return`",
        "m.n = m.f()",
    ),
    "values of two kinds": Mistake(
        "def f(m):\n    if m.flag:\n        return 1\n    return «None»",
        "returns a number elsewhere",
        "the same kind",
        "x = m.f()",
    ),
    "nothing and a value": Mistake(
        "def f(m):\n    if m.flag:\n        return\n    «return 1»",
        "returns nothing elsewhere",
        "a value there too",
        "x = m.f()",
    ),
    "value and nothing": Mistake(
        "def f(m):\n    if m.flag:\n        return 1\n    «return»",
        "returns a value elsewhere",
        "one here too",
        "x = m.f()",
    ),
    "shared list returned": Mistake(
        "def f(m):\n    return «m.q»", "a list of packets cannot be returned", "a list of the thread's own", "x = m.f()"
    ),
    "local without a value": Mistake(
        "def f(m):\n    if m.flag:\n        x = 1\n    return «x»",
        "`x` may have no value here",
        "every way to here",
        "m.n = m.f()",
    ),
    "local with a value of another call": Mistake(
        "def f(m, c):\n    if c or m.flag:\n        x = 1\n    return «x»",
        "`x` may have no value here",
        "every way",
        "m.n = m.f(True)\nm.n = m.f(m.flag)",
    ),
    "default of an argument": Mistake(
        "«def f(m, a=1):»\n    return a", "takes plain arguments", "without a default", "m.n = m.f(1)"
    ),
    "no argument at all": Mistake(
        "«def f():»\n    pass", "the first argument is the model", "write `def f(m, …)`", "m.f()"
    ),
    "argument twice": Mistake(
        "def f(m, a, «a»):\n    pass", "two arguments are called `a`", "differently", "m.f(1, 2)"
    ),
    "model under another name": Mistake(
        "def f(self):\n    «m».n = 1", "unknown name `m`", "the model is called `self`", "m.f()"
    ),
    "break of the caller's loop": Mistake(
        "def f(m):\n    «break»", "there is no loop here", "`return`", "while m.n:\n    m.f()"
    ),
    "function that nothing calls": Mistake("«def f(m):»\n    pass", "`f` is never called", "call it: m.f(…)"),
    "softirq that nothing raises": Mistake(
        "@softirq\n«def f(m, cpu):»\n    pass", "`f` is never called", "raise it: raise_softirq(m.f)"
    ),
    "async": Mistake("«async def f(m):»\n    pass", "`async` has no meaning", "write a plain function"),
    "unknown decorator": Mistake(
        "@«thred»\ndef f(m):\n    pass", "unknown decorator `thred`", "did you mean `thread`?"
    ),
    "two decorators": Mistake("@thread\n@«softirq»\ndef f(m):\n    pass", "has one decorator", "remove the others"),
    "thread with too many arguments": Mistake(
        "@thread\ndef f(m, cpu, «x»):\n    m.n = 1", "is told its CPU only", "read the rest from the model"
    ),
    "number of threads without its name": Mistake(
        "@thread(«2»)\ndef f(m):\n    m.n = 1", "takes no value without a name", "write @thread(each=…)"
    ),
    "misspelt each": Mistake("@thread(«eech=2»)\ndef f(m):\n    m.n = 1", "takes no `eech`", "did you mean `each`?"),
    "negative number of threads": Mistake(
        "@thread(each=«cpus - 5»)\ndef f(m):\n    m.n = 1", "`each` is a number of CPUs", "at least 0"
    ),
    "unknown number of threads": Mistake(
        "@thread(each=«cpsu»)\ndef f(m):\n    m.n = 1", "unknown name `cpsu`", "did you mean `cpus`?"
    ),
    "environment without a budget": Mistake(
        "@«environment»\ndef f(m):\n    m.n = 1", "needs a budget", "write @environment(budget=…)"
    ),
    "negative budget": Mistake(
        "@environment(budget=«-1»)\ndef f(m):\n    m.n = 1", "a budget is a number", "of at least 0"
    ),
    "environment as a budget": Mistake(
        "@environment(budget=1)\ndef f(m):\n    m.n = 1", "`m.f` is no budget", "Budget(2)", "if choose(«m.f»): pass"
    ),
    "mistake in an environment that never acts": Mistake(
        "@environment(budget=0)\ndef f(m):\n    m.n = «nothing»", "unknown name `nothing`", "write m.NAME"
    ),
    "property without a name": Mistake("@«invariant»\ndef f(m):\n    return True", "has no name", '@invariant("name")'),
    "property of the language": Mistake(
        '@«invariant("order")»\ndef f(m):\n    return True', "`order` comes with the language", "another name"
    ),
    "two properties of one name": Mistake(
        '@invariant("a")\ndef f(m):\n    return True\n\n@«measure("a")»\ndef g(m):\n    return m.n',
        "a second property `a`",
        "another name",
    ),
    "property with a loop": Mistake(
        '@invariant("a")\ndef f(m):\n    «for i in range(3):»\n        pass\n    return True',
        "`f` is not one `return`",
        "write `return CONDITION`",
    ),
    "property with an assignment": Mistake(
        '@invariant("a")\ndef f(m):\n    «x = m.n»\n    return x', "`f` is not one `return`", "write `return CONDITION`"
    ),
    "property that reads a local": Mistake(
        '@invariant("a")\ndef f(m):\n    return «skb» is None', "unknown name `skb`", "what the model declares"
    ),
    "property with arguments": Mistake(
        '@invariant("a")\n«def f(m, cpu):»\n    return cpu == 0', "the model and nothing else", "write `def f(m):`"
    ),
    "property with a side effect": Mistake(
        '@invariant("a")\ndef f(m):\n    return «atomic_inc_return(m.n)» < 3', "has no meaning here", "only looks"
    ),
    "property that assigns": Mistake(
        '@invariant("a")\ndef f(m):\n    return («x := m.n») < 3', "nothing can be assigned here", "where it is used"
    ),
    "property that is a list": Mistake(
        '@invariant("a")\ndef f(m):\n    return «m.q»', "is a list of packets", "return a number or a condition"
    ),
    "property with a helper that acts": Mistake(
        '@invariant("a")\ndef f(m):\n    return m.g()\n\ndef g(m):\n    «m.n = 1»\n    return True',
        "`g` is not one `return`",
        "helpers may be functions of the same form",
    ),
    "property that calls itself": Mistake(
        '@invariant("a")\ndef f(m):\n    return m.g()\n\ndef g(m):\n    return «m.g()»',
        "`g` calls itself",
        "write it out",
    ),
    "property with a computed index": Mistake(
        '@invariant("a")\ndef f(m):\n    return m.slots[«m.n»] < 4', "not within 0 to 1 in every state", "all()"
    ),
    "property that may divide by 0": Mistake(
        '@invariant("a")\ndef f(m):\n    return «3 // m.n» < 4', "division by 0 is not ruled out", "a constant"
    ),
    "property that looks at another bit": Mistake(
        '@invariant("a")\ndef f(m):\n    return test_bit(«Other.D», m.word)', "has no bit `D`", "its bits are A, B"
    ),
    "property over no range": Mistake(
        '@invariant("a")\ndef f(m):\n    return «all(m.n < 4 for i in range())»', "range is not known", "range(n)"
    ),
    "property over all of a list": Mistake(
        '@invariant("a")\ndef f(m):\n    return «all(m.slots)»', "all() ranges over numbers", "for i in range(n)"
    ),
    "property that is called": Mistake(
        '@invariant("a")\ndef f(m):\n    return True',
        "`f` is marked @invariant",
        "a function of its own",
        "if «m.f()»: pass",
    ),
    "scenario without a name": Mistake("@«scenario»\ndef f(m):\n    m.n = 1", "has no name", '@scenario("name")'),
    "second scenario": Mistake(
        '@«scenario("default")»\ndef f(m):\n    m.n = 1', "a second scenario `default`", "another name"
    ),
    "unknown parameter of a scenario": Mistake(
        '@scenario("a", «cpu=1»)\ndef f(m):\n    m.n = 1', "no parameter `cpu`", "did you mean `cpus`?"
    ),
    "too many numbers in a scenario": Mistake(
        '@«scenario("a", packets=(1, 2, 3))»\ndef f(m):\n    m.n = 1', "3 numbers, one a flow", "one number a flow"
    ),
    "scenario with an argument": Mistake(
        '@scenario("a")\ndef f(m, «cpu»):\n    m.n = 1', "a scenario is told nothing", "from the model"
    ),
    "scenario that chooses": Mistake(
        '@scenario("a")\ndef f(m):\n    if «choose()»:\n        m.n = 1', "has one outcome", "threads begin after it"
    ),
    "scenario that locks": Mistake(
        '@scenario("a")\ndef f(m):\n    «spin_lock(m.lock)»', "has no meaning in a scenario", "threads begin after it"
    ),
    "scenario that waits": Mistake(
        '@scenario("a")\ndef f(m):\n    «wait_until(m.flag)»', "has no meaning in a scenario", "threads begin after it"
    ),
    "scenario that hands packets over": Mistake(
        '@scenario("a")\ndef f(m):\n    for s in «m.flow(0)»:\n        kfree_skb(s)',
        "hands nothing over",
        "m.parked(flow)",
    ),
    "packet of no flow that is parked": Mistake(
        '@scenario("a")\ndef f(m):\n    __skb_queue_tail(m.q, «m.parked(5)»)', "the number of a flow", "from 0 to 1"
    ),
    "packets that are parked in a loop": Mistake(
        '@scenario("a")\ndef f(m):\n    while m.n:\n        __skb_queue_tail(m.q, «m.parked(0)»)',
        "in a branch or a loop",
        "one call after another",
    ),
    "value returned by a scenario": Mistake(
        '@scenario("a")\ndef f(m):\n    «return 3»', "a scenario returns to nobody", "write `return` alone"
    ),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_mistake_in_a_function(tmp_path: Path, name: str) -> None:
    """A mistake in a function, a property or a scenario is told where it stands, or where it is called wrongly."""
    check(tmp_path, model(functions=FUNCTIONS[name].text, code=FUNCTIONS[name].code), FUNCTIONS[name])


# --- declarations and expectations ------------------------------------------------------------------------------------

DECLARED = {
    "value out of its domain": Mistake("z = Int(«5», high=3)", "starts outside its bounds", "its values are 0 to 3"),
    "truth value that is 2": Mistake("z = Bool(«2»)", "starts outside its bounds", "its values are 0 to 1"),
    "word that is too great": Mistake("z = Flags(Word, «8»)", "starts outside its bounds", "its values are 0 to 3"),
    "no greatest value": Mistake("z = «Int(0)»", "an Int needs its greatest value", "write Int(0, high=…)"),
    "bounds exchanged": Mistake("z = «Int(0, high=-1)»", "no number is from 0 to -1", "exchange low and high"),
    "two values": Mistake("z = Int(0, «1», high=3)", "takes 1 value without a name", "name the others"),
    "misspelt declaration": Mistake("z = «Itn»(0, high=3)", "`Itn` declares nothing", "did you mean `Int`?"),
    "misspelt keyword": Mistake("z = Int(0, «hi=3»)", "Int takes no `hi`", "did you mean `high`?"),
    "unpacked keywords": Mistake("z = Int(0, «**x»)", "takes its values one by one", "write them out"),
    "rest that never comes": Mistake("z = Bool(rest=«5»)", "it can never have this value", "its values are 0 to 1"),
    "rest of a list": Mistake("z = SkbList(rest=«3»)", "it can never have this value", "when it is empty: 0"),
    "negative limit": Mistake("z = SkbList(limit=«-1»)", "`limit` is a number", "at least 0"),
    "list with a value": Mistake("z = SkbList(«3»)", "takes no value without a name", "a list begins empty"),
    "guard that is no lock": Mistake("z = Int(0, high=3, guarded_by=«n»)", "`n` is no lock", "SpinLock()"),
    "misspelt guard": Mistake("z = Int(0, high=3, guarded_by=«lokc»)", "unknown name `lokc`", "did you mean `lock`?"),
    "guard as text": Mistake("z = Int(0, high=3, guarded_by=«'lock'»)", "guarded_by names a lock", "name a SpinLock"),
    "guard with m": Mistake("z = Int(0, high=3, guarded_by=«m.lock»)", "is no class of Bits", "write `lock` alone"),
    "guard of another size": Mistake(
        "z = Array(Int(0, high=3), size=3, guarded_by=«locks»)", "`locks` has 2 locks", "of the same size"
    ),
    "word without bits": Mistake("z = «Flags()»", "Flags names its bits", "write Flags(CLASS)"),
    "word with unknown bits": Mistake("z = Flags(«Wrod»)", "unknown name `Wrod`", "did you mean `Word`?"),
    "array of a number": Mistake("z = «Array(3, size=2)»", "Array takes one declaration", "write Array(Int("),
    "array without a size": Mistake("z = «Array(Bool())»", "has a size from 1 to 1000", "write Array(Bool(), size=…)"),
    "negative size": Mistake("z = «Array(Bool(), size=-1)»", "has a size from 1 to 1000", "size=…"),
    "computed size that is 0": Mistake("z = «Array(Bool(), size=cpus - 2)»", "has a size from 1", "size=…"),
    "size of PerCpu": Mistake("z = PerCpu(Bool(), «size=2»)", "PerCpu takes no `size`", "known here: guarded_by"),
    "division by 0": Mistake("z = Int(0, high=«3 // 0»)", "this divides by 0", "divide by another number"),
    "negative shift": Mistake("z = «1 << -1»", "this shifts by -1 bits", "shift by 0 to 64 bits"),
    "text": Mistake("z = «'abc'»", "no declaration and no number", "write Param(…), Int(…)"),
    "fraction": Mistake("z = «1.5»", "is not known before the search begins", "use numbers, parameters"),
    "dictionary": Mistake("z = «{}»", "is not known before the search begins", "use numbers, parameters"),
    "parameter without a default": Mistake("z = «Param()»", "Param takes one default", "`z = Param(default, …)`"),
    "default that is text": Mistake("z = Param(«'x'»)", "is no default for Param", "give a number"),
    "default outside": Mistake("z = Param(«5», high=3)", "not within low and high", "the greatest 3"),
    "negative budget": Mistake("z = Budget(«-1»)", "is no default for Budget", "at least 0"),
    "keyword of a parameter": Mistake("z = Param(5, «max=3»)", "Param takes no `max`", "known here: doc, grows"),
    "bound that is text": Mistake("z = «Param(5, low='a')»", "low and high are numbers", "low=0"),
    "packets without flows": Mistake("z = «Packets(1)»", "needs the number of flows", "each=cpus"),
    "second packets": Mistake("z = «Packets(1, each=cpus)»", "a second Packets", "one Packets"),
    "variable declared twice": Mistake("«n = Bool()»", "`n` is declared twice", "another name"),
    "variable like a parameter": Mistake("«cpus = Bool()»", "`cpus` is declared twice", "another name"),
    "parameter like --variant": Mistake("variant = «Param(1)»", "--variant is an option", "another name"),
    "parameter like --json": Mistake("json = «Param(True)»", "--json is an option of the command", "another name"),
    "parameter like --no-z": Mistake("z = Param(True)\nno_z = «Param(1)»", "--no-z is an option", "another name"),
    "name of the language": Mistake("«flow = Bool()»", "`flow` belongs to every model", "another name"),
    "name that is kept": Mistake("__where = «Bool()»", "the language keeps for itself", "another name"),
    "variable that nobody uses": Mistake("zz = «Bool()»", "`zz` is never used", "write m.zz where it belongs"),
    "parameter that nobody uses": Mistake("zz = «Param(1)»", "`zz` is never used", "write m.zz"),
    "variable that is used under another name": Mistake(
        "stopped = «Bool()»", "`stopped` is never used", "is it meant by `m.stoped`?", "m.stoped = True"
    ),
    "two at once": Mistake("«a, b = Bool(), Bool()»", "in the body of a model", "keep to declarations"),
    "no value": Mistake("«a: int»", "in the body of a model", "keep to declarations"),
    "condition": Mistake("«if True:»\n    a = Bool()", "in the body of a model", "keep to declarations"),
    "call": Mistake("«print(1)»", "in the body of a model", "keep to declarations"),
    "nested class": Mistake("«class C:»\n    pass", "in the body of a model", "keep to declarations"),
    "kernel that is text": Mistake("kernel = «'x'»", "`kernel` is a Kernel(…)", "write kernel = Kernel("),
    "commit that is a number": Mistake("kernel = Kernel(«1234»)", "`commit` of a Kernel is text", "between quotes"),
    "two commits": Mistake("kernel = Kernel('a', «'b'»)", "Kernel takes one commit", "since="),
    "misspelt since": Mistake("kernel = Kernel('a', «sinc='4'»)", "takes no `sinc`", "did you mean `since`?"),
    "expectation without a list": Mistake("expect = «Refutes('order')»", "`expect` is a list", "expect = ["),
    "expectation of something": Mistake("expect = [«'order'»]", "is Refutes(…) or Holds(…)", "Refutes("),
    "Refutes without a property": Mistake("expect = [«Refutes()»]", "Refutes names no property", 'Refutes("property"'),
    "Holds with a property": Mistake("expect = [«Holds('order')»]", "Holds names a property", "without one"),
    "unknown property": Mistake("expect = [Refutes(«'ordr'»)]", "no property `ordr`", "did you mean `order`?"),
    "property without quotes": Mistake("expect = [Refutes(«Word.A»)]", "no property `Word.A`", "known here: check,"),
    "unknown parameter": Mistake("expect = [Holds(«cpu=2»)]", "no parameter `cpu`", "did you mean `cpus`?"),
    "unknown scenario": Mistake("expect = [Holds(scenario=«'x'»)]", "no scenario `x`", "known here: default"),
    "unknown memory model": Mistake("expect = [Holds(memory=«'pso'»)]", "no memory model `pso`", "`tso`?"),
    "no memory model": Mistake("expect = [Holds(memory=«[]»)]", "no memory model is named", "name one of"),
    "value of a wrong kind": Mistake("expect = [Holds(cpus=«'x'»)]", "is no value for `cpus`", "give a number"),
    "negative value": Mistake("expect = [Holds(packets=«-1»)]", "is no value for `packets`", "give a number"),
    "too many numbers": Mistake("expect = [«Holds(packets=(1, 2, 3))»]", "there are 2 flows", "correct the parameters"),
    "two expectations for one run": Mistake(
        "expect = [Holds(), «Refutes('order', cpus=2)»]", "a second expectation", "in one Refutes(…)"
    ),
}


@pytest.mark.parametrize("name", DECLARED)
def test_mistake_in_a_declaration(tmp_path: Path, name: str) -> None:
    """A mistake in a declaration or an expectation is told at the value that is wrong, before anything is compiled."""
    mistake = DECLARED[name]
    used = "z = m.z" if mistake.text.startswith("z = ") else "z = m.__where" if "__where" in mistake.text else ""
    check(tmp_path, model(declared=mistake.text, code=mistake.code or used), mistake)


# --- whole files ------------------------------------------------------------------------------------------------------

BASE = f'''{IMPORTS}
class Base(Model):
    """What the variants have in common."""

    n = Int(0, high=3)

    @thread
    def run(m):
        m.n = 1
        m.f()

    def f(m): ...

    @invariant("small")
    def small(m):
        return m.n < 4


class Good(Base):
    def f(m):
        m.n = 2

'''

FILES = {
    "variant that changes nothing": Mistake(
        BASE + "«class Same(Good):»\n    '''The same.'''\n",
        "`Same` changes nothing of `Good`",
        "override what the patch",
    ),
    "variant with expectations only": Mistake(
        BASE + "«class Same(Good):»\n    expect = [Holds()]\n",
        "changes nothing of `Good`",
        "what comes out of `Good` there",
    ),
    "variant that overrides a name that is not there": Mistake(
        BASE + "class Bad(Good):\n    «def ff(m):»\n        m.n = 3\n", "`ff` overrides nothing", "did you mean `f`?"
    ),
    "abstract function that is not overridden": Mistake(
        BASE
        + "«class Bad(Base):»\n    x = Int(0, high=1)\n\n    @quiescent('x')\n    def q(m):\n        return m.x == 0\n",
        "`f` of `Bad` has no body",
        "override it",
    ),
    "variant that loses a thread": Mistake(
        BASE + "class Bad(Good):\n    «def run(m):»\n        m.n = 3\n",
        "with @thread in `Base`",
        "write @thread here too",
    ),
    "variant that loses a property": Mistake(
        BASE + "class Bad(Good):\n    «def small(m):»\n        return m.n < 2\n",
        "with @invariant",
        "write @invariant here",
    ),
    "variant that makes a function of a variable": Mistake(
        BASE + "class Bad(Good):\n    «def n(m):»\n        return 1\n", "is a declaration in `Base`", "another name"
    ),
    "variant with other arguments": Mistake(
        (BASE + "class Bad(Good):\n    def f(m, x):\n        m.n = x\n").replace("m.f()", "«m.f()»"),
        "`f` takes 1 argument beside the model",
        "write m.f(x)",
    ),
    "two variants of one name": Mistake(
        BASE + "class OneTwo(Good):\n    def f(m):\n        m.n = 1\n\n"
        "«class ONETwo(Good):»\n    def f(m):\n        m.n = 1\n",
        "a second variant `one-two`",
        "another name",
    ),
    "two classes of one name": Mistake(
        BASE + "«class Good(Base):»\n    def f(m):\n        m.n = 1\n", "a second `Good` in this file", "another name"
    ),
    "classes in a circle": Mistake(
        IMPORTS + "«class A(B):»\n    pass\n\nclass B(A):\n    pass\n", "`A` inherits from itself", "break the circle"
    ),
    "unknown base": Mistake(
        IMPORTS + "class A(«Modell»):\n    pass\n", "`Modell` is no model", "did you mean `Model`?"
    ),
    "base that is bits": Mistake(
        IMPORTS + "class B(Bits):\n    A = 0\n\nclass A(«B»):\n    pass\n", "`B` is no model", "known here: Model"
    ),
    "no base": Mistake(BASE + "«class A:»\n    pass\n", "`A` derives from nothing", "write `class A(Model):`"),
    "two bases": Mistake(IMPORTS + "class A(Model, «Bits»):\n    pass\n", "has one base", "derive from one model"),
    "base in a module": Mistake(
        IMPORTS + "class A(«lang.Model»):\n    pass\n", "a base is a plain name", "by its name"
    ),
    "metaclass": Mistake(
        IMPORTS + "class A(Model, «metaclass=M»):\n    pass\n", "a base and nothing else", "remove it"
    ),
    "decorated class": Mistake(IMPORTS + "@«dataclass»\nclass A(Model):\n    pass\n", "has no decorator", "remove it"),
    "no thread": Mistake(IMPORTS + "«class A(Model):»\n    n = Int(0, high=1)\n", "`A` has no thread", "with @thread"),
    "import of a module": Mistake("«import os»\n", "imports names, not modules", "from qmodel.lang import"),
    "import of the language": Mistake(
        "«import qmodel.lang»\n", "imports names, not modules", "from qmodel.lang import"
    ),
    "relative import of a module": Mistake("«from . import x»\n", "imports names, not modules", "from qmodel.specs"),
    "star": Mistake("from qmodel.lang import «*»\n", "by their names", "name each word"),
    "import under another name": Mistake("from qmodel.lang import «Model as M»\n", "by their names", "without `as`"),
    "import of an unknown word": Mistake(
        "from qmodel.lang import «Modle»\n", "has no `Modle`", "did you mean `Model`?"
    ),
    "word that is not imported": Mistake(
        "from qmodel.lang import Model, thread\n\nclass A(Model):\n    @thread\n    def f(m):\n        «smp_mb»()\n",
        "`smp_mb` is not imported",
        "write `from qmodel.lang import smp_mb`",
    ),
    "import from Python": Mistake("«from os import path»\n", "no specification `os`", "qmodel.specs.requeue"),
    "import of a missing specification": Mistake(
        "«from qmodel.specs.nosuch import X»\n", "no specification `qmodel.specs.nosuch`", "qmodel.specs.requeue"
    ),
    "import of a missing class": Mistake(
        "from qmodel.specs.requeue import «Rekeue»\n", "has no `Rekeue`", "did you mean `Requeue`?"
    ),
    "star from a specification": Mistake("from qmodel.specs.requeue import «*»\n", "one by one", "name what you use"),
    "function outside of a class": Mistake(
        "«def f():»\n    pass\n", "stands outside of a model", "move it into the class"
    ),
    "call at the top": Mistake("«print(1)»\n", "at the top of a specification", "keep to imports"),
    "condition at the top": Mistake("«if True:»\n    X = 1\n", "at the top of a specification", "keep to imports"),
    "constant twice": Mistake("X = 1\n«X = 2»\n", "a second `X` in this file", "another name"),
    "constant of itself": Mistake("X = «Y»\nY = X\n", "`X` is defined by itself", "give it a number"),
    "bits with a gap": Mistake(
        IMPORTS + "«class B(Bits):»\n    A = 0\n    C = 2\n\n"
        "class M(Model):\n    w = Flags(B)\n\n    @thread\n    def f(m):\n        m.w = 1\n",
        "the bits of `B` have gaps",
        "number them 0, 1, 2",
    ),
    "bit twice": Mistake(
        IMPORTS + "class B(Bits):\n    A = 0\n    «A = 1»\n\n"
        "class M(Model):\n    w = Flags(B)\n\n    @thread\n    def f(m):\n        m.w = 1\n",
        "`A = 1` is no new bit",
        "of its own",
    ),
    "no bits": Mistake(
        IMPORTS + "«class B(Bits):»\n    '''None.'''\n\n"
        "class M(Model):\n    w = Flags(B)\n\n    @thread\n    def f(m):\n        m.w = 1\n",
        "`B` has no bits",
        "write `NAME = 0`",
    ),
    "bits with a function": Mistake(
        IMPORTS + "class B(Bits):\n    A = 0\n    «def f(self):»\n        pass\n\n"
        "class M(Model):\n    w = Flags(B)\n\n    @thread\n    def f(m):\n        m.w = 1\n",
        "has members only",
        "write `NAME = number`",
    ),
    "flow without packets": Mistake(
        IMPORTS
        + "class M(Model):\n    @thread\n    def f(m, cpu):\n        for s in «m.flow(cpu)»:\n            pass\n",
        "declares no Packets",
        "write `packets = Packets(2, each=cpus)`",
    ),
    "parked without packets": Mistake(
        IMPORTS + "class M(Model):\n    q = SkbList()\n\n    @thread\n    def f(m):\n        smp_mb()\n\n"
        "    @scenario('a')\n    def a(m):\n        __skb_queue_tail(m.q, «m.parked(0)»)\n",
        "declares no Packets",
        "write `packets = Packets(2, each=cpus)`",
    ),
    "order expected without packets": Mistake(
        IMPORTS
        + "class M(Model):\n    @thread\n    def f(m):\n        smp_mb()\n\n    expect = [Refutes(«'order'»)]\n",
        "no property `order`",
        "known here: check, deadlock",
    ),
    "flows of an unknown number": Mistake(
        IMPORTS + "class M(Model):\n    packets = Packets(1, each=«cpsu»)\n    cpus = Param(1)\n\n"
        "    @thread(each=cpus)\n    def f(m, cpu):\n        for s in m.flow(cpu):\n            kfree_skb(s)\n",
        "unknown name `cpsu`",
        "did you mean `cpus`?",
    ),
    "bracket left open": Mistake("x = «(»3\n\n\n", "'(' was never closed", "in Python's syntax"),
    "no value": Mistake("x = «=» 3\n", "invalid syntax", "in Python's syntax"),
}


@pytest.mark.parametrize("name", FILES)
def test_mistake_in_a_file(tmp_path: Path, name: str) -> None:
    """A mistake in how classes, imports and constants of a file go together is told at its place."""
    check(tmp_path, FILES[name].text, FILES[name])


def told(folder: Path, content: str | bytes) -> str:
    """Return what is printed of a file that cannot be used."""
    path = folder / "spec.py"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(SpecError) as caught:
        compiled(path)
    return str(caught.value)


@pytest.mark.parametrize("content", ["", "\n\n", '"""Only a docstring."""\n', IMPORTS])
def test_file_without_a_model(tmp_path: Path, content: str) -> None:
    """A file that has no model is told what a model begins with."""
    text = told(tmp_path, content)
    assert text.startswith("spec.py:1:1: error: there is no complete model in this file")
    assert "help: write `class NAME(Model):` with at least one @thread" in text


def test_colon_forgotten(tmp_path: Path) -> None:
    """What Python says of a syntax error is shown at its place, which may be the end of a line."""
    assert "spec.py:1:15: error: expected ':'" in told(tmp_path, "class A(Model)\n    pass\n")


def test_indentation(tmp_path: Path) -> None:
    """Wrong indentation is a mistake in a line like any other."""
    assert "spec.py:3:" in told(tmp_path, "class A:\n    x = 1\n  y = 2\n")


def test_file_that_is_not_utf8(tmp_path: Path) -> None:
    """A file in another encoding is refused as a whole."""
    assert "help: save it as UTF-8" in told(tmp_path, b'"""\xe4"""\n')


def test_null_byte(tmp_path: Path) -> None:
    """A binary file is refused as Python refuses it."""
    assert "spec.py:1:1: error: source code string cannot contain null bytes" in told(tmp_path, "x = 1\0\n")


def test_byte_order_mark(tmp_path: Path) -> None:
    """A byte order mark, which some editors write, is no mistake."""
    assert "spec.py:1:2: error:" not in told(tmp_path, "\ufeffx = = 1\n")
    assert "spec.py:1:5: error: invalid syntax" in told(tmp_path, "\ufeffx = = 1\n")


def test_form_feed(tmp_path: Path) -> None:
    """Lines are counted as Python counts them: a form feed ends none."""
    assert "    3 | y = = 2\n" in told(tmp_path, "x = 1\n\f\ny = = 2\n")


@pytest.mark.parametrize("expression", ["+".join(["1"] * 5000), "(" * 500 + "1" + ")" * 500, "not " * 1500 + "m.flag"])
def test_expression_that_is_nested_too_deeply(tmp_path: Path, expression: str) -> None:
    """An expression that is too deep for Python is a mistake like any other."""
    text = told(tmp_path, model(code=f"x = {expression}"))
    assert "too deeply" in text or "too many nested parentheses" in text


def test_caret_below_a_tab(tmp_path: Path) -> None:
    """A line that is indented by tabs has its caret below the right place."""
    text = told(tmp_path, BASE + "class Bad(Good):\n\tdef f(m):\n\t\tm.n = nothing\n")
    source, marks = text.split("\n")[1:3]
    assert source.index("nothing") == marks.index("^")
    assert source[: marks.index("^")].count("\t") == marks.count("\t")


@pytest.mark.parametrize("wrong", ["check(m.flag, 'äöü'); x = «nothing»", "check(m.flag, 'äöü'); «local_bh_enable()»"])
def test_caret_behind_other_letters(tmp_path: Path, wrong: str) -> None:
    """A column counts characters, not bytes, also for what is found when everything is compiled."""
    text = model(code=wrong)
    (found,) = mistakes(tmp_path, text)
    assert caret(text) == (found.line, found.column, found.end_column)


def test_mistake_as_it_is_printed(tmp_path: Path) -> None:
    """Place, what is wrong, the line, the caret, what to write instead: as a compiler prints it."""
    expected = """\
spec.py:48:19: error: unknown name `lock`
   48 |         spin_lock(lock)
                          ^^^^
       help: write `m.lock`"""
    assert expected == told(tmp_path, model(code="spin_lock(lock)"))


def test_every_mistake_of_a_thread_is_told(tmp_path: Path) -> None:
    """One mistake does not hide the next, and what only follows from one is not told again."""
    code = "x = «nothing»\nm.n = x\ny = x + 1\nm.flag = 1\nz = m.helper(m.helper(y))\nspin_lok(m.lock)"
    found = mistakes(tmp_path, model(code=code))
    first, _, _ = caret(model(code=code))
    assert [(first, "unknown name `nothing`"), (first + 3, "`1` is a number, and a truth value is needed")] == [
        (d.line, d.message) for d in found[:2]
    ]
    assert ["unknown function `spin_lok`"] == [d.message for d in found[2:]]


def test_mistake_in_a_called_function_is_told_once(tmp_path: Path) -> None:
    """A function that is called twice, and by two threads, is one place."""
    functions = "def f(m):\n    return «nothing»\n\n@thread\ndef other(m):\n    m.n = m.f()"
    text = model(functions=functions, code="x = m.f()\nm.n = m.f() + x")
    (found,) = mistakes(tmp_path, text)
    assert caret(text) == (found.line, found.column, found.end_column)


def test_mistakes_of_several_threads_are_told_together(tmp_path: Path) -> None:
    """Threads, properties and scenarios are all looked at."""
    functions = (
        '@thread\ndef other(m):\n    m.n = one\n\n@invariant("a")\ndef a(m):\n    return two\n\n'
        '@scenario("s")\ndef s(m):\n    m.n = three'
    )
    path = tmp_path / "spec.py"
    path.write_text(model(functions=functions), encoding="utf-8")
    ((variant,),) = [spec.variants for spec in load(path)]
    with pytest.raises(SpecError) as caught:
        configure(variant, "s")
    names = ["unknown name `one`", "unknown name `three`", "unknown name `two`"]
    assert names == [d.message for d in caught.value.diagnostics]


def test_mistake_in_an_imported_file(tmp_path: Path) -> None:
    """A mistake in a function of another file is told in that file, also one that shows in the whole thread only."""
    (tmp_path / "base.py").write_text(BASE, encoding="utf-8")
    (tmp_path / "spec.py").write_text(
        "from qmodel.lang import local_bh_enable\nfrom base import Good\n\n\n"
        "class Bad(Good):\n    def f(m):\n        local_bh_enable()\n",
        encoding="utf-8",
    )
    with pytest.raises(SpecError) as caught:
        compiled(tmp_path / "spec.py")
    (found,) = caught.value.diagnostics
    assert ("spec.py", 7, "        local_bh_enable()") == (found.file, found.line, found.source)


def test_mistake_in_the_file_that_is_imported(tmp_path: Path) -> None:
    """The other file is named as it was found."""
    (tmp_path / "base.py").write_text(BASE.replace("m.n = 1", "m.n = nothing"), encoding="utf-8")
    (tmp_path / "spec.py").write_text(
        "from base import Good\n\n\nclass Bad(Good):\n    def f(m):\n        m.n = 3\n", encoding="utf-8"
    )
    with pytest.raises(SpecError) as caught:
        compiled(tmp_path / "spec.py")
    (found,) = caught.value.diagnostics
    assert str(tmp_path / "base.py") == found.file


# --- parameters -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"cpu": 2}, "has no parameter `cpu`; it has: cpus, packets, busy (did you mean `cpus`?)"),
        ({"cpus": -1}, "`cpus` is at least 0, not -1"),
        ({"cpus": 0}, "a model has from 1 to 64 threads, not 0"),
        ({"cpus": 10**9}, "a model has at most 64 flows, not 1000000000"),
        ({"cpus": (1, 2)}, "`cpus` takes one number"),
        ({"packets": (1, 2, 3)}, "`packets` has 3 numbers, one a flow, and there are 2 flows"),
        ({"cpus": 1, "packets": (1, 2)}, "`packets` has 2 numbers, one a flow, and there are 1 flow"),
        ({"packets": 10**9}, "a model has at most 250 packets, not 2000000000"),
        ({"cpus": 40}, "a model has at most 64 threads, and here are 80, with softirqs"),
    ],
)
def test_parameter_that_cannot_be(tmp_path: Path, given: dict[str, int | tuple[int, ...]], words: str) -> None:
    """A value that a parameter cannot have is refused before anything is built from it."""
    path = tmp_path / "spec.py"
    path.write_text(model(), encoding="utf-8")
    ((variant,),) = [spec.variants for spec in load(path)]
    with pytest.raises(ParameterError) as caught:
        configure(variant, "default", given)
    assert words in str(caught.value)


def test_default_with_more_numbers_than_flows(tmp_path: Path) -> None:
    """A default for more CPUs than there are is cut: nobody has asked for the others."""
    path = tmp_path / "spec.py"
    path.write_text(model().replace("Packets(1,", "Packets((2, 1),"), encoding="utf-8")
    ((variant,),) = [spec.variants for spec in load(path)]
    assert ("a0", "a1") == configure(variant, "default", {"cpus": 1}).packets.names


# --- what is no mistake, and what only a run can tell -----------------------------------------------------------------


def searched(folder: Path, text: str) -> Outcome:
    """Search the only variant of a specification."""
    path = folder / "spec.py"
    path.write_text(text, encoding="utf-8")
    ((variant,),) = [spec.variants for spec in load(path)]
    return run(lower(configure(variant)), Options())


def test_model_without_a_mistake(tmp_path: Path) -> None:
    """The model that the mistakes are put into has none of its own."""
    assert set() == refuted(searched(tmp_path, model()))


RIGHT = {
    "value on every way": "if m.n:\n    x = 1\nelse:\n    x = 2\nm.n = x",
    "value before the only way out": "while True:\n    x = m.n\n    if x:\n        break\nm.n = x",
    "way that returns": "if m.flag:\n    x = 1\nelse:\n    return\nm.n = x",
    "wait for the element of this CPU": "wait_until(m.slots[cpu] < 4)",
    "nested atomic": "with atomic():\n    m.n = 1\n    with atomic():\n        m.n = 2",
    "lock first in atomic": "with atomic():\n    spin_lock(m.lock)\n    m.n = 1\n    spin_unlock(m.lock)",
    "return of nothing": "return None",
    "truth value as a number": "x: int = m.flag\nx = 3\nm.n = x",
    "mask of a bit": "if m.word & BIT(Word.A):\n    m.word = BIT(Word.B)",
    "assignment in a condition": "while (skb := skb_peek(m.q)) is not None and m.n > 9:\n    pass",
}


@pytest.mark.parametrize("name", RIGHT)
def test_what_is_no_mistake(tmp_path: Path, name: str) -> None:
    """What looks like a mistake and is none is compiled."""
    path = tmp_path / "spec.py"
    path.write_text(model(code=RIGHT[name]), encoding="utf-8")
    compiled(path)


def one_thread(code: str, declared: str = "", functions: str = "") -> str:
    """Return a model of one thread."""
    lines = "\n".join("        " + line for line in code.split("\n"))
    return IMPORTS + (
        f"class M(Model):\n    n = Int(0, high=3)\n    s = Array(Int(0, high=3), size=2)\n{declared}\n"
        f"    @thread\n    def f(m):\n        m.n = 1\n        m.s[0] = 1\n{lines}\n{functions}"
    )


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("m.n = 4", "becomes 4, outside 0 to 3"),
        ("x = m.n\nm.n = 3 // (x - 1)", "ivision by 0"),
        ("x = m.n\nm.n = 1 << (x - 2)", "a shift by less than 0 or more than 64 bits"),
        ("x = m.n\nm.s[x + 1] = 1", "ndex 2 is outside an array of 2"),
        ("x = m.n\nwait_until(m.s[x + 1] == 0)", "ndex 2 is outside an array of 2"),
        ("x: u8 = 255\nwhile m.n:\n    x += 1", "x becomes 256, outside 0 to 255"),
    ],
)
def test_value_that_only_a_run_can_know(tmp_path: Path, code: str, words: str) -> None:
    """Where a value cannot be told beforehand, leaving its bounds is an error of the run, with a trace."""
    outcome = searched(tmp_path, one_thread(code))
    assert {"domain"} == refuted(outcome)
    assert words.lower() in story(outcome, "domain").lower()


def test_cpu_as_an_index_of_a_smaller_array(tmp_path: Path) -> None:
    """The number of a CPU is checked like any other index, where an array has fewer elements than there are CPUs."""
    functions = "    @thread(each=2)\n    def g(m, cpu):\n        x = m.n\n        m.s[cpu] = x\n"
    outcome = searched(tmp_path, one_thread("m.n = 2", functions=functions))
    assert "index 2 is outside an array of 2" in story(outcome, "domain").lower()


def test_flow_that_is_sent_twice(tmp_path: Path) -> None:
    """A packet is handed over once: a second loop over a flow is an error of the run."""
    outcome = searched(tmp_path, model(code="for skb in m.flow(cpu):\n    kfree_skb(skb)"))
    assert "handed over a second time" in story(outcome, "once")


def test_budget_is_used_up_by_one_thread_only(tmp_path: Path) -> None:
    """Between the look at a budget and the choice nobody else can use it up, also where a thread begins with it."""
    text = IMPORTS + (
        "class M(Model):\n    busy = Budget(1)\n    n = Int(0, high=1)\n\n"
        "    @thread(each=2)\n    def f(m, cpu):\n        if choose(m.busy):\n            atomic_inc(m.n)\n"
    )
    assert set() == refuted(searched(tmp_path, text))


@pytest.mark.parametrize(
    "block",
    [
        "if cpu == 0:\n                m.s[cpu] = 2\n            m.n += 1",
        "for i in range(2):\n                m.s[i] = 3",
        "m.n += 1\n            m.n += 1",
    ],
)
def test_atomic_block_is_one_step_on_every_way(tmp_path: Path, block: str) -> None:
    """A block that begins with a branch, or with a loop, is a step of its own whichever way it takes."""
    text = IMPORTS + (
        "class M(Model):\n    n = Int(0, high=4)\n    s = Array(Int(0, high=3), size=2)\n\n"
        "    @thread(each=2)\n    def f(m, cpu):\n        m.s[cpu] = 1\n        m.n = 0\n        with atomic():\n"
        f"            {block}\n"
    )
    outcome = searched(tmp_path, text)
    # Two threads, each with two stores and the block.
    assert (6, set()) == (outcome.depth, refuted(outcome))


def test_element_that_is_changed_is_named_once(tmp_path: Path) -> None:
    """`m.s[m.n] += 1` reads m.n once, as Python does."""
    outcome = searched(tmp_path, one_thread("m.s[m.n] += 1"))
    # Two stores, the read of m.n, the read and the store of the element.
    assert 5 == outcome.depth
