"""The settings of citebot: the only reader of the environment and of citebot.toml."""

from __future__ import annotations

import difflib
import os
import re
import shlex
import stat
import tomllib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import platformdirs
from dotenv import dotenv_values
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    StrictBool,
    ValidationError,
    model_validator,
)
from pydantic_core import ErrorDetails

from bot.access import AccessPolicy, AccessRule, ChannelTable
from bot.errors import SettingsError

PREFIX = "CITEBOT_"
# Like `CONFIG_VARIABLE`, it says where settings are read from, so it is no setting itself.
DOTENV_VARIABLE = "CITEBOT_ENV_FILE"
# Tables, which no variable can hold.
TABLES = ("access", "channels", "guard", "living", "mcp", "prices", "repositories", "sandbox", "web")
# Not settings: values of the variables that tables name, and a remark on a file that is not read.
_RESOLVED = ("tokens", "remark")
NO_MODEL = "none"
_MILLION = 1_000_000
_MODEL = re.compile(r"[a-z_]+:[^\s:]\S{0,199}")
FILE_NAME = "citebot.toml"
CONFIG_VARIABLE = "CITEBOT_CONFIG"
# Keys that a merely found file may not set: places of data, destinations, access, tokens and
# taken, and what is loaded of a classifier and shown in the sandbox.
CHOSEN_ALONE = (
    "home", "embedder", "model", "small_model", "check_model", "fallback_model", "link_hosts", "web_host", "access",
    "guard", "keep_question_days", "mcp", "sandbox", "web",
)  # fmt: skip
_OF_REPOSITORIES = ("token_variable", "user", "environments")


def _split(value: object) -> object:
    """Split a list in a variable at commas."""
    if isinstance(value, str):
        return [part for part in (part.strip() for part in value.split(",")) if part]
    return value


def _to_absolute(value: object) -> object:
    if not isinstance(value, str | Path):
        return value
    try:
        return Path(value).expanduser().absolute()
    except RuntimeError as error:  # `~somebody` if there is no such user
        raise ValueError(f"the home folder in {value} is not known") from error


def _lower(value: object) -> object:
    return value.lower() if isinstance(value, str) else value


def _check_model_name(value: str) -> str:
    """Check the form of a model's name; opening the model checks its provider."""
    if not _MODEL.fullmatch(value):
        raise ValueError("write it as provider:model, such as google_genai:gemini-flash-latest")
    return value


def _check_model_or_none(value: str) -> str:
    return value if value == NO_MODEL else _check_model_name(value)


def _check_temperature(value: object) -> object:
    """Read a number or the word `default`, which means the provider's choice."""
    if value is None or (isinstance(value, str) and value.strip().lower() == "default"):
        return None
    try:
        number = float(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else -1.0
    except ValueError:
        number = -1.0
    if not 0 <= number <= 2:
        raise ValueError("write a number from 0 to 2, or default for what the provider has chosen")
    return number


Temperature = Annotated[float | None, BeforeValidator(_check_temperature)]


Globs = Annotated[tuple[str, ...], BeforeValidator(_split)]


Folder = Annotated[Path, BeforeValidator(_to_absolute)]


CHANNEL = r"^[^\s*]+$"


CHANNEL_ID = r"^(?:[a-z]+:)?[A-Z0-9]+$"


# Not as `{1,80}` in the pattern: to count letters of all scripts takes a tenth of a second to compile.
Name = Annotated[str, Field(pattern=r"^[\w.-]+$", max_length=80)]


Variable = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,99}$")]


Channel = Annotated[str, Field(pattern=CHANNEL)]


Channels = tuple[Channel, ...]


SEGMENTS = r"^(?:s3|gs|az|file)://[^\s@]+$"


CHROMA = r"^https?://[^\s/@?#]+(?:/[^\s@?#]*)?$"


HTTP, WEBSOCKET = r"^https?://[^\s/]+", r"^wss?://[^\s/]+"


