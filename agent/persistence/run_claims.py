"""Which run may write in a conversation: the one that claimed it last, by a token that every write compares."""

from __future__ import annotations

import secrets
from typing import NamedTuple

from agent.errors import CheckpointOvertaken

# With the clock of the database in the braces. A claim that is made twice, as where a connection broke, is one claim.
TAKE = (
    "INSERT INTO run_tokens (thread_id, token, used_at) VALUES (?, ?, {clock}) "
    "ON CONFLICT (thread_id) DO UPDATE SET token = excluded.token, used_at = excluded.used_at"
)
# Who claims the thread meanwhile waits for the end of the transaction, and finds what was written in it.
USE = "UPDATE run_tokens SET used_at = {clock} WHERE thread_id = ? AND token = ? RETURNING thread_id"
DROP = "DELETE FROM run_tokens WHERE thread_id = ?"


class RunClaim(NamedTuple):
    """What lets a run write in a thread until somebody else claims that.

    The token is of this one claim and never comes back, also not after the thread was forgotten: a number that is
    counted up in the row would begin anew with it, and could be that of a run which woke up late.
    """

    thread_id: str
    token: str

    def check(self, *, is_current: bool) -> None:
        """Raise `CheckpointOvertaken` where the thread is not, or no longer, under this claim."""
        if not is_current:
            raise CheckpointOvertaken("Another process has continued this conversation. Ask again if no reply comes.")


def make_claim(thread_id: str) -> RunClaim:
    """Make a claim that nobody else has; it holds once it is written down."""
    return RunClaim(thread_id, secrets.token_hex(16))
