"""Reads the example lines, and writes sentences with alternatives chosen, placeholders filled, and slips of typing."""

from __future__ import annotations

import hashlib
import random
import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from agent.questions.intents.model import INTENTS, list_words
from agent.questions.intents.placeholders import mask_question

EXAMPLES = Path(__file__).parents[2] / "agent" / "questions" / "intents" / "examples"
FILLERS = Path(__file__).with_name("fillers.toml")
_ALTERNATIVES = re.compile(r"\{([^{}]*)\}")
_NAMES = "SYMBOL|PATH|VERSION|MESSAGE|REF|LIBRARY|PERSON|TOPIC[NDFEPJZRK]?|LISTN[DFEPJZRK]?|DO|THING"
_PLACEHOLDER = re.compile(rf"\b({_NAMES})(?=s?(?![A-Za-z]))")
_LATIN = frozenset("en de fr es pt".split())
_ACCENTS = str.maketrans("äöüßéèêàçñáíóúãõ", "aousee" + "eacnaiouao")
_SENTENCE_END = ("?", "!", ".", "？", "。")


@dataclass(frozen=True, kw_only=True, slots=True)
class ExampleLine:
    """One line of a file of examples: its intent, its language, and what people type."""

    intent: str
    language: str
    text: str


def read_lines(folder: Path = EXAMPLES) -> list[ExampleLine]:
    """Read all lines; of those that are equal once they are masked, the first."""
    found: dict[tuple[str, str], ExampleLine] = {}
    for file in sorted(folder.glob("*.txt")):
        language = "en"
        for line in file.read_text(encoding="utf-8").splitlines():
            if line.startswith("# "):
                language = line[2:].strip()
            elif line.strip():
                one = ExampleLine(intent=file.stem, language=language, text=line.strip())
                found.setdefault((file.stem, mask_question(one.text).lower()), one)
    return list(found.values())


def compute_digest(folder: Path = EXAMPLES) -> str:
    """Return what tells whether a model was made of just these examples and fillers."""
    content = hashlib.sha256()
    for file in (*sorted(folder.glob("*.txt")), FILLERS):
        content.update(file.name.encode() + b"\0" + file.read_bytes())
    return content.hexdigest()


@cache
def load_fillers() -> dict[str, Any]:
    """Read the words in for placeholders."""
    return tomllib.loads(FILLERS.read_text(encoding="utf-8"))


def list_common_words(lines: Sequence[ExampleLine]) -> dict[str, int]:
    """Return the words of the examples and their fillers, and names that may be words, except libraries.

    Each with the intents whose lines have it, as bits in the order of `INTENTS`.
    """
    fillers, names = load_fillers(), [str(one) for one in INTENTS]
    texts = [(_PLACEHOLDER.sub(" ", line.text), 1 << names.index(line.intent)) for line in lines]
    listing = 1 << INTENTS.index("listing")
    texts += [
        (word, listing if name.startswith("LISTN") else 0)
        for name, words in fillers["placeholders"].items()
        if name != "LIBRARY"
        for word in words
    ]
    texts += [(word, 0) for word in fillers["plain_symbols"]]
    libraries = set(fillers["placeholders"]["LIBRARY"])
    bits: dict[str, list[int]] = {}
    for text, bit in texts:
        for word in set(list_words(text)) - libraries:
            bits.setdefault(word, []).append(bit)
    # A word of one line alone may be what that line is about.
    return {word: sum(bit for bit, count in Counter(own).items() if count > 1) for word, own in bits.items()}


def write_samples(lines: Sequence[ExampleLine], count: int, seed: int) -> Iterator[tuple[str, str]]:
    """Yield an intent and a masked sentence, `count` for each intent where its lines give so many different ones."""
    rng = random.Random(seed)  # noqa: S311 - no secret
    common = list_common_words(lines)
    by_intent: dict[str, list[ExampleLine]] = {}
    for line in lines:
        by_intent.setdefault(line.intent, []).append(line)
    for intent, own in by_intent.items():
        seen: set[str] = set()
        for at in range(count * 2):
            line = own[at % len(own)]
            masked = mask_sentence(write_sentence(line, rng), common, rng)
            if masked not in seen and len(seen) < count:
                seen.add(masked)
                yield intent, masked


def mask_sentence(sentence: str, common: Mapping[str, int], rng: random.Random) -> str:
    """Mask a sentence as if the repository knew the names in it, as often as not."""
    fillers = load_fillers()
    names = frozenset(fillers["plain_symbols"] + fillers["capital_symbols"]) if rng.random() < 0.7 else frozenset()
    libraries = frozenset(fillers["placeholders"]["LIBRARY"]) if rng.random() < 0.5 else frozenset()

    def name_words(word: str) -> str:
        if word.lower() in libraries:
            return "xlib"
        return "xsym" if word in names and not common.get(word.lower()) else ""

    return mask_question(sentence, name_words)


