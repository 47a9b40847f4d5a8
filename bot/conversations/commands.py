"""The commands that people may write on any platform: their effects, and how to tell them from questions."""

from __future__ import annotations

import difflib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from agent import is_stop_request
from bot.access import AccessPolicy
from bot.clock import Clock
from bot.drawings.drawing_requests import USAGE, DrawingRequest, choose_whole, draw, parse_drawing
from bot.errors import NotAllowed
from bot.messages import IncomingMessage, MessageContent
from bot.ports import Answerer, Repositories
from bot.questions.descriptions import (
    describe_freshness,
    describe_progress,
    describe_refresh,
    describe_status,
    explain_answer,
)
from bot.repositories.chooser import RepositoryChooser
from bot.storage.answer_records import ShareableAnswerStore
from bot.storage.living_answers import LivingAnswerStore
from bot.storage.threads import ThreadStore
from bot.storage.turn_records import TurnRecordStore

_MARKS = "!.?…"  # with which a command may end: `help!`
_MIN_SLIP = 5  # letters of a command that a word may be meant for in plain talk
WAITS_FOR_YOU = "Nothing is running: I am waiting for an approval. `abort` cancels it."
NOTHING_YET = "I have not answered anything in this conversation yet."

CommandName = Literal["help", "status", "repos", "use", "reindex", "mute", "unmute", "stop", "why", "draw", "forget"]
Takes = Literal["nothing", "repository", "repository?", "repository? full?", "drawing"]


@dataclass(frozen=True, kw_only=True, slots=True)
class ChatCommand:
    """One command: its arguments, and its effect as a phrase."""

    name: CommandName
    takes: Takes = "nothing"
    does: str

    @property
    def usage(self) -> str:
        """The command as people type it."""
        shown = {
            "nothing": "",
            "repository": " <repo>",
            "repository?": " [repo]",
            "repository? full?": " [repo] [full]",
            "drawing": " who calls <name>",
        }
        return self.name + shown[self.takes]


COMMANDS = (
    ChatCommand(name="help", does="shows this list"),
    ChatCommand(name="status", takes="repository?", does="shows what is indexed"),
    ChatCommand(name="repos", does="lists the repositories that you may ask about here"),
    ChatCommand(name="use", takes="repository", does="makes a repository the default here"),
    ChatCommand(name="reindex", takes="repository? full?", does="indexes the newest commit; full starts from scratch"),
    ChatCommand(name="mute", does="silences me in this thread"),
    ChatCommand(name="unmute", does="lets me answer here again"),
    ChatCommand(name="stop", does="stops the answer in this thread, or your answers in this channel"),
    ChatCommand(name="why", does="explains how the last answer was found"),
    ChatCommand(
        name="draw",
        takes="drawing",
        does="draws that; also `draw what <name> calls`, `draw the architecture of <folder>`",
    ),
    ChatCommand(name="forget", does="deletes what I remember of this conversation"),
)

