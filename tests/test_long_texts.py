"""Every public function over text takes time that grows with the text alone, whatever somebody puts into it."""

from __future__ import annotations

import gc
import importlib
import inspect
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise

import pytest
from pydantic import SecretStr

from agent.answers.excerpts import Emphasis, best_window
from agent.answers.exhibits import Exhibit
from agent.answers.marks import Fences, replace
from agent.answers.model_text import MarkMaker
from agent.guard.leaks import says_masked
from agent.guard.masked import MaskedValues
from agent.llm.failures import translate
from agent.prompts import grade_messages, preprocess_messages, router_messages, synthesis_messages
from agent.questions.choices import chosen
from agent.questions.follow_ups import Antecedent, resolve
from agent.questions.literals import Literal
from agent.research.calls import brief, call_key
from agent.state import CitationRef, Turn
from bot.adapters.discord.text import plain as plain_discord
from bot.adapters.slack.text import names as names_user
from bot.manifest import Unfit, read_manifest
from bot.markdown.splitting import split
from bot.messages import Content, ThreadMessage
from bot.paging import pages
from bot.records import to_json
from bot.routing.names import hinted, named, only_named
from bot.routing.signs import Sign, aliases
from bot.surroundings import with_thread
from bot.webhooks.pushes import pushes_in, read_payload
from indexer.attributes import Attributes, attributes_above
from indexer.calls.receivers import clues, result_type
from indexer.chunker import parse_file
from indexer.complaints import failure, refusal
from indexer.documentation import Documentation
from indexer.errors import IndexerError
from indexer.grep import grep
from indexer.languages import language_of
from indexer.models import Location
from indexer.permalinks import permalink
from indexer.remotes.configured import RemoteRepository
from indexer.remotes.states import complaint_error, moved_remark
from indexer.rules import content_verdict
from indexer.windows import Lines, markdown_headings, rst_headings, sections
from tests.test_architecture import ROOT, name_of, sources

LENGTH = 100_000
SECONDS = 0.1  # of the processor, for a text of that length, where nothing else keeps it busy
COUNTING = 0.0025  # seconds of the same that it takes to count the letters of such a text one by one
MEASURABLE = 0.02
GROWTH = 8.0  # for four times the text: linear is 4, quadratic 16

PIECES = (
    *" \t\n()[]{<>`aA0./\\#*_\"'-:,|@é\u202e\u0301\x00",
    "\r\n", "a.", "a b ", "[](", "](", "[[1]", "[E1]", "`` ` ", "- ", "> ", "../", "a/", "::", 'File "', "at ",
    "at a (", "go ", "x.go:", "Aa", "Error: ", "&lt;", "@a ", "<a", "a(", "\"'", '\\"', "!\\[", "://", "{@a ", "/* ",
    "// ", "# a\n", "a\n", " \n",
)  # fmt: skip

Call = Callable[[str], object]


def identity(text: str) -> str:
    return text


def citation() -> CitationRef:
    return {"mark": 1, "path": "a.py", "start_line": 1, "end_line": 2}


def turn(text: str) -> Turn:
    return Turn(
        question=text, answer=text, intent="", citations=[citation()], symbol=text, kind="", path="", repository="",
        commit="", asked_at=0.0,
    )  # fmt: skip


def exhibit(text: str) -> Exhibit:
    return Exhibit(number=1, location=Location(path="a.py", start_line=1, end_line=2), about=text, text=text)


def remote() -> RemoteRepository:
    return RemoteRepository(name="shop", url="https://git.example/team/shop.git", token=SecretStr("t"))


def emphasis() -> Emphasis:
    return Emphasis(terms=frozenset({"retri"}), literals=(Literal(text="no such file here", is_message=True),))


def masked_values() -> MaskedValues:
    """Values that were masked, as those of a turn that has read two secrets."""
    masked = MaskedValues()
    masked.watch(lambda text: text.replace("k3y-0f-0ne", "[REDACTED:secret]"))("a k3y-0f-0ne b")
    return masked


def signs() -> Mapping[str, Sign]:
    return {name: Sign(page=f"https://git.example/team/{name}") for name in ("shop", "web", "docs-site")}


def wrap(function: Callable[..., object], *errors: type[Exception]) -> Call:
    """A call for which some errors are an answer."""

    def call(text: str) -> object:
        try:
            return function(text)
        except errors as error:
            return error

    return call


