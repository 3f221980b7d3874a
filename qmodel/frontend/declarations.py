"""What a specification declares, before any parameter has a value: models, variants, parameters, expectations."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from qmodel.frontend.constants import Constant, Declared, evaluate
from qmodel.frontend.diagnostics import File, SpecError, did_you_mean
from qmodel.frontend.parameters import ParameterError, parameters, range_problem
from qmodel.frontend.source import Loader, ModelClass, Module, Owned, model_class, model_names
from qmodel.frontend.unused import refuse_unused

MEMORIES = ("sc", "tso", "weak")
DEFAULT_SCENARIO = "default"
BUILTIN = {
    "order": "the packets of a flow reach the wire in the order in which they were handed over",
    "no-leak": "each packet is sent, freed, queued or in somebody's hands",
    "once": "no packet is queued, sent or freed twice, or used by one who does not have it",
    "deadlock": "no thread waits for ever",
    "race": "a guarded variable is touched under its lock only",
    "domain": "every value stays within its declared bounds",
    "locking": "a lock is released by its holder only, and before its task ends",
    "null": "no NULL pointer is used",
    "check": "every check() in the code holds",
    "endless": "no loop runs for ever without touching shared memory",
}
"""Properties that come with the language."""
OF_PACKETS = frozenset({"order", "no-leak", "once"})
"""Those of them that a model without Packets is not judged on."""

OPTIONS = frozenset({
    "engine", "format", "full", "help", "json", "max_memory", "max_states", "measure", "memory", "no_check",
    "no_reduction", "scenario", "seed", "steps", "stop_first", "thread", "timeout", "variant", "walks",
})  # fmt: skip
"""What is an option of the command already, and so is no name for a parameter."""

ParamValue = int | tuple[int, ...]
ParamKind = Literal["int", "bool", "packets", "budget"]


@dataclass(frozen=True, slots=True)
class ParamInfo:
    """A parameter: for `packets` the default has one number a flow, the last one standing for the rest."""

    name: str
    kind: ParamKind
    default: ParamValue
    low: int
    high: int | None
    grows: bool
    doc: str
    owned: Owned


@dataclass(frozen=True, slots=True)
class KernelInfo:
    """What a variant stands for: commit, releases, file."""

    commit: str = ""
    since: str = ""
    until: str = ""
    source: str = ""

    def __str__(self) -> str:
        """Return it in one phrase: `9540d977618c, 4.16 to 6.12`."""
        span = f"{self.since} to {self.until}" if self.since and self.until else self.since or self.until
        return ", ".join(part for part in (self.commit, span) if part)


@dataclass(frozen=True, slots=True)
class Expectation:
    """What must come out: `refuted` names the properties that are refuted, and is empty where all hold."""

    refuted: tuple[str, ...]
    scenario: str
    memories: tuple[str, ...]
    params: dict[str, ParamValue]
    line: int


@dataclass(frozen=True, slots=True)
class ScenarioInfo:
    """A named initial state; `owned` is its function, None for the default one."""

    name: str
    doc: str
    params: dict[str, ParamValue]
    owned: Owned | None


@dataclass(frozen=True, slots=True)
class Decorated:
    """A function with a decorator of the language: its name there (`thread`, `invariant` …) and arguments."""

    function: str
    owned: Owned
    decorator: str
    arguments: tuple[ast.expr, ...]
    keywords: dict[str, ast.expr]


@dataclass(frozen=True)
class Variant:
    """A variant of a model, ready to be configured."""

    model: str
    name: str
    doc: str
    kernel: KernelInfo
    cls: ModelClass
    params: dict[str, ParamInfo]
    scenarios: dict[str, ScenarioInfo]
    expectations: tuple[Expectation, ...]
    decorated: tuple[Decorated, ...]
    functions: dict[str, Owned] = field(hash=False)

    @property
    def demands(self) -> list[str]:
        """The properties that its functions demand at places of theirs."""
        return demanded([*self.functions.values(), *(d.owned for d in self.decorated)])

    @property
    def property_names(self) -> list[str]:
        """The properties that this variant is judged on: its own and those of the language."""
        own = [name_argument(d) for d in self.decorated if d.decorator in {"invariant", "quiescent"}]
        own += [name for name in self.demands if name not in own]
        packets = any(p.kind == "packets" for p in self.params.values())
        return [*own, *(name for name in BUILTIN if name not in own and (packets or name not in OF_PACKETS))]


def demanded(functions: Iterable[Owned]) -> list[str]:
    """Return the properties that functions demand at places of theirs."""
    found: dict[str, None] = {}
    for owned in functions:
        for node in ast.walk(owned.node):
            match node:
                case ast.Call(func=ast.Name(id="demand"), args=[ast.Constant(value=str() as name), *_]):
                    found[name] = None
    return list(found)


@dataclass(frozen=True)
class Spec:
    """A model and its variants, as one file gives them."""

    model: str
    doc: str
    path: Path
    shown: str
    variants: tuple[Variant, ...]


DECORATORS = {"thread", "softirq", "environment", "invariant", "quiescent", "measure", "scenario"}


def kebab(name: str) -> str:
    """Return the name of a variant: `FirstOnly` is `first-only`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "-", name).lower()


