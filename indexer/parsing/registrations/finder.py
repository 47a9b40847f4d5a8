"""Finds the registrations of a file, from its query's captures and the rules for their names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice

from tree_sitter import Node

from indexer.parsing.registrations.command_readers import find_declared_signals, read_inherited
from indexer.parsing.registrations.deployments import find_crontab, find_deployed, find_set_variables
from indexer.parsing.registrations.described_interfaces import find_declared, find_described
from indexer.parsing.registrations.documents import find_documented_options
from indexer.parsing.registrations.file_context import FileContext
from indexer.parsing.registrations.file_names import (
    find_build_options,
    find_named_commands,
    find_named_routes,
    find_prisma_models,
)
from indexer.parsing.registrations.invocations import Invocation, read_invocation
from indexer.parsing.registrations.nested_values import Value, read_json, read_yaml
from indexer.parsing.registrations.option_readers import find_environment_reads, read_c_table, read_environment
from indexer.parsing.registrations.rules import BASES, ENVIRONMENT_NAME, RegistrationRule, map_rules
from indexer.parsing.registrations.setting_readers import (
    find_module_settings,
    find_settings_class,
    read_env_tag,
    read_settings_entry,
)
from indexer.parsing.registrations.tables import find_embedded_sql, find_named_tables, find_sql
from indexer.text.linear_patterns import compile_pattern
from indexer.types import Registration, Symbol

# The captures of a language's query, by role, as `indexer.parsing.grammars` returns them.
Captures = Mapping[str, Sequence[Node]]
Findings = Mapping[str, Sequence[Captures]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Contents:
    """Registrations of a file, and their definitions."""

    registrations: tuple[Registration, ...]
    symbols: Sequence[Symbol] = ()


MAX_REGISTRATIONS = 1_000  # of one file
_NO_CODE = frozenset({"sql", "yaml", "dockerfile", "make", "protobuf", "graphql", "terraform"})
_DESCRIBES = compile_pattern(
    r'"(?:openapi|swagger|asyncapi|apiVersion|AWSTemplateFormatVersion|Resources|services|flags)"\s*:'
)
_MAX_CANDIDATES = 5_000
_MAX_NAME = 80  # bytes


def find_registrations(
    findings: Findings, root: Node, source: bytes, *, language: str, path: str, symbols: Sequence[Symbol]
) -> Contents:
    """Return the registrations of a source file in order, at most 1,000."""
    context = FileContext(path=path, language=language, source=source, symbols=symbols)
    candidates = list(islice(_find_candidates(findings, context), _MAX_CANDIDATES))
    for invocation, rule in candidates:
        if rule is not None and rule.early:
            rule.read(invocation, context)
    found = chain(
        _read_candidates(candidates, context),
        _read_structure(findings, context),
        find_environment_reads(root, context),
        find_named_routes(context),
        find_named_commands(context),
        find_declared(context),
        find_embedded_sql(root, context) if language not in _NO_CODE else (),
        _read_documents(read_yaml(root, source), context) if language == "yaml" else (),
    )
    return Contents(registrations=_keep_distinct(found), symbols=context.defined)


def find_in_text(path: str, language: str, text: str, lines: Sequence[str], symbols: Sequence[Symbol] = ()) -> Contents:
    """Find registrations in a document, or in a file without its syntax tree."""
    context = FileContext(path=path, language=language, source=text.encode("utf-8", "replace"), symbols=symbols)
    if language in {"markdown", "rst"}:
        return Contents(registrations=_keep_distinct(find_documented_options(lines, context)))
    found = chain(
        find_prisma_models(context),
        find_build_options(context),
        find_named_tables(context),
        find_sql(context) if language == "sql" else (),
        _read_documents([read_json(text)], context) if language == "json" and _DESCRIBES.search(text) else (),
        find_crontab(context),
        find_set_variables(context),
    )
    return Contents(registrations=_keep_distinct(found), symbols=context.defined)


def _read_documents(documents: Iterable[Value], context: FileContext) -> Iterator[Registration]:
    for document in documents:
        yield from find_described(document, context)
        yield from find_deployed(document, context)


def _keep_distinct(found: Iterable[Registration]) -> tuple[Registration, ...]:
    distinct: dict[tuple[str, str, int, str], Registration] = {}
    for each in islice((each for each in found if each.name), 2 * MAX_REGISTRATIONS):
        action = each.detail if each.kind == "access" else ""  # one line may read a table and write it
        distinct.setdefault((each.kind, each.name, each.line, action), each)
    return tuple(sorted(distinct.values(), key=lambda each: each.line))[:MAX_REGISTRATIONS]


def _find_candidates(findings: Findings, context: FileContext) -> Iterator[tuple[Invocation, RegistrationRule | None]]:
    """Yield every call and annotation with a rule for its name; those without a rule read a variable by name."""
    rules = map_rules(context.language)
    if not rules:
        return
    source = context.source
    for captures, role in _list_named(findings):
        node = captures[role][0]
        end = node.end_byte
        # Most calls are of no interest, and end here: this is done for each of a repository.
        name = source[max(node.start_byte, end - _MAX_NAME) : end].rpartition(b".")[2].rpartition(b":")[2].strip()
        fitting = rules.get(name)
        if fitting is None and not (b"nv" in name and ENVIRONMENT_NAME.fullmatch(name)):
            continue
        invocation = read_invocation(node, captures["on"][0] if "on" in captures else None, context.source)
        if invocation is None:
            continue
        if fitting is None:
            yield invocation, None
        for rule in fitting or ():
            if rule.fits(invocation):
                yield invocation, rule


def _list_named(findings: Findings) -> Iterator[tuple[Captures, str]]:
    for role in ("call", "annotation"):
        for captures in findings.get(role, ()):
            yield captures, role


def _read_candidates(
    candidates: Iterable[tuple[Invocation, RegistrationRule | None]], context: FileContext
) -> Iterator[Registration]:
    for invocation, rule in candidates:
        if rule is None:
            yield from read_environment(invocation, context)
        elif not rule.early:
            yield from rule.read(invocation, context)


def _read_structure(findings: Findings, context: FileContext) -> Iterator[Registration]:
    """Read registrations by structure: base classes, constants of settings, tables of options."""
    bases = BASES.get(context.language, {})
    for captures in findings.get("inherit", ()):
        for node in captures["inherit"]:
            base = context.code_of(node)
            kind = bases.get(base) or bases.get(base.rpartition(".")[2])
            if kind is not None:
                yield from read_inherited(kind, node, context)
            if context.language == "python":
                yield from find_settings_class(node, context)
    if context.language == "python":
        names = [captures["name"][0] for captures in findings.get("constant", ()) if "name" in captures]
        yield from find_module_settings(names, context)
        yield from find_declared_signals(names, context)
    for captures in findings.get("table", ()):
        yield from read_c_table(captures["table"][0], context)
    for captures in findings.get("entry", ()):
        yield from read_settings_entry(captures["key"][0], captures["entry"][0], context)
    for captures in findings.get("tag", ()):
        yield from read_env_tag(captures["tag"][0], context)
