"""The overview of a generation as a file beside its arrays: made once when it is indexed, read by all who answer."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from indexer.checksums import append_checksum, open_checked
from indexer.types import Location, Passage, RepositoryOverview

OVERVIEW_FILE = "overview.npy"  # in the folder of a generation

log = logging.getLogger(__name__)


def save_overview(path: Path, overview: RepositoryOverview) -> None:
    """Write an overview; anyone who reads it meanwhile notices that it is not whole. Raises OSError."""
    text = json.dumps(asdict(overview)).encode()
    with path.open("wb") as file:
        np.save(file, np.frombuffer(text, dtype=np.uint8))
    append_checksum(path)


def load_overview(path: Path) -> RepositoryOverview | None:
    """Read an overview; None if none was written, or it is damaged."""
    try:
        with open_checked(path) as file:
            text = np.load(file, allow_pickle=False).tobytes()
        return _parse_overview(json.loads(text))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, EOFError) as error:
        log.info("The overview %s cannot be read, and is made anew: %s", path, error)
        return None


def _parse_overview(fields: Mapping[str, Any]) -> RepositoryOverview:
    return RepositoryOverview(
        files=fields["files"],
        lines=fields["lines"],
        languages=tuple((name, count) for name, count in fields["languages"]),
        folders=tuple((name, count) for name, count in fields["folders"]),
        starts=tuple(fields["starts"]),
        introduction=tuple(
            Passage(location=Location(**one["location"]), text=one["text"], language=one["language"])
            for one in fields["introduction"]
        ),
    )
