"""Settings: where they come from, which wins, and what is said about wrong ones."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.errors import SettingsError
from bot.settings import TABLES, Settings, list_file_keys, list_variable_names


def test_defaults_need_no_variable_and_no_file(tmp_path: Path) -> None:
    settings = Settings.load({}, tmp_path)

    assert settings.home.name == "citebot"
    assert (settings.embedder, settings.fusion, settings.log_level) == ("static", "score", "warning")
    assert (settings.repo, settings.include, settings.exclude, settings.google_api_key) == (None, (), (), None)


def test_a_variable_wins_over_the_file(tmp_path: Path) -> None:
    (tmp_path / "citebot.toml").write_text('fusion = "rrf"\nlog_level = "debug"\n')

    settings = Settings.load({"CITEBOT_LOG_LEVEL": "error"}, tmp_path)

    assert (settings.fusion, settings.log_level) == ("rrf", "error")


def test_an_empty_variable_counts_as_unset(tmp_path: Path) -> None:
    settings = Settings.load({"GOOGLE_API_KEY": "", "CITEBOT_FUSION": " "}, tmp_path)

    assert settings.google_api_key is None
    assert settings.fusion == "score"


def test_lists_are_separated_by_commas_in_variables(tmp_path: Path) -> None:
    settings = Settings.load({"CITEBOT_INCLUDE": "src/**, docs/*.md,,"}, tmp_path)

    assert settings.include == ("src/**", "docs/*.md")


def test_lists_are_arrays_in_the_file(tmp_path: Path) -> None:
    (tmp_path / "citebot.toml").write_text('exclude = ["a,b/**", "c"]\n')

    assert Settings.load({}, tmp_path).exclude == ("a,b/**", "c")


def test_folders_become_absolute_and_home_is_expanded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))

    settings = Settings.load({"CITEBOT_HOME": "~/data", "CITEBOT_REPO": "here"}, tmp_path)

    assert settings.home == tmp_path / "data"
    assert settings.repo == Path.cwd() / "here"


def test_every_wrong_setting_is_listed_at_once(tmp_path: Path) -> None:
    (tmp_path / "citebot.toml").write_text('log_level = "loud"\nfusoin = "rrf"\n')

    with pytest.raises(SettingsError) as caught:
        Settings.load({"CITEBOT_FUSION": "sum", "CITEBOT_EMBEDER": "x", "GOOGLE_API_BASE_URL": "ftp://x"}, tmp_path)

    lines = str(caught.value).splitlines()
    assert lines[0] == "5 settings are wrong:"
    assert "  CITEBOT_EMBEDER is not a setting. Did you mean CITEBOT_EMBEDDER?" in lines
    assert "  citebot.toml: fusoin is not a setting. Did you mean fusion?" in lines
    named = {line.split(":")[0].strip() for line in lines if "should" in line or "has to" in line}
    assert named == {"CITEBOT_FUSION", "GOOGLE_API_BASE_URL", "citebot.toml"}


def test_a_citebot_toml_cannot_send_the_key_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "citebot.toml").write_text('google_api_base_url = "https://elsewhere.example"\n')

    with pytest.raises(SettingsError, match="may only be set as the variable GOOGLE_API_BASE_URL"):
        Settings.load({"GOOGLE_API_KEY": "k"}, tmp_path)


def test_the_key_shows_in_no_message_and_no_repr(tmp_path: Path) -> None:
    settings = Settings.load({"GOOGLE_API_KEY": "very-secret"}, tmp_path)
    with pytest.raises(SettingsError) as caught:
        Settings.load({"GOOGLE_API_KEY": "very-secret", "CITEBOT_FUSION": "sum"}, tmp_path)

    assert "very-secret" not in repr(settings)
    assert "very-secret" not in str(caught.value)


def test_slack_is_read_from_variables_alone(tmp_path: Path) -> None:
    (tmp_path / "citebot.toml").write_text('slack_mode = "http"\n')

    with pytest.raises(SettingsError, match="slack_mode may only be set as the variable SLACK_MODE"):
        Settings.load({"SLACK_BOT_TOKEN": "xoxb-1"}, tmp_path)


def test_slack_speaks_by_sockets_and_streams_unless_told_otherwise(tmp_path: Path) -> None:
    usual = Settings.load({}, tmp_path)
    other = Settings.load({"SLACK_MODE": "HTTP", "SLACK_STREAMING": "Off"}, tmp_path)

    assert (usual.slack_mode, usual.slack_streaming, usual.slack_bot_token) == ("socket", "auto", None)
    assert (other.slack_mode, other.slack_streaming) == ("http", "off")


@pytest.mark.parametrize("variable", ["SLACK_MODE", "SLACK_STREAMING", "SLACK_API_BASE_URL"])
def test_a_slack_setting_that_is_none_is_refused_by_name(tmp_path: Path, variable: str) -> None:
    with pytest.raises(SettingsError, match=variable):
        Settings.load({variable: "carrier pigeon"}, tmp_path)


@pytest.mark.parametrize("variable", ["SLACK_BOT_TOKEN", "SLACK_APP_TOKEN", "SLACK_SIGNING_SECRET"])
def test_slack_secrets_show_in_no_message_and_no_repr(tmp_path: Path, variable: str) -> None:
    settings = Settings.load({variable: "very-secret"}, tmp_path)
    with pytest.raises(SettingsError) as caught:
        Settings.load({variable: "very-secret", "SLACK_MODE": "sum"}, tmp_path)

    assert "very-secret" not in repr(settings)
    assert "very-secret" not in str(caught.value)


def test_settings_cannot_be_changed(tmp_path: Path) -> None:
    settings = Settings.load({}, tmp_path)

    with pytest.raises(ValueError, match="frozen"):
        settings.fusion = "rrf"


def test_the_configuration_file_can_stand_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "other.toml").write_text('fusion = "rrf"\n')

    assert Settings.load({"CITEBOT_CONFIG": "other.toml"}, tmp_path).fusion == "rrf"


@pytest.mark.parametrize("variable", ["CITEBOT_CONFIG", "CITEBOT_ENV_FILE"])
def test_a_named_file_that_is_missing_is_an_error(tmp_path: Path, variable: str) -> None:
    with pytest.raises(SettingsError, match=f"{variable} names .*gone, which does not exist"):
        Settings.load({variable: "gone"}, tmp_path)


@pytest.mark.parametrize("content", [b"fusion = ", b"\xff\xfe"])
def test_a_damaged_file_is_named(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "citebot.toml").write_bytes(content)

    with pytest.raises(SettingsError, match=r"citebot\.toml cannot be read"):
        Settings.load({}, tmp_path)


def test_an_environment_file_is_read_where_it_is_named(tmp_path: Path) -> None:
    (tmp_path / "my.env").write_text("CITEBOT_FUSION=rrf\nCITEBOT_EMBEDDER=file\nUNRELATED=1\n")

    settings = Settings.load({"CITEBOT_ENV_FILE": "my.env", "CITEBOT_EMBEDDER": "process"}, tmp_path)

    assert (settings.fusion, settings.embedder) == ("rrf", "process")


def test_a_stray_environment_file_is_not_read(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("CITEBOT_FUSION=rrf\n")

    assert Settings.load({}, tmp_path).fusion == "score"


def test_names_of_variables_and_keys_belong_together() -> None:
    variables = set(list_variable_names())

    assert {f"CITEBOT_{key.upper()}" for key in list_file_keys() if key not in TABLES} <= variables
    assert {"GOOGLE_API_KEY", "GOOGLE_API_BASE_URL", "CITEBOT_CONFIG"} <= variables


@given(
    st.dictionaries(
        st.sampled_from(list_variable_names()), st.text(st.characters(codec="utf-8", exclude_characters="\0"))
    )
)
def test_any_value_is_taken_or_refused_with_its_name(variables: dict[str, str]) -> None:
    complaint = ""
    try:
        Settings.load(variables, Path("/"))
    except SettingsError as error:
        complaint = str(error)

    assert not complaint or any(name in complaint for name in variables)


@pytest.mark.parametrize("name", ["none", "google_genai:gemini-2.5-flash", "ollama:llama3.2:8b", "openai:org/model"])
def test_a_model_is_named_with_its_provider(tmp_path: Path, name: str) -> None:
    assert Settings.load({"CITEBOT_MODEL": name}, tmp_path).model == name


@pytest.mark.parametrize(
    ("variable", "name"),
    [
        ("CITEBOT_MODEL", "gemini-2.5-flash"),
        ("CITEBOT_MODEL", "google_genai:"),
        ("CITEBOT_MODEL", ":x"),
        ("CITEBOT_SMALL_MODEL", "a:b c"),
        ("CITEBOT_FALLBACK_MODEL", "a:" + "x" * 1000),
    ],
)
def test_a_model_without_its_provider_is_refused_with_an_example(tmp_path: Path, variable: str, name: str) -> None:
    with pytest.raises(SettingsError, match=f"{variable}: write it as provider:model, such as google_genai:"):
        Settings.load({variable: name}, tmp_path)


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("MODEL_TIMEOUT", "nan"),
        ("MAX_SECONDS", "-1"),
        ("MAX_TOKENS", "many"),
        ("MAX_MODEL_CALLS", "nan"),
        ("APPROVAL_CALLS", "-1"),
    ],
)
def test_a_limit_that_is_no_amount_is_refused(tmp_path: Path, variable: str, value: str) -> None:
    with pytest.raises(SettingsError, match=f"CITEBOT_{variable}: Input should be"):
        Settings.load({f"CITEBOT_{variable}": value}, tmp_path)


@pytest.mark.parametrize(
    ("variable", "value"),
    [("ANSWER_TEMPERATURE", value) for value in ("-0.1", "2.5", "hot", "nan", "inf")] + [("FORM_TEMPERATURE", "2.5")],
)
def test_a_temperature_that_is_none_is_refused(tmp_path: Path, variable: str, value: str) -> None:
    with pytest.raises(SettingsError, match=f"CITEBOT_{variable}: write a number from 0 to 2, or default"):
        Settings.load({f"CITEBOT_{variable}": value}, tmp_path)


def test_temperatures_and_thinking_are_read_from_variables_and_the_file(tmp_path: Path) -> None:
    (tmp_path / "citebot.toml").write_text('form_temperature = "default"\nanswer_temperature = 1\n')

    settings = Settings.load({"CITEBOT_ANSWER_TEMPERATURE": "0.7", "CITEBOT_FORM_THINKING": "OFF"}, tmp_path)

    assert (settings.answer_temperature, settings.form_temperature, settings.form_thinking) == (0.7, None, "off")
    with pytest.raises(SettingsError, match="CITEBOT_FORM_THINKING"):
        Settings.load({"CITEBOT_FORM_THINKING": "high"}, tmp_path)


def test_repositories_are_tables_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "citebot.toml").write_text(
        '[[repositories]]\npath = "shop"\n[[repositories]]\npath = "web"\nname = "site"\nexclude = ["dist/**"]\n'
    )

    shop, site = Settings.load({}, tmp_path).repositories

    assert (shop.path, shop.name, shop.branch) == (Path.cwd() / "shop", None, None)
    assert (site.name, site.exclude) == ("site", ("dist/**",))


def test_a_wrong_table_is_named_by_its_number(tmp_path: Path) -> None:
    (tmp_path / "citebot.toml").write_text(
        '[[repositories]]\npath = "shop"\n[[repositories]]\nname = "a b"\nbrunch = "main"\n'
    )

    with pytest.raises(SettingsError) as caught:
        Settings.load({}, tmp_path)

    named = {line.strip().split(": ")[1] for line in str(caught.value).splitlines()[1:]}
    assert named == {"repositories 2 name", "repositories 2 brunch"}


WRONG_PLACES = [
    "",
    'path = "a"\nurl = "https://git.example.com/a"',
    'path = "a"\nuser = "x"',
    'path = "a"\ndepth = 5',
    'url = "https://git.example.com/a"\ndepth = 0',
]


@pytest.mark.parametrize("keys", WRONG_PLACES)
def test_a_repository_is_in_one_place(tmp_path: Path, keys: str) -> None:
    (tmp_path / "citebot.toml").write_text(f"[[repositories]]\n{keys}\n")

    with pytest.raises(SettingsError, match="repositories 1"):
        Settings.load({}, tmp_path)


def test_a_token_is_read_from_the_variable_that_a_table_names(tmp_path: Path) -> None:
    table = '[[repositories]]\nurl = "https://git.example.com/shop"\ntoken_variable = "SHOP_TOKEN"\n'
    (tmp_path / "citebot.toml").write_text(table)
    named = {"CITEBOT_CONFIG": "citebot.toml"}

    settings = Settings.load({"SHOP_TOKEN": "very-secret", **named}, tmp_path)

    assert settings.tokens["SHOP_TOKEN"].get_secret_value() == "very-secret"
    assert "very-secret" not in repr(settings)
    with pytest.raises(SettingsError, match="SHOP_TOKEN should hold a token but is not set"):
        Settings.load(named, tmp_path)


def test_a_token_does_not_belong_into_the_file(tmp_path: Path) -> None:
    (tmp_path / "citebot.toml").write_text('[[repositories]]\nurl = "https://git.example.com/a"\ntoken = "secret"\n')

    with pytest.raises(SettingsError, match="repositories 1 token") as caught:
        Settings.load({}, tmp_path)
    assert "secret" not in str(caught.value)


def test_access_is_read_from_the_file_alone(tmp_path: Path) -> None:
    (tmp_path / "citebot.toml").write_text('[access]\nreindex = ["slack:U1"]\n')

    variables = {"CITEBOT_ACCESS": "{}", "CITEBOT_CONFIG": "citebot.toml"}
    assert Settings.load(variables, tmp_path).access.reindex == ("slack:U1",)


@pytest.mark.parametrize("text", ['access = "all"', "[access]\nopne = true"])
def test_access_that_is_misspelt_opens_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / "citebot.toml").write_text(text)

    with pytest.raises(SettingsError, match="access"):
        Settings.load({}, tmp_path)


@pytest.mark.parametrize(
    ("table", "place"),
    [
        ('[prices]\n"gemini" = { input = 1, output = 2 }\n', "prices gemini"),
        ('[prices]\n"google_genai:gemini" = { input = -1, output = 2 }\n', "prices google_genai:gemini input"),
        ('[prices]\n"google_genai:gemini" = { input = 1 }\n', "prices google_genai:gemini output"),
        ('[prices]\n"google_genai:gemini" = { input = nan, output = 2 }\n', "prices google_genai:gemini input"),
    ],
)
def test_a_price_that_cannot_be_is_named(tmp_path: Path, table: str, place: str) -> None:
    (tmp_path / "citebot.toml").write_text(table)

    with pytest.raises(SettingsError, match=rf"citebot\.toml: {place}"):
        Settings.load({}, tmp_path)


def test_a_channel_says_how_citebot_behaves_there(tmp_path: Path) -> None:
    tables = '[channels.C1]\nmanners = "mentions"\n[channels."slack:C2"]\nmanners = "every question"\n[channels.C3]\n'
    (tmp_path / "citebot.toml").write_text(tables)

    channels = Settings.load({}, tmp_path).channels

    assert {name: table.manners for name, table in channels.items()} == {
        "C1": "mentions", "slack:C2": "every question", "C3": "follow",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            '[channels.C1]\nmanners = "loud"',
            "channels C1 manners: Input should be 'mentions', 'follow' or 'every question'.",
        ),
        ('[channels.C1]\nmaners = "follow"', "channels C1 maners: There is no such key; the table has manners."),
        ('[channels]\nC1 = "mentions"', "channels C1: This is a table, written [channels.C1]."),
        (
            '[channels.general]\nmanners = "mentions"',
            "channels general: A channel is named by its id, bare or with its platform, such as slack:C123",
        ),
        ('channels = ["C1"]', "channels: These are tables, each with a name of its own, such as [channels.NAME]."),
    ],
)
def test_manners_that_cannot_be_are_named(tmp_path: Path, text: str, problem: str) -> None:
    (tmp_path / "citebot.toml").write_text(text)

    with pytest.raises(SettingsError, match=re.escape(f"citebot.toml: {problem}")):
        Settings.load({}, tmp_path)


def test_prices_are_dollars_for_a_million_tokens_of_a_model(tmp_path: Path) -> None:
    (tmp_path / "citebot.toml").write_text('[prices]\n"ollama:llama3.2" = { input = 0, output = 0.5 }\n')

    price = Settings.load({}, tmp_path).prices["ollama:llama3.2"]

    assert (price.input, price.output) == (0, 0.5)


@pytest.mark.parametrize(
    ("variable", "value", "beginning"),
    [("DISCORD_API_BASE_URL", "discord.example", "http://"), ("DISCORD_GATEWAY_URL", "http://a.example", "ws://")],
)
def test_what_is_no_address_is_told_how_one_begins(variable: str, value: str, beginning: str) -> None:
    with pytest.raises(SettingsError, match=f"{variable}: This is not an address. It has to begin with {beginning}"):
        Settings.load({variable: value})


def test_a_token_that_is_too_short_is_told_how_long_one_is_in_characters() -> None:
    with pytest.raises(SettingsError, match=r"^CITEBOT_METRICS_TOKEN: This is too short. .* at least 16 characters\.$"):
        Settings.load({"CITEBOT_METRICS_TOKEN": "short"})


def test_what_is_no_checksum_is_told_where_to_find_one(tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text('[guard]\nclassifier_sha256 = "abc"\n')

    with pytest.raises(SettingsError, match="64 hexadecimal digits; `citebot doctor` shows the one to pin"):
        Settings.load({"CITEBOT_CONFIG": "own.toml"}, tmp_path)


def test_a_repository_names_its_channels(tmp_path: Path) -> None:
    (tmp_path / "citebot.toml").write_text('[[repositories]]\npath = "shop"\nchannels = ["slack:C1", "direct"]\n')

    assert Settings.load({}, tmp_path).repositories[0].channels == ("slack:C1", "direct")


@pytest.mark.parametrize("channels", ['["a b"]', '["*"]', '[""]', '"slack:C1"', "[1]"])
def test_channels_that_are_none_are_refused_with_their_table(tmp_path: Path, channels: str) -> None:
    (tmp_path / "citebot.toml").write_text(f'[[repositories]]\npath = "shop"\nchannels = {channels}\n')

    with pytest.raises(SettingsError, match="repositories 1 channels"):
        Settings.load({}, tmp_path)


def test_a_classifier_is_named_by_its_folder_and_pinned(tmp_path: Path) -> None:
    (tmp_path / "citebot.toml").write_text(f'[guard]\nclassifier = "{tmp_path}"\nclassifier_sha256 = "{"aB" * 32}"\n')

    guard = Settings.load({"CITEBOT_CONFIG": "citebot.toml"}, tmp_path).guard

    assert (guard.classifier, guard.classifier_sha256) == (tmp_path, "aB" * 32)
    assert (guard.classifier_threshold, guard.classifier_ms) == (0.92, 150)


@pytest.mark.parametrize(
    ("line", "key"),
    [
        ('classifier_sha256 = "abc"', "classifier_sha256"),
        ("classifier_threshold = 1.0", "classifier_threshold"),
        ("classifier_threshold = nan", "classifier_threshold"),
        ("classifier_ms = 0", "classifier_ms"),
        ('clasifier = "x"', "clasifier"),
    ],
)
def test_a_classifier_that_is_wrongly_set_up_is_named(tmp_path: Path, line: str, key: str) -> None:
    (tmp_path / "citebot.toml").write_text(f"[guard]\n{line}\n")

    with pytest.raises(SettingsError, match=rf"citebot\.toml: guard {key}:"):
        Settings.load({"CITEBOT_CONFIG": "citebot.toml"}, tmp_path)


def test_the_environment_names_no_classifier(tmp_path: Path) -> None:
    assert Settings.load({"CITEBOT_GUARD": "{}"}, tmp_path).guard.classifier is None


def test_the_sandbox_may_be_shown_an_environment(tmp_path: Path) -> None:
    (tmp_path / "citebot.toml").write_text(f'[sandbox]\npython = "{tmp_path}/shop"\n')

    assert Settings.load({"CITEBOT_CONFIG": "citebot.toml"}, tmp_path).sandbox.python == tmp_path / "shop"


def test_an_unknown_key_of_the_sandbox_is_told_with_those_that_there_are(tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text('[sandbox]\nimage = "x"\n')

    with pytest.raises(SettingsError, match=r"sandbox image: There is no such key; the table has python"):
        Settings.load({"CITEBOT_CONFIG": "own.toml"}, tmp_path)
