"""Resolves references of a question, such as "it", "the second one" or "[3]", against the last turns."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from agent.questions.intent import find_small_talk
from agent.questions.literals import find_quoted_messages
from agent.questions.mentions import find_mentions
from agent.questions.remarks import is_bare_question
from agent.questions.scopes import parse_only_language, read_scope
from agent.questions.stack_traces import parse_error_name, parse_frames
from agent.questions.terms import find_content_terms
from agent.state import CitationRef, Continuation, PastTurn
from agent.text.citation_markers import MARKER
from agent.text.code_marks import CodeBlockScanner

_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")
_SELECTED_NOUN = (
    r"one|result|place|hit|caller|callee|call|usage|use|mention|match|item|entry|citation|option|definition|file|thing"
    r"|function|method|class|struct|interface|trait|enum|type|constant|test"
)
_OPENING = (
    r"(?:(?:can|could)\s+you\s+|please\s+|and\s+|ok(?:ay)?,?\s+)*"
    r"(?:(?:show|open|explain|see|view|give|display|print|describe|expand|quote|read)(?:\s+(?:me|us))?\s+|tell\s+me\s+(?:more\s+)?about\s+"
    r"|(?:what|how)\s+about\s+|what(?:'s|\s+is|\s+does)\s+)?"
)
_PICK = re.compile(
    rf"{_OPENING}(?:the\s+)?(?:(?P<word>{'|'.join(_ORDINALS)}|last)(?:\s+(?P<noun>{_SELECTED_NOUN}))?"
    rf"|(?:number|no\.?|nr\.?|\#)\s*(?P<number>\d{{1,2}})|(?P<nth>\d{{1,2}})(?:st|nd|rd|th)(?:\s+(?P<noun2>{_SELECTED_NOUN}))?"
    rf"|{MARKER.pattern})(?:\s+do)?(?:\s+please)?",
    re.IGNORECASE,
)
_MORE = re.compile(
    rf"{_OPENING}(?:(?:some\s+)?more(?:\s+(?:of\s+)?(?:it|that|code|lines|context))?|(?:the\s+)?rest(?:\s+of\s+(?:it|that))?|all\s+of\s+(?:it|that)"
    r"|the\s+(?:whole|full|entire|complete)\s+(?:thing|code|function|method|class|definition|body|source))(?:\s+please)?",
    re.IGNORECASE,
)
_NEXT = re.compile(
    r"(?:(?:and|ok(?:ay)?|please|show(?: me)?|list|give(?: me)?)[ ,]+){0,3}(?:(?:the|some|any|all)[ ]+)?"
    r"(?:more|next|(?:the )?rest|others?|remaining(?: ones)?|continue|go on|keep going|what else"
    r"|weiter|mehr|más|la suite|plus|もっと|続き|更多|继续)"
    r"(?:[ ]+(?:please|of (?:them|those|these)|ones?|results?|entries|items|places))?",
    re.IGNORECASE,
)
_LIMITING = frozenset("only just and but now ok show me the those ones which are please what about how".split())
_ONLY_THERE = re.compile(
    r"(?:(?:and|but|now|ok|show|me),? )*(?:only|just) (?:the |those |ones )*(?:(?:which|that) are )?"
    r"(?:in|under|inside|within) (?:the )?`?(?P<place>[\w./-]{1,80})`?(?: folder| directory| package| module)?",
    re.IGNORECASE,
)
_SITE = {
    "caller",
    "callee",
    "call",
    "usage",
    "use",
    "mention",
    "test",
    "match",
    "hit",
    "result",
    "place",
    "one",
    "thing",
}

_NOUN = (
    r"(?:function|method|class|type|file|module|code|test|tests|one|thing|symbol|error|exception|constant|snippet"
    r"|part|definition|helper|handler|decorator|call)"
)
_STATE = (
    r"(?:defined|used|called|tested|implemented|done|handled|raised|set|documented|declared|imported|configured"
    r"|invoked|located|happen|work|mean|live|come|return|do|written|checked)"
)
# Words after an "it" without a reference: "how is it decided whether ...", "why is it that ...".
_IMPERSONAL = (
    r"\s+(?:is\s+)?(?:(?:possible|ok|okay|safe|necessary|true|better)\b|that\s+(?!way\b)"
    r"|(?:decided|determined|chosen|known|ensured|checked|verified|detected|guaranteed|enforced|prevented|established"
    r"|made\s+sure|figured\s+out|worked\s+out|found\s+out|specified|tested)"
    r"\s+(?:whether|if|that|which|what|who|whom|whose|when|how|where|in\s+which|by\s+which|at\s+which)\b"
    r"|(?:allowed|permitted|forbidden|recommended|advisable|important|worth|enough|sufficient|legal|fine|easy|hard|difficult)"
    r"\s+(?:to\s+(?!be\b)|that\b)|takes?\s+(?:to|for|until)\b|matters?\s+(?:whether|if|that|which|what|how)\b"
    r"|makes?\s+sense\s+to\b|happens?\s+that\b)"
)
_POINTER = re.compile(
    rf"\b(?:(?P<noun_form>(?:that|this|the\s+same|those|these|the\s+(?:above|last|previous)(?:\s+one)?)\s+(?P<noun>{_NOUN}))"
    rf"|(?P<owner>its|their)"
    rf"|(?P<plain>it(?!{_IMPERSONAL})|they|them|those|these"
    rf"|(?:that|this)(?=\s*(?:$|[?.!,;])|\s+(?:be\s+|get\s+|gets\s+)?{_STATE}\b)))(?!\w)",
    re.IGNORECASE,
)
_ELLIPSIS = re.compile(r"(?:and|but|also|so|ok(?:ay)?|then|what\s+about|how\s+about)\b[\s,]{0,3}", re.IGNORECASE)
_SUBJECT = re.compile(
    r"(?:who|what)\s+(?:calls|uses)\s*$|(?:the\s+|any\s+)?(?P<list>tests?|callers?|callees?|usages?|references|definition)\s*$|why\s*$|how\s*$|where\s*$",
    re.IGNORECASE,
)
# The words with which one asks about a known thing: "who calls", "which tests cover".
_ASKING_WORDS = re.compile(
    r"\b(?:calls?|called|invokes?|tests?|tested|covers?|defines?|defined|callers?|callees?|usages?|references?"
    r"|implement(?:s|ed)?|return|returns|raises?|change[sd]?|depends?|imports?|describe|documented|again|open"
    r"|wrote|written|authored|owns?|owned|touched|added|introduced|created|removed|modified|maintains?|last|first"
    r"|originally|commits?|history|blame)\b",
    re.IGNORECASE,
)
# Questions about a goal run consist of these three kinds of words, with at least one of the first two.
_OF_RUNS = frozenset(
    """confirm confirmed iteration iterations outcome patch prove proved proven ran run sandbox tokens verdict
    verification verified verify""".split()
)
_OF_RUN_JUST_NOW = frozenset(
    """change changed check checked cost expensive fail failed goal output pass passed reach reached report reported
    result results show showed shown succeed succeeded test tested tests true try tried work worked""".split()
)
_AROUND_RUNS = frozenset(
    """a actually already and any are be been claim claims come did do does done end ever find for found from had has
    have how i in is it its just last long many me much my now of ok on or out really say says so tell that the then
    they this to too up us use used using was we were what which why with yet you your""".split()
)
_MAX_ABOUT_RUN = 100
_ANY_WORD = re.compile(r"[^\W\d_]{1,40}")
_MAX_SELECTION = 100
_HAS_WORD_AFTER = 12  # more words than this before a pointer, and the sentence names what it means on its own


def resolve_selection(question: str, history: Sequence[PastTurn]) -> str | None:
    """Return the selection of a question from the last answer, as a question; None if it selects nothing.

    Lines are written as `path:start-end`; another language (`and in Go?`) asks the last question
    again.
    """
    line = " ".join(question.split()).rstrip("?.! ")
    if history and (language := parse_only_language(line)):
        last = history[-1]
        again = f"where is `{last['symbol']}` defined" if last["symbol"] else last["question"].rstrip("?.! ")
        return f"{again} in {language}?"
    if history and (place := _read_narrowing(line)):
        return f"{history[-1]['question'].rstrip('?.! ')} {place}"
    turn = next((turn for turn in reversed(history) if turn["citations"]), None)
    if turn is None or len(line) > _MAX_SELECTION:
        return None
    if _MORE.fullmatch(line):
        return _format_citation(turn["citations"][0])
    found = _PICK.fullmatch(line)
    if found is None or not (found["noun"] or found["noun2"] or found["number"] or found["mark"] or _is_verbal(line)):
        return None
    citation = _find_selected(found, turn)
    return _format_citation(citation) if citation is not None else None


def _read_narrowing(line: str) -> str:
    """Read how a message narrows the last answer, if it says nothing else: "only tests", "just those in lib/"."""
    scope = read_scope(line)
    if scope.source_types and set(scope.rest.lower().split()) <= _LIMITING:
        return "only in tests" if scope.source_types == ("test",) else "outside tests"
    found = _ONLY_THERE.fullmatch(line)
    return f"in {found['place']}" if found is not None else ""


def find_continuation(question: str, history: Sequence[PastTurn]) -> Continuation | None:
    """Return where "more" continues after the last answer; None if nothing was left out, or the message asks
    for more than that.
    """
    line = " ".join(question[: 2 * _MAX_SELECTION].split()).strip("?.!… ")
    if not history or len(line) > _MAX_SELECTION or not _NEXT.fullmatch(line):
        return None
    return history[-1].get("more")


def _is_verbal(line: str) -> bool:
    """Whether "second" is used as an object ("show me the second") and not as an adverb or a name."""
    return "the " in line.lower() or line.lower().startswith(("show", "open", "and", "what"))


def _find_selected(found: re.Match[str], turn: PastTurn) -> CitationRef | None:
    by_mark = {citation["mark"]: citation for citation in turn["citations"]}
    if found["mark"]:
        return by_mark.get(int(found["mark"]))
    marks = _list_marks(turn["answer"], (found["noun"] or found["noun2"] or "").lower())
    marks = [mark for mark in marks if mark in by_mark] or sorted(by_mark)
    word = (found["word"] or "").lower()
    if word == "last":
        at = len(marks) - 1
    else:
        at = _ORDINALS.index(word) if word else int(found["number"] or found["nth"]) - 1
    return by_mark[marks[at]] if 0 <= at < len(marks) else None


def _list_marks(answer: str, noun: str) -> list[int]:
    """Return the marks of the answer's headlines and list items, in order, of the requested kind."""
    scanner = CodeBlockScanner()
    prose = [line for line in answer.split("\n") if not scanner.take(line)]
    listed = [(MARKER.search(line), line) for line in prose if line.startswith(("- ", "`"))]
    items = [(int(marker["mark"]), line) for marker, line in listed if marker]
    if noun and noun not in _SITE:
        of_kind = [mark for mark, line in items if re.search(rf"\b{noun}\b(?:\s+in)?\s*`|, {noun} in\b", line)]
        if of_kind:
            return of_kind
    return [mark for mark, _ in items]


