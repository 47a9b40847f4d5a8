"""The ranking: what a question finds first, over snapshots assembled by hand."""

from __future__ import annotations

import numpy as np

from indexer.embedding.embedder import EmbeddingInput
from indexer.embedding.static_embedder import StaticEmbedder
from indexer.search.path_traits import read_path_traits
from indexer.search.ranking import RankingWeights, rank_chunks
from indexer.search.signals import read_question
from indexer.search.snapshot import Snapshot
from indexer.search.snapshot_builder import SnapshotBuilder, make_empty_snapshot
from indexer.text.tokens import add_path, build_bags
from indexer.types import Chunk, FileEntry, ParsedFile, SearchAim, Symbol, SymbolKind

EMBEDDER = StaticEmbedder()
AIMS: tuple[SearchAim, ...] = ("places", "passages")

Files = dict[str, list[tuple[str, str]]]  # path -> (name of the definition or "", text) of each chunk

PROJECT: Files = {
    "http/retry.py": [
        ("RetryPolicy", "class RetryPolicy:\n    attempts = 3\n    backoff = 2.0\n    # waits between attempts\n"),
        ("should_retry", "def should_retry(response):\n    return response.status >= 500\n"),
    ],
    "http/session.py": [
        ("Session", "class Session:\n    def send(self, request):\n        return self.adapter.send()\n")
    ],
    "tests/test_retry.py": [
        ("test_retry_policy_waits", "def test_retry_policy_waits():\n    assert RetryPolicy().backoff\n")
    ],
    "docs/retry.md": [("", "# Retry policy\n\nThe retry policy waits between attempts.\n")],
}


def symbol(name: str, kind: SymbolKind, line: int) -> Symbol:
    return Symbol(name=name, qualified_name=name, kind=kind, signature=name, doc="", start_line=line, end_line=line + 4)


def parsed(chunks: list[tuple[str, str]]) -> ParsedFile:
    return ParsedFile(
        language="python",
        chunks=tuple(
            Chunk(start_line=10 * n + 1, end_line=10 * n + 9, text=text, scope="", names=(name,) if name else ())
            for n, (name, text) in enumerate(chunks)
        ),
        symbols=tuple(
            symbol(name, "class" if name[0].isupper() else "function", 10 * n + 1)
            for n, (name, _) in enumerate(chunks)
            if name
        ),
    )


def grown(previous: Snapshot | None, files: Files, removed: frozenset[int] = frozenset(), first: int = 1) -> Snapshot:
    """A snapshot with the files added; catalog ids count up from `first`, chunk ids are 100 times the file's."""
    assembly = SnapshotBuilder(previous, dimensions=EMBEDDER.dimensions)
    inputs = []
    for file_id, (path, chunks) in enumerate(files.items(), start=first):
        entry = FileEntry(path=path, language="python", source_type=read_path_traits(path).source_type, lines=50)
        file = parsed(chunks)
        assembly.add(
            file_id, entry, file, add_path(build_bags(file), path), [file_id * 100 + n for n in range(len(chunks))]
        )
        inputs += [EmbeddingInput(header=f"{path} {name}", body=text) for name, text in chunks]
    vectors = EMBEDDER.embed_documents(inputs).astype(np.float16).astype(np.float32)
    return assembly.build(removed, vectors)


def found(snapshot: Snapshot, question: str, recipe: RankingWeights | None = None) -> list[str]:
    cosines = snapshot.cosines(EMBEDDER.embed_query(question))
    ranked = rank_chunks(snapshot, question, cosines, recipe=recipe)
    return [snapshot.files.paths[snapshot.chunks.file[ordinal]] for ordinal, _ in ranked]


def test_a_type_that_the_question_names_comes_first() -> None:
    assert found(grown(None, PROJECT), "RetryPolicy")[0] == "http/retry.py"


def test_a_description_finds_the_code_before_its_test_and_documentation() -> None:
    assert found(grown(None, PROJECT), "how long does the retry policy wait between attempts?")[0] == "http/retry.py"


def test_a_question_about_tests_may_find_the_test_first() -> None:
    assert found(grown(None, PROJECT), "tests of the retry policy backoff")[0] == "tests/test_retry.py"


def test_every_fusion_and_mode_finds_the_named_definition() -> None:
    snapshot = grown(None, PROJECT)
    assert found(snapshot, "Session", RankingWeights(fusion="rrf"))[0] == "http/session.py"
    cosines = snapshot.cosines(EMBEDDER.embed_query("Session"))
    for mode in ("lexical", "vector", "hybrid"):
        best, _ = rank_chunks(snapshot, "Session", cosines, mode=mode)[0]
        assert snapshot.files.paths[snapshot.chunks.file[best]] == "http/session.py"


def test_of_two_that_fit_alike_what_is_called_more_comes_first() -> None:
    files: Files = {name: [("", "waits between attempts")] for name in ("a.py", "b.py", "c.py")}
    snapshot = grown(None, files)
    for most in range(3):
        snapshot.chunks.rank[:] = np.eye(3)[most]
        vars(snapshot).pop("log_rank", None)
        ranked = rank_chunks(snapshot, "waits between attempts", None, mode="lexical")
        assert ranked[0][0] == most
        assert len({score for _, score in ranked}) == 2