def write_sentence(line: ExampleLine, rng: random.Random) -> str:
    """Choose alternatives, fill placeholders, and type it as people do."""
    text = line.text
    while found := _ALTERNATIVES.search(text):
        text = text[: found.start()] + rng.choice(found[1].split("|")) + text[found.end() :]
    text = _PLACEHOLDER.sub(lambda found: _fill_placeholder(found[1], rng), text)
    text = re.sub(r"\s+([?,.!:])", r"\1", " ".join(text.split()))
    return _type_carelessly(text, line, rng)


def _fill_placeholder(name: str, rng: random.Random) -> str:
    makers = {
        "SYMBOL": _make_symbol,
        "PATH": _make_path,
        "VERSION": _make_version,
        "REF": _make_ref,
        "MESSAGE": _make_message,
    }
    if name in makers:
        return makers[name](rng)
    word: str = rng.choice(load_fillers()["placeholders"][name])
    return word.capitalize() if name == "LIBRARY" and rng.random() < 0.2 else word


def _make_symbol(rng: random.Random) -> str:
    fillers = load_fillers()
    first, second = rng.choice(fillers["symbol_parts"]), rng.choice(fillers["symbol_parts"])
    plain, capital = rng.choice(fillers["plain_symbols"]), rng.choice(fillers["capital_symbols"])
    forms = {
        f"{first}_{second}": 14,
        f"{first}{second.capitalize()}": 14,
        f"{first.capitalize()}{second.capitalize()}": 12,
        f"{capital}.{first}": 8,
        f"{first}_{second}()": 5,
        f"`{first}_{second}`": 5,
        f"{first.upper()}_{second.upper()}": 4,
        f"{first}::{second}": 4,
        plain: 16,
        f"`{plain}`": 4,
        f"{plain}()": 2,
        capital: 12,
    }
    return str(rng.choices(list(forms), list(forms.values()))[0])


def _make_path(rng: random.Random) -> str:
    fillers = load_fillers()
    folder, inner = rng.choice(fillers["folders"]), rng.choice(fillers["folders"])
    file = f"{rng.choice(fillers['symbol_parts'])}.{rng.choice(fillers['endings'])}"
    forms = {
        f"{folder}/{file}": 35,
        file: 20,
        f"{folder}/{inner}/": 15,
        f"{folder}/{inner}": 10,
        f"`{folder}/{file}`": 6,
        f"{folder}/": 7,
        folder: 7,
    }
    return str(rng.choices(list(forms), list(forms.values()))[0])


def _make_version(rng: random.Random) -> str:
    major, minor, patch = rng.randint(0, 9), rng.randint(0, 20), rng.randint(0, 9)
    return rng.choice([f"v{major}.{minor}", f"{major}.{minor}.{patch}", f"v{major}"])


def _make_ref(rng: random.Random) -> str:
    names = ["main", "develop", "feature/login", "HEAD~3", "release-2"]
    return rng.choice([f"#{rng.randint(1, 3000)}", f"{rng.randrange(16**7):07x}", *names])


def _make_message(rng: random.Random) -> str:
    fillers = load_fillers()

    def write_part() -> str:
        return re.sub(
            r"\{n\}", lambda _: str(rng.choice(fillers["error_nouns"])), rng.choice(fillers["error_sentences"])
        )

    said = write_part()
    if rng.random() < 0.35:
        said = " ".join(rng.choice(fillers[f"error_{part}"]) for part in ("openings", "verbs", "nouns"))
    said += f": {write_part()}" if rng.random() < 0.25 else ""
    said = f"{rng.choice(fillers['error_classes'])}: {said}" if rng.random() < 0.15 else said
    said = said[0].upper() + said[1:] if rng.random() < 0.4 else said
    return rng.choices(['"{}"', "'{}'", "`{}`", "{}"], [30, 8, 12, 50])[0].format(said)


def _type_carelessly(text: str, line: ExampleLine, rng: random.Random) -> str:
    is_talk = line.intent in {"talk", "other_office"}
    if line.language == "en" and not is_talk:
        text = rng.choice(load_fillers()["greetings"]) + text if rng.random() < 0.12 else text
        text = text.rstrip("?") + rng.choice(load_fillers()["additions"]) if rng.random() < 0.08 else text
    if line.language in _LATIN:
        text = _mistype_word(text, rng) if rng.random() < 0.1 else text
        text = text[0].upper() + text[1:] if rng.random() < 0.35 else text
        text = text.translate(_ACCENTS) if line.language != "en" and rng.random() < 0.25 else text
    if line.intent != "talk" and not text.endswith(_SENTENCE_END) and rng.random() < 0.42:
        text += "？" if line.language in {"ja", "zh"} else "?"
    return text


def _mistype_word(text: str, rng: random.Random) -> str:
    words = text.split(" ")
    at = rng.randrange(len(words))
    word = words[at]
    if len(word) > 3 and word.isalpha():
        cut = rng.randrange(1, len(word) - 1)
        swapped = word[:cut] + word[cut + 1] + word[cut] + word[cut + 2 :]
        words[at] = rng.choice([swapped, word[:cut] + word[cut + 1 :], word[:cut] + word[cut] + word[cut:]])
    return " ".join(words)
