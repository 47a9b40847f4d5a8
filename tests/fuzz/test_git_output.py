"""Fuzzes git's output on commits and failures, most of which is written by anyone who pushes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from indexer.git.git_command import decode_output
from indexer.git.history import NOBODY, format_person, read_commits, read_origins
from indexer.remotes.remote_repository import RemoteRepository
from tests.fuzz.texts import among

TOKEN = "glpat-a-secret-token"
REMOTE = RemoteRepository(name="shop", url="https://git.example.com/team/shop.git")

words = among(
    ("Fix ", "the ", "\x1e", "\x1f", "\n", "\t", "<ann@example.com>", "@", "Ann ", "author ", "summary ", "\r"), most=8
)
fields = words.map(lambda word: word.replace("\0", "").encode("utf-8", "replace")) | st.binary(max_size=20).map(
    lambda data: data.replace(b"\0", b"")
)
shas = st.text("0123456789abcdef", min_size=40, max_size=40)
times = st.integers(-(2**70), 2**70).map(str) | st.sampled_from(["", "9" * 5000, "-1", "1e9", "²"])
commits = st.tuples(shas, fields, times, fields)


@given(st.lists(commits, max_size=5))
def test_every_commit_of_a_log_is_read(logged: list[tuple[str, bytes, str, bytes]]) -> None:
    output = b"\n".join(
        b"".join(b"\0" + field for field in (sha.encode(), author, at.encode(), subject, b"", b""))
        for sha, author, at, subject in logged
    )

    found = list(read_commits(output))

    assert [each.sha for each in found] == [sha for sha, *_ in logged]
    assert [each.subject for each in found] == [decode_output(subject)[:500] for *_, subject in logged]


@given(st.binary(max_size=300) | words.map(str.encode))
def test_a_log_that_is_cut_or_damaged_is_read_as_far_as_it_goes(output: bytes) -> None:
    assert len(list(read_commits(output))) <= output.count(b"\0") // 6


@given(
    st.binary(max_size=200)
    | st.builds(
        lambda sha, author, at, subject: (
            f"{sha} 1 1 1\n".encode()
            + b"author "
            + author
            + b"\ncommitter-time "
            + at.encode()
            + b"\nsummary "
            + subject
        ),
        shas,
        fields,
        times,
        fields,
    )
)
def test_blame_is_read_or_nothing(output: bytes) -> None:
    for found in read_origins(output):
        assert found.revision.sha
        assert 0 <= found.revision.committed_at < 10**18


@given(words)
def test_no_address_of_a_person_is_kept(name: str) -> None:
    bare = format_person(name)

    assert bare
    assert "@" not in bare
    assert "<" not in bare or bare == NOBODY


@given(st.binary(max_size=100))
def test_bytes_of_git_become_text(data: bytes) -> None:
    assert decode_output(data).encode("utf-8") is not None
