"""JSON objects, as they travel."""

from __future__ import annotations

from typing import Any

JSON = dict[str, Any]
