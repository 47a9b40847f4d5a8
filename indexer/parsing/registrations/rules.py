"""The table of names that register something in each language, with a reader for each form of registration."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from typing import Literal

from indexer.parsing.registrations import (
    command_readers,
    messaging,
    option_readers,
    route_groups,
    route_readers,
    setting_readers,
    tables,
)
from indexer.parsing.registrations.file_context import FileContext
from indexer.parsing.registrations.invocations import Invocation
from indexer.parsing.registrations.messaging import read_topic
from indexer.types import Registration, RegistrationKind

Reader = Callable[[Invocation, FileContext], Iterable[Registration]]


@dataclass(frozen=True, kw_only=True, slots=True)
class RegistrationRule:
    """A rule: calls or annotations with one of these names are registrations, which `read` interprets.

    `receiver` must match the end of the receiver. `place` says whether the name is above a
    definition, called anywhere else, or either; `early` rules collect facts for others.
    """

    languages: str
    names: str
    read: Reader
    receiver: str = ""
    place: Literal["above", "call", "both"] = "call"
    early: bool = False

    def fits(self, invocation: Invocation) -> bool:
        """Whether an invocation means one of the names."""
        if self.place != "both" and invocation.is_above != (self.place == "above"):
            return False
        return not self.receiver or _compile(self.receiver).search(invocation.receiver[-80:]) is not None


@cache
def _compile(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


_SCRIPT = "javascript typescript tsx"
_VERBS = "get post put patch delete head options"
_PASCAL_VERBS = "Get Post Put Patch Delete Head Options"
_ROUTERS = (
    r"(?i)(?:app|router|routes?|server|fastify|instance|koa|hono|api|express|scope|web|\bf|\br)(?:\(\))?$|\.route\("
)
_GO_TYPES = (
    "Bool Int Int8 Int16 Int32 Int64 Uint Uint8 Uint16 Uint32 Uint64 Float32 Float64 String Duration StringSlice "
    "StringArray IntSlice BoolSlice Count IP IPNet StringToString Bytes Func Text"
).split()
_GO_FLAGS = " ".join(f"{kind}{form}" for kind in _GO_TYPES for form in ("", "Var", "P", "VarP")) + " Var VarP"
_GO_FLAG_SETS = r"(?i)(?:flags?|flagset|fs|flags\(\))$"
_ENVIRONMENT_CALLS = "getenv getenv_or_die LookupEnv Getenv var var_os env env_var option_env getEnv secure_getenv"

# Receivers of HTTP requests, and of sent and received messages.
_CLIENTS = (
    r"(?i)(?:requests|httpx|axios|superagent|\bky|\bgot|\$?http|client|session|fetcher|rest|template|\bapi|faraday"
    r"|httparty|conn|connection|reqwest(?:::\w+)?|guzzle|instance)(?:\(\)|\))?$"
)
_BROKERS = r"kafka\w*|rabbit\w*|amqp\w*|jms\w*|channel|\bch|\bnc|nats|js|redis\w*|pubsub\w*|client|conn|bus|broker"
_SENDERS = rf"(?i)(?:producer|publisher|writer|sns\w*|sqs\w*|template|bridge|exchange|queue|{_BROKERS})(?:\(\)|\))?$"
_RECEIVERS = rf"(?i)(?:consumer|subscriber|reader|\bsub|{_BROKERS})(?:\(\)|\))?$"

# Feature flags: the SDKs' methods, their arguments, and receivers for methods with everyday names.
_FEATURE_CALLS = (
    "variation variationDetail boolVariation stringVariation intVariation jsonVariation bool_variation BoolVariation"
    " StringVariation IntVariation JSONVariation useBooleanFlagValue useStringFlagValue useFlag useFlagEnabled"
    " useFeatureFlag useFeatureFlagEnabled useFeatureIsOn isFeatureEnabled is_feature_enabled feature_enabled"
    " flag_is_active switch_is_active sample_is_active checkGate check_gate getTreatment get_treatment"
)
_FEATURE_VALUES = (
    "isEnabled is_enabled IsEnabled IsEnabledAsync enabled enabled? isActive is_active active isOn is_on isOff"
    " getVariant get_variant getFeatureFlag getBooleanValue getStringValue getNumberValue getIntegerValue"
    " getObjectValue get_boolean_value get_string_value get_integer_value get_object_value BooleanValue StringValue"
    " GetBooleanValueAsync GetStringValueAsync"
)
_FEATURE_CLIENTS = (
    r"(?i)(?:unleash|features?|flags?|toggles?|flipper|growthbook|\bgb|posthog|waffle|rollout|openfeature|launchdarkly"
    r"|(?:flag|feature|toggle|of|openfeature|ld)_?(?:client|manager|service|provider))(?:\(\))?$"
)

RULES: tuple[RegistrationRule, ...] = (
    # Feature flags
    RegistrationRule(
        languages=f"python ruby php go java kotlin csharp rust swift {_SCRIPT}",
        names=_FEATURE_CALLS,
        read=setting_readers.read_feature("read"),
    ),
    RegistrationRule(
        languages=f"python ruby php go java kotlin csharp rust swift {_SCRIPT}",
        names=_FEATURE_VALUES,
        read=setting_readers.read_feature("read"),
        receiver=_FEATURE_CLIENTS,
    ),
    RegistrationRule(
        languages=f"python ruby php go java {_SCRIPT}",
        names="enable disable enable_actor enable_group enable_percentage_of_actors activate deactivate",
        read=setting_readers.read_feature("set"),
        receiver=_FEATURE_CLIENTS,
    ),
    # Requests
    RegistrationRule(
        languages=f"python ruby php rust {_SCRIPT}",
        names=f"{_VERBS} request del",
        read=messaging.read_request,
        receiver=_CLIENTS,
    ),
    RegistrationRule(
        languages=_SCRIPT,
        names="fetch $fetch useFetch axios ky got useSWR",
        read=messaging.read_request,
        receiver=r"^(?:window|globalThis)?$",
    ),
    RegistrationRule(
        languages="go",
        names="Get Post Head PostForm Put Patch Delete",
        read=messaging.read_request,
        receiver=r"(?i)(?:http|client|resty|req|r\(\))(?:\(\))?$",
    ),
    RegistrationRule(
        languages="go", names="NewRequest NewRequestWithContext", read=messaging.read_request, receiver=r"http$"
    ),
    RegistrationRule(
        languages="java kotlin scala",
        names="getForObject getForEntity postForObject postForEntity postForLocation patchForObject exchange"
        " delete put",
        read=messaging.read_request,
        receiver=r"(?i)rest\w*$|template$",
    ),
    RegistrationRule(
        languages="java kotlin",
        names="uri",
        read=messaging.read_request,
        receiver=r"(?:get|post|put|patch|delete)\(\)\W*$",
    ),
    RegistrationRule(
        languages="csharp",
        names="GetAsync PostAsync PutAsync PatchAsync DeleteAsync GetStringAsync GetFromJsonAsync PostAsJsonAsync"
        " PutAsJsonAsync GetStreamAsync",
        read=messaging.read_request,
    ),
    # Topics
    RegistrationRule(
        languages=f"python ruby php go java kotlin csharp rust {_SCRIPT}",
        names="send produce send_and_wait publish Publish sendToQueue convertAndSend send_message publish_message"
        " sendMessage produce_sync produce_async xadd Produce SendMessage PublishAsync basic_publish basicPublish"
        " BasicPublish",
        read=read_topic("produced"),
        receiver=_SENDERS,
    ),
    RegistrationRule(languages="go", names="PublishWithContext", read=read_topic("produced", 2)),
    RegistrationRule(languages="python", names="send_task", read=read_topic("produced")),
    RegistrationRule(
        languages="ruby",
        names="perform_async perform_in perform_at perform_later perform_bulk",
        read=messaging.read_enqueued_job,
        receiver=r"^[A-Z]",
    ),
    RegistrationRule(
        languages=f"python ruby php go java kotlin csharp rust {_SCRIPT}",
        names="subscribe Subscribe consume Consume ConsumePartition SubscribeTopics QueueSubscribe basic_consume"
        " basicConsume BasicConsume psubscribe receive_message receiveMessage",
        read=read_topic("consumed"),
        receiver=_RECEIVERS,
    ),
    RegistrationRule(languages="python", names="KafkaConsumer AIOKafkaConsumer", read=read_topic("consumed")),
    RegistrationRule(
        languages="python",
        names="agent subscriber",
        read=read_topic("consumed"),
        receiver=r"(?i)(?:app|broker|router)$",
        place="above",
    ),
    RegistrationRule(
        languages="python",
        names="publisher",
        read=read_topic("produced"),
        receiver=r"(?i)(?:broker|router)$",
        place="above",
    ),
    RegistrationRule(
        languages=f"{_SCRIPT} java kotlin",
        names="KafkaListener RabbitListener JmsListener SqsListener EventPattern MessagePattern Processor",
        read=read_topic("consumed"),
        place="above",
    ),
    RegistrationRule(languages=_SCRIPT, names="Worker", read=read_topic("consumed"), receiver=r"^$"),
    RegistrationRule(languages=_SCRIPT, names="Queue", read=read_topic("declared"), receiver=r"^$"),
    RegistrationRule(languages="java kotlin", names="ProducerRecord", read=read_topic("produced")),
    RegistrationRule(
        languages="go", names="ProducerMessage Writer WriterConfig", read=read_topic("produced"), place="both"
    ),
    RegistrationRule(languages="go", names="ReaderConfig", read=read_topic("consumed"), place="both"),
    RegistrationRule(
        languages=f"python ruby php go java {_SCRIPT}",
        names="queue_declare queueDeclare QueueDeclare assertQueue assertExchange exchange_declare"
        " exchangeDeclare NewTopic",
        read=read_topic("declared"),
    ),
    # Routes
    RegistrationRule(
        languages="python",
        names=f"{_VERBS} trace websocket route api_route websocket_route",
        read=route_readers.read_decorated_route,
        receiver=r"\w",
        place="above",
    ),
    RegistrationRule(
        languages="python",
        names="add_url_rule add_route add_api_route add_get add_post add_put add_patch add_delete add_view Route"
        " WebSocketRoute APIRoute",
        read=route_readers.read_added_route,
    ),
    RegistrationRule(languages="python", names=_VERBS, read=route_readers.read_added_route, receiver=r"^web$"),
    RegistrationRule(
        languages="python", names="path re_path url", read=route_readers.read_django_path, receiver=r"^$|^urls$"
    ),
    RegistrationRule(languages="python", names="path re_path url", read=route_groups.note_include, early=True),
    RegistrationRule(
        languages="python", names="include_router register_blueprint", read=route_readers.read_included_router
    ),
    RegistrationRule(languages="python", names="Blueprint APIRouter Router", read=route_groups.note_group, early=True),
    RegistrationRule(
        languages=_SCRIPT, names=f"{_VERBS} all del", read=route_readers.read_called_route, receiver=_ROUTERS
    ),
    RegistrationRule(languages=_SCRIPT, names="route", read=route_readers.read_route_object),
    RegistrationRule(
        languages=_SCRIPT, names=f"{_PASCAL_VERBS} All", read=route_readers.read_annotated_route, place="above"
    ),
    RegistrationRule(languages="go", names="HandleFunc Handle", read=route_readers.read_go_handler),
    RegistrationRule(
        languages="go",
        names=f"GET POST PUT PATCH DELETE HEAD OPTIONS CONNECT TRACE Any {_PASCAL_VERBS}",
        read=route_readers.read_called_route,
        receiver=r"\w",
    ),
    RegistrationRule(languages="go", names="Group PathPrefix Party", read=route_groups.note_group),
    RegistrationRule(
        languages="java kotlin",
        names="GetMapping PostMapping PutMapping PatchMapping DeleteMapping RequestMapping GET POST PUT PATCH DELETE"
        f" HEAD OPTIONS GetExchange PostExchange PutExchange PatchExchange DeleteExchange {_PASCAL_VERBS}",
        read=route_readers.read_annotated_route,
        place="above",
    ),
    RegistrationRule(
        languages="csharp",
        names=f"HttpGet HttpPost HttpPut HttpPatch HttpDelete HttpHead HttpOptions {_PASCAL_VERBS}",
        read=route_readers.read_annotated_route,
        place="above",
    ),
    RegistrationRule(
        languages="csharp", names="MapGet MapPost MapPut MapPatch MapDelete", read=route_readers.read_called_route
    ),
    RegistrationRule(languages="csharp", names="MapGroup", read=route_groups.note_group, early=True),
    RegistrationRule(languages="php", names="Route", read=route_readers.read_annotated_route, place="above"),
    RegistrationRule(
        languages="php",
        names=f"{_VERBS} any",
        read=route_readers.read_called_route,
        receiver=r"(?i)route|app|router|group",
    ),
    RegistrationRule(
        languages="ruby",
        names="get post put patch delete options head",
        read=route_readers.read_called_route,
        receiver=r"^$",
    ),
    RegistrationRule(
        languages="ruby",
        names="get post put patch delete match root",
        read=route_readers.read_rails_route,
        receiver=r"^$",
    ),
    RegistrationRule(
        languages="ruby", names="resources resource", read=route_readers.read_rails_resources, receiver=r"^$"
    ),
    RegistrationRule(languages="rust", names=_VERBS, read=route_readers.read_rust_attribute, place="above"),
    RegistrationRule(languages="rust", names="route", read=route_readers.read_rust_route),
    # Commands
    RegistrationRule(
        languages="python",
        names="command group hybrid_command slash_command app_command",
        read=command_readers.read_decorated_command,
        place="above",
    ),
    RegistrationRule(languages="python", names="add_parser", read=command_readers.read_added_command),
    RegistrationRule(languages=_SCRIPT, names="command", read=command_readers.read_added_command),
    RegistrationRule(languages=_SCRIPT, names="setName", read=command_readers.read_discord_builder),
    RegistrationRule(languages="rust", names="new", read=command_readers.read_added_command),
    RegistrationRule(languages="rust", names="derive", read=command_readers.read_derive, place="above"),
    RegistrationRule(languages="go", names="Command", read=command_readers.read_command_literal, place="both"),
    RegistrationRule(languages="java", names="Command", read=command_readers.read_java_command, place="above"),
    RegistrationRule(languages="ruby", names="task", read=command_readers.read_rake_task, receiver=r"^$"),
    # Tasks
    RegistrationRule(
        languages="python",
        names="task shared_task periodic_task db_task db_periodic_task job actor scheduled_job cron",
        read=command_readers.read_task,
        place="above",
    ),
    RegistrationRule(
        languages=f"{_SCRIPT} java",
        names="Cron Scheduled Interval Process",
        read=command_readers.read_task,
        place="above",
    ),
    RegistrationRule(
        languages=f"{_SCRIPT} go",
        names="schedule scheduleJob AddFunc AddJob define",
        read=command_readers.read_scheduled_call,
        receiver=r"(?i)(?:cron|schedule|scheduler|agenda|\bc)$",
    ),
    # Events
    RegistrationRule(
        languages=_SCRIPT,
        names="on once addListener emit publish",
        read=command_readers.read_listener,
    ),
    RegistrationRule(
        languages="python", names="on once emit", read=command_readers.read_listener, place="both", receiver=r"\w"
    ),
    RegistrationRule(
        languages="python",
        names="event action message view shortcut listen listens_for",
        read=command_readers.read_signal_use,
        receiver=r"(?i)(?:app|bot|client|event)$",
        place="above",
    ),
    RegistrationRule(languages="python", names="receiver", read=command_readers.read_signal_use, place="above"),
    RegistrationRule(
        languages="python", names="connect", read=command_readers.read_signal_use, receiver=r"(?i)signals?\b|dispatcher"
    ),
    RegistrationRule(
        languages=f"{_SCRIPT} java",
        names="EventListener TransactionalEventListener OnEvent SubscribeMessage",
        read=command_readers.read_signal_use,
        place="above",
    ),
    # Models
    RegistrationRule(
        languages=_SCRIPT,
        names="model define pgTable mysqlTable sqliteTable",
        read=command_readers.read_named_model,
        receiver=r"(?i)^$|sequelize|mongoose|\bdb|database|connection|orm|schema|sql",
    ),
    RegistrationRule(
        languages=f"{_SCRIPT} java php",
        names="Entity Document MappedSuperclass",
        read=command_readers.read_annotated_model,
        place="above",
    ),
    # Tables
    RegistrationRule(
        languages="python",
        names="create_table drop_table add_column alter_column create_index CreateModel Table",
        read=tables.read_table_call,
        receiver=r"(?:^|op|batch_op|migrations|db|sa|sqlalchemy|schema)$",
    ),
    RegistrationRule(
        languages="ruby",
        names="create_table drop_table change_table add_column remove_column rename_column change_column add_index"
        " remove_index add_reference add_foreign_key",
        read=tables.read_table_call,
        receiver=r"^$",
    ),
    RegistrationRule(
        languages=_SCRIPT,
        names="createTable createTableIfNotExists dropTable dropTableIfExists alterTable addColumn removeColumn pgTable"
        " mysqlTable sqliteTable Table",
        read=tables.read_table_call,
    ),
    RegistrationRule(
        languages="php", names="create table drop dropIfExists", read=tables.read_table_call, receiver=r"Schema$"
    ),
    RegistrationRule(
        languages=f"{_SCRIPT} java", names="Entity Table", read=tables.read_table_annotation, place="above"
    ),
    # Options of command lines
    RegistrationRule(
        languages="python", names="add_argument add_option addoption", read=option_readers.read_python_option
    ),
    RegistrationRule(
        languages="python", names="option argument", read=option_readers.read_python_option, place="above"
    ),
    RegistrationRule(languages="python", names="Option Argument", read=option_readers.read_typer_option),
    RegistrationRule(
        languages="python",
        names="DEFINE_string DEFINE_integer DEFINE_boolean DEFINE_bool DEFINE_float DEFINE_list DEFINE_enum define",
        read=option_readers.read_defined_flag,
    ),
    RegistrationRule(languages=_SCRIPT, names="option requiredOption Option", read=option_readers.read_script_option),
    RegistrationRule(languages=_SCRIPT, names="options parseArgs", read=option_readers.read_script_options),
    RegistrationRule(languages="go", names=_GO_FLAGS, read=option_readers.read_go_flag, receiver=_GO_FLAG_SETS),
    RegistrationRule(
        languages="go",
        names="StringFlag BoolFlag IntFlag Int64Flag UintFlag DurationFlag Float64Flag StringSliceFlag IntSliceFlag",
        read=option_readers.read_go_flag_literal,
        place="both",
    ),
    RegistrationRule(languages="rust", names="arg clap", read=option_readers.read_clap_attribute, place="above"),
    RegistrationRule(languages="rust", names="new", read=option_readers.read_clap_call),
    RegistrationRule(languages="java", names="Option Parameter", read=option_readers.read_java_option, place="above"),
    RegistrationRule(languages="ruby", names="on", read=option_readers.read_option_parser),
    RegistrationRule(
        languages="c cpp", names="isoption is_option isopt parse_option check_option", read=option_readers.read_c_option
    ),
    # Environment variables, and settings
    RegistrationRule(
        languages=f"python go rust java php c cpp {_SCRIPT}",
        names=_ENVIRONMENT_CALLS,
        read=option_readers.read_environment,
    ),
    RegistrationRule(
        languages="python ruby",
        names="get fetch setdefault pop",
        read=option_readers.read_environment,
        receiver=r"environ$|ENV$",
    ),
    RegistrationRule(
        languages="python",
        names="bool str int float list dict json url db",
        read=option_readers.read_environment,
        receiver=r"(?i)^env$",
    ),
    RegistrationRule(languages="python", names="config", read=option_readers.read_environment),
    RegistrationRule(languages="python", names="dataclass define", read=setting_readers.read_dataclass, place="above"),
    RegistrationRule(languages="go", names="SetDefault", read=setting_readers.read_set_call),
    RegistrationRule(languages="ruby", names="set", read=setting_readers.read_set_call, receiver=r"^$"),
    RegistrationRule(
        languages=_SCRIPT,
        names="set enable disable",
        read=setting_readers.read_application_setting,
        receiver=r"(?:^|\.)(?:app|this|server)$",
    ),
    RegistrationRule(languages="java", names="Value", read=setting_readers.read_value_annotation, place="above"),
)

# Classes that are something by what they inherit from: the last name of the base, by language.
BASES: dict[str, dict[str, RegistrationKind]] = {
    "python": {
        "Model": "model", "BaseModel": "model", "SQLModel": "model", "DeclarativeBase": "model", "Base": "model",
        "Document": "model", "EmbeddedDocument": "model", "MPTTModel": "model", "AbstractUser": "model",
        "AbstractBaseUser": "model",
    },
    "ruby": {
        "ApplicationRecord": "model", "ActiveRecord::Base": "model", "Sequel::Model": "model",
        "Sidekiq::Worker": "task", "Sidekiq::Job": "task", "ApplicationJob": "task", "ActiveJob::Base": "task",
    },
    "php": {"Model": "model", "Authenticatable": "model", "Command": "command"},
    "go": {"gorm.Model": "model"},
    "javascript": {"Model": "model"}, "typescript": {"Model": "model", "BaseEntity": "model"},
}  # fmt: skip

# A name that says so itself: `envbool("DEBUG", ...)`, `getEnvOr("PORT", ...)`.
ENVIRONMENT_NAME = re.compile(
    rb"(?i)(?:get|read|lookup|must|require|load|parse)?_?env(?:iron|ironment)?_?"
    rb"(?:var|value|str|string|bool|boolean|flag|int|integer|float|number|list|secret|or|ordefault|or_default|default"
    rb"|get|path|url|duration|int_or|bool_or|intor|boolor|var_or|var_or_default)?"
)


@cache
def map_rules(language: str) -> dict[bytes, tuple[RegistrationRule, ...]]:
    """Return the rules of a language by name."""
    found: dict[bytes, tuple[RegistrationRule, ...]] = {}
    for rule in RULES:
        if language in rule.languages.split():
            for name in rule.names.encode().split():
                found[name] = (*found.get(name, ()), rule)
    return found
