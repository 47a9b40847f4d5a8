"""Code held in memory: a repository of small Python files, read with `ast`, behind the agent's own ports."""

from __future__ import annotations

import ast
import asyncio
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from agent.ports import CatchUp
from indexer.errors import EmbedderError, NotIndexed, UnknownPath, UnknownRevision
from indexer.generations.generation_cache import count_folders
from indexer.generations.grep import READING_ORDER, grep_texts
from indexer.generations.repository_facts import describe_repository
from indexer.git.code_owners import find_owners
from indexer.parsing.file_parser import parse_file
from indexer.parsing.packages import read_packages
from indexer.text.globs import compile_globs
from indexer.types import (
    CallSite,
    CodeOwners,
    Commit,
    CommitLog,
    Comparison,
    Contributor,
    Contributors,
    Coverage,
    Definition,
    DiffQuery,
    FileEntry,
    FileHistory,
    FileImport,
    Filters,
    Hit,
    LeftOut,
    LineOrigin,
    Location,
    LogQuery,
    Matches,
    Passage,
    RegistrationKind,
    RegistrationSite,
    Releases,
    RepositoryOverview,
    Revision,
    SearchAim,
    SearchMode,
    SourceType,
    Subclass,
    Symbol,
    Tag,
)

COMMIT = Commit(sha="c0ffee" * 6 + "c0ff", branch="main", committed_at=1_700_000_000, subject="Add the shop")
FIRST = Revision(sha=COMMIT.sha, author="Ada Example", committed_at=COMMIT.committed_at, subject=COMMIT.subject)
_WORD = re.compile(r"[a-z0-9]+")
_CHUNK = 30


@dataclass(frozen=True, kw_only=True, slots=True)
class _Call:
    path: str
    line: int
    name: str
    scope: str
    receiver: str = ""


