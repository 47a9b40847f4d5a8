"""The state of the graph: plain dicts and lists, because every step is checkpointed."""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired, TypedDict, TypeVar

from agent import chat
from indexer.types import Location, SourceType

Intent = Literal["history_request", "follow_up", "follow_up_with_retrieval", "new_question", "out_of_scope"]
VerdictName = Literal["allow", "watch", "block"]
Route = Literal["retrieve", "investigate", "use_tool", "generate", "clarify"]
AnswerMode = Literal["rules", "forms", "tools"]
Grade = Literal["enough", "rewrite", "give_up"]
Lookup = Literal[
    "search",
    "message",
    "definition",
    "attribute",
    "usages",
    "callers",
    "callees",
    "tests",
    "file",
    "lines",
    # Kinds of question with an answer of their own.
    "changes",
    "people",
    "commands",
    "options",
    "entry_points",
    "contracts",
    "lists",
    "overview",
    "outline",
    "prose",
    "dependencies",
]
LoopDecision = Literal["CONTINUE", "FINISH"]
Role = Literal[
    "hit",
    "definition",
    "parent",
    "sibling",
    "caller",
    "callee",
    "mention",
    "test",
    "file",
    "lines",
    "entry",  # of a list: an option, an endpoint, a command; the symbol is its name
    "commit",  # the symbol is its subject; `commit` is set, and the path is empty
    # Of a comparison: a file that differs, or lines that were added or removed, by its kind; `doc` has what they say.
    "change",
]


class RetrievalRequest(TypedDict):
    """One thing to fetch. `query` is a search text, a message as somebody saw it, or the name that a lookup is about.

    `path` and the line numbers are set for the lookups `file` and `lines`, and are empty and 0 otherwise. `parts` are
    the named parts of a question of some kind: whose `query` is the whole question. `repository` is set where one of
    several is meant, and not all of them. `commit` is another one that lines are read at.
    """

    lookup: Lookup
    query: str
    source_types: list[SourceType]
    folders: list[str]
    patterns: list[str]
    path: str
    start_line: int
    end_line: int
    reasoning: str
    parts: NotRequired[dict[str, str]]
    repository: NotRequired[str]
    commit: NotRequired[str]


class ToolRequest(TypedDict):
    """A tool call requested by the router; its arguments are a model's, and unchecked."""

    tool: str
    args: dict[str, Any]


class RouterDecision(TypedDict):
    """The next step of the turn; `unknown` are the undefined names in the question.

    `requests` belong to the route retrieve, `calls` to use_tool, `clarification` (a question to the
    person) to clarify.
    """

    route: Route
    requests: list[RetrievalRequest]
    calls: list[ToolRequest]
    clarification: str
    fast_path: bool
    unknown: list[str]
    reasoning: str
    meanings: NotRequired[list[str]]  # questions that this one may also be


class EvidenceRef(TypedDict):
    """Lines that were read in this turn, and what is known of them; their text is read again from the commit.

    `commit` is another one than the turn's; with an empty path, it is what is referred to, and `repository` whose it
    is where there are several. `calls` are how many of one name a line holds, where they are several.
    `release` is the first that has a commit, where those beside it are in others.
    """

    path: str
    start_line: int
    end_line: int
    role: Role
    score: float
    language: str
    source_type: str
    symbol: str
    kind: str
    signature: str
    doc: str
    ambiguous: bool
    commit: NotRequired[str]
    repository: NotRequired[str]
    calls: NotRequired[int]
    release: NotRequired[str]


class ToolRecord(TypedDict):
    """One call of a tool in this turn; its text is in the evidence table under `key`, `found` counts its locations."""

    tool: str
    args: dict[str, Any]
    ok: bool
    found: int
    key: str


class Finding(TypedDict):
    """The result of a plan's step: the model's summary, the keys of tool results, and whether anything was found."""

    summary: str
    keys: list[str]
    found: bool


class CitationRef(TypedDict):
    """Lines of a mark in the answer; for `commit` and `repository` see `EvidenceRef`."""

    mark: int
    path: str
    start_line: int
    end_line: int
    commit: NotRequired[str]
    repository: NotRequired[str]


class Continuation(TypedDict):
    """The meaning of "more" after an answer: a question, and the number of entries already shown."""

    question: str
    skip: int