DUCKDUCKGO = "duckduckgo"


WEB_SEARCH = rf"{HTTP}|^{DUCKDUCKGO}$"


SHA256 = r"^[0-9A-Fa-f]{64}$"


DIGEST = r"^[0-9a-f]{64}$"


PERSON = r"^[a-z]+:[^\s*:]+$"


PAGE = r"^(?:https?://[^\s/@?#]+/?)?$"


HOST = r"^[^\s/@:]+(?::[0-9]+)?$"


Address = Annotated[str, Field(pattern=HTTP)]


_WANTED = {
    HTTP: "This is not an address. It has to begin with http:// or https://, followed by a host",
    WEBSOCKET: "This is not an address. It has to begin with ws:// or wss://, followed by a host",
    WEB_SEARCH: "This is neither the address of a SearXNG server, which begins with http:// or https://, nor the word "
    "duckduckgo",
    SEGMENTS: "This is not the address of an object store. Write s3://BUCKET/PREFIX, gs://BUCKET/PREFIX, "
    "az://ACCOUNT/CONTAINER/PREFIX or file:///FOLDER, without keys",
    CHROMA: "This is not the address of a Chroma server. Write http://HOST:PORT or https://HOST:PORT, without a name "
    "or a password",
    "bool_type": "Write true or false",
    CHANNEL_ID: "A channel is named by its id, bare or with its platform, such as slack:C123; a name can change",
    DIGEST: "This is not the SHA-256 checksum of a token, which has 64 lower-case hexadecimal digits; `citebot "
    "token PERSON` prints both",
    PERSON: "This is not a person. Write the platform and the id there, such as slack:U0123",
    PAGE: "This is not the address of a page. Write https://HOST or http://HOST, with nothing behind it",
    HOST: "This is not a host. Write its name, with the port where it has one, such as bot.example or bot.example:8443",
    SHA256: "This is not a SHA-256 checksum, which has 64 hexadecimal digits; `citebot doctor` shows the one to pin",
}


class RepositoryTable(BaseModel):
    """One table `[[repositories]]`: a repository for questions."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    path: Folder | None = None
    url: Annotated[str, Field(min_length=1)] | None = None
    name: Name | None = None
    branch: Annotated[str, Field(min_length=1)] | None = None
    branches: tuple[Annotated[str, Field(min_length=1)], ...] = ()
    token_variable: Variable | None = None
    user: Annotated[str, Field(min_length=1)] | None = None
    web_url: Address | None = None
    include: Globs = ()
    exclude: Globs = ()
    large_files: Globs = ()
    channels: Channels = ()
    depth: Annotated[int, Field(ge=1)] | None = None
    environments: Mapping[Name, Annotated[str, Field(min_length=1, max_length=400)]] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _is_somewhere(self) -> Self:
        if (self.path is None) == (self.url is None):
            raise ValueError("give either its path on this machine or its url")
        if self.url is None and (self.token_variable or self.user or self.depth):
            raise ValueError("token_variable, user and depth are for a repository with a url")
        return self


class PriceTable(BaseModel):
    """The price of a model in dollars per million tokens, input and output.

    `cached` is for input from its provider's cache; without it, that costs as much as the rest.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    input: float = Field(ge=0, allow_inf_nan=False)
    output: float = Field(ge=0, allow_inf_nan=False)
    cached: float | None = Field(default=None, ge=0, allow_inf_nan=False)

    def compute_dollars(self, call: Mapping[str, Any]) -> float:
        """Return the cost of a model's call, by the payload of its `model_end`."""
        read, written, cached = (int(call.get(f"{kind}_tokens") or 0) for kind in ("input", "output", "cached"))
        kept = self.input if self.cached is None else self.cached
        return ((read - cached) * self.input + cached * kept + written * self.output) / _MILLION


