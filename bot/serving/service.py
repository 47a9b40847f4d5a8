"""Serves a team: all configured platforms over one conversation core, until the process is ended.

Without a platform, it still watches repositories, receives pushes and shows metrics.
"""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path

from agent import AgentError, Database, write_example
from bot.app import TeamApp, make_redactor, name_versions, open_code_push
from bot.clock import Clock, SystemClock
from bot.conversations.assembly import ChatPolicy, open_conversations
from bot.conversations.dispatcher import Conversations
from bot.conversations.goal_turns import NO_SANDBOX
from bot.errors import InboxError
from bot.living.edits import LivingEdits
from bot.living.following import AnswerFollower
from bot.maintenance.retention import Retention, run_daily_sweep
from bot.messages import SURFACE
from bot.monitoring.metrics import ClusterState, read_cluster_state
from bot.monitoring.observer import ConversationObserver
from bot.monitoring.watchdog import watch_loop
from bot.ports import AnswerJobs, RefreshJobs
from bot.repositories.refresh import LoggingDisplay
from bot.repositories.segments import SharedSegments
from bot.serving.cluster import Cluster, Duties, Role, assign_duties, open_cluster
from bot.serving.monitoring import JoinServer, ServiceMonitoring, open_monitoring
from bot.serving.platforms import NO_PLATFORM, Announce, PlatformContext, PlatformSupervisor, list_platforms
from bot.settings import LivingTable, Settings
from bot.storage.database import open_store
from bot.storage.inbox import make_process_name
from bot.storage.leases import Lease
from bot.storage.living_answers import LivingAnswerStore
from bot.storage.rate_limits import QuestionLimits
from bot.surfaces.api.ask_requests import RepeatedQuestions
from bot.surfaces.api.chat_completions import ChatCompletions
from bot.surfaces.goal_runs import SurfaceReplies
from bot.surfaces.mcp.mcp_endpoint import McpEndpoint, is_installed
from bot.surfaces.principals import Tokens
from bot.surfaces.team_surfaces import Late, SurfaceCore, make_team_core
from bot.surfaces.web.web_surface import WebOptions, WebSurface, make_web_options, serve_team_page
from bot.tasks import open_task_group, run_in_background
from bot.webhooks.push_endpoint import make_push_handler
from indexer import describe_extra

log = logging.getLogger(__name__)
DRAIN_SECONDS = 5.0  # for which answers may come to their end when the process ends


class TeamSurfaces:
    """The surfaces for programs and people, in addition to chats."""

    def __init__(self, *, has_api: bool, page: WebOptions | None = None) -> None:
        self._core = Late[SurfaceCore]()
        self._repeated = RepeatedQuestions()
        self._has_api = has_api
        self._page = WebSurface(page) if page is not None else None
        self._mcp: McpEndpoint | None = None

    def make(self) -> Sequence[JoinServer]:
        """Create the configured surfaces; return the function that adds their paths to the server's."""
        joins: list[JoinServer] = []
        if self._has_api:
            from bot.surfaces.api.http_api import HttpApi  # FastAPI takes half a second to import

            self._mcp = self._make_mcp()
            joins = [HttpApi(self._core, self._repeated).join, ChatCompletions(self._core, self._repeated).join]
        return [*joins, *(one.join for one in (self._mcp, self._page) if one is not None)]

    def _make_mcp(self) -> McpEndpoint | None:
        if not is_installed():
            log.warning("/mcp is not served: the extra `mcp` is not installed. %s", describe_extra("mcp"))
            return None
        return McpEndpoint(self._core)

    @asynccontextmanager
    async def serve(self, core: SurfaceCore) -> AsyncIterator[None]:
        """Answer for as long as the context is open; at its end, unfinished answers are interrupted after a time."""
        self._core.open(core)
        try:
            async with nullcontext() if self._mcp is None else self._mcp.open(core):
                yield
        finally:
            self._core.close()
            await self._repeated.close(DRAIN_SECONDS)

    @asynccontextmanager
    async def serve_page(self, core: SurfaceCore, team: TeamApp, conversations: Conversations) -> AsyncIterator[None]:
        """Serve the page, if there is one, for as long as the context is open."""
        if self._page is None:
            yield
            return
        async with serve_team_page(self._page, core, team, conversations):
            yield


