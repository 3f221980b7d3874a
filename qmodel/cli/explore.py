"""`qmodel explore`: walk through the states by hand, line by line, on any terminal or from a script."""

from __future__ import annotations

import io
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import click

from qmodel.cli.configurations import WITH_PARAMETERS, chosen, configured, where
from qmodel.cli.errors import Exit, UsageError
from qmodel.cli.running import LONGEST_BUFFER, judged, unsound
from qmodel.engines.trace import TraceWriter
from qmodel.engines.walk import Walk
from qmodel.ir.interpreter import SetupError
from qmodel.ir.program import BOUND, BUDGET, PENDING, WHERE, Place
from qmodel.ir.text import thread_text, value_text
from qmodel.passes.listing import texts
from qmodel.passes.memory.buffers import KIND, LOCATION, STORE, VALUE
from qmodel.result import Outcome, PropertyResult, Verdict
from qmodel.views import counterexample
from qmodel.views import walk as view
from qmodel.views.words import count, paragraph, settings, settings_text

if TYPE_CHECKING:
    from qmodel.cli.running import Configuration
    from qmodel.engines.walk import Option
    from qmodel.ir.expr import Domain
    from qmodel.ir.interpreter import State
    from qmodel.result import Run


@click.command("explore", context_settings=WITH_PARAMETERS)
@click.argument("model")
@click.option("--variant", metavar="NAME", help="The variant; needed where the model has several.")
@where
@click.pass_context
def explore(context: click.Context, /, *, model: str, variant: str | None, scenario: str, memory: str) -> int:
    """Walk through the states of MODEL by hand.

    Shows memory, where each thread is, and the steps that can be taken; reads
    commands line by line: the number of a step, b back, ? for the others.
    Parameters of the model are options, as in `qmodel check`.
    """
    variants = chosen(context, model, [variant] if variant else [])
    if len(variants) > 1:
        names = ", ".join(v.name for _, v in variants)
        raise UsageError(f"{model} has several variants; choose one with --variant: {names}")
    configuration = configured(context, variants, scenario, memory)[0]
    try:
        walk = Walk(configuration.program(LONGEST_BUFFER))
    except SetupError as error:
        raise unsound(configuration, error) from None
    _Session(configuration, walk).run()
    return Exit.AS_EXPECTED


class _Session:
    """Reads commands and obeys them."""

    def __init__(self, configuration: Configuration, walk: Walk) -> None:
        self.configuration, self.walk = configuration, walk
        self.title = f"{configuration.spec.model}/{configuration.variant.name}"
        self.width = min(shutil.get_terminal_size((80, 24)).columns, 100)

    def run(self) -> None:
        """Obey until the input ends, or says so."""
        lines: TextIO | None = sys.stdin
        if isinstance(lines, io.TextIOWrapper):
            lines.reconfigure(errors="replace")
        run = self._run(())
        click.echo("\n".join(paragraph(f"{self.title}: {settings_text(settings(run))}", self.width, "    ", "")))
        click.echo("? shows the commands, q quits")
        self._show()
        while True:
            click.echo("> ", nl=False)
            line = lines.readline() if lines else ""
            if not lines or not lines.isatty():
                click.echo(line.rstrip("\n"))
            if not line or line.split() == ["q"]:
                return
            self._obey(line.split())

    def _obey(self, words: list[str]) -> None:
        match words:
            case []:
                self._show()
            case ["b"]:
                if self.walk.back():
                    self._show()
                else:
                    click.echo("this is the initial state: there is no step to undo")
            case ["r"]:
                self.walk.restart()
                self._show()
            case ["p"]:
                click.echo(view.judgements(_judgements(self.walk), self.width), nl=False)
            case ["s", name]:
                click.echo(self._save(Path(name)))
            case ["s"]:
                click.echo("name the file: s FILE")
            case ["?" | "h" | "help"]:
                click.echo(view.HELP, nl=False)
            case _ if all(word.isdecimal() and len(word) < 9 for word in words):
                self._take([int(word) for word in words])
            case _:
                click.echo(f"`{' '.join(words)}` is no command; ? shows those that there are")

    def _take(self, numbers: list[int]) -> None:
        for position, number in enumerate(numbers):
            options = self.walk.options
            if not 1 <= number <= len(options):
                there = f"steps 1 to {len(options)}" if len(options) > 1 else f"{len(options) or 'no'} step"
                click.echo(f"no step {number} after {count(len(self.walk.taken), 'step')}: {there} can be taken here")
                if position == 0:
                    return
                break
            self.walk.take(options[number - 1])
        self._show()

    def _show(self) -> None:
        click.echo("\n" + view.page(_page(self.title, self.walk), self.width))

    def _save(self, path: Path) -> str:
        """Write the way to a violation, and return what to tell."""
        names = self.walk.violated()
        if not names:
            return "nothing is violated here: a counterexample ends where a property is"
        trace = self.walk.trace(names[0])
        prop = PropertyResult(names[0], "", Verdict.REFUTED, trace.story[-2], trace)
        try:
            with path.open("x", encoding="utf-8") as file:
                file.write(counterexample.document(self._run((prop,)), prop))
        except OSError as error:
            return f"{path} cannot be written: {error.strerror}"
        return f"{path} has the way to the violation of {names[0]}; `qmodel replay {path}` takes it again"

    def _run(self, properties: tuple[PropertyResult, ...]) -> Run:
        program = self.walk.program
        outcome = Outcome(
            engine="explore",
            reductions=program.reductions,
            threads=TraceWriter(self.walk.interpreter).threads(),
            verdict=Verdict.REFUTED if properties else Verdict.INCONCLUSIVE,
            strength=None,
            complete=False,
            interrupted=False,
            why="a walk by hand",
            states=len(self.walk.taken) + 1,
            transitions=len(self.walk.taken),
            depth=len(self.walk.taken),
            seconds=0,
            bytes_per_state=None,
            properties=properties,
            measures=(),
        )
        return judged(self.configuration, outcome)