# Functions that take more than text, as they are called; classes that read text; and texts that are cut in pieces.
CASES: dict[str, Call] = {
    "agent.guard.leaks.says_masked": lambda text: says_masked(text, masked_values()),
    "agent.answers.excerpts.best_window": lambda text: best_window(text[:20_000].split("\n"), emphasis()),
    "agent.answers.marks.replace": lambda text: replace(text, [""] * text.count("[")),
    "agent.llm.failures.translate": lambda text: translate(ValueError(text), "google:m", "GOOGLE_API_KEY"),
    "agent.prompts.synthesis_messages": lambda text: synthesis_messages(text, [exhibit(text)]),
    "agent.prompts.router_messages": lambda text: router_messages(
        question=text, tools=[], tree=text, searched=[text], found=[], results=text, better_query=""
    ),
    "agent.prompts.grade_messages": lambda text: grade_messages(text, [exhibit(text)], [text]),
    "agent.prompts.preprocess_messages": lambda text: preprocess_messages(text, [turn(text)]),
    "agent.questions.choices.chosen": lambda text: chosen("show me the second", [turn(text)]),
    "agent.questions.follow_ups.resolve": lambda text: resolve(text, Antecedent(symbol="a.b", kind="", path="a.py")),
    "agent.research.calls.call_key": lambda text: call_key("read", {"path": text}, ""),
    "agent.research.calls.brief": lambda text: brief({"path": text}),
    "bot.adapters.discord.text.plain": lambda text: plain_discord(text, own=frozenset({1}), users={}, places={}),
    "bot.adapters.slack.text.names": lambda text: names_user(text, "U1"),
    "bot.markdown.splitting.split": lambda text: split(text, 2_000, utf16=True),
    "bot.paging.pages": lambda text: pages(
        Content(text=text, status="", footer=""), 2_000, utf16=True, fixed=text[:500]
    ),
    "bot.records.to_json": lambda text: to_json({"text": text}),
    "bot.routing.names.named": lambda text: named(text, signs()),
    "bot.routing.names.only_named": lambda text: only_named(text, signs()),
    "bot.routing.names.hinted": lambda text: hinted(text, signs()),
    "bot.routing.signs.aliases": lambda text: aliases({"shop": Sign(page=f"https://a/{text}".replace("[", ""))}),
    "bot.surroundings.with_thread": lambda text: with_thread(
        "What is this?", [ThreadMessage(id="1", author="a", text=text)], room=4_000
    ),
    "bot.webhooks.pushes.pushes_in": lambda text: pushes_in("push", {"ref": text, "repository": {"full_name": text}}),
    "indexer.calls.receivers.clues": lambda text: [*clues("a", text, "py"), *clues("a", text, "java")],
    "indexer.calls.receivers.result_type": lambda text: [result_type("a", text, each) for each in ("py", "java", "go")],
    "indexer.complaints.refusal": lambda text: refusal(ROOT, f"dubious ownership {text}"),
    "indexer.complaints.failure": lambda text: failure(ROOT, text),
    "indexer.grep.grep": lambda text: grep([("a.py", text)], r"(\w+\s*)+x$", limit=10),
    "indexer.languages.language_of": lambda text: (language_of("a.h", text), language_of(text, f"#!{text}")),
    "indexer.permalinks.permalink": lambda text: permalink(
        "https://git.example/a", "0" * 40, Location(path=text, start_line=1, end_line=1)
    ),
    "indexer.remotes.states.complaint_error": lambda text: complaint_error(remote(), text),
    "indexer.remotes.states.moved_remark": lambda text: moved_remark(remote(), text),
    "indexer.rules.content_verdict": lambda text: content_verdict("a.py", f"# generated {text}".encode()),
    # Classes, and what is read in pieces.
    "agent.answers.marks.Fences": lambda text: [Fences().take(line) for line in (text, *text.split("\n"))],
    "agent.answers.model_text.MarkMaker": lambda text: MarkMaker([exhibit("")], identity).prose(text),
    "indexer.attributes.Attributes": lambda text: Attributes(
        {".gitattributes": f"{text} x\n{text[:2000]} linguist-vendored"}
    ).of(text),
    "indexer.attributes.attributes_above": lambda text: attributes_above([text.encode()]),
    "indexer.documentation.Documentation": lambda text: Documentation(f"{text}\nx".split("\n"), (), ()).above(
        text.count("\n") + 1
    ),
    "indexer.windows.sections": lambda text: deque(
        sections(Lines(text), lambda row: row % 7 == 0, 1500, 300), maxlen=0
    ),
    "indexer.windows.headings": lambda text: (markdown_headings(text.split("\n")), rst_headings(text.split("\n"))),
    "indexer.chunker.plain": lambda text: parse_file("a.txt", text),
    "bot.manifest.read_manifest": wrap(lambda text: read_manifest(text.encode()), Unfit),
    "bot.webhooks.pushes.json": wrap(lambda text: read_payload(text.encode(), "application/json"), ValueError),
}
# Not judged here, and why.
NO_TEXT = "it is given what citebot itself wrote"
OF_PORTS = "it asks other parts, whose own functions are here"
PARSES = "the parser of a grammar runs under a deadline of its own"
LEFT_OUT: dict[str, str] = {
    "agent.answers.spans.find_outside": "marks(), which calls it, is here",
    "agent.answers.blocks.say_lines": "it is given lines of a draft, which are cut before",
    "agent.answers.blocks.show_window": "it is given lines of a draft, which are cut before",
    "agent.diagrams.layout.laid_out": NO_TEXT,
    "agent.evidence.order.preferred": OF_PORTS,
    "agent.evidence.refs.lines_ref": "it only keeps what it is given",
    "agent.evidence.requests.decision": "it only keeps what it is given",
    "agent.evidence.requests.look_up": "it only keeps what it is given",
    "agent.llm.failures.ending": "it looks a word up in what a provider's client says",
    "agent.llm.failures.is_cut": "it looks a word up in what a provider's client says",
    "agent.llm.providers.recipe": "it is given the operator's choice of a model",
    "agent.outcomes.asking": "it only keeps what it is given",
    "agent.research.prompts.executor_messages": OF_PORTS,
    "agent.research.prompts.findings_text": OF_PORTS,
    "agent.research.prompts.with_results": "it only joins what it is given",
    "indexer.processes.start_git": "it starts a program, which bounds what it is told",
    "bot.access.is_listed": NO_TEXT,
    "bot.adapters.discord.connection.logged_in": OF_PORTS,
    "bot.adapters.discord.looks.bears": NO_TEXT,
    "bot.adapters.discord.looks.buttons_of": NO_TEXT,
    "bot.adapters.discord.slash.typed": "it looks a field up",
    "bot.adapters.discord.slash.used": "it looks a field up",
    "bot.adapters.slack.client.open_calls": OF_PORTS,
    "bot.adapters.discord.writings.words": "it is plain() over what a message says",
    "bot.adapters.slack.connections.open_sockets": OF_PORTS,
    "bot.adapters.slack.endpoint.slack_endpoint": OF_PORTS,
    "bot.adapters.slack.schema.is_well_formed": "it looks fields up",
    "bot.config_file.choose_config": "it is given the operator's paths",
    "agent.guard.evidence.mark_orders": "mark_text(), which calls it, is here",
    "agent.guard.hardening.note_flags": "it only keeps what it is given",
    "agent.guard.leaks.check_said": "says_instructions() and says_masked(), which it calls, are here",
    "indexer.complaints.too_much": "it only joins what it is given",
    "agent.research.calls.with_flags": "it only keeps what it is given",
    "agent.guard.model_folder.compute_checksum": "it reads a folder of the operator's",
    "agent.guard.model_folder.read_model_folder": "it reads a folder of the operator's",
    "indexer.attempts.count_deaths": "it reads a file of citebot's own",
    "indexer.attempts.note_attempt": "it writes a file of citebot's own",
    "indexer.parsers.frames.unpack_reply": "it reads what citebot's own parsers write, within bounds",
    "indexer.parsers.frames.unpack_request": "it reads what citebot itself writes to its parsers",
    "indexer.processes.find_program": "it looks a program up",
    "indexer.processes.start_program": "it starts a program",
    "indexer.storage.damaged_catalog": NO_TEXT,
    "bot.adapters.slack.heard.handle_of": NO_TEXT,
    "bot.adapters.slack.heard.key_of": NO_TEXT,
    "bot.adapters.slack.heard.place_in": NO_TEXT,
    "bot.adapters.slack.threads.messages": OF_PORTS,
    "bot.adapters.slack.tokens.misplaced": "it is given what the operator wrote into a variable",
    "bot.adapters.slack.whispers.place_of": NO_TEXT,
    "bot.chat.open_chat": OF_PORTS,
    "bot.cli.run": "it runs commands",
    "bot.descriptions.indexing": NO_TEXT,
    "bot.descriptions.read_at": NO_TEXT,
    "bot.descriptions.refreshed": NO_TEXT,
    "bot.disk_use.measured": "it reads folders",
    "bot.drafts.source": NO_TEXT,
    "bot.following.runs_of": NO_TEXT,
    "bot.following.sections_for": NO_TEXT,
    "bot.invocation.complain": "it prints",
    "bot.logs.announce": "it prints",
    "bot.logs.log_to_stderr": "it sets up the log",
    "bot.operations.open_operations": OF_PORTS,
    "bot.records.report_line": NO_TEXT,
    "bot.records.report_record": NO_TEXT,
    "bot.routing.asking.asking": NO_TEXT,
    "bot.routing.weighing.by_likelihood": NO_TEXT,
    "bot.web.served": OF_PORTS,
    "indexer.bags.build_bags": "it is given a parsed file, whose pieces are cut",
    "indexer.complaints.missing": "it only joins what it is given",
    "indexer.complaints.missing_file": "it only joins what it is given",
    "indexer.folders.remove_index": "it removes a folder",
    "indexer.grammars.parse": PARSES,
    "indexer.outline.find_entries": PARSES,
    "indexer.references.find_imports": PARSES,
    "indexer.references.find_references": PARSES,
    "indexer.symbols.make_symbols": PARSES,
    "indexer.embeddings.open_embedder": "it is given the operator's choice of a model",
    "indexer.globs.compile_globs": "globs are compiled one by one, those of more than 1,000 characters not at all",
    "indexer.langchain_providers.build": OF_PORTS,
    "indexer.patterns.compile_pattern": "the patterns are ours",
    "indexer.packing.unpack": "it unpacks what pack() made",
    "indexer.pipeline.content_key": "it joins what it is given and hashes it",
    "indexer.pipeline.embedding_input": "it only joins what it is given",
    "indexer.provenance.provenance": NO_TEXT,
    "indexer.ranks.ranked": OF_PORTS,
    "indexer.remotes.states.branch_gone": "it is given names that were cut",
    "indexer.remotes.states.local_error": "it is complaint_error, or a sentence of its own",
    "indexer.search.penalties": OF_PORTS,
    "indexer.search.rank": OF_PORTS,
    "indexer.search.read_question": OF_PORTS,
    "indexer.splitting.split_tree": PARSES,
    "indexer.tree.read_tree": OF_PORTS,
}
# Functions that by what they do take longer than others for a text; no less linear.
OBJECTS = "it makes an object, or several, of each few characters"
SECONDS_OF: dict[str, tuple[float, str]] = {
    "agent.answers.claims.read_claim": (0.5, OBJECTS),
    "agent.answers.statements.read_layout": (0.3, OBJECTS),
    "agent.answers.marks.marks": (0.5, OBJECTS),
    "agent.answers.marks.replace": (0.5, OBJECTS),
    "agent.answers.model_text.MarkMaker": (0.8, OBJECTS),
    "agent.answers.model_text.inert": (0.8, OBJECTS),
    "agent.guard.clauses.read_clauses": (0.5, OBJECTS),
    "agent.guard.leaks.says_instructions": (0.5, OBJECTS),
    "agent.guard.normalise.hidden_forms": (0.5, OBJECTS),
    "agent.guard.normalise.visible_line": (0.8, "each letter of another alphabet is looked up in Unicode's tables"),
    "agent.questions.mentions.find_mentions": (0.3, OBJECTS),
    "bot.markdown.blocks.fence_at": (0.5, OBJECTS),
    "bot.markdown.blocks.lines_of": (0.5, OBJECTS),
    "bot.markdown.safety.safe": (0.8, OBJECTS),
    "bot.markdown.splitting.split": (0.8, OBJECTS),
    "bot.paging.pages": (0.8, OBJECTS),
    "bot.paging.stable": (0.5, OBJECTS),
    "bot.routing.clues.clues_in": (0.5, OBJECTS),
    "indexer.calls.receivers.clues": (0.2, "it is called for two languages"),
    "indexer.calls.receivers.steps": (0.4, OBJECTS),
}

