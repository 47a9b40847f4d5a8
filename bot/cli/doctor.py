"""The checks of `citebot doctor`: git, the data folder, models, indexes, the sandbox, and the chat platforms."""

from __future__ import annotations

import asyncio
import dataclasses
import shutil
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

from pydantic import SecretStr

from agent import ChatModel, ClassifierUnusable, ModelSource, SandboxTrial
from bot.access import ANYBODY
from bot.adapters.discord.adapter import HOW_TO_ADD, WITHOUT_CONTENT, DiscordAdapter
from bot.adapters.slack import diagnostics
from bot.adapters.slack.client import API_URL, open_client
from bot.adapters.slack.ephemeral import SlackEphemeralMessages
from bot.adapters.slack.platform import SlackPlatform
from bot.adapters.terminal.display import Terminal
from bot.adapters.terminal.output import CommandOutcome, to_json
from bot.adapters.terminal.suggestions import OFFER
from bot.app import (
    App,
    examine_sandboxes,
    list_local_models,
    load_classifier,
    make_path_table,
    open_models,
    open_team_repositories,
)
from bot.cli.context import OpenApp
from bot.clock import Clock, SystemClock
from bot.errors import ChatError, SettingsError
from bot.jobs.local_refreshes import LocalRefreshJobs
from bot.markdown.formatting import to_one_line
from bot.messages import MessageContent, Place
from bot.monitoring import doctor_findings
from bot.monitoring.doctor_findings import DoctorFinding, make_ok, make_problem, make_warning, note
from bot.monitoring.metrics import read_cluster_state
from bot.ports import ChatPlatform, Repositories
from bot.questions.descriptions import describe_freshness
from bot.repositories.library import RepositoryLibrary
from bot.serving.platforms import read_discord_options
from bot.settings import GuardTable, McpTable, Settings
from bot.storage.data_folder_access import find_exposures
from bot.storage.database import INBOX_FILE, has_store, open_store
from bot.surfaces.mcp.mcp_endpoint import is_installed
from indexer import (
    IndexerError,
    IndexStatus,
    check_chroma_server,
    describe_extra,
    find_ctags_version,
    start_git_async,
)

_POSTED = MessageContent(text="`citebot doctor --live` is checking that I can write here.")
_EDITED = MessageContent(text="`citebot doctor --live` can edit this message, and deletes it now.")
_NOT_SET_UP = "Without --live, `citebot doctor` says how to set it up."
_HOW_TO_NAME = (
    "Invite citebot to the channel, and name it by its id: in Slack at the bottom of the channel's details, in Discord "
    "by Copy Channel ID in developer mode."
)


def is_discord_channel(channel: str) -> bool:
    """Whether an id is one of Discord's, which are numbers, unlike Slack's."""
    return channel.isdecimal()


def report_not_set_up(name: str, channels: Sequence[str]) -> Sequence[DoctorFinding]:
    """Report that nothing was posted on a platform without a token."""
    what = f"{name} is not set up, so nothing was posted in {', '.join(channels)}."
    return [make_problem(what, _NOT_SET_UP)] if channels else []


async def check_slack_delivery(settings: Settings, channels: Sequence[str], clock: Clock) -> Sequence[DoctorFinding]:
    """Check whether citebot can write in Slack channels; raises a `ChatError` if Slack cannot be reached."""
    if settings.slack_bot_token is None or not channels:
        return report_not_set_up("Slack", channels)
    token, address = settings.slack_bot_token.get_secret_value(), settings.slack_api_base_url or API_URL
    async with open_client(token, clock, base_url=address) as client:
        platform = SlackPlatform(client, await client.identity(), SlackEphemeralMessages(client))
        return [await try_message(platform, "Slack", channel) for channel in channels]


async def try_message(platform: ChatPlatform, name: str, channel: str) -> DoctorFinding:
    """Post, edit and delete a message in a channel."""
    place = Place(platform=name.lower(), workspace="", channel=channel)
    step, left = "post", ""
    try:
        handle = await platform.post(place, _POSTED, nonce=uuid4().hex[:25])
        step, left = "edit", " The message is still there."
        await platform.edit(handle, _EDITED)
        step = "delete"
        await platform.withdraw(handle)
    except ChatError as error:
        return make_problem(f"{name}: citebot could not {step} a message in {channel}: {error}{left}", _HOW_TO_NAME)
    return make_ok(f"{name}: a message in {channel} was posted, edited and deleted.")