def load(path: Path, shown: str | None = None) -> list[Spec]:
    """Read a specification file. Raises SpecError with every mistake in its declarations, OSError."""
    module = Loader().load(path, shown)
    classes = [cls for name in model_names(module) if (cls := model_class(module, name)) is not None]
    for cls in classes:
        if cls.bases and not cls.own - {"kernel", "expect", "name"}:
            remedy = f"override what the patch changes, or state what comes out of `{cls.bases[0]}` there"
            raise module.file.error(cls.node, f"`{cls.name}` changes nothing of `{cls.bases[0]}`", remedy)
    bases = {cls.bases[0] for cls in classes if cls.bases}
    variants: list[Variant] = []
    for cls in classes:
        missing = _abstract(cls)
        if not missing:
            variants.append(_variant(cls))
        elif cls.name not in bases:
            names = ", ".join(f"`{name}`" for name in missing)
            remedy = "override it in this class, or in one that derives from it"
            raise module.file.error(cls.node, f"{names} of `{cls.name}` has no body", remedy)
    refuse_unused(module, classes)
    if not variants:
        remedy = "write `class NAME(Model):` with at least one @thread"
        raise module.file.error_at(1, 0, 0, "there is no complete model in this file", remedy)
    specs: dict[str, list[Variant]] = {}
    for variant in variants:
        if any(other.name == variant.name for other in specs.get(variant.model, [])):
            raise module.file.error(variant.cls.node, f"a second variant `{variant.name}`", "give it another name")
        specs.setdefault(variant.model, []).append(variant)
    return [
        Spec(model, _root(module, group[0].cls, model).doc, path, module.file.name, tuple(group))
        for model, group in specs.items()
    ]


def _root(module: Module, cls: ModelClass, model: str) -> ModelClass:
    """Return the first class of a model: the topmost ancestor that bears its name."""
    parent = model_class(cls.module, cls.bases[0]) if cls.bases else None
    return cls if parent is None or _model_name(parent) != model else _root(module, parent, model)


def _abstract(cls: ModelClass) -> list[str]:
    """Return the functions that are still to be filled in."""
    return [n for n, m in cls.members.items() if isinstance(m.node, ast.FunctionDef) and is_abstract(m.node)]


def is_abstract(function: ast.FunctionDef) -> bool:
    """Tell whether a function's body is `...`, for variants to fill in."""
    body = [s for s in function.body if not (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))]
    last = function.body[-1]
    return not body and isinstance(last, ast.Expr) and isinstance(last.value, ast.Constant) and last.value.value is ...


def _variant(cls: ModelClass) -> Variant:
    file = cls.module.file
    params: dict[str, ParamInfo] = {}
    functions: dict[str, Owned] = {}
    decorated: list[Decorated] = []
    for name, owned in cls.members.items():
        if isinstance(owned.node, ast.FunctionDef):
            found = _decorator(owned, owned.node)
            if found is None:
                functions[name] = owned
            else:
                decorated.append(found)
        elif (param := _param(name, owned)) is not None:
            params[name] = param
    for name, param in params.items():
        off = params.get(name.removeprefix("no_")) if name.startswith("no_") else None
        if name in OPTIONS or (off is not None and off.kind == "bool"):
            option = name.replace("_", "-")
            message = f"--{option} is an option of the command already"
            raise param.owned.module.file.error(param.owned.node, message, f"give `{name}` another name")
    if not any(d.decorator == "thread" for d in decorated):
        remedy = "mark the function where a thread begins with @thread"
        raise file.error(cls.node, f"`{cls.name}` has no thread", remedy)
    scenarios = _scenarios(decorated, params)
    variant = Variant(
        model=_model_name(cls),
        name=_variant_name(cls),
        doc=cls.doc,
        kernel=_kernel(cls),
        cls=cls,
        params=params,
        scenarios=scenarios,
        expectations=(),
        decorated=tuple(decorated),
        functions=functions,
    )
    names: set[str] = set()
    for d in decorated:
        if d.decorator not in {"invariant", "quiescent", "measure"}:
            continue
        name = name_argument(d)
        if name in names:
            raise _at(d, f"a second property `{name}`", "give it another name")
        if name in BUILTIN:
            raise _at(d, f"`{name}` comes with the language", f"give this {d.decorator} another name")
        names.add(name)
    for info in scenarios.values():
        if info.owned is not None:
            try:
                parameters(variant, info, {})
            except ParameterError as error:
                where = info.owned.node.decorator_list[0] if isinstance(info.owned.node, ast.FunctionDef) else cls.node
                raise info.owned.module.file.error(where, str(error), "give one number a flow") from None
    return replace(variant, expectations=_expectations(variant))


