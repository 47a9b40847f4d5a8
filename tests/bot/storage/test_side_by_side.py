"""Two versions share a Postgres for one release: a step to a newer layout takes nothing away from the older one."""

from __future__ import annotations

import re

from agent import Schema
from bot.storage.database import load_postgres_schema

ADDING = re.compile(r"\s*(?:CREATE (?:TABLE|INDEX|SEQUENCE|(?:OR REPLACE )?FUNCTION)|ALTER TABLE \w+\s+ADD COLUMN)\b")


def list_steps() -> list[tuple[int, str]]:
    steps = load_postgres_schema().steps.items()
    return [(number, sql) for number, step in steps for sql in Schema(name="", steps={number: step}).list_statements()]


def test_a_step_in_postgres_only_adds() -> None:
    changing = [(step, statement) for step, statement in list_steps() if not ADDING.match(statement)]

    assert changing == [], "these change what an older process uses"


def test_an_added_column_is_filled_for_those_who_do_not_know_it() -> None:
    unfilled = [
        (step, statement)
        for step, statement in list_steps()
        if "ADD COLUMN" in statement and "NOT NULL" in statement and "DEFAULT" not in statement
    ]

    assert unfilled == [], "these refuse the rows of an older process"