_SEVERAL = """With several repositories, I take

- the one that you name: `shop: where ...`, `in shop, where ...`, `in the shop repo`, its name in quotes, a link to it;
  a name that is not an ordinary word, such as `shop-api`, is enough anywhere,
- else the one that the conversation is about: that of its first question, or of `use`. Name another one, and that
  question alone is about it,
- else this channel's, else the one that has the files and names of your question. If none of these decides, I ask.

`in all repositories, ...` and `across shop and website, ...` are answered from all of them at once."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ParsedCommand:
    """A command as written; `repository` is empty if none was named."""

    command: CommandName
    repository: str = ""
    full: bool = False
    drawing: DrawingRequest | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class UnknownCommand:
    """A mistaken command; the sentence suggests the right one."""

    sentence: str


@dataclass(frozen=True, kw_only=True, slots=True)
class CommandRequest:
    """A command with its message; `show` shows the status of slow work."""

    command: ParsedCommand
    message: IncomingMessage
    conversation: str
    show: Callable[[str], None]


# Work for the agent or the index; all other commands look something up or set it.
_WORK: frozenset[CommandName] = frozenset({"reindex", "draw", "forget"})


class CommandHandlers:
    """The commands; each method returns the text to show, or raises `NotAllowed`."""

    def __init__(
        self,
        *,
        repositories: Repositories,
        agent: Answerer,
        threads: ThreadStore,
        records: TurnRecordStore,
        chooser: RepositoryChooser,
        shareable: ShareableAnswerStore,
        living: LivingAnswerStore,
        access: AccessPolicy,
        clock: Clock,
        stop: Callable[[str, IncomingMessage | None], Awaitable[bool]],
    ) -> None:
        self._repositories = repositories
        self._agent = agent
        self._threads = threads
        self._records = records
        self._chooser = chooser
        self._shareable = shareable
        self._living = living
        self._access = access
        self._clock = clock
        self._stop = stop
        self._table: Mapping[CommandName, Callable[[CommandRequest], Awaitable[str | MessageContent]]] = {
            "help": self._help,
            "status": self._status,
            "repos": self._handle_repos,
            "use": self._use,
            "reindex": self._reindex,
            "mute": self._mute,
            "unmute": self._unmute,
            "stop": self._handle_stop,
            "why": self._handle_why,
            "draw": self._draw,
            "forget": self._forget,
        }

    def parse(self, message: IncomingMessage) -> ParsedCommand | UnknownCommand | None:
        """Parse the command in a message; None for a question, and for messages that are too long or mention nobody.

        A mention without words in a thread is about the thread, or about attached files.
        """
        if message.oversize or message.kind == "overheard" or message.order is not None:
            return None
        is_about_thread = message.kind == "mention" and message.in_thread
        if not message.text.strip() and (is_about_thread or message.files or message.quoted):
            return None
        names = self._access.list_visible(message, self._repositories.list_names())
        return parse_command(message.text, slash=message.kind == "command", repositories=names)

    def is_quick(self, message: IncomingMessage) -> bool:
        """Whether a message is a command that any process can carry out immediately."""
        command = self.parse(message)
        return isinstance(command, UnknownCommand) or (command is not None and command.command not in _WORK)

    async def run(
        self, command: ParsedCommand, message: IncomingMessage, conversation: str, show: Callable[[str], None]
    ) -> str | MessageContent:
        """Carry out a command and return the reply to it, which may be empty.

        `show` is called with the status of slow work.
        """
        self._access.check_place(message)
        return await self._table[command.command](
            CommandRequest(command=command, message=message, conversation=conversation, show=show)
        )

    async def check(self, command: ParsedCommand, message: IncomingMessage, conversation: str) -> None:
        """Raise `NotAllowed` if a slow command would be refused, before it starts."""
        self._access.check_place(message)
        if command.command == "reindex":
            asked = CommandRequest(command=command, message=message, conversation=conversation, show=lambda _: None)
            await self._find_indexable(asked)

    async def _find_repository(self, request: CommandRequest) -> str:
        """Return the named repository, or the default here; empty if it may be any."""
        return await self._chooser.find_meant(request.message, request.conversation, request.command.repository)

    async def _help(self, request: CommandRequest) -> str:
        return format_help(several=len(self._access.list_visible(request.message, self._repositories.list_names())) > 1)

    async def _status(self, request: CommandRequest) -> str:
        name = await self._find_repository(request)
        if not name:
            return await self._handle_repos(request)
        return describe_status(await self._repositories.status(name), self._clock.now())

    async def _handle_repos(self, request: CommandRequest) -> str:
        visible = self._access.list_visible(request.message, self._repositories.list_names())
        lines = [describe_freshness(await self._repositories.status(name), self._clock.now()) for name in visible]
        return "\n".join(f"- {line}" for line in lines) or "There are none that you may ask about here."

    async def _use(self, request: CommandRequest) -> str:
        name = await self._find_repository(request)
        await self._chooser.use(request.message, request.conversation, name)
        return f"Questions here are about `{name}` from now on."

    async def _find_indexable(self, request: CommandRequest) -> str:
        """Return the repository to index, if the author may index it."""
        name = await self._find_repository(request)
        if not name:
            raise NotAllowed("There are several repositories. Write which one: `reindex NAME`. `repos` lists them.")
        self._access.check_reindex(request.message, name)
        return name

    async def _reindex(self, request: CommandRequest) -> str:
        name = await self._find_indexable(request)
        report = await self._repositories.refresh(
            name, full=request.command.full, progress=lambda progress: request.show(describe_progress(name, progress))
        )
        return describe_refresh(report, name)

    async def _mute(self, request: CommandRequest) -> str:
        await self._threads.mute(request.message, muted=True)
        return "From now on I answer only mentions in this thread. `unmute` lets me answer again."

    async def _unmute(self, request: CommandRequest) -> str:
        await self._threads.mute(request.message, muted=False)
        return "I will answer in this thread again."

    async def _handle_stop(self, request: CommandRequest) -> str:
        message = request.message
        # In a thread it means that thread; elsewhere, whatever the person has asked in the channel.
        stopped = await self._stop(request.conversation, None if message.in_thread else message)
        if stopped:  # which the answer that is stopped says itself
            return "Stopped." if message.kind == "command" else ""
        last = await self._records.last(request.conversation)
        return WAITS_FOR_YOU if last is not None and last.route == "paused" else "There is nothing to stop here."

    async def _handle_why(self, request: CommandRequest) -> str:
        record = await self._records.last(request.conversation)
        if record is None:
            return NOTHING_YET
        for repository in record.names:
            self._access.check_repository(request.message, repository)
        return explain_answer(record)

    async def _draw(self, request: CommandRequest) -> str | MessageContent:
        name = await self._find_repository(request)
        if not name:
            raise NotAllowed("There are several repositories. Write which one: `draw who calls NAME in REPO`.")
        if request.command.drawing is None:
            raise AssertionError("a command to draw names a subject")
        return await draw(await self._repositories.pin_existing(name), request.command.drawing)

    async def _forget(self, request: CommandRequest) -> str:
        await self._stop(request.conversation, None)
        for conversation in (
            request.conversation,
            *await self._chooser.list_former_conversations(request.conversation),
        ):
            await self._agent.forget(conversation)
        await self._chooser.forget(request.conversation)
        await self._records.forget(request.conversation)
        await self._shareable.forget(request.conversation)
        await self._living.forget(request.conversation)
        return "I have forgotten this conversation."


def parse_command(text: str, *, slash: bool, repositories: Sequence[str]) -> ParsedCommand | UnknownCommand | None:
    """Parse a command; None for a question.

    More counts as a command after a slash than in plain talk. `why does it fail?` and `status of
    orders` are questions, because commands have no other words. Many phrases stop an answer,
    because people are in a hurry.
    """
    words = text.strip().removeprefix("/").split()
    if not words:
        return ParsedCommand(command="help")
    if is_stop_request(text):
        return ParsedCommand(command="stop")
    if len(words) == 1 and (slash or words[0].lower().rstrip("?") != "why"):  # `why?` asks for a reason
        words = words[0].rstrip(_MARKS).split() or words
    name, rest = words[0].lower(), words[1:]
    command = next((known for known in COMMANDS if known.name == name), None)
    if command is None:
        return _suggest_command(words, slash=slash, repositories=repositories)
    parsed = _parse_arguments(command, rest, repositories)
    # `use shpo`, `reindex shpo` and `draw who calls send in shpo` can hardly be questions.
    is_slip = (command.name in {"use", "reindex"} and len(rest) <= 1) or (
        command.name == "draw" and (not rest or parse_drawing(" ".join(rest)) is not None)
    )
    return parsed if isinstance(parsed, ParsedCommand) or slash or is_slip else None


def format_help(prefix: str = "", *, several: bool = False) -> str:
    """List the commands, and with `several` how to name one of many repositories.

    `prefix` precedes commands on a platform.
    """
    lines = [f"- `{prefix}{command.usage}` {command.does}" for command in COMMANDS]
    text = "\n".join(["Ask me about your code in plain words, or write one of these:", "", *lines])
    return f"{text}\n\n{_SEVERAL}" if several else text


def _parse_arguments(
    command: ChatCommand, rest: Sequence[str], repositories: Sequence[str]
) -> ParsedCommand | UnknownCommand:
    if command.takes == "drawing":
        return _parse_drawing(rest, repositories)
    words = list(rest)
    full = command.takes == "repository? full?" and bool(words) and words[-1].lower() in {"full", "--full"}
    if full:
        words.pop()
    name = words.pop(0) if words and command.takes != "nothing" else ""
    if words or (command.takes == "repository" and not name):
        return UnknownCommand(sentence=f"Write `{command.usage}`.")
    if name and name not in repositories:
        return _explain_unknown(name, repositories)
    return ParsedCommand(command=command.name, repository=name, full=full)


def _parse_drawing(rest: Sequence[str], repositories: Sequence[str]) -> ParsedCommand | UnknownCommand:
    wanted = parse_drawing(" ".join(rest))
    if wanted is None:
        return UnknownCommand(sentence=USAGE)
    wanted = choose_whole(wanted, repositories)
    if wanted.repository and wanted.repository not in repositories:
        return _explain_unknown(wanted.repository, repositories)
    return ParsedCommand(command="draw", repository=wanted.repository, drawing=wanted)


def _explain_unknown(name: str, repositories: Sequence[str]) -> UnknownCommand:
    near = difflib.get_close_matches(name, repositories, n=1)
    hint = f"Did you mean `{near[0]}`?" if near else "`repos` lists them."
    return UnknownCommand(sentence=f"There is no repository `{name[:80].replace('`', '')}`. {hint}")


def _suggest_command(words: Sequence[str], *, slash: bool, repositories: Sequence[str]) -> UnknownCommand | None:
    """Suggest the command for a misspelt single word, or the first of two after a slash.

    In plain talk a word may be the subject of a question: `mutex`, `user`, `helper`, a repository.
    """
    word = words[0].lower()
    names = [command.name for command in COMMANDS if slash or len(command.name) >= _MIN_SLIP]
    near = difflib.get_close_matches(word, names, n=1, cutoff=0.75 if slash else 0.8)
    if not near or len(words) > (3 if slash else 1):
        return None
    if not slash and (word.startswith(near[0]) or word in map(str.lower, repositories)):
        return None
    return UnknownCommand(sentence=f"There is no command `{words[0][:40].replace('`', '')}`. Did you mean `{near[0]}`?")
