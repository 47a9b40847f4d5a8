"""Helm chart templates: YAML with each placeholder kept in place as text."""

from __future__ import annotations

import re

from indexer.text.linear_patterns import compile_pattern

_PATH = compile_pattern(r"(?:^|/)templates/(?:[^/]+/)*[^/]+\.ya?ml$")
_PUT_IN = compile_pattern(r"\{\{[^{}\n]*\}\}")
_NO_WORD = re.compile(r"[^\w.]")
_GAP = "__"
_SAYS_NOTHING = frozenset({"include", "template", "quote", "trunc", "default", "printf", "."})


def is_chart_template(path: str) -> bool:
    """Whether a file may be a template of a chart."""
    return bool(_PATH.search(path))


def blank_templates(text: str) -> str:
    """Replace placeholders by one word of the same length in bytes; lines of nothing else become blank."""
    if "{{" not in text:
        return text
    lines = []
    for line in text.split("\n"):
        said = line.strip()
        is_whole = said.startswith("{{") and said.endswith("}}") and said.count("{{") == 1
        lines.append(" " * len(line.encode()) if is_whole else _PUT_IN.sub(lambda found: _join_word(found[0]), line))
    return "\n".join(lines)


def _join_word(said: str) -> str:
    return _NO_WORD.sub(lambda sign: "_" * len(sign[0].encode()), said)


def name_template(name: str) -> str:
    """Return the name of an object in the chart: `shop.fullname-worker`."""
    if _GAP not in name:
        return name
    words = [word.strip("_") for word in name.split(_GAP)]
    return "".join(word for word in words if word not in _SAYS_NOTHING).strip(".")
