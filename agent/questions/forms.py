"""Reads the whole meaning of a question in one of the forms of `forms.txt`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import combinations, product

from agent.questions.intent import clean_question
from agent.questions.intents.placeholders import separate_scripts
from agent.questions.scopes import read_scope
from indexer.types import SourceType

MAX_WORDS = 16
MAX_NAMES = 2  # in one form
_NAME = "\0"  # in the place of a name, as nobody can write it
_ALTERNATIVES = re.compile(r"\{([^{}]*)\}")
_CLOSING = re.compile(
    r"(?:[\s,]+(?:please|pls|plz|thanks|thx|bitte|danke|por favor|merci|s'il (?:te|vous) plaît))*[\s?!.…？。！¿¡]*$",
    re.IGNORECASE,
)
_SHORT = re.compile(r"(?i)\b(what|where|who|how)(?:'s|s)\b")
_OWN = re.compile(r"(?<=[\w)`])'s(?= )")
_SCOPES: Mapping[str, tuple[SourceType, ...]] = {"in tests": ("test",), "in code but tests": ("code", "doc", "config")}
# Words that stand for something else than themselves.
_POINTING = frozenset(
    """it its this that these those they them he she here there one ones something anything everything nothing someone
    anyone everyone nobody none both all any same above latter former es das dies dieses diese sie er ihn hier dort ça
    cela ceci il elle ici là eso esto esta este aquí ahí isso isto ele ela aqui это оно он она here's that's""".split()
)


@dataclass(frozen=True, kw_only=True, slots=True)
class AskedForm:
    """A question as its form: its intent, its names as written, its scope, its language."""

    meaning: str
    names: tuple[str, ...] = ()
    scope: str = ""
    language: str = "en"

    @property
    def count(self) -> int:
        """The number of its names."""
        return len(self.names) + self.scope.count(":")


def read_form(question: str) -> AskedForm | None:
    """Read a question in a known form; None if anything is left over, or it is ambiguous."""
    text = _SHORT.sub(r"\1 is", separate_scripts(question.replace(_NAME, " ").strip().lstrip("¿¡")).replace("’", "'"))
    text = clean_question(_OWN.sub(" 's", _CLOSING.sub("", text, count=1)))
    words = text.split()
    found = list(_match(words)) if len(words) <= MAX_WORDS else []
    fewest = min((one.count for one in found), default=0)  # "does anybody call X" names one function, not two
    likely = [one for one in found if one.count == fewest]
    if len({(one.meaning, one.names, one.scope) for one in likely}) != 1:
        return None
    form, kind = likely[0], likely[0].scope.partition(":")[0]
    return form if read_scope(text).source_types == _SCOPES.get(kind, ()) else None


def _match(words: Sequence[str]) -> Iterator[AskedForm]:
    """Yield the readings of a question: a form, and its limits."""
    for cut in range(len(words), 0, -1):
        scopes = list(_look_up(words[cut:])) if cut < len(words) else [("", "", ())]
        forms = list(_look_up(words[:cut])) if scopes else []
        for (kind, _, places), (meaning, language, names) in product(scopes, forms):
            if kind[:3] in {"", "in "} and not meaning.startswith("in "):
                scope = ":".join((kind, *places))
                yield AskedForm(meaning=meaning, names=names, scope=scope, language=language)


def _look_up(words: Sequence[str]) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Yield the forms of exactly these words, with names substituted for some."""
    forms, lower = load_forms(), [word.lower() for word in words]
    for count in range(MAX_NAMES + 1):
        for places in combinations(range(len(words)), count):
            line = " ".join(_NAME if at in places else word for at, word in enumerate(lower))
            names = tuple(words[at].strip("`").removesuffix("()") for at in places)
            if line in forms and all(names) and _POINTING.isdisjoint(lower[at] for at in places):
                yield (*forms[line], names)


@cache
def load_forms() -> Mapping[str, tuple[str, str]]:
    """Return the meaning and the language of each form."""
    found: dict[str, tuple[str, str]] = {}
    meaning = language = ""
    for line in (files("agent.questions") / "forms.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            meaning = line.strip("[]")
        elif line.startswith("*"):
            language = line[1:].strip()
        elif line and not line.startswith("#"):
            for form in write_forms(line):
                found.setdefault(form, (meaning, language))
    return found


def write_forms(line: str) -> Iterator[str]:
    """Expand a line into its alternatives."""
    parts = [part.split("|") if at % 2 else [part] for at, part in enumerate(_ALTERNATIVES.split(line))]
    for chosen in product(*parts):
        yield " ".join("".join(chosen).replace("SYMBOL", _NAME).lower().split())
