"""The life of a message in the inbox: its states, the moves between them, who may make each, and what it writes.

                       claim                    settle
         received ---------------->  running  ---------->  done, closed
            ^   ^                   |  |   ^
            |   +-- release, bury --+  +---+  renew, excuse, postpone, ask to stop
            |
            +-- revise, from any state but withdrawn        withdraw, from any state ---> withdrawn

A message is `received` while it waits for a process, and `running` from the moment that one has claimed it: what reads
a message may die of it before there is a run. `done` says that its reply shows the final content, which may be a
question to a person; the answer to that is a message of its own, or this one revised. `closed` says that there is no
answer and must not be one. What is over is dropped some weeks later.

Every move is one statement, so that it is made as a whole or not at all, and only from the states it names. What a
claim gives is a lease, which ends by itself, and a token: the number of the claim among all claims of the message
(`claims`). Whoever acts as the holder shows its token and its run, and is refused where another claim, an edit, or a
burial came between, however late it wakes up; after a burial it may still note what it has posted, until the next
claim.

Three other columns count one thing each: `tries` the claims since the last edit, but those that were released, `deaths`
those of them in which the process died, and `under_way` is 1 while a death of the process would be held against the
message. None follows from the others: a platform that is away, or a kill while the process ends in order, takes a try
without a death.

What the lease does not do, two locks do. Within one process, turns of one conversation wait for each other at the lock
of `AnswerQueue`, in the order of asking and with a placeholder shown; the lease keeps only other processes away. The
agent's lock on a thread is for those who ask it without an inbox, as the terminal does, and for `forget`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

MessageState = Literal["received", "running", "done", "closed", "withdrawn"]
EndedState = Literal["done", "closed"]
# Who makes a move: a process that wants the message, the one that holds it, another one that watches over it, or what
# people do, wherever that is noticed.
Mover = Literal["claimer", "holder", "watcher", "person"]

MAX_TRIES = 3  # a message that was claimed so often without coming to its end is closed at the next claim
MAX_DEATHS = 2  # a message that was under way in so many processes that died is not tried again

KNOWN: tuple[MessageState, ...] = ("received", "running", "done", "closed", "withdrawn")
OPEN: tuple[MessageState, ...] = ("received", "running")
OVER: tuple[MessageState, ...] = ("done", "closed", "withdrawn")

# A conversation belongs to the process that answers in it; what another one holds is left alone until its lease ends.
# The version before left what it had freed in the state `running`, without an owner.
FREE = """(state = 'received' OR (state = 'running' AND (owner = '' OR lease_until < :now)))
    AND (:beside OR NOT EXISTS (SELECT 1 FROM inbox other
        WHERE other.conversation = inbox.conversation AND other.id <> inbox.id
        AND other.state = 'running' AND other.owner NOT IN ('', :owner) AND other.lease_until >= :now))"""

_ERASE = "body = json_set(body, '$.text', '')"


@dataclass(frozen=True, kw_only=True, slots=True)
class Move:
    """A move from any of some states to a state, or to none where the state stays; `writes` are the columns it sets.

    The words after a colon are values of whoever makes it.
    """

    mover: Mover
    sources: tuple[MessageState, ...]
    target: MessageState | None = None
    targets: tuple[MessageState, ...] = ()  # where the mover says which, as `:state`
    writes: str

    def make_statement(self, which: str = "1 = 1", *, holds: int = 1) -> str:
        """Write the statement that makes the move for the messages of a condition, where the mover may make it.

        A holder names what it holds instead, so many messages: `:id0`, `:token0` and `:run0` are the first one.
        """
        state = f"state = '{self.target}', " if self.target else "state = :state, " if self.targets else ""
        sources = ", ".join(f"'{source}'" for source in self.sources)
        return (
            f"UPDATE inbox SET {state}{self.writes} "  # noqa: S608 - constants
            f"WHERE ({which}) AND state IN ({sources}) AND {_make_guard(self.mover, holds)}"
        )


def _make_guard(mover: Mover, holds: int) -> str:
    """Write the condition under which somebody may move a message."""
    held = ", ".join(f"(:id{number}, :token{number}, :run{number})" for number in range(holds))
    guards: dict[Mover, str] = {
        "claimer": FREE,
        "holder": f"(id, claims, run_id) IN (VALUES {held})",
        "watcher": "owner NOT IN ('', :owner)",
        "person": "1 = 1",
    }
    return guards[mover]


CLAIM = Move(
    mover="claimer",
    sources=OPEN,
    target="running",
    writes="owner = :owner, lease_until = :until, claims = claims + 1, tries = tries + 1, under_way = 1, stop = 0, "
    "updated_at = :now",
)
RENEW = Move(mover="holder", sources=("running",), writes="lease_until = :until")
EXCUSE = Move(mover="holder", sources=("running",), writes="under_way = 0")
POSTPONE = Move(mover="holder", sources=("running",), writes="under_way = 0, lease_until = :until")
RELEASE = Move(
    mover="holder",
    sources=("running",),
    target="received",
    writes="owner = '', lease_until = 0, under_way = 0, tries = tries - 1",
)
# Also of a message that was freed or withdrawn meanwhile, the reply has to be found.
NOTE_HANDLES = Move(mover="holder", sources=KNOWN, writes="handles = :handles")
SETTLE = Move(
    mover="holder",
    sources=("running",),
    targets=("done", "closed"),
    writes=f"{_ERASE}, owner = '', lease_until = 0, under_way = 0, updated_at = :now",
)
BURY = Move(
    mover="watcher",
    sources=("running",),
    target="received",
    writes="owner = '', lease_until = 0, deaths = deaths + under_way, under_way = 0",
)
ASK_TO_STOP = Move(mover="person", sources=("running",), writes="stop = 1")
# Runs of one message begin alike, so that its reply is known by the same nonce.
REVISE = Move(
    mover="person",
    sources=("received", "running", "done", "closed"),
    target="received",
    writes="body = :body, run_id = substr(run_id, 1, 20) || :tail, tries = 0, deaths = 0, under_way = 0, owner = '', "
    "lease_until = 0, stop = 0, received_at = :now, updated_at = :now",
)
WITHDRAW = Move(
    mover="person",
    sources=("received", "running", "done", "closed"),
    target="withdrawn",
    writes=f"{_ERASE}, owner = '', lease_until = 0, under_way = 0, updated_at = :now",
)