def _format_citation(citation: CitationRef) -> str | None:
    """Write the lines as a question; None for a path that a question cannot contain."""
    text = f"{citation['path']}:{citation['start_line']}-{citation['end_line']}"
    paths = find_mentions(text).paths
    return text if paths and paths[0].path == citation["path"] else None


@dataclass(frozen=True, kw_only=True, slots=True)
class Antecedent:
    """The subject of the last turns: a symbol, its kind, and the file of their first citation."""

    symbol: str
    kind: str
    path: str


def find_antecedent(history: Sequence[PastTurn]) -> Antecedent | None:
    """Return the meaning of "it" after these turns: the newest symbol, else the newest file; None for neither."""
    for turn in reversed(history):
        if turn["symbol"] or turn["path"]:
            return Antecedent(symbol=turn["symbol"], kind=turn["kind"], path=turn["path"])
    return None


def find_run_turn(question: str, history: Sequence[PastTurn]) -> PastTurn | None:
    """Return the newest goal run of a conversation, if a message asks about it rather than about code.

    An ambiguous message ("did it pass?") is about the run only if nothing was said since.
    """
    run = next((turn for turn in reversed(history) if turn["intent"] == "goal"), None)
    if run is None or len(question) > _MAX_ABOUT_RUN:
        return None
    words = _ANY_WORD.findall(question.lower())
    about = _OF_RUNS | _OF_RUN_JUST_NOW if run is history[-1] else _OF_RUNS
    is_meant = len(words) > 1 and not about.isdisjoint(words)
    return run if is_meant and (_OF_RUNS | _OF_RUN_JUST_NOW | _AROUND_RUNS).issuperset(words) else None


