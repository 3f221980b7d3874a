"""Reading specification files: modules, classes and where they inherit from. Nothing here is ever executed."""

from __future__ import annotations

import ast
import warnings
from dataclasses import dataclass, field
from pathlib import Path

from qmodel import lang
from qmodel.frontend.diagnostics import File, SpecError, did_you_mean

SHIPPED = Path(__file__).resolve().parent.parent / "specs"
"""The folder of the specifications that come with qmodel."""

FunctionNode = ast.FunctionDef
Member = ast.FunctionDef | ast.expr
WORDS = frozenset(lang.__all__)
"""The words of the language: what a specification can import from it."""
RESERVED = {"flow": "the packets that a CPU sends", "parked": "a packet that a scenario begins with"}
"""Names that every model has, and what they stand for."""


@dataclass
class Module:
    """A parsed file: its classes, its constants, and the names it imports from other specifications."""

    file: File
    path: Path
    tree: ast.Module
    classes: dict[str, ast.ClassDef] = field(default_factory=dict)
    constants: dict[str, ast.expr] = field(default_factory=dict)
    imported: dict[str, tuple[Module, str]] = field(default_factory=dict)
    from_lang: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class Owned:
    """A member of a class, and the class and module in which it stands."""

    node: Member
    module: Module
    owner: str


@dataclass(frozen=True)
class ModelClass:
    """A class that derives from Model, with all it inherits.

    own: what it declares itself; overriding: those of them that an ancestor has too. bases: the names of its ancestors,
    nearest first.
    """

    name: str
    module: Module
    node: ast.ClassDef
    members: dict[str, Owned]
    own: frozenset[str]
    overriding: frozenset[str]
    bases: tuple[str, ...]

    @property
    def doc(self) -> str:
        """The docstring."""
        return ast.get_docstring(self.node) or ""


class Loader:
    """Loads specification files, each once."""

    def __init__(self) -> None:
        self._modules: dict[Path, Module] = {}

    def load(self, path: Path, shown: str | None = None) -> Module:
        """Return the module of a file; shown: its name in messages. Raises SpecError, OSError."""
        resolved = path.resolve()
        if resolved in self._modules:
            return self._modules[resolved]
        name = shown or str(path)
        try:
            text = resolved.read_text(encoding="utf-8-sig")
        except UnicodeDecodeError as error:
            raise File(name, ()).error_at(1, 0, 0, f"not a text file: {error.reason}", "save it as UTF-8") from None
        file = File(name, tuple(text.split("\n")))
        try:
            with warnings.catch_warnings(action="ignore"):  # such as those on "\d" in a docstring
                tree = ast.parse(text)
        except SyntaxError as error:
            line, column = error.lineno or 1, max(0, (error.offset or 1) - 1)
            end = max(column + 1, (error.end_offset or 0) - 1) if error.end_lineno == error.lineno else column + 1
            raise file.error_at(line, column, end, error.msg, "a specification is written in Python's syntax") from None
        except ValueError as error:
            raise file.error_at(1, 0, 0, str(error), "save it as plain UTF-8 text") from None
        except (MemoryError, RecursionError):
            raise file.error_at(1, 0, 0, "an expression of this file is nested too deeply", "split it up") from None
        module = Module(file, resolved, tree)
        self._modules[resolved] = module
        for node in tree.body:
            self._top_level(module, node)
        _refuse_circles(module)
        _refuse_missing_imports(module)
        return module

    def _top_level(self, module: Module, node: ast.stmt) -> None:
        match node:
            case ast.ClassDef():
                _refuse_odd_class(module, node)
                _refuse_second(module, node, node.name)
                module.classes[node.name] = node
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                _refuse_second(module, node, name)
                module.constants[name] = value
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                _refuse_second(module, node, name)
                module.constants[name] = value
            case ast.ImportFrom(module=str() as source):
                self._import(module, node, source)
            case ast.Import() | ast.ImportFrom():
                remedy = "write `from qmodel.lang import …`, or `from qmodel.specs.NAME import CLASS`"
                raise module.file.error(node, "a specification imports names, not modules", remedy)
            case ast.Expr(value=ast.Constant()) | ast.If(test=ast.Name(id="TYPE_CHECKING")):
                pass  # a docstring; `if TYPE_CHECKING:` is for editors
            case ast.FunctionDef():
                remedy = "move it into the class of the model"
                raise module.file.error(node, f"the function `{node.name}` stands outside of a model", remedy)
            case _:
                remedy = "keep to imports, constants (`NAME = 3`) and classes"
                raise module.file.error(node, "this statement has no meaning at the top of a specification", remedy)

    def _import(self, module: Module, node: ast.ImportFrom, source: str) -> None:
        if source.partition(".")[0] in {"__future__", "typing"}:
            return
        if source == "qmodel.lang" or source.startswith("qmodel.lang."):
            for alias in node.names:
                if alias.name == "*" or alias.asname:
                    remedy = "name each word that you use, without `as`: that is how they are known when read"
                    raise module.file.error(alias, "import the words of the language by their names", remedy)
                if alias.name not in WORDS:
                    remedy = did_you_mean(alias.name, WORDS, "its words are those of `qmodel.lang.__all__`")
                    raise module.file.error(alias, f"the language has no `{alias.name}`", remedy)
                module.from_lang.add(alias.name)
            return
        if source.startswith("qmodel.specs."):
            path = SHIPPED / (source.removeprefix("qmodel.specs.").replace(".", "/") + ".py")
        else:
            path = module.path.parent / (source.replace(".", "/") + ".py")
        if not path.is_file():
            shipped = ", ".join(f"qmodel.specs.{p.stem}" for p in sorted(SHIPPED.glob("[a-z]*.py")))
            raise module.file.error(
                node, f"there is no specification `{source}`", f"use a file beside this one, or one of: {shipped}"
            )
        other = self.load(path, f"specs/{path.name}" if path.parent == SHIPPED else None)
        for alias in node.names:
            if alias.name == "*":
                raise module.file.error(alias, "a specification imports names one by one", "name what you use")
            _refuse_second(module, alias, alias.asname or alias.name)
            if alias.name not in other.classes and alias.name not in other.constants:
                known = [*other.classes, *other.constants]
                raise module.file.error(alias, f"`{source}` has no `{alias.name}`", did_you_mean(alias.name, known))
            module.imported[alias.asname or alias.name] = (other, alias.name)