def _model_name(cls: ModelClass) -> str:
    """Return the name of the model: its first class, unless a class says `model = "name"` for itself and its heirs."""
    owned = cls.members.get("model")
    if owned is not None:
        match owned.node:
            case ast.Constant(value=str() as name) if name:
                return name
        raise owned.module.file.error(owned.node, "`model` is the name of a model", 'write model = "name"')
    return kebab(cls.bases[-1] if cls.bases else cls.name)


def _variant_name(cls: ModelClass) -> str:
    """Return the name of a variant: that of its class, unless the class itself says `name = "name"`."""
    owned = cls.members.get("name") if "name" in cls.own else None
    if owned is None:
        return kebab(cls.name)
    match owned.node:
        case ast.Constant(value=str() as name) if name:
            return name
    raise owned.module.file.error(owned.node, "`name` is the name of a variant", 'write name = "name"')


def _at(decorated: Decorated, message: str, remedy: str) -> SpecError:
    node = decorated.owned.node
    where = node.decorator_list[0] if isinstance(node, ast.FunctionDef) and node.decorator_list else node
    return decorated.owned.module.file.error(where, message, remedy)


def _decorator(owned: Owned, function: ast.FunctionDef) -> Decorated | None:
    if not function.decorator_list:
        return None
    file = owned.module.file
    if len(function.decorator_list) > 1:
        raise file.error(function.decorator_list[1], "a function has one decorator", "remove the others")
    node = function.decorator_list[0]
    call = node if isinstance(node, ast.Call) else None
    target = call.func if call else node
    if not isinstance(target, ast.Name) or target.id not in DECORATORS:
        name = ast.unparse(target)
        raise file.error(node, f"unknown decorator `{name}`", did_you_mean(name, DECORATORS))
    allowed = {"thread": ("each",), "environment": ("budget",), "scenario": None}.get(target.id, ())
    keywords = {k: v.value for k, v in keywords_of(file, call, f"@{target.id}", allowed).items()} if call else {}
    found = Decorated(function.name, owned, target.id, tuple(call.args) if call else (), keywords)
    if target.id in {"invariant", "quiescent", "measure", "scenario"}:
        name_argument(found)
    elif found.arguments:
        remedy = f"write @{target.id}({allowed[0]}=…)" if allowed else f"write @{target.id}"
        raise file.error(found.arguments[0], f"@{target.id} takes no value without a name", remedy)
    if target.id == "environment" and "budget" not in keywords:
        remedy = "write @environment(budget=…): how often it may act"
        raise file.error(node, "the environment needs a budget", remedy)
    return found


def keywords_of(file: File, call: ast.Call, what: str, allowed: Collection[str] | None) -> dict[str, ast.keyword]:
    """Return the named values of a call. Raises SpecError for one that is not allowed (None: all are)."""
    for keyword in call.keywords:
        if keyword.arg is None:
            raise file.error(keyword, f"{what} takes its values one by one", "write them out: `name=value`")
        if allowed is not None and keyword.arg not in allowed:
            remedy = did_you_mean(keyword.arg, allowed, "" if allowed else "remove it")
            raise file.error(keyword, f"{what} takes no `{keyword.arg}`", remedy)
    return {str(keyword.arg): keyword for keyword in call.keywords}


def name_argument(decorated: Decorated) -> str:
    """Return the name that a property, a measure or a scenario is given. Raises SpecError where there is none."""
    match decorated.arguments:
        case (ast.Constant(value=str() as name),) if name:
            return name
    what = decorated.decorator
    raise _at(decorated, f"this {what} has no name", f'write @{what}("name")')


