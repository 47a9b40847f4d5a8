"""Providers of chat models: their names, how to build their models, and the meaning of their errors."""

from __future__ import annotations

import importlib
import importlib.util
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from agent.errors import (
    AnswerBlocked,
    AnswerMalformed,
    InvalidApiKey,
    ModelError,
    ModelMisconfigured,
    ModelTimeout,
    ModelUnavailable,
    QuotaExceeded,
    RequestRefused,
    ToolsUnsupported,
    UnknownModel,
)
from indexer.installation import describe_extra

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel
    from pydantic import SecretStr


GOOGLE = "google_genai"


Thinking = Literal["off", "low", "default"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Sampling:
    """Temperature and thinking of a model; None and `default` are the provider's."""

    temperature: float | None = None
    thinking: Thinking = "default"


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelFamily:
    """The models of a provider whose names match, and their options for little or no thinking.

    Those with a `fixed_temperature` write best at their provider's default, and get none.
    """

    names: re.Pattern[str]
    thinking: Mapping[Thinking, Mapping[str, Any]]
    fixed_temperature: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class ChatProvider:
    """The names in a LangChain package.

    `options` turn its own retries off: `MeteredModel` retries. A model belongs to the first matching family of
    `families`; one without a family has no thinking options. `context_option` sets the length of a prompt, for servers
    that otherwise cut it off.
    """

    package: str
    class_name: str
    extra: str = ""  # of citebot, which brings the package
    key_variable: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    families: Sequence[ModelFamily] = ()
    context_option: str = ""

    def make_arguments(self, model: str, sampling: Sampling) -> dict[str, Any]:
        """Return the arguments that make a model write and think as wanted."""
        family = next((each for each in self.families if each.names.match(model)), None)
        arguments = dict(family.thinking.get(sampling.thinking, {})) if family is not None else {}
        if sampling.temperature is not None and not (family is not None and family.fixed_temperature):
            arguments["temperature"] = sampling.temperature
        return arguments


_LOW_BUDGET, _LOW_LEVEL, _LOW_EFFORT = {"thinking_budget": 512}, {"thinking_level": "low"}, {"reasoning_effort": "low"}

PROVIDERS: Mapping[str, ChatProvider] = {
    GOOGLE: ChatProvider(
        package="langchain_google_genai",
        class_name="ChatGoogleGenerativeAI",
        key_variable="GOOGLE_API_KEY",
        options={
            "max_retries": 1,  # here a retry is a try: 0 and 1 both mean once
            "vertexai": False,
            "temperature": None,  # else the package chooses one
            # It goes by two libraries, which would take the key along to wherever they are redirected.
            "client_args": {"follow_redirects": False, "allow_redirects": False},
        },
        families=(  # models with pro in their names cannot stop thinking
            ModelFamily(names=re.compile(r"gemini-2\.5-pro"), thinking={"off": _LOW_BUDGET, "low": _LOW_BUDGET}),
            ModelFamily(names=re.compile(r"gemini-2\.5"), thinking={"off": {"thinking_budget": 0}, "low": _LOW_BUDGET}),
            ModelFamily(
                names=re.compile(r"gemini-(?:[3-9][\d.]{0,4}-)?pro"),
                thinking={"off": _LOW_LEVEL, "low": _LOW_LEVEL},
                fixed_temperature=True,
            ),
            ModelFamily(
                names=re.compile(r"gemini-(?:[3-9]|flash)"),
                thinking={"off": {"thinking_level": "minimal"}, "low": _LOW_LEVEL},
                fixed_temperature=True,
            ),
        ),
    ),
    "anthropic": ChatProvider(
        package="langchain_anthropic",
        class_name="ChatAnthropic",
        extra="anthropic",
        key_variable="ANTHROPIC_API_KEY",
        # A prompt's beginning is read from the cache if the next prompt begins the same.
        options={"max_retries": 0, "model_kwargs": {"cache_control": {"type": "ephemeral"}}},
    ),
    "mistralai": ChatProvider(
        package="langchain_mistralai",
        class_name="ChatMistralAI",
        key_variable="MISTRAL_API_KEY",
        options={"max_retries": 0},
    ),
    "ollama": ChatProvider(
        package="langchain_ollama",
        class_name="ChatOllama",
        extra="ollama",
        families=(ModelFamily(names=re.compile(r""), thinking={"off": {"reasoning": False}}),),
        context_option="num_ctx",
    ),
    "openai": ChatProvider(
        package="langchain_openai",
        class_name="ChatOpenAI",
        extra="openai",
        key_variable="OPENAI_API_KEY",
        options={"max_retries": 0, "stream_usage": True},
        families=(
            ModelFamily(
                names=re.compile(r"o\d|gpt-[5-9]"),
                thinking={"off": _LOW_EFFORT, "low": _LOW_EFFORT},
                fixed_temperature=True,
            ),
        ),
    ),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelSpec:
    """A model that can be built; nothing heavy is imported before that."""

    spec: str
    provider: ChatProvider
    model: str
    api_key: SecretStr | None
    base_url: str | None

    def build(self, sampling: Sampling) -> BaseChatModel:
        """Import the package and build the model, which takes a second the first time."""
        arguments: dict[str, Any] = {
            "model": self.model,
            **self.provider.options,
            **self.provider.make_arguments(self.model, sampling),
        }
        if self.api_key is not None:
            arguments["api_key"] = self.api_key
        if self.base_url is not None:
            arguments["base_url"] = self.base_url
        try:
            module = importlib.import_module(self.provider.package)
            built: BaseChatModel = getattr(module, self.provider.class_name)(**arguments)
        except Exception as error:  # noqa: BLE001  (the packages share no base class for what is wrong with an argument)
            # Not `from error`: pydantic repeats the arguments in its text, and the key is among them.
            variable = self.provider.key_variable
            needed = f" It needs the environment variable {variable}." if variable else ""
            raise ModelMisconfigured(
                f"The language model {self.spec} could not be set up ({type(error).__name__}).{needed}"
            ) from None
        return built


def parse_model_spec(
    spec: str, *, google_api_key: SecretStr | None = None, google_base_url: str | None = None, ollama_host: str = ""
) -> ModelSpec:
    """Read `provider:model`; `ModelMisconfigured` says what is missing. Only Google's class gets Google's key."""
    name, _, model = spec.partition(":")
    if name not in PROVIDERS or not model:
        possible = ", ".join(f"{each}:MODEL" for each in PROVIDERS)
        raise ModelMisconfigured(f"There is no language model {spec!r}. Possible are {possible}, and none.")
    provider = PROVIDERS[name]
    if importlib.util.find_spec(provider.package) is None:
        package = provider.package.replace("_", "-")
        problem = f"The language model {spec} needs the package {package}, which is not installed."
        if provider.extra:
            raise ModelMisconfigured(f"{problem} {describe_extra(provider.extra)}")
        error = ModelMisconfigured(problem)
        error.package = package
        raise error
    is_google, is_ollama = name == GOOGLE, name == "ollama"
    if is_google and google_api_key is None:
        raise ModelMisconfigured(f"The language model {spec} needs a key: set the variable {provider.key_variable}.")
    return ModelSpec(
        spec=spec,
        provider=provider,
        model=model,
        api_key=google_api_key if is_google else None,
        base_url=(google_base_url if is_google else None) or (add_scheme(ollama_host) if is_ollama else None),
    )


def add_scheme(host: str) -> str | None:
    """Complete the address of an Ollama given as host and port; None if there is none."""
    if not host:
        return None
    return host if "://" in host else f"http://{host}"


_BLOCKED = frozenset(
    "SAFETY RECITATION BLOCKLIST PROHIBITED_CONTENT SPII IMAGE_SAFETY LANGUAGE CONTENT_FILTER REFUSAL".split()
)
_MALFORMED = frozenset("MALFORMED_FUNCTION_CALL UNEXPECTED_TOOL_CALL TOO_MANY_TOOL_CALLS MALFORMED_RESPONSE".split())
_SECONDS = re.compile(r"(\d{1,5}(?:\.\d{1,9})?)")
_RETRY_IN = re.compile(r"(?i)retry(?: in |delay\W{1,6})(\d{1,5}(?:\.\d{1,9})?) ?s")
# Not of one of their parameters: "does not support tools", "function calling is not enabled for this model".
_NO_CALLS = re.compile(
    r"(?:n[o']t support|unsupported:?) {0,3}(?:[a-z]{1,9} ){0,2}(?:tools?|function call|tool (?:use|call))"
    r"|(?:function call(?:ing|s)|tool (?:use|call(?:ing|s)?)|tools?['\"]?) (?:is|are) "
    r"(?:not (?:supported|enabled)|unsupported)"
)
_MAX_TEXT = 20_000  # characters of an error
_CUT = frozenset({"MAX_TOKENS", "LENGTH"})
_UNBLOCKED = frozenset({"", "0", "BLOCK_REASON_UNSPECIFIED", "BLOCKED_REASON_UNSPECIFIED"})


def map_provider_error(error: Exception, model: str, key_variable: str) -> ModelError:
    """Return our error for a provider's; its text quotes nothing, because some services repeat the key."""
    from langchain_core.exceptions import OutputParserException

    if isinstance(error, OutputParserException):
        return AnswerMalformed(f"The language model {model} gave an answer that cannot be read.")
    status = _find_status(error)
    if _is_key_refused(error, status):
        variable = f"set the variable {key_variable} to a valid one" if key_variable else "check how it is set up"
        return InvalidApiKey(f"The provider of the language model {model} refused the API key; {variable}.")
    if status is None:
        return _map_connection_error(error, model)
    if status < 500 and status != 429 and _is_calling_refused(error):
        return ToolsUnsupported(f"The language model {model} cannot call functions.")
    if status == 429:
        message = f"The quota of the language model {model} is used up (status 429); wait, or use another."
        return QuotaExceeded(message, retry_after=_find_retry_delay(error))
    return _map_status_error(status, model)


def _is_calling_refused(error: BaseException) -> bool:
    """Whether a model lacks function calls: services have no code for it, and say so in words."""
    said = " ".join(str(each)[:2000].lower() for each in _iter_causes(error))
    return _NO_CALLS.search(said) is not None


def _find_retry_delay(error: BaseException) -> float:
    """Find the requested wait in seconds, in a header or in the text; 0 if there is none."""
    for each in _iter_causes(error):
        headers = getattr(getattr(each, "response", None), "headers", None)
        written = str(headers.get("retry-after", "")) if isinstance(headers, Mapping) else ""
        found = _SECONDS.fullmatch(written.strip()[:20]) or _RETRY_IN.search(str(each)[:_MAX_TEXT])
        if found:
            return float(found[1])
    return 0.0


def _map_status_error(status: int, model: str) -> ModelError:
    if status == 404:
        return UnknownModel(f"The provider knows no language model {model} (status 404); check CITEBOT_MODEL.")
    if status in {408, 504}:
        return ModelTimeout(f"The language model {model} did not answer in time (status {status}).")
    if status >= 500:
        return ModelUnavailable(f"The provider of the language model {model} failed (status {status}).")
    return RequestRefused(f"The provider of the language model {model} refused the request (status {status}).")


def _map_connection_error(error: Exception, model: str) -> ModelError:
    from langchain_core.exceptions import ContextOverflowError, ModelTimeoutError

    if isinstance(error, TimeoutError | ModelTimeoutError) or "Timeout" in type(error).__name__:
        return ModelTimeout(f"The language model {model} did not answer in time.")
    if isinstance(error, ContextOverflowError):
        return RequestRefused(f"The request is too long for the language model {model}.")
    return ModelUnavailable(
        f"The answer of the language model {model} broke off ({type(list(_iter_causes(error))[-1]).__name__})."
    )


def find_bad_ending(metadata: dict[str, Any], model: str) -> ModelError | None:
    """Whether an answer ended badly; the packages raise nothing for that."""
    reason = str(metadata.get("finish_reason") or metadata.get("stop_reason") or "").rpartition(".")[2].upper()
    feedback = metadata.get("prompt_feedback")
    block_reason = str((feedback.get("block_reason") if isinstance(feedback, dict) else None) or "").rpartition(".")[2]
    if reason in _BLOCKED or block_reason not in _UNBLOCKED:
        return AnswerBlocked(f"The provider of the language model {model} withheld its answer ({reason or 'prompt'}).")
    if reason in _MALFORMED:
        return AnswerMalformed(f"The language model {model} called a tool in a form that cannot be read.")
    return None


def is_truncated(metadata: dict[str, Any]) -> bool:
    """Whether an answer ended at the model's length limit."""
    reason = str(metadata.get("finish_reason") or metadata.get("stop_reason") or "")
    return reason.rpartition(".")[2].upper() in _CUT


def _iter_causes(error: BaseException) -> Iterator[BaseException]:
    """Yield the error and its causes; LangChain wraps the errors of the services' clients."""
    current: BaseException | None = error
    while current is not None:
        yield current
        current = current.__cause__ or current.__context__


def _find_status(error: BaseException) -> int | None:
    """Return the HTTP status under an error; each client keeps it under one of two names."""
    for each in _iter_causes(error):
        if type(each).__module__ == "aiohttp.http_exceptions":
            continue  # calls a connection that was reset a "400"
        for attribute in ("status_code", "code"):
            if isinstance(status := getattr(each, attribute, None), int):
                return status
    return None


def _is_key_refused(error: BaseException, status: int | None) -> bool:
    """Whether a key was refused; Gemini answers an invalid one with 400 and a reason."""
    if status == 400:
        return any("API_KEY_INVALID" in str(each) or "API key" in str(each) for each in _iter_causes(error))
    return status in {401, 403}
