"""A claim's test has to prove that it depends on the code before its verdict is believed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import agent.goals
from tests.agent.goals.claim_cases import CHEATS, HONEST, MISLEADING, SHOP, ClaimCase

PROGRAMS = [Path(agent.goals.__file__).with_name(name) for name in ("claim_form.py", "claim_proof.py")]
QUICK_CHEATS = {"an import alone", "the result replaced after the call", "a truth added", "a cache that is filled"}
QUICK_CLAIMS = {"parse('7') returns [8]", "parse_price('') raises ValueError", "shop.settings.TIMEOUT is 60"}

honest = [
    pytest.param(one, id=one.claim, marks=[] if one.claim in QUICK_CLAIMS else pytest.mark.exhaustive) for one in HONEST
]
cheats = [
    pytest.param(test, id=name, marks=[] if name in QUICK_CHEATS else pytest.mark.exhaustive)
    for name, test in CHEATS.items()
]


def prove(folder: Path, claim: str, test: str) -> dict[str, Any]:
    """Run the proof of a claim about the shop, and return what it wrote."""
    for path, text in SHOP.items():
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_text(text)
    (folder / "test_citebot_claim.py").write_text(test)
    reads, writes = os.pipe()
    with os.fdopen(reads, "rb") as pipe:
        for program in PROGRAMS:
            command = [sys.executable, "-I", str(program), str(writes), "test_citebot_claim.py", claim]
            if subprocess.run(command, cwd=folder, pass_fds=[writes], check=False).returncode:
                break
        os.close(writes)
        (line,) = pipe.read().splitlines()
    return dict(json.loads(line))


@pytest.mark.parametrize("case", honest)
def test_a_claim_of_an_everyday_kind_gets_its_verdict(tmp_path: Path, case: ClaimCase) -> None:
    said = prove(tmp_path, case.claim, case.test)

    assert (said["reason"], said.get("holds")) == ("", case.holds)
    assert all(one.startswith("shop/") for one in said["executed"])


@pytest.mark.parametrize("test", cheats)
def test_a_test_that_only_seems_to_show_a_claim_shows_nothing(tmp_path: Path, test: str) -> None:
    said = prove(tmp_path, "parse('7') returns [8]", test)

    assert said["reason"]
    assert "holds" not in said


@pytest.mark.parametrize(
    "case",
    [pytest.param(one, marks=pytest.mark.exhaustive if number > 2 else []) for number, one in enumerate(MISLEADING)],
)
def test_a_test_that_says_something_else_than_the_claim_shows_nothing(tmp_path: Path, case: ClaimCase) -> None:
    assert prove(tmp_path, case.claim, case.test)["reason"]
