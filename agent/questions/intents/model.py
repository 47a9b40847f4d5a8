"""The model that ranks intents, read from `model.npz`, which `scripts/train_intents.py` writes."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import as_file, files
from typing import TYPE_CHECKING, Literal, get_args

from agent.questions.intents.placeholders import MAX_MASKED, PLACEHOLDERS, NameWords, mask_question

if TYPE_CHECKING:
    from numpy import float32
    from numpy.typing import NDArray

IntentName = Literal[
    "absence",
    "add_another",
    "callees",
    "callers",
    "changes",
    "command",
    "comparison",
    "contents",
    "definition",
    "error",
    "explanation",
    "listing",
    "origin",
    "other_office",
    "overview",
    "people",
    "place",
    "reason",
    "talk",
    "tests",
    "value",
]
_MAX_BETWEEN = 2  # words of the asking within what a question is about
_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)*")
INTENTS: tuple[IntentName, ...] = get_args(IntentName)
SURE = 0.88  # the least confidence with which at most 3 % of the lines left out are taken for something else


@dataclass(frozen=True, kw_only=True, slots=True)
class RankedIntent:
    """A possible intent of a question, and its probability."""

    name: IntentName
    confidence: float


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class IntentModel:
    """Weights of each column for each intent; `digest` is that of the example lines.

    `common` has the words of the lines, and which intents' lines have each, as bits in the order of
    `INTENTS`.
    """

    weights: NDArray[float32] = field(repr=False)
    bias: NDArray[float32] = field(repr=False)
    temperature: float
    common: Mapping[str, int] = field(repr=False)
    digest: str

    def rank(self, question: str, name_words: NameWords | None = None) -> list[RankedIntent]:
        """Return all intents, the likeliest first; for `name_words` see `mask_question`."""
        import numpy as np  # no command waits for it before it is known to be right

        columns, values = list_features(mask_question(question, name_words))
        scores = (self.bias + np.array(values, np.float32) @ self.weights[columns]) / self.temperature
        odds = np.exp(scores - scores.max())
        shares = odds / odds.sum()
        return [RankedIntent(name=INTENTS[at], confidence=float(shares[at])) for at in np.argsort(-shares)]

    def find_subject(self, question: str, intent: IntentName) -> str:
        """Return the subject of a question: its words that lines of its intent lack."""
        bit = 1 << INTENTS.index(intent)
        words = question.split()
        is_own = [not all(self.common.get(one, 0) & bit for one in list_words(word)) for word in words]
        runs: list[tuple[int, int]] = []
        for at, own in enumerate(is_own):
            if own and runs and at - runs[-1][1] <= _MAX_BETWEEN:
                runs[-1] = (runs[-1][0], at + 1)
            elif own:
                runs.append((at, at + 1))
        start, end = max(runs, key=lambda run: sum(is_own[run[0] : run[1]]), default=(0, 0))
        return " ".join(words[start:end]).strip(" ?!.,;:¿¡？。")


def list_words(text: str) -> list[str]:
    """Return the words of a text in small letters."""
    return _WORD.findall(text[:MAX_MASKED].lower().replace("’", "'"))


@cache
def load_model() -> IntentModel:
    """Read the model that ships with the package."""
    import numpy as np  # as above

    with as_file(files("agent.questions.intents") / "model.npz") as path, np.load(path, allow_pickle=False) as stored:
        weights = np.zeros((1 << BITS, len(INTENTS)), np.float32)
        weights[stored["columns"]] = stored["rows"] * stored["scales"].astype(np.float32)[:, None]
        return IntentModel(
            weights=weights,
            bias=stored["bias"],
            temperature=float(stored["temperature"]),
            common=dict(zip(str(stored["common"]).split(), map(int, stored["frames"]), strict=True)),
            digest=str(stored["digest"]),
        )


BITS = 15
_NEAR = 3  # words that may lie between the two of a pair
_UNSPACED = "\u3040-\u30ff\u3400-\u9fff"
_TOKEN = re.compile(rf"[{_UNSPACED}]|[^\W{_UNSPACED}]+(?:'[^\W{_UNSPACED}]+)*|[?!+:]")


def list_features(masked: str) -> tuple[list[int], list[float]]:
    """List the features of a question and their values: words and letter groups, of length 1."""
    tokens = _TOKEN.findall(masked.lower())
    columns: list[int] = []
    values: list[float] = []
    for grams in (_list_word_grams(tokens), _list_letter_grams(tokens)):
        own = sorted({zlib.crc32(gram.encode()) & ((1 << BITS) - 1) for gram in grams})
        columns += own
        values += [max(len(own), 1) ** -0.5] * len(own)
    return columns, values


def _list_word_grams(tokens: Sequence[str]) -> Iterator[str]:
    """Yield runs of one to three words with the ends of the text, and pairs of nearby words."""
    ended = ["<s>", *tokens, "</s>"]
    for length in (1, 2, 3):
        for at in range(len(ended) - length + 1):
            yield "w" + " ".join(ended[at : at + length])
    for at, token in enumerate(tokens):
        for other in tokens[at + 2 : at + 2 + _NEAR]:
            yield f"p{token} {other}"


def _list_letter_grams(tokens: Iterable[str]) -> Iterator[str]:
    for token in set(tokens) - PLACEHOLDERS:
        word = f" {token} "
        for length in (3, 4, 5) if len(token) > 1 else ():
            for at in range(len(word) - length + 1):
                yield "c" + word[at : at + length]
