"""What can be wrong with Postgres, in sentences that say what to do, without the address: that has a password."""

from __future__ import annotations

import re

from agent.errors import CheckpointError, CheckpointUnreachable, CheckpointUnwritable, CheckpointVersion

_NO_ADDRESS = "DATABASE_URL cannot be read. Write it as postgresql://USER:PASSWORD@HOST:5432/NAME."
_NO_HOST = "The host in DATABASE_URL is not known. Check how it is written; in a password, write @ as %40 and / as %2F."
_NO_ANSWER = "Postgres does not answer. Check the network to it, and ask again."
_CLOSED = "The connections to Postgres are closed: citebot is ending."
# What refuses a connection has no code.
_NOT_FOUND = re.compile(r"resolve host|name or service not known", re.IGNORECASE)
_REFUSED = re.compile(r"authentication failed|no password supplied|does not exist", re.IGNORECASE)


def explain_error(error: Exception) -> CheckpointError:
    """Return the error to raise instead; `CheckpointUnreachable` where another try may help."""
    from psycopg import Error, InterfaceError, OperationalError, errors
    from psycopg_pool import PoolClosed

    if not isinstance(error, Error):
        return CheckpointUnreachable(_NO_ANSWER)
    # Details may quote what is stored.
    reason = " ".join((error.diag.message_primary or str(error)).split())
    if isinstance(error, errors.DiskFull | errors.ReadOnlySqlTransaction | errors.InsufficientPrivilege):
        return CheckpointUnwritable(f"Postgres takes no writes: {reason}. Make room, or name one that does.")
    if isinstance(error, errors.UndefinedTable | errors.UndefinedColumn):
        return CheckpointVersion(f"Postgres holds no conversations of this citebot ({reason}). Use another database.")
    if isinstance(error, OperationalError | InterfaceError) and not isinstance(error, PoolClosed):
        return _explain_silence(reason, has_code=error.sqlstate is not None)
    if error.sqlstate is None:  # what the client finds wrong before it asks may quote the address
        return CheckpointError(_CLOSED if isinstance(error, PoolClosed) else _NO_ADDRESS)
    return CheckpointError(f"Postgres failed: {reason}.")


def _explain_silence(reason: str, *, has_code: bool) -> CheckpointError:
    if not has_code and _NOT_FOUND.search(reason):  # which quotes what may be a part of the password
        return CheckpointUnwritable(_NO_HOST)
    family = CheckpointUnwritable if not has_code and _REFUSED.search(reason) else CheckpointUnreachable
    return family(f"Postgres cannot be used ({reason}). See that it runs, and check DATABASE_URL.")
