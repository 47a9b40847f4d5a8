"""The places where text from outside enters citebot, by who writes it; a new reader of such text gets a line here."""

from __future__ import annotations

import dataclasses
import json
import tomllib
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

from agent.answers.answer_parts import strip_doc_markup
from agent.citations.citation_fit import find_claim_terms
from agent.citations.claims import find_claimed_numbers, find_identifiers, find_names, find_specifics, find_values
from agent.citations.written_citations import parse_citations
from agent.evidence.best_places import find_headings
from agent.goals.checks.goal_requests import parse_goal_request
from agent.guard.approval import parse_decision
from agent.guard.evidence_check import mark_text
from agent.guard.leak_check import has_leaked_instructions
from agent.guard.size import clip, fit_text
from agent.guard.thread_quotes import quote_line, read_quotes
from agent.history.changes import list_sections, parse_comparison
from agent.kinds.command_search import find_purposes, read_commands
from agent.llm.providers import map_provider_error
from agent.lookups.lookup import clean_path
from agent.lookups.read_file import find_similar_paths, parse_ranges
from agent.nodes.input_preprocessor import complete_from_attachments
from agent.nodes.security_gateway import judge_question
from agent.ports import Citation, Deps
from agent.prompts.evidence_lines import find_core
from agent.prompts.model_text import CitationParser, StreamSanitizer, clean_model_sentence
from agent.prompts.output_schemas import PlanOutput, clean_steps
from agent.prompts.prompt_evidence import PromptEvidence
from agent.questions.asked_times import read_times
from agent.questions.attachments import AttachedText, make_excerpts
from agent.questions.follow_ups import (
    Antecedent,
    find_continuation,
    find_thread_antecedent,
    find_thread_subject,
    is_pointing_back,
    resolve_references,
)
from agent.questions.intent import clean_question, find_small_talk, is_history_request, is_repeat_request
from agent.questions.intents.placeholders import mask_question
from agent.questions.literals import find_literals, find_quoted_messages
from agent.questions.mentions import find_mentions
from agent.questions.pasted_errors import parse_pasted_error
from agent.questions.question_parts import split_questions
from agent.questions.remarks import find_remark, is_statement
from agent.questions.scopes import parse_language_filter, parse_only_language
from agent.questions.stack_traces import parse_error_message, parse_error_name, parse_frames
from agent.questions.terms import find_content_terms
from agent.sandbox.patch import FileChange, FileVersion, format_change
from agent.text.message_match import match_message
from agent.tools.registry import make_call_key, shorten_arguments
from bot.adapters.discord.parsing import parse_used_command
from bot.adapters.discord.rendering import make_thread_name
from bot.adapters.discord.rendering import to_plain_markdown as read_discord
from bot.adapters.slack.client import BotIdentity
from bot.adapters.slack.parsing import parse_delivery
from bot.adapters.slack.rendering import make_fallback_text, to_mrkdwn
from bot.cli.query import parse_batch_line
from bot.conversations.commands import parse_command
from bot.conversations.dispatcher import is_question, is_talk
from bot.conversations.question_context import UnreadableFile, decode_text, quote_thread
from bot.drawings.drawing_requests import parse_drawing
from bot.errors import BotError
from bot.maintenance.backup import InvalidBackup, read_manifest
from bot.markdown.formatting import neutralize
from bot.messages import MessageContent, ThreadMessage
from bot.pictures.placed_flow import wrap_words
from bot.replies.answer_content import link_marks
from bot.replies.paging import cut_to_stable, split_into_pages
from bot.repositories.hints import find_hints
from bot.repositories.names import RepositoryProfile, find_hinted, find_named, find_only_named
from bot.repositories.ref_mentions import find_ref_mentions, remove_mention
from bot.surfaces.api.completion_messages import ChatTurn, CompletionRequest, list_annotations, read_messages
from bot.surfaces.api.problems import RequestProblem, parse_json
from bot.surfaces.principals import Tokens, find_bearer
from bot.surfaces.web.page_files import format_stage
from bot.webhooks.push_endpoint import read_payload, read_pushes, verify_signature
from indexer.calls.receivers import find_type_hints, parse_result_type, split_chain
from indexer.errors import IndexerError
from indexer.generations.grep import grep_texts
from indexer.generations.repository_facts import find_introduction
from indexer.git.code_owners import find_owners
from indexer.git.file_selection import judge_content, judge_path
from indexer.git.git_command import make_command_error
from indexer.git.gitattributes import GitAttributes
from indexer.git.history import format_person, read_commits, read_origins
from indexer.git.permalinks import find_web_base, make_permalink
from indexer.parsing.docstrings import DocumentationFinder
from indexer.parsing.file_parser import parse_file
from indexer.parsing.packages import read_packages
from indexer.parsing.registrations.chart_templates import blank_templates
from indexer.parsing.registrations.finder import find_in_text
from indexer.parsing.registrations.sql_statements import find_table_uses
from indexer.remotes.addresses import Address, redact_address
from indexer.remotes.fetch_errors import describe_redirect, make_fetch_error
from indexer.remotes.ref_list import fits_branch, parse_full_name
from indexer.remotes.remote_repository import RemoteRepository
from indexer.secrets import redact_secrets
from indexer.text.decoding import decode_file
from indexer.text.globs import compile_globs
from indexer.text.languages import detect_language
from indexer.text.notebooks import read_notebook
from indexer.text.tokens import tokenize, tokenize_path, tokenize_question
from indexer.types import Location
from tests.agent.conftest import Told
from tests.fakes.code import FakeCode

