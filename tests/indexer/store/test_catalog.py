"""The catalog: generations beside each other, one transaction a refresh, and data folders that cannot be used."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from indexer.errors import DamagedCatalog, StorageUnwritable, StorageVersion
from indexer.git.objects import Omission
from indexer.store.catalog import Catalog
from indexer.store.catalog_writer import CatalogWriter
from indexer.text.decoding import pack
from indexer.types import Chunk, Commit, FileEntry, Import, ParsedFile, Reference, Symbol

COMMIT = Commit(sha="a" * 40, branch="main", committed_at=1, subject="first")
SYMBOL = Symbol(
    name="send", qualified_name="Session.send", kind="method", signature="def send(self)", doc="Send it.",
    start_line=2, end_line=3,
)  # fmt: skip
REFERENCE = Reference(name="adapt", qualifier="self", kind="call", line=3, scope="Session.send")
IMPORT = Import(module="http", name="adapt", alias="adapt", line=1)
PARSED = ParsedFile(
    language="python",
    chunks=(Chunk(start_line=1, end_line=3, text="...", scope="", names=("send",)),),
    symbols=(SYMBOL,),
    references=(REFERENCE,),
    imports=(IMPORT,),
)


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    opened = Catalog(tmp_path / "catalog.sqlite")
    yield opened
    opened.close()


def add(writer: CatalogWriter, generation: int, path: str, blob: str = "b1", key: str = "k1") -> int:
    entry = FileEntry(path=path, language="python", source_type="code", lines=3)
    file = writer.add_file(generation, entry, blob, pack(f"text of {blob}\n"))
    writer.add_parsed(file, PARSED, [key])
    return file


def begin(writer: CatalogWriter) -> int:
    return writer.begin_generation(COMMIT, provenance="p")


def paths(catalog: Catalog, generation: int) -> list[str]:
    return [row.entry.path for row in catalog.files(generation)]


def test_what_was_written_is_read_back(catalog: Catalog) -> None:
    with catalog.begin_write() as writer:
        generation = begin(writer)
        add(writer, generation, "http/session.py")
    current = catalog.current()
    assert current is not None
    assert (current.id, current.commit, current.skipped) == (generation, COMMIT, {})
    assert catalog.text("b1") == "text of b1\n"
    assert catalog.symbols(generation, "http/session.py") == [SYMBOL]
    assert [each.symbol for each in catalog.definitions(generation, "SEND")] == [SYMBOL]
    assert catalog.list_references_to(generation, "adapt") == [("http/session.py", REFERENCE)]
    assert catalog.list_references_in(generation, "http/session.py") == [REFERENCE]
    assert catalog.list_imports(generation, "http/session.py") == [IMPORT]
    assert catalog.count_rows(generation) == {"files": 1, "chunks": 1, "symbols": 1}
    assert catalog.map_chunks_of_keys(generation, ["k1", "k2"]) == {"k1": [1]}


def test_an_older_generation_keeps_its_files_beside_the_new_one(catalog: Catalog) -> None:
    with catalog.begin_write() as writer:
        old = begin(writer)
        gone = add(writer, old, "a.py")
        add(writer, old, "b.py", blob="b2")
    with catalog.begin_write() as writer:
        new = begin(writer)
        writer.remove_files(new, [gone])
        add(writer, new, "c.py", blob="b3")
    assert (paths(catalog, old), paths(catalog, new)) == (["a.py", "b.py"], ["b.py", "c.py"])
    assert catalog.file(new, "a.py") is None


def test_a_transaction_that_fails_leaves_the_generation_before_it(catalog: Catalog) -> None:
    with catalog.begin_write() as writer:
        old = begin(writer)
        file = add(writer, old, "a.py")
    with pytest.raises(ZeroDivisionError), catalog.begin_write() as writer:
        writer.remove_files(begin(writer), [file])
        raise ZeroDivisionError
    current = catalog.current()
    assert current is not None
    assert (current.id, paths(catalog, old)) == (old, ["a.py"])


def test_sweeping_deletes_what_no_generation_holds_and_names_unused_keys(catalog: Catalog) -> None:
    with catalog.begin_write() as writer:
        old = begin(writer)
        first = add(writer, old, "a.py", key="gone")
        second = add(writer, old, "b.py", blob="b2", key="moved")
    with catalog.begin_write() as writer:
        new = begin(writer)
        writer.remove_files(new, [first, second])
        add(writer, new, "c.py", blob="b2", key="moved")
    with catalog.begin_write() as writer:
        assert writer.sweep([old]) == {"gone"}
    assert (paths(catalog, old), paths(catalog, new)) == ([], ["c.py"])
    assert (catalog.text("b1"), catalog.text("b2")) == ("", "text of b2\n")
    assert catalog.list_retired() == []


def test_what_one_sweep_leaves_the_next_one_takes(catalog: Catalog) -> None:
    with catalog.begin_write() as writer:
        old = begin(writer)
        keys = {"a", "b", "c"}
        files = [add(writer, old, f"{key}.py", blob=f"b{key}", key=key) for key in keys]
        files.append(add(writer, old, "d.py", blob="bd", key="a"))
    with catalog.begin_write() as writer:
        new = begin(writer)
        writer.remove_files(new, files)
    swept = []
    for _ in range(4):
        with catalog.begin_write() as writer:
            swept.append(writer.sweep([old], most=1))

    assert sorted(map(len, swept)) == [0, 1, 1, 1]
    assert set().union(*swept) == keys
    assert {catalog.text(f"b{key}") for key in "abcd"} == {""}


def omitted(catalog: Catalog, *omissions: tuple[str, str], at: tuple[str, ...] | None) -> dict[str, int]:
    """Write a generation that leaves out these paths, for these reasons; what is counted then."""
    with catalog.begin_write() as writer:
        left_out = [Omission(path=path, reason=reason) for path, reason in omissions]
        writer.leave_out(begin(writer), left_out, instead_of=at)
    current = catalog.current()
    assert current is not None
    return current.skipped


def test_what_is_left_out_is_counted_anew_at_the_paths_that_were_touched(catalog: Catalog) -> None:
    first = omitted(catalog, ("a.png", "binary"), ("b.png", "binary"), ("c.js", "minified"), at=None)
    same = omitted(catalog, ("a.png", "binary"), at=("a.png",))
    fewer = omitted(catalog, ("b.png", "too large"), at=("b.png", "c.js", "d.py"))
    whole = omitted(catalog, ("e.png", "binary"), at=None)
    after = omitted(catalog, at=("a.png",))

    assert first == same == {"binary": 2, "minified": 1}
    assert fewer == {"binary": 1, "too large": 1}
    assert whole == after == {"binary": 1}


def test_a_generation_that_fails_leaves_the_counts_before_it(catalog: Catalog) -> None:
    omitted(catalog, ("a.png", "binary"), at=None)
    with pytest.raises(ZeroDivisionError), catalog.begin_write() as writer:
        writer.leave_out(begin(writer), [], instead_of=None)
        raise ZeroDivisionError
    assert omitted(catalog, ("b.png", "binary"), at=("b.png",)) == {"binary": 2}


def test_a_text_is_kept_while_a_file_has_it(catalog: Catalog) -> None:
    with catalog.begin_write() as writer:
        old = begin(writer)
        gone = [add(writer, old, "a.py", blob="shared"), add(writer, old, "b.py", blob="alone")]
        add(writer, old, "c.py", blob="shared")
    with catalog.begin_write() as writer:
        writer.remove_files(begin(writer), gone)
    with catalog.begin_write() as writer:
        writer.sweep([old])
    assert (catalog.text("shared"), catalog.text("alone")) == ("text of shared\n", "")


def test_a_catalog_of_the_first_version_goes_on_in_this_one(tmp_path: Path) -> None:
    path = tmp_path / "catalog.sqlite"
    with closing(Catalog(path)) as catalog, catalog.begin_write() as writer:
        add(writer, begin(writer), "a.py")
    with closing(sqlite3.connect(path)) as db:
        db.executescript(
            "DROP TABLE omissions; DROP INDEX files_by_blob; DROP TABLE registrations; PRAGMA user_version=1;"
        )
    with closing(Catalog(path)) as catalog:
        assert paths(catalog, 1) == ["a.py"]
        assert omitted(catalog, ("a.png", "binary"), at=None) == {"binary": 1}
    with closing(Catalog(path)) as again:
        assert paths(again, 2) == ["a.py"]


def test_a_catalog_of_the_second_version_holds_registrations_from_then_on(tmp_path: Path) -> None:
    path = tmp_path / "catalog.sqlite"
    with closing(Catalog(path)) as catalog, catalog.begin_write() as writer:
        add(writer, begin(writer), "a.py")
    with closing(sqlite3.connect(path)) as db:
        db.executescript("DROP TABLE registrations; PRAGMA user_version=2;")

    with closing(Catalog(path)) as catalog:
        assert paths(catalog, 1) == ["a.py"]
        assert catalog.registrations(1, ["route"], most=10) == []


def test_a_catalog_of_another_version_is_refused_with_advice(tmp_path: Path) -> None:
    path = tmp_path / "catalog.sqlite"
    Catalog(path).close()
    other = sqlite3.connect(path)
    other.execute("PRAGMA user_version=99")
    other.close()
    with pytest.raises(StorageVersion, match="another version"):
        Catalog(path)


def test_a_damaged_catalog_is_told_from_one_that_cannot_be_used(tmp_path: Path) -> None:
    path = tmp_path / "catalog.sqlite"
    path.write_bytes(b"this is no database" * 100)
    with pytest.raises(DamagedCatalog, match="is being rebuilt"):
        Catalog(path)


def test_a_data_folder_that_is_a_file_cannot_be_used(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("a file")
    with pytest.raises(StorageUnwritable, match="data folder"):
        Catalog(tmp_path / "home" / "catalog.sqlite")