class GuardTable(BaseModel):
    """The table `[guard]`: a classifier in addition to the rules, and how it is trusted."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    classifier: Folder | None = None
    classifier_sha256: Annotated[str, Field(pattern=SHA256)] | None = None
    classifier_threshold: float = Field(default=0.92, gt=0, lt=1)
    classifier_ms: int = Field(default=150, ge=10, le=5000)


class SandboxTable(BaseModel):
    """The table `[sandbox]`: the Python environment for commands in the sandbox."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    python: Folder | None = None


class TokenTable(BaseModel):
    """One table `[[mcp.tokens]]`: the owner of the token with that SHA-256 checksum."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    person: Annotated[str, Field(pattern=PERSON)]
    sha256: Annotated[str, Field(pattern=DIGEST)]


class McpTable(BaseModel):
    """The table `[mcp]`: the tokens for MCP and the HTTP API, and the server's names besides loopback."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    tokens: tuple[TokenTable, ...] = ()
    hosts: tuple[Annotated[str, Field(pattern=HOST)], ...] = ()

    @model_validator(mode="after")
    def _tells_people_apart(self) -> Self:
        if len({table.sha256 for table in self.tokens}) < len(self.tokens):
            raise ValueError("two tokens have the same checksum; each belongs to one person")
        return self


class WebTable(BaseModel):
    """The table `[web]`: whether `citebot serve` has a page, and its public address."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    enabled: StrictBool = False
    url: Annotated[str, Field(pattern=PAGE)] = ""


class LivingTable(BaseModel):
    """The table `[living]`: the channels, days and limit of marking outdated answers.

    With `reuse`, an answer that is still true is given again to the same question.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    channels: tuple[Annotated[str, Field(min_length=1)], ...] = ("*",)
    days: int = Field(default=90, ge=0, le=3_650)
    edits_per_hour: int = Field(default=20, ge=0, le=1_000)
    reuse: StrictBool = True


# Values in the tables of citebot.toml, by the last of our own names in their paths.
_TABLE_OF: Mapping[str, type[BaseModel]] = {
    "access": AccessPolicy,
    "channels": ChannelTable,
    "rules": AccessRule,
    "repositories": RepositoryTable,
    "prices": PriceTable,
    "guard": GuardTable,
    "living": LivingTable,
    "sandbox": SandboxTable,
    "mcp": McpTable,
    "tokens": TokenTable,
    "web": WebTable,
}


_SEVERAL = frozenset({"access.rules", "mcp.tokens", "repositories"})  # lists of tables


_LIST = 'This is a list of texts, such as ["one", "another"]'


