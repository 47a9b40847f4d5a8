"""Measures how much of each prompt a provider can find in its cache: `python -m benchmarks.prefixes REQUESTS.json`.

The file is a list of the requests of one answer or conversation, in the order in which they were sent: each is an
object with "messages", each of which has a "role" and a "content", and with "tools" where there are any. What is
measured is the share of each prompt, from the second on, with which the one before it begins too; a provider caches
tools and messages from the first character on.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any


def format_request(request: Mapping[str, Any]) -> str:
    """Write a request as one text, in the order in which providers read it: tools, then messages."""
    tools = [json.dumps(tool, sort_keys=True, ensure_ascii=False) for tool in request.get("tools", ())]
    messages = [_format_message(message) for message in request["messages"]]
    return "\n".join([*tools, *messages])


def _format_message(message: Mapping[str, Any]) -> str:
    content = message["content"]
    text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
    calls = message.get("tool_calls")
    return f"{message['role']}: {text}" + (f" {json.dumps(calls, ensure_ascii=False)}" if calls else "")


def measure_prefixes(requests: Sequence[Mapping[str, Any]]) -> list[float]:
    """Return, of each request from the second on, the share with which the one before begins too."""
    return [
        _count_common(before, text) / len(text) if text else 1.0
        for before, text in pairwise(map(format_request, requests))
    ]


def _count_common(first: str, second: str) -> int:
    """Count the characters with which both texts begin."""
    pairs = enumerate(zip(first, second, strict=False))
    return next((at for at, (one, other) in pairs if one != other), min(len(first), len(second)))


def main() -> None:
    """Read the command line, and print a line for each request."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("requests", type=Path, help="the recorded requests")
    requests = json.loads(parser.parse_args().requests.read_text(encoding="utf-8"))
    for number, share in enumerate(measure_prefixes(requests), 2):
        print(f"request {number}: {len(format_request(requests[number - 1])):8} characters, {share:4.0%} as before")


if __name__ == "__main__":
    main()
