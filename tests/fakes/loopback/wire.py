"""What travels: JSON objects."""

from __future__ import annotations

from typing import Any

JSON = dict[str, Any]