# --- what the page shows --------------------------------------------------------------------------------------------


def _page(title: str, walk: Walk) -> view.Page:
    program, state = walk.program, walk.state
    here = _values(walk, walk.last_state)
    before = here if walk.state_before is None else _values(walk, walk.state_before)
    values = [
        view.Value(name, text, before.get(name, "") if before.get(name, "") != text else None)
        for name, text in here.items()
    ]
    last = walk.taken[-1] if walk.taken else None
    end = ""
    if state is None:
        full = next((f"{f.message}, which is where qmodel stops" for f in walk.failures if f.property == BOUND), "")
        end = f"There is no way on: {full or 'the last step ended in an error'}. b goes back."
    elif not walk.options:
        end = "Everything has come to rest." if walk.interpreter.quiescent(state) else "Nothing can move any more."
    return view.Page(
        title=title,
        steps=len(walk.taken),
        last=f"{thread_text(program, last.thread)} {_text(walk, last)}" if last else "",
        values=tuple(values),
        lanes=tuple(_lanes(walk)) if state is not None else (),
        violations=tuple((name, walk.trace(name).story[-2]) for name in walk.violated()),
        end=end,
    )


def _values(walk: Walk, state: State) -> dict[str, str]:
    """Return memory as text: variables, what is left of budgets, what is raised, packets, stores that are pending."""
    program, read = walk.program, walk.interpreter.read
    found: dict[str, str] = {}
    for name, variable in program.variables.items():
        numbers = read(state, name)
        if not variable.ghost:
            found[name] = " ".join(value_text(program, variable.domain, v) for v in numbers)
        elif name.startswith(BUDGET) and variable.domain.hi:
            found[name.removeprefix(BUDGET)] = f"{numbers[0]} left"
        elif name.startswith(PENDING):
            cpus = ", ".join(f"CPU{cpu}" for cpu, raised in enumerate(numbers) if raised)
            found[name.removeprefix(PENDING)] = f"raised on {cpus}" if cpus else "not raised"
        elif name == WHERE:
            places = zip(program.packets.names, numbers, strict=True)
            born = (f"{p} {value_text(program, variable.domain, at)}" for p, at in places if at != Place.NOWHERE)
            found["packets"] = ", ".join(born) or "none yet"
        elif name == LOCATION:
            found |= {f"CPU{cpu} stores": text for cpu, text in enumerate(_pending(walk, state))}
    return found


def _pending(walk: Walk, state: State) -> list[str]:
    """Return for each CPU what it has stored, oldest first, and others do not see yet."""
    program, read = walk.program, walk.interpreter.read
    places: dict[int, tuple[str, Domain]] = {}
    for name, first in program.locations.items():
        variable = program.variables[name]
        for index in range(variable.size or 1):
            shown = name if variable.size is None else f"{name}[{index}]"
            places[first + index] = shown, variable.domain
    numbers, values = read(state, LOCATION), read(state, VALUE)
    kinds = read(state, KIND) if KIND in program.variables else (STORE,) * len(numbers)
    entries = []
    for number, value, kind in zip(numbers, values, kinds, strict=True):
        place, domain = places.get(number, ("rcu_read_unlock()" if number else "", None))
        known = domain is not None and kind == STORE  # else it is an end of a section, or an atomic
        entries.append(f"{place} = {value_text(program, domain, value + domain.lo)}" if known and domain else place)
    rows = [entries[i : i + program.buffer] for i in range(0, len(entries), program.buffer)]
    pending = [", ".join(entry for entry in row if entry) for row in rows]
    return [f"pending: {text}" if text else "none pending" for text in pending]


