"""Trains the static embedder: from source packages to pairs, and from pairs to the files of a model."""

from __future__ import annotations

import hashlib
import io
import json
import random
import subprocess
import sys
import tarfile
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array

from indexer.embedding.embedder import EmbeddingInput
from indexer.embedding.static_embedder import StaticEmbedder
from scripts.static_training.corpus import read_corpus
from scripts.static_training.objective import Batch, Parameters, measure_loss
from scripts.static_training.pairs import Pair, find_pairs
from scripts.static_training.sources import find_archives, read_members, read_sources
from scripts.static_training.table import Table, fingerprint, write_table
from tests.waiting import LIMIT_SECONDS

ROOT = Path(__file__).parents[3]

# The repositories whose questions measure retrieval. Nothing of them may be trained on.
MEASURED_ON = set(
    """abseil-cpp aeson aiohttp alamofire astropy axios axum bash-it bats-core cats chi circe click cobra commons-lang
    conan curl dapper django ecto exposed express fastapi flask fmt fmtlib gin gson guzzle http4s httpx
    jackson-databind kotlinx-coroutines ktor laravel-framework lazy.nvim libuv matplotlib messagepack-csharp
    mini.nvim model2vec monolog newtonsoft-json nlohmann-json nvm pandoc phoenix plug pydantic pylint pytest
    rack rails redis redux reflex requests rxswift scikit-learn seaborn serde sinatra sphinx sqlfluff starlette
    streamlink sympy telescope.nvim tokio trpc vapor vitest xarray xmonad zig zig-clap zls zod""".split()
)

DOCUMENTED = '''\
"""Keeps what a visitor did between two requests."""

def save_session(cookie, store):
    """Write the state of a visitor to the store.

    The cookie is signed first.

    Args:
        cookie: what the browser sent
    """
    signed = sign(cookie)
    store.put(signed.key, signed.value)
    return signed


def drop_expired_sessions(store, now):
    for key, value in store.items():
        if value.expires < now:
            store.remove(key)
            store.count_removed += 1
    return store
'''
TESTED = """\
def test_an_expired_visitor_is_forgotten():
    store = make_store()
    drop_expired_sessions(store, 12)
    assert not store
"""
EXPLAINED = """\
# Sessions

What a visitor did is written by `save_session` as soon as the answer is complete.
"""
GO = """\
package cache

// Evict removes the oldest entry of the cache when there is no room for another one.
func (c *Cache) Evict(limit int) int {
	for c.size > limit {
		c.size -= c.entries.Remove(c.entries.Back()).(int)
	}
	return c.size
}
"""


def pairs_of(**files: str) -> dict[str, list[Pair]]:
    """The pairs of a package by their kind; `a__b_py` stands for `a/b.py`."""
    members = [(name.replace("__", "/").replace("_", "."), text.encode()) for name, text in files.items()]
    found: dict[str, list[Pair]] = {}
    for pair in find_pairs(read_corpus(members), random.Random(1), 100):
        found.setdefault(pair.kind, []).append(pair)
    return found


def test_the_first_sentence_of_a_docstring_asks_for_the_function_without_it() -> None:
    (pair,) = pairs_of(web__session_py=DOCUMENTED)["doc"]
    assert pair.question == ["write", "state", "visitor", "store"]
    assert "save_session" in pair.header
    assert "store.put" in pair.body
    assert "state of a visitor" not in pair.body
    assert "what the browser sent" not in pair.body


def test_the_whole_comment_asks_without_its_list_of_parameters() -> None:
    long = "It is kept for an hour, and then it is forgotten unless somebody comes back."
    (pair,) = pairs_of(web__session_py=DOCUMENTED.replace("The cookie is signed first.", long))["long"]
    assert pair.question[:4] == ["write", "state", "visitor", "store"]
    assert {"kept", "hour", "forgotten"} <= set(pair.question)
    assert "browser" not in pair.question


def test_a_name_asks_for_its_definition_without_the_name() -> None:
    (pair,) = pairs_of(web__session_py=DOCUMENTED)["name"]
    assert pair.question == ["drop", "expired", "sessions"]
    assert "drop_expired_sessions" not in pair.header + pair.body
    assert "store.remove" in pair.body


def test_the_title_of_a_test_asks_for_what_the_test_calls() -> None:
    (pair,) = pairs_of(web__session_py=DOCUMENTED, tests__session_py=TESTED)["test"]
    assert {"expired", "visitor", "forgotten"} <= set(pair.question)
    assert "drop_expired_sessions" in pair.body


def test_a_paragraph_asks_for_the_definition_that_it_names() -> None:
    (pair,) = pairs_of(web__session_py=DOCUMENTED, docs__sessions_md=EXPLAINED)["docs"]
    assert {"sessions", "written", "complete"} <= set(pair.question)
    assert "def save_session" in pair.body


def test_files_under_another_licence_are_left_out() -> None:
    licence = "# Licensed under the GNU General Public License, version 2\n"
    assert read_corpus([("web/session.py", (licence + DOCUMENTED).encode())]).files == []
    assert len(read_corpus([("web/session.py", DOCUMENTED.encode())]).files) == 1