FILLINGS: dict[str, Callable[[str], object]] = {
    "str": identity,
    "str | None": identity,
    "Sequence[str]": lambda text: text.split("\n"),
    "Collection[str]": lambda text: text.split("\n"),
    "Iterable[str]": lambda text: text.split("\n"),
    "list[str]": lambda text: text.split("\n"),
    "frozenset[str]": lambda text: frozenset(text.split("\n")),
    "Mapping[str, str]": lambda text: {text[:50]: text},
    "bytes": str.encode,
    "int": lambda _: 100,
    "float": lambda _: 1.0,
    "bool": lambda _: False,
    "Redactor": lambda _: identity,
}


def public_functions() -> Iterator[tuple[str, Callable[..., object]]]:
    """The public functions that are given text and answer at once."""
    for path in sources():
        module = importlib.import_module(name_of(path).removesuffix(".py").removesuffix("/__init__").replace("/", "."))
        for name, value in vars(module).items():
            if name.startswith("_") or not inspect.isfunction(value) or value.__module__ != module.__name__:
                continue
            hints = [str(each.annotation) for each in inspect.signature(value).parameters.values()]
            is_given_text = any("str" in hint or hint in {"bytes", "Mapping[str, Any]"} for hint in hints)
            if is_given_text and not inspect.iscoroutinefunction(value):
                yield f"{module.__name__}.{name}", value


