"""The agent's ports: the code at one commit, models and tools; and the values that it answers with."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar

from agent.limits import APPROVAL_CALLS, Budget
from agent.text.storable import MaskedValues, make_storable

if TYPE_CHECKING:
    from pydantic import BaseModel

    from agent import chat
    from agent.events import EventKind
    from agent.state import EvidenceRef
    from indexer.types import (
        CallSite,
        CodeOwners,
        Commit,
        CommitLog,
        Comparison,
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
        SearchAim,
        SearchMode,
        Subclass,
    )


Form = TypeVar("Form", bound="BaseModel")
Context_co = TypeVar("Context_co", covariant=True)
# Waits a moment for newer commits; whether they are still being indexed. Raises `CodeMoved` if they are there.
CatchUp = Callable[[], Awaitable[bool]]


class CodePast(Protocol):
    """The history of the code up to the pinned commit: commits, releases, people, owners."""

    async def log(self, query: LogQuery) -> CommitLog:
        """List commits; `UnknownRevision` if the query names an unknown tag, branch or commit."""

    async def compare(self, query: DiffQuery) -> Comparison:
        """Compare two commits; `UnknownRevision` as above."""

    async def read(self, location: Location) -> Passage:
        """Read lines of a file at the location's commit, clipped to its end; `UnknownRevision`, `UnknownPath`."""

    async def people(self, path: str = "") -> Contributors:
        """Count the authors of changes to a file, to a folder's contents, or to everything."""

    async def origins(self, location: Location) -> Sequence[LineOrigin]:
        """Find the commits that last wrote some lines, by number of lines."""

    async def releases(self, shas: Sequence[str]) -> Releases:
        """Find the first release of each commit, and the commits that each environment runs."""

    async def owners(self, path: str) -> CodeOwners | None:
        """Find the owners of a path in the commit's CODEOWNERS file."""

    async def find_former_paths(self, name: str) -> Sequence[str]:
        """Find the paths of removed files with a name, the last removed first."""


class SourceFiles(Protocol):
    """The indexed files of one commit."""

    async def files(self) -> Sequence[FileEntry]:
        """Every indexed file, by path."""

    async def overview(self) -> RepositoryOverview:
        """Return the overview of the repository: size, languages, folders, introduction, starting files."""

    async def folders(self) -> Mapping[str, int]:
        """Count the indexed files in each folder and below it."""

    async def read(self, path: str, start_line: int = 1, end_line: int | None = None) -> Passage:
        """Read lines of an indexed file, clipped to its end; `UnknownPath` if there is no such file."""

    async def list_left_out(self) -> Sequence[LeftOut]:
        """Return every unindexed path of the commit, with the reason."""

    async def coverage(self, *words: str) -> Coverage:
        """Return how much was read, and the unindexed files that contain one of the words.

        Raises `CodeMoved` if a newer commit of the followed code has been indexed meanwhile.
        """


class SymbolIndex(Protocol):
    """The definitions and calls in the code of one commit."""

    async def definitions(self, name: str) -> Sequence[Definition]:
        """Find definitions by plain (`send`) or qualified (`Session.send`) name; exact case first."""

    async def find_enclosing(self, location: Location) -> Sequence[Definition]:
        """The definitions around a location, outermost first."""

    async def find_siblings(self, definition: Definition) -> Sequence[Definition]:
        """The definitions that share the definition's parent in its file, in file order."""

    async def callers(self, name: str, *, unresolved: bool = False) -> Sequence[CallSite]:
        """List the calls of a function or class; with `unresolved`, also calls whose target is unknown."""

    async def callees(self, name: str) -> Sequence[CallSite]:
        """Return the calls that a function makes."""

    async def list_file_imports(self) -> Sequence[FileImport]:
        """Return the imports of files from the pinned code, by path and line."""

    async def subclasses(self, name: str) -> Sequence[Subclass]:
        """Return the types that inherit from one, implement it or mix it in, direct ones first."""

    async def registrations(self, kinds: Collection[RegistrationKind]) -> Sequence[RegistrationSite]:
        """Return the files' registrations of some kinds, by path and line: routes, commands, options, settings."""


