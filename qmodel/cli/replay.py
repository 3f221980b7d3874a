"""`qmodel replay`: take the steps of a stored counterexample again, and see whether it still shows what it says."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from qmodel.cli.errors import Exit, UsageError
from qmodel.cli.running import LONGEST_BUFFER, Configuration, unsound
from qmodel.cli.specs import choose_variants, find
from qmodel.engines.trace import ReplayError, Target, TraceWriter
from qmodel.ir.interpreter import Interpreter, SetupError
from qmodel.result import Trace
from qmodel.views import steps

if TYPE_CHECKING:
    from qmodel.frontend.declarations import ParamValue


@dataclass(frozen=True, slots=True)
class Stored:
    """A counterexample file: its configuration, the property, the moves, and the texts that it had."""

    configuration: Configuration
    property: str
    moves: tuple[tuple[int, int], ...]
    texts: tuple[str, ...]


@click.command("replay")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--step", "walk", is_flag=True, help="Walk through it by keys: space forward, b back, q quit.")
def replay(file: Path, *, walk: bool) -> int:
    """Take the steps of the counterexample in FILE again.

    Succeeds where every step can be taken and the property is violated at the end.
    """
    stored = read(file)
    trace = retake(stored, file)
    if walk:
        _walk(trace, stored)
    what = f"{stored.configuration.spec.model} {stored.configuration.variant.name}"
    click.echo(f"{file}: {what}: {stored.property} is violated after {len(trace.steps)} steps.")
    click.echo(" ".join(trace.story[-2:]))
    return Exit.AS_EXPECTED


def read(file: Path) -> Stored:
    """Return what a file holds. Raises UsageError where it is no counterexample, SpecError."""
    if not file.is_file():
        raise UsageError(f"{file} is no file; `qmodel gate --update` writes counterexamples")
    try:
        data: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        if not isinstance(data, dict) or data.get("kind") != "counterexample" or data.get("schema") != 1:
            raise UsageError(f"{file} is no counterexample of schema 1; `qmodel gate --update` writes such files")
        params: dict[str, ParamValue] = {
            str(n): tuple(map(int, v)) if isinstance(v, list) else int(v) for n, v in data["params"].items()
        }
        moves = tuple((int(thread), int(alternative)) for thread, alternative in data["moves"])
        texts = tuple(str(step["text"]) for step in data["trace"]["steps"])
        name, spec_name = str(data["variant"]), str(data["spec"])
        scenario, memory, prop = str(data["scenario"]), str(data["memory"]), str(data["property"])
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError) as error:
        match error:
            case KeyError():
                reason = f"it has no {error}"
            case json.JSONDecodeError():
                reason = f"it is not JSON: {error}"
            case UnicodeDecodeError():
                reason = "it is no text"
            case _:
                reason = "a value in it is of the wrong kind"
        raise UsageError(f"{file} is no counterexample: {reason}; `qmodel gate --update` writes such files") from None
    specs = find(spec_name if not spec_name.startswith("specs/") else Path(spec_name).stem)
    spec, variant = choose_variants(specs, (name,))[0]
    if scenario not in variant.scenarios:
        raise UsageError(f"{file}: {spec.model} has no scenario `{scenario}` any more")
    return Stored(Configuration(spec, variant, scenario, memory, params), prop, moves, texts)


def retake(stored: Stored, file: Path) -> Trace:
    """Return the trace of a counterexample, taken again. Raises UsageError where that does not work."""
    try:
        trace = TraceWriter(Interpreter(stored.configuration.program(LONGEST_BUFFER))).replay(
            stored.moves, Target(stored.property)
        )
    except SetupError as error:
        raise unsound(stored.configuration, error) from None
    except ReplayError as error:
        raise UsageError(f"{file} does not replay: {error}. The specification has changed since; {_REMEDY}") from None
    texts = tuple(event.text for event in trace.events)
    if texts != stored.texts:
        position = next((i for i, (a, b) in enumerate(zip(texts, stored.texts, strict=False)) if a != b), len(texts))
        raise UsageError(f"{file}: access {position + 1} reads differently now; {_REMEDY}")
    return trace


_REMEDY = "write it anew with `qmodel gate --update`"


def _walk(trace: Trace, stored: Stored) -> None:
    """Show one access at a time, as keys say."""
    program = stored.configuration.program()
    threads = TraceWriter(Interpreter(program)).threads()
    position = 0
    while True:
        click.clear()
        click.echo(steps.page(trace, threads, position))
        try:
            key = click.getchar()
        except EOFError:
            return
        except OSError:
            raise UsageError("--step walks by keys, and there is no terminal to press them on") from None
        if key in {"", "q", "\x03", "\x1b"}:
            return
        if key in {"b", "p", "k", "\x1b[D", "\x1b[A"}:
            position = max(0, position - 1)
        elif position < len(trace.events):
            position += 1