class PushedRefreshes:
    """Requests the refresh of pushed repositories, in tasks of a group. The watcher finds the pushes that fail."""

    def __init__(self, jobs: RefreshJobs | None, group: asyncio.TaskGroup) -> None:
        self._jobs = jobs
        self._group = group

    def notify(self, repository: str, ref: str, _commit: str | None) -> None:
        """Note that a ref of a repository was pushed."""
        log.info("%s: %s was pushed", repository, ref)
        self._group.create_task(self._ask(repository))

    async def _ask(self, repository: str) -> None:
        try:
            if self._jobs is not None:
                await self._jobs.ask_for_refresh(repository)
        except InboxError as error:
            log.warning("%s waits to be looked at: %s", repository, error)


GRACE_SECONDS = 30.0  # time of an answer beyond its model and its searches


PUSHES = "/webhooks/push"


async def serve_team(settings: Settings, repository: Path, say: Announce, *, role: Role = "all") -> None:
    """Serve until cancelled; then finish the answers in progress, or hand them over to another process."""
    duties, clock, owner = assign_duties(role, settings), SystemClock(), make_process_name()
    opening = list_platforms(settings) if duties.is_on_platforms else {}
    doors = [path for factory in opening.values() for path in factory.doors] if duties.takes_events else []
    doors += [PUSHES] if settings.webhook_secret is not None and role in {"all", "front"} else []
    surfaces = make_surfaces(settings, duties)
    async with (
        open_store(settings.home, settings.database_url) as database,
        open_cluster(settings, database, owner, clock) as cluster,
        TeamApp.open(
            settings,
            repository,
            LoggingDisplay(),
            refreshes=cluster.refreshes,
            segments=cluster.segments,
            indexes=duties.indexes,
            answers=duties.answers,
        ) as team,
        open_monitoring(
            settings, team, clock,
            platforms=list(opening), doors=doors, duties=duties, surfaces=surfaces.make(),
        ) as operations,
    ):  # fmt: skip
        service = _Service(
            settings=settings, role=role, duties=duties, team=team, cluster=cluster, database=database,
            operations=operations, surfaces=surfaces, clock=clock,
        )  # fmt: skip
        if cluster.answers is not None:
            operations.probes.read_cluster = service.read_cluster_state
        async with (
            service.watch_repositories(),
            service.open_conversations(owner) as context,
            run_daily_sweep(make_retention(settings, team, cluster.segments if duties.indexes else None).sweep, clock),
        ):
            greeting = service.make_greeting()
            if not opening:
                say(f"{describe_without_platform(settings) if role == 'all' else describe_role(role)}{greeting}")
            elif cluster.answers is not None:
                say(f"{describe_role(role)}{greeting}")
                greeting = ""
            supervisor = PlatformSupervisor(
                opening, context, operations.health, clock, say=say, greeting=greeting, leases=cluster.leases,
                takes_events=duties.takes_events,
            )  # fmt: skip
            # What stays until the end is left out of collections: one that goes over it holds every answer up for
            # 0.1 s.
            gc.freeze()
            gc.enable()
            with watch_loop(limit=settings.stall_seconds, measure=operations.metrics.measure_stall):
                async with run_in_background(supervisor.run()), context.conversations.turns.work_on_jobs():
                    try:
                        await asyncio.Event().wait()
                    finally:  # nothing more is accepted while the answers in progress are finished
                        operations.health.set_ended()
                        operations.doors.close()


def describe_role(role: Role) -> str:
    """Describe the role of one of several processes."""
    return {
        "all": "This process receives questions, answers them and indexes, as others may.",
        "front": "This process receives questions, and others answer them.",
        "answer": "This process answers questions that others receive.",
        "index": "This process only indexes.",
    }[role]


def describe_without_platform(settings: Settings) -> str:
    """Describe the running and the missing parts without a platform."""
    pushes = (
        "push webhooks are on"
        if settings.webhook_secret is not None
        else "push webhooks are off until CITEBOT_WEBHOOK_SECRET is set"
    )
    answered = "No chat platform is configured: /api and /v1 answer anyone with a token."
    return f"{answered if settings.mcp.tokens else NO_PLATFORM} New commits are indexed as they arrive; {pushes}."


