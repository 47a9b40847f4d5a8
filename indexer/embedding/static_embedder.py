"""The bundled embedder: a vector for every word piece, added up. No key, no download, no GPU."""

from __future__ import annotations

import json
import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from indexer.embedding.embedder import EmbeddingInput, FloatArray, normalize_rows
from indexer.text.tokens import IDENTIFIER, find_question_words, split_identifier

if TYPE_CHECKING:
    from scipy.sparse import csr_array

HEADER_COUNT = 3.0  # how often a word of a chunk's header counts in the one bag of words that its vector is made of

MODEL_FOLDER = Path(__file__).parent / "static_model"
_BATCH = 2048  # inputs at a time: bounds the table of word vectors to some 20 MB
_CACHED_WORDS = 50_000

# What BERT's pre-tokenizer would still cut in a word that `split_identifier` returns.
_IDEOGRAPHS = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0002a6df\U0002a700-\U0002ceaf\U0002f800-\U0002fa1f"
_PRE_TOKEN = re.compile(f"[{_IDEOGRAPHS}$]|[^{_IDEOGRAPHS}$]+")
_LONGEST_WORD = 100  # the model never saw longer words; they are noise such as encoded data


class WordPieceTokenizer:
    """Cuts lower-case words into the pieces of a WordPiece vocabulary, longest piece first, as BERT does.

    It gives what the `tokenizers` library gives (a test holds it to that) and is ready in a fifth of the time,
    which a single question would otherwise spend mostly on loading.
    """

    def __init__(self, tokens: Sequence[str]) -> None:
        self._rows = {token: row for row, token in enumerate(tokens)}
        self.of_word = lru_cache(maxsize=_CACHED_WORDS)(self._spell_word)

    def of_identifier(self, identifier: str) -> list[int]:
        """Return the rows of the pieces of all words of an identifier; a word that cannot be spelled has none."""
        return list(chain.from_iterable(map(self.of_word, split_identifier(identifier))))

    def _spell_word(self, word: str) -> Sequence[int]:
        if (row := self._rows.get(word)) is not None:
            return (row,)
        if not word.isascii():
            word = "".join(char for char in unicodedata.normalize("NFD", word) if unicodedata.category(char) != "Mn")
        return [row for pre_token in _PRE_TOKEN.findall(word) for row in self._spell_piece(pre_token)]

    def _spell_piece(self, word: str) -> list[int]:
        if len(word) > _LONGEST_WORD:
            return []
        rows: list[int] = []
        start = 0
        while start < len(word):
            prefix = "##" if start else ""
            for end in range(len(word), start, -1):
                if (row := self._rows.get(prefix + word[start:end])) is not None:
                    break
            else:
                return []
            rows.append(row)
            start = end
        return rows


class StaticEmbedder:
    """Adds up the vectors of the words of a text; the order of the words does not matter."""

    def __init__(self, folder: Path = MODEL_FOLDER) -> None:
        model = json.loads((folder / "model.json").read_text(encoding="utf-8"))["name"]
        self._name = f"static-{model}-bag{HEADER_COUNT:g}"
        # Mapped, not read: a question needs a dozen of the 30,000 rows.
        self._vectors = np.load(folder / "vectors.npy", mmap_mode="r")
        self._scales: FloatArray = np.load(folder / "scales.npy")
        self._pieces = WordPieceTokenizer((folder / "vocabulary.txt").read_text(encoding="utf-8").split("\n"))

    @property
    def name(self) -> str:
        """The model with a fingerprint of its files, and how often a header's words count."""
        return self._name

    @property
    def dimensions(self) -> int:
        """The length of a vector."""
        return int(self._vectors.shape[1])

    def embed_documents(self, inputs: Sequence[EmbeddingInput]) -> FloatArray:
        """Return one unit row for each input, zeros where no word is known."""
        batches = [self._embed_batch(inputs[start : start + _BATCH]) for start in range(0, len(inputs), _BATCH)]
        return np.concatenate([np.zeros((0, self.dimensions), np.float32), *batches])

    def embed_query(self, text: str) -> FloatArray:
        """Return the unit vector of a question without its stop words."""
        pieces = [row for word in find_question_words(text) for row in self._pieces.of_identifier(word)]
        vector: FloatArray = normalize_rows(self._dequantize_rows(pieces).sum(axis=0, keepdims=True))[0]
        return vector

    def _embed_batch(self, inputs: Sequence[EmbeddingInput]) -> FloatArray:
        numbers: defaultdict[str, int] = defaultdict(count().__next__)
        header_words = _assign_word_numbers((item.header for item in inputs), numbers)
        body_words = _assign_word_numbers((item.body for item in inputs), numbers)
        table = self._sum_word_vectors(list(numbers))
        headers: FloatArray = _count_words(header_words, len(numbers)) @ table
        bodies: FloatArray = _count_words(body_words, len(numbers)) @ table
        return normalize_rows(np.float32(HEADER_COUNT) * headers + bodies)

    def _sum_word_vectors(self, identifiers: Sequence[str]) -> FloatArray:
        """Return a row for each identifier: the sum of the vectors of its pieces."""
        spelled = [self._pieces.of_identifier(identifier) for identifier in identifiers]
        used, columns = np.unique(np.fromiter(chain.from_iterable(spelled), np.int64), return_inverse=True)
        table: FloatArray = _make_count_matrix(
            columns, [len(pieces) for pieces in spelled], len(used)
        ) @ self._dequantize_rows(used)
        return table

    def _dequantize_rows(self, pieces: Sequence[int] | np.ndarray) -> FloatArray:
        rows = np.asarray(pieces, dtype=np.int64)
        dequantised: FloatArray = self._vectors[rows].astype(np.float32) * self._scales[rows, None]
        return dequantised


def _assign_word_numbers(texts: Iterable[str], numbers: defaultdict[str, int]) -> list[list[int]]:
    """Return the numbers of each text's identifiers; one not seen before gets the next number."""
    return [list(map(numbers.__getitem__, IDENTIFIER.findall(text))) for text in texts]


def _count_words(words: Sequence[Sequence[int]], width: int) -> csr_array:
    columns = np.fromiter(chain.from_iterable(words), np.int64)
    return _make_count_matrix(columns, [len(row) for row in words], width)


def _make_count_matrix(columns: np.ndarray, lengths: Sequence[int], width: int) -> csr_array:
    """Return a sparse matrix with 1 in each of `columns`, `lengths` of them a row; repeats add up."""
    from scipy.sparse import csr_array

    starts = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
    matrix = csr_array((np.ones(len(columns), np.float32), columns, starts), shape=(len(lengths), width))
    matrix.sum_duplicates()
    return matrix
