"""The contract of every embedder, then what is particular to the static one and to those of LangChain."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import traceback
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.embeddings import Embeddings
from pydantic import SecretStr
from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer

from indexer.embedding.embedder import Embedder, EmbeddingInput
from indexer.embedding.factory import open_embedder
from indexer.embedding.langchain_embedder import EmbedderRetryPolicy, LangChainEmbedder
from indexer.embedding.static_embedder import StaticEmbedder, WordPieceTokenizer
from indexer.embedding.static_name import MODEL_FOLDER
from indexer.errors import EmbedderError
from indexer.text.tokens import IDENTIFIER, split_identifier
from tests.fakes.gemini import Failure, FakeGemini, running_gemini
from tests.waiting import LIMIT_SECONDS

GEMINI = "google_genai:gemini-embedding-001"
KEY = "key-that-must-not-be-shown"
ROOT = Path(__file__).parents[3]
VOCABULARY = (MODEL_FOLDER / "vocabulary.txt").read_text(encoding="utf-8").split("\n")


def gemini_embedder(fake: FakeGemini, **patience: float) -> LangChainEmbedder:
    limits = EmbedderRetryPolicy(**{"backoff": 0.0, "concurrency": 2, **patience})  # type: ignore[arg-type]
    return LangChainEmbedder.from_spec(GEMINI, api_key=SecretStr(KEY), base_url=fake.url, patience=limits)


@pytest.fixture(params=["static", "gemini"])
def embedder(request: pytest.FixtureRequest) -> Iterator[Embedder]:
    if request.param == "gemini":
        with running_gemini() as fake:
            yield gemini_embedder(fake)
    else:
        yield StaticEmbedder()


def text(body: str, header: str = "") -> EmbeddingInput:
    return EmbeddingInput(header=header, body=body)


# --- the contract


def test_every_document_has_a_unit_row(embedder: Embedder) -> None:
    rows = embedder.embed_documents([text("def save_session(cookie)", "app/session.py"), text("retry on timeout")])
    assert rows.shape == (2, embedder.dimensions)
    assert rows.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)


def test_blank_documents_have_rows_of_zeros(embedder: Embedder) -> None:
    rows = embedder.embed_documents([text(""), text("session"), text(" \n")])
    assert [bool(row.any()) for row in rows] == [False, True, False]


def test_no_documents_give_no_rows(embedder: Embedder) -> None:
    assert embedder.embed_documents([]).shape == (0, embedder.dimensions)


def test_a_question_is_nearest_to_the_document_with_its_words(embedder: Embedder) -> None:
    rows = embedder.embed_documents(
        [text("open database connection"), text("save session cookie"), text("render template")]
    )
    question = embedder.embed_query("save the session cookie")
    assert question.shape == (embedder.dimensions,)
    assert np.linalg.norm(question) == pytest.approx(1, abs=1e-5)
    assert int(np.argmax(rows @ question)) == 1


def test_a_blank_question_is_zeros(embedder: Embedder) -> None:
    assert not embedder.embed_query(" ").any()


def test_rows_stand_in_the_order_of_many_documents(embedder: Embedder) -> None:
    inputs = [text(f"{word} connection pool") for word in VOCABULARY[2000:2210] if word.isalpha()]
    together = embedder.embed_documents(inputs)
    np.testing.assert_allclose(together[::40], embedder.embed_documents(inputs[::40]), atol=1e-6)


def test_threads_get_the_vectors_that_one_caller_gets(embedder: Embedder) -> None:
    inputs = [[text(f"{word} of the session", "app/web.py")] for word in VOCABULARY[3000:3012]]
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(embedder.embed_documents, inputs))
    for item, rows in zip(inputs, together, strict=True):
        np.testing.assert_array_equal(rows, embedder.embed_documents(item))


# --- the static embedder


def plain_words(text: str) -> list[str]:
    return [part for identifier in IDENTIFIER.findall(text) for part in split_identifier(identifier)]


@given(st.text(max_size=40))
def test_word_pieces_are_those_of_the_tokenizers_library(words: str) -> None:
    pieces = WordPieceTokenizer(VOCABULARY)
    for word in plain_words(words):
        assert list(pieces.of_word(word)) == reference_pieces(word)


@pytest.mark.parametrize("word", ["unaffable", "größe", "ünïcode", "日本語", "한국어", "x" * 101, "ß", "i̇", "größe$x"])
def test_unusual_words_are_cut_as_by_the_tokenizers_library(word: str) -> None:
    assert list(WordPieceTokenizer(VOCABULARY).of_word(word)) == reference_pieces(word)


def reference_pieces(word: str, known: list[Tokenizer] = []) -> list[int]:  # noqa: B006  (built once: it is slow)
    if not known:
        rows = {token: row for row, token in enumerate(VOCABULARY)}
        tokenizer = Tokenizer(WordPiece(rows, unk_token="[UNK]", max_input_chars_per_word=100))
        tokenizer.normalizer = BertNormalizer()
        tokenizer.pre_tokenizer = BertPreTokenizer()
        known.append(tokenizer)
    unknown = VOCABULARY.index("[UNK]")
    return [row for row in known[0].encode(word, add_special_tokens=False).ids if row != unknown]


def test_header_and_body_of_a_document_count_apart() -> None:
    item = text("def processRequest(self): return HTTPResponse", "web/session_store.py SessionStore")
    header_weight = json.loads((MODEL_FOLDER / "model.json").read_text(encoding="utf-8"))["header_weight"]
    header, body = (unit(sum_of_words(part)) for part in (item.header, item.body))
    expected = unit(header_weight * header + body)
    np.testing.assert_allclose(StaticEmbedder().embed_documents([item])[0], expected, atol=1e-5)


def test_a_question_weighs_its_words_as_the_model_says() -> None:
    expected = unit(sum_of_words("session cookie cookie", np.load(MODEL_FOLDER / "query_weights.npy")))
    np.testing.assert_allclose(StaticEmbedder().embed_query("session cookie cookie"), expected, atol=1e-5)


def sum_of_words(text: str, weights: np.ndarray | None = None) -> np.ndarray:
    vectors = np.load(MODEL_FOLDER / "vectors.npy") * np.load(MODEL_FOLDER / "scales.npy")[:, None]
    weighted = vectors if weights is None else vectors * weights[:, None]
    total: np.ndarray = weighted[[row for word in plain_words(text) for row in reference_pieces(word)]].sum(axis=0)
    return total


def unit(vector: np.ndarray) -> np.ndarray:
    scaled: np.ndarray = vector / np.linalg.norm(vector)
    return scaled


def test_a_document_has_the_same_vector_whatever_stands_beside_it() -> None:
    inputs = [text(f"{word} connection pool", f"app/{word}.py") for word in VOCABULARY[2000:2600] if word.isalpha()]
    alone = [StaticEmbedder().embed_documents([item])[0] for item in inputs[::150]]
    np.testing.assert_array_equal(StaticEmbedder().embed_documents(inputs)[::150], alone)


def test_stop_words_of_a_question_do_not_count() -> None:
    embedder = StaticEmbedder()
    np.testing.assert_array_equal(
        embedder.embed_query("How does the session expire?"), embedder.embed_query("session expire")
    )


def test_the_name_tells_recipes_and_model_files_apart() -> None:
    digest = hashlib.sha256()
    for name in ("vectors.npy", "scales.npy", "query_weights.npy", "vocabulary.txt"):
        digest.update((MODEL_FOLDER / name).read_bytes())
    assert StaticEmbedder().name == f"static-code-256-{digest.hexdigest()[:8]}-apart1.3"


def test_the_static_embedder_needs_neither_scipy_nor_tokenizers_nor_langchain() -> None:
    code = (
        "import sys; from indexer.embedding.embedder import EmbeddingInput;"
        "from indexer.embedding.factory import open_embedder; embedder = open_embedder();"
        "embedder.embed_query('session'); embedder.embed_documents([EmbeddingInput(header='a.py', body='session')]);"
        "print([name for name in ('scipy', 'langchain_core', 'tokenizers', 'chromadb') if name in sys.modules])"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=LIMIT_SECONDS, check=True
    )
    assert ended.stdout == "[]\n"


@pytest.mark.exhaustive
def test_a_converted_model_gives_the_vectors_it_was_made_from(tmp_path: Path) -> None:
    vectors = np.random.default_rng(0).standard_normal((3, 8)).astype(np.float16)
    write_model2vec(tmp_path / "from", ["[UNK]", "session", "cookie"], vectors)
    for target in ("first", "second"):
        paths = ["--from", str(tmp_path / "from"), "--to", str(tmp_path / target)]
        command = [sys.executable, "-m", "scripts.make_static_model", *paths]
        subprocess.run(command, cwd=ROOT, check=True, timeout=LIMIT_SECONDS, capture_output=True)
    first, second = (
        {path.name: path.read_bytes() for path in (tmp_path / name).iterdir()} for name in ("first", "second")
    )
    assert first == second
    total = vectors[1].astype(np.float64) + vectors[2]
    query = StaticEmbedder(folder=tmp_path / "first").embed_query("session cookie")
    assert float(query @ total) / np.linalg.norm(total) > 0.9995


def write_model2vec(folder: Path, tokens: list[str], vectors: np.ndarray) -> None:
    folder.mkdir()
    content = vectors.tobytes()
    entry = {"dtype": "F16", "shape": vectors.shape, "data_offsets": [0, len(content)]}
    header = json.dumps({"embeddings": entry}).encode()
    (folder / "model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + content)
    vocabulary = {token: row for row, token in enumerate(tokens)}
    (folder / "tokenizer.json").write_text(json.dumps({"model": {"vocab": vocabulary}}), encoding="utf-8")


# --- LangChain's embedders


def test_gemini_is_asked_in_hundreds_for_short_vectors_of_documents(gemini: FakeGemini) -> None:
    gemini_embedder(gemini).embed_documents([text(f"text {number}", "a.py") for number in range(250)])
    requests = [each for received in gemini.received for each in received.body["requests"]]
    assert sorted(len(received.body["requests"]) for received in gemini.received) == [50, 100, 100]
    assert {each["taskType"] for each in requests} == {"RETRIEVAL_DOCUMENT"}
    assert {each["outputDimensionality"] for each in requests} == {256}
    assert [{"text": "a.py\ntext 0"}] in [each["content"]["parts"] for each in requests]


def test_gemini_is_told_that_a_question_is_one(gemini: FakeGemini) -> None:
    gemini_embedder(gemini).embed_query("where is the session saved?")
    (received,) = gemini.received
    (request,) = received.body["requests"]
    assert (received.model, received.key) == ("gemini-embedding-001", KEY)
    assert (request["taskType"], request["outputDimensionality"]) == ("RETRIEVAL_QUERY", 256)


def test_no_more_calls_than_allowed_are_under_way(gemini: FakeGemini) -> None:
    gemini_embedder(gemini, concurrency=2).embed_documents([text(f"text {number}") for number in range(600)])
    assert gemini.most_at_once <= 2


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_passing_failure_is_tried_again(gemini: FakeGemini, status: int) -> None:
    gemini.failures.extend([Failure(status=status)] * 3)
    assert gemini_embedder(gemini).embed_documents([text("session")]).any()
    assert len(gemini.received) == 4


def test_a_lasting_failure_ends_after_the_last_try(gemini: FakeGemini) -> None:
    gemini.failures.extend([Failure(status=503)] * 9)
    with pytest.raises(EmbedderError, match=r"status 503\); tried 4 times"):
        gemini_embedder(gemini).embed_documents([text("session")])
    assert len(gemini.received) == 4


@pytest.mark.parametrize(("status", "reason"), [(400, "API_KEY_INVALID"), (401, "UNAUTHENTICATED"), (403, "DENIED")])
def test_a_refused_key_is_named_by_its_variable_and_not_shown(gemini: FakeGemini, status: int, reason: str) -> None:
    gemini.failures.append(Failure(status=status, reason=reason, message=f"API key not valid: {KEY}"))
    with pytest.raises(EmbedderError, match="GOOGLE_API_KEY") as raised:
        gemini_embedder(gemini).embed_query("session")
    assert KEY not in "".join(traceback.format_exception(raised.value))
    assert len(gemini.received) == 1


def test_an_unknown_model_is_not_asked_for_twice(gemini: FakeGemini) -> None:
    gemini.failures.append(Failure(status=404))
    with pytest.raises(EmbedderError, match="check the model's name"):
        gemini_embedder(gemini).embed_query("session")
    assert len(gemini.received) == 1


def test_a_service_that_hangs_is_given_up(gemini: FakeGemini) -> None:
    gemini.hanging = True
    with pytest.raises(EmbedderError, match="did not answer in time; tried 2 times"):
        gemini_embedder(gemini, query_seconds=0.1).embed_query("session")


def test_a_service_that_is_not_there_is_an_error() -> None:
    with running_gemini() as gone:
        embedder = gemini_embedder(gone)
    with pytest.raises(EmbedderError, match="did not answer"):
        embedder.embed_query("session")


def test_an_answer_with_too_few_vectors_is_an_error(gemini: FakeGemini) -> None:
    gemini.forget_one = True
    with pytest.raises(EmbedderError, match="answered 3 texts with 2 vectors"):
        gemini_embedder(gemini).embed_documents([text("a"), text("b"), text("c")])


class LetterCounts(Embeddings):
    """An embedder whose dimensions are not known beforehand."""

    def __init__(self) -> None:
        self.questions: list[str] = []

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [[float(each.count(letter)) for letter in "abc"] for each in texts]

    def embed_query(self, text: str) -> list[float]:
        self.questions.append(text)
        return self.embed_documents([text])[0]


def test_dimensions_are_asked_once_where_they_are_not_chosen() -> None:
    letters = LetterCounts()
    embedder = LangChainEmbedder(letters, name="letters")
    assert embedder.embed_documents([text("aab"), text("c")]).shape == (2, 3)
    assert embedder.dimensions == 3
    assert letters.questions == ["dimensions"]


# --- opening by name


@pytest.mark.parametrize("spec", ["", "word2vec", "google_genai:", "nobody:model"])
def test_an_unknown_spec_lists_what_is_possible(spec: str) -> None:
    with pytest.raises(EmbedderError, match=r"Possible are static, google_genai:MODEL, .*openai:MODEL"):
        open_embedder(spec)


def test_a_missing_package_is_named_as_pip_knows_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "langchain_openai", None)
    with pytest.raises(EmbedderError, match="needs the package langchain-openai, which is not installed"):
        open_embedder("openai:text-embedding-3-small")


def test_a_missing_key_is_named_by_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GOOGLE_API_KEY", raising=False)
    monkeypatch.delenv("GEMINI_API_KEY", raising=False)
    with pytest.raises(EmbedderError, match="GOOGLE_API_KEY"):
        open_embedder(GEMINI)