def make_retention(settings: Settings, team: TeamApp, published: SharedSegments | None) -> Retention:
    """Make the daily sweep of the data folder, and of the store that this process publishes in."""
    return Retention(
        home=settings.home,
        url=settings.database_url,
        days=settings.retention_days,
        question_days=settings.keep_question_days,
        living_days=settings.living.days,
        clock=SystemClock(),
        sweep_indexes=team.stock.sweep,
        sweep_segments=published.sweep if published is not None else None,
    )


@dataclass(frozen=True, kw_only=True)
class _Service:
    """The parts of a serving process, and how to open those that depend on its duties."""

    settings: Settings
    role: Role
    duties: Duties
    team: TeamApp
    cluster: Cluster
    database: Database
    operations: ServiceMonitoring
    surfaces: TeamSurfaces
    clock: Clock
    changed: asyncio.Event = field(default_factory=asyncio.Event)  # answers show another state than theirs

    def make_greeting(self) -> str:
        """Say which addresses the process listens on, and what it serves."""
        operations = self.operations
        listening = f" Listening at {operations.address}." if operations.address else ""
        metrics = f" Metrics at {operations.metrics_address}." if operations.metrics_address else ""
        names = ", ".join(self.team.stock.library.list_names())
        return f"{listening}{metrics} Repositories: {names}. Ctrl-C ends it."

    async def read_cluster_state(self) -> ClusterState:
        """Read the state shared by processes, and this process's part in it; raises `InboxError`."""
        return await read_cluster_state(
            self.database,
            role=self.role,
            held=frozenset(self.cluster.leases.held if self.cluster.leases is not None else ()),
            pools={name: measure() for name, measure in self.cluster.pools.items()},
            segments=self.cluster.segments if self.duties.answers else None,
        )

    @asynccontextmanager
    async def watch_repositories(self) -> AsyncIterator[None]:
        """Watch the repositories, which one process does for all; with a secret, hosts may report pushes too."""
        stock, secret = self.team.stock, self.settings.webhook_secret
        async with open_task_group() as group:
            pushes = PushedRefreshes(self.cluster.refreshes, group)
            notify = stock.watcher.notify if self.cluster.refreshes is None else pushes.notify
            if secret is not None:
                handler = make_push_handler(stock.remotes, [secret], notify, self.clock)
                self.operations.doors.add_post(PUSHES, handler)
            async with run_in_background(self._watch()):
                yield

    async def _watch(self) -> None:
        while self.duties.indexes:
            # Without shared indexes, a process watches for itself.
            leases = self.cluster.leases if self.cluster.refreshes is not None else None
            stock = self.team.stock
            follower = make_follower(self.team, self.database, self.clock, self.changed)
            async with (
                leases.hold("watcher") if leases is not None else nullcontext(Lease()) as lease,
                run_in_background(stock.watcher.run()),
                run_in_background((stock.built or stock.library).keep_branches(self.clock.sleep)),
                run_in_background(follower.run()),
            ):
                await lease.lost.wait()

    @asynccontextmanager
    async def open_conversations(self, owner: str) -> AsyncIterator[PlatformContext]:
        """Open the conversations, and show their state to the probes."""
        metrics = self.operations.metrics
        if self.duties.indexes:
            self.team.stock.library.describe_watch = self.team.stock.watcher.sentence
        policy = make_chat_policy(self.settings, self.team)
        async with AsyncExitStack() as stack:
            opening = open_team_conversations(
                self.team, policy if self.duties.answers else replace(policy, max_concurrent=0), self.database,
                owner=owner, clock=self.clock, observer=metrics, jobs=self.cluster.answers,
            )  # fmt: skip
            core = await stack.enter_async_context(opening)
            await stack.enter_async_context(core.open())
            if self.duties.answers:
                edits = make_living_edits(core, self.settings.living, self.database, self.clock, self.changed)
                await stack.enter_async_context(run_in_background(edits.run()))
                replies = SurfaceReplies(core.deps.shareable)
                await stack.enter_async_context(core.connect_platform(SURFACE, replies))
            shared = make_team_core(self.settings, self.team, core)
            await stack.enter_async_context(self.surfaces.serve(shared))
            await stack.enter_async_context(self.surfaces.serve_page(shared, self.team, core))
            self.operations.health.set_store(core.check_store)
            self.operations.probes.load = lambda: core.load
            try:
                yield PlatformContext(
                    conversations=core,
                    repositories=self.team.stock.library,
                    access=self.settings.access,
                    server=self.operations.doors,
                    count_loss=metrics.count_loss,
                )
            finally:
                self.operations.health.set_store(None)