class Settings(BaseModel):
    """Every setting. A variable wins over citebot.toml, and that wins over the default.

    Keys, tokens, addresses and all of Slack are read only from the environment: no file must be
    able to send a key or a question to an address of its choice. A citebot.toml that nobody named
    may set even less (`bot.settings`).
    """

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True)

    home: Folder = Field(default_factory=lambda: platformdirs.user_data_path("citebot"))
    repo: Folder | None = None
    embedder: str = Field(default="static", min_length=1)
    fusion: Literal["score", "rrf"] = "score"
    include: Globs = ()
    exclude: Globs = ()
    large_files: Globs = ()
    max_index_files: int = Field(default=100_000, gt=0)
    max_index_megabytes: int = Field(default=1_000, gt=0)
    max_index_chunks: int = Field(default=200_000, gt=0)
    model: Annotated[str, AfterValidator(_check_model_or_none)] | None = None
    small_model: Annotated[str, AfterValidator(_check_model_name)] | None = None
    check_model: Annotated[str, AfterValidator(_check_model_or_none)] | None = None
    fallback_model: Annotated[str, AfterValidator(_check_model_name)] | None = None
    model_images: Annotated[Literal["on", "off"], BeforeValidator(_lower)] = "off"
    model_timeout: float = Field(default=60.0, gt=0, le=3600)
    answer_temperature: Temperature = 0.2
    form_temperature: Temperature = 0.0
    form_thinking: Annotated[Literal["off", "low", "default"], BeforeValidator(_lower)] = "low"
    max_seconds: float = Field(default=120.0, gt=0, le=3600)
    max_tokens: int = Field(default=200_000, gt=0)
    max_model_calls: int = Field(default=40, gt=0)
    max_iterations: int = Field(default=10, ge=1, le=50, validation_alias="MAX_ITERATIONS")
    max_executor_steps: int = Field(default=5, ge=1, le=50, validation_alias="MAX_EXECUTOR_STEPS")
    approval_calls: int = Field(default=30, ge=0)
    discord_token: SecretStr | None = Field(default=None, validation_alias="DISCORD_TOKEN")
    discord_api_base_url: str | None = Field(default=None, validation_alias="DISCORD_API_BASE_URL", pattern=HTTP)
    discord_gateway_url: str | None = Field(default=None, validation_alias="DISCORD_GATEWAY_URL", pattern=WEBSOCKET)
    discord_message_content: Annotated[Literal["on", "off"], BeforeValidator(_lower)] = Field(
        default="on", validation_alias="DISCORD_MESSAGE_CONTENT"
    )
    discord_servers: Globs = Field(default=(), validation_alias="DISCORD_SERVERS")
    max_concurrent_answers: int = Field(default=8, gt=0, validation_alias="MAX_CONCURRENT_ANSWERS")
    database_url: SecretStr | None = Field(default=None, validation_alias="DATABASE_URL")
    segments_url: str | None = Field(default=None, validation_alias="SEGMENTS_URL", pattern=SEGMENTS)
    segments_cache_gb: float = Field(default=20.0, gt=0, le=100_000)
    chroma_url: str | None = Field(default=None, validation_alias="CHROMA_URL", pattern=CHROMA)
    retention_days: int = Field(default=90, ge=0, le=36_500, validation_alias="RETENTION_DAYS")
    keep_question_days: int = Field(default=0, ge=0, le=365)
    questions_per_minute: int = Field(default=10, gt=0)
    questions_per_day: int = Field(default=300, gt=0)
    link_hosts: Globs = ()
    guard: GuardTable = Field(default_factory=GuardTable)
    living: LivingTable = Field(default_factory=LivingTable)
    sandbox: SandboxTable = Field(default_factory=SandboxTable)
    mcp: McpTable = Field(default_factory=McpTable)
    web: WebTable = Field(default_factory=WebTable)
    web_host: str = Field(default="127.0.0.1", min_length=1)
    web_port: int = Field(default=8080, ge=0, le=65_535)
    metrics_port: int = Field(default=8081, ge=0, le=65_535)
    metrics_token: SecretStr | None = Field(default=None, min_length=16, validation_alias="CITEBOT_METRICS_TOKEN")
    access: AccessPolicy = Field(default_factory=AccessPolicy)
    channels: dict[Annotated[str, Field(pattern=CHANNEL_ID)], ChannelTable] = Field(default_factory=dict)
    repositories: tuple[RepositoryTable, ...] = ()
    tokens: Mapping[str, SecretStr] = Field(default_factory=dict)
    remark: str = ""
    poll_seconds: float = Field(default=60.0, ge=5, le=86_400)
    webhook_secret: SecretStr | None = Field(default=None, validation_alias="CITEBOT_WEBHOOK_SECRET")
    prices: dict[Annotated[str, AfterValidator(_check_model_name)], PriceTable] = Field(default_factory=dict)
    stall_seconds: float = Field(default=0.05, ge=0.005, le=60)
    otlp_endpoint: str | None = Field(default=None, validation_alias="OTEL_EXPORTER_OTLP_ENDPOINT")
    otlp_headers: SecretStr | None = Field(default=None, validation_alias="OTEL_EXPORTER_OTLP_HEADERS")
    otel_service: str = Field(default="citebot", min_length=1, validation_alias="OTEL_SERVICE_NAME")
    trace_content: Annotated[
        Literal["no_content", "span_only", "event_only", "span_and_event", "true", "false"], BeforeValidator(_lower)
    ] = Field(default="no_content", validation_alias="OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT")
    log_level: Annotated[Literal["debug", "info", "warning", "error"], BeforeValidator(_lower)] = "warning"
    log_format: Annotated[Literal["human", "json"], BeforeValidator(_lower)] = "human"
    google_api_key: SecretStr | None = Field(default=None, validation_alias="GOOGLE_API_KEY")
    google_api_base_url: str | None = Field(default=None, validation_alias="GOOGLE_API_BASE_URL", pattern=HTTP)
    ollama_host: str = Field(default="", validation_alias="OLLAMA_HOST")
    web_search_url: str | None = Field(default=None, validation_alias="CITEBOT_WEB_SEARCH_URL", pattern=WEB_SEARCH)
    slack_bot_token: SecretStr | None = Field(default=None, validation_alias="SLACK_BOT_TOKEN")
    slack_app_token: SecretStr | None = Field(default=None, validation_alias="SLACK_APP_TOKEN")
    slack_signing_secret: SecretStr | None = Field(default=None, validation_alias="SLACK_SIGNING_SECRET")
    slack_api_base_url: str | None = Field(default=None, validation_alias="SLACK_API_BASE_URL", pattern=HTTP)
    slack_mode: Annotated[Literal["socket", "http"], BeforeValidator(_lower)] = Field(
        default="socket", validation_alias="SLACK_MODE"
    )
    slack_streaming: Annotated[Literal["auto", "off"], BeforeValidator(_lower)] = Field(
        default="auto", validation_alias="SLACK_STREAMING"
    )

    @classmethod
    def load(cls, environ: Mapping[str, str] | None = None, directory: Path | None = None) -> Self:
        """Read the environment and citebot.toml; `SettingsError` lists everything that is wrong with them."""
        directory = directory or Path.cwd()
        variables = _merge_variables(os.environ if environ is None else environ, directory)
        config = choose_config(variables.get(CONFIG_VARIABLE), directory, platformdirs.user_config_path("citebot"))
        from_file = _read_toml(config.path) if config.path else {}
        from_variables = {
            key: variables[name] for name, key in _list_variables().items() if variables.get(name, "").strip()
        }
        problems = _find_misspelt_variables(variables)
        problems += [f"{FILE_NAME}: {_describe_unknown_key(key)}" for key in from_file if key not in list_file_keys()]
        if refused := config.find_refused(from_file):
            problems.append(config.explain_refusal(refused))
        known = {key: value for key, value in from_file.items() if key in list_file_keys()}
        tokens = _read_tokens(known.get("repositories"), variables)
        try:
            settings = cls(**(known | from_variables), tokens=tokens, remark=config.remark)
        except ValidationError as error:
            problems += [_describe_problem(detail, from_variables) for detail in error.errors()]
            raise SettingsError(_format_problems(problems)) from None  # the cause would print the values
        problems += settings.list_missing_tokens()
        if problems:
            raise SettingsError(_format_problems(problems))
        return settings

    @property
    def has_model(self) -> bool:
        """Whether a chat model is used: the configured one, or else Gemini if there is a key."""
        return self.model != NO_MODEL and (self.model is not None or self.google_api_key is not None)

    def list_missing_tokens(self) -> list[str]:
        """Describe the missing variables that should hold tokens."""
        named = {table.token_variable for table in self.repositories if table.token_variable}
        return [
            f"{FILE_NAME}: repositories: {name} should hold a token but is not set. Set it, or remove token_variable."
            for name in sorted(named - set(self.tokens))
        ]

    def list_secret_values(self) -> tuple[str, ...]:
        """Return the keys and tokens themselves, for masking."""
        values = [*(getattr(self, name) for name in type(self).model_fields), *self.tokens.values()]
        return tuple(value.get_secret_value() for value in values if isinstance(value, SecretStr))