GIGABYTE = 1_000_000_000
LITTLE, TOO_LITTLE = GIGABYTE, GIGABYTE // 10
_UNREAD = "Name it as shown, or move your settings to your own citebot.toml (docs/configuration.md)."
_EXPOSED = (
    "Others could read or change people's questions. citebot restricts the folder itself whenever it opens it; its "
    "owner and the folders above it are yours to change, with chown and chmod."
)
_QUESTION = "Where is the signature of a webhook checked, and what happens when the secret was rotated meanwhile?"
_NO_MODEL = (
    "For written answers set GOOGLE_API_KEY, or CITEBOT_MODEL to provider:model and the key variable of that provider."
)
_NO_RUNNERS = "Name people's ids as `run` in the table [access] of citebot.toml to allow them (docs/goals.md)."
_UNBOUNDED = (
    " Without a control group, its memory is checked five times a second, and the kernel's memory for it, such as "
    "connections, files in flight and locks, is limited only when the machine runs short."
)
_MAX_PEOPLE = 10


async def check_configuration(remark: str) -> Sequence[DoctorFinding]:
    """Check whether a citebot.toml is ignored; `remark` says so."""
    return [make_warning(remark, _UNREAD)] if remark else []


async def check_git() -> Sequence[DoctorFinding]:
    """Check whether git can be run."""
    try:
        process = await start_git_async(["--version"])
    except OSError as error:
        return [
            make_problem(f"git cannot be run ({error.strerror}).", "Install git, and make sure that it is on the PATH.")
        ]
    output, _ = await process.communicate()
    if process.returncode:
        return [make_problem(f"git fails with the code {process.returncode}.", "Run `git --version` to see why.")]
    return [make_ok(f"git is installed: {output.decode(errors='replace').removeprefix('git version').strip()}.")]


async def check_ctags() -> Sequence[DoctorFinding]:
    """Check whether universal-ctags is installed."""
    if version := await asyncio.to_thread(find_ctags_version):
        return [make_ok(f"universal-ctags {version} finds definitions in languages without a grammar.")]
    what = (
        "universal-ctags is not installed: in languages without a grammar, such as Tcl or COBOL, only words are found."
    )
    return [note(what, "Install it (`apt-get install universal-ctags`) if you need such code, and index again.")]


async def check_data_folder(home: Path) -> Sequence[DoctorFinding]:
    """Check the data folder's free space and permissions."""

    def measure() -> tuple[Sequence[str], int]:
        exposed = find_exposures(home)
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=home):
            return exposed, shutil.disk_usage(home).free

    try:
        exposed, free = await asyncio.to_thread(measure)
    except OSError as error:
        what = f"The data folder {home} is not writable ({error.strerror or error})."
        return [make_problem(what, "Make it writable for citebot, or set CITEBOT_HOME to another folder.")]
    return [check_disk_space(home, free), *(make_warning(sentence, _EXPOSED) for sentence in exposed)]


def check_disk_space(home: Path, free: int) -> DoctorFinding:
    """Check whether the free space suffices."""
    what = f"The data folder {home} is writable, with {free / GIGABYTE:,.1f} GB free."
    advice = "Free some space, or set CITEBOT_HOME to a folder on another disk."
    if free < TOO_LITTLE:
        return make_problem(what, advice)
    return make_warning(what, advice) if free < LITTLE else make_ok(what)


async def check_inbox(home: Path, url: SecretStr | None) -> Sequence[DoctorFinding]:
    """Check whether the database of messages works, if there is one; raises `InboxError` if not."""
    if not await asyncio.to_thread(has_store, home, url):
        return []
    async with open_store(home, url):
        name = f"The message database {home / INBOX_FILE}" if url is None else "Postgres, which DATABASE_URL names,"
        return [make_ok(f"{name} can be used.")]


