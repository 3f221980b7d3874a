"""Reading specification files: modules, classes and where they inherit from. Nothing here is ever executed."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from pathlib import Path

from qmodel.frontend.diagnostics import File, SpecError, did_you_mean

SHIPPED = Path(__file__).resolve().parent.parent / "specs"
"""The folder of the specifications that come with qmodel."""

FunctionNode = ast.FunctionDef
Member = ast.FunctionDef | ast.expr


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
    """A class that derives from Model, with all it inherits. `bases` are the names of its ancestors, nearest first."""

    name: str
    module: Module
    node: ast.ClassDef
    members: dict[str, Owned]
    own: frozenset[str]
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
            text = resolved.read_text(encoding="utf-8")
        except UnicodeDecodeError as error:
            raise File(name, ()).error_at(1, 0, 0, f"not a text file: {error.reason}", "save it as UTF-8") from None
        file = File(name, tuple(text.splitlines()))
        try:
            tree = ast.parse(text)
        except SyntaxError as error:
            line, column = error.lineno or 1, max(0, (error.offset or 1) - 1)
            end = max(column + 1, (error.end_offset or 0) - 1) if error.end_lineno == error.lineno else column + 1
            raise file.error_at(line, column, end, error.msg, "a specification is written in Python's syntax") from None
        except ValueError as error:
            raise file.error_at(1, 0, 0, str(error), "save it as plain UTF-8 text") from None
        module = Module(file, resolved, tree)
        self._modules[resolved] = module
        for node in tree.body:
            self._top_level(module, node)
        return module

    def _top_level(self, module: Module, node: ast.stmt) -> None:
        match node:
            case ast.ClassDef():
                if node.name in module.classes:
                    raise module.file.error(node, f"a second class `{node.name}`", "give it a name of its own")
                module.classes[node.name] = node
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                module.constants[name] = value
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                module.constants[name] = value
            case ast.ImportFrom(module=str() as source):
                self._import(module, node, source)
            case ast.Import() | ast.ImportFrom():
                remedy = "write `from qmodel.lang import …`, or `from qmodel.specs.NAME import CLASS`"
                raise module.file.error(node, "a specification imports names, not modules", remedy)
            case ast.Expr(value=ast.Constant()) | ast.If():
                pass  # a docstring; `if TYPE_CHECKING:` is for editors
            case _:
                remedy = "keep to imports, constants and classes"
                raise module.file.error(node, "this statement has no meaning at the top of a specification", remedy)

    def _import(self, module: Module, node: ast.ImportFrom, source: str) -> None:
        if source.split(".")[0] in {"__future__", "typing"}:
            return
        if source.startswith("qmodel.lang"):
            for alias in node.names:
                if alias.name == "*" or alias.asname:
                    remedy = "name each word that you use, without `as`: that is how they are known when read"
                    raise module.file.error(alias, "import the words of the language by their names", remedy)
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
            if alias.name not in other.classes and alias.name not in other.constants:
                known = [*other.classes, *other.constants]
                raise module.file.error(
                    alias, f"`{source}` has no `{alias.name}`", did_you_mean(alias.name, known)
                )
            module.imported[alias.asname or alias.name] = (other, alias.name)


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
    if is_bits(node) or not node.bases:
        return None
    if len(node.bases) > 1:
        raise home.file.error(node.bases[1], "a model has one base", "derive from one model, or from Model")
    base = node.bases[0]
    if not isinstance(base, ast.Name):
        raise home.file.error(base, "a base is a plain name", "import the model by its name and derive from it")
    if base.id == "Model":
        members: dict[str, Owned] = {}
        bases: tuple[str, ...] = ()
    else:
        parent = model_class(home, base.id, (*seen, name))
        if parent is None:
            known = [*home.classes, *home.imported, "Model"]
            raise home.file.error(base, f"`{base.id}` is no model", did_you_mean(base.id, set(known) - {name}))
        members, bases = dict(parent.members), (parent.name, *parent.bases)
    own = _own_members(home, node)
    return ModelClass(name, home, node, members | own, frozenset(own), bases)


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
        own[name] = Owned(value, module, node.name)
    return own


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
