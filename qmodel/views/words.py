"""What the text views share: printable text, and how a configuration, a number and a verdict are worded."""

from __future__ import annotations

import re
import textwrap

from qmodel.result import Outcome, Run, Strength, Verdict

Setting = tuple[str, str]
"""A parameter, or another choice that a verdict depends on, and its value as text."""

Param = int | tuple[int, ...]
"""The value of a parameter: one number, or one for each CPU."""

_ASCII = str.maketrans(
    {"…": "...", "→": "->", "←": "<-", "≤": "<=", "≥": ">=", "≠": "!=", "\u2013": "-", "\u2014": "-"}
)
_TOGETHER = re.compile(r"\[[^][]{,30}\]| ==? ")
_BLANK = "\0"
"""A blank at which no line ends."""
_IDENTIFIER = re.compile(r"\w+")
_SHORT = 6
"""Names up to this length are never shortened."""


def ascii_line(text: str) -> str:
    """Return the text as one line of printable ASCII."""
    line = " ".join(text.translate(_ASCII).split())
    return "".join(c if " " <= c <= "~" else "?" for c in line)


def shorten(text: str, width: int) -> str:
    """Return the text in at most so many columns: the longest names lose their middle first, then the text its end."""
    width = max(width, 0)
    while len(text) > width:
        longest = max(_IDENTIFIER.finditer(text), key=lambda name: len(name[0]), default=None)
        if longest is None or len(longest[0]) <= _SHORT:
            return text[: max(width - 2, 0)] + ".."[:width]
        kept = max(len(longest[0]) - 2 - (len(text) - width), _SHORT - 2)
        text = text[: longest.start() + kept - kept // 2] + ".." + text[longest.end() - kept // 2 :]
    return text


def paragraph(text: str, width: int, indent: str = "", first: str | None = None) -> list[str]:
    """Return the text as lines of at most so many columns; `first` begins the first line in the place of `indent`.

    Lists of packets, and a name and its value, stay in one line: `gso_skb = [a1 a0]`.
    """
    lines = textwrap.wrap(
        _TOGETHER.sub(lambda found: found[0].replace(" ", _BLANK), ascii_line(text)),
        max(width, len(indent) + 1),
        initial_indent=indent if first is None else first,
        subsequent_indent=indent,
        break_on_hyphens=False,
    )
    return [line.replace(_BLANK, " ").rstrip() for line in lines]


def number(value: int) -> str:
    """Return a number with its thousands set apart: `41,234`."""
    return f"{value:,}"


def count(value: int, noun: str) -> str:
    """Return how many there are: `1 step`, `2 steps`; a noun ends as English has it."""
    plural = noun + ("es" if noun.endswith(("s", "ch")) else "s")
    return f"{number(value)} {noun if value == 1 else plural}"


def settings(run: Run) -> list[Setting]:
    """Return what the packets, the machine and the budgets of a run were: what its verdict is about."""
    params = [(name, _param(value)) for name, value in run.params]
    scenario = [] if run.scenario == "default" else [("scenario", run.scenario)]
    return [*params, *scenario, ("memory", run.memory)]


def settings_text(pairs: list[Setting]) -> str:
    """Return settings as they are printed: `cpus=2 packets=2,0 memory=sc`."""
    return " ".join(f"{name}={value}" for name, value in pairs)


def _param(value: Param) -> str:
    return str(value) if isinstance(value, int) else ",".join(map(str, value))


def variant_name(run: Run) -> str:
    """Return `requeue/tail`."""
    return f"{run.model}/{run.variant}"


def verdict_text(outcome: Outcome) -> str:
    """Return a verdict with its strength: how far it reaches, what is refuted, or what is missing."""
    match outcome.verdict:
        case Verdict.HOLDS:
            return f"holds ({_strength(outcome)})"
        case Verdict.REFUTED:
            return "refuted: " + ", ".join(p.name for p in outcome.properties if p.verdict is Verdict.REFUTED)
        case Verdict.INCONCLUSIVE:
            return f"inconclusive: {outcome.why}" if outcome.why else "inconclusive"


def _strength(outcome: Outcome) -> str:
    match outcome.strength:
        case Strength.EXHAUSTIVE:
            return f"exhaustive, {count(outcome.states, 'state')}"
        case Strength.BOUNDED:
            return f"bounded, within {count(outcome.depth, 'step')}"
        case Strength.INDUCTIVE:
            return "inductive, any number of steps"
        case None:
            return "strength not stated"
