"""The life of a message in the inbox: its states, the moves between them, who may make each, and what it writes.

              claim             begin              settle
    received --------> claimed --------> running --------> settled, paused, closed
     ^    ^               |               |   ^
     |    +-- release, ---+               +---+  claim, release, bury: what has begun is left to continue with
     |       hand on, bury
     +-- revise, from any state but withdrawn               withdraw, from any state ---> withdrawn

A message is `received` while it waits for a process, and `claimed` while one reads it, chooses what it is about and
waits for a place: there can be no run of it yet. It is `running` from the moment that its run may have begun, also
while no process has it, so that anyone who claims it next continues the run. What is over is `settled`: the reply shows
the final content; `paused`: the reply asks a person something, and the answer to that is a message of its own, or this
one revised; `closed`: there is no answer and must not be one; or `withdrawn`: its author deleted it. A paused message
is settled in the statement with which another one of its conversation begins its run, be that the person's answer or
a question that leaves the earlier one behind. What is over is dropped some weeks later.

Every move is one statement, so that it is made as a whole or not at all, and only from the states it names. What a
claim gives is a lease (`leases.py`), whose token is the number of the claim among all claims of the message (`claims`).
Anyone who acts as the holder shows its token and its run, and is refused where another claim, an edit, or a burial came
between; after a burial it may still note what it has posted, until the next claim. What has no run, such as a command,
is settled from `claimed`.

Three other columns count one thing each: `tries` the claims since the last edit, but those that were released, `deaths`
those of them in which the process died before the answer was complete, and `under_way` is 1 while a death of the
process would be held against the message. None follows from the others: a platform that is away, or a kill while the
process ends in order, takes a try without a death. The agent counts no tries of its own.

A run claims its conversation as well, in the database of conversations (`agent/persistence/evidence_store.py`): a lease
is one of messages, and the two databases need not be one, so that no transaction compares both. A run may `begin` only
after that claim. Anyone who takes the message from its holder later begins, and so claims the conversation, later too:
what the former holder had begun can write nothing from then on.

What the lease does not do, two locks do. Within one process, turns of one conversation wait for each other at the lock
of `AnswerQueue`, in the order of asking and with a placeholder shown. Each of them has claimed its message for that,
so the lease keeps only other processes away. The agent's lock on a thread is for those who ask it without an inbox, as
the terminal does, and for what no claim covers: to forget a conversation, or what it waits for, during a run.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from bot.storage import leases

MessageState = Literal["received", "claimed", "running", "paused", "settled", "closed", "withdrawn"]
EndedState = Literal["settled", "paused", "closed"]
# Who makes a move: a process that wants the message; the one that holds it, for that alone or also for what waits for a
# person in its conversation; the one that held it last; another one that watches over it; or what people do, wherever
# that is noticed.
Mover = Literal["claimer", "holder", "successor", "poster", "watcher", "person"]

MAX_TRIES = 3  # a message that was claimed so often without coming to its end is closed at the next claim
MAX_DEATHS = 2  # a message that crashed so many processes is not tried again

HELD: tuple[MessageState, ...] = ("claimed", "running")
OPEN: tuple[MessageState, ...] = ("received", *HELD)
ENDED: tuple[MessageState, ...] = ("settled", "paused", "closed")
OVER: tuple[MessageState, ...] = (*ENDED, "withdrawn")
KNOWN: tuple[MessageState, ...] = (*OPEN, *OVER)

# A conversation belongs to the process that answers in it; what another one holds is left alone until its lease ends.
# A run whose message was freed is `running` without an owner.
# Two processes that claim in one conversation at once have to come one after the other (`lock` of `Database.row`).
FREE = f"""(state = 'received' OR (state IN ('claimed', 'running') AND {leases.IS_FREE}))
    AND (:beside = 1 OR NOT EXISTS (SELECT 1 FROM inbox other
        WHERE other.conversation = inbox.conversation AND other.id <> inbox.id
        AND other.state IN ('claimed', 'running') AND other.owner NOT IN ('', :owner)
        AND other.lease_until >= lease_clock()))"""  # noqa: S608 - constants


@dataclass(frozen=True, kw_only=True, slots=True)
class Move:
    """A move from some states to another, or to none if the state stays; `writes` are the columns it sets.

    The words after a colon are the mover's values.
    """

    mover: Mover
    sources: tuple[MessageState, ...]
    target: MessageState | None = None
    targets: tuple[MessageState, ...] = ()  # where the mover says which, as `:state`
    writes: str

    def make_statement(self, which: str = "1 = 1", *, holds: int = 1) -> str:
        """Write the statement that makes the move for the messages of a condition, if the mover may make it.

        A holder lists its messages instead: `:id0`, `:token0` and `:run0` are the first one.
        """
        state = f"state = '{self.target}', " if self.target else "state = :state, " if self.targets else ""
        return (
            f"UPDATE inbox SET {state}{self.writes} "  # noqa: S608 - constants
            f"WHERE ({which}) AND state IN ({list_states(self.sources)}) AND {_make_guard(self.mover, holds)}"
        )


def _make_guard(mover: Mover, holds: int) -> str:
    """Write the condition under which the mover may move a message."""
    own, held = name_claims(holds), name_claims(holds, "held.")
    guards: dict[Mover, str] = {
        "claimer": FREE,
        "holder": f"{own} AND owner <> ''",
        "successor": f"({own} OR (state = 'paused' AND conversation = :conversation)) AND EXISTS "  # noqa: S608 - constants
        f"(SELECT 1 FROM inbox held WHERE {held} AND held.owner <> '' AND held.state IN ({list_states(HELD)}))",
        "poster": own,
        "watcher": "owner NOT IN ('', :owner)",
        "person": "1 = 1",
    }
    return guards[mover]


def name_claims(count: int, of: str = "") -> str:
    """Write the condition that a message has one of several claims: `:id0`, `:token0`, `:run0` and so on."""
    named = ", ".join(f"(:id{number}, :token{number}, :run{number})" for number in range(count))
    return f"({of}id, {of}claims, {of}run_id) IN (VALUES {named})"


def list_states(states: Iterable[MessageState]) -> str:
    """Write states as SQL."""
    return ", ".join(f"'{state}'" for state in states)


# Of what is freed, a run is left to continue with, or nothing.
_FREE_IT = f"state = CASE state WHEN 'running' THEN 'running' ELSE 'received' END, {leases.END}"

CLAIM = Move(
    mover="claimer",
    sources=OPEN,
    writes=f"state = CASE state WHEN 'running' THEN 'running' ELSE 'claimed' END, {leases.CLAIM}, "
    "claims = claims + 1, tries = tries + 1, under_way = :risky, stop = 0, updated_at = :now",
)
# A run begins, and nothing in its conversation waits for a person any more.
BEGIN = Move(
    mover="successor",
    sources=(*HELD, "paused"),
    writes="state = CASE state WHEN 'paused' THEN 'settled' ELSE 'running' END, updated_at = :now",
)
RENEW = Move(mover="holder", sources=HELD, writes=leases.RENEW)
# An answer that is complete only must be delivered: nothing of the message is read any more.
ANSWER = Move(mover="holder", sources=HELD, writes=f"{leases.RENEW}, deaths = 0, under_way = 0")
EXCUSE = Move(mover="holder", sources=HELD, writes="under_way = 0")
POSTPONE = Move(mover="holder", sources=HELD, writes=f"under_way = 0, {leases.RENEW}")
RELEASE = Move(mover="holder", sources=HELD, writes=f"{_FREE_IT}, under_way = 0, tries = tries - 1")
# A front has shown that the question came in: that was the first try, at which it was counted.
HAND_ON = Move(mover="holder", sources=HELD, writes=f"{_FREE_IT}, under_way = 0")
# Also of a message that was freed or withdrawn meanwhile, the reply must be found.
NOTE_HANDLES = Move(mover="poster", sources=KNOWN, writes="handles = :handles")
SETTLE = Move(
    mover="holder",
    sources=HELD,
    targets=ENDED,
    writes=f"body = :erased, {leases.END}, under_way = 0, updated_at = :now",
)
BURY = Move(mover="watcher", sources=HELD, writes=f"{_FREE_IT}, deaths = deaths + under_way, under_way = 0")
ASK_TO_STOP = Move(mover="person", sources=HELD, writes="stop = 1")  # this claim alone
# Runs of one message begin alike, so that its reply is known by the same nonce.
REVISE = Move(
    mover="person",
    sources=(*OPEN, *ENDED),
    target="received",
    writes=f"body = :body, run_id = substr(run_id, 1, 20) || :tail, tries = 0, deaths = 0, under_way = 0, stop = 0, "
    f"{leases.END}, received_at = lease_clock(), updated_at = :now, "
    "edited_at = CASE WHEN edited_at < :edited_at THEN :edited_at ELSE edited_at END",
)
WITHDRAW = Move(
    mover="person",
    sources=(*OPEN, *ENDED),
    target="withdrawn",
    writes=f"body = :erased, {leases.END}, under_way = 0, updated_at = :now",
)
