"""Caches of recently read values never exceed their limit, and always keep the last one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexer.calls import call_graph
from indexer.generations import generation_cache
from indexer.generations.generation_cache import GenerationCache
from indexer.parsing.file_parser import parse_file
from indexer.store.catalog import Catalog
from indexer.text.decoding import pack
from indexer.types import Commit, FileEntry

# Files of 7, 14, 21, 28 and 35 characters, with a definition for every seven of them.
SOURCES = {f"{name}.py": f"{name} = 1\n\n" * count for count, name in enumerate("abcde", 1)}
MAX = 28  # characters: the fourth file fills it, the fifth is larger
paths = st.lists(st.sampled_from(sorted(SOURCES)), min_size=1, max_size=12)


@pytest.fixture(scope="module")
def generation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Catalog, int]]:
    catalog = Catalog(tmp_path_factory.mktemp("recent") / "catalog.sqlite")
    with catalog.begin_write() as writer:
        commit = Commit(sha="a" * 40, branch="main", committed_at=1, subject="first")
        number = writer.begin_generation(commit, provenance="p")
        for path, text in SOURCES.items():
            parsed = parse_file(path, text)
            entry = FileEntry(path=path, language=parsed.language, source_type="code", lines=text.count("\n"))
            file = writer.add_file(number, entry, path, pack(text))
            writer.add_parsed(file, parsed, [f"{path}:{place}" for place in range(len(parsed.chunks))])
    yield catalog, number
    catalog.close()


@pytest.fixture(scope="module", autouse=True)
def _little_is_kept() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(generation_cache, "MAX_CHARACTERS", MAX)
        patch.setattr(generation_cache, "MAX_SYMBOLS", 4)
        patch.setattr(call_graph, "_MAX_NAMES", 2)
        patch.setattr("indexer.secrets.cached_redactor.MAX_CHARACTERS", 6)
        yield


@given(paths)
def test_never_more_text_than_fits_is_kept_and_always_the_last(
    generation: tuple[Catalog, int], asked: list[str]
) -> None:
    read = GenerationCache(*generation)
    for path in asked:
        file = read.file(path)
        kept = {other: known for other in SOURCES if (known := read.get_cached_file(other)) is not None}

        assert file is not None
        assert kept[path] is file
        assert len(kept) == 1 or sum(len(each.text) for each in kept.values()) <= MAX


@given(paths)
def test_no_more_outlines_than_fit_are_kept_and_always_the_last(
    generation: tuple[Catalog, int], asked: list[str]
) -> None:
    read = GenerationCache(*generation)
    for path in asked:
        outline = read.outline(path)
        kept = {other: known for other in SOURCES if (known := read.get_cached_outline(other)) is not None}

        assert kept[path] is outline
        assert len(kept) == 1 or sum(len(each) + 1 for each in kept.values()) <= 4


def test_what_was_used_longest_ago_gives_way(generation: tuple[Catalog, int]) -> None:
    read = GenerationCache(*generation)
    first = read.file("a.py")
    read.file("b.py")
    assert read.file("a.py") is first

    read.file("c.py")
    assert (read.get_cached_file("a.py"), read.get_cached_file("b.py")) == (first, None)


def test_definitions_of_only_so_many_names_are_remembered(generation: tuple[Catalog, int]) -> None:
    calls = GenerationCache(*generation).graph
    for name in "abac":
        calls.definitions(name)

    assert [calls.read_remembered(name) is not None for name in "abc"] == [True, False, True]
