"""The name of the bundled embedder, for callers that do not need its arrays, which load slowly."""

from __future__ import annotations

import json
from pathlib import Path

STATIC = "static"
MODEL_FOLDER = Path(__file__).parent / "static_model"


def read_static_name(folder: Path) -> str:
    """Return the name of a static model with a fingerprint of its files, and the header's weight."""
    description = json.loads((folder / "model.json").read_text(encoding="utf-8"))
    return f"static-{description['name']}-apart{description['header_weight']:g}"