def list_variable_names() -> tuple[str, ...]:
    """Every variable that citebot reads."""
    return (*_list_variables(), CONFIG_VARIABLE, DOTENV_VARIABLE)


def _list_variables() -> Mapping[str, str]:
    """List the variables of settings, each with its key in `Settings`."""
    fields = {name: field for name, field in Settings.model_fields.items() if name not in (*TABLES, *_RESOLVED)}
    keys = {name: field.validation_alias or name for name, field in fields.items()}
    return {PREFIX + key.upper() if key == name else str(key): str(key) for name, key in keys.items()}


def list_file_keys() -> tuple[str, ...]:
    """List every key of citebot.toml."""
    fields = Settings.model_fields.items()
    return tuple(name for name, field in fields if field.validation_alias is None and name not in _RESOLVED)


def _merge_variables(environ: Mapping[str, str], directory: Path) -> dict[str, str]:
    named = environ.get(DOTENV_VARIABLE)
    if not named:
        return dict(environ)
    path = directory / named
    if not path.is_file():
        raise SettingsError(f"{DOTENV_VARIABLE} names {path}, which does not exist. Create it or unset the variable.")
    from_file = {key: value for key, value in dotenv_values(path, interpolate=False).items() if value}
    return from_file | dict(environ)


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (ValueError, OSError) as error:  # TOMLDecodeError and UnicodeDecodeError are ValueErrors
        raise SettingsError(f"{path} cannot be read: {error}") from error


