"""The bundled embedder: a vector for every word or piece of one, added up. No key, no download, no GPU."""

from __future__ import annotations

import json
import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import cached_property, lru_cache
from itertools import chain, count, pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from indexer.embedding.embedder import EmbeddingInput, FloatArray, normalize_rows
from indexer.embedding.static_name import MODEL_FOLDER, read_static_name
from indexer.text.tokens import IDENTIFIER, find_question_words, split_identifier

_BATCH = 512  # inputs at a time: bounds the arrays of their words to some 20 MB
_CACHED_WORDS = 50_000
_ROW_BITS = 20  # of a number that says both a text and a row of the table; the table has fewer rows than that

# Characters at which BERT's pre-tokenizer would still cut a word of `split_identifier`.
_IDEOGRAPHS = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0002a6df\U0002a700-\U0002ceaf\U0002f800-\U0002fa1f"
_PRE_TOKEN = re.compile(f"[{_IDEOGRAPHS}$]|[^{_IDEOGRAPHS}$]+")
_MAX_WORD = 100  # the model never saw longer words; they are noise such as encoded data


class WordPieceTokenizer:
    """Cuts lower-case words into the pieces of a WordPiece vocabulary, longest piece first, as BERT does.

    A test compares it with the `tokenizers` library. It loads in a fifth of that library's time, which would dominate a
    single question. `of_word` takes one word, `of_identifier` all words of an identifier; words outside the vocabulary
    have no pieces.
    """

    def __init__(self, tokens: Sequence[str]) -> None:
        self._rows = {token: row for row, token in enumerate(tokens)}
        self._longest = max(map(len, tokens))
        self.of_word = lru_cache(maxsize=_CACHED_WORDS)(self._spell_word)
        self.of_identifier = lru_cache(maxsize=_CACHED_WORDS)(self._spell_identifier)

    def _spell_identifier(self, identifier: str) -> Sequence[int]:
        return tuple(chain.from_iterable(map(self.of_word, split_identifier(identifier))))

    def _spell_word(self, word: str) -> Sequence[int]:
        if (row := self._rows.get(word)) is not None:
            return (row,)
        if not word.isascii():
            word = "".join(char for char in unicodedata.normalize("NFD", word) if unicodedata.category(char) != "Mn")
        return [row for pre_token in _PRE_TOKEN.findall(word) for row in self._spell_piece(pre_token)]

    def _spell_piece(self, word: str) -> list[int]:
        if len(word) > _MAX_WORD:
            return []
        rows: list[int] = []
        start = 0
        while start < len(word):
            prefix = "##" if start else ""
            for end in range(min(len(word), start + self._longest), start, -1):
                if (row := self._rows.get(prefix + word[start:end])) is not None:
                    break
            else:
                return []
            rows.append(row)
            start = end
        return rows


class StaticEmbedder:
    """Adds up the vectors of the words of a text; word order does not matter.

    A chunk's header and body are added up and normalized separately, so that a long body does not
    drown its header; then the header gets the model's weight. In a question, every row has a
    weight: common words of questions say little about the place.
    """

    def __init__(self, folder: Path = MODEL_FOLDER) -> None:
        description = json.loads((folder / "model.json").read_text(encoding="utf-8"))
        self._header_weight = np.float32(description["header_weight"])
        self._name = read_static_name(folder)
        # Mapped, not read: a question needs a dozen of the 44,000 rows.
        self._vectors = np.load(folder / "vectors.npy", mmap_mode="r")
        self._scales: FloatArray = np.load(folder / "scales.npy")
        self._query_weights = np.load(folder / "query_weights.npy", mmap_mode="r")
        self._vocabulary = folder / "vocabulary.txt"

    @cached_property
    def _pieces(self) -> WordPieceTokenizer:
        return WordPieceTokenizer(self._vocabulary.read_text(encoding="utf-8").split("\n"))

    @property
    def name(self) -> str:
        """The model with a fingerprint of its files, and the header's weight."""
        return self._name

    @property
    def dimensions(self) -> int:
        """The length of a vector."""
        return int(self._vectors.shape[1])

    def embed_documents(self, inputs: Sequence[EmbeddingInput]) -> FloatArray:
        """Return one unit row for each input, zeros for unknown text."""
        batches = [self._embed_batch(inputs[start : start + _BATCH]) for start in range(0, len(inputs), _BATCH)]
        return np.concatenate([np.zeros((0, self.dimensions), np.float32), *batches])

    def embed_query(self, text: str) -> FloatArray:
        """Return the unit vector of a question without its stop words."""
        pieces = [row for word in find_question_words(text) for row in self._pieces.of_identifier(word)]
        rows, counts = np.unique(np.asarray(pieces, np.int64), return_counts=True)
        total = self._add_rows(rows, counts.astype(np.float32) * self._query_weights[rows])
        vector: FloatArray = normalize_rows(total[None])[0]
        return vector

    def _embed_batch(self, inputs: Sequence[EmbeddingInput]) -> FloatArray:
        headers = normalize_rows(self._add_words(item.header for item in inputs))
        bodies = normalize_rows(self._add_words(item.body for item in inputs))
        return normalize_rows(self._header_weight * headers + bodies)

    def _add_words(self, texts: Iterable[str]) -> FloatArray:
        """Return a row for each text: the sum of the vectors of its words' pieces."""
        numbers: defaultdict[str, int] = defaultdict(count().__next__)
        words = [list(map(numbers.__getitem__, IDENTIFIER.findall(text))) for text in texts]
        spelled = [self._pieces.of_identifier(identifier) for identifier in numbers]
        rows, counts, starts = _count_pieces(words, spelled)
        sums = np.zeros((len(words), self.dimensions), np.float32)
        for text, (start, end) in enumerate(pairwise(starts)):
            sums[text] = self._add_rows(rows[start:end], counts[start:end].astype(np.float32))
        return sums

    def _add_rows(self, rows: NDArray[np.int64], weights: FloatArray) -> FloatArray:
        # One text at a time is a product so small that no BLAS spreads it over threads, which would cost more than
        # it gains; and a text's vector does not depend on its neighbours.
        total: FloatArray = (weights * self._scales[rows]) @ self._vectors[rows].astype(np.float32)
        return total


def _count_pieces(
    words: Sequence[Sequence[int]], spelled: Sequence[Sequence[int]]
) -> tuple[NDArray[np.int64], NDArray[np.int64], list[int]]:
    """Return the distinct pieces of each text, their counts, and where each text's begin and the last end.

    `words` has the numbers of each text's words, `spelled` the pieces of each word.
    """
    lengths = np.fromiter(map(len, spelled), np.int64, len(spelled))
    pieces = np.fromiter(chain.from_iterable(spelled), np.int64, int(lengths.sum()))
    text_lengths = np.fromiter(map(len, words), np.int64, len(words))
    flat = np.fromiter(chain.from_iterable(words), np.int64, int(text_lengths.sum()))
    times = lengths[flat]
    texts = np.repeat(np.repeat(np.arange(len(words)), text_lengths), times)
    # The pieces of a word stand together: each word's first place, and its further ones by counting on.
    shifts = (np.cumsum(lengths) - lengths)[flat] - (np.cumsum(times) - times)
    keys = np.sort((texts << _ROW_BITS) + pieces[np.arange(len(texts)) + np.repeat(shifts, times)])
    firsts = np.flatnonzero(np.diff(keys, prepend=-1))
    distinct = keys[firsts]
    starts = np.searchsorted(distinct, np.arange(len(words) + 1) << _ROW_BITS)
    return distinct & ((1 << _ROW_BITS) - 1), np.diff(firsts, append=len(keys)), starts.tolist()
