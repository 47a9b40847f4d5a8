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

from agent.answers.excerpts import QuestionWeights, find_best_window
from agent.answers.exhibits import PromptEvidence
from agent.answers.marks import CodeBlockScanner, replace_markers
from agent.answers.model_text import CitationParser
from agent.guard.leaks import has_masked_values
from agent.guard.masked import MaskedValues
from agent.llm.failures import map_provider_error
from agent.prompts import build_grading_prompt, build_preprocess_prompt, build_router_prompt, build_synthesis_prompt
from agent.questions.choices import resolve_selection
from agent.questions.follow_ups import Antecedent, resolve_references
from agent.questions.literals import Literal
from agent.research.calls import make_call_key, shorten_arguments
from agent.state import CitationRef, PastTurn
from bot.adapters.discord.text import to_plain_markdown as plain_discord
from bot.adapters.slack.text import has_mention as names_user
from bot.manifest import InvalidBackup, read_manifest
from bot.markdown.splitting import split_markdown
from bot.messages import MessageContent, ThreadMessage
from bot.paging import split_into_pages
from bot.records import to_json
from bot.routing.names import find_hinted, find_named, find_only_named
from bot.routing.signs import RepositoryProfile, map_aliases
from bot.surroundings import add_thread_context
from bot.webhooks.pushes import read_payload, read_pushes
from indexer.attributes import GitAttributes, list_attribute_files
from indexer.calls.receivers import find_type_hints, parse_result_type
from indexer.chunker import parse_file
from indexer.complaints import make_command_error, make_open_error
from indexer.documentation import DocumentationFinder
from indexer.errors import IndexerError
from indexer.grep import grep_texts
from indexer.languages import detect_language
from indexer.models import Location
from indexer.permalinks import make_permalink
from indexer.remotes.configured import RemoteRepository
from indexer.remotes.states import describe_redirect, make_fetch_error
from indexer.rules import judge_content
from indexer.windows import SizedLines, find_markdown_headings, find_rst_headings, split_sections
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


def turn(text: str) -> PastTurn:
    return PastTurn(
        question=text, answer=text, intent="", citations=[citation()], symbol=text, kind="", path="", repository="",
        commit="", asked_at=0.0,
    )  # fmt: skip


def exhibit(text: str) -> PromptEvidence:
    return PromptEvidence(number=1, location=Location(path="a.py", start_line=1, end_line=2), about=text, text=text)


def remote() -> RemoteRepository:
    return RemoteRepository(name="shop", url="https://git.example/team/shop.git", token=SecretStr("t"))


def emphasis() -> QuestionWeights:
    return QuestionWeights(terms=frozenset({"retri"}), literals=(Literal(text="no such file here", is_message=True),))


def masked_values() -> MaskedValues:
    """Values that were masked, as those of a turn that has read two secrets."""
    masked = MaskedValues()
    masked.watch(lambda text: text.replace("k3y-0f-0ne", "[REDACTED:secret]"))("a k3y-0f-0ne b")
    return masked