def _call(node: ast.expr) -> tuple[str, ast.Call] | None:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return node.func.id, node
    return None


def _param(name: str, owned: Owned) -> ParamInfo | None:
    assert isinstance(owned.node, ast.expr)
    called = _call(owned.node)
    if called is None or called[0] not in {"Param", "Budget", "Packets"}:
        return None
    file, (what, call) = owned.module.file, called
    allowed = {"Param": ("low", "high", "grows", "doc"), "Budget": ("high", "doc"), "Packets": ("each", "doc")}[what]
    given: dict[str, Constant] = {}
    keywords = keywords_of(file, call, what, allowed)
    for key, keyword in keywords.items():
        if key != "each":
            given[key] = evaluate(owned.module, keyword.value, lambda _: None)
    if len(call.args) != 1:
        raise file.error(call, f"{what} takes one default", f"write `{name} = {what}(default, …)`")
    if what == "Packets" and "each" not in keywords:
        raise file.error(call, "Packets needs the number of flows", "write Packets(default, each=cpus)")
    default = evaluate(owned.module, call.args[0], lambda _: None)
    kind: ParamKind = "bool" if isinstance(default, bool) else "int"
    if what != "Param":
        kind = "budget" if what == "Budget" else "packets"
    if not _is_value(default, kind):
        remedy = "give a number of at least 0" + (", or one for each flow: (2, 1)" if kind == "packets" else "")
        raise file.error(call.args[0], f"`{ast.unparse(call.args[0])}` is no default for {what}", remedy)
    low, high, doc = given.get("low", 0), given.get("high"), given.get("doc", "")
    grows = kind in {"budget", "packets"} or bool(given.get("grows", False))
    if not isinstance(low, int) or not isinstance(high, int | None) or not isinstance(doc, str):
        remedy = f'write {what}({ast.unparse(call.args[0])}, low=0, high=8, doc="…")'
        raise file.error(call, "low and high are numbers, doc is text", remedy)
    if isinstance(default, int) and not (low <= default and (high is None or default <= high)):
        remedy = f"the lowest value is {low}" + ("" if high is None else f", the greatest {high}")
        raise file.error(call.args[0], f"the default {default} is not within low and high", remedy)
    value: ParamValue = default if isinstance(default, tuple) else int(default)  # type: ignore[arg-type]
    return ParamInfo(name, kind, value, low, 1 if kind == "bool" else high, grows, doc, owned)


def _is_value(value: Constant, kind: ParamKind) -> bool:
    if isinstance(value, tuple):
        return kind == "packets" and bool(value) and all(isinstance(v, int) and v >= 0 for v in value)
    return isinstance(value, int) and (kind == "int" or value >= 0)


def _kernel(cls: ModelClass) -> KernelInfo:
    owned = cls.members.get("kernel")
    if owned is None or "kernel" not in cls.own:
        return KernelInfo()
    called = _call(owned.node) if isinstance(owned.node, ast.expr) else None
    if called is None or called[0] != "Kernel":
        raise owned.module.file.error(
            owned.node, "`kernel` is a Kernel(…)", 'write kernel = Kernel("commit", since="")'
        )
    _, call = called
    file, values = owned.module.file, dict[str, str]()
    keywords = keywords_of(file, call, "Kernel", ("commit", "since", "until", "source"))
    if len(call.args) > 1:
        raise file.error(call.args[1], "Kernel takes one commit", 'write Kernel("commit", since="…", until="…")')
    for name, node in [*(("commit", a) for a in call.args), *((k, v.value) for k, v in keywords.items())]:
        value = evaluate(owned.module, node, lambda _: None)
        if not isinstance(value, str):
            raise file.error(node, f"`{name}` of a Kernel is text", 'write it between quotes: "…"')
        values[name] = value
    return KernelInfo(**values)


def _scenarios(decorated: list[Decorated], params: dict[str, ParamInfo]) -> dict[str, ScenarioInfo]:
    scenarios = {DEFAULT_SCENARIO: ScenarioInfo(DEFAULT_SCENARIO, "every queue is empty", {}, None)}
    for d in decorated:
        if d.decorator != "scenario":
            continue
        name = name_argument(d)
        if name in scenarios:
            raise _at(d, f"a second scenario `{name}`", "give it another name")
        assert isinstance(d.owned.node, ast.FunctionDef)
        doc = ast.get_docstring(d.owned.node) or ""
        decorator = d.owned.node.decorator_list[0]
        keywords = decorator.keywords if isinstance(decorator, ast.Call) else []
        values = {str(k.arg): _param_value(d.owned.module, k, params) for k in keywords}
        scenarios[name] = ScenarioInfo(name, doc, values, d.owned)
    return scenarios