class TextSearch(Protocol):
    """Finds text in the code of one commit, by rank or by pattern."""

    async def search(
        self,
        query: str,
        *,
        limit: int = 10,
        filters: Filters | None = None,
        mode: SearchMode = "hybrid",
        aim: SearchAim = "places",
    ) -> Sequence[Hit]:
        """Rank chunks for the query, best first; `filters` apply before ranking."""

    async def grep(self, *patterns: str, path: str = "", limit: int = 50) -> Matches:
        """Find lines by patterns in RE2's syntax, `limit` for each, in all files, below a folder or in one.

        Raises `BadPattern`.
        """


class CodeSearch(SourceFiles, SymbolIndex, TextSearch, Protocol):
    """One repository at one commit, unchanged by later pushes while it is pinned."""

    @property
    def repository(self) -> str:
        """The displayed name of the repository."""

    @property
    def commit(self) -> Commit:
        """The pinned commit."""

    @property
    def past(self) -> CodePast:
        """The history of the code up to the commit."""

    async def history(self, path: str, *, line: int = 0, limit: int = 20) -> FileHistory:
        """The commits that touched a file, and the one that last wrote a line; 0 means no line."""

    def permalink(self, location: Location, commit: str = "") -> str | None:
        """A web address of the lines at the commit, or another one; None if the repository has no web host."""

    def name_cells(self, location: Location) -> str:
        """Name the cells of a notebook that lines are in, such as `cell 7, lines 2-4`; empty for other files."""

    def follow(self, catch_up: CatchUp | None) -> None:
        """Make each "no" wait for newer commits first; None: no longer."""

    async def complete_name(self, beginning: str, *, limit: int = 20) -> Sequence[str]:
        """Complete qualified names whose plain name (`send`) or last parts (`Session.se`) have a prefix."""

    async def list_central(self, *, limit: int = 20) -> Sequence[Definition]:
        """Return the definitions most used by the code, the most used first."""


class CodeLibrary(Protocol):
    """The repositories available for questions."""

    async def pin(self, repository: str | None = None) -> CodeSearch:
        """Pin a repository (None: the default one) at its newest indexed commit; `NotIndexed` before that.

        A "no" from it may raise `CodeMoved`, unless told to `follow(None)`.
        """


Classified = Literal["clean", "suspect", "loading", "unusable", "busy", "slow", "failed", "resting"]


class Classifier(Protocol):
    """A trained model that judges whether a question is an attack, in addition to the rules."""

    async def classify(self, text: str) -> Classified:
        """Return `clean` or `suspect`, or why the model cannot judge; never raises, and is fast."""


class ToolMenu:
    """The tools of a turn: their descriptions for a model, and calls. This one has none."""

    def menu(
        self,
        deps: Deps,  # noqa: ARG002
        *,
        approved: Collection[str] = (),  # noqa: ARG002
        asking: bool = False,  # noqa: ARG002
    ) -> Sequence[Mapping[str, Any]]:
        """Offer tools as `{"name", "description", "parameters"}`; `approved` are names a person agreed to.

        With `asking`, also those that a person can be asked about.
        """
        return ()

    def is_approval_required(self, name: str) -> bool:  # noqa: ARG002
        """Whether a tool needs a person's approval."""
        return False

    def describe_call(self, name: str, args: Mapping[str, Any], deps: Deps) -> str:  # noqa: ARG002
        """Describe an approval of a call; empty if the call would do nothing."""
        return ""

    def only_reads(self, name: str) -> bool:  # noqa: ARG002
        """Whether the tool of that name only reads the repository."""
        return False

    def estimate_cost(self, name: str) -> int:  # noqa: ARG002
        """Return the share of the room for parallel calls that one call of this tool takes."""
        return 0

    async def call(
        self,
        name: str,
        args: Mapping[str, Any],  # noqa: ARG002
        deps: Deps,  # noqa: ARG002
        *,
        approved: Collection[str] = (),  # noqa: ARG002
    ) -> ToolOutcome:
        """Call a tool; an error in the call or in the tool becomes an outcome that explains it."""
        return ToolOutcome(text=f"There is no tool {name[:80]!r}.", ok=False)


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolOutcome:
    """The result of a call: text with secrets masked, and references to its lines. If not `ok`, the text says why.

    `flags` name the families of orders to a model found and marked in the text; `source` is the
    text's origin.
    """

    text: str
    refs: tuple[EvidenceRef, ...] = ()
    ok: bool = True
    flags: tuple[str, ...] = ()
    source: str = "tools"