Read = Callable[[str], object]

REFUSALS = (BotError, IndexerError, InvalidBackup, RequestProblem, UnreadableFile, ValueError)
OWN = BotIdentity(team="T1", user="U1", bot="B1")
PLACE = Location(path="a.py", start_line=1, end_line=2)
CITED = Citation(mark=1, path="a.py", start_line=1, end_line=2, commit="", url="https://a.example/a.py#L1")
REMOTE = RemoteRepository(name="shop", url="https://git.example/team/shop.git")
PROFILES = {name: RepositoryProfile(page=f"https://git.example/team/{name}") for name in ("shop", "web", "docs-site")}
HOSTS = ("a.example",)
# Pieces of the grammars that are read, and what breaks readers of text.
PIECES = (
    *" \t\n()[]<`aA0.\\#*\"'-:é\u202e\u0301\u05d0",
    "\r\n", "a.", "a b ", "](", "[E1]", "`` ` ", "- ", "> ", "../", "://", 'File "', "at a (", "x.go:", "Error: ",
    "<a", "a(", '\\"', "!\\[", "{@a ", "/* ", "// ", "# a\n", "a\n", "in shop, ", "f(1)\n\t", "i g n ", "[E1:2-3, ",
)  # fmt: skip


def read_all(*readers: Read) -> Read:
    """Read a text in several ways, each to its end; a refusal is an answer."""

    def read(text: str) -> None:
        for reader in readers:
            with suppress(*REFUSALS):
                result = reader(text)
                if isinstance(result, Iterator):
                    deque(result, maxlen=0)

    return read


def by_lines(*readers: Callable[[list[str]], object]) -> Read:
    """Read a text by its lines."""
    return read_all(*(lambda text, reader=reader: reader(text.split("\n")) for reader in readers))


def to_bytes(*readers: Callable[[bytes], object]) -> Read:
    """Read a text as bytes."""
    return read_all(*(lambda text, reader=reader: reader(encode(text)) for reader in readers))


def encode(text: str) -> bytes:
    return text.encode(errors="surrogatepass")


def parse_citing(text: str) -> object:
    return CitationParser([PromptEvidence(number=1, location=PLACE, about="", text=text)], redact_secrets).prose(text)


def stream_answer(text: str) -> None:
    deps = Deps(code=FakeCode({}), redact=lambda piece: piece, emit=Told())
    sanitizer = StreamSanitizer(deps, CitationParser([], lambda piece: piece))
    for start in range(0, len(text), 16):
        sanitizer.write(text[start : start + 16])
    sanitizer.finish()


def explain_attachment(text: str) -> object:
    return complete_from_attachments("why?", make_excerpts([AttachedText(name="a.log", text=text)] * 2))


def read_conversation(text: str) -> object:
    turns = [ChatTurn(role="user", content=text), ChatTurn(role="user", content="what?")]
    return read_messages(turns, str), list_annotations(text, [])


def find_refs(text: str) -> object:
    return [remove_mention(text, mention) for mention in find_ref_mentions(text, "https://git.example/a")]


def find_documentation(text: str) -> object:
    lines = f"{text}\nx".split("\n")
    return DocumentationFinder(lines, (), (), "python").find_above(len(lines) - 1)