def _param_value(module: Module, keyword: ast.keyword, params: dict[str, ParamInfo]) -> ParamValue:
    name, node = str(keyword.arg), keyword.value
    if name not in params:
        raise module.file.error(keyword, f"there is no parameter `{name}`", did_you_mean(name, params))
    value = evaluate(module, node, lambda _: None)
    if not _is_value(value, params[name].kind):
        remedy = "give a number" + (", or one for each flow: (2, 1)" if params[name].kind == "packets" else "")
        raise module.file.error(node, f"`{ast.unparse(node)}` is no value for `{name}`", remedy)
    number: ParamValue = value if isinstance(value, tuple) else int(value)  # type: ignore[arg-type]
    problem = range_problem(params[name], number)
    if problem:
        raise module.file.error(node, problem, "give a value within the bounds of the parameter")
    return number


def _expectations(variant: Variant) -> tuple[Expectation, ...]:
    owned = variant.cls.members.get("expect")
    if owned is None or "expect" not in variant.cls.own:
        return ()
    file, node = owned.module.file, owned.node
    if not isinstance(node, ast.List):
        raise file.error(node, "`expect` is a list", 'write expect = [Refutes("property", …), Holds(…)]')
    found: list[Expectation] = []
    for item in node.elts:
        called = _call(item)
        if called is None or called[0] not in {"Refutes", "Holds"}:
            raise file.error(item, "an expectation is Refutes(…) or Holds(…)", 'write Refutes("order", cpus=2)')
        expectation = _expectation(variant, owned, *called)
        if any(_same_runs(variant, expectation, other) for other in found):
            remedy = "name all properties that are refuted there in one Refutes(…)"
            raise file.error(item, "a second expectation for the same configuration", remedy)
        found.append(expectation)
    return tuple(found)


def _same_runs(variant: Variant, first: Expectation, second: Expectation) -> bool:
    if first.scenario != second.scenario or not set(first.memories) & set(second.memories):
        return False
    scenario = variant.scenarios[first.scenario]
    return parameters(variant, scenario, first.params) == parameters(variant, scenario, second.params)


def _expectation(variant: Variant, owned: Owned, what: str, call: ast.Call) -> Expectation:
    module = owned.module
    refuted = tuple(evaluate(module, a, lambda _: None) for a in call.args)
    if (what == "Refutes") != bool(refuted):
        remedy = 'write Refutes("property", …) or Holds(…) without one'
        raise module.file.error(call, f"{what} names {'no' if what == 'Refutes' else 'a'} property", remedy)
    names = variant.property_names
    for node, name in zip(call.args, refuted, strict=True):
        if name not in names:
            text = name if isinstance(name, str) else ast.unparse(node)
            raise module.file.error(node, f"there is no property `{text}`", did_you_mean(text, names))
    scenario = DEFAULT_SCENARIO
    memories: tuple[str, ...] = MEMORIES[:1]
    params: dict[str, ParamValue] = {}
    for key, keyword in keywords_of(module.file, call, what, None).items():
        if key not in {"scenario", "memory"}:
            params[key] = _param_value(module, keyword, variant.params)
            continue
        value = evaluate(module, keyword.value, lambda _: None)
        if key == "scenario":
            if value not in variant.scenarios:
                text = value if isinstance(value, str) else ast.unparse(keyword.value)
                remedy = did_you_mean(text, variant.scenarios)
                raise module.file.error(keyword.value, f"there is no scenario `{text}`", remedy)
            scenario = str(value)
        else:
            named = value if isinstance(value, tuple) else (value,)
            memories = tuple(n if isinstance(n, str) else ast.unparse(keyword.value) for n in named)
            if not memories:
                raise module.file.error(keyword.value, "no memory model is named", f"name one of {MEMORIES}")
            for memory in memories:
                if memory not in MEMORIES:
                    remedy = did_you_mean(memory, MEMORIES)
                    raise module.file.error(keyword.value, f"there is no memory model `{memory}`", remedy)
    try:
        parameters(variant, variant.scenarios[scenario], params)
    except ParameterError as error:
        raise module.file.error(call, str(error), "correct the parameters of this expectation") from None
    return Expectation(tuple(map(str, refuted)), scenario, memories, params, call.lineno)


__all__ = ["BUILTIN", "DEFAULT_SCENARIO", "Declared", "Spec", "Variant", "load"]