class FakeCode:
    """A `CodeSearch` over a mapping of paths to texts.

    `failing` names the search modes that raise; `gate`, when given, holds every search until it is set. `commits` are
    its past, newest first.
    """

    repository = "shop"
    commit = COMMIT

    def __init__(
        self,
        files: Mapping[str, str],
        *,
        failing: Sequence[SearchMode] = (),
        gate: asyncio.Event | None = None,
        commits: Sequence[Revision] = (FIRST,),
        omissions: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self.commits = commits
        self.omissions = omissions
        self.catch_up: CatchUp | None = None
        self._files = dict(files)
        self._failing = frozenset(failing)
        self._gate = gate
        self.searching = asyncio.Event()
        self.searches: list[tuple[str, SearchMode, Filters]] = []
        self._definitions = [found for path, text in self._files.items() for found in _definitions(path, text)]
        self._calls = [call for path, text in self._files.items() for call in _calls(path, text)]

    async def search(
        self,
        query: str,
        *,
        limit: int = 10,
        filters: Filters | None = None,
        mode: SearchMode = "hybrid",
        aim: SearchAim = "places",
    ) -> Sequence[Hit]:
        """Rank windows of lines by the number of the query's words in them."""
        chosen = filters if filters is not None else Filters()
        self.searches.append((query, mode, chosen))
        self.searching.set()
        if self._gate is not None:
            await self._gate.wait()
        if mode in self._failing:
            raise EmbedderError(f"The {mode} search is out of order.")
        wanted = {word for word in _words(query) if len(word) > 2}
        hits = [hit for path in self._files if _passes(path, chosen) for hit in self._windows(path, wanted)]
        return sorted(hits, key=lambda hit: -hit.score)[:limit]

    def _windows(self, path: str, wanted: set[str]) -> Iterator[Hit]:
        lines = self._files[path].splitlines()
        for first in range(0, len(lines), _CHUNK):
            text = "\n".join(lines[first : first + _CHUNK])
            said = {word for word in _words(f"{path} {text}") if any(word.startswith(part[:5]) for part in wanted)}
            if said:
                yield self._hit(path, first + 1, text, len(said) / (len(wanted) or 1))

    def _hit(self, path: str, start: int, text: str, score: float) -> Hit:
        location = Location(path=path, start_line=start, end_line=start + text.count("\n"))
        begun = [d.symbol for d in self._definitions if d.path == path and _holds(location, d.symbol.start_line)]
        around = self._around(Location(path=path, start_line=start, end_line=start))
        return Hit(
            location=location,
            text=text,
            score=score,
            language="python",
            source_type=_source_type(path),
            scope=around[-1].symbol.qualified_name if around else "",
            symbols=tuple(begun),
        )

    async def read(self, path: str, start_line: int = 1, end_line: int | None = None) -> Passage:
        """Read lines, clipped to the end of the file."""
        if path not in self._files:
            raise UnknownPath(f"{path} is not in the commit.")
        lines = self._files[path].splitlines() or [""]
        end = min(end_line if end_line is not None else len(lines), len(lines))
        start = max(1, min(start_line, end))
        location = Location(path=path, start_line=start, end_line=end)
        return Passage(location=location, text="\n".join(lines[start - 1 : end]), language=_language(path))

    async def definitions(self, name: str) -> Sequence[Definition]:
        """Find definitions by plain or qualified name, exact case first."""
        names = [(found, {found.symbol.name, found.symbol.qualified_name}) for found in self._definitions]
        exact = [found for found, known in names if name in known]
        return exact or [found for found, known in names if name.lower() in {one.lower() for one in known}]

    async def find_enclosing(self, location: Location) -> Sequence[Definition]:
        """Return the definitions around a location, outermost first."""
        return self._around(location)

    def _around(self, location: Location) -> list[Definition]:
        return [
            found
            for found in self._definitions
            if found.path == location.path
            and found.symbol.start_line <= location.start_line
            and location.end_line <= found.symbol.end_line
        ]

    async def complete_name(self, beginning: str, *, limit: int = 20) -> Sequence[str]:
        plain = (found.symbol for found in self._definitions)
        return [one.qualified_name for one in plain if one.name.lower().startswith(beginning.lower())][:limit]

    async def list_central(self, *, limit: int = 20) -> Sequence[Definition]:
        """Return the definitions outside tests that are called most."""
        calls = Counter(call.name for call in self._calls)
        code = [found for found in self._definitions if _source_type(found.path) == "code"]
        called = [found for found in code if calls[found.symbol.name]]
        return sorted(called, key=lambda found: -calls[found.symbol.name])[:limit]

    async def find_siblings(self, definition: Definition) -> Sequence[Definition]:
        """Return the definitions with the same parent in the same file."""
        parent = definition.symbol.parent
        return [one for one in self._definitions if one.path == definition.path and one.symbol.parent == parent]

    async def callers(self, name: str, *, unresolved: bool = False) -> Sequence[CallSite]:
        """Return the calls of every definition of a name."""
        found = await self.definitions(name)
        sites = [(one, site) for one in found for site in self._sites(one.symbol.name)]
        return [replace(site, callee=one) for one, site in sites if site.ambiguous or site.callee == one]

    async def callees(self, name: str) -> Sequence[CallSite]:
        """Return the calls within every definition of a name."""
        scopes = {(found.path, found.symbol.qualified_name) for found in await self.definitions(name)}
        return [self._site(call) for call in self._calls if (call.path, call.scope) in scopes]

    def _sites(self, name: str) -> list[CallSite]:
        return [self._site(call) for call in self._calls if call.name == name]

    def _site(self, call: _Call) -> CallSite:
        callers = [d for d in self._definitions if d.path == call.path and d.symbol.qualified_name == call.scope]
        callees = [d for d in self._definitions if d.symbol.name == call.name]
        callees = [d for d in callees if d.symbol.parent and d.symbol.parent == call.receiver] or callees
        return CallSite(
            path=call.path,
            line=call.line,
            name=call.name,
            caller=callers[0] if callers else None,
            callee=callees[0] if callees else None,
            ambiguous=len(callees) > 1,
        )

    async def list_file_imports(self) -> Sequence[FileImport]:
        """Return what the indexer's own parser finds, where a module has the path that its name says."""
        found = []
        for path, text in sorted(self._files.items()):
            for one in parse_file(path, text).imports:
                places = (f"{name.replace('.', '/')}.py" for name in (f"{one.module}.{one.name}", one.module))
                if target := next((place for place in places if place in self._files), None):
                    found.append(FileImport(path=path, line=one.line, targets=(target,)))
        return list(dict.fromkeys(found))

    async def subclasses(self, name: str) -> Sequence[Subclass]:
        """Return the classes whose signature names the class as a base."""
        base = re.compile(rf"\((?:.*\W)?{re.escape(name)}\W")
        found = [one for one in self._definitions if one.symbol.kind == "class" and base.search(one.symbol.signature)]
        return [Subclass(definition=one, base=name, is_direct=True) for one in found]

    async def registrations(self, kinds: Collection[RegistrationKind]) -> Sequence[RegistrationSite]:
        """Return what the indexer's own parser finds."""
        return [
            RegistrationSite(path=path, registration=found)
            for path, text in sorted(self._files.items())
            for found in (*parse_file(path, text).registrations, *read_packages(path, text))
            if found.kind in kinds
        ]

    async def files(self) -> Sequence[FileEntry]:
        """Return every file, by path."""
        return [
            FileEntry(path=path, language=_language(path), source_type=_source_type(path), lines=len(text.splitlines()))
            for path, text in sorted(self._files.items())
        ]

    async def overview(self) -> RepositoryOverview:
        """Describe the files as the indexer does."""
        return describe_repository(self.repository, await self.files(), await self.folders(), self._files.__getitem__)

    async def folders(self) -> Mapping[str, int]:
        """Count the files of every folder."""
        return count_folders(self._files)

    async def grep(self, *patterns: str, path: str = "", limit: int = 50) -> Matches:
        """Find lines with the indexer's own search."""
        below = path.strip("/")
        names = [name for name in sorted(self._files) if not below or f"{name}/".startswith(f"{below}/")]
        if path and not names:
            raise UnknownPath(f"There is no indexed file or folder {path}.")
        names.sort(key=lambda name: READING_ORDER.index(_source_type(name)))
        texts = [(name, self._files[name]) for name in names]
        return await asyncio.to_thread(grep_texts, texts, *patterns, limit=limit, total=len(texts))

    @property
    def past(self) -> FakePast:
        """Return the commits that were given."""
        return FakePast(self)

    async def list_left_out(self) -> Sequence[LeftOut]:
        """Return the paths that were given."""
        return [LeftOut(path=path, reason=reason) for path, reason in self.omissions.items()]

    def follow(self, catch_up: CatchUp | None) -> None:
        """Wait for newer commits before each "no"."""
        self.catch_up = catch_up

    async def coverage(self, *words: str) -> Coverage:
        """Count the files."""
        is_behind = await self.catch_up() if self.catch_up is not None else False
        return Coverage(files=len(self._files), skipped=Counter(self.omissions.values()), is_behind=is_behind)

    async def history(self, path: str, *, line: int = 0, limit: int = 20) -> FileHistory:
        """Return one made-up commit for every file."""
        await self.read(path)
        return FileHistory(
            path=path, revisions=(FIRST,), complete=True, line=line, last_changed=FIRST if line else None
        )

    def permalink(self, location: Location, commit: str = "") -> str | None:
        """Return an address on a made-up host."""
        lines = f"#L{location.start_line}-L{location.end_line}"
        return (
            f"https://git.example.com/shop/blob/{commit or location.commit or self.commit.sha}/{location.path}{lines}"
        )

    def name_cells(self, location: Location) -> str:
        """Name no cells: there are no notebooks."""
        return ""


class FakePast:
    """The past of code held in memory: a commit without paths touched every file, and none has a tag."""

    def __init__(self, code: FakeCode) -> None:
        self._code = code

    async def log(self, query: LogQuery) -> CommitLog:
        """List the commits that touched the path, or whose message has the text."""
        if name := query.after or query.until or query.release:
            raise UnknownRevision(f"There is no tag, branch or commit {name!r}. No tags are known here.")
        found = [
            one
            for one in self._select(query.path)
            if query.since <= one.committed_at <= (query.before or one.committed_at)
            and query.text in f"{one.subject} {one.body}"
            and query.author.lower() in one.author.lower()
            and all(word.lower() in f"{one.subject} {one.body}".lower() for word in query.words)
        ]
        return CommitLog(revisions=tuple(found[: query.limit]), total=len(found), complete=len(found) <= query.limit)

    async def compare(self, query: DiffQuery) -> Comparison:
        """Find no difference between the only commit that has a name, and itself."""
        if name := next((one for one in (query.after, query.until) if one not in {"", "HEAD"}), ""):
            raise UnknownRevision(f"There is no tag, branch or commit {name!r}. No tags are known here.")
        held = Tag(name="HEAD", sha=self._code.commit.sha, created_at=0)
        return Comparison(older=held, newer=held, base=held.sha, ahead=0, behind=0)

    def _select(self, path: str) -> list[Revision]:
        return [one for one in self._code.commits if not one.paths or any(f"{p}/".startswith(path) for p in one.paths)]

    async def read(self, location: Location) -> Passage:
        """Know of no other commit."""
        raise UnknownRevision(f"There is no commit {location.commit[:12]} here.")

    async def people(self, path: str = "") -> Contributors:
        """Count the authors of the commits that touched the path."""
        own: dict[str, list[Revision]] = {}
        for one in self._select(path):
            own.setdefault(one.author, []).append(one)
        people = [
            Contributor(
                name=name,
                commits=len(commits),
                first_at=commits[-1].committed_at,
                last_at=commits[0].committed_at,
                newest=commits[0].sha,
            )
            for name, commits in own.items()
        ]
        return Contributors(
            people=tuple(sorted(people, key=lambda one: (-one.commits, one.name))),
            commits=sum(one.commits for one in people),
            lines=0,
            complete=True,
        )

    async def origins(self, location: Location) -> Sequence[LineOrigin]:
        """Say that the oldest commit wrote everything."""
        written = self._select(location.path)[-1:]
        lines = location.end_line - location.start_line + 1
        return [LineOrigin(revision=one, lines=lines, first_line=location.start_line) for one in written]

    async def releases(self, shas: Sequence[str]) -> Releases:
        """Say that nothing was ever released."""
        return Releases(since=None)

    async def find_former_paths(self, name: str) -> Sequence[str]:
        """Return none: nothing was ever removed."""
        return ()

    async def owners(self, path: str) -> CodeOwners | None:
        """Return what the CODEOWNERS file of the repository says."""
        try:
            text = (await self._code.read("CODEOWNERS")).text
        except UnknownPath:
            return None
        return find_owners(text, path, file="CODEOWNERS")


class FakeLibrary:
    """A `CodeLibrary` that holds one repository, or none yet."""

    def __init__(self, code: FakeCode | None) -> None:
        self.code = code

    async def pin(self, repository: str | None = None) -> FakeCode:
        """Return the repository, whatever its name."""
        if self.code is None or repository == "elsewhere":
            raise NotIndexed("The repository is not indexed yet. Run citebot index.")
        return self.code


def _words(text: str) -> list[str]:
    return _WORD.findall(re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", text).lower())


def _holds(location: Location, line: int) -> bool:
    return location.start_line <= line <= location.end_line


def _passes(path: str, filters: Filters) -> bool:
    return (
        (not filters.source_types or _source_type(path) in filters.source_types)
        and (not filters.folders or any(path.startswith(f"{folder}/") for folder in filters.folders))
        and (not filters.patterns or compile_globs(filters.patterns).match_file(path))
    )


def _source_type(path: str) -> SourceType:
    if path.endswith(".md"):
        return "doc"
    return "test" if path.startswith("tests/") else "code"


def _language(path: str) -> str:
    return "python" if path.endswith(".py") else "markdown"


def _definitions(path: str, text: str) -> Iterator[Definition]:
    if path.endswith(".py"):
        for node, parents in _walk(ast.parse(text), ()):
            yield Definition(path=path, symbol=_symbol(node, parents, text.splitlines()))


_Defining = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def _walk(tree: ast.AST, parents: tuple[_Defining, ...]) -> Iterator[tuple[_Defining, tuple[_Defining, ...]]]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, _Defining):
            yield node, parents
            yield from _walk(node, (*parents, node))
        else:
            yield from _walk(node, parents)


def _symbol(node: _Defining, parents: tuple[_Defining, ...], lines: list[str]) -> Symbol:
    is_class = isinstance(node, ast.ClassDef)
    in_class = bool(parents) and isinstance(parents[-1], ast.ClassDef)
    return Symbol(
        name=node.name,
        qualified_name=".".join([*(parent.name for parent in parents), node.name]),
        kind="class" if is_class else "method" if in_class else "function",
        signature="\n".join(lines[node.lineno - 1 : node.body[0].lineno - 1]).strip() or lines[node.lineno - 1],
        doc=(ast.get_docstring(node) or "").split("\n")[0],
        start_line=node.lineno,
        end_line=node.end_lineno or node.lineno,
    )


def _calls(path: str, text: str) -> Iterator[_Call]:
    if not path.endswith(".py"):
        return
    tree = ast.parse(text)
    inner = [(node, ".".join([*(p.name for p in parents), node.name])) for node, parents in _walk(tree, ())]
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            scopes = [scope for d, scope in inner if d.lineno <= node.lineno <= (d.end_lineno or d.lineno)]
            receiver = ast.unparse(node.func.value) if isinstance(node.func, ast.Attribute) else ""
            scope = scopes[-1] if scopes else ""
            yield _Call(path=path, line=node.lineno, name=name, scope=scope, receiver=receiver)
