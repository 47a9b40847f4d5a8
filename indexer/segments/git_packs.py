"""The past of a remote repository: its commits in packs, and the bare repository around them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from indexer.errors import RepositoryError
from indexer.git.git_command import GitCommand, decode_output, make_command_error
from indexer.segments.listing import History
from indexer.subprocesses import read_output

_LONGEST = 3_600.0  # seconds
_MAX_OUTPUT = 1_000_000  # bytes; git says the name of the pack
_CONFIG = "[core]\n\trepositoryformatversion = {format}\n\tbare = true\n[gc]\n\tauto = 0\n"
_SHA256 = "[extensions]\n\tobjectFormat = sha256\n"
_SHA1_LENGTH = 40


def write_pack(git: GitCommand, folder: Path, wanted: Iterable[str], known: Iterable[str]) -> str:
    """Write a pack, with its index, of the objects of the wanted that the known lack; return its name.

    Empty if there is no such object. Raises `RepositoryError`.
    """
    revisions = "".join(f"{sha}\n" for sha in (*wanted, "--not", *known))
    # Kept in a variable: it ends its process when it is collected.
    command = git.start(
        "pack-objects", "--quiet", "--missing=allow-promisor", "--revs", "--non-empty", str(folder / "pack")
    )
    process = command.proc
    try:
        process.stdin.write(revisions.encode())
        process.stdin.close()
        output, complaint = read_output(process, seconds=_LONGEST, most=_MAX_OUTPUT)
    except (OSError, OverflowError) as error:  # also a timeout
        raise RepositoryError(f"git did not finish packing {git.git_dir}. Check the disk.") from error
    if process.returncode:
        raise make_command_error(git.git_dir, decode_output(complaint))
    return output.decode().strip()


def write_git_folder(folder: Path, history: History) -> None:
    """Write the git folder around the packs: verified data, and only this configuration. Raises OSError."""
    is_sha256 = len(history.sha) > _SHA1_LENGTH
    refs = dict(history.refs)
    if history.branch is not None:
        refs[f"refs/heads/{history.branch}"] = history.sha
    head = f"ref: refs/heads/{history.branch}" if history.branch is not None else history.sha
    (folder / "refs").mkdir(parents=True, exist_ok=True)
    (folder / "objects" / "pack").mkdir(parents=True, exist_ok=True)
    _write(folder / "HEAD", head)
    if refs:  # of an empty line, git says that the repository is damaged
        _write(folder / "packed-refs", "\n".join(f"{sha} {name}" for name, sha in sorted(refs.items())))
    config = _CONFIG.format(format=int(is_sha256)) + (_SHA256 if is_sha256 else "")
    _write(folder / "config", config)
    if history.shallow:
        _write(folder / "shallow", "\n".join(history.shallow))


def _write(path: Path, text: str) -> None:
    path.write_text(f"{text}\n", encoding="utf-8", errors="surrogateescape")
