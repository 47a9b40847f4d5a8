"""Every public function over text takes time that grows with the text alone, whatever somebody puts into it."""

from __future__ import annotations

import dataclasses
import gc
import importlib
import inspect
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise

import pytest
from langchain_core.messages import HumanMessage
from pydantic import SecretStr

from agent.answering.attached_images import show_images
from agent.answers.excerpts import QuestionWeights, find_best_window
from agent.guard.leak_check import has_masked_values
from agent.llm.provider_errors import map_provider_error
from agent.nodes.input_preprocessor import complete_from_attachments
from agent.ports import Citation
from agent.prompts.answer_prompts import (
    build_grading_prompt,
    build_preprocess_prompt,
    build_router_prompt,
    build_synthesis_prompt,
)
from agent.prompts.evidence_lines import find_core
from agent.prompts.model_text import CitationParser
from agent.prompts.numbered_evidence import format_cited, list_cited
from agent.prompts.prompt_evidence import PromptEvidence
from agent.prompts.turn_tools import ASK_PERSON, read_turn_call
from agent.questions.attachments import AttachedText, make_excerpts
from agent.questions.follow_ups import Antecedent, find_continuation, resolve_references, resolve_selection
from agent.questions.literals import Literal
from agent.questions.thread_subject import find_thread_antecedent, find_thread_subject
from agent.sandbox.patch import FileChange, FileVersion, format_change
from agent.state import CitationRef, PastTurn
from agent.text.citation_markers import replace_markers
from agent.text.code_fences import CodeBlockScanner
from agent.text.masked_values import MaskedValues
from agent.text.message_match import MessageMatch, is_confident_match
from agent.tools.tool_calls import make_call_key, shorten_arguments
from bot.adapters.discord.rendering import to_plain_markdown as plain_discord
from bot.adapters.slack.rendering import has_mention as names_user
from bot.adapters.terminal.output import choose_line, describe_callee, describe_caller, describe_hit, to_json
from bot.conversations.turns.attached_files import UnreadableFile
from bot.conversations.turns.thread_context import quote_thread
from bot.errors import BotError
from bot.maintenance.backup_archive import InvalidBackup, read_manifest
from bot.markdown.splitting import split_markdown
from bot.messages import Attachment, MessageContent, ThreadMessage
from bot.replies.citation_links import link_marks
from bot.replies.paging import show_without_file, split_into_pages
from bot.repositories.names import (
    RepositoryProfile,
    find_hinted,
    find_named,
    find_only_named,
    map_aliases,
    split_pinned_name,
)
from bot.repositories.ref_mentions import find_ref_mentions, remove_mention
from bot.surfaces.api.completion_messages import ChatTurn, CompletionRequest, list_annotations, read_messages
from bot.surfaces.api.problems import RequestProblem
from bot.surfaces.api.request_reading import parse_json
from bot.surfaces.described_results import describe_hit as describe_found
from bot.surfaces.principals import Tokens, find_bearer, make_local_principal
from bot.surfaces.questions import name_conversation
from bot.webhooks.pushes import read_payload, read_pushes
from indexer.calls.receivers import find_type_hints, parse_result_type
from indexer.errors import IndexerError
from indexer.generations.grep import grep_texts
from indexer.git.file_selection import judge_content
from indexer.git.git_errors import make_command_error, make_open_error
from indexer.git.gitattributes import GitAttributes, list_attribute_files
from indexer.git.permalinks import make_permalink
from indexer.parsing.chunking import SizedLines, find_markdown_headings, find_rst_headings, split_sections
from indexer.parsing.docstrings import DocumentationFinder
from indexer.parsing.file_parser import parse_file
from indexer.parsing.headings import find_headings, name_sections, split_versions
from indexer.parsing.registrations.finder import find_in_text
from indexer.remotes.fetch_errors import describe_redirect, make_fetch_error
from indexer.remotes.ref_list import fits_branch
from indexer.remotes.remote_repository import RemoteRepository
from indexer.text.languages import detect_language
from indexer.types import Location
from tests.fakes.parts import CALL, HIT
from tests.fakes.platform import ABLE
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