class WebSearch(Protocol):
    """A search engine of the public web."""

    async def search(self, query: str, *, limit: int) -> Sequence[WebPage]:
        """Find pages; raises `WebSearchError`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class WebPage:
    """One page that a web search found; strangers wrote all of it."""

    title: str
    url: str
    text: str


class Emit(Protocol):
    """Publishes the events of a run; never waits."""

    def __call__(self, kind: EventKind, /, **payload: Any) -> None:
        """Publish an event of the run with the payload that `AgentEvent` describes."""


class GrowingText(Protocol):
    """A model's text as it grows; some of it may have been shown already."""

    @property
    def is_shown(self) -> bool:
        """Whether any text was shown since it was begun."""

    def begin(self) -> None:
        """Replace the unshown text by what follows."""

    def write(self, piece: str) -> None:
        """Take a piece."""


class ChatModel(Protocol):
    """A chat model for one node and turn: within the turn's budget, with retries and fallbacks.

    Every method raises only `ModelError`s; `task` names the node in traces.
    """

    @property
    def name(self) -> str:
        """The last model to answer, or the first to ask, as `provider:model`."""

    @property
    def calls_tools(self) -> bool:
        """Whether it can call functions, as far as known."""

    async def generate_structured(self, messages: Sequence[chat.BaseMessage], form: type[Form], *, task: str) -> Form:
        """Fill in a form; `AnswerMalformed` if the model cannot."""

    async def reply_with_tools(
        self, messages: Sequence[chat.BaseMessage], tools: Sequence[Mapping[str, Any]], *, task: str
    ) -> chat.AIMessage:
        """Answer with text, tool calls or both; a tool is `{"name", "description", "parameters": JSON schema}`.

        Keep the message as it is: it carries signatures that some models want back.
        """

    async def stream_with_tools(
        self,
        messages: Sequence[chat.BaseMessage],
        tools: Sequence[Mapping[str, Any]],
        text: GrowingText,
        *,
        task: str,
    ) -> chat.AIMessage:
        """Answer as `reply_with_tools`, with each piece of the text written as it comes.

        Not tried again once some of it was shown; `AnswerTruncated` if it ends at a limit of length.
        """


@dataclass(frozen=True, kw_only=True, slots=True)
class TurnModels:
    """The chat models of one turn: `main` writes and investigates, `small` routes and grades; None without any.

    `check` reads doubtful citations again, and is also None if that is switched off.
    """

    main: ChatModel | None = None
    small: ChatModel | None = None
    check: ChatModel | None = None


class ModelSource(Protocol):
    """The open chat models, from which each turn gets its own."""

    def budget(self) -> Budget:
        """Return the budget of a turn that begins now."""

    def make_turn_models(self, budget: Budget, emit: Emit) -> TurnModels:
        """Return the models for the nodes of one turn."""