def _lanes(walk: Walk) -> list[view.Lane]:
    lanes = []
    number = 0
    for thread in walk.program.threads:
        options = [option for option in walk.options if option.thread == thread.tid]
        choices = [view.Choice(number + i, _text(walk, o), _violates(walk, o)) for i, o in enumerate(options, 1)]
        number += len(options)
        if options or thread.kind != "buffer":
            lanes.append(_lane(walk, thread.tid, tuple(choices)))
    return lanes


def _lane(walk: Walk, tid: int, choices: tuple[view.Choice, ...]) -> view.Lane:
    program, frame = walk.program, walk.last_state.frames[tid]
    template = program.template_of(tid)
    node = template.nodes[frame.node]
    name = thread_text(program, tid)
    if not node.next:
        return view.Lane(name, "", "", (), "has ended")
    if not choices and node.rest:
        return view.Lane(name, "", "", (), "rests")
    shown = [
        f"{local.rpartition('.')[2]} = {value_text(program, template.locals[local].domain, value)}"
        for local, value in frame.locals
        if "%" not in local
    ]
    place = f"{node.site.function}:{node.site.line}" if node.site.line else ""
    note = "" if choices else _waits(walk, tid)
    following = "" if choices else (texts(template, frame.node) or [node.site.source])[0]
    return view.Lane(name, place, ", ".join(shown), choices, note, following)


def _waits(walk: Walk, tid: int) -> str:
    """Return what a thread waits for."""
    program, interpreter, state = walk.program, walk.interpreter, walk.last_state
    guard = interpreter.waits_for(state, tid)
    if guard is not None and guard.lock is not None:
        holder = interpreter.evaluate_for(state, tid, guard.lock) - 1
        if holder >= 0:
            lock = interpreter.lock_name(state, tid, guard.lock)
            return f"waits for {lock}, which {thread_text(program, holder)} has"
    for other in program.softirqs_on(program.threads[tid].cpu):
        if other != tid and state.frames[other].node not in program.template_of(other).rests:
            return f"waits until {program.threads[other].template} is done on this CPU"
    return "waits"


def _text(walk: Walk, option: Option) -> str:
    """Return what a step does: its accesses, and where the environment answered no."""
    found = [occurrence.text for occurrence in option.outcome.occurrences]
    if walk.program.threads[option.thread].kind != "buffer":
        found += ["choose() = false"] * option.outcome.choices.count(0)
    if found:
        return "; ".join(found)
    failure = next(iter(option.outcome.failures), None)
    nodes = walk.program.template_of(option.thread).nodes
    return nodes[failure.node].site.source if failure else "goes on without an access"


def _violates(walk: Walk, option: Option) -> tuple[str, ...]:
    """Return the properties that a step violates, itself or by the state that it leads to, and that hold here."""
    found = [failure.property for failure in option.outcome.failures if failure.property != BOUND]
    after, here = option.outcome.state, walk.last_state
    if after is not None:
        violated = walk.interpreter.violated
        found += [p.name for p in walk.program.properties if violated(after, p) and not violated(here, p)]
    return tuple(dict.fromkeys(found))


def _judgements(walk: Walk) -> list[view.Judgement]:
    """Return what each property and measure is here."""
    program, interpreter, state = walk.program, walk.interpreter, walk.last_state
    past = _past(walk)
    found: list[view.Judgement] = []
    for prop in program.properties:
        if prop.kind == "quiescent" and not interpreter.quiescent(state):
            text = "not judged here: not everything has come to rest"
        elif not interpreter.judged(state, prop.locks):
            text = "not judged here: a lock that guards what it reads is held"
        else:
            text = "violated here" if interpreter.violated(state, prop) else "holds here"
        before = f"; violated after step {past[prop.name]} of this walk" if prop.name in past else ""
        found.append(view.Judgement(prop.name, text + before))
    for measure in program.measures:
        text = f"is {interpreter.evaluate(state, measure.value)}"
        text += "" if interpreter.judged(state, measure.locks) else ", not judged: a lock that guards it is held"
        found.append(view.Judgement(measure.name, text))
    own = {p.name for p in program.properties}
    for name, _ in program.builtin:
        if name not in {*own, BOUND}:
            text = f"violated by step {past[name]} of this walk" if name in past else "not violated on this walk"
            found.append(view.Judgement(name, text))
    return found


def _past(walk: Walk) -> dict[str, int]:
    """Return the properties that were violated on the way, each with the first step after which it was."""
    found: dict[str, int] = {}
    for position, option in enumerate(walk.taken, 1):
        for name in _failed(walk, option):
            found.setdefault(name, position)
    for name in walk.violated():
        found.setdefault(name, len(walk.taken))
    return found


def _failed(walk: Walk, option: Option) -> list[str]:
    state = option.outcome.state
    violated = [] if state is None else [p.name for p in walk.program.properties if walk.interpreter.violated(state, p)]
    return [*(failure.property for failure in option.outcome.failures), *violated]
