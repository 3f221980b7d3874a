"""Reading a litmus test: from text to a syntax tree, with the place of every word."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NoReturn

from qmodel.frontend.diagnostics import File, SpecError
from qmodel.frontend.litmus.condition import And, Atom, Implies, Location, Not, Or, Proposition

_TOKEN = re.compile(
    r"(?P<number>0[xX][0-9a-fA-F]+|\d+)|(?P<name>[A-Za-z_]\w*)"
    r"|(?P<sign>/\\|\\/|=>|<<|>>|<=|>=|==|!=|&&|\|\||\+\+|--|[-+*/%&|^]=|[-+*/%&|^!~<>=()\[\]{};:,?.])"
)
_LEVELS = (
    ("||",),
    ("&&",),
    ("|",),
    ("^",),
    ("&",),
    ("==", "!="),
    ("<", "<=", ">", ">="),
    ("<<", ">>"),
    ("+", "-"),
    ("*",),
)
"""C's operators of two arguments, the loosest first."""
_TYPES = frozenset(
    {"int", "long", "short", "char", "unsigned", "signed", "bool", "intptr_t", "uintptr_t", "u8", "u16", "u32", "u64"}
    | {"s8", "s16", "s32", "s64", "atomic_t", "atomic_long_t", "spinlock_t"}
)
_QUALIFIERS = frozenset({"volatile", "const"})
_NO_STATEMENT = frozenset({"while", "for", "do", "switch", "goto", "return", "break", "continue"})
_QUANTIFIERS = ("exists", "forall", "~exists")


@dataclass(frozen=True, slots=True)
class Span:
    """Where something stands: line from 1, columns from 0."""

    line: int
    column: int
    end: int


@dataclass(frozen=True, slots=True)
class Token:
    """A word of the text. kind `end`: there is none any more."""

    kind: Literal["number", "name", "sign", "end"]
    text: str
    at: Span


# --- the tree ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Number:
    """A constant."""

    value: int
    at: Span


@dataclass(frozen=True, slots=True)
class Name:
    """A register, or where a pointer is wanted a parameter."""

    name: str
    at: Span


