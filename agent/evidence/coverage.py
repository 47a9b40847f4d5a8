"""Says how much code a "no" covers, what was not read, and where an unindexed path is."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from agent.evidence.path_lookup import FilePathLookup, fold_path, follow_path
from agent.ports import CodeSearch, SourceFiles
from agent.text.escaping import format_code_span
from indexer.errors import IndexerError
from indexer.text.languages import find_language_by_ending
from indexer.types import Coverage, LeftOut, UnparsedReason

if TYPE_CHECKING:
    from agent.ports import CodeSearch

MAX_NAMED = 3  # files
LOCK_FILE = "lock file"
_SHA_LENGTH = 7
_WITH_MACROS = frozenset({"c", "cpp", "objc", "rust", "elixir", "clojure", "julia", "erlang"})
_REASONS: Mapping[str, str] = {
    "excluded": "the settings of citebot exclude it",
    "secret-bearing": "files of that name often hold secrets",
    "binary": "it is binary",
    LOCK_FILE: "it is a lock file",
    "vendored": "it is vendored",
    "generated": "it is generated",
    "minified": "it is minified",
    "translation": "it is a translation file",
    "source map": "it is a source map",
    "data": "it is a large data file",
    "too large": "it is too large",
    "LFS pointer": "its content is in Git LFS",
    "submodule": "it is a submodule, whose files belong to another repository. Ask about that repository",
    "symlink": "it is a symbolic link",
    "not fetched": "the clone is partial, and its contents were not fetched",
    "over the limit of files": "the repository has too many files",
    "over the limit of bytes": "the repository has too many bytes",
    "over the limit of chunks": "the repository has too much code",
}

_UNPARSED: Mapping[UnparsedReason, str] = {
    "grammar": "definitions in {files} (for which the extra {extra} has to be installed)",
    "ctags": "definitions in {files} (which are searched by words; universal-ctags is not installed)",
    "calls": "calls in {files}",
}

Quote = Callable[[str], str]


@dataclass(frozen=True, kw_only=True, slots=True)
class Denial:
    """A "no" with its coverage."""

    text: str
    coverage: Coverage


async def deny(
    code: CodeSearch, claim: str, *words: str, quote: Quote = format_code_span, read: Collection[str] = ()
) -> Denial:
    """Finish a "no" such as "No call of `f` was found" with its coverage.

    The coverage is the commit, the files read and not read, and the unindexed files that contain
    one of the words. Files omitted for one of the reasons in `read` were read nevertheless.
    """
    coverage = await code.coverage(*words)
    coverage = replace(
        coverage,
        skipped={reason: count for reason, count in coverage.skipped.items() if reason not in read},
        holding=tuple(one for one in coverage.holding if one.reason not in read),
    )
    return Denial(text=_format_denial(code, claim, coverage, words, quote), coverage=coverage)


def _format_denial(code: CodeSearch, claim: str, coverage: Coverage, words: Sequence[str], quote: Quote) -> str:
    sentence = f"{claim} in {format_scope(code, coverage, quote)}."
    if not coverage.holding:
        return sentence
    named = ", ".join(f"{quote(one.path)} ({one.reason})" for one in coverage.holding[:MAX_NAMED])
    more = len(coverage.holding) - MAX_NAMED
    is_one = len(coverage.holding) == 1
    files = f"{named} and {more} more" if more > 0 else named
    verbs = "is not indexed and mentions" if is_one else "are not indexed and mention"
    return f"{sentence} {files} {verbs} {' or '.join(map(quote, words))}."


async def explain_undefined(code: CodeSearch, name: str, *, quote: Quote = str) -> Denial:
    """Say that a name has no definition."""
    plain = name.rpartition(".")[2]
    return await deny(code, f"No definition of {quote(name)} was found", plain, quote=quote)


async def explain_no_calls(code: CodeSearch, name: str, claim: str, *, quote: Quote = str) -> Denial:
    """Say that no call is known, or that the name does not appear."""
    found = await code.definitions(name)
    if not found:
        return await explain_undefined(code, name, quote=quote)
    denial = await deny(code, claim, name.rpartition(".")[2], quote=quote)
    unseen = describe_unseen(one.path for one in found)
    return replace(denial, text=f"{denial.text} {unseen}") if unseen else denial


def describe_unseen(paths: Iterable[str]) -> str:
    """Say that macros may hide calls, if a language has them; else empty."""
    languages = (find_language_by_ending(path.rpartition(".")[2].lower()) for path in paths)
    has_macros = any(language is not None and language.name in _WITH_MACROS for language in languages)
    return "Calls in macros and in generated code are not seen." if has_macros else ""


def format_scope(code: CodeSearch, coverage: Coverage, quote: Quote = format_code_span) -> str:
    """Name the files that were read, at their commit, and the others."""
    files = f"{coverage.files:,} file{'s' if coverage.files != 1 else ''}"
    sha = code.commit.sha[:_SHA_LENGTH]
    scope = f"the {files} of {quote(code.repository)} at {quote(sha)}"
    unread = []
    if skipped := ", ".join(f"{count:,} {reason}" for reason, count in sorted(coverage.skipped.items()) if count):
        unread.append(f"{skipped} ({quote('citebot status --files')} lists them)")
    if changed := coverage.uncommitted:
        more = f" and {len(changed) - MAX_NAMED} more" if len(changed) > MAX_NAMED else ""
        unread.append(f"uncommitted changes in {', '.join(map(quote, changed[:MAX_NAMED]))}{more}")
    for reason, words in _UNPARSED.items():
        found = [one for one in coverage.unparsed if one.reason == reason]
        if lacking := ", ".join(f"{one.files:,} {one.language} file{'s' * (one.files != 1)}" for one in found):
            unread.append(words.format(files=lacking, extra=quote("languages")))
    if coverage.is_behind:
        unread.append("newer commits, which are still being indexed")
    return f"{scope}; not read: {', '.join(unread)}" if unread else scope


async def find_left_out(code: SourceFiles, written: str) -> LeftOut | None:
    """Return the unindexed path of the commit that a written path means, is in or contains."""
    wanted = fold_path(written)
    if not wanted or ".." in wanted.split("/"):
        return None
    left = await code.list_left_out()
    if alike := FilePathLookup(left, [written]).find_alike(written):
        return alike[0]
    within = [one for one in left if one.reason == "submodule" and f"{wanted}/".startswith(f"{fold_path(one.path)}/")]
    below = [one for one in left if fold_path(one.path).startswith(f"{wanted}/")]
    if within or not below:
        return within[0] if within else None
    return LeftOut(path=below[0].path[: len(wanted)], reason=below[0].reason)


async def _describe_fate(code: CodeSearch, path: str, quote: Quote) -> str:
    """Say in which commit a file was renamed or removed; empty if unknown."""
    try:
        former = await follow_path(code, path.removeprefix("./"))
    except IndexerError:  # several repositories at once have no past, nor does a clone whose objects are missing
        return ""
    if former is None or not (former.path or former.is_removed):
        return ""
    done = f"renamed to {quote(former.path)}" if former.path else "removed"
    return f"{quote(path)} was {done} in {quote(former.commit[:_SHA_LENGTH])}."


async def explain_missing_paths(code: CodeSearch, paths: Sequence[str], *, quote: Quote = format_code_span) -> str:
    """Explain for each unindexed path whether the commit has it, and why it was not read; empty for no paths."""
    sentences, missing = [], []
    for path in paths:
        if (left := await find_left_out(code, path)) is None:
            if fate := await _describe_fate(code, path, quote):
                sentences.append(fate)
            else:
                missing.append(path)
            continue
        reason = _REASONS.get(left.reason, f"it was left out ({left.reason})")
        sentences.append(f"{quote(left.path)} exists in {quote(code.repository)} but is not indexed: {reason}.")
    if missing:
        claim = f"There is no {' and no '.join(map(quote, missing))}"
        sentences.append((await deny(code, claim, quote=quote)).text)
    return " ".join(sentences)