async def check_cluster(settings: Settings) -> Sequence[DoctorFinding]:
    """Check what processes share: the queue, the leases and the object store.

    Raises `InboxError`, or `SegmentsUnavailable`, where one of them cannot be used.
    """
    if settings.database_url is None:
        return []
    # With the extra `cluster` alone.
    from bot.jobs.job_queue import open_job_queue
    from bot.repositories.segments import open_segments
    from bot.storage.manifest_table import ManifestTable

    async with open_store(settings.home, settings.database_url) as database:
        async with open_job_queue(settings.database_url.get_secret_value()):
            findings = [make_ok("The job queue in Postgres works.")]
        state = await read_cluster_state(database, role="", held=frozenset())
        held = "; ".join(f"{owner} has {name}" for name, owner in sorted(state.holders.items())) or "none is held"
        findings.append(note(f"Messages that wait for a process: {state.waiting}. Leases: {held}."))
        if settings.segments_url is not None:
            manifests = ManifestTable(database)
            async with open_segments(settings.segments_url, settings.home, manifests, cache_bytes=GIGABYTE):
                findings.append(make_ok("The object store of SEGMENTS_URL works, and belongs to this cluster."))
    return findings


async def check_vector_server(url: str | None) -> Sequence[DoctorFinding]:
    """Check whether the vector server works, if there is one."""
    if url is None:
        return []
    try:
        version = await asyncio.to_thread(check_chroma_server, url)
    except IndexerError as error:
        return [make_problem(str(error), "Questions are answered meanwhile; no repository can be indexed.")]
    return [make_ok(f"The Chroma server at CHROMA_URL works (version {version}).")]


async def check_models(
    open_models: Callable[[], AbstractAsyncContextManager[ModelSource]], settings: Settings, *, call: bool
) -> Sequence[DoctorFinding]:
    """Check whether the configured models can be used; only a call shows whether their keys are accepted."""
    async with open_models() as models:
        turn = models.make_turn_models(models.budget(), _ignore)
        if turn.main is None:
            offers = [OFFER.format(name=name) for name in await list_local_models(settings)]
            return [note("There is no language model: answers quote the code.", " ".join([_NO_MODEL, *offers[:1]]))]
        different = dict.fromkeys(filter(None, (turn.main, turn.small, turn.check)))
        return [await _check_model(model, settings.ollama_host, call=call) for model in different]


async def _check_model(model: ChatModel, ollama_host: str, *, call: bool) -> DoctorFinding:
    from agent import ping_model, read_context_length

    provider, _, name = model.name.partition(":")
    length = await read_context_length(name, ollama_host) if provider == "ollama" else None
    reads = f" and reads up to {length:,} tokens" if length is not None else ""
    if not call:
        return make_ok(f"The language model {model.name} is set up{reads}; --call-model also asks it for one word.")
    wanted = model.name
    await ping_model(model)
    if model.name != wanted:
        return make_warning(
            f"The language model {wanted} does not answer; {model.name} replaces it.",
            "Check its key and CITEBOT_MODEL; --debug shows the reason.",
        )
    return make_ok(f"The language model {wanted} answers.")


async def check_classifier(
    load: Callable[[], Callable[[str], float]], folder: Path, *, milliseconds: int
) -> Sequence[DoctorFinding]:
    """Check whether the operator's classifier can be loaded, and answers in time."""
    try:
        score = await asyncio.to_thread(load)
    except ClassifierUnusable as error:
        return [DoctorFinding(level="warning", what=f"Only the rules judge questions. {error}")]
    began = time.perf_counter()
    await asyncio.to_thread(score, _QUESTION)
    duration = 1000 * (time.perf_counter() - began)
    what = f"The classifier in {folder} is the pinned one, and takes {duration:,.0f} ms for a question"
    if duration > milliseconds:
        advice = "Use a smaller model, or raise classifier_ms below [guard]: until then it is skipped."
        return [make_warning(f"{what}; it may take {milliseconds}.", advice)]
    return [make_ok(f"{what}.")]


