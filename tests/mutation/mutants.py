"""Small faults in a source file, found in its syntax tree: each replaces one expression or statement by another.

Left out: annotations, f-strings, texts with spaces, and what only a type checker reads. The kinds are in `_Finder`.
"""

from __future__ import annotations

import ast
import hashlib
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import attrs

_COMPARED: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Lt: (ast.LtE, ast.Gt),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.Lt),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
_COMPUTED: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.Div: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.BitXor: ast.BitAnd,
}
_NAME = re.compile(r"[A-Za-z_][\w.%-]*")
"""Texts that are names: of fields on the wire, of keys, of attributes."""


@attrs.frozen
class Mutant:
    """A fault: the bytes from `start` to `end` of the file at `path` become `replacement`. `lines` are those it replaces."""

    path: str
    scope: str
    kind: str
    start: int
    end: int
    lines: tuple[int, ...]
    original: str
    replacement: str
    number: int = 0
    """Tells alike faults of one scope from each other, in order."""

    @property
    def name(self) -> str:
        """Stays the same while other functions of the file change."""
        return f"{self.path} {self.scope} {self.kind} {self.number}: {self.original} -> {self.replacement}"

    def apply(self, source: bytes) -> bytes:
        return source[: self.start] + self.replacement.encode() + source[self.end :]


def mutants_of(path: str, source: bytes) -> list[Mutant]:
    """All mutants of a file that are still Python, in the order of the file."""
    finder = _Finder(path, source)
    finder.visit(ast.parse(source))
    seen: Counter[str] = Counter()
    numbered = []
    for one in sorted(finder.found, key=lambda one: (one.start, one.end, one.kind, one.replacement)):
        numbered.append(attrs.evolve(one, number=seen[one.name]))
        seen[one.name] += 1
    return [one for one in numbered if _compiles(one.apply(source))]


def mutants_below(root: Path, packages: tuple[str, ...]) -> dict[str, list[Mutant]]:
    """The mutants of each package."""
    return {
        package: [
            mutant
            for file in sorted((root / package).rglob("*.py"))
            for mutant in mutants_of(str(file.relative_to(root)), file.read_bytes())
        ]
        for package in packages
    }


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


def _compiles(source: bytes) -> bool:
    try:
        compile(source, "mutant", "exec")
    except (SyntaxError, ValueError):
        return False
    return True


