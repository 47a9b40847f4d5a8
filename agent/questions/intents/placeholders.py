"""Replaces the names in a question by placeholders, so that a model sees only its form."""

from __future__ import annotations

import re
from collections.abc import Callable

PLACEHOLDERS = frozenset("xsym xpath xver xref xmsg xlib xperson xurl xnum".split())
MAX_MASKED = 2_000  # characters
_ENDINGS = (
    r"py|pyi|go|rs|tsx?|jsx?|mjs|java|kt|c|h|cc|cpp|hpp|cs|rb|php|toml|ya?ml|json|md|rst|sh|sql|html|css|xml|cfg|ini"
    r"|lock|proto|vue|svelte|txt|mod|gradle|dart|swift|scala|ex|exs|lua|tf"
)
_FENCE = re.compile(r"```(?:[^`]|`(?!``))*(?:```|$)")
_TICKED = re.compile(r"`([^`\n]{1,200})`")
_QUOTED = re.compile(
    r"\"([^\"\n]{1,300})\"|“([^”\n]{1,300})”|«([^»\n]{1,300})»|「([^」\n]{1,300})」|„([^“”\n]{1,300})[“”]"
    r"|(?<!\w)'([^'\n]{2,300})'(?!\w)"
)
_PATH = re.compile(
    r"(?<![\w./@-])(?:\.{0,2}/)?(?:[\w.@+-]{1,80}/){1,20}[\w.@+-]{0,80}(?:(?::|#L)\d{1,7}(?:-L?\d{1,7})?)?"
    rf"|(?<![\w./-])\.?[\w-]{{1,80}}(?:\.[\w-]{{1,40}}){{0,4}}\.(?:{_ENDINGS})(?:(?::|#L)\d{{1,7}}(?:-L?\d{{1,7}})?)?(?![\w(])"
    r"|\b(?:Makefile|Dockerfile|README)\b"
)
_NAME = (
    r"--?[A-Za-z][\w-]{1,60}|\$?[A-Za-z_][\w$]{0,80}(?:(?:\.|::|#|->)[A-Za-z_][\w$]{0,80}){1,8}(?:\(\))?"
    r"|[A-Za-z_]\w{0,80}\(\)|[A-Za-z]{0,80}_\w{1,80}|[a-z][a-z0-9]{0,80}[A-Z]\w{0,80}"
    r"|[A-Z]{1,40}[a-z0-9]{1,80}[A-Z]\w{0,80}|[A-Z]{2,40}[a-z]\w{1,80}"
)
_CODE = re.compile(rf"(?<![\w.])(?:{_NAME})(?!\w)")
_SPELT_WITH_DOTS = frozenset("e.g i.e a.k.a github javascript typescript graphql node.js next.js".split())
_VERSION = re.compile(r"(?<![\w.])v?\d{1,6}(?:\.\d{1,6}){1,4}[\w.+-]{0,30}|(?<!\w)v\d{1,4}(?!\w)|(?<!\w)\d{1,4}\.x\b")
_REF = re.compile(
    r"(?<!\w)#\d{1,7}\b|(?<!\w)(?=[0-9a-f]{0,39}\d)(?=[0-9a-f]{0,39}[a-f])[0-9a-f]{7,40}(?!\w)|\bHEAD(?:[~^]\d*)?"
)
_SHAPES: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"https?://\S{1,2000}"), "xurl"),
    (re.compile(r"[\w.+-]{1,80}@[\w-]{1,80}\.\w{1,20}|(?<!\w)@[A-Za-z][\w.-]{0,80}"), "xperson"),
    (_VERSION, "xver"),
    (_PATH, "xpath"),
    (_REF, "xref"),
    (_CODE, "xsym"),
    (re.compile(r"(?<!\w)\d{1,18}(?!\w)"), "xnum"),
)
# How the lines of examples write what is masked.
_WRITTEN = {
    "xsym": "SYMBOL", "xpath": "PATH", "xver": "VERSION", "xref": "REF", "xmsg": "MESSAGE", "xlib": "LIBRARY",
    "xperson": "PERSON", "xurl": "https://HOST", "xnum": "1",
}  # fmt: skip
_EAST = r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]"
_SCRIPT_EDGE = re.compile(rf"(`[^`\n]{{1,200}}`)|(?<=[A-Za-z0-9_)])(?={_EAST})|(?<={_EAST})(?=[A-Za-z0-9_./])")
_NO_ALTERNATIVES = str.maketrans("{|}", "(/)")
_MAX_EXAMPLE = 300  # characters
NameWords = Callable[[str], str]
_PLAIN = re.compile(r"[A-Za-z][\w-]{1,80}(?:[./][\w-]{1,80}){0,4}")


def separate_scripts(text: str) -> str:
    """Separate names from Chinese, Japanese and Korean words, which adjoin them without a space."""
    return _SCRIPT_EDGE.sub(lambda found: found[1] or " ", text)


def mask_question(text: str, name_words: NameWords | None = None) -> str:
    """Return the text with placeholders; `name_words` gives a placeholder for plain words, empty for common ones."""
    text = separate_scripts(text[:MAX_MASKED].replace("’", "'"))
    text = _FENCE.sub(" xmsg ", text)
    text = _TICKED.sub(lambda found: _mask_quoted(found[1], name_words), text)
    text = _QUOTED.sub(lambda found: _mask_quoted(found[found.lastindex or 0], name_words), text)
    for pattern, placeholder in _SHAPES:
        text = pattern.sub(lambda found, to=placeholder: found[0] if _is_spelt_so(found[0]) else f" {to} ", text)  # type: ignore[misc]
    if name_words is not None:
        text = _PLAIN.sub(lambda found: name_words(found[0]) or found[0], text)
    return " ".join(text.split())


def write_example(text: str) -> str:
    """Write a question as an example line, with placeholders for its names."""
    masked = " ".join(_WRITTEN.get(word, word) for word in mask_question(text).split())
    return masked.translate(_NO_ALTERNATIVES).lstrip("# ")[:_MAX_EXAMPLE]


def _is_spelt_so(word: str) -> bool:
    return word.lower() in _SPELT_WITH_DOTS


def _mask_quoted(inner: str, name_words: NameWords | None) -> str:
    bare = inner.strip()
    named = name_words(bare) if name_words is not None else ""
    if _PATH.fullmatch(bare):
        return " xpath "
    if _VERSION.fullmatch(bare):
        return " xver "
    if named == "xlib":
        return " xlib "
    return " xsym " if re.fullmatch(r"[\w.$:#>()@!?-]{1,200}", bare) else " xmsg "