def _read_tokens(tables: object, variables: Mapping[str, str]) -> dict[str, SecretStr]:
    """Read the variables named by the tables of repositories; errors are reported elsewhere."""
    named = (
        (table.get("token_variable") for table in tables if isinstance(table, dict)) if isinstance(tables, list) else ()
    )
    return {name: SecretStr(variables[name]) for name in named if isinstance(name, str) and variables.get(name)}


def _find_misspelt_variables(variables: Mapping[str, str]) -> list[str]:
    known = list_variable_names()
    unknown = [name for name in variables if name.startswith(PREFIX) and name not in known]
    near = {name: difflib.get_close_matches(name, known, n=1, cutoff=0.8) for name in unknown}
    return [f"{name} is not a setting. Did you mean {match[0]}?" for name, match in near.items() if match]


def _describe_problem(detail: ErrorDetails, from_variables: Mapping[str, Any]) -> str:
    key = str(detail["loc"][0])
    in_file = key in list_file_keys() and key not in from_variables
    variable = key if key.isupper() else PREFIX + key.upper()
    # Tables of which there are several are counted from one.
    place = " ".join(str(part + 1) if isinstance(part, int) else part for part in detail["loc"] if part != "[key]")
    where = f"{FILE_NAME}: {place}" if in_file else variable
    return f"{where}: {_describe_expected(detail)}."


def _describe_expected(detail: ErrorDetails) -> str:
    limits, kind = detail.get("ctx", {}), detail["type"]
    if kind == "too_short" and limits.get("field_type") == "Tuple":
        return "This is empty. Name at least one"
    if kind == "too_short":  # Pydantic counts a secret's characters as items
        return f"This is too short. Write at least {limits['min_length']} characters"
    if kind in {"dict_type", "model_type", "tuple_type", "extra_forbidden"}:
        return _describe_form(kind, [part for part in detail["loc"] if isinstance(part, str)])
    return _WANTED.get(limits.get("pattern", kind), detail["msg"].removeprefix("Value error, "))


def _describe_form(kind: str, names: Sequence[str]) -> str:
    """Describe the form of a table or list, or the keys of a table; `names` map them to their paths."""
    if kind == "extra_forbidden":
        table = next((_TABLE_OF[name] for name in reversed(names[:-1]) if name in _TABLE_OF), Settings)
        return f"There is no such key; the table has {', '.join(table.model_fields)}"
    path = ".".join(name if name.isidentifier() else f'"{name}"' for name in names)
    if kind == "dict_type":
        return f"These are tables, each with a name of its own, such as [{path}.NAME]"
    if path in _SEVERAL:
        return f"These are tables, written [[{path}]]"
    return f"This is a table, written [{path}]" if kind == "model_type" else _LIST