class PlanProposal(TypedDict):
    """A plan as a model called for it: its steps, the tools that need approval, and the dependent steps.

    `dependent` are the numbers, from 1, of the steps that need earlier findings.
    """

    steps: list[str]
    dependent: list[int]
    tools: list[str]


class RepositoryNotes(TypedDict):
    """Notes on the evidence from one of several repositories."""

    totals: dict[str, int]
    facts: dict[str, str]


class RetrievalMetadata(TypedDict):
    """The way to the evidence: queries, relaxed filters, failures, and whether it suffices.

    `facts` are findings beside the evidence, by name, such as the tags around commits. With several
    repositories, the `totals` and `facts` of each are under its name.
    """

    searched: list[str]
    relaxed: list[str]
    failures: list[str]
    totals: dict[str, int]
    weak: bool
    facts: NotRequired[dict[str, str]]
    by_repository: NotRequired[dict[str, RepositoryNotes]]


class TextExcerpt(TypedDict):
    """The excerpt of an attached text that is kept during its question; `error` is the last failure in it, if any."""

    name: str
    text: str
    error: str


class PauseReply(TypedDict):
    """A person's reply to a pause; an id names the pause."""

    to: str
    text: str


class PastTurn(TypedDict):
    """One finished exchange; `symbol` and `path` are what "it" and "that file" mean in the next question.

    `more` is what "more" means, None if nothing was left out. `run` names the run of a turn that the graph has not
    taken, such as a goal run.
    """

    question: str
    answer: str
    intent: str
    citations: list[CitationRef]
    symbol: str
    kind: str
    path: str
    repository: str
    commit: str
    asked_at: float
    more: NotRequired[Continuation | None]
    run: NotRequired[str]


Value = TypeVar("Value")


def take_newest(_: Value, new: Value) -> Value:
    """Take the later one: a reply's data may arrive twice after a kill."""
    return new


def merge_messages(left: list[Any], right: list[Any]) -> list[Any]:
    """Add messages to those of a step, or clear them, as LangGraph does."""
    # Takes a second to import, and only an investigation has messages.
    from langgraph.graph.message import add_messages

    return list(add_messages(left, right))


class AgentState(TypedDict, total=False):
    """The channels of the graph. All but the conversation's are reset by the first node of a turn."""

    user_query: str
    attached: list[TextExcerpt]  # attachments of the question
    images: list[str]  # the names of those; the table of evidence has them
    asked_at: float
    repositories: list[str]  # as they were asked about; empty for the default one
    run_id: Annotated[str, take_newest]
    reply: Annotated[PauseReply | None, take_newest]  # to the newest pause that was replied to

    gateway_passed: bool
    gateway_reason: str
    gateway_verdict: VerdictName
    is_blocked: bool
    # Where the evidence gives orders to a model; from the first of them on the turn is as one that is watched.
    flagged: Annotated[list[str], take_newest]

    cleaned_query: str
    background: list[str]  # messages around the question, quoted: for models, and never searched for
    intent: Intent
    is_follow_up: bool
    needs_retrieval: bool
    skip: int  # entries of the answer's list that an earlier answer has shown
    # How the turn is answered: by rules alone, by a model that fills in forms, or by one that has tools.
    mode: AnswerMode
    lookup_query: str  # the text of the first lookups: the question, with the likeliest meaning of "it"
    nonce: str  # of the tags around data in the prompts of the turn, so that a prompt begins as the one before it

    router_output: RouterDecision | None
    retrieved: Annotated[list[EvidenceRef], take_newest]
    expanded: Annotated[list[EvidenceRef], take_newest]
    retrieval_metadata: RetrievalMetadata
    grade: Grade
    better_query: str
    codebase_tree: str

    # Counted up by the router, by the planner for a plan's first step, and by the refinery for each further one.
    iteration_count: int
    plan: list[str]
    current_step: int
    plan_applies: bool
    dependent: list[int]  # the steps, from 0, that need what the ones before them have found
    proposal: PlanProposal | None  # of the model that answers; the planner makes a plan of it
    findings: dict[str, Finding]
    loop_decision: LoopDecision
    messages: Annotated[list[Any], merge_messages]  # of LangChain
    executor_call_count: int  # within a step
    rounds: int  # answers of the model that writes the answer, in this turn
    wants_tools: bool  # whether a model has asked for some in a step
    tool_history: list[ToolRecord]

    pause_reason: str  # empty, "plan" for its cost, or the names of tools that a person has to approve
    approved: list[str]
    is_aborted: bool
    clarified: bool

    final_answer: str
    answer_model: str
    shown: Annotated[list[CitationRef], take_newest]  # by the numbers of the evidence ids: `E1` is the mark 1
    told: Annotated[list[int], take_newest]  # marks of what the model that answers was shown at first
    citations: list[CitationRef]
    main_symbol: str
    main_kind: str
    more: Continuation | None
    found: bool
    is_pointing: bool

    conversation_history: list[PastTurn]
    turn_count: int
    error: str


