"""Builds the chat models of LangChain's packages from their names, arguments and keys."""

from __future__ import annotations

import importlib
import importlib.util
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from agent.errors import ModelMisconfigured

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel
    from pydantic import SecretStr

GOOGLE = "google_genai"


Thinking = Literal["off", "low", "default"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Sampling:
    """How freely a model writes, and how long it thinks before; None and `default` are what its provider has chosen."""

    temperature: float | None = None
    thinking: Thinking = "default"


@dataclass(frozen=True, kw_only=True, slots=True)
class ChatProvider:
    """What a LangChain package calls things. `options` turn its own retries off: `MeteredModel` retries.

    `thinking` is what tells the models that match `thinks` to think little or not at all; others refuse to be told.
    Those that match `always_thinks` cannot stop, and those of a provider with `fixed_temperature` that think take none.
    """

    package: str
    class_name: str
    key_variable: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    thinking: Mapping[Thinking, Mapping[str, Any]] = field(default_factory=dict)
    thinks: re.Pattern[str] = re.compile(r"")
    always_thinks: re.Pattern[str] | None = None
    fixed_temperature: bool = False

    def make_arguments(self, model: str, sampling: Sampling) -> dict[str, Any]:
        """Return what to build a model with so that it writes and thinks as is wanted."""
        thinks = bool(self.thinking) and self.thinks.match(model) is not None
        is_bound = self.always_thinks is not None and self.always_thinks.search(model) is not None
        level: Thinking = "low" if is_bound and sampling.thinking == "off" else sampling.thinking
        arguments = dict(self.thinking.get(level, {})) if thinks else {}
        if sampling.temperature is not None and not (thinks and self.fixed_temperature):
            arguments["temperature"] = sampling.temperature
        return arguments


PROVIDERS: Mapping[str, ChatProvider] = {
    GOOGLE: ChatProvider(
        package="langchain_google_genai",
        class_name="ChatGoogleGenerativeAI",
        key_variable="GOOGLE_API_KEY",
        options={
            "max_retries": 1,  # here a retry is a try: 0 and 1 both mean once
            "vertexai": False,
            # It goes by two libraries, which would take the key along to wherever they are redirected.
            "client_args": {"follow_redirects": False, "allow_redirects": False},
        },
        thinking={"off": {"thinking_budget": 0}, "low": {"thinking_budget": 512}},
        thinks=re.compile(r"gemini-(?:2\.5|[3-9]|flash|pro)"),
        always_thinks=re.compile(r"pro"),
    ),
    "anthropic": ChatProvider(
        package="langchain_anthropic",
        class_name="ChatAnthropic",
        key_variable="ANTHROPIC_API_KEY",
        options={"max_retries": 0},
    ),
    "mistralai": ChatProvider(
        package="langchain_mistralai",
        class_name="ChatMistralAI",
        key_variable="MISTRAL_API_KEY",
        options={"max_retries": 0},
    ),
    "ollama": ChatProvider(package="langchain_ollama", class_name="ChatOllama", thinking={"off": {"reasoning": False}}),
    "openai": ChatProvider(
        package="langchain_openai",
        class_name="ChatOpenAI",
        key_variable="OPENAI_API_KEY",
        options={"max_retries": 0, "stream_usage": True},
        thinking={"off": {"reasoning_effort": "low"}, "low": {"reasoning_effort": "low"}},
        thinks=re.compile(r"o\d|gpt-5"),
        fixed_temperature=True,
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
    spec: str, *, google_api_key: SecretStr | None = None, google_base_url: str | None = None
) -> ModelSpec:
    """Read `provider:model`; `ModelMisconfigured` says what is missing. Google's key goes to Google's class alone."""
    name, _, model = spec.partition(":")
    if name not in PROVIDERS or not model:
        possible = ", ".join(f"{each}:MODEL" for each in PROVIDERS)
        raise ModelMisconfigured(f"There is no language model {spec!r}. Possible are {possible}, and none.")
    provider = PROVIDERS[name]
    if importlib.util.find_spec(provider.package) is None:
        package = provider.package.replace("_", "-")
        error = ModelMisconfigured(f"The language model {spec} needs the package {package}, which is not installed.")
        error.package = package
        raise error
    is_google = name == GOOGLE
    if is_google and google_api_key is None:
        raise ModelMisconfigured(f"The language model {spec} needs a key: set the variable {provider.key_variable}.")
    return ModelSpec(
        spec=spec,
        provider=provider,
        model=model,
        api_key=google_api_key if is_google else None,
        base_url=google_base_url if is_google else None,
    )