async def check_sandbox(try_all: Callable[[], Awaitable[Sequence[SandboxTrial]]]) -> Sequence[DoctorFinding]:
    """Check which sandbox works on this machine; raises `SandboxUnavailable` if none could be tried."""
    *failures, last = await try_all()
    if last.problem:
        failures.append(last)
    reasons = " ".join(f"{each.sandbox.mechanism}: {to_one_line(each.problem)}" for each in failures)
    advice = " ".join(dict.fromkeys(each.advice for each in failures if each.advice))
    if last.problem:
        return [note(f"No sandbox works here, so `citebot goal` runs nothing. {reasons}", advice)]
    what = f"The sandbox of `citebot goal` works here: {last.sandbox.mechanism}."
    what += f" Its memory is bounded by {last.group.description}." if last.group is not None else _UNBOUNDED
    if not failures:
        return [make_ok(what)]
    return [note(f"{what} The preferred one does not work. {reasons}", advice)]


async def check_chat_goals(settings: Settings) -> Sequence[DoctorFinding]:
    """Check whether goal runs are on in chat, and who may start them."""
    people = settings.access.run
    if not people:
        return [note("Goal runs are off in chat: nobody may start them.", _NO_RUNNERS)]
    named = "everybody" if ANYBODY in people else ", ".join(people[:_MAX_PEOPLE])
    more = f" and {len(people) - _MAX_PEOPLE} more" if len(people) > _MAX_PEOPLE and named != "everybody" else ""
    what = f"Goal runs may be started in chat by {to_one_line(named)}{more}"
    if not settings.has_model:
        return [make_warning(f"{what}, but none starts without a language model.", _NO_MODEL)]
    return [make_ok(f"{what}; they run in this sandbox.")]


async def check_indexes(repositories: Repositories, now: float) -> Sequence[DoctorFinding]:
    """Check how fresh the index of each repository is."""
    found: list[DoctorFinding] = []
    for name in repositories.list_names():
        try:
            status = await repositories.status(name)
        except IndexerError as error:
            found.append(make_problem(f"{to_one_line(name)}: {error}"))
        else:
            found.append(_check_freshness(status, now))
            found += (make_warning(f"{to_one_line(name)}: {text}", "See `citebot status`.") for text in status.warnings)
    return found


def _check_freshness(status: IndexStatus, now: float) -> DoctorFinding:
    line = f"{describe_freshness(status, now)}."
    if status.commit is None:
        return make_warning(line, "Run `citebot index`, or wait longer for the first question.")
    if status.commits_behind:
        return make_warning(line, "Run `citebot index`, or ask a question if citebot is serving.")
    if status.commits_behind is None:
        return make_warning(f"{line} Its lag behind HEAD is unknown.", "Run `citebot index`.")
    return make_ok(line)


def _ignore(kind: str, /, **payload: Any) -> None:
    """Discard the events of a check."""


async def run_doctor(
    settings: Settings, repository: Path, *, open_app: OpenApp | None, call_model: bool, live: Sequence[str] = ()
) -> Sequence[DoctorFinding]:
    """Run all checks for the repository at a path; in the channels of `live` a message is posted for a moment."""
    clock = SystemClock()

    async def check_all_indexes() -> Sequence[DoctorFinding]:
        if settings.repositories:
            async with open_team_repositories(settings, repository, Terminal.standard()) as stock:
                return await check_indexes(stock.library, clock.now())
        async with (open_app or App.open)(settings, make_path_table(settings, repository)) as app:
            name = (await app.index.status()).repository
            library = RepositoryLibrary({name: app.index}, Terminal.standard(), LocalRefreshJobs())
            return await check_indexes(library, clock.now())

    return await doctor_findings.run_checks(
        [
            partial(check_configuration, settings.remark),
            check_git,
            check_ctags,
            partial(check_data_folder, settings.home),
            partial(check_inbox, settings.home, settings.database_url),
            partial(check_cluster, settings),
            partial(check_vector_server, settings.chroma_url),
            check_all_indexes,
            partial(check_models, partial(open_models, settings), settings, call=call_model),
            partial(_check_guard, settings.guard),
            partial(check_mcp, settings.mcp),
            partial(check_sandbox, partial(examine_sandboxes, settings)),
            partial(check_chat_goals, settings),
            partial(diagnostics.run_diagnostics, read_slack_credentials(settings), clock),
            partial(check_slack_delivery, settings, [each for each in live if not is_discord_channel(each)], clock),
            partial(_check_discord, settings, clock, [each for each in live if is_discord_channel(each)]),
        ],
        secrets=settings.list_secret_values(),
    )


