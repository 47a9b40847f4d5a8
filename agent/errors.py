"""The errors of a turn and of its memory; every message says what to do about it.

AgentError
├── ModelError               a chat model; `retryable` if another try may help
│   ├── ModelMisconfigured       no such provider, a package or a key is missing
│   ├── InvalidApiKey            the provider does not take the key
│   ├── UnknownModel             the provider has no model of that name
│   ├── RequestRefused           the provider does not take the request
│   │   └── ToolsUnsupported         the model cannot call functions
│   ├── QuotaExceeded            too many requests, or the quota is used up
│   ├── ModelUnavailable         the provider fails or cannot be reached
│   ├── ModelTimeout             no answer in time
│   ├── AnswerBlocked            the provider withheld the answer
│   ├── AnswerEmpty              an answer without content
│   │   ├── AnswerUnwritten      it is nothing but calls of tools
│   │   └── AnswerCutEarly       it ended at the model's limit before it began
│   ├── AnswerMalformed          an answer that does not have the form asked for
│   ├── AnswerLeaked             the answer held what must not leave: instructions, or a masked value
│   ├── AnswerTruncated          the answer ended at the model's limit; what came before it is good
│   └── BudgetExceeded           a ceiling of the turn is reached
├── WebSearchError           the web cannot be searched
├── ClassifierUnusable       the operator's classifier of injections cannot be loaded
├── SandboxUnavailable       a command cannot be run where it can harm nothing, so it is not run
├── WorkingCopyError         a commit cannot be laid out as files, or what became of them cannot be read
├── UnknownRun               there is no unfinished run of that id
├── GoalUnreachable          no change of files can reach the goal of a run
├── WorkspaceTooLarge        a run has changed more than can be kept
├── TurnTooLong              the graph went round without coming to an end
├── SchemaError              a database of another layout that cannot be brought to that of this version
└── CheckpointError          the conversation database
    ├── CheckpointUnreachable    it is on another machine, and does not answer
    └── CheckpointOvertaken      another process has continued the conversation; nothing was written
"""

# The reply to an interrupted turn; that is no error.
STOPPED = "Stopped, as you asked."
INTERRUPTED = "I was interrupted before I could answer this. Ask me to try again."


class CodeMoved(Exception):
    """A "no" is about to be given while a newer commit is indexed: look again. People never see this."""


class AgentError(Exception):
    """The root of all errors of this package; its text is a sentence for the person who asked.

    `package` names the missing package, if that is the cause.
    """

    package = ""


class ModelError(AgentError):
    """A chat model failed a request; callers continue without it.

    `reason` is the short form for the middle of a sentence; `retryable` says whether another try
    may help.
    """

    reason = "the language model failed"
    retryable = False


class ModelMisconfigured(ModelError):
    """The configured model cannot be used."""

    reason = "the language model is not set up"


class InvalidApiKey(ModelError):
    """The provider rejects the key; the text names the variable and never the key."""

    reason = "the provider of the language model refused the API key"


class UnknownModel(ModelError):
    """The provider has no model of that name."""

    reason = "the provider has no language model of the configured name"


class RequestRefused(ModelError):
    """The provider rejects the request; repeating it would not help."""

    reason = "the provider of the language model refused the request"


class ToolsUnsupported(RequestRefused):
    """The model cannot call functions; from then on it fills in forms."""

    reason = "the language model cannot call tools"


class QuotaExceeded(ModelError):
    """Too many requests, or the quota is used up."""

    reason = "the quota of the language model is used up"
    retryable = True

    def __init__(self, message: str, *, retry_after: float = 0.0) -> None:
        super().__init__(message)
        self.retry_after = retry_after  # seconds that the provider asks to wait; 0 if it names none


class ModelUnavailable(ModelError):
    """The provider fails, breaks off, or cannot be reached."""

    reason = "the provider of the language model is down"
    retryable = True


class ModelTimeout(ModelError):
    """The model did not answer, or stopped answering, for too long."""

    reason = "the language model did not answer in time"
    retryable = True


class AnswerBlocked(ModelError):
    """The provider withheld the answer or the question."""

    reason = "the provider of the language model withheld its answer"


class AnswerEmpty(ModelError):
    """The model answered without content."""

    reason = "the language model gave an empty answer"
    retryable = True


class AnswerUnwritten(AnswerEmpty):
    """The model kept calling tools when it should have written the answer."""

    reason = "the language model kept calling tools instead of answering"


class AnswerCutEarly(AnswerEmpty):
    """The model reached its length limit, for example by thinking, before it wrote anything."""

    reason = "the language model reached its length limit before it wrote anything"


class AnswerLeaked(ModelError):
    """The answer contained the model's instructions, or a masked value in disguise."""

    reason = "the language model's answer contained protected text"


class AnswerMalformed(ModelError):
    """The answer does not have the requested form."""

    reason = "the language model's answer could not be parsed"
    retryable = True


class AnswerTruncated(ModelError):
    """The answer ended at the model's length limit; the text before it is good."""

    reason = "the language model reached its length limit"


class BudgetExceeded(ModelError):
    """A turn has used up its seconds, tokens or model calls."""

    reason = "this question used up its budget for the language model"


class WebSearchError(AgentError):
    """The search engine does not answer, or refuses."""


class ClassifierUnusable(AgentError):
    """The operator's injection classifier cannot be loaded; questions are judged without it."""


class SandboxUnavailable(AgentError):
    """No sandbox can run a command safely, so it is not run."""


class WorkingCopyError(AgentError):
    """The files of a commit cannot be written, or their changes cannot be read."""


class UnknownRun(AgentError):
    """There is no run with that id, or it is finished."""


class GoalUnreachable(AgentError):
    """No change of files can reach the goal, or its check cannot be made here."""


class WorkspaceTooLarge(AgentError):
    """A run made more changes than can be stored."""


class TurnTooLong(AgentError):
    """A turn took more nodes than allowed."""


class SchemaError(AgentError):
    """A database cannot be migrated to this version's layout; it is unchanged."""


class CheckpointError(AgentError):
    """The conversation database cannot be used."""


class CheckpointUnreachable(CheckpointError):
    """The conversation database on another machine does not answer; saved data is back when it does."""


class CheckpointOvertaken(CheckpointError):
    """Another process has continued the conversation of a run; nothing more of the run is written."""