@asynccontextmanager
async def open_team_conversations(
    team: TeamApp,
    policy: ChatPolicy,
    database: Database,
    *,
    clock: Clock,
    owner: str = "",
    observer: ConversationObserver | None = None,
    jobs: AnswerJobs | None = None,
) -> AsyncIterator[Conversations]:
    """Open the conversations of a team, with goal runs if people may start them and a sandbox works."""
    async with AsyncExitStack() as stack:
        goals = None
        if policy.max_concurrent and policy.access.run:
            try:
                goals = await stack.enter_async_context(team.open_goals())
            except AgentError as error:
                log.warning("goal runs are off: %s", error)
                policy = replace(policy, goals_problem=NO_SANDBOX)
        opening = open_conversations(
            team.agent, team.stock.library, store=nullcontext(database), policy=policy, goals=goals,
            refs=team.stock.library.refs, clock=clock, owner=owner, observer=observer, jobs=jobs,
        )  # fmt: skip
        yield await stack.enter_async_context(opening)


def make_surfaces(settings: Settings, duties: Duties) -> TeamSurfaces:
    """The non-chat services, for people with a token, in a process that answers."""
    is_served = duties.answers and bool(settings.mcp.tokens)
    if settings.web.enabled and duties.answers and not settings.mcp.tokens:
        log.warning("There is no page: nobody could sign in. List tokens in [[mcp.tokens]]; `citebot token` makes one.")
    page = make_web_options(settings.web.url, settings.mcp.hosts, Tokens(settings.mcp.tokens))
    return TeamSurfaces(has_api=is_served, page=page if is_served and settings.web.enabled else None)


def make_chat_policy(settings: Settings, team: TeamApp, *, limits: QuestionLimits | None = None) -> ChatPolicy:
    """Make the operator's policy for chats."""
    mask = make_redactor(settings)
    usual = QuestionLimits(per_minute=settings.questions_per_minute, per_day=settings.questions_per_day)
    return ChatPolicy(
        hosts=team.stock.hosts,
        access=settings.access,
        signs=team.stock.signs,
        limits=limits or usual,
        max_concurrent=settings.max_concurrent_answers,
        deadline=settings.max_seconds + GRACE_SECONDS,
        prices=settings.prices,
        living=settings.living,
        writer=(settings.model or "default") if settings.has_model else "",
        takes_images=settings.has_model and settings.model_images == "on",
        manners={channel: table.manners for channel, table in settings.channels.items()},
        mask=mask,
        versions=name_versions(settings),
        mask_question=(lambda text: write_example(mask(text))) if settings.keep_question_days else None,
    )


def make_follower(team: TeamApp, database: Database, clock: Clock, changed: asyncio.Event) -> AnswerFollower:
    """Make the follower of answers about the repositories indexed here; sets `changed` when one differs."""
    indexes = team.stock.built or team.stock.library
    pages = {name: profile.page for name, profile in team.stock.signs.items()}
    store = LivingAnswerStore(database, clock)
    follower = AnswerFollower(store, indexes, open_code_push, pages=pages, on_change=changed.set)
    indexes.tell_when_indexed(follower.notify)
    return follower


def make_living_edits(
    core: Conversations, table: LivingTable, database: Database, clock: Clock, changed: asyncio.Event
) -> LivingEdits:
    """Make the edits of outdated answers on the platforms of this process."""
    deps = core.deps
    return LivingEdits(
        store=LivingAnswerStore(database, clock),
        inbox=deps.inbox,
        access=deps.access,
        settings=table,
        clock=clock,
        transports=core.turns.transports,
        hosts=deps.hosts,
        told=changed,
    )