def _describe_unknown_key(key: str) -> str:
    if key.upper() in list_variable_names():
        return f"{key} may only be set as the variable {key.upper()}."
    match = difflib.get_close_matches(key, list_file_keys(), n=1)
    return f"{key} is not a setting. " + (
        f"Did you mean {match[0]}?" if match else f"The settings are {', '.join(list_file_keys())}."
    )


def _format_problems(problems: list[str]) -> str:
    return problems[0] if len(problems) == 1 else "\n  ".join([f"{len(problems)} settings are wrong:", *problems])


@dataclass(frozen=True, kw_only=True, slots=True)
class ConfigChoice:
    """The citebot.toml to read, if any. A chosen one may set everything; `remark` tells of one that is not read."""

    path: Path | None = None
    is_chosen: bool = False
    remark: str = ""

    def find_refused(self, content: Mapping[str, Any]) -> Collection[str]:
        """Name the keys that an unchosen file may not set."""
        if self.is_chosen:
            return ()
        tables = content.get("repositories")
        inner = (
            {key for table in tables if isinstance(table, dict) for key in table} if isinstance(tables, list) else ()
        )
        return [*(key for key in CHOSEN_ALONE if key in content), *(key for key in _OF_REPOSITORIES if key in inner)]

    def explain_refusal(self, keys: Collection[str]) -> str:
        """Explain how to choose a file that sets such keys."""
        what = ", ".join(keys)
        advice = _describe_choosing(self.path or Path(FILE_NAME))
        return f"{FILE_NAME}: {what} may not be set by a file that you did not name. {advice}"


def choose_config(named: str | None, directory: Path, config_home: Path) -> ConfigChoice:
    """Choose the named file, or the one in the named folder; else that of a directory, else that of the user.

    A directory's file counts only if nobody else can have put it there.
    """
    if named:
        return ConfigChoice(path=_find_named(directory / named), is_chosen=True)
    own, found = config_home / FILE_NAME, directory / FILE_NAME
    remark = ""
    if found.is_file():
        reason = _explain_distrust(found)
        if not reason:
            return ConfigChoice(path=found)
        remark = f"{found.absolute()} is not read: {reason}. {_describe_choosing(found)}"
    return ConfigChoice(path=own if own.is_file() else None, is_chosen=True, remark=remark)


def _find_named(path: Path) -> Path | None:
    if path.is_dir():
        inside = path / FILE_NAME
        return inside if inside.is_file() else None
    if not path.is_file():
        raise SettingsError(f"{CONFIG_VARIABLE} names {path}, which does not exist. Create it or unset the variable.")
    return path


def _explain_distrust(file: Path) -> str:
    """Explain why a file may be somebody else's; empty if it cannot be."""
    place = file.parent.resolve()
    if lies_in_repository(place):
        return "it is in a repository, so anybody who can write there could change any setting"
    for found, open_to_all, of_another in (
        (place.stat(), "everybody may write in this directory", "the directory belongs to another user"),
        (file.stat(), "everybody may write to it", "it belongs to another user"),
    ):
        if found.st_mode & stat.S_IWOTH:
            return open_to_all
        if found.st_uid not in {os.geteuid(), 0}:
            return of_another
    return ""


def lies_in_repository(place: Path) -> bool:
    """Whether git would find a repository at or above a resolved path."""
    return any(_is_repository(folder) for folder in (place, *place.parents))


def _is_repository(folder: Path) -> bool:
    """Whether git would find a repository here: a working tree, or a bare one."""
    if os.path.lexists(folder / ".git"):
        return True
    return (folder / "HEAD").is_file() and (folder / "objects").is_dir() and (folder / "refs").is_dir()


def _describe_choosing(path: Path) -> str:
    return f"If it is yours, name it: {CONFIG_VARIABLE}={shlex.quote(str(path.absolute()))}"