def find_documented(text: str) -> object:
    return [
        find_in_text("a.md", "markdown", f"# Options\n\n{text}", f"# Options\n\n{text}".split("\n")),
        *(find_in_text(f"a.{language}", language, text, text.split("\n")) for language in ("rst", "text")),
    ]


def read_types(text: str) -> object:
    lines = "\n".join(text[start : start + 1_000] for start in range(0, len(text), 1_000))
    return [
        (parse_result_type("a", text, each), deque(find_type_hints("a", lines, each), maxlen=0), split_chain(text))
        for each in ("py", "java", "go", "ts")
    ]


def read_attributes(text: str) -> object:
    return GitAttributes({".gitattributes": f"{text} x\n{text[:2000]} linguist-vendored"}).of(text)


def format_difference(text: str) -> object:
    old, new = (FileVersion(mode="100644", content=encode(each)) for each in (text, text[::-1]))
    return format_change(FileChange(path=b"a", old=old, new=new), "0" * 40)


def follow_up(text: str) -> object:
    return is_pointing_back(text), resolve_references(text, Antecedent(symbol="a.b", kind="", path="a.py"))


ENTRY_POINTS: dict[str, Read] = {
    # People in a chat
    "a delivery of Slack": lambda text: parse_delivery(
        {"event": {"type": "message", "text": text, "ts": "1.1", "user": "U2", "channel": "D1", "channel_type": "im"}},
        OWN,
    ),
    "words in Discord": partial(read_discord, own=frozenset({1}), users={}, places={}),
    "a command in Discord": lambda text: parse_used_command(
        {"name": "ask", "options": [{"name": "question", "value": text}]}
    ),
    "a slash command": partial(parse_command, slash=True, repositories=["shop", "web"]),
    "a command": partial(parse_command, slash=False, repositories=["shop", "web"]),
    "names of repositories": read_all(
        lambda text: find_named(text, PROFILES),
        lambda text: find_only_named(text, PROFILES),
        lambda text: find_hinted(text, PROFILES),
    ),
    "clues of a repository": find_hints,
    "other refs": find_refs,
    "a thread": read_all(
        lambda text: quote_thread([ThreadMessage(id="1", author="a", text=text)], room=4_000),
        lambda text: quote_line("Bob", text),
        lambda text: find_thread_antecedent([text]),
        lambda text: find_thread_subject([text]),
        lambda text: deque(read_quotes(text.split("\n")), maxlen=0),
    ),
    "an attachment": explain_attachment,
    "the bytes of an attachment": to_bytes(decode_text),
    "talk": read_all(is_talk, is_question, find_remark, is_statement, find_small_talk),
    "a goal": parse_goal_request,
    "a drawing": read_all(parse_drawing, lambda text: wrap_words(text[:1_000], 40)),
    "an approval": parse_decision,
    "a name of a thread": make_thread_name,
    # Questions
    "the guard": judge_question,
    "a question's length": read_all(fit_text, clip),
    "what a question names": find_mentions,
    "what a question quotes": read_all(find_literals, find_quoted_messages),
    "a stack trace": read_all(parse_frames, parse_error_name, parse_error_message, parse_pasted_error),
    "what a question wants": read_all(
        mask_question, read_times, clean_question, is_history_request, is_repeat_request, parse_comparison,
        find_purposes, split_questions,
    ),
    "languages of a question": read_all(parse_language_filter, parse_only_language),
    "what a question goes back to": read_all(follow_up, lambda text: find_continuation(text, [])),
    "words of a question": read_all(find_content_terms, tokenize_question),
    # The API and webhooks
    "a body of the API": to_bytes(partial(parse_json, model=CompletionRequest)),
    "a conversation of the API": read_conversation,
    "a bearer": lambda text: find_bearer([f"Bearer {text}"], Tokens(())),
    "a path": read_all(clean_path, lambda text: find_similar_paths(text, ["src/a.py", "src/b/c.py"] * 5)),
    "a payload": to_bytes(partial(read_payload, content_type="application/json")),
    "a push": lambda text: read_pushes("push", {"ref": text, "repository": {"full_name": text, "clone_url": text}}),
    "a signature": lambda text: verify_signature(
        {"X-Hub-Signature-256": text, "webhook-signature": text, "webhook-timestamp": "1"}, b"", ["s"], now=1.0
    ),
    # Files of repositories
    "source code": read_all(*(partial(parse_file, f"a{suffix}", seconds=3_600) for suffix in (".py", ".go", ".ts"))),
    "prose": read_all(*(partial(parse_file, f"a{suffix}") for suffix in (".md", ".rst", ".txt"))),
    "code in other text": read_all(
        *(
            partial(parse_file, f"a.{ending}", seconds=3_600)
            for ending in "vue svelte astro html erb ejs j2 blade.php razor mdx".split()
        )
    ),
    "a notebook": read_all(read_notebook, partial(parse_file, "a.ipynb", seconds=3_600)),
    "bytes of a file": to_bytes(decode_file, partial(judge_content, "a.py")),
    "a path of a file": read_all(lambda text: judge_path(text, 1), lambda text: detect_language(text, f"#!{text}")),
    "secrets": redact_secrets,
    "orders in a file": mark_text,
    "attributes of files": read_attributes,
    "documentation": read_all(find_documentation, find_documented, strip_doc_markup),
    "types": read_types,
    "words of code": read_all(tokenize, tokenize_path),
    "sections": by_lines(find_headings, list_sections),
    "commands of a build": read_all(*(partial(read_commands, path) for path in ("Makefile", "package.json"))),
    "packages": read_all(
        *(
            partial(read_packages, path)
            for path in "package-lock.json yarn.lock uv.lock requirements.txt pom.xml mix.lock setup.cfg".split()
        )
    ),
    "statements, variables and templates": read_all(
        lambda text: list(find_table_uses(text)),
        lambda text: find_in_text(".env.example", "text", text, text.split("\n")),
        lambda text: find_in_text("Dockerfile", "dockerfile", text, text.split("\n")),
        blank_templates,
    ),
    "an introduction": partial(find_introduction, "shop", "README.md", "markdown"),
    "owners": partial(find_owners, path="a.py", file="CODEOWNERS"),
    "lines of evidence": by_lines(
        lambda lines: find_core(lines, [frozenset(each.split()[:3]) for each in lines], 4_000)
    ),
    "a message in code": lambda text: match_message(text, text),
    # git
    "a log": to_bytes(read_commits, read_origins),
    "a complaint of git": read_all(
        lambda text: make_command_error(Path("shop"), text),
        partial(make_fetch_error, REMOTE), partial(describe_redirect, REMOTE),
    ),
    "a person": format_person,
    "a ref": read_all(parse_full_name, lambda text: fits_branch(text, ("release-*", "v[0-9]*.x"))),
    "a difference": format_difference,
    # Models
    "an answer with citations": read_all(
        parse_citing, parse_citations, lambda text: clean_model_sentence(text, redact_secrets)
    ),
    "an answer as it is written": stream_answer,
    "claims of an answer": read_all(
        find_names, find_identifiers, find_claim_terms, find_specifics, find_values, find_claimed_numbers
    ),
    "an answer with instructions": lambda text: has_leaked_instructions(text, text[:2_000], []),
    "an answer on its way": read_all(
        lambda text: neutralize(text, HOSTS), cut_to_stable, to_mrkdwn, make_fallback_text, format_stage,
        lambda text: link_marks(text, [CITED], HOSTS),
    ),
    "pages of an answer": lambda text: split_into_pages(
        MessageContent(text=text, status="", footer=""), 2_000, utf16=True, fixed=text[:500]
    ),
    "a plan": read_all(
        lambda text: clean_steps(text.split("\n"), known=frozenset(), most=5),
        lambda text: PlanOutput.model_validate_json(json.dumps({"steps": [text]})),
    ),
    "a call of a tool": read_all(
        lambda text: make_call_key("read", {"path": text}, ""),
        lambda text: shorten_arguments({"path": text}),
        lambda text: parse_ranges(text.split("\n")),
    ),
    "a pattern": lambda text: grep_texts([("a.py", text)], r"(\w+\s*)+x$", limit=10),
    "an error of a provider": lambda text: map_provider_error(ValueError(text), "google:m", "GOOGLE_API_KEY"),
    # Operators
    "an address": read_all(
        Address.parse, redact_address, find_web_base,
        lambda text: make_permalink("https://git.example/a", "0" * 40, dataclasses.replace(PLACE, path=text)),
    ),
    "globs": lambda text: compile_globs([text]),
    "settings": tomllib.loads,
    "a list of contents": to_bytes(read_manifest),
    "a line of a batch": parse_batch_line,
}  # fmt: skip