def is_pointing_back(question: str) -> bool:
    """Whether the question refers to something said before rather than naming it."""
    pointer = _POINTER.search(question)
    if pointer is not None:
        before = question[: pointer.start()]
        return len(before.split()) <= _HAS_WORD_AFTER and not find_content_terms(_ASKING_WORDS.sub(" ", before))
    return _parse_ellipsis(question) is not None


def concerns_answer(question: str) -> bool:
    """Whether a follow-up is about the code: it names some, or asks more about the answer's subject."""
    return find_mentions(question).anything or (
        is_pointing_back(question) and _ASKING_WORDS.search(question) is not None
    )


def resolve_references(question: str, target: Antecedent) -> str:
    """Replace references in a question by their targets."""
    rest = _parse_ellipsis(question)
    if rest is not None and _POINTER.search(rest) is None:
        return _complete_question(rest, target)
    opening = _ELLIPSIS.match(question)
    bare = question[opening.end() :] if opening else question
    return _POINTER.sub(lambda found: _format_antecedent(found, target), bare, count=1).strip()


def _parse_ellipsis(question: str) -> str | None:
    """Return the words after "and" or "what about" if they are too few for a question."""
    opening = _ELLIPSIS.match(question)
    rest = (question[opening.end() :] if opening else question).strip().rstrip("?.! ")
    return rest if _SUBJECT.fullmatch(rest) else None