class MemoryEvidence:
    """Evidence that lives only as long as the process."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}

    async def keep(self, key: str, text: str) -> None:
        """Keep a text."""
        self._texts[key] = make_storable(text)

    async def texts(self, keys: Iterable[str]) -> Mapping[str, str]:
        """Return the texts that are there."""
        return {key: self._texts[key] for key in keys if key in self._texts}


@dataclass(frozen=True, kw_only=True, slots=True)
class Deps:
    """The dependencies of one run's nodes: the repository at one commit, the redactor, the listeners, the models."""

    code: CodeSearch
    redact: Callable[[str], str]
    emit: Emit
    models: TurnModels = field(default_factory=TurnModels)
    budget: Budget = field(default_factory=Budget)
    tools: ToolMenu = field(default_factory=ToolMenu)
    evidence: EvidenceTexts = field(default_factory=MemoryEvidence)
    web: WebSearch | None = None
    classifier: Classifier | None = None
    asked: str = ""  # the person's words in this turn: the only ones that may be sent to the web
    approval_calls: int = APPROVAL_CALLS
    can_ask: bool = True  # whether the person could reply to a question back
    masked: MaskedValues = field(default_factory=MaskedValues)
    nonce: str = ""  # the word of the tags around data in all prompts of the conversation; else of each prompt its own
    is_hardened: bool = False  # the question is watched, or the evidence gives orders: see `agent.guard.reading_tools`


class Runtime(Protocol[Context_co]):
    """A node's input besides the state, in the form of LangGraph's class of the same name."""

    @property
    def context(self) -> Context_co:
        """The dependencies of this run's nodes."""


@dataclass(frozen=True, slots=True)
class NodeRuntime:
    """A node's input from callers other than LangGraph."""

    context: Deps


@dataclass(frozen=True, kw_only=True, slots=True)
class Citation:
    """Lines that a claim was read from. `mark` is the number in the answer as `[1]`.

    If the path is empty, the claim is about the commit itself. `repository` is set if the answer is
    about several. It `is_elsewhere` if the lines are from another commit than the answer. `cells`
    names the cells of a notebook.
    """

    mark: int
    path: str
    start_line: int
    end_line: int
    commit: str
    url: str | None
    repository: str = ""
    is_elsewhere: bool = False
    cells: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """A settled answer: Markdown with numbered marks, and the citations of the marks.

    `model` is None if no chat model wrote it; `searched` lists the queries. `found` is False if the
    repository has nothing that clearly answers, and the text shows the closest places at best. An
    answer about several repositories has their names in `repository`, a commit of each in `commits`
    and none in `commit`; `missing` names unreadable ones with the reason. `meanings` are other
    possible questions, which the text offers in different words. It `is_pointing` if it only lists
    places for the words, and nothing shows that the question is about the code at all.
    """

    text: str
    citations: tuple[Citation, ...]
    repository: str
    commit: str
    intent: str
    route: str
    model: str | None
    seconds: float
    searched: tuple[str, ...] = ()
    found: bool = False
    commits: Mapping[str, str] = field(default_factory=dict)
    missing: Mapping[str, str] = field(default_factory=dict)
    meanings: tuple[str, ...] = ()
    is_pointing: bool = False

    @property
    def read_at(self) -> Mapping[str, str]:
        """Return the commit read of each repository; nothing if none was."""
        return self.commits or ({self.repository: self.commit} if self.commit else {})


class RunPermit(Protocol):
    """A run's question to its owner, after it has claimed its conversation, whether it may begin.

    If another run later asks and gets a yes, its claim is later as well.
    """

    async def may_begin(self) -> bool:
        """Whether this process may still answer the question."""

    async def may_be_replied_to(self, run_id: str) -> bool:
        """Whether a run's question is still open; an edited or deleted message has no replies."""


class EvidenceTexts(Protocol):
    """The evidence of one conversation's turn, by key."""

    async def keep(self, key: str, text: str) -> None:
        """Store a text in a form that databases accept, replacing one with the same key."""

    async def texts(self, keys: Iterable[str]) -> Mapping[str, str]:
        """Return the texts that are there."""