def filled(function: Callable[..., object]) -> Call | None:
    """A call that gives the text to every parameter; None where one of them takes no text."""
    required = [each for each in inspect.signature(function).parameters.values() if each.default is each.empty]
    fillings = {each.name: FILLINGS.get(str(each.annotation)) for each in required}
    if not all(fillings.values()):
        return None

    def call(text: str) -> object:
        positional = [
            fill(text) for each in required if each.kind is not each.KEYWORD_ONLY and (fill := fillings[each.name])
        ]
        keywords = {
            each.name: fill(text)
            for each in required
            if each.kind is each.KEYWORD_ONLY and (fill := fillings[each.name])
        }
        return function(*positional, **keywords)

    return wrap(call, IndexerError, ValueError)


def calls() -> dict[str, Call]:
    found = {name: call for name, function in public_functions() if (call := filled(function))}
    return {name: call for name, call in found.items() if name not in LEFT_OUT} | CASES


def measure(call: Call, text: str) -> float:
    gc.disable()  # it looks at everything that a process has, the tests' own things among it
    try:
        started = time.thread_time()
        result = call(text)
        if inspect.isgenerator(result):
            deque(result, maxlen=0)
        return time.thread_time() - started
    finally:
        gc.enable()


def count(text: str) -> int:
    found = 0
    for letter in text:
        found += letter == "a"
    return found


