"""Living answers in a process: followed through the pushes indexed here, and marked where they are outdated."""

from __future__ import annotations

import asyncio

from agent import Database
from bot.app import TeamApp, open_code_push
from bot.clock import Clock
from bot.conversations.dispatcher import Conversations
from bot.living.edits import LivingEdits
from bot.living.following import AnswerFollower
from bot.settings import LivingTable
from bot.storage.living_answers import LivingAnswerStore


def make_follower(team: TeamApp, database: Database, clock: Clock, changed: asyncio.Event) -> AnswerFollower:
    """Make the follower of answers about the repositories that are indexed here; `changed` is set where one differs."""
    indexes = team.stock.built or team.stock.library
    pages = {name: profile.page for name, profile in team.stock.signs.items()}
    store = LivingAnswerStore(database, clock)
    follower = AnswerFollower(store, indexes, open_code_push, pages=pages, on_change=changed.set)
    indexes.tell_when_indexed(follower.notify)
    return follower


def make_living_edits(
    core: Conversations, table: LivingTable, database: Database, clock: Clock, changed: asyncio.Event
) -> LivingEdits:
    """Make the edits of outdated answers on the platforms of this process."""
    deps = core.deps
    return LivingEdits(
        store=LivingAnswerStore(database, clock),
        inbox=deps.inbox,
        access=deps.access,
        settings=table,
        clock=clock,
        transports=core.turns.transports,
        hosts=deps.hosts,
        told=changed,
    )
