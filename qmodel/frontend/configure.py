"""Giving parameters values: a variant becomes a program."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from qmodel.frontend.bounds import settle
from qmodel.frontend.constants import FUNCTIONS, BitNames, Constant, Declared, evaluate
from qmodel.frontend.declarations import (
    BUILTIN,
    Decorated,
    ParamValue,
    ScenarioInfo,
    Variant,
    keywords_of,
    name_argument,
)
from qmodel.frontend.diagnostics import File, SpecError, did_you_mean
from qmodel.frontend.functions import FunctionCompiler
from qmodel.frontend.parameters import MOST_THREADS, ParameterError, parameters
from qmodel.frontend.properties import PropertyCompiler
from qmodel.frontend.shape import shape
from qmodel.frontend.source import Owned
from qmodel.frontend.unset import refuse_unset
from qmodel.frontend.values import WORDS
from qmodel.ir.expr import BOOL, Const, Domain, Expr, Read, reads_of, walk
from qmodel.ir.program import (
    BUDGET,
    LAST_SENT,
    PENDING,
    RCU_AWAITED,
    RCU_DEPTH,
    RCU_PRESENT,
    WHERE,
    Measure,
    Packets,
    Place,
    Primitive,
    Program,
    Property,
    Site,
    Template,
    Thread,
    ThreadKind,
    Variable,
)

MOST_PACKETS, MOST_ELEMENTS = 250, 1000
"""What a model may have, beside threads: more than could ever be searched."""
_GHOSTS = (BUDGET, LAST_SENT, PENDING, RCU_AWAITED, RCU_DEPTH, RCU_PRESENT, WHERE)
_VARIABLES = {"SpinLock", "Bool", "Int", "Flags", "SkbList", "SkbPtr"}
_ARRAYS = {"Array", "PerCpu"}
_KEYWORDS = {
    "SpinLock": {"doc"},
    "Bool": {"guarded_by", "rest", "doc"},
    "Int": {"low", "high", "guarded_by", "rest", "doc"},
    "Flags": {"guarded_by", "rest", "doc"},
    "SkbList": {"limit", "guarded_by", "rest", "doc"},
    "SkbPtr": {"guarded_by", "doc"},
    "Array": {"size", "guarded_by"},
    "PerCpu": {"guarded_by"},
}


@dataclass
class Configuration:
    """A variant with values for its parameters: what compiling a function needs to know."""

    variant: Variant
    scenario: ScenarioInfo
    params: dict[str, ParamValue]
    constants: dict[str, int | bool | tuple[int, ...]] = field(default_factory=dict)
    variables: dict[str, Variable] = field(default_factory=dict)
    budgets: dict[str, int] = field(default_factory=dict)
    flow_sizes: tuple[int, ...] = ()
    parked: tuple[int, ...] = ()
    first_sent: tuple[int, ...] = ()
    packets: Packets = field(default_factory=Packets)
    cpus: int = 0
    handlers: dict[str, Decorated] = field(default_factory=dict)
    threads: dict[str, Decorated] = field(default_factory=dict)

    @property
    def files(self) -> dict[str, File]:
        """The files that the members of the variant stand in, by name."""
        return {owned.module.file.name: owned.module.file for owned in self.variant.cls.members.values()}

    @property
    def skb_domain(self) -> Domain:
        """The domain of a packet or NULL."""
        return Domain("skb", 0, len(self.packets.names))

    @property
    def queue_domain(self) -> Domain:
        """The domain of a list that has room for every packet."""
        return Domain("queue", 0, (1 << self.skb_bits * len(self.packets.names)) - 1)

    @property
    def skb_bits(self) -> int:
        """Bits of a packet number."""
        return max(1, len(self.packets.names).bit_length())

    def resolve(self, name: str) -> Constant | None:
        """Return what a name means in the body of the class: a parameter's value, or a variable's name."""
        if name in self.constants:
            return self.constants[name]
        return Declared(name) if name in self.variant.cls.members else None


def configure(variant: Variant, scenario: str = "default", given: Mapping[str, ParamValue] | None = None) -> Program:
    """Compile a variant in one configuration. Raises SpecError, ParameterError."""
    if scenario not in variant.scenarios:
        known = ", ".join(variant.scenarios)
        raise ParameterError(f"{variant.model} has no scenario `{scenario}`; it has: {known}")
    info = variant.scenarios[scenario]
    config = Configuration(variant, info, parameters(variant, info, given or {}))
    try:
        return _configure(config)
    except RecursionError:
        file = variant.cls.module.file
        raise file.error(variant.cls.node, "something in this model is nested too deeply", "split it up") from None


def _configure(config: Configuration) -> Program:
    variant = config.variant
    _constants(config)
    _packets(config)
    for d in variant.decorated:
        if d.decorator == "softirq":
            config.handlers[d.function] = d
        elif d.decorator in {"thread", "environment"}:
            config.threads[d.function] = d
    started = _started(config)
    cpus = config.cpus = sum(count for _, count in started.values())
    if not 1 <= cpus <= MOST_THREADS:
        raise ParameterError(f"a model has from 1 to {MOST_THREADS} threads, not {cpus}")
    _variables(config, cpus)
    return _compile(config, started, cpus)


def _constants(config: Configuration) -> None:
    for name, value in config.params.items():
        if config.variant.params[name].kind == "bool":
            config.constants[name] = bool(value)
        else:
            config.constants[name] = value
        if config.variant.params[name].kind == "budget":
            assert isinstance(value, int)
            config.budgets[name] = value
    for name, owned in config.variant.cls.members.items():
        node = owned.node
        if name in config.params or name in {"kernel", "expect", "model", "name"} or not isinstance(node, ast.expr):
            continue
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _VARIABLES | _ARRAYS:
            continue
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id not in FUNCTIONS:
            known = {*_VARIABLES, *_ARRAYS, "Param", "Budget", "Packets"}
            remedy = did_you_mean(node.func.id, known)
            raise owned.module.file.error(node.func, f"`{node.func.id}` declares nothing", remedy)
        constant = evaluate(owned.module, node, config.resolve)
        numbers = constant if isinstance(constant, tuple) else (constant,)
        if not isinstance(constant, int | tuple) or not all(isinstance(n, int) for n in numbers):
            remedy = "write Param(…), Int(…), SkbList(…) or another declaration"
            raise owned.module.file.error(node, f"`{name}` is no declaration and no number", remedy)
        config.constants[name] = constant


def _packets(config: Configuration) -> None:
    sizes = [v for n, v in config.params.items() if config.variant.params[n].kind == "packets"]
    if not sizes:
        return
    if len(sizes) > 1:
        second = [p for p in config.variant.params.values() if p.kind == "packets"][1]
        raise second.owned.module.file.error(second.owned.node, "a second Packets", "a model has one Packets")
    assert isinstance(sizes[0], tuple)
    if sum(sizes[0]) > MOST_PACKETS:
        raise ParameterError(f"a model has at most {MOST_PACKETS} packets, not {sum(sizes[0])}")
    parked = _parked(config, len(sizes[0]))
    names, flows, indices, first = list[str](), list[int](), list[int](), list[int]()
    for flow, (ahead, sent) in enumerate(zip(parked, sizes[0], strict=True)):
        first.append(len(names) + ahead + 1)
        for index in range(ahead + sent):
            letter = chr(ord("a") + flow) if flow < 26 else f"f{flow}_"
            names.append(f"{letter}{index}")
            flows.append(flow)
            indices.append(index)
    config.flow_sizes, config.parked, config.first_sent = sizes[0], parked, tuple(first)
    config.packets = Packets(tuple(names), tuple(flows), tuple(indices))


def _parked(config: Configuration, flows: int) -> tuple[int, ...]:
    """Count the packets that the scenario parks, by flow: its calls of parked() with a constant."""
    counts = [0] * flows
    owned = config.scenario.owned
    if owned is None:
        return tuple(counts)
    file = owned.module.file
    for statement in owned.node.body if isinstance(owned.node, ast.FunctionDef) else []:
        nested = not isinstance(statement, ast.Assign | ast.AnnAssign | ast.AugAssign | ast.Expr)
        for node in ast.walk(statement):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "parked"):
                continue
            if nested:
                raise file.error(node, "parked() stands in a branch or a loop", "write one call after another")
            flow = _constant(node.args[0], owned) if len(node.args) == 1 else None
            if flow is None or not 0 <= flow < flows:
                remedy = f"write a number from 0 to {flows - 1}"
                raise file.error(node, "parked() takes the number of a flow", remedy)
            counts[flow] += 1
    return tuple(counts)


def _constant(node: ast.expr, owned: Owned) -> int | None:
    try:
        value = evaluate(owned.module, node, lambda _: None)
    except SpecError:
        return None
    return value if isinstance(value, int) else None


def _started(config: Configuration) -> dict[str, tuple[ThreadKind, int]]:
    """Return how many threads of each task and environment function there are."""
    started: dict[str, tuple[ThreadKind, int]] = {}
    for name, d in sorted(config.threads.items(), key=lambda item: item[1].decorator != "thread"):
        module = d.owned.module
        if d.decorator == "environment":
            budget = evaluate(module, d.keywords["budget"], config.resolve)
            if not isinstance(budget, int) or budget < 0:
                remedy = "give a number of at least 0, or the name of a Budget"
                raise module.file.error(d.keywords["budget"], "a budget is a number", remedy)
            config.budgets[name] = budget
            if budget:
                started[name] = ("environment", 1)
            continue
        count: Constant = 1
        if "each" in d.keywords:
            count = evaluate(module, d.keywords["each"], config.resolve)
            if not isinstance(count, int) or count < 0:
                remedy = "give a number of at least 0, or the name of a Param"
                raise module.file.error(d.keywords["each"], "`each` is a number of CPUs", remedy)
        assert isinstance(count, int)
        if count:
            started[name] = ("task", count)
    return started


# --- variables --------------------------------------------------------------------------------------------------------


def _variables(config: Configuration, cpus: int) -> None:
    for name, owned in config.variant.cls.members.items():
        node = owned.node
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _VARIABLES | _ARRAYS:
            if name.startswith(_GHOSTS):
                remedy = "give it another name"
                raise owned.module.file.error(node, f"`{name}` is a name that the language keeps for itself", remedy)
            config.variables[name] = _variable(config, name, owned, node, cpus)
    for variable in config.variables.values():
        _check_guard(config, variable)


def _variable(config: Configuration, name: str, owned: Owned, call: ast.Call, cpus: int) -> Variable:
    file, what = owned.module.file, call.func.id  # type: ignore[attr-defined]
    site = Site(
        file.name, call.lineno, call.col_offset, call.end_col_offset or 0, owned.owner, file.line(call.lineno).strip()
    )
    keywords = _keywords(config, owned, call, what)
    guard = _guard(owned, call, keywords)
    if what not in _ARRAYS:
        domain, init, rest = _scalar(config, owned, call, what, keywords)
        return Variable(name, domain, None, (init,), guard, rest, doc=str(keywords.get("doc") or ""), site=site)
    inner = call.args[0] if len(call.args) == 1 else None
    if not (isinstance(inner, ast.Call) and isinstance(inner.func, ast.Name) and inner.func.id in _VARIABLES):
        raise file.error(call, f"{what} takes one declaration", f"write {what}(Int(0, high=3), …)")
    size: Constant = cpus
    if what == "Array":
        size = keywords.get("size")
        if not isinstance(size, int) or not 1 <= size <= MOST_ELEMENTS:
            remedy = f"write Array({ast.unparse(inner)}, size=…)"
            raise file.error(call, f"an Array has a size from 1 to {MOST_ELEMENTS}", remedy)
    assert isinstance(size, int)
    inner_keywords = _keywords(config, owned, inner, inner.func.id)
    domain, init, rest = _scalar(config, owned, inner, inner.func.id, inner_keywords)
    guard = guard or _guard(owned, inner, inner_keywords)
    return Variable(
        name, domain, size, (init,) * size, guard, rest, doc=str(inner_keywords.get("doc") or ""), site=site
    )


def _keywords(config: Configuration, owned: Owned, call: ast.Call, what: str) -> dict[str, Constant]:
    keywords = keywords_of(owned.module.file, call, what, _KEYWORDS[what])
    return {name: evaluate(owned.module, keyword.value, config.resolve) for name, keyword in keywords.items()}


def _value_node(call: ast.Call, name: str) -> ast.expr:
    """Return where a named value of a call stands, else the call."""
    return next((k.value for k in call.keywords if k.arg == name), call)


def _guard(owned: Owned, call: ast.Call, keywords: dict[str, Constant]) -> str | None:
    guard = keywords.get("guarded_by")
    if guard is None:
        return None
    if not isinstance(guard, Declared):
        node = _value_node(call, "guarded_by")
        raise owned.module.file.error(node, "guarded_by names a lock", "name a SpinLock of this model")
    return guard.name


def _check_guard(config: Configuration, variable: Variable) -> None:
    if variable.guard is None:
        return
    owned = config.variant.cls.members[variable.name]
    calls = [n for n in ast.walk(owned.node) if isinstance(n, ast.Call)]
    node = next((found for call in calls if (found := _value_node(call, "guarded_by")) is not call), owned.node)
    lock = config.variables.get(variable.guard)
    if lock is None or lock.domain.kind != "lock":
        locks = [v.name for v in config.variables.values() if v.domain.kind == "lock"]
        remedy = did_you_mean(variable.guard, locks, "declare `NAME = SpinLock()`")
        raise owned.module.file.error(node, f"`{variable.guard}` is no lock", remedy)
    if lock.size is not None and lock.size != variable.size:
        remedy = "an array of locks guards an array of the same size, element by element"
        raise owned.module.file.error(node, f"`{lock.name}` has {lock.size} locks", remedy)


def _scalar(
    config: Configuration, owned: Owned, call: ast.Call, what: str, keywords: dict[str, Constant]
) -> tuple[Domain, int, int | None]:
    file = owned.module.file
    args = [evaluate(owned.module, a, config.resolve) for a in call.args]
    rest = keywords.get("rest")
    if not isinstance(rest, int | None):
        raise file.error(_value_node(call, "rest"), "`rest` is a value of the variable", "give a number")
    init: Constant = 0
    match what:
        case "SpinLock":
            domain, limit = Domain("lock", 0, 0), 0
        case "Bool":
            domain, limit = BOOL, 1
        case "Int":
            low, high = keywords.get("low", 0), keywords.get("high")
            if not isinstance(low, int) or not isinstance(high, int):
                raise file.error(call, "an Int needs its greatest value", "write Int(0, high=…)")
            if low > high:
                raise file.error(call, f"no number is from {low} to {high}", "exchange low and high")
            domain, limit = Domain("int", low, high), 1
        case "Flags":
            if not args or not isinstance(args[0], BitNames):
                raise file.error(call, "Flags names its bits", "write Flags(CLASS), where CLASS derives from Bits")
            bits = args.pop(0)
            assert isinstance(bits, BitNames)
            domain, limit = Domain("flags", 0, (1 << len(bits.names)) - 1, bits.names), 1
        case "SkbPtr":
            domain, limit = config.skb_domain, 0
        case _:
            domain, limit = config.queue_domain, 0
            room = keywords.get("limit")
            if not isinstance(room, int | None) or (room is not None and room < 0):
                remedy = "give the greatest length of the list, at least 0"
                raise file.error(_value_node(call, "limit"), "`limit` is a number", remedy)
            if room is not None and room < len(config.packets.names):
                domain = Domain("queue", 0, (1 << config.skb_bits * room) - 1)
    if len(args) > limit:
        remedy = "name the others" if limit else "a list begins empty" if domain.kind == "queue" else "remove it"
        raise file.error(call.args[-1], f"{what} takes {limit or 'no'} value without a name", remedy)
    values = f"its values are {domain.lo} to {domain.hi}"
    if args:
        init = args[0]
    if not isinstance(init, int) or not domain.lo <= init <= domain.hi:
        where = call.args[-1] if args else call
        raise file.error(where, f"`{ast.unparse(call)}` starts outside its bounds", values)
    if rest is not None and (not domain.lo <= rest <= domain.hi or (rest and domain.kind == "queue")):
        remedy = "a list rests when it is empty: 0" if domain.kind == "queue" else values
        raise file.error(_value_node(call, "rest"), "it can never have this value", remedy)
    return domain, int(init), None if rest is None else int(rest)


# --- threads and properties -------------------------------------------------------------------------------------------


def _compile(config: Configuration, started: dict[str, tuple[ThreadKind, int]], cpus: int) -> Program:
    # Lists have room for every packet, and locks for every thread: both are known only now.
    for name in config.handlers:
        config.variables[PENDING + name] = Variable(
            PENDING + name, BOOL, max(cpus, 1), (0,) * max(cpus, 1), ghost=True, rest=0
        )
    for name, amount in config.budgets.items():
        if name in config.params:
            config.variables[BUDGET + name] = Variable(
                BUDGET + name, Domain("int", 0, amount), None, (amount,), ghost=True
            )
    templates: dict[str, Template] = {}
    problems: list[SpecError] = []
    for d in config.variant.decorated:
        if d.function in config.threads or d.function in config.handlers:
            try:  # also one that does not run with these parameters: a mistake in it is told all the same
                templates[d.function] = _template(config, d)
            except SpecError as error:
                problems.append(error)
    setup = _setup(config, problems)
    properties, measures = _properties(config, problems)
    if problems:
        raise SpecError(dict.fromkeys(x for p in problems for x in p.diagnostics))
    threads = _threads(started, templates, setup)
    if len(threads) > MOST_THREADS:
        raise ParameterError(f"a model has at most {MOST_THREADS} threads, and here are {len(threads)}, with softirqs")
    templates = {name: t for name, t in templates.items() if any(th.template == name for th in threads)}
    _final_domains(config, len(threads))
    _rcu(config, len(threads), templates)
    return Program(
        model=config.variant.model,
        variant=config.variant.name,
        variables=config.variables,
        templates=templates,
        threads=threads,
        setup=setup,
        properties=properties,
        measures=measures,
        packets=config.packets,
        builtin=(*_demands(config), *_languages_own(config)),
    )


def _demands(config: Configuration) -> list[tuple[str, str]]:
    own = {name_argument(d) for d in config.variant.decorated if d.decorator in {"invariant", "quiescent"}}
    return [(n, "demanded by the code") for n in config.variant.demands if n not in own and n not in BUILTIN]


def _languages_own(config: Configuration) -> list[tuple[str, str]]:
    packets = bool(config.packets.names)
    return [(n, doc) for n, doc in BUILTIN.items() if packets or n not in {"order", "no-leak", "once"}]


def _template(config: Configuration, d: Decorated) -> Template:
    compiler = FunctionCompiler(config, d.owned)
    if d.decorator == "softirq":
        nodes, kind = compiler.softirq(), "softirq"
    elif d.decorator == "environment":
        nodes, kind = compiler.environment(max(1, config.budgets[d.function])), "environment"
    else:
        nodes, kind = compiler.task(), "task"
    assert isinstance(d.owned.node, ast.FunctionDef)
    doc = ast.get_docstring(d.owned.node) or ""
    site = compiler.site(d.owned.node)
    template = Template(d.function, kind, nodes, compiler.locals, doc, site)  # type: ignore[arg-type]
    template = replace(template, nodes=refuse_unset(nodes, config.files))
    return _settled(config, shape(template, config.files))


def _settled(config: Configuration, template: Template) -> Template:
    cpus = max((v.size or 0 for n, v in config.variables.items() if n.startswith(PENDING)), default=8)
    return settle(template, config.variables, len(config.packets.names), config.skb_bits, cpus, config.files)


def _setup(config: Configuration, problems: list[SpecError]) -> Template:
    owned = config.scenario.owned
    if owned is None:
        from qmodel.ir.program import Node, Nop  # noqa: PLC0415

        site = Site(config.variant.cls.module.file.name, 1, 0, 0, "", "")
        return Template("setup", "task", (Node(Nop(), (), site, boundary=True),), {}, "", site)
    compiler = FunctionCompiler(config, owned, parking=True)
    try:
        nodes = refuse_unset(compiler.task(), config.files)
    except SpecError as error:
        problems.append(error)
        nodes = ()
    nodes = tuple(replace(n, boundary=not n.next, access=None) for n in nodes)
    assert owned.node is not None
    site = compiler.site(owned.node)
    template = Template("setup", "task", nodes, compiler.locals, config.scenario.doc, site)
    return _settled(config, template) if nodes else template


def _threads(
    started: dict[str, tuple[ThreadKind, int]], templates: dict[str, Template], setup: Template
) -> tuple[Thread, ...]:
    """Number the threads: tasks, the environment, each on a CPU of its own, then softirqs where they are raised."""
    threads: list[Thread] = []
    for name, (kind, count) in started.items():
        for _ in range(count):
            cpu = len(threads)
            if name in templates:
                threads.append(Thread(len(threads), name, kind, cpu))
    raised = {t.name: _raises(t) for t in templates.values()}
    where: set[tuple[int, str]] = set()
    grown = {(t.cpu, h) for t in threads for h in raised[t.template]}
    grown |= {(0, h) for h in _raises(setup)}  # a scenario stands on CPU0
    while grown - where:
        where |= grown
        grown = {(cpu, h) for cpu, handler in where for h in raised.get(handler, ())}
    order = list(templates)
    for cpu, handler in sorted(where, key=lambda pair: (order.index(pair[1]), pair[0])):
        threads.append(Thread(len(threads), handler, "softirq", cpu))
    return tuple(threads)


def _raises(template: Template) -> list[str]:
    found = []
    for node in template.nodes:
        instruction = node.instruction
        if isinstance(instruction, Primitive) and instruction.name == "raise_softirq":
            assert isinstance(instruction.place, Read)
            found.append(instruction.place.var.removeprefix(PENDING))
    return found


def _final_domains(config: Configuration, threads: int) -> None:
    for name, variable in config.variables.items():
        if variable.domain.kind == "lock":
            config.variables[name] = replace(variable, domain=Domain("lock", 0, threads))
    count = len(config.packets.names)
    if count:
        where = Domain("place", 0, Place.HELD + threads)
        config.variables[WHERE] = Variable(WHERE, where, count, (0,) * count, ghost=True)
        flows = len(config.flow_sizes)
        most = max(i + 1 for i in config.packets.indices)
        config.variables[LAST_SENT] = Variable(LAST_SENT, Domain("int", 0, most), flows, (0,) * flows, ghost=True)


def _rcu(config: Configuration, threads: int, templates: dict[str, Template]) -> None:
    """Declare what RCU counts, where a thread uses it."""
    used = {n.access.name for t in templates.values() for n in t.nodes if n.access is not None}
    if not used & {"rcu_read_lock", "synchronize_rcu"}:
        return
    deepest = Domain("int", 0, 3)
    waits = threads * threads if "synchronize_rcu" in used else 0
    config.variables[RCU_DEPTH] = Variable(RCU_DEPTH, deepest, threads, (0,) * threads, ghost=True)
    config.variables[RCU_PRESENT] = Variable(RCU_PRESENT, deepest, threads, (0,) * threads, ghost=True, rest=0)
    if waits:
        config.variables[RCU_AWAITED] = Variable(RCU_AWAITED, deepest, waits, (0,) * waits, ghost=True)


def _properties(config: Configuration, problems: list[SpecError]) -> tuple[tuple[Property, ...], tuple[Measure, ...]]:
    properties: list[Property] = []
    measures: list[Measure] = []
    for d in config.variant.decorated:
        if d.decorator not in {"invariant", "quiescent", "measure"}:
            continue
        compiler = PropertyCompiler(config)
        try:
            value, returned = compiler.function(d.owned)
            if value.kind not in {"bool", "int", "flags", "skb"}:
                raise d.owned.module.file.error(
                    returned, f"this is {WORDS[value.kind]}", "return a condition or a number"
                )
        except SpecError as error:
            problems.append(error)
            continue
        assert isinstance(d.owned.node, ast.FunctionDef)
        doc = ast.get_docstring(d.owned.node) or ""
        file = d.owned.module.file
        site = Site(file.name, d.owned.node.lineno, 0, 0, d.function, file.line(d.owned.node.lineno).strip())
        locks = _locks(config, value.value)
        if d.decorator == "measure":
            measures.append(Measure(name_argument(d), value.value, locks, doc, site))
        else:
            kind: Literal["invariant", "quiescent"] = "invariant" if d.decorator == "invariant" else "quiescent"
            properties.append(Property(name_argument(d), kind, value.value, locks, doc, site))
    return tuple(properties), tuple(measures)


def _locks(config: Configuration, expr: Expr) -> tuple[Read, ...]:
    """Return the locks that guard what an expression reads."""
    found: dict[Read, None] = {}
    for part in walk(expr):
        if isinstance(part, Read):
            guard = config.variables[part.var].guard
            if guard is None:
                continue
            elementwise = config.variables[guard].size is not None
            found[Read(guard, part.index if elementwise else None)] = None
    return tuple(found)


__all__ = ["Configuration", "Const", "ParameterError", "configure", "parameters", "reads_of"]