def _refuse_odd_class(module: Module, node: ast.ClassDef) -> None:
    """Refuse a class that is no model and no class of bits by its first line."""
    error = module.file.error
    if node.decorator_list:
        raise error(node.decorator_list[0], "a class of a specification has no decorator", "remove it")
    if node.keywords:
        raise error(node.keywords[0], "a class of a specification has a base and nothing else", "remove it")
    if not node.bases:
        remedy = f"write `class {node.name}(Model):`, or derive from another model or from Bits"
        raise error(node, f"`{node.name}` derives from nothing", remedy)
    if len(node.bases) > 1:
        raise error(node.bases[1], "a class of a specification has one base", "derive from one model, Model or Bits")
    if not isinstance(node.bases[0], ast.Name):
        raise error(node.bases[0], "a base is a plain name", "import the model by its name and derive from it")


def _refuse_second(module: Module, node: ast.AST, name: str) -> None:
    if name in module.classes or name in module.constants or name in module.imported:
        raise module.file.error(node, f"a second `{name}` in this file", "give one of them another name")


def _refuse_circles(module: Module) -> None:
    """Refuse constants that are defined by themselves."""

    def visit(name: str, path: tuple[str, ...]) -> None:
        value = module.constants[name]
        if name in path:
            raise module.file.error(value, f"`{name}` is defined by itself", "give it a number")
        for part in ast.walk(value):
            if isinstance(part, ast.Name) and part.id in module.constants:
                visit(part.id, (*path, name))

    for name in module.constants:
        visit(name, ())


def _refuse_missing_imports(module: Module) -> None:
    """Refuse words of the language that are used and not imported: an editor would not know them."""
    names = [node for node in ast.walk(module.tree) if isinstance(node, ast.Name)]
    own = {node.id for node in names if isinstance(node.ctx, ast.Store)}
    own |= {node.arg for node in ast.walk(module.tree) if isinstance(node, ast.arg)}
    known = own | module.from_lang | set(module.classes) | set(module.imported)
    for node in sorted(names, key=lambda node: (node.lineno, node.col_offset)):
        if node.id in WORDS and node.id not in known:
            remedy = f"write `from qmodel.lang import {node.id}`"
            raise module.file.error(node, f"`{node.id}` is not imported", remedy)


