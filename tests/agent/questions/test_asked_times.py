"""Versions, branches and times are found in a question, whatever its words and their order."""

from __future__ import annotations

import pytest

from agent.questions.asked_times import read_times


@pytest.mark.parametrize(
    ("question", "parts"),
    [
        ("what changed in the parser between v1 and v2?", {"from": "v1", "until": "v2"}),
        ("git diff v1.0...main -- src", {"from": "v1.0", "until": "main"}),
        ("what changed from the last release to main?", {"from": "newest", "until": "main"}),
        ("compare charge on release-2.1 and on develop", {"from": "release-2.1", "until": "develop"}),
        ("show me the diff between main and feature/pay", {"from": "main", "until": "feature/pay"}),
        ("how does release-2.1 differ from main?", {"from": "main", "until": "release-2.1"}),
        ("what's in v6.0.0-alpha.2 that wasn't in alpha.1?", {"from": "alpha.1", "until": "v6.0.0-alpha.2"}),
        ("was hat sich zwischen v1.0 und v2.0 geändert?", {"from": "v1.0", "until": "v2.0"}),
        ("v1.2から何が変わりましたか", {"since": "v1.2"}),
        ("cambios desde la versión 2.0", {"since": "2.0"}),
        ("what changed since 2.1.2 in src/app.py?", {"since": "2.1.2"}),
        ("what changed since 2.1.2 in src/app", {"since": "2.1.2"}),
        ("what is in v2 and not in release/1.x", {"from": "release/1.x", "until": "v2"}),
        ("which files changed since yesterday?", {"since": "yesterday"}),
        ("was wurde gestern geändert?", {"period": "gestern"}),
        ("what was fixed in 3.2.3?", {"release": "3.2.3"}),
        ("which features are unreleased?", {"pending": "unreleased"}),
        ("what changed in src/app.py?", {}),
        ("2026-11-03 14:02:10 worker: started\n2026-11-03 14:02:11 worker: stopped", {"period": "2026-11-03"}),
    ],
)
def test_what_a_question_says_of_time_is_read(question: str, parts: dict[str, str]) -> None:
    assert read_times(question).parts == parts