class _Finder(ast.NodeVisitor):
    """Collects the mutants of one file."""

    def __init__(self, path: str, source: bytes) -> None:
        self.found: list[Mutant] = []
        self._path, self._source = path, source
        self._scope: list[str] = []
        self._tuple_line: int | None = None
        self._line_starts = [0]
        for line in source.splitlines(keepends=True):
            self._line_starts.append(self._line_starts[-1] + len(line))

    def _add(self, node: ast.expr | ast.stmt, kind: str, replacement: str) -> None:
        assert node.end_lineno is not None and node.end_col_offset is not None
        start = self._line_starts[node.lineno - 1] + node.col_offset
        end = self._line_starts[node.end_lineno - 1] + node.end_col_offset
        original = " ".join(self._source[start:end].decode().split())
        lines = (*range(node.lineno, node.end_lineno + 1), *filter(None, [self._tuple_line]))
        scope = ".".join(self._scope) or "module"
        self.found.append(Mutant(self._path, scope, kind, start, end, lines, original, replacement))

    def _replace(self, node: ast.expr, kind: str, replacement: ast.expr) -> None:
        self._add(node, kind, f"({ast.unparse(replacement)})")

    def _in_scope(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> None:
        self._scope.append(node.name)
        self.generic_visit(node)
        self._scope.pop()

    visit_ClassDef = _in_scope

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self._scope.append(node.name)
        for part in (*node.decorator_list, *node.args.defaults, *filter(None, node.args.kw_defaults), *node.body):
            self.visit(part)
        self._scope.pop()

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Its parts have no places in Python 3.11."""

    def visit_Assign(self, node: ast.Assign) -> None:
        if any(isinstance(target, ast.Name) and target.id in ("__slots__", "__all__") for target in node.targets):
            return
        if all(isinstance(target, ast.Attribute | ast.Subscript) for target in node.targets):
            self._add(node, "no assignment", "pass")
        if self._scope or not _is_type(node.value):
            self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self._add(node, "no assignment", "pass")
        self.visit(node.value)

    def visit_Expr(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Constant):
            return  # a docstring
        if isinstance(node.value, ast.Call | ast.Await):
            self._add(node, "no call", "pass")
        self.generic_visit(node)

    def visit_Raise(self, node: ast.Raise) -> None:
        self._add(node, "no raise", "pass")

    def visit_Return(self, node: ast.Return) -> None:
        if node.value is not None and not (isinstance(node.value, ast.Constant) and node.value.value is None):
            self._add(node, "return None", "return None")
        self.generic_visit(node)

    def visit_Break(self, node: ast.Break) -> None:
        self._add(node, "break", "continue")

    def visit_Continue(self, node: ast.Continue) -> None:
        self._add(node, "continue", "break")

    def visit_For(self, node: ast.For) -> None:
        self._add(node.iter, "no turn", "()")
        self.generic_visit(node)

    def visit_If(self, node: ast.If) -> None:
        if isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            return
        self._negate(node.test)
        self.generic_visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        self._negate(node.test)
        self.generic_visit(node)

    def visit_comprehension(self, node: ast.comprehension) -> None:
        for test in node.ifs:
            self._add(test, "no filter", "True")
        self.generic_visit(node)

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        if node.type is not None:
            self._add(node.type, "nothing caught", "()")
        for part in node.body:
            self.visit(part)

    def _negate(self, test: ast.expr) -> None:
        if not isinstance(test, ast.Compare) and not (isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)):
            self._replace(test, "negated", ast.UnaryOp(ast.Not(), test))

    def visit_Compare(self, node: ast.Compare) -> None:
        for index, operator in enumerate(node.ops):
            for other in _COMPARED[type(operator)]:
                ops = [*node.ops[:index], other(), *node.ops[index + 1 :]]
                self._replace(node, "comparison", ast.Compare(node.left, ops, node.comparators))
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        other = _COMPUTED.get(type(node.op))
        is_format = isinstance(node.left, ast.Constant | ast.JoinedStr) and not _is_number(node.left)
        if other is not None and not is_format:
            self._replace(node, "operator", ast.BinOp(node.left, other(), node.right))
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        self._replace(node, "and, or", ast.BoolOp(other, node.values))
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.Not | ast.USub):
            self._replace(node, "unary", node.operand)
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        if isinstance(node.func, ast.Name) and node.func.id in ("cast", "TypeVar", "NewType"):
            return
        self.generic_visit(node)

    def visit_Tuple(self, node: ast.Tuple) -> None:
        """Constants of a tuple are one constant of Python's, which runs on the tuple's first line."""
        outer = self._tuple_line
        if outer is None and all(isinstance(one, ast.Constant) for one in node.elts):
            self._tuple_line = node.lineno
        self.generic_visit(node)
        self._tuple_line = outer

    def visit_Constant(self, node: ast.Constant) -> None:
        for value in _other_constants(node.value):
            self._add(node, "constant", repr(value))


def _is_number(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, int | float)


def _is_type(node: ast.expr) -> bool:
    """Return True if a module's assignment is an alias of a type: `A | B`, `Callable[[A], B]`."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return _is_type(node.left) and _is_type(node.right)
    if isinstance(node, ast.Constant):
        return node.value is None
    if isinstance(node, ast.Subscript):
        return _is_type(node.value)
    name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
    return name[:1].isupper() and not name.isupper()


def _other_constants(value: object) -> Iterator[object]:
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, int):
        yield value + 1
        if value > 1:
            yield value - 1
    elif isinstance(value, str) and _NAME.fullmatch(value):
        yield f"{value}X"