def test_a_mask_keeps_everything_else_out_and_ranks_what_it_lets_through() -> None:
    snapshot = grown(None, PROJECT)
    only_docs = np.array([path.startswith("docs") for path in snapshot.files.paths])[snapshot.chunks.file]
    ranked = rank_chunks(snapshot, "retry policy", None, mode="lexical", mask=only_docs)
    assert [snapshot.files.paths[snapshot.chunks.file[each]] for each, _ in ranked] == ["docs/retry.md"]


def test_nothing_is_found_for_words_that_the_code_does_not_have() -> None:
    assert rank_chunks(grown(None, PROJECT), "zyzzyva quokka", None, mode="lexical") == []


def test_an_empty_repository_finds_nothing() -> None:
    assert rank_chunks(make_empty_snapshot(EMBEDDER.dimensions), "anything", None) == []


def test_scores_fall_from_first_to_last() -> None:
    snapshot = grown(None, PROJECT)
    scores = [score for _, score in rank_chunks(snapshot, "retry", snapshot.cosines(EMBEDDER.embed_query("retry")))]
    assert scores == sorted(scores, reverse=True)
    assert len(scores) > 2


def test_two_words_find_what_code_writes_as_one() -> None:
    files: Files = {
        "server/websocket.py": [("upgrade", "def upgrade(connection):\n    return connection.upgrade()\n")],
        "server/pages.py": [("serve", "def serve(web):\n    return web.serve()\n")],
        "server/tcp.py": [("listen", "def listen(socket):\n    return socket.listen()\n")],
        "server/queue.py": [("drain", "def drain(job):\n    return job.web_hook()\n")],
    }
    snapshot = grown(None, files)

    assert found(snapshot, "how is a web socket opened?")[0] == "server/websocket.py"
    assert found(snapshot, "who calls the web hook")[0] == "server/queue.py"


def test_words_with_a_stop_word_between_them_are_not_joined() -> None:
    assert read_question(grown(None, {"a/weblog.py": [("log", "weblog")]}), "the web and log").compounds == ()


def test_the_vector_of_a_few_words_does_not_outrank_a_body_that_fits() -> None:
    body = "def choose(routers):\n    for router in routers:\n        yield router.database_for_query()\n" * 4
    files: Files = {
        "database/query/routers/__init__.py": [("", "x = 1\n")],
        "database/choice.py": [("choose", body)],
        **{f"other/{n}.py": [("", "def unrelated(words):\n    return [words]\n" * 12)] for n in range(9)},
    }
    snapshot = grown(None, files)
    cosines = snapshot.cosines(EMBEDDER.embed_query("which database router does the query choose"))
    by_vector = {
        share: rank_chunks(snapshot, "", cosines, mode="vector", recipe=RankingWeights(short_chunk=share))
        for share in (0.0, RankingWeights().short_chunk)
    }
    stub = snapshot.files.paths.tolist().index("database/query/routers/__init__.py")
    plain, weighed = (dict(ranked)[stub] for ranked in by_vector.values())

    assert weighed < plain


def test_text_of_an_unknown_kind_counts_less_than_code() -> None:
    chunk = [("", "the retry policy waits between attempts\n")]
    files: Files = {"a.fixture": chunk, "b.py": chunk}
    assembly = SnapshotBuilder(None, dimensions=EMBEDDER.dimensions)
    for file_id, (path, language) in enumerate((("a.fixture", "text"), ("b.py", "python")), start=1):
        entry = FileEntry(path=path, language=language, source_type="code", lines=50)
        assembly.add(file_id, entry, parsed(files[path]), build_bags(parsed(files[path])), [file_id])
    snapshot = assembly.build(frozenset(), np.zeros((2, EMBEDDER.dimensions), dtype=np.float32))

    assert found(snapshot, "retry policy attempts") == ["b.py", "a.fixture"]


def test_passages_to_read_come_from_fewer_files_than_a_list_of_places() -> None:
    body = "def retry(policy):\n    return policy.waits_between_attempts\n"
    files: Files = {
        "http/retry.py": [(f"retry_{n}", body) for n in range(4)],
        **{f"other/part{n}.py": [("", "the retry policy of others waits\n")] for n in range(4)},
    }
    snapshot = grown(None, files)
    firsts = {
        aim: [snapshot.chunks.file[each] for each, _ in rank_chunks(snapshot, "retry policy waits", None, aim=aim)[:4]]
        for aim in AIMS
    }

    assert len(set(firsts["passages"])) < len(set(firsts["places"]))


def test_the_aim_of_a_search_leaves_the_order_of_files_as_it_is() -> None:
    snapshot = grown(None, PROJECT)
    orders = [
        list(dict.fromkeys(snapshot.chunks.file[each] for each, _ in rank_chunks(snapshot, "retry", None, aim=aim)))
        for aim in AIMS
    ]

    assert orders[0] == orders[1]


def test_a_folder_within_the_name_of_a_java_package_is_no_example() -> None:
    assert not read_path_traits("src/main/java/org/shop/samples/Owner.java").is_example
    assert read_path_traits("samples/src/main/java/org/shop/Owner.java").is_example
