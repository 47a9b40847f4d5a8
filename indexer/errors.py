"""The errors of a repository and its index; every message says what to do about it.

IndexerError
├── RepositoryError          the git side
│   ├── NotARepository       the path holds no git repository
│   ├── EmptyRepository      there is no commit yet
│   ├── MissingObjects       git objects are missing (partial clone, damage)
│   ├── RepositoryTooLarge   git writes more, or takes longer, than a repository that anybody works in is worth
│   ├── BadAddress           a remote repository is configured so that it cannot be fetched
│   └── RemoteError          a remote repository could not be fetched; has a state
│       └── DamagedClone         what was fetched before is not as it was written
├── StorageError             the data folder
│   ├── StorageUnwritable    read-only or full
│   ├── StorageVersion       written by another version
│   ├── StorageLocked        another citebot is writing to it
│   ├── DamagedCatalog       the catalog cannot be read and must be built again
│   ├── DamagedVectors       the vectors cannot be read and must be built again
│   ├── MissingVectors       a key has no vector
│   ├── VectorsUnavailable   the vector server cannot be used
│   ├── SegmentsUnavailable  the object store, or what says which generation is served, cannot be used
│   ├── SegmentsDamaged      what was published is not what its hashes say, or is not all there
│   └── PublicationLost      another indexer published first, or this one took too long
├── EmbedderError            an embedder cannot be built or does not answer
├── CommitSetAside           processes died while they indexed the commit
├── ParserUnavailable        files cannot be parsed, whichever they are
├── NotIndexed               a question came before the first generation
│   └── IndexDamaged         what was indexed is damaged, and is built again
├── BadPattern               a glob or a regular expression cannot be understood
├── UnknownRevision          no tag, branch or commit has the name
└── UnknownPath              the path is not in the indexed commit
"""

from indexer.types import Coverage, RemoteState


class IndexerError(Exception):
    """The root of all errors of this package; its text is a sentence for the person who asked."""


class RepositoryError(IndexerError):
    """The git repository cannot be used in its present state."""


class NotARepository(RepositoryError):
    """The path holds no git repository."""


class EmptyRepository(RepositoryError):
    """The repository has no commit yet."""


class MissingObjects(RepositoryError):
    """Git objects that the commit refers to are missing."""


class RepositoryTooLarge(RepositoryError):
    """Git writes more, or takes longer, than any real repository needs."""


class BadAddress(RepositoryError):
    """An address, a branch or a token cannot be used to fetch a repository."""


class RemoteError(RepositoryError):
    """A remote repository could not be fetched; the previous fetch is still there."""

    def __init__(self, state: RemoteState, message: str) -> None:
        super().__init__(message)
        self.state = state


class DamagedClone(RemoteError):
    """A clone is damaged, and must be fetched again."""


class StorageError(IndexerError):
    """The data folder cannot be used."""


class StorageUnwritable(StorageError):
    """The data folder is read-only or the disk is full."""


class StorageVersion(StorageError):
    """The data folder was written by another version of citebot."""


class StorageLocked(StorageError):
    """Another process is writing to the data folder."""


class DamagedCatalog(StorageError):
    """The catalog is damaged, and must be rebuilt."""


class DamagedVectors(StorageError):
    """The vector store cannot be read and must be built again."""


class MissingVectors(StorageError, LookupError):
    """A requested key has no vector."""


class VectorsUnavailable(StorageError):
    """The vector server cannot be used; the index can be searched without it."""


class SegmentsUnavailable(StorageError):
    """The object store, or the store of manifests, cannot be used; downloaded indexes can."""


class SegmentsDamaged(StorageError):
    """A published index does not match its hashes, or is incomplete."""


class PublicationLost(StorageError):
    """Another indexer published first, or this one's pin expired."""


class EmbedderError(IndexerError):
    """An embedder cannot be built, or does not answer; `package` names a missing package, if any."""

    package = ""


class CommitSetAside(IndexerError):
    """Processes died while indexing a commit, which is not tried again."""


class ParserUnavailable(IndexerError):
    """No parser process can be started, or the pool was closed."""


class NotIndexed(IndexerError):
    """There is no finished generation to read from."""


class IndexDamaged(NotIndexed):
    """An index is damaged; the next refresh rebuilds it."""


class BadPattern(IndexerError):
    """A glob or a regular expression is invalid or too long."""


class UnknownRevision(IndexerError):
    """No tag, branch or commit has the name; the sentence lists the newest tags."""


class UnknownPath(IndexerError):
    """The path, or the lines, are not in the indexed commit; says how much of it was read, if known."""

    def __init__(self, message: str, coverage: Coverage | None = None, commit: str = "") -> None:
        super().__init__(message)
        self.coverage = coverage
        self.commit = commit