def link() -> Citation:
    """A citation that a mark can lead to."""
    return Citation(mark=1, path="a.py", start_line=1, end_line=2, commit="", url="https://a.example/a.py#L1")


def turn(text: str) -> PastTurn:
    return PastTurn(
        question=text, answer=text, intent="", citations=[citation()], symbol=text, kind="", path="", repository="",
        commit="", asked_at=0.0,
    )  # fmt: skip


def exhibit(text: str) -> PromptEvidence:
    return PromptEvidence(number=1, location=Location(path="a.py", start_line=1, end_line=2), about=text, text=text)


def remote() -> RemoteRepository:
    return RemoteRepository(name="shop", url="https://git.example/team/shop.git", token=SecretStr("t"))


def make_version(text: str) -> FileVersion:
    return FileVersion(mode="100644", content=text.encode(errors="surrogatepass"))


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
    # The names of branches come from strangers, the patterns from the operator.
    "indexer.remotes.ref_list.fits_branch": lambda text: fits_branch(text, ("release-*", "v[0-9]*.x")),
    "agent.sandbox.patch.format_change": lambda text: format_change(
        FileChange(path=b"a", old=make_version(text), new=make_version(text[::-1])), "0" * 40
    ),
    "agent.prompts.turn_tools.read_turn_call": lambda text: read_turn_call(
        [{"name": text, "args": {}}, {"name": ASK_PERSON, "args": {"question": text}}], {}
    ),
    "agent.prompts.numbered_evidence.list_cited": lambda text: list_cited(text, [citation()]),
    "agent.prompts.numbered_evidence.format_cited": lambda text: format_cited(text, [citation()]),
    "agent.text.message_match.is_confident_match": lambda text: is_confident_match(text, MessageMatch(share=0.6)),
    "agent.guard.leak_check.has_masked_values": lambda text: has_masked_values(text, masked_values()),
    "agent.answers.excerpts.find_best_window": lambda text: find_best_window(text[:20_000].split("\n"), emphasis()),
    "agent.text.citation_markers.replace_markers": lambda text: replace_markers(text, [""] * text.count("[")),
    "agent.llm.provider_errors.map_provider_error": lambda text: map_provider_error(
        ValueError(text), "google:m", "GOOGLE_API_KEY"
    ),
    "agent.prompts.answer_prompts.build_synthesis_prompt": lambda text: build_synthesis_prompt(text, [exhibit(text)]),
    "agent.prompts.answer_prompts.build_router_prompt": lambda text: build_router_prompt(
        question=text, tools=[], tree=text, searched=[text], found=[], results=text, better_query=""
    ),
    "agent.prompts.answer_prompts.build_grading_prompt": lambda text: build_grading_prompt(
        text, [exhibit(text)], [text]
    ),
    "agent.prompts.answer_prompts.build_preprocess_prompt": lambda text: build_preprocess_prompt(text, [turn(text)]),
    "agent.questions.follow_ups.resolve_selection": lambda text: resolve_selection("show me the second", [turn(text)]),
    "agent.questions.follow_ups.find_continuation": lambda text: find_continuation(text, [turn("more")]),
    "agent.questions.follow_ups.resolve_references": lambda text: resolve_references(
        text, Antecedent(symbol="a.b", kind="", path="a.py")
    ),
    "agent.tools.tool_calls.make_call_key": lambda text: make_call_key("read", {"path": text}, ""),
    "agent.tools.tool_calls.shorten_arguments": lambda text: shorten_arguments({"path": text}),
    "bot.adapters.discord.rendering.to_plain_markdown": lambda text: plain_discord(
        text, own=frozenset({1}), users={}, places={}
    ),
    "bot.adapters.slack.rendering.has_mention": lambda text: names_user(text, "U1"),
    "bot.markdown.splitting.split_markdown": lambda text: split_markdown(text, 2_000, utf16=True),
    "bot.replies.paging.show_without_file": lambda text: show_without_file(
        MessageContent(file=Attachment(name="a", text=text, language="diff")), "why", ABLE
    ),
    "bot.replies.paging.split_into_pages": lambda text: split_into_pages(
        MessageContent(text=text, status="", footer=""), 2_000, utf16=True, fixed=text[:500]
    ),
    "bot.adapters.terminal.output.to_json": lambda text: to_json({"text": text}),
    "bot.adapters.terminal.output.choose_line": lambda text: choose_line(dataclasses.replace(HIT, text=text), text),
    "bot.adapters.terminal.output.describe_hit": lambda text: describe_hit(dataclasses.replace(HIT, text=text), text),
    "bot.adapters.terminal.output.describe_caller": lambda text: describe_caller(CALL, text),
    "bot.adapters.terminal.output.describe_callee": lambda text: describe_callee(CALL, text),
    "bot.repositories.ref_mentions.find_ref_mentions": lambda text: [
        remove_mention(text, mention) for mention in find_ref_mentions(text, "https://git.example/a")
    ],
    "bot.repositories.names.split_pinned_name": split_pinned_name,
    "bot.repositories.names.find_named": lambda text: find_named(text, signs()),
    "bot.repositories.names.find_only_named": lambda text: find_only_named(text, signs()),
    "bot.repositories.names.find_hinted": lambda text: find_hinted(text, signs()),
    "bot.repositories.names.map_aliases": lambda text: map_aliases(
        {"shop": RepositoryProfile(page=f"https://a/{text}".replace("[", ""))}
    ),
    "bot.replies.citation_links.link_marks": lambda text: link_marks(text, [link()], ("a.example",)),
    "agent.questions.thread_subject.find_thread_antecedent": lambda text: find_thread_antecedent([text]),
    "agent.nodes.input_preprocessor.complete_from_attachments": lambda text: complete_from_attachments(
        "why?", make_excerpts([AttachedText(name="a.log", text=text)])
    ),
    "agent.answering.attached_images.show_images": lambda text: show_images(HumanMessage(text), ["a.png"], {}),
    "agent.questions.thread_subject.find_thread_subject": lambda text: find_thread_subject([text]),
    "bot.conversations.turns.thread_context.quote_thread": lambda text: quote_thread(
        [ThreadMessage(id="1", author="a", text=text)], room=4_000
    ),
    "bot.surfaces.api.completion_messages.read_messages": lambda text: read_messages(
        [ChatTurn(role="user", content=text), ChatTurn(role="user", content="what?")], str
    ),
    "bot.surfaces.api.completion_messages.list_annotations": lambda text: list_annotations(text, []),
    "bot.surfaces.api.request_reading.parse_json": wrap(
        lambda text: parse_json(text.encode(errors="replace"), CompletionRequest), RequestProblem
    ),
    "bot.surfaces.described_results.describe_hit": lambda text: describe_found(
        dataclasses.replace(HIT, text=text), text, None, str
    ),
    "bot.surfaces.principals.find_bearer": lambda text: find_bearer([f"Bearer {text}"], Tokens(())),
    "bot.surfaces.questions.name_conversation": lambda text: name_conversation("mcp", make_local_principal(), text),
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
    "indexer.git.git_errors.make_open_error": lambda text: make_open_error(ROOT, f"dubious ownership {text}"),
    "indexer.git.git_errors.make_command_error": lambda text: make_command_error(ROOT, text),
    "indexer.generations.grep.grep_texts": lambda text: grep_texts([("a.py", text)], r"(\w+\s*)+x$", limit=10),
    "indexer.text.languages.detect_language": lambda text: (
        detect_language("a.h", text),
        detect_language(text, f"#!{text}"),
    ),
    "indexer.git.permalinks.make_permalink": lambda text: make_permalink(
        "https://git.example/a", "0" * 40, Location(path=text, start_line=1, end_line=1)
    ),
    "indexer.remotes.fetch_errors.make_fetch_error": lambda text: make_fetch_error(remote(), text),
    "indexer.remotes.fetch_errors.describe_redirect": lambda text: describe_redirect(remote(), text),
    "indexer.git.file_selection.judge_content": lambda text: judge_content("a.py", f"# generated {text}".encode()),
    # Classes, and what is read in pieces.
    "agent.text.code_fences.CodeBlockScanner": lambda text: [
        CodeBlockScanner().take(line) for line in (text, *text.split("\n"))
    ],
    "agent.prompts.evidence_lines.find_core": lambda text: find_core(
        text.split("\n"), [frozenset(line.split()[:3]) for line in text.split("\n")], 4_000
    ),
    "agent.prompts.model_text.CitationParser": lambda text: CitationParser([exhibit("")], identity).prose(text),
    "indexer.git.gitattributes.GitAttributes": lambda text: GitAttributes(
        {".gitattributes": f"{text} x\n{text[:2000]} linguist-vendored"}
    ).of(text),
    "indexer.git.gitattributes.list_attribute_files": lambda text: list_attribute_files([text.encode()]),
    "indexer.parsing.docstrings.DocumentationFinder": lambda text: DocumentationFinder(
        f"{text}\nx".split("\n"), (), ()
    ).above(text.count("\n") + 1),
    "indexer.parsing.chunking.split_sections": lambda text: deque(
        split_sections(SizedLines(text), lambda row: row % 7 == 0, 1500, 300), maxlen=0
    ),
    "indexer.parsing.headings.find_headings": lambda text: [
        name_sections(find_headings(language, text.split("\n")), [(row, row + 9) for row in range(0, 1000, 10)])
        for language in ("markdown", "rst")
    ],
    "indexer.parsing.headings.split_versions": lambda text: deque(
        split_versions("text", SizedLines(text), 1500) or (), maxlen=0
    ),
    "indexer.parsing.chunking.headings": lambda text: (
        find_markdown_headings(text.split("\n")),
        find_rst_headings(text.split("\n")),
    ),
    "indexer.parsing.file_parser.plain": lambda text: parse_file("a.txt", text),
    "indexer.parsing.registrations.finder.find_in_text": lambda text: (
        find_in_text("a.md", "markdown", f"# Options\n\n{text}", f"# Options\n\n{text}".split("\n")),
        find_in_text("a.rst", "rst", text, text.split("\n")),
        find_in_text("a.prisma", "text", text, text.split("\n")),
    ),
    "bot.maintenance.backup_archive.read_manifest": wrap(lambda text: read_manifest(text.encode()), InvalidBackup),
    "bot.webhooks.pushes.json": wrap(lambda text: read_payload(text.encode(), "application/json"), ValueError),
}
# Not judged here, and why.
NO_TEXT = "it is given what citebot itself wrote"
OF_PORTS = "it asks other parts, whose own functions are here"
OF_INDEX = "it puts what the index has found into other values, whose lines are cut by functions that are here"
PARSES = "the parser of a grammar runs under a deadline of its own"
LEFT_OUT: dict[str, str] = {
    "agent.nodes.conversation_memory.make_remembered_turn": "it cuts what it is given",
    "agent.questions.follow_ups.find_run_turn": "it reads no question that is longer than a line",
    "bot.surfaces.api.completion_messages.format_tail": "it joins the few places that an answer cites",
    "bot.jobs.notifications.listen": "it waits for Postgres",
    "bot.pictures.dot_layout.lay_out_by_dot": "another program lays out, under a limit of time",
    "bot.drawings.drawing_requests.choose_whole": "it compares names that parse_drawing has cut",
    "bot.pictures.line_reduction.order_boxes": NO_TEXT,
    "bot.pictures.placed_flow.place_upright": NO_TEXT,
    "bot.surfaces.web.web_surface.make_web_options": "it takes settings of the operator",
    "bot.surfaces.api.openapi.describe_api": NO_TEXT,
    "indexer.diffs.changed_files.list_differences": "git compares, under a limit of time",
    "indexer.diffs.common_ground.find_common_ground": "git compares, under a limit of time",
    "indexer.diffs.masked_file.read_file_at": "it reads one file, of a bounded size",
    "bot.surfaces.described_results.describe_call": OF_INDEX,
    "bot.surfaces.described_results.describe_symbol": OF_INDEX,
    "bot.surfaces.described_results.gather_calls": OF_INDEX,
    "bot.surfaces.described_results.keep_below": OF_INDEX,
    "bot.surfaces.described_results.list_folder": OF_INDEX,
    "bot.surfaces.local_core.open_local_core": "it opens repositories",
    "bot.surfaces.mcp.mcp_endpoint.check_caller": "the server bounds the headers of a request",
    "bot.surfaces.api.problems.refuse": NO_TEXT,
    "agent.goals.goal_prompts.build_beginning": "it fences what a check says, cut to a few thousand characters",
    "agent.goals.workspace.open_workspace": "it makes folders",
    "agent.sandbox.box_folders.open_folders": "it makes folders",
    "agent.sandbox.environment.make_variables": NO_TEXT,
    "agent.persistence.migrations.run_statement": "it is given the SQL of the package",
    "indexer.parser_pool.worker.serve_requests": "it passes on what it is given",
    "indexer.store.chroma_client.open_server_client": "it connects to the address that the operator has set",
    "indexer.subprocesses.start_editor": "it starts a program",
    "indexer.segments.manifest_store.decode_refs": "it is given what was written into the store of manifests",
    "indexer.segments.manifest_store.decode_status": "it is given what was written into the store of manifests",
    "indexer.segments.listing.unpack_block": "it unpacks no more bytes than a block has",
    "indexer.segments.opened_generation.check_provenance": "it looks at how a text begins",
    "bot.repositories.segments.open_segments": "it is given the address that the operator has set",
    "indexer.segments.publisher.hold_pin": "it is given an id",
    "indexer.git.commit_messages.read_commit_messages": "it is given names of commits",
    "indexer.git.tags.match_tag": "it is given names of at most 200 characters",
    "indexer.refs.repository_refs.describe_unknown": "it only keeps what it is given",
    "bot.repositories.ref_mentions.remove_mention": "find_ref_mentions(), which is here, is judged with it",
    "bot.conversations.descriptions.describe_ref_read": "it only joins what it is given",
    "bot.access.find_manners": "it looks a channel up in the table of the operator",
    "agent.text.code_spans.find_outside": "find_markers(), which calls it, is here",
    "agent.answers.answer_parts.quote_lines": "it is given lines of a draft, which are cut before",
    "agent.answers.answer_parts.format_related": OF_PORTS,
    "agent.answers.passages.write_related": OF_PORTS,
    "agent.kinds.examples.find_family": "it is given the listing of the files",
    "agent.kinds.outlines.describe_folders": "it only joins what it is given",
    "indexer.generations.repository_facts.describe_repository": "find_introduction(), which it calls, is here",
    "bot.pictures.layered_layout.lay_out": NO_TEXT,
    "agent.evidence.refs.sort_definitions": OF_PORTS,
    "agent.repositories.labels.make_labels": "it is given the names that the operator chose",
    "agent.repositories.labels.add_label": OF_PORTS,
    "agent.repositories.labels.label_ref": OF_PORTS,
    "agent.repositories.labels.label_retrieved": OF_PORTS,
    "agent.repositories.joined_code.list_homes": OF_PORTS,
    "agent.repositories.labels.unlabel_ref": OF_PORTS,
    "agent.repositories.merging.merge_hits": "find_content_terms() and match_terms(), which it calls, are here",
    "agent.repositories.merging.weigh_matches": "it is given the terms of a question, which are few",
    "agent.repositories.joined_code.place_path": OF_PORTS,
    "agent.kinds.listing.narrowing.make_entry_ref": "it only keeps what it is given",
    "agent.kinds.listing.narrowing.narrow_entries": "it is given entries, whose texts were cut",
    "agent.kinds.listing.file_groups.find_files": "it is given the listing of the files",
    "agent.kinds.listing.file_groups.find_files_of_form": "it is given the listing of the files",
    "agent.kinds.listing.file_groups.find_parts": "it is given the listing of the files",
    "agent.kinds.listing.file_groups.find_subprojects": "it is given the listing of the files",
    "agent.kinds.listing.group_lookup.name_group": "it only joins the parts of a question of 300 characters",
    "agent.kinds.listing.narrowing.count_meanings": "match_terms() and split_words(), which it calls, are here",
    "agent.kinds.listing.narrowing.list_meanings": "it is given the words of a question",
    "agent.kinds.listing.narrowing.narrow_to_path": "it is given entries, and a question of 300 characters",
    "agent.kinds.listing.narrowing.order_by_kind": "it sorts what it is given",
    "agent.evidence.refs.make_lines_ref": "it only keeps what it is given",
    "agent.evidence.request_builders.decide_retrieval": "it only keeps what it is given",
    "agent.evidence.request_builders.request_lookup": "it only keeps what it is given",
    "agent.history.commit_refs.make_commit_ref": "it only keeps what it is given",
    "agent.history.commit_refs.count_touched": "it counts the paths of commits, which are bounded where git is read",
    "agent.evidence.request_builders.request_kind": "it only keeps what it is given",
    "agent.llm.provider_errors.find_bad_ending": "it looks a word up in what a provider's client says",
    "agent.llm.provider_errors.is_truncated": "it looks a word up in what a provider's client says",
    "agent.llm.providers.parse_model_spec": "it is given the operator's choice of a model",
    "agent.runs.turn_answers.format_pause_question": "it only keeps what it is given",
    "agent.prompts.research_prompts.build_executor_prompt": OF_PORTS,
    "agent.prompts.research_prompts.format_findings": OF_PORTS,
    "agent.prompts.evidence_lines.plan_evidence": "it is given what the index said of places",
    "agent.prompts.evidence_lines.choose_lines": "find_header() and find_core(), which it calls, are here",
    "agent.prompts.research_prompts.find_fitting_results": "it only counts what it is given",
    "agent.prompts.research_prompts.insert_results": "it only joins what it is given",
    "indexer.subprocesses.start_git": "it starts a program, which bounds what it is told",
    "bot.access.is_listed": NO_TEXT,
    "bot.adapters.discord.connection.log_in": OF_PORTS,
    "bot.adapters.discord.rendering.has_nonce": NO_TEXT,
    "bot.adapters.discord.rendering.render_buttons": NO_TEXT,
    "bot.adapters.discord.parsing.read_typed_text": "it looks a field up",
    "bot.adapters.discord.parsing.parse_used_command": "it looks a field up",
    "bot.adapters.slack.client.open_client": OF_PORTS,
    "bot.adapters.discord.rendering.read_text": "it is plain() over what a message says",
    "bot.adapters.slack.connection.open_sockets": OF_PORTS,
    "bot.adapters.slack.endpoint.make_endpoint": OF_PORTS,
    "bot.adapters.slack.schema.is_well_formed": "it looks fields up",
    "bot.config_file.choose_config": "it is given the operator's paths",
    "agent.guard.evidence_check.mark_orders": "mark_text(), which calls it, is here",
    "agent.guard.approval.list_unapproved_tools": OF_PORTS,
    "agent.guard.reading_tools.note_flags": "it only keeps what it is given",
    "agent.guard.leak_check.check_leaks": "says_instructions() and says_masked(), which it calls, are here",
    "indexer.git.git_errors.make_too_large_error": "it only joins what it is given",
    "agent.tools.tool_calls.add_flags": "it only keeps what it is given",
    "agent.guard.classifier.model_folder.compute_checksum": "it reads a folder of the operator's",
    "agent.guard.classifier.model_folder.read_model_folder": "it reads a folder of the operator's",
    "indexer.store.refresh_attempts.count_deaths": "it reads a file of citebot's own",
    "indexer.store.refresh_attempts.note_attempt": "it writes a file of citebot's own",
    "indexer.parser_pool.wire_format.unpack_reply": "it reads what citebot's own parsers write, within bounds",
    "indexer.parser_pool.wire_format.unpack_request": "it reads what citebot itself writes to its parsers",
    "indexer.subprocesses.find_program": "it looks a program up",
    "indexer.subprocesses.start_program": "it starts a program",
    "indexer.store.data_folder.make_damaged_catalog_error": NO_TEXT,
    "bot.adapters.slack.parsing.make_message_handle": NO_TEXT,
    "bot.adapters.slack.parsing.make_message_key": NO_TEXT,
    "bot.adapters.slack.parsing.make_place": NO_TEXT,
    "bot.adapters.slack.channels.read_messages": OF_PORTS,
    "bot.adapters.slack.credentials.check_token_shape": "it is given what the operator wrote into a variable",
    "bot.adapters.slack.ephemeral.make_ephemeral_place": NO_TEXT,
    "bot.conversations.assembly.open_conversations": OF_PORTS,
    "bot.cli.main.run": "it runs commands",
    "bot.app.open_joint_assistant": "it only opens what it is given",
    "bot.conversations.descriptions.describe_progress": NO_TEXT,
    "bot.conversations.descriptions.describe_commit_read": NO_TEXT,
    "bot.conversations.descriptions.describe_refresh": NO_TEXT,
    "bot.maintenance.disk_usage.measure_disk_usage": "it reads folders",
    "bot.replies.citation_links.find_chat_link": NO_TEXT,
    "bot.conversations.goal_turns.find_wanted_goal": "parse_goal_request(), which it calls, is here",
    "bot.replies.goal_content.make_goal_proposal": "neutralize(), which it calls, is here",
    "bot.cli.context.print_error": "it prints",
    "bot.cli.context.complete_repository": "it is given what the person types at a shell",
    "bot.cli.target.complete_names": "as above",
    "bot.cli.target.choose_table": "as above",
    "bot.cli.target.choose_tables": "as above",
    "bot.cli.target.narrow_settings": "as above",
    "bot.monitoring.logs.log_always": "it prints",
    "bot.monitoring.logs.log_to_stderr": "it sets up the log",
    "bot.serving.http_server.open_monitoring": OF_PORTS,
    "bot.adapters.terminal.output.format_refresh_report": NO_TEXT,
    "bot.adapters.terminal.banner.format_banner": NO_TEXT,
    "bot.adapters.terminal.last_answer.make_editor_arguments": "it is given the person's own choice of an editor",
    "bot.adapters.terminal.output.report_to_record": NO_TEXT,
    "bot.repositories.choice.make_clarifying_question": NO_TEXT,
    "bot.repositories.hints.sort_by_likelihood": NO_TEXT,
    "bot.serving.http_server.run_http_server": OF_PORTS,
    "bot.serving.cluster.open_cluster": OF_PORTS,
    "bot.jobs.queue_worker.run_queue_worker": OF_PORTS,
    "indexer.search.token_bags.build_bags": "it is given a parsed file, whose pieces are cut",
    "indexer.git.git_errors.make_missing_object_error": "it only joins what it is given",
    "indexer.git.git_errors.make_missing_file_error": "it only joins what it is given",
    "indexer.store.vector_place.remove_index": "it removes a folder",
    "indexer.parsing.grammars.parse_tree": PARSES,
    "indexer.parsing.outline.find_entries": PARSES,
    "indexer.generations.mounted_routes.mount_routes": OF_PORTS,
    "indexer.parsing.registrations.command_readers.read_inherited": PARSES,
    "indexer.parsing.registrations.finder.find_registrations": PARSES,
    "indexer.parsing.registrations.invocations.find_literals": PARSES,
    "indexer.parsing.registrations.invocations.read_code": PARSES,
    "indexer.parsing.registrations.invocations.read_comment_above": PARSES,
    "indexer.parsing.registrations.invocations.read_definition_name": PARSES,
    "indexer.parsing.registrations.invocations.read_invocation": PARSES,
    "indexer.parsing.registrations.invocations.read_literal": PARSES,
    "indexer.parsing.registrations.invocations.read_name": PARSES,
    "indexer.parsing.registrations.invocations.read_object": PARSES,
    "indexer.parsing.registrations.invocations.read_pair": PARSES,
    "indexer.parsing.registrations.route_groups.find_class_prefix": PARSES,
    "indexer.parsing.registrations.route_groups.find_enclosing_prefix": PARSES,
    "indexer.parsing.registrations.documents.find_documented_options": "find_in_text(), which calls it, is here",
    "indexer.parsing.references.find_imports": PARSES,
    "indexer.parsing.references.find_references": PARSES,
    "indexer.parsing.outline.make_symbols": PARSES,
    "indexer.embedding.factory.open_embedder": "it is given the operator's choice of a model",
    "indexer.text.globs.compile_globs": "globs are compiled one by one, those of more than 1,000 characters not at all",
    "indexer.embedding.langchain_providers.build_embeddings": OF_PORTS,
    "indexer.text.linear_patterns.compile_pattern": "the patterns are ours",
    "indexer.text.decoding.unpack": "it unpacks what pack() made",
    "indexer.generations.pipeline.make_content_key": "it joins what it is given and hashes it",
    "indexer.generations.pipeline.make_embedding_input": "it only joins what it is given",
    "indexer.store.fingerprint.make_fingerprint": NO_TEXT,
    "indexer.search.centrality.score_centrality": OF_PORTS,
    "indexer.remotes.fetch_errors.make_branch_gone_error": "it is given names that were cut",
    "indexer.remotes.fetch_errors.make_clone_error": "it is complaint_error, or a sentence of its own",
    "indexer.search.ranking.make_penalties": OF_PORTS,
    "indexer.search.ranking.rank_chunks": OF_PORTS,
    "indexer.search.signals.read_question": OF_PORTS,
    "indexer.parsing.chunking.split_tree": PARSES,
    "indexer.git.objects.read_tree": OF_PORTS,
}
# Functions that by what they do take longer than others for a text; no less linear.
OBJECTS = "it makes an object, or several, of each few characters"
SECONDS_OF: dict[str, tuple[float, str]] = {
    "bot.surfaces.web.page_files.format_stage": (0.5, OBJECTS),
    "agent.nodes.input_preprocessor.complete_from_attachments": (0.5, OBJECTS),
    "bot.surfaces.web.highlight_worker.split_tokens": (0.5, OBJECTS),
    "agent.citations.claim_terms.find_claim_terms": (0.8, OBJECTS),
    "agent.citations.claims.find_identifiers": (0.5, OBJECTS),
    "agent.citations.claims.find_names": (0.5, OBJECTS),
    "agent.citations.written_citations.parse_citations": (0.5, OBJECTS),
    "agent.text.statement_starts.read_layout": (0.3, OBJECTS),
    "agent.text.citation_markers.find_markers": (0.5, OBJECTS),
    "agent.text.citation_markers.replace_markers": (0.5, OBJECTS),
    "agent.prompts.model_text.CitationParser": (0.8, OBJECTS),
    "agent.prompts.model_text.clean_model_sentence": (0.8, OBJECTS),
    "agent.guard.injection.clauses.read_clauses": (0.5, OBJECTS),
    "agent.guard.leak_check.has_leaked_instructions": (0.5, OBJECTS),
    "agent.guard.injection.normalization.find_hidden_text": (0.5, OBJECTS),
    "agent.guard.injection.normalization.strip_invisible_line": (
        0.8,
        "each letter of another alphabet is looked up in Unicode's tables",
    ),
    "agent.questions.mentions.find_mentions": (0.3, OBJECTS),
    "bot.markdown.lines.find_fence": (0.5, OBJECTS),
    "bot.markdown.lines.read_lines": (0.5, OBJECTS),
    "bot.markdown.safety.neutralize": (0.8, OBJECTS),
    "bot.markdown.splitting.split_markdown": (0.8, OBJECTS),
    "bot.replies.paging.split_into_pages": (0.8, OBJECTS),
    "bot.replies.paging.cut_to_stable": (0.5, OBJECTS),
    "bot.repositories.hints.find_hints": (0.5, OBJECTS),
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

    return wrap(call, BotError, IndexerError, ValueError, UnreadableFile)


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