def signs() -> Mapping[str, RepositoryProfile]:
    return {name: RepositoryProfile(page=f"https://git.example/team/{name}") for name in ("shop", "web", "docs-site")}


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
    "agent.guard.leaks.has_masked_values": lambda text: has_masked_values(text, masked_values()),
    "agent.answers.excerpts.find_best_window": lambda text: find_best_window(text[:20_000].split("\n"), emphasis()),
    "agent.answers.marks.replace_markers": lambda text: replace_markers(text, [""] * text.count("[")),
    "agent.llm.failures.map_provider_error": lambda text: map_provider_error(
        ValueError(text), "google:m", "GOOGLE_API_KEY"
    ),
    "agent.prompts.build_synthesis_prompt": lambda text: build_synthesis_prompt(text, [exhibit(text)]),
    "agent.prompts.build_router_prompt": lambda text: build_router_prompt(
        question=text, tools=[], tree=text, searched=[text], found=[], results=text, better_query=""
    ),
    "agent.prompts.build_grading_prompt": lambda text: build_grading_prompt(text, [exhibit(text)], [text]),
    "agent.prompts.build_preprocess_prompt": lambda text: build_preprocess_prompt(text, [turn(text)]),
    "agent.questions.choices.resolve_selection": lambda text: resolve_selection("show me the second", [turn(text)]),
    "agent.questions.follow_ups.resolve_references": lambda text: resolve_references(
        text, Antecedent(symbol="a.b", kind="", path="a.py")
    ),
    "agent.research.calls.make_call_key": lambda text: make_call_key("read", {"path": text}, ""),
    "agent.research.calls.shorten_arguments": lambda text: shorten_arguments({"path": text}),
    "bot.adapters.discord.text.to_plain_markdown": lambda text: plain_discord(
        text, own=frozenset({1}), users={}, places={}
    ),
    "bot.adapters.slack.text.has_mention": lambda text: names_user(text, "U1"),
    "bot.markdown.splitting.split_markdown": lambda text: split_markdown(text, 2_000, utf16=True),
    "bot.paging.split_into_pages": lambda text: split_into_pages(
        MessageContent(text=text, status="", footer=""), 2_000, utf16=True, fixed=text[:500]
    ),
    "bot.records.to_json": lambda text: to_json({"text": text}),
    "bot.routing.names.find_named": lambda text: find_named(text, signs()),
    "bot.routing.names.find_only_named": lambda text: find_only_named(text, signs()),
    "bot.routing.names.find_hinted": lambda text: find_hinted(text, signs()),
    "bot.routing.signs.map_aliases": lambda text: map_aliases(
        {"shop": RepositoryProfile(page=f"https://a/{text}".replace("[", ""))}
    ),
    "bot.surroundings.add_thread_context": lambda text: add_thread_context(
        "What is this?", [ThreadMessage(id="1", author="a", text=text)], room=4_000
    ),
    "bot.webhooks.pushes.read_pushes": lambda text: read_pushes(
        "push", {"ref": text, "repository": {"full_name": text}}
    ),
    "indexer.calls.receivers.find_type_hints": lambda text: [
        *find_type_hints("a", text, "py"),
        *find_type_hints("a", text, "java"),
    ],
    "indexer.calls.receivers.parse_result_type": lambda text: [
        parse_result_type("a", text, each) for each in ("py", "java", "go")
    ],
    "indexer.complaints.make_open_error": lambda text: make_open_error(ROOT, f"dubious ownership {text}"),
    "indexer.complaints.make_command_error": lambda text: make_command_error(ROOT, text),
    "indexer.grep.grep_texts": lambda text: grep_texts([("a.py", text)], r"(\w+\s*)+x$", limit=10),
    "indexer.languages.detect_language": lambda text: (
        detect_language("a.h", text),
        detect_language(text, f"#!{text}"),
    ),
    "indexer.permalinks.make_permalink": lambda text: make_permalink(
        "https://git.example/a", "0" * 40, Location(path=text, start_line=1, end_line=1)
    ),
    "indexer.remotes.states.make_fetch_error": lambda text: make_fetch_error(remote(), text),
    "indexer.remotes.states.describe_redirect": lambda text: describe_redirect(remote(), text),
    "indexer.rules.judge_content": lambda text: judge_content("a.py", f"# generated {text}".encode()),
    # Classes, and what is read in pieces.
    "agent.answers.marks.CodeBlockScanner": lambda text: [
        CodeBlockScanner().take(line) for line in (text, *text.split("\n"))
    ],
    "agent.answers.model_text.CitationParser": lambda text: CitationParser([exhibit("")], identity).prose(text),
    "indexer.attributes.GitAttributes": lambda text: GitAttributes(
        {".gitattributes": f"{text} x\n{text[:2000]} linguist-vendored"}
    ).of(text),
    "indexer.attributes.list_attribute_files": lambda text: list_attribute_files([text.encode()]),
    "indexer.documentation.DocumentationFinder": lambda text: DocumentationFinder(
        f"{text}\nx".split("\n"), (), ()
    ).above(text.count("\n") + 1),
    "indexer.windows.split_sections": lambda text: deque(
        split_sections(SizedLines(text), lambda row: row % 7 == 0, 1500, 300), maxlen=0
    ),
    "indexer.windows.headings": lambda text: (
        find_markdown_headings(text.split("\n")),
        find_rst_headings(text.split("\n")),
    ),
    "indexer.chunker.plain": lambda text: parse_file("a.txt", text),
    "bot.manifest.read_manifest": wrap(lambda text: read_manifest(text.encode()), InvalidBackup),
    "bot.webhooks.pushes.json": wrap(lambda text: read_payload(text.encode(), "application/json"), ValueError),
}
# Not judged here, and why.
NO_TEXT = "it is given what citebot itself wrote"
OF_PORTS = "it asks other parts, whose own functions are here"
PARSES = "the parser of a grammar runs under a deadline of its own"
LEFT_OUT: dict[str, str] = {
    "agent.answers.spans.find_outside": "marks(), which calls it, is here",
    "agent.answers.blocks.quote_lines": "it is given lines of a draft, which are cut before",
    "agent.answers.blocks.quote_window": "it is given lines of a draft, which are cut before",
    "agent.diagrams.layout.lay_out": NO_TEXT,
    "agent.evidence.order.sort_definitions": OF_PORTS,
    "agent.evidence.refs.make_lines_ref": "it only keeps what it is given",
    "agent.evidence.requests.decide_retrieval": "it only keeps what it is given",
    "agent.evidence.requests.request_lookup": "it only keeps what it is given",
    "agent.llm.failures.find_bad_ending": "it looks a word up in what a provider's client says",
    "agent.llm.failures.is_truncated": "it looks a word up in what a provider's client says",
    "agent.llm.providers.parse_model_spec": "it is given the operator's choice of a model",
    "agent.outcomes.format_pause_question": "it only keeps what it is given",
    "agent.research.prompts.build_executor_prompt": OF_PORTS,
    "agent.research.prompts.format_findings": OF_PORTS,
    "agent.research.prompts.insert_results": "it only joins what it is given",
    "indexer.processes.start_git": "it starts a program, which bounds what it is told",
    "bot.access.is_listed": NO_TEXT,
    "bot.adapters.discord.connection.log_in": OF_PORTS,
    "bot.adapters.discord.looks.has_nonce": NO_TEXT,
    "bot.adapters.discord.looks.render_buttons": NO_TEXT,
    "bot.adapters.discord.slash.read_typed_text": "it looks a field up",
    "bot.adapters.discord.slash.parse_used_command": "it looks a field up",
    "bot.adapters.slack.client.open_client": OF_PORTS,
    "bot.adapters.discord.writings.read_text": "it is plain() over what a message says",
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
    "indexer.storage.make_damaged_catalog_error": NO_TEXT,
    "bot.adapters.slack.heard.make_message_handle": NO_TEXT,
    "bot.adapters.slack.heard.make_message_key": NO_TEXT,
    "bot.adapters.slack.heard.make_place": NO_TEXT,
    "bot.adapters.slack.threads.read_messages": OF_PORTS,
    "bot.adapters.slack.tokens.check_token_shape": "it is given what the operator wrote into a variable",
    "bot.adapters.slack.whispers.make_ephemeral_place": NO_TEXT,
    "bot.chat.open_conversations": OF_PORTS,
    "bot.cli.run": "it runs commands",
    "bot.descriptions.describe_progress": NO_TEXT,
    "bot.descriptions.describe_commit_read": NO_TEXT,
    "bot.descriptions.describe_refresh": NO_TEXT,
    "bot.disk_use.measure_disk_usage": "it reads folders",
    "bot.drafts.format_source": NO_TEXT,
    "bot.following.plan_runs": NO_TEXT,
    "bot.following.make_sections": NO_TEXT,
    "bot.invocation.print_error": "it prints",
    "bot.logs.log_always": "it prints",
    "bot.logs.log_to_stderr": "it sets up the log",
    "bot.operations.open_monitoring": OF_PORTS,
    "bot.records.format_refresh_report": NO_TEXT,
    "bot.records.report_to_record": NO_TEXT,
    "bot.routing.asking.make_clarifying_question": NO_TEXT,
    "bot.routing.weighing.sort_by_likelihood": NO_TEXT,
    "bot.web.run_http_server": OF_PORTS,
    "indexer.bags.build_bags": "it is given a parsed file, whose pieces are cut",
    "indexer.complaints.make_missing_object_error": "it only joins what it is given",
    "indexer.complaints.make_missing_file_error": "it only joins what it is given",
    "indexer.folders.remove_index": "it removes a folder",
    "indexer.grammars.parse_tree": PARSES,
    "indexer.outline.find_entries": PARSES,
    "indexer.references.find_imports": PARSES,
    "indexer.references.find_references": PARSES,
    "indexer.symbols.make_symbols": PARSES,
    "indexer.embeddings.open_embedder": "it is given the operator's choice of a model",
    "indexer.globs.compile_globs": "globs are compiled one by one, those of more than 1,000 characters not at all",
    "indexer.langchain_providers.build_embeddings": OF_PORTS,
    "indexer.patterns.compile_pattern": "the patterns are ours",
    "indexer.packing.unpack": "it unpacks what pack() made",
    "indexer.pipeline.make_content_key": "it joins what it is given and hashes it",
    "indexer.pipeline.make_embedding_input": "it only joins what it is given",
    "indexer.provenance.make_fingerprint": NO_TEXT,
    "indexer.ranks.score_centrality": OF_PORTS,
    "indexer.remotes.states.make_branch_gone_error": "it is given names that were cut",
    "indexer.remotes.states.make_clone_error": "it is complaint_error, or a sentence of its own",
    "indexer.search.make_penalties": OF_PORTS,
    "indexer.search.rank_chunks": OF_PORTS,
    "indexer.search.read_question": OF_PORTS,
    "indexer.splitting.split_tree": PARSES,
    "indexer.tree.read_tree": OF_PORTS,
}
# Functions that by what they do take longer than others for a text; no less linear.
OBJECTS = "it makes an object, or several, of each few characters"
SECONDS_OF: dict[str, tuple[float, str]] = {
    "agent.answers.claims.read_claim": (0.5, OBJECTS),
    "agent.answers.statements.read_layout": (0.3, OBJECTS),
    "agent.answers.marks.find_markers": (0.5, OBJECTS),
    "agent.answers.marks.replace_markers": (0.5, OBJECTS),
    "agent.answers.model_text.CitationParser": (0.8, OBJECTS),
    "agent.answers.model_text.clean_model_sentence": (0.8, OBJECTS),
    "agent.guard.clauses.read_clauses": (0.5, OBJECTS),
    "agent.guard.leaks.has_leaked_instructions": (0.5, OBJECTS),
    "agent.guard.normalise.find_hidden_text": (0.5, OBJECTS),
    "agent.guard.normalise.visible_line": (0.8, "each letter of another alphabet is looked up in Unicode's tables"),
    "agent.questions.mentions.find_mentions": (0.3, OBJECTS),
    "bot.markdown.blocks.find_fence": (0.5, OBJECTS),
    "bot.markdown.blocks.read_lines": (0.5, OBJECTS),
    "bot.markdown.safety.neutralize": (0.8, OBJECTS),
    "bot.markdown.splitting.split_markdown": (0.8, OBJECTS),
    "bot.paging.split_into_pages": (0.8, OBJECTS),
    "bot.paging.cut_to_stable": (0.5, OBJECTS),
    "bot.routing.clues.find_hints": (0.5, OBJECTS),
    "indexer.calls.receivers.find_type_hints": (0.2, "it is called for two languages"),
    "indexer.calls.receivers.split_chain": (0.4, OBJECTS),
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
