"""A copy of a repository that receives commits, so that the repository itself stays unchanged."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

from indexer.errors import RepositoryError
from indexer.git.git_command import decode_output, make_command_error, make_missing_git_error, make_open_error
from indexer.subprocesses import kill_session, start_git_async

SECONDS = 600.0  # that copying may take
_SOURCE = "refs/citebot/source"  # the commit of the repository that the copy last began at
_PLAIN = frozenset({"100644", "100755"})


class ScratchCopy:
    """A bare copy whose HEAD advances with each commit; nothing is ever checked out."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    async def open(cls, source: Path, path: Path) -> ScratchCopy:
        """Copy a repository, or open the existing copy; start over if the repository has moved on."""
        copy = cls(path)
        if not await asyncio.to_thread(path.exists):
            await asyncio.to_thread(path.parent.mkdir, parents=True, exist_ok=True)
            await _run(["clone", "--quiet", "--bare", "--", str(source), str(path)], source)
        known = await copy._find(_SOURCE)
        await copy._git("fetch", "--quiet", "--no-tags", str(source), f"+HEAD:{_SOURCE}")
        if (head := await copy._find(_SOURCE)) != known:
            await copy._git("update-ref", "HEAD", head)
        return copy

    async def read(self, file: str) -> bytes | None:
        """Return the contents of a file at HEAD; None if there is no plain file."""
        if await self._find_mode(file) is None:
            return None
        return await self._git("cat-file", "blob", f"HEAD:{file}")

    async def commit(self, file: str, content: bytes, *, author: str, message: str) -> str:
        """Commit a file with new content under some name; return the commit."""
        mode = await self._find_mode(file) or "100644"
        with tempfile.NamedTemporaryFile() as written:
            written.write(content)
            written.flush()
            blob = decode_output(await self._git("hash-object", "-w", "--no-filters", written.name)).strip()
        await self._git("read-tree", "HEAD")
        await self._git("update-index", "--add", "--cacheinfo", f"{mode},{blob},{file}")
        tree = decode_output(await self._git("write-tree")).strip()
        person = ("-c", f"user.name={author}", "-c", f"user.email={author.lower()}@localhost")
        made = await self._git(*person, "commit-tree", tree, "-p", "HEAD", "-m", message)
        sha = decode_output(made).strip()
        await self._git("update-ref", "HEAD", sha)
        return sha

    async def _find(self, ref: str) -> str:
        found = await self._git("for-each-ref", "--format=%(objectname)", ref)
        return decode_output(found).strip()

    async def _find_mode(self, file: str) -> str | None:
        listed = decode_output(await self._git("ls-tree", "HEAD", "--", file))
        mode = listed.partition(" ")[0]
        return mode if mode in _PLAIN else None

    async def _git(self, *arguments: str) -> bytes:
        return await _run([f"--git-dir={self.path}", *arguments], self.path)


async def _run(arguments: list[str], place: Path) -> bytes:
    """Run git to its end, and return its output; it reaches no other machine."""
    try:
        process = await start_git_async(arguments, protocols="file")
    except OSError as error:
        raise make_missing_git_error(error) from error
    try:
        async with asyncio.timeout(SECONDS):
            output, complaint = await process.communicate()
    except TimeoutError:
        raise RepositoryError(f"git took longer than {SECONDS:.0f} seconds to copy {place}.") from None
    finally:
        await kill_session(process)
    if process.returncode:
        told = decode_output(complaint)
        raise make_open_error(place, told) if arguments[0] == "clone" else make_command_error(place, told)
    return output
