"""Decides which repositories a question is about: a name in it, its conversation, its channel, the code it names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from agent.questions.intent import asks_for_history, asks_to_repeat, small_talk
from bot.access import AccessPolicy, is_listed
from bot.clock import Clock
from bot.errors import Refused
from bot.inbox import Entry
from bot.markdown.showing import one_line
from bot.messages import ButtonAction, IncomingMessage
from bot.ports import Repositories
from bot.routing.clues import Clue, clues_in, hint
from bot.routing.ledger import AskedBack, Ledger
from bot.routing.lookups import Findings, Lookups
from bot.routing.names import Naming, hinted, named, only_named
from bot.routing.routes import MOST_TOGETHER, Route, Unclear, aside
from bot.routing.signs import Sign
from bot.routing.weighing import by_likelihood, winner
from bot.threads import GOES_ON_SECONDS, Threads

_REPLIES: tuple[ButtonAction, ...] = ("approve", "abort")
NONE_VISIBLE = "There is no repository that you may ask about here."


@dataclass(frozen=True, kw_only=True)
class _Asking:
    """A message, the repositories that its author may ask about there, and what it names of them."""

    message: IncomingMessage
    conversation: str
    visible: tuple[str, ...]
    naming: Naming


class Routing:
    """Routes questions; only what the author may ask about in the place of a message is ever considered.

    A question goes to the repository that it names; else to the one that its conversation is about, which is the one of
    the first question there or of `use`; else to the one in use in the channel, or the channel's by configuration; else
    to the only one that clearly has what the question names; else its author is asked.
    """

    def __init__(
        self,
        *,
        repositories: Repositories,
        access: AccessPolicy,
        threads: Threads,
        ledger: Ledger,
        signs: Mapping[str, Sign],
        clock: Clock,
    ) -> None:
        self._repositories = repositories
        self._access = access
        self._threads = threads
        self._ledger = ledger
        self._signs = signs
        self._clock = clock
        self._lookups = Lookups(repositories)

    async def route(self, entry: Entry, context: str) -> Route | Unclear:
        """Decide for a turn, the same again after a restart; `context` is the question with what was said around it.

        What is unclear is kept until its author has chosen. Raises `Refused` where nothing may be answered.
        """
        asking = self._asking(entry.message, entry.conversation)
        if self._has_one:
            return await self._decision(asking, context)
        before = await self._ledger.decided(entry.run_id)
        if before is not None and set(before.repositories) <= set(asking.visible):
            await self._keep(asking, before)  # which the kill may have come before
            return replace(before, question=_question(asking, before))
        found = await self._decision(asking, context)
        if isinstance(found, Unclear):
            asked = AskedBack(run_id=entry.run_id, question=entry.message.text, names=found.likeliest)
            await self._ledger.ask_back(entry.conversation, entry.message.author, asked)
            return found
        await self._ledger.decide(entry.run_id, entry.conversation, found)
        await self._keep(asking, found)
        return found

    async def meant(self, message: IncomingMessage, conversation: str, named: str = "") -> str:
        """Return the repository that a command is about, empty where it may be any; raises `Refused`."""
        if named:
            self._access.check_repository(message, named)
            return named
        asking = self._asking(replace(message, text=""), conversation)
        route = await self._settled(asking)
        return route.repositories[0] if route is not None else ""

    async def use(self, message: IncomingMessage, conversation: str, repository: str) -> None:
        """Make a repository the one that is meant here from now on."""
        await self._threads.use(message, repository)
        await self._ledger.set_topic(conversation, repository)

    async def chosen(self, entry: Entry, number: str) -> IncomingMessage | None:
        """Return the question that was asked back in reply to a message, with the choice; None where there is none."""
        asked = await self._ledger.asked_back(entry.run_id)
        if asked is None or not number.isdecimal() or int(number) >= len(asked.names):
            return None
        return replace(entry.message, text=asked.question, about=(asked.names[int(number)],))

    async def completed(self, message: IncomingMessage, conversation: str) -> IncomingMessage:
        """Return the question that was asked back, if the message is nothing but the names of repositories for it."""
        if self._has_one:
            return message
        asked = await self._ledger.last_asked_back(conversation, message.author)
        topic = await self._ledger.topic(conversation)
        if asked is None or (topic is not None and topic.at >= asked.at):
            return message
        about = only_named(message.text, self._signs_of(self._visible(message)))[:MOST_TOGETHER]
        if not about:
            return message
        return replace(message, text=asked.question, about=about)

    async def close(self, run_id: str) -> None:
        """Forget what was asked back in a turn, once it is answered or withdrawn."""
        await self._ledger.close(run_id)

    async def asides(self, conversation: str) -> Sequence[str]:
        """Name the conversations in which questions about several repositories were answered."""
        return [aside(conversation, name) for name in await self._ledger.together(conversation)]

    def check(self, message: IncomingMessage) -> None:
        """Raise `Refused` where there is nothing that the author may ask about."""
        self._access.check_place(message)
        if not self._visible(message):
            raise Refused(NONE_VISIBLE)

    async def forget(self, conversation: str) -> None:
        """Forget what a conversation is about, and what was asked back in it."""
        await self._ledger.forget(conversation)

    @property
    def _has_one(self) -> bool:
        """Whether there is nothing to choose, so that nothing has to be kept of it."""
        return len(self._repositories.names()) == 1

    def _asking(self, message: IncomingMessage, conversation: str) -> _Asking:
        self.check(message)
        visible = self._visible(message)
        naming = named(message.text, self._signs_of(visible))
        return _Asking(message=message, conversation=conversation, visible=visible, naming=naming)

    def _visible(self, message: IncomingMessage) -> tuple[str, ...]:
        return self._access.visible(message, self._repositories.names())

    def _signs_of(self, names: Sequence[str]) -> Mapping[str, Sign]:
        return {name: self._signs.get(name, Sign()) for name in names}

    async def _decision(self, asking: _Asking, context: str) -> Route | Unclear:
        return await self._expressly(asking, context) or await self._settled(asking) or await self._inferred(
            asking, context
        )  # fmt: skip

    async def _expressly(self, asking: _Asking, context: str) -> Route | None:
        """What the author chose, or names in the question."""
        question, about = asking.message.text, asking.message.about
        if about:
            self._check(asking, about)
            is_one = len(about) == 1
            return Route(repositories=about, why="its author chose it", question=question, decides=is_one)
        names = asking.naming.repositories
        if asking.naming.everywhere and len(names) > MOST_TOGETHER:
            names = by_likelihood((await self._findings(asking, context)).found, await self._order(asking))
        if not names:
            return None
        if len(names) > 1:
            return _together(names, asking)
        remark = await self._remark(asking, names[0])
        return Route(repositories=names, why="the question names it", question=asking.naming.question, remark=remark)

    async def _settled(self, asking: _Asking) -> Route | None:
        """What the conversation is about, the only one that there is, or the channel's."""
        question, topic = asking.message.text, await self._topic(asking)
        if topic:
            if topic not in asking.visible:
                raise Refused(
                    f"This conversation is about `{_shown(topic)}`, which is gone, or hidden from you here. "
                    "Name another, or write `use NAME`; `repos` lists them."
                )
            return Route(repositories=(topic,), why="the conversation is about it", question=question)
        if len(asking.visible) == 1:
            return _only(asking)
        used = await self._threads.repository(asking.message)
        if used in asking.visible:
            return Route(repositories=(used,), why="it is in use in this channel", question=question)
        own = self._of_channel(asking)
        return Route(repositories=own, why="it is this channel's", question=question) if len(own) == 1 else None

    async def _inferred(self, asking: _Asking, context: str) -> Route | Unclear:
        findings = await self._findings(asking, context)
        best = winner(findings.found) if findings.complete else None
        if best is not None:
            there = ", ".join(f"`{_shown(clue.text)}`" for clue in sorted(findings.found[best], key=_heaviest)[:3])
            return Route(repositories=(best,), why=f"what you name is there: {there}", question=asking.message.text)
        likeliest = by_likelihood(findings.found, await self._order(asking))
        if _is_talk(asking.message.text):
            why, question = "nothing of the code was asked", asking.message.text
            return Route(repositories=likeliest[:1], why=why, question=question, decides=False)
        return Unclear(likeliest=likeliest[:MOST_TOGETHER], of=len(likeliest))

    async def _findings(self, asking: _Asking, context: str) -> Findings:
        findings = Findings(found=dict.fromkeys(asking.visible, ()), complete=True)
        clues = clues_in(context)
        if clues:
            findings = await self._lookups.find(clues, asking.visible)
        hints = hinted(asking.message.text, self._signs_of(asking.visible))
        found = {name: {*each, hint(name)} if name in hints else each for name, each in findings.found.items()}
        return Findings(found=found, complete=findings.complete)

    async def _order(self, asking: _Asking) -> Sequence[str]:
        """What is usual in the channel comes first, the rest as it is configured."""
        channel = replace(asking.message.place, thread="").key()
        usual = (*self._of_channel(asking), *await self._ledger.recent(channel))
        return tuple(dict.fromkeys((*(name for name in usual if name in asking.visible), *asking.visible)))

    def _of_channel(self, asking: _Asking) -> tuple[str, ...]:
        signs = self._signs_of(asking.visible)
        return tuple(name for name in asking.visible if is_listed(signs[name].channels, asking.message))

    async def _topic(self, asking: _Asking) -> str:
        topic = await self._ledger.topic(asking.conversation)
        alone = asking.message.private and asking.message.kind != "direct"
        # What is asked by a slash command is one conversation for ever; what it is about is not.
        if topic is None or (alone and self._clock.now() - topic.at > GOES_ON_SECONDS):
            return ""
        return topic.repository

    async def _remark(self, asking: _Asking, name: str) -> str:
        topic = await self._topic(asking)
        if topic == name or topic not in asking.visible:
            return ""
        return (
            f"This is about `{_shown(name)}`, as you name it; the conversation stays with `{_shown(topic)}` "
            f"(`use {_shown(name)}` changes that)."
        )

    async def _keep(self, asking: _Asking, route: Route) -> None:
        """Note what the conversation is about from now on; a question about several says nothing of that."""
        topic = await self._topic(asking)
        if route.decides and topic in {"", route.repositories[0]}:
            await self._ledger.set_topic(asking.conversation, route.repositories[0])

    def _check(self, asking: _Asking, names: Sequence[str]) -> None:
        for name in names:
            self._access.check_repository(asking.message, name)


def _only(asking: _Asking) -> Route:
    return Route(repositories=asking.visible, why="you may ask about no other here", question=asking.naming.question)


def _together(names: Sequence[str], asking: _Asking) -> Route:
    """The route of a question about several repositories, of which the first few are taken."""
    taken = tuple(names[:MOST_TOGETHER])
    left = len(names) - len(taken)
    remark = f"I answer about {MOST_TOGETHER} repositories at a time, and left {left} out: name those you mean."
    return Route(
        repositories=taken,
        why="the question is about all of them",
        question=asking.naming.question,
        decides=False,
        remark=remark if left else "",
    )


def _question(asking: _Asking, route: Route) -> str:
    is_named = not asking.message.about and set(route.repositories) <= set(asking.naming.repositories)
    return asking.naming.question if is_named else asking.message.text


def _is_talk(text: str) -> bool:
    """Whether a message asks for nothing of any repository, or answers a question of the agent's."""
    return text in _REPLIES or small_talk(text) is not None or asks_for_history(text) or asks_to_repeat(text)


def _heaviest(clue: Clue) -> int:
    return -clue.weight


def _shown(name: str) -> str:
    return one_line(name).replace("`", "'")[:80]
