"""What can go wrong with a turn or its memory; every message says what to do about it.

AgentError
└── CheckpointError          the conversation database
    ├── CheckpointUnwritable     read-only, or the disk is full
    ├── CheckpointLocked         another process is writing to it
    ├── CheckpointVersion        written by another version
    └── CheckpointDamaged        not a database, or its pages are broken
"""


class AgentError(Exception):
    """The root of all errors of this package; its text is a sentence for the person who asked."""


class CheckpointError(AgentError):
    """The conversation database cannot be used."""


class CheckpointUnwritable(CheckpointError):
    """The conversation database is read-only, or the disk is full."""


class CheckpointLocked(CheckpointError):
    """Another process holds the conversation database."""


class CheckpointVersion(CheckpointError):
    """The conversation database was written by another version of citebot."""


class CheckpointDamaged(CheckpointError):
    """The file is not a conversation database, or it is damaged."""