def report_invalid_settings(error: SettingsError) -> Sequence[DoctorFinding]:
    """Report invalid settings, which prevent all other checks."""
    first, *others = str(error).splitlines()
    return [doctor_findings.make_problem(line.strip()) for line in others or [first]]


def read_slack_credentials(settings: Settings) -> diagnostics.SlackCredentials:
    """Read the credentials of Slack."""
    return diagnostics.SlackCredentials(
        bot_token=_reveal_secret(settings.slack_bot_token),
        app_token=_reveal_secret(settings.slack_app_token),
        signing_secret=_reveal_secret(settings.slack_signing_secret),
        mode=settings.slack_mode,
        api_url=settings.slack_api_base_url or API_URL,
    )


async def check_mcp(table: McpTable) -> Sequence[DoctorFinding]:
    """Check whether editors and agents can use citebot, and who may use it over HTTP."""
    if not is_installed():
        advice = f"For `citebot mcp`{' and /mcp of `citebot serve`' * bool(table.tokens)}. {describe_extra('mcp')}"
        missing = make_warning if table.tokens else note
        return [missing("The MCP server is not installed.", advice)]
    if not table.tokens:
        return [note("MCP: `citebot mcp` serves this machine's editors; `citebot serve` does not: no token is listed.")]
    people = len({each.person for each in table.tokens})
    served = f"MCP: `citebot serve` answers {_count(len(table.tokens), 'token')} of {people} people at /mcp"
    named = f", called as {', '.join(table.hosts)}." if table.hosts else ", only from this machine: no `hosts`."
    return [make_ok(served + named)]


async def _check_guard(guard: GuardTable) -> Sequence[DoctorFinding]:
    """Check whether the classifier works, if there is one."""
    if guard.classifier is None:
        return []
    return await check_classifier(
        lambda: load_classifier(guard).score, guard.classifier, milliseconds=guard.classifier_ms
    )


async def _check_discord(settings: Settings, clock: Clock, live: Sequence[str]) -> Sequence[DoctorFinding]:
    """Check whether Discord works, and some of its channels; `BotError`s give the reasons."""
    if settings.discord_token is None:
        return [doctor_findings.note("Discord is not set up.", HOW_TO_ADD), *report_not_set_up("Discord", live)]
    async with DiscordAdapter.open(read_discord_options(settings), clock) as discord:
        found = [
            doctor_findings.note(each) if each == WITHOUT_CONTENT else doctor_findings.make_problem(each)
            for each in await discord.list_problems()
        ]
        found += [await try_message(discord.platform, "Discord", channel) for channel in live]
        return [doctor_findings.make_ok(f"DISCORD_TOKEN works: {discord.name}."), *found]


def _reveal_secret(secret: SecretStr | None) -> str:
    return secret.get_secret_value() if secret is not None else ""


def format_report(findings: Sequence[DoctorFinding], *, as_json: bool) -> CommandOutcome:
    """Format all findings with their counts; a success if there is no problem."""
    problems = sum(finding.level == "problem" for finding in findings)
    warnings = sum(finding.level == "warning" for finding in findings)
    if as_json:
        found = [dataclasses.asdict(finding) for finding in findings]
        return CommandOutcome(output=to_json({"ok": not problems, "findings": found}), ok=not problems)
    lines = []
    for finding in findings:
        lines.append(f"{finding.level:<9}{to_one_line(finding.what)}")
        lines += [f"{'':<9}-> {to_one_line(finding.advice)}"] if finding.advice else []
    total = f"{_count(problems, 'problem')}, {_count(warnings, 'warning')}."
    return CommandOutcome(output="\n".join([*lines, "", total]), ok=not problems)


def _count(number: int, of_what: str) -> str:
    return f"{number or 'no'} {of_what}{'s' * (number != 1)}"