def find_class(module: Module, name: str) -> tuple[Module, ast.ClassDef] | None:
    """Return the class that a name stands for in a module, and the module that defines it."""
    if name in module.classes:
        return module, module.classes[name]
    if name in module.imported:
        other, original = module.imported[name]
        return find_class(other, original)
    return None


def find_constant(module: Module, name: str) -> tuple[Module, ast.expr] | None:
    """Return the expression that a top-level name stands for, and the module that defines it."""
    if name in module.constants:
        return module, module.constants[name]
    if name in module.imported:
        other, original = module.imported[name]
        return find_constant(other, original)
    return None


def is_bits(node: ast.ClassDef) -> bool:
    """Tell whether a class lists the bits of a flag word."""
    return any(isinstance(base, ast.Name) and base.id == "Bits" for base in node.bases)


def model_class(module: Module, name: str, seen: tuple[str, ...] = ()) -> ModelClass | None:
    """Return a class with all it inherits where it derives from Model, else None. Raises SpecError."""
    found = find_class(module, name)
    if found is None:
        return None
    home, node = found
    if name in seen:
        raise home.file.error(node, f"`{name}` inherits from itself", "break the circle")
    if is_bits(node):
        return None
    base = node.bases[0]
    assert isinstance(base, ast.Name)
    if base.id == "Model":
        members: dict[str, Owned] = {}
        bases: tuple[str, ...] = ()
    else:
        parent = model_class(home, base.id, (*seen, name))
        if parent is None:
            models = {n for n, c in home.classes.items() if not is_bits(c)} | set(home.imported) | {"Model"}
            raise home.file.error(base, f"`{base.id}` is no model", did_you_mean(base.id, models - {name}))
        members, bases = dict(parent.members), (parent.name, *parent.bases)
    own = _own_members(home, node)
    for member in own.keys() & members.keys():
        _refuse_other_role(own[member], members[member], member)
    overriding = frozenset(own.keys() & members.keys())
    return ModelClass(name, home, node, members | own, frozenset(own), overriding, bases)


def _own_members(module: Module, node: ast.ClassDef) -> dict[str, Owned]:
    own: dict[str, Owned] = {}
    for statement in node.body:
        match statement:
            case ast.FunctionDef(name=name):
                value: Member = statement
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                pass
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                pass
            case ast.Expr(value=ast.Constant()) | ast.Pass():
                continue
            case ast.AsyncFunctionDef():
                raise module.file.error(statement, "`async` has no meaning in a model", "write a plain function")
            case _:
                remedy = "keep to declarations (`name = Int(…)`) and functions"
                raise module.file.error(statement, "this statement has no meaning in the body of a model", remedy)
        if name in own:
            raise module.file.error(statement, f"`{name}` is declared twice", "give one of them another name")
        if name in RESERVED:
            remedy = "give it another name"
            message = f"`{name}` belongs to every model: {RESERVED[name]}"
            raise module.file.error(statement, message, remedy)
        own[name] = Owned(value, module, node.name)
    return own


def _refuse_other_role(new: Owned, old: Owned, name: str) -> None:
    """Refuse an override that makes something else of a name: a thread that lost its @thread would run no more."""
    was, becomes = _role(old.node), _role(new.node)
    if was == becomes:
        return
    remedy = f"write {was[was.index('@') :]} here too" if "@" in was else "give it another name"
    message = f"`{name}` is {was} in `{old.owner}`, and {becomes} here"
    raise new.module.file.error(new.node, message, remedy)


def _role(node: Member) -> str:
    if not isinstance(node, ast.FunctionDef):
        return "a declaration"
    for decorator in node.decorator_list:
        called = decorator.func if isinstance(decorator, ast.Call) else decorator
        return f"a function with @{ast.unparse(called)}"
    return "a plain function"


def model_names(module: Module) -> list[str]:
    """Return the classes of a file that derive from Model, in the order of the file."""
    return [name for name in module.classes if model_class(module, name) is not None]


__all__ = [
    "SHIPPED",
    "Loader",
    "ModelClass",
    "Module",
    "Owned",
    "SpecError",
    "find_class",
    "find_constant",
    "is_bits",
    "model_class",
    "model_names",
]