# --- packages


def test_wheels_and_tarballs_are_known_by_their_checksum_and_read_in_place(tmp_path: Path) -> None:
    wheel, tarball = write_archives(tmp_path)
    assert find_archives(tmp_path) == {digest_of(wheel): wheel, digest_of(tarball): tarball}
    assert dict(read_members(wheel)) == {"web/session.py": DOCUMENTED.encode()}
    assert dict(read_members(tarball)) == {"cache/lru.go": GO.encode()}


def test_a_licence_that_is_not_permissive_is_refused(tmp_path: Path) -> None:
    (tmp_path / "sources.txt").write_text(f"pip walker 1.0 GPL-3.0 {'0' * 64}\n")
    with pytest.raises(SystemExit, match=r"Not under a permissive licence: walker \(GPL-3\.0\)"):
        read_sources(tmp_path / "sources.txt")


def test_no_package_is_one_that_retrieval_is_measured_on() -> None:
    names = {source.name.lower() for source in read_sources()}
    assert len(names) > 50
    assert names & MEASURED_ON == set()


def write_archives(folder: Path) -> tuple[Path, Path]:
    wheel, tarball = folder / "web-1.0-py3-none-any.whl", folder / "cache_1.0.orig.tar.gz"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("web/session.py", DOCUMENTED)
    with tarfile.open(tarball, "w:gz") as archive:
        entry = tarfile.TarInfo("cache-1.0/cache/lru.go")
        entry.size = len(GO.encode())
        archive.addfile(entry, io.BytesIO(GO.encode()))
    return wheel, tarball


def digest_of(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


# --- training


def test_the_gradient_is_that_of_the_loss() -> None:
    rng = np.random.default_rng(0)
    counts = [csr_array(rng.integers(0, 3, (5, 7)).astype(np.float64)) for _ in range(3)]
    batch = Batch(headers=counts[0], bodies=counts[1], questions=counts[2], groups=np.array([0, 1, 2, 2, 3], np.int32))
    parameters = Parameters(
        vectors=rng.standard_normal((7, 4)),
        weights=0.1 * rng.standard_normal(7),
        query_weights=0.1 * rng.standard_normal(7),
        header=np.array([0.2]),
    )
    _, gradient = measure_loss(parameters, batch, 0.3)
    for name in ("vectors", "weights", "query_weights", "header"):
        value, slope = getattr(parameters, name), getattr(gradient, name)
        for place in np.ndindex(*value.shape):
            losses = []
            for change in (1e-5, -1e-5):
                moved = value.copy()
                moved[place] += change
                losses.append(measure_loss(replace(parameters, **{name: moved}), batch, 0.3)[0])
            assert slope[place] == pytest.approx((losses[0] - losses[1]) / 2e-5, abs=1e-4)


@pytest.mark.exhaustive
def test_training_makes_a_model_that_answers_in_words_which_its_code_lacks(tmp_path: Path) -> None:
    base, work, target = tmp_path / "base", tmp_path / "work", tmp_path / "model"
    write_base(base)
    work.mkdir()
    archives = write_archives(work)
    lines = [f"pip package{number} 1.0 MIT {digest_of(path)}\n" for number, path in enumerate(archives)]
    (tmp_path / "sources.txt").write_text("".join(lines))
    leads = [compare_with_code(base)]
    for _ in range(2):
        train(f"--base={base}", f"--work={work}", f"--to={target}", f"--sources={tmp_path / 'sources.txt'}")
        leads.append(compare_with_code(target))
    assert leads[1] > leads[0] + 0.1
    assert leads[1] == leads[2]
    assert json.loads((target / "model.json").read_text())["name"] == f"code-8-{fingerprint(target)}"


def write_base(folder: Path) -> None:
    """A table in which all words that the packages know are unlike each other."""
    words = "visitor state write store put signed cookie key value save session remove oldest entry cache size limit"
    tokens = ["[UNK]", *words.split(), *"abcdefghijklmnopqrstuvwxyz", *(f"##{c}" for c in "abcdefghijklmnopqrstuvwxyz")]
    vectors = np.random.default_rng(3).standard_normal((len(tokens), 8))
    table = Table(name="tiny-8", tokens=tokens, vectors=vectors, query_weights=np.ones(len(tokens)), header_weight=1.3)
    write_table(table, folder)


def train(*arguments: str) -> None:
    command = [sys.executable, "-m", "scripts.train_static_model", "--steps=60", "--jobs=1", *arguments]
    subprocess.run(command, cwd=ROOT, check=True, timeout=LIMIT_SECONDS, capture_output=True, text=True)


def compare_with_code(folder: Path) -> float:
    """By how much a question is more like the code that it is about than like other code."""
    embedder = StaticEmbedder(folder)
    body = "signed = sign(cookie)\nstore.put(signed.key, signed.value)"
    meant = EmbeddingInput(header="web/session.py save_session", body=body)
    other = EmbeddingInput(header="cache/lru.go Evict", body="c.size -= c.entries.Remove(c.entries.Back())")
    right, wrong = embedder.embed_documents([meant, other]) @ embedder.embed_query("visitor state")
    return float(right - wrong)