@dataclass(frozen=True, slots=True)
class Deref:
    """`*x`: what a parameter points to."""

    name: str
    at: Span


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a primitive."""

    name: str
    arguments: tuple[Expression, ...]
    at: Span


@dataclass(frozen=True, slots=True)
class Unary:
    """`!a`, `~a`, `-a`."""

    op: str
    argument: Expression
    at: Span


@dataclass(frozen=True, slots=True)
class Binary:
    """`a + b` and the like."""

    op: str
    first: Expression
    second: Expression
    at: Span


Expression = Number | Name | Deref | Call | Unary | Binary


@dataclass(frozen=True, slots=True)
class Declare:
    """`int r0;` or `int r0 = …;`."""

    name: str
    value: Expression | None
    at: Span


@dataclass(frozen=True, slots=True)
class Set:
    """`r0 = …;`."""

    name: str
    value: Expression
    at: Span


@dataclass(frozen=True, slots=True)
class Store:
    """`*x = …;`."""

    target: Deref
    value: Expression
    at: Span


@dataclass(frozen=True, slots=True)
class Do:
    """An expression as a statement: a call."""

    value: Expression
    at: Span


@dataclass(frozen=True, slots=True)
class If:
    """`if (…) … else …`."""

    test: Expression
    then: tuple[Statement, ...]
    otherwise: tuple[Statement, ...]
    at: Span


Statement = Declare | Set | Store | Do | If


@dataclass(frozen=True, slots=True)
class Thread:
    """`P0(int *x) { … }`: parameters with their types."""

    number: int
    parameters: dict[str, str]
    body: tuple[Statement, ...]
    at: Span

    @property
    def name(self) -> str:
        """The name of the function."""
        return f"P{self.number}"


@dataclass(frozen=True, slots=True)
class Initial:
    """The value that a variable has at first."""

    value: int
    at: Span


@dataclass(frozen=True)
class Litmus:
    """A whole test.

    named: every location that the end of the test names, with where it does so first; shown: those of them that the
    report shows. keep: only final states that satisfy it count.
    """

    file: File
    name: str
    initial: dict[str, Initial]
    threads: tuple[Thread, ...]
    named: dict[Location, Span]
    shown: tuple[Location, ...]
    keep: Proposition
    quantifier: str
    condition: Proposition


def read(path: Path) -> Litmus:
    """Read a test from a file. Raises SpecError, OSError."""
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise File(str(path), ()).error_at(1, 0, 0, "this is no text in UTF-8", "give a litmus test in C") from None
    return parse(text, str(path))


def parse(text: str, name: str) -> Litmus:
    """Read a test; name: how the file is called in messages. Raises SpecError."""
    return _Parser(File(name, tuple(text.splitlines())), text).test()


# --- reading ----------------------------------------------------------------------------------------------------------


class _Parser:
    """Reads a test from front to end. ocaml: whether `(*` begins a comment, as it does outside of threads."""

    def __init__(self, file: File, text: str) -> None:
        self.file, self.text = file, text
        self.at = 0
        self.ocaml = True
        self._starts = [0, *(m.end() for m in re.finditer(r"\n", text))]
        self._last = Span(1, 0, 0)

    # --- words ------------------------------------------------------------------------------------------------------

    def _span(self, start: int, end: int) -> Span:
        line = self.text.count("\n", 0, start) + 1
        first = self._starts[line - 1]
        return Span(line, start - first, max(end - first, start - first + 1))

    def _skip(self) -> None:
        """Pass over blanks and comments."""
        closing = {"/*": "*/", "//": "\n"} | ({"(*": "*)"} if self.ocaml else {})
        while self.at < len(self.text):
            opening = self.text[self.at : self.at + 2]
            if self.text[self.at].isspace():
                self.at += 1
            elif opening in closing:
                end = self.text.find(closing[opening], self.at + 2)
                if end < 0 and opening != "//":
                    self._refuse(
                        self._span(self.at, self.at + 2), "this comment has no end", f"end it by `{closing[opening]}`"
                    )
                self.at = len(self.text) if end < 0 else end + len(closing[opening])
            else:
                return

    def peek(self) -> Token:
        """Return the next word, and do not pass it."""
        self._skip()
        if self.at == len(self.text):
            return Token("end", "", self._last)
        match = _TOKEN.match(self.text, self.at)
        if match is None:
            at = self._span(self.at, self.at + 1)
            self._refuse(at, f"`{self.text[self.at]}` has no meaning here")
        return Token(match.lastgroup, match[0], self._span(match.start(), match.end()))  # type: ignore[arg-type]

    def take(self) -> Token:
        """Return the next word and pass it."""
        token = self.peek()
        self.at += len(token.text)
        self._last = token.at
        return token

    def accept(self, *texts: str) -> Token | None:
        """Pass the next word and return it, if it is one of these."""
        return self.take() if self.peek().text in texts else None

    def expect(self, text: str, what: str) -> Token:
        """Pass the word that must come next."""
        token = self.peek()
        if token.text != text:
            self._refuse(token.at, f"{_shown(token)}, and `{text}` is needed {what}")
        return self.take()

    def word(self, kind: str, what: str) -> Token:
        """Pass a name or a number, which must come next."""
        token = self.peek()
        if token.kind != kind:
            self._refuse(token.at, f"{_shown(token)}, and {what} is needed")
        return self.take()

    def _refuse(self, at: Span, message: str, remedy: str = "") -> NoReturn:
        raise self._error(at, message, remedy)

    def _error(self, at: Span, message: str, remedy: str = "") -> SpecError:
        return self.file.error_at(at.line, at.column, at.end, message, remedy)

    # --- the parts of a test ------------------------------------------------------------------------------------------

    def test(self) -> Litmus:
        """Read all of it."""
        name = self._head()
        initial = self._initial()
        threads: list[Thread] = []
        while re.fullmatch(r"P\d+", self.peek().text):
            threads.append(self._thread(len(threads)))
        if not threads:
            self._refuse(self.peek().at, f"{_shown(self.peek())}, and a thread is needed", "write `P0(int *x) { … }`")
        shown: dict[Location, Span] = {}
        filtered: dict[Location, Span] = {}
        if self.accept("locations"):
            self._locations(shown)
        keep = self._proposition(filtered) if self.accept("filter") else And(())
        quantifier, condition = self._condition(shown)
        self.accept(";")
        left = self.peek()
        if left.kind != "end":
            self._refuse(left.at, f"{_shown(left)} after the condition", "a test ends there")
        order = tuple(sorted(shown, key=lambda place: place.order))
        return Litmus(self.file, name, initial, tuple(threads), filtered | shown, order, keep, quantifier, condition)

    def _head(self) -> str:
        """Read `C name`, and pass over what stands before the initial values."""
        first = self.take()
        if first.text != "C":
            remedy = "begin with `C` and the name of the test"
            self._refuse(first.at, f"{_shown(first)}, and a litmus test in C begins with `C`", remedy)
        match = re.compile(r"[ \t]*(\S+)").match(self.text, self.at)
        if match is None:
            self._refuse(first.at, "the test has no name", "write `C NAME`")
        self.at = match.end()
        while True:
            self._skip()
            if self.at == len(self.text):
                self._refuse(self._last, "the test has no `{` for its initial values", "write `{}` below its name")
            if self.text[self.at] == "{":
                return match[1]
            self.at += 1

    def _initial(self) -> dict[str, Initial]:
        found: dict[str, Initial] = {}
        self.expect("{", "before the initial values")
        while not self.accept("}"):
            if self.accept(";"):
                continue
            if self.peek().kind == "number":
                self._refuse(self.peek().at, "registers are 0 at first", "assign them in the thread")
            self._type()
            if star := self.accept("*"):
                self._refuse(star.at, "a variable that holds an address has no meaning here", "use numbers")
            bracket = self.accept("[")
            name = self.word("name", "a variable")
            if bracket:
                self.expect("]", "after the variable")
            value = 0
            if self.accept("="):
                wrapped = self.accept("ATOMIC_INIT")
                if wrapped:
                    self.expect("(", "before the value")
                value = self._number("the initial value")
                if wrapped:
                    self.expect(")", "after the value")
            if name.text in found:
                self._refuse(name.at, f"`{name.text}` has an initial value already")
            found[name.text] = Initial(value, name.at)
            if self.peek().text != "}":
                self.expect(";", "after an initial value")
        return found

    def _number(self, what: str) -> int:
        sign = -1 if self.accept("-") else 1
        token = self.peek()
        if token.kind == "name" or token.text == "&":
            self._refuse(token.at, f"`{token.text}` is an address, and {what} is a number")
        return sign * int(self.word("number", what).text, 0)

    # --- threads ------------------------------------------------------------------------------------------------------

    def _thread(self, number: int) -> Thread:
        head = self.take()
        self.ocaml = False
        if head.text != f"P{number}":
            self._refuse(head.at, f"`{head.text}` comes here, and P{number} is next", "number threads from P0 on")
        parameters: dict[str, str] = {}
        self.expect("(", "before the parameters")
        while not self.accept(")"):
            words = []
            while self.peek().kind == "name":
                words.append(self.take())
            star = self.accept("*")
            if not words or not star or self.peek().text == "*":
                remedy = "write `int *x`: the shared variable x"
                self._refuse(self.peek().at, "a parameter is a pointer to a shared variable", remedy)
            name = self.word("name", "the name of a shared variable")
            if name.text in parameters:
                self._refuse(name.at, f"`{name.text}` is a parameter already")
            parameters[name.text] = " ".join(w.text for w in words if w.text not in _QUALIFIERS)
            if self.peek().text != ")":
                self.expect(",", "between parameters")
        body = self._block("for the body of the thread", outermost=True)
        return Thread(number, parameters, body, head.at)

    def _block(self, what: str, *, outermost: bool = False) -> tuple[Statement, ...]:
        """Read `{ … }`. After a thread's last brace comments are those of OCaml again."""
        start = self.expect("{", what)
        found: list[Statement] = []
        while self.peek().text != "}":
            if self.peek().kind == "end":
                self._refuse(start.at, "this `{` has no `}`")
            found += self._statement()
        self.take()
        self.ocaml = outermost
        return tuple(found)

    def _statement(self) -> tuple[Statement, ...]:
        token = self.peek()
        if self.accept(";"):
            return ()
        if token.text == "{":
            return self._block("")
        if token.text == "if":
            return (self._if(),)
        if token.text in _NO_STATEMENT:
            self._refuse(
                token.at, f"`{token.text}` has no meaning in a litmus test", "write the accesses out, one by one"
            )
        if token.text in _TYPES | _QUALIFIERS:
            return self._declaration()
        statement = self._simple()
        self.expect(";", "after a statement")
        return (statement,)

    def _if(self) -> If:
        at = self.take().at
        self.expect("(", "before the condition")
        test = self.expression()
        self.expect(")", "after the condition")
        then = self._statement()
        otherwise = self._statement() if self.accept("else") else ()
        return If(test, then, otherwise, at)

    def _declaration(self) -> tuple[Statement, ...]:
        self._type()
        found: list[Statement] = []
        while True:
            if star := self.accept("*"):
                self._refuse(star.at, "a register that holds an address has no meaning here", "use numbers")
            name = self.word("name", "the name of a register")
            value = self.expression() if self.accept("=") else None
            found.append(Declare(name.text, value, name.at))
            if not self.accept(","):
                self.expect(";", "after a declaration")
                return tuple(found)

    def _simple(self) -> Statement:
        value = self.expression()
        equals = self.accept("=")
        if equals is None:
            if not isinstance(value, Call):
                self._refuse(value.at, "this does nothing", "assign it to a register")
            return Do(value, value.at)
        right = self.expression()
        at = Span(value.at.line, value.at.column, right.at.end if right.at.line == value.at.line else value.at.end)
        match value:
            case Name(name):
                return Set(name, right, at)
            case Deref():
                return Store(value, right, at)
        return self._refuse(value.at, "this cannot be assigned to", "assign to a register, or to `*x`")

    # --- expressions --------------------------------------------------------------------------------------------------

    def expression(self, level: int = 0) -> Expression:
        """Read an expression whose operators bind at least as tight as a level."""
        if level == len(_LEVELS):
            return self._unary()
        value = self.expression(level + 1)
        while operator := self.accept(*_LEVELS[level]):
            second = self.expression(level + 1)
            end = second.at.end if second.at.line == value.at.line else operator.at.end
            value = Binary(operator.text, value, second, Span(value.at.line, value.at.column, end))
        if level == 0 and self.peek().text in {"/", "%", "?", "++", "--", "+=", "-=", "*=", "&=", "|=", "^="}:
            remedy = "the operators are + - * & | ^ << >> == != < <= > >= ! ~ && ||"
            self._refuse(self.peek().at, f"`{self.peek().text}` has no meaning in a litmus test", remedy)
        return value

    def _unary(self) -> Expression:
        if operator := self.accept("!", "~", "-", "+"):
            argument = self._unary()
            return Unary(operator.text, argument, Span(operator.at.line, operator.at.column, argument.at.end))
        if star := self.accept("*"):
            name = self.word("name", "a parameter")
            return Deref(name.text, Span(star.at.line, star.at.column, name.at.end))
        if self.accept("("):
            cast = self._type()
            if cast and (star := self.accept("*")):
                self._refuse(star.at, "an address has no meaning here", "use numbers")
            value = None if cast else self.expression()
            self.expect(")", "after the type" if cast else "after the expression")
            return value or self._unary()  # a cast changes nothing: numbers have no size here
        token = self.peek()
        if token.kind == "number":
            return Number(int(self.take().text, 0), token.at)
        if token.text == "&":
            self._refuse(
                token.at, "an address has no meaning here", "a parameter is a pointer already: write `x` or `*x`"
            )
        name = self.word("name", "a value")
        return self._call(name) if self.accept("(") else Name(name.text, name.at)

    def _type(self) -> bool:
        """Pass the words of a type, and tell whether there were any."""
        before = self.at
        while self.accept(*_TYPES, *_QUALIFIERS):
            pass
        return self.at > before

    def _call(self, name: Token) -> Call:
        arguments: list[Expression] = []
        while self.peek().text != ")":
            arguments.append(self.expression())
            if self.peek().text != ")":
                self.expect(",", "between arguments")
        end = self.take().at
        return Call(
            name.text,
            tuple(arguments),
            Span(name.at.line, name.at.column, end.end if end.line == name.at.line else name.at.end),
        )

    # --- the end of the test ------------------------------------------------------------------------------------------

    def _locations(self, named: dict[Location, Span]) -> None:
        self.expect("[", "before the locations")
        while not self.accept("]"):
            self._location(named)
            self._type()
            if self.peek().text != "]":
                self.expect(";", "after a location")

    def _location(self, named: dict[Location, Span]) -> Location:
        start = self.peek()
        if start.kind == "number" or re.fullmatch(r"P\d+", start.text):
            self.take()
            self.expect(":", "between a thread and its register")
            name = self.word("name", "a register")
            location = Location(int(start.text.removeprefix("P")), name.text)
        else:
            bracket = self.accept("[", "*")
            name = self.word("name", "a register `0:r0` or a variable")
            if bracket and bracket.text == "[":
                self.expect("]", "after the variable")
            location = Location(None, name.text)
        at = start.at
        named.setdefault(location, Span(at.line, at.column, name.at.end if name.at.line == at.line else at.end))
        return location

    def _condition(self, named: dict[Location, Span]) -> tuple[str, Proposition]:
        start = self.peek()
        quantifier = ("~" if self.accept("~", "not") else "") + self.take().text
        if quantifier not in _QUANTIFIERS:
            remedy = r"write exists (0:r0=1 /\ x=0), forall (…) or ~exists (…)"
            self._refuse(start.at, f"{_shown(start)}, and the condition of the test is needed", remedy)
        return quantifier, self._proposition(named)

    def _proposition(self, named: dict[Location, Span]) -> Proposition:
        r"""Read a proposition. As in herd7 `=>` binds tighter than `/\`, and that tighter than `\/`."""
        parts = [self._conjunction(named)]
        while self.accept("\\/"):
            parts.append(self._conjunction(named))
        return _joined(Or, parts)

    def _conjunction(self, named: dict[Location, Span]) -> Proposition:
        parts = [self._implication(named)]
        while self.accept("/\\"):
            parts.append(self._implication(named))
        return _joined(And, parts)

    def _implication(self, named: dict[Location, Span]) -> Proposition:
        first = self._negation(named)
        return Implies(first, self._implication(named)) if self.accept("=>") else first

    def _negation(self, named: dict[Location, Span]) -> Proposition:
        if self.accept("~", "not"):
            return Not(self._negation(named))
        if self.accept("("):
            inner = self._proposition(named)
            self.expect(")", "after the proposition")
            return inner
        if self.accept("true"):
            return And(())
        if self.accept("false"):
            return Or(())
        location = self._location(named)
        sign = self.accept("=", "==", "!=")
        if sign is None:
            self._refuse(self.peek().at, f"{_shown(self.peek())}, and `=` is needed after a location")
        atom = Atom(location, self._value(named))
        return Not(atom) if sign.text == "!=" else atom

    def _value(self, named: dict[Location, Span]) -> int | Location:
        """Read what a location is compared with: a number, a register or `[x]`."""
        before = self.at
        token = self.take()
        register = token.kind == "number" and self.peek().text == ":"
        self.at = before
        return self._location(named) if register or token.text == "[" else self._number("what it is compared with")


def _joined(kind: type[And | Or], parts: list[Proposition]) -> Proposition:
    """Join propositions; those of the same kind become one, as herd7 prints them."""
    flat: list[Proposition] = []
    for part in parts:
        flat += part.parts if isinstance(part, kind) and part.parts else (part,)
    return flat[0] if len(flat) == 1 else kind(tuple(flat))


def _shown(token: Token) -> str:
    return f"`{token.text}` comes here" if token.kind != "end" else "the test ends here"