def measure_slowness() -> float:
    """How many times slower than usual this processor is at the moment; others may share it."""
    return max(1.0, min(measure(count, "a" * LENGTH) for _ in range(3)) / COUNTING)


def find_fault(name: str, call: Call, piece: str) -> str:
    """Say what is wrong with the times that a function takes; a machine may be busy for a while."""
    bound = SECONDS_OF.get(name, (SECONDS, ""))[0]
    best: dict[int, float] = {}
    for _ in range(4):
        for length in (LENGTH // 16, LENGTH // 4, LENGTH):
            if length == LENGTH // 4 and best[LENGTH // 16] < MEASURABLE / 16:
                continue  # even quadratic, the whole would be too short to be measured
            best[length] = min(measure(call, (piece * length)[:length]), best.get(length, bound * 100))
            if best[length] > bound and best[length] > bound * measure_slowness():
                break
        times = [seconds for _, seconds in sorted(best.items())]
        grows = any(after > max(MEASURABLE, GROWTH * before) for before, after in pairwise(times)) and len(times) == 3
        if not grows and LENGTH in best and (times[-1] <= bound or times[-1] <= bound * measure_slowness()):
            return ""
    return f"{piece!r} takes " + ", ".join(f"{each:.3f} s" for each in times)


@pytest.mark.parametrize("name", calls())
def test_long_texts_take_a_short_time_that_grows_with_their_length(name: str) -> None:
    call = calls()[name]

    assert [fault for piece in PIECES if (fault := find_fault(name, call, piece))] == []


def test_every_function_over_text_is_judged_or_left_out_with_a_reason() -> None:
    names = {name for name, _ in public_functions()}
    judged = {name for name, function in public_functions() if filled(function)} | CASES.keys()

    assert names - judged - LEFT_OUT.keys() == set(), "say in CASES how to call it, or in LEFT_OUT why not"
    assert LEFT_OUT.keys() - names == set()
    assert SECONDS_OF.keys() - judged == set()