def make_empty_metadata() -> RetrievalMetadata:
    """Return the metadata of a turn without a search."""
    return {"searched": [], "relaxed": [], "failures": [], "totals": {}, "weak": False}


def reset_turn(left: AgentState) -> AgentState:
    """Return the initial values of a turn, whatever an interrupted one left in the state."""
    return {
        "gateway_passed": False,
        "gateway_reason": "",
        "gateway_verdict": "block",
        "is_blocked": False,
        "flagged": [],
        "cleaned_query": "",
        "background": [],
        "intent": "new_question",
        "is_follow_up": False,
        "needs_retrieval": False,
        "skip": 0,
        "mode": "rules",
        "lookup_query": "",
        "nonce": "",
        "router_output": None,
        "retrieved": [],
        "expanded": [],
        "retrieval_metadata": make_empty_metadata(),
        "grade": "enough",
        "better_query": "",
        "codebase_tree": "",
        "iteration_count": 0,
        **reset_research(left),
        "pause_reason": "",
        "approved": [],
        "is_aborted": False,
        "clarified": False,
        "final_answer": "",
        "answer_model": "",
        "shown": [],
        "told": [],
        "citations": [],
        "main_symbol": "",
        "main_kind": "",
        "more": None,
        "found": False,
        "is_pointing": False,
        "error": "",
    }


def reset_research(left: AgentState) -> AgentState:
    """Return the initial values of an investigation, whatever another left in the state."""
    changes: AgentState = {
        "plan": [],
        "current_step": 0,
        "plan_applies": True,
        "dependent": [],
        "proposal": None,
        "findings": {},
        "loop_decision": "FINISH",
        "executor_call_count": 0,
        "rounds": 0,
        "wants_tools": False,
        "tool_history": [],
    }
    return {**changes, "messages": [clear_messages()]} if left.get("messages") else changes


def clear_messages() -> chat.RemoveMessage:
    """Return the change that clears `messages`."""
    # As in `merge_messages`.
    from langgraph.graph.message import REMOVE_ALL_MESSAGES

    return chat.RemoveMessage(id=REMOVE_ALL_MESSAGES)


def is_hardened(state: AgentState) -> bool:
    """Whether the turn is restricted: its question is watched, or its evidence gives orders."""
    return state.get("gateway_verdict") == "watch" or bool(state.get("flagged"))


def is_answering(state: AgentState) -> bool:
    """Whether the model with tools writes the answer, rather than taking a step of a plan."""
    remain = state.get("current_step", 0) < len(state.get("plan", []))
    return state.get("mode") == "tools" and not (remain and state.get("loop_decision") == "CONTINUE")


def to_location(ref: EvidenceRef | CitationRef) -> Location:
    """Return the lines that a reference points at."""
    return Location(
        path=ref["path"],
        start_line=ref["start_line"],
        end_line=ref["end_line"],
        commit=ref.get("commit", ""),
        repository=ref.get("repository", ""),
    )


def to_citation(mark: int, location: Location) -> CitationRef:
    """Return the target of a mark."""
    citation: CitationRef = {
        "mark": mark,
        "path": location.path,
        "start_line": location.start_line,
        "end_line": location.end_line,
    }
    if location.commit:
        citation["commit"] = location.commit
    if location.repository:
        citation["repository"] = location.repository
    return citation


def name_route(state: AgentState) -> str:
    """Name the turn's way through the graph, for the answer and for statistics."""
    if state.get("is_blocked"):
        return "blocked"
    by_intent = {"history_request": "history", "follow_up": "history", "out_of_scope": "out_of_scope"}
    if (name := by_intent.get(state.get("intent", ""))) is not None:
        return name
    decision = state.get("router_output")
    return "fast_path" if decision is not None and decision["fast_path"] else "broad"
