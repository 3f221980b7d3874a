"""Options that a specification adds to the command: one for each of its parameters."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from qmodel.cli.errors import UsageError
from qmodel.frontend.diagnostics import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Sequence

    from qmodel.frontend.declarations import ParamInfo, ParamValue, Variant

_NUMBER = re.compile(r"-?\d{1,1000}", re.ASCII)
_WORDS = {"true": 1, "yes": 1, "on": 1, "false": 0, "no": 0, "off": 0}


def parse(arguments: Sequence[str], variants: Sequence[Variant], reserved: Sequence[str]) -> dict[str, ParamValue]:
    """Return the parameters that are left on the command line: `--cpus 3`, `--packets=2,1`, `--stop`, `--no-bypass`.

    reserved: options of the command itself, for the message about an unknown one. Raises UsageError.
    """
    known: dict[str, ParamInfo] = {}
    for variant in variants:
        known |= variant.params
    given: dict[str, ParamValue] = {}
    rest = list(arguments)
    while rest:
        word = rest.pop(0)
        if not word.startswith("--"):
            raise UsageError(f"unexpected argument `{word}`; parameters are options: {_options(known)}")
        name, equals, text = word[2:].partition("=")
        name = name.replace("-", "_")
        param = known.get(name)
        if param is None and name.startswith("no_") and (off := known.get(name[3:])) is not None and off.kind == "bool":
            if equals:
                raise UsageError(f"--{word[2:].partition('=')[0]} takes no value")
            given[name[3:]] = 0
            continue
        if param is None:
            options = [f"--{n.replace('_', '-')}" for n in known]
            hint = did_you_mean(word.partition("=")[0], [*options, *reserved], "")
            parts = [f"unknown option {word.partition('=')[0]}"]
            parts += [hint] if hint else []
            parts.append(f"parameters of this model: {_options(known) or 'none'}")
            raise UsageError("; ".join(parts))
        if not equals:
            if param.kind == "bool" and (not rest or rest[0].lower() not in {*_WORDS, "0", "1"}):
                given[name] = 1
                continue
            if not rest:
                raise UsageError(f"{word} needs a value: {_form(param)}")
            text = rest.pop(0)
        given[name] = _value(param, text)
    return given


def _options(known: dict[str, ParamInfo]) -> str:
    return ", ".join(f"--{name.replace('_', '-')}" for name in known)


def _form(param: ParamInfo) -> str:
    return {"packets": "a number, or one for each CPU (2,1)", "bool": "true or false"}.get(param.kind, "a number")


def _value(param: ParamInfo, text: str) -> ParamValue:
    if param.kind == "bool" and text.lower() in _WORDS:
        return _WORDS[text.lower()]
    parts = text.split(",") if param.kind == "packets" else [text]
    if not all(_NUMBER.fullmatch(part) for part in parts):
        raise UsageError(f"--{param.name.replace('_', '-')} {text}: this is not {_form(param)}")
    numbers = tuple(map(int, parts))
    return numbers if len(numbers) > 1 else numbers[0]
