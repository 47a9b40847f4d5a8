"""Names the tools and settings behind a generation, so that a change causes a rebuild."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from indexer.secrets import name_rules

if TYPE_CHECKING:
    from indexer.embedding.embedder import Embedder

FORMAT = "15"  # raise it when chunks, registrations, tokens, masks or columns of segments change: all is indexed again


def make_fingerprint(
    embedder: Embedder, include: Sequence[str], exclude: Sequence[str], large: Sequence[str] = ()
) -> str:
    """Name all inputs of chunks and vectors except the commit."""
    globs = hashlib.blake2b(repr((tuple(include), tuple(exclude), *large)).encode(), digest_size=4).hexdigest()
    return f"{FORMAT}/{embedder.name}/{globs}"


def name_formats() -> Mapping[str, str]:
    """Name the inputs of an index besides the settings: the index format, and the masks."""
    return {"index format": FORMAT, "masks": name_rules()}


def is_readable_fingerprint(provenance: str) -> bool:
    """Whether this version can read such an index."""
    return provenance.partition("/")[0] == FORMAT
