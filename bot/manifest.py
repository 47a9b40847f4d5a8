"""The list of contents of a backup: what may be in one, how large, and with which digests."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from bot.chat import INBOX_FILE
from bot.disk_use import CONVERSATIONS, PROMPTS
from indexer.folders import REPOSITORIES

FORM = 1  # raise it when a backup of this version cannot be restored by earlier ones
NAME = "citebot-backup.json"
DATABASES = (CONVERSATIONS, INBOX_FILE)

# Nothing else is saved, and nothing else restored: no path leads out of the folder, and no file is code to anybody.
_MEMBER = re.compile(
    rf"{re.escape(CONVERSATIONS)}|{re.escape(INBOX_FILE)}|{PROMPTS}"
    rf"|{REPOSITORIES}/[A-Za-z0-9_-][A-Za-z0-9_.-]{{0,99}}/(catalog\.sqlite|generations/[0-9]{{1,18}}/\w{{1,99}}\.(npy|json))",
    re.ASCII,
)
_DIGEST = re.compile(r"[0-9a-f]{64}")


class InvalidBackup(Exception):
    """A backup cannot be restored; the text goes on from its name."""


@dataclass(frozen=True, kw_only=True, slots=True)
class BackupMember:
    """A file of a backup: its path in the data folder, its bytes, and their sha256 in hexadecimal."""

    name: str
    size: int
    sha256: str


@dataclass(frozen=True, kw_only=True, slots=True)
class BackupManifest:
    """What is in a backup. `made_at` is in seconds since the epoch; without `indexes` those were left out."""

    made_at: float
    indexes: bool
    members: Sequence[BackupMember]

    @property
    def size(self) -> int:
        """The bytes of all members."""
        return sum(member.size for member in self.members)

    def repositories(self) -> int:
        """How many indexes there are."""
        return len({member.name.split("/")[1] for member in self.members if "/" in member.name})

    def to_bytes(self) -> bytes:
        """Write it as JSON."""
        return json.dumps({"form": FORM, **asdict(self)}, indent=1).encode()


def read_manifest(data: bytes) -> BackupManifest:
    """Read and check a manifest; `InvalidBackup` says what is wrong with it."""
    try:
        told = json.loads(data)
        form = told["form"]
        if form != FORM:
            raise InvalidBackup(f"was made by another version of citebot (form {form!r:.20}, this one reads {FORM})")
        members = [_member(each) for each in told["members"]]
        made_at, indexes = float(told["made_at"]), bool(told["indexes"])
    except (ValueError, KeyError, TypeError, RecursionError, OverflowError) as error:
        raise InvalidBackup("has a list of contents that cannot be read") from error
    if len({member.name for member in members}) < len(members):
        raise InvalidBackup("lists a file twice")
    return BackupManifest(made_at=made_at, indexes=indexes, members=members)


def _member(told: dict[str, Any]) -> BackupMember:
    name, size, digest = told["name"], told["size"], told["sha256"]
    if not isinstance(name, str) or not _MEMBER.fullmatch(name):
        raise InvalidBackup(f"lists {name!r:.80}, which citebot never saves")
    if type(size) is not int or size < 0 or not _DIGEST.fullmatch(digest):
        raise InvalidBackup(f"lists {name} wrongly")
    return BackupMember(name=name, size=size, sha256=digest)
