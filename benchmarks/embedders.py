"""Measures the static embedder and Chroma on a folder of code: python -m benchmarks.embedders FOLDER [--chunks N]."""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

import numpy as np
import psutil

from indexer.embedding.embedder import EmbeddingInput
from indexer.embedding.static_embedder import StaticEmbedder
from indexer.store import vectors as vectors_module
from indexer.store.vectors import ChromaVectors, FloatArray

SUFFIXES = {
    ".py",
    ".js",
    ".ts",
    ".go",
    ".java",
    ".rs",
    ".rb",
    ".c",
    ".h",
    ".cpp",
    ".html",
    ".txt",
    ".md",
    ".rst",
    ".po",
}
WINDOW = 1500  # characters
QUESTION = "How does the session middleware decide when to save the cookie?"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--chunks", type=int, default=24_000)
    options = parser.parse_args()
    inputs = windows(options.folder, options.chunks)
    print(f"{len(inputs):,} windows of {WINDOW} characters, {psutil.cpu_count()} cores")
    print(f"{'':44}{'wall':>10}{'cpu':>10}")
    rows = embed(inputs)
    for threads in (None, 1, 2):
        store_and_search(rows, threads)


def windows(folder: Path, wanted: int) -> list[EmbeddingInput]:
    """Cut the folder's files into windows, programs first, until there are enough."""
    paths = sorted(
        (path for path in folder.rglob("*") if path.suffix in SUFFIXES), key=lambda path: path.suffix != ".py"
    )
    found: list[EmbeddingInput] = []
    for path in paths:
        content = path.read_text(encoding="utf-8", errors="replace")
        header = path.relative_to(folder).as_posix()
        found += (
            EmbeddingInput(header=header, body=content[at : at + WINDOW]) for at in range(0, len(content), WINDOW)
        )
        if len(found) >= wanted:
            break
    return found[:wanted]


def embed(inputs: list[EmbeddingInput]) -> FloatArray:
    with measured("load the static model"):
        embedder = StaticEmbedder()
    with measured("first question"):
        embedder.embed_query(QUESTION)
    with measured("a question", times=200):
        for _ in range(200):
            embedder.embed_query(QUESTION)
    cpu = time.process_time()
    with measured("embed all"):
        rows = embedder.embed_documents(inputs)
    print(f"    {len(inputs) / (time.process_time() - cpu):,.0f} documents a CPU second")
    return rows


def store_and_search(rows: FloatArray, threads: int | None) -> None:
    """Time every method of the Chroma store; `threads` is HNSW's own setting, None leaves it to Chroma."""
    print(f"\nChroma, num_threads {threads or 'as it comes'}")
    if threads:
        vectors_module._HNSW["num_threads"] = threads  # noqa: SLF001
    folder = Path(tempfile.mkdtemp(prefix="citebot-vectors-"))
    keys = [f"{number:032x}" for number in range(len(rows))]
    try:
        with measured("import and open, empty"):
            store = ChromaVectors(folder, "benchmark", rows.shape[1])
        before = psutil.Process().memory_info().rss
        with measured("add all"), other_thread() as longest_wait:
            store.add(keys, rows)
        grown = (psutil.Process().memory_info().rss - before) / 1e6
        disk = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6
        print(f"    {grown:.0f} MB memory, {disk:.0f} MB disk, another thread waits {longest_wait():.0f} ms at most")
        read_and_remove(store, keys, rows)
        recall(store, keys, rows)
        with measured("close"):
            store.close()
        with measured("open again"):
            store = ChromaVectors(folder, "benchmark", rows.shape[1])
        store.close()
    finally:
        shutil.rmtree(folder)


def read_and_remove(store: ChromaVectors, keys: list[str], rows: FloatArray) -> None:
    with measured("which of 50,000 are missing"):
        store.find_missing([*keys[:1000], *(f"unknown{number}" for number in range(49_000))])
    with measured("get 1,000"):
        store.get(keys[:1000])
    with measured("get all"):
        store.get(keys)
    with measured("remove 300"):
        store.remove(keys[:300])
    with measured("add 300"):
        store.add(keys[:300], rows[:300])


def recall(store: ChromaVectors, keys: list[str], rows: FloatArray) -> None:
    """Compare the nearest 50 with the exact ones, for questions made of two chunks."""
    questions = rows[7::500] + rows[3::500][: len(rows[7::500])]
    questions /= np.linalg.norm(questions, axis=1, keepdims=True)
    for wanted in (50, 1000):
        found = 0
        with measured(f"nearest {wanted}", times=len(questions)):
            answers = [{key for key, _ in store.find_nearest(question, wanted)} for question in questions]
        for question, answer in zip(questions, answers, strict=True):
            best = np.argsort(-(rows @ question))[:50]
            found += len({keys[row] for row in best} & answer)
        print(f"    recall@50 {found / (50 * len(questions)):.4f}")


@contextmanager
def measured(label: str, times: int = 1) -> Iterator[None]:
    wall, cpu = time.perf_counter(), time.process_time()
    yield
    spent = [(time.perf_counter() - wall) / times, (time.process_time() - cpu) / times]
    print(f"{label:44}" + "".join(f"{1000 * each:>8,.2f}ms" if each < 1 else f"{each:>9,.2f}s" for each in spent))


@contextmanager
def other_thread() -> Iterator[Callable[[], float]]:
    """Run a thread beside the block that wakes every 5 ms; the result tells its longest delay in milliseconds."""
    ended = Event()
    longest = 0.0

    def wake() -> None:
        nonlocal longest
        last = time.perf_counter()
        while not ended.wait(0.005):
            now = time.perf_counter()
            longest = max(longest, now - last)
            last = now

    thread = Thread(target=wake)
    thread.start()
    try:
        yield lambda: 1000 * longest
    finally:
        ended.set()
        thread.join()


if __name__ == "__main__":
    main()
