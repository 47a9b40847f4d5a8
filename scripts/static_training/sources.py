"""The source packages that the vectors are trained on: which there are, how they are obtained, and their files."""

from __future__ import annotations

import hashlib
import subprocess
import tarfile
import zipfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Literal

Client = Literal["pip", "npm", "apt"]

LIST = Path(__file__).with_name("sources.txt")
LARGEST_FILE = 400_000  # bytes; what is larger is data or generated
PERMISSIVE = frozenset({"Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT", "PSF-2.0"})
# The wheels that are listed are those of this platform, whatever the machine is: another has another digest.
PLATFORMS = ("manylinux2014_x86_64", "manylinux_2_17_x86_64", "manylinux_2_28_x86_64")
WHEELS = ("--implementation=cp", "--python-version=3.12", *(f"--platform={tag}" for tag in PLATFORMS))


@dataclass(frozen=True, kw_only=True, slots=True)
class Source:
    """One package: the client that fetches it, its name and version there, its licence, and its archive's SHA-256."""

    client: Client
    name: str
    version: str
    licence: str
    digest: str


def read_sources(path: Path = LIST) -> list[Source]:
    """Read the list; a licence that is not permissive is refused."""
    rows = [line.split() for line in path.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")]
    names = [field.name for field in fields(Source)]
    sources = [Source(**dict(zip(names, row, strict=True))) for row in rows]  # type: ignore[arg-type]
    refused = [f"{source.name} ({source.licence})" for source in sources if source.licence not in PERMISSIVE]
    if refused:
        message = f"Not under a permissive licence: {', '.join(refused)}."
        raise SystemExit(message)
    return sources


def download_sources(sources: Sequence[Source], folder: Path) -> None:
    """Fetch with pip, npm and apt whatever is not in the folder; apt needs the source lines of Debian bookworm."""
    folder.mkdir(parents=True, exist_ok=True)
    there = find_archives(folder)
    wanted: defaultdict[Client, list[str]] = defaultdict(list)
    for source in sources:
        if source.digest not in there:
            separator = {"pip": "==", "npm": "@", "apt": "="}[source.client]
            wanted[source.client].append(f"{source.name}{separator}{source.version}")
    commands: dict[Client, list[str]] = {
        "pip": ["pip", "download", "--no-deps", "--only-binary=:all:", *WHEELS],
        "npm": ["npm", "pack", "--silent"],
        "apt": ["apt-get", "source", "--download-only"],
    }
    for client, packages in wanted.items():
        subprocess.run([*commands[client], *packages], cwd=folder, check=True)


def find_archives(folder: Path) -> dict[str, Path]:
    """Return every archive of a folder by its SHA-256; what a file is called does not matter."""
    endings = (".whl", ".tgz", ".tar.gz", ".tar.xz", ".tar.bz2")
    archives = (path for path in sorted(folder.rglob("*")) if path.name.endswith(endings))
    return {hashlib.sha256(path.read_bytes()).hexdigest(): path for path in archives}


def read_members(archive: Path) -> Iterator[tuple[str, bytes]]:
    """Yield path and content of every file that is not too large; nothing is unpacked to disk or executed."""
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            for entry in wheel.infolist():
                if not entry.is_dir() and entry.file_size <= LARGEST_FILE:
                    yield entry.filename, wheel.read(entry)
        return
    with tarfile.open(archive) as tar:
        for member in tar:
            content = tar.extractfile(member) if member.isfile() and member.size <= LARGEST_FILE else None
            if content is not None:
                yield member.name.partition("/")[2], content.read()