def _complete_question(rest: str, target: Antecedent) -> str:
    name = f"`{target.symbol or target.path}`"
    found = _SUBJECT.fullmatch(rest)
    if found is not None and found["list"]:
        return f"{found['list'].lower()} of {name}"
    return f"{rest} {name}" if rest.lower().startswith(("who", "what")) else f"how does {name} work"


def _format_antecedent(found: re.Match[str], target: Antecedent) -> str:
    if found["owner"]:
        return f"`{target.symbol or target.path}`'s"
    noun = (found["noun"] or "").lower()
    if noun in {"file", "module"} and target.path:
        return f"`{target.path}`"
    if noun in {"class", "type"} and target.kind == "method":
        return f"`{target.symbol.rpartition('.')[0]}`"
    return f"`{target.symbol or target.path}`"


def find_thread_subject(messages: Sequence[str]) -> str:
    """Return the newest message that names code or an error, else the first with content; empty without one."""
    telling = [text for text in messages if _says_something(text)]
    naming = [text for text in telling if _names_code(text)]
    return next(iter([*naming[-1:], *telling[:1]]), "")


def find_thread_antecedent(messages: Sequence[str]) -> Antecedent | None:
    """Return the meaning of "it" after these messages: the last name or file mentioned."""
    for text in reversed(messages):
        mentions = find_mentions(text)
        if mentions.names:
            return Antecedent(symbol=mentions.names[-1], kind="", path="")
        if mentions.paths:
            return Antecedent(symbol="", kind="", path=mentions.paths[-1].path)
    return None


def _says_something(text: str) -> bool:
    return bool(find_content_terms(text)) and find_small_talk(text) is None and not is_bare_question(text)


def _names_code(text: str) -> bool:
    return bool(
        find_mentions(text).anything or parse_frames(text) or parse_error_name(text) or find_quoted_messages(text)
    )
