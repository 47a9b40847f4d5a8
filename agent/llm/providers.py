"""How the chat models of LangChain's packages are built: their names, arguments and keys."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from agent.errors import ModelMisconfigured

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel
    from pydantic import SecretStr

GOOGLE = "google_genai"


@dataclass(frozen=True, kw_only=True, slots=True)
class ChatProvider:
    """What a LangChain package calls things. `options` turn its own retries off: `MeteredModel` retries."""

    package: str
    class_name: str
    key_variable: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)


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
    "ollama": ChatProvider(package="langchain_ollama", class_name="ChatOllama"),
    "openai": ChatProvider(
        package="langchain_openai",
        class_name="ChatOpenAI",
        key_variable="OPENAI_API_KEY",
        options={"max_retries": 0, "stream_usage": True},
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

    def build(self) -> BaseChatModel:
        """Import the package and build the model, which takes a second the first time."""
        arguments: dict[str, Any] = {"model": self.model, **self.provider.options}
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
