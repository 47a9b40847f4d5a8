"""Size of the project: `python -m tests.size` prints it as a table.

A statement is every node of the syntax tree that is one, those in functions and classes too, docstrings included.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_ROOT = Path(__file__).parent.parent
_PACKAGES = ("bot", "agent", "indexer")
_COMMENTS = {"toml": "#", "sql": "--", "html": "<!--", "js": "//"}
_LONG_LINE = 100
_SHOWN = 5
_BRANCHES = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.ExceptHandler, ast.match_case)

_Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class _Source:
    """A file with its syntax tree."""

    path: Path
    text: str
    nodes: Sequence[ast.AST]

    @property
    def statements(self) -> int:
        return _count(self.nodes, ast.stmt)

    @property
    def lines(self) -> Sequence[str]:
        return self.text.splitlines()

    @property
    def words(self) -> int:
        """Lines of comments and docstrings."""
        with self.path.open("rb") as file:
            comments = sum(token.type == tokenize.COMMENT for token in tokenize.tokenize(file.readline))
        owners = [node for node in self.nodes if isinstance(node, ast.Module | ast.ClassDef | _Function)]
        return comments + sum(
            (ast.get_docstring(node) or "\n").count("\n") + 1 for node in owners if ast.get_docstring(node)
        )


def _read(folders: Iterable[str]) -> list[_Source]:
    paths = (path for folder in folders for path in sorted((_ROOT / folder).rglob("*.py")))
    texts = ((path, path.read_text(encoding="utf-8")) for path in paths)
    return [_Source(path, text, [*ast.walk(ast.parse(text))]) for path, text in texts]


def _count(nodes: Iterable[ast.AST], *kinds: type[ast.AST]) -> int:
    return sum(isinstance(node, kinds) for node in nodes)


def _list_functions(sources: Iterable[_Source]) -> Iterator[tuple[str, _Function]]:
    for source in sources:
        for node in source.nodes:
            if isinstance(node, _Function):
                yield f"{source.path.relative_to(_ROOT)}:{node.lineno} {node.name}", node


def _measure_complexity(function: _Function) -> int:
    return 1 + _count(ast.walk(function), *_BRANCHES)


def _measure_length(function: _Function) -> int:
    return (function.end_lineno or 0) - function.lineno + 1


def _list_classes(sources: Iterable[_Source]) -> list[ast.ClassDef]:
    return [node for source in sources for node in source.nodes if isinstance(node, ast.ClassDef)]


def _name_bases(node: ast.ClassDef) -> set[str]:
    return {ast.unparse(base).partition("[")[0].rpartition(".")[2] for base in node.bases}


def _name_methods(node: ast.ClassDef) -> set[str]:
    """Name everything that a class declares: its methods and fields."""
    fields = {
        each.target.id for each in node.body if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)
    }
    assigned = {
        each.attr for each in ast.walk(node) if isinstance(each, ast.Attribute) and isinstance(each.ctx, ast.Store)
    }
    return fields | assigned | {each.name for each in node.body if isinstance(each, _Function)}


class _Implementations:
    """Classes of the project by their names, to find out which of them has everything that a port declares."""

    def __init__(self, sources: Iterable[_Source]) -> None:
        self._classes = {node.name: node for node in _list_classes(sources)}
        self._bases = {name: _name_bases(node) for name, node in self._classes.items()}
        self._own = {name: _name_methods(node) for name, node in self._classes.items()}

    def count(self, port: ast.ClassDef) -> int:
        wanted = _name_methods(port)
        return sum(
            not {"Protocol", "ABC"} & bases and (wanted <= self._list_all(name) or port.name in bases)
            for name, bases in self._bases.items()
        )

    def _list_all(self, name: str) -> set[str]:
        inherited = (self._list_all(base) for base in self._bases[name] & self._classes.keys() - {name})
        return self._own[name].union(*inherited)


def _describe_ports(sources: Sequence[_Source], tests: Sequence[_Source]) -> Iterator[tuple[str, str]]:
    ports = [node for node in _list_classes(sources) if {"Protocol", "ABC"} & _name_bases(node)]
    real, fakes = _Implementations(sources), _Implementations(tests)
    alone = [port.name for port in ports if real.count(port) <= 1 and not fakes.count(port)]
    aliases = [
        node
        for source in sources
        for node in source.nodes
        if isinstance(node, ast.Assign) and ast.unparse(node.value).startswith("Callable[")
    ]
    yield "protocols and ABCs", f"{len(ports):,}"
    yield "... with at most one implementation and no fake", f"{len(alone):,}  {' '.join(sorted(alone))}"
    yield "aliases of callables", f"{len(aliases):,}"


def _describe_functions(sources: Sequence[_Source], statements: int) -> Iterator[tuple[str, str]]:
    functions = dict(_list_functions(sources))
    lambdas = sum(_count(source.nodes, ast.Lambda) for source in sources)
    yield "functions and lambdas per 1,000 statements", f"{1000 * (len(functions) + lambdas) / statements:.1f}"
    for what, measure in (("longest functions", _measure_length), ("most complex functions", _measure_complexity)):
        figures: Mapping[str, int] = {name: measure(node) for name, node in functions.items()}
        for name in sorted(figures, key=lambda name: -figures[name])[:_SHOWN]:
            yield what, f"{figures[name]:>3}  {name}"


def _describe_sources() -> Iterator[tuple[str, str]]:
    sources, tests = _read(_PACKAGES), _read(["tests"])
    statements = sum(source.statements for source in sources)
    lines = sum(len(source.lines) for source in sources)
    words = sum(source.words for source in sources)
    yield "statements of bot, agent and indexer", f"{statements:,}"
    for package in _PACKAGES:
        own = [source for source in sources if source.path.is_relative_to(_ROOT / package)]
        yield f"... {package}", f"{sum(source.statements for source in own):,}"
    yield "lines of toml, sql, html and js there", f"{_count_other_lines():,}"
    yield "lines", f"{lines:,}, {words / lines:.1%} of comments and docstrings"
    yield (
        f"lines over {_LONG_LINE} characters",
        f"{sum(len(line) > _LONG_LINE for each in sources for line in each.lines):,}",
    )
    yield "modules", f"{sum(source.path.name != '__init__.py' for source in sources):,}"
    yield from _describe_ports(sources, tests)
    yield from _describe_functions(sources, statements)
    yield "statements of the tests", f"{sum(source.statements for source in tests):,}"
    yield "lines of the tests", f"{sum(len(source.lines) for source in tests):,}"


def _count_other_lines() -> int:
    found = (
        (path, sign)
        for ending, sign in _COMMENTS.items()
        for name in _PACKAGES
        for path in (_ROOT / name).rglob(f"*.{ending}")
    )
    return sum(
        bool(line.strip()) and not line.strip().startswith(sign)
        for path, sign in found
        if ".min." not in path.name
        for line in path.read_text(encoding="utf-8").splitlines()
    )


def _describe_cases() -> Iterator[tuple[str, str]]:
    for what, options in (("cases of make test-all", ["--all"]), ("cases of make test", [])):
        command = [sys.executable, "-m", "pytest", "--collect-only", "-qq", *options]
        said = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, check=True).stdout
        counts = re.findall(r"^\S+\.py: (\d+)$", said, re.MULTILINE)
        yield what, f"{sum(map(int, counts)):,}"


def main() -> None:
    """Print the table."""
    for describe in (_describe_sources, _describe_cases):
        for what, figure in describe():
            print(f"{what:<48} {figure}", flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
