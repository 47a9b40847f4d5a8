"""Chooses the repositories of a question: by name, conversation, channel, or code in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from agent import find_small_talk, is_history_request, is_repeat_request
from bot.access import AccessPolicy, is_listed
from bot.clock import Clock
from bot.errors import NotAllowed
from bot.markdown.formatting import to_one_line
from bot.messages import ButtonAction, IncomingMessage
from bot.ports import Repositories
from bot.repositories.choice_store import (
    MAX_TOGETHER,
    AmbiguousRepository,
    ChoiceStore,
    PendingQuestion,
    RepositoryChoice,
)
from bot.repositories.hints import HintLookup, HintMatches, find_hints, find_name_hint, pick_winner, sort_by_likelihood
from bot.repositories.names import NamedRepositories, RepositoryProfile, find_hinted, find_named, find_only_named
from bot.storage.inbox import InboxEntry
from bot.storage.threads import GOES_ON_SECONDS, ThreadStore

_REPLIES: tuple[ButtonAction, ...] = ("approve", "abort")
NONE_VISIBLE = "There are no repositories here that you may ask about."


@dataclass(frozen=True, kw_only=True)
class _Asking:
    """A message, the repositories that its author may ask about there, and those that it names."""

    message: IncomingMessage
    conversation: str
    visible: tuple[str, ...]
    naming: NamedRepositories


class RepositoryChooser:
    """Routes questions to repositories that the author may ask about in the place of the message.

    A question goes to the repositories that it names; else to those of its conversation, which are
    those of its first question, or the one of `use`; else to the one in use in the channel, or the
    channel's by configuration; else to the only one that clearly has the names in the question;
    else its author is asked.
    """

    def __init__(
        self,
        *,
        repositories: Repositories,
        access: AccessPolicy,
        threads: ThreadStore,
        ledger: ChoiceStore,
        signs: Mapping[str, RepositoryProfile],
        clock: Clock,
    ) -> None:
        self._repositories = repositories
        self._access = access
        self._threads = threads
        self._ledger = ledger
        self._signs = signs
        self._clock = clock
        self._lookups = HintLookup(repositories)

    async def choose(
        self, message: IncomingMessage, context: str, *, conversation: str, run_id: str
    ) -> RepositoryChoice | AmbiguousRepository:
        """Decide for a turn, identically after a restart; `context` is the question with the messages around it.

        Unclear choices are kept until the author decides. Raises `NotAllowed` if citebot may answer
        nothing.
        """
        asking = self._make_asking(message, conversation)
        if self._has_one:
            return await self._decide(asking, context)
        before = await self._ledger.find_route(run_id)
        if before is not None and set(before.repositories) <= set(asking.visible):
            await self._keep(asking, before)  # the process may have been killed before that
            is_named = not message.about and set(before.repositories) <= set(asking.naming.repositories)
            return replace(before, question=asking.naming.question if is_named else message.text)
        found = await self._decide(asking, context)
        if isinstance(found, AmbiguousRepository):
            asked = PendingQuestion(run_id=run_id, question=message.text, names=found.likeliest)
            await self._ledger.ask_back(conversation, message.author, asked)
            return found
        await self._ledger.decide(run_id, conversation, found)
        await self._keep(asking, found)
        return found

    async def find_meant(self, message: IncomingMessage, conversation: str, named: str = "") -> str:
        """Return the repository of a command, empty if it may be any; raises `NotAllowed`."""
        if named:
            self._access.check_repository(message, named)
            return named
        asking = self._make_asking(replace(message, text=""), conversation)
        route = await self._route_by_context(asking)
        return route.repositories[0] if route is not None and len(route.repositories) == 1 else ""

    async def use(self, message: IncomingMessage, conversation: str, repository: str) -> None:
        """Make a repository the default here."""
        await self._threads.use(message, repository)
        await self._ledger.set_topic(conversation, (repository,))

    async def accept_choice(self, entry: InboxEntry, number: str) -> IncomingMessage | None:
        """Return the pending question in reply to a message, with the choice; None if there is none."""
        asked = await self._ledger.find_pending_question(entry.run_id)
        if asked is None or not number.isdecimal() or int(number) >= len(asked.names):
            return None
        return replace(entry.message, text=asked.question, about=(asked.names[int(number)],))

    async def complete_question(self, message: IncomingMessage, conversation: str) -> IncomingMessage:
        """Return the pending question, if the message consists only of repositories' names."""
        if self._has_one:
            return message
        asked = await self._ledger.last_asked_back(conversation, message.author)
        topic = await self._ledger.topic(conversation)
        if asked is None or (topic is not None and topic.at >= asked.at):
            return message
        about = find_only_named(message.text, self._get_profiles(self._list_visible(message)))[:MAX_TOGETHER]
        if not about:
            return message
        return replace(message, text=asked.question, about=about)

    async def close(self, run_id: str) -> None:
        """Forget a turn's pending question, once it is answered or withdrawn."""
        await self._ledger.close(run_id)

    async def list_former_conversations(self, conversation: str) -> Sequence[str]:
        """Return the conversations that earlier releases kept for each of several repositories."""
        return [f"{conversation}:across:{name}" for name in await self._ledger.together(conversation)]

    def check(self, message: IncomingMessage) -> None:
        """Raise `NotAllowed` if there is nothing that the author may ask about."""
        self._access.check_place(message)
        if not self._list_visible(message):
            raise NotAllowed(NONE_VISIBLE)

    async def forget(self, conversation: str) -> None:
        """Forget the repositories of a conversation, and its open question."""
        await self._ledger.forget(conversation)

    @property
    def _has_one(self) -> bool:
        """Whether there is only one choice, so that none must be stored."""
        return len(self._repositories.list_names()) == 1

    def _make_asking(self, message: IncomingMessage, conversation: str) -> _Asking:
        self.check(message)
        visible = self._list_visible(message)
        naming = find_named(message.text, self._get_profiles(visible))
        return _Asking(message=message, conversation=conversation, visible=visible, naming=naming)

    def _list_visible(self, message: IncomingMessage) -> tuple[str, ...]:
        return self._access.list_visible(message, self._repositories.list_names())

    def _get_profiles(self, names: Sequence[str]) -> Mapping[str, RepositoryProfile]:
        return {name: self._signs.get(name, RepositoryProfile()) for name in names}

    async def _decide(self, asking: _Asking, context: str) -> RepositoryChoice | AmbiguousRepository:
        return (
            await self._choose_by_name(asking, context)
            or await self._route_by_context(asking)
            or await self._infer_route(asking, context)
        )

    async def _choose_by_name(self, asking: _Asking, context: str) -> RepositoryChoice | None:
        """Choose the repository that the author chose, or names in the question."""
        question, about = asking.message.text, asking.message.about
        if about:
            for name in about:
                self._access.check_repository(asking.message, name)
            return RepositoryChoice(repositories=about, why="its author chose it", question=question)
        names = asking.naming.repositories
        if asking.naming.everywhere and len(names) > 1:
            names = await self._rank_by_content(asking, context)
        if not names:
            return None
        remark = await self._make_remark(asking, names[:MAX_TOGETHER])
        if len(names) > 1:
            chosen = tuple(names[:MAX_TOGETHER])
            left = len(names) - len(chosen)
            limit = f"I answer about {MAX_TOGETHER} repositories at a time, and leave {left} out: name those you mean."
            return RepositoryChoice(
                repositories=chosen,
                why="the question is about all of them",
                question=asking.naming.question,
                remark="\n\n".join(filter(None, (remark, limit if left else ""))),
            )
        return RepositoryChoice(
            repositories=names, why="the question names it", question=asking.naming.question, remark=remark
        )

    async def _route_by_context(self, asking: _Asking) -> RepositoryChoice | None:
        """Choose the repository of the conversation, the only one, or the channel's."""
        question, topic = asking.message.text, await self._find_topic(asking)
        if topic:
            hidden = [name for name in topic if name not in asking.visible]
            if hidden:
                raise NotAllowed(
                    f"This conversation is about `{_format_name(hidden[0])}`, which is gone, or hidden from you here. "
                    "Name another, or write `use NAME`; `repos` lists them."
                )
            why = "the conversation is about it" if len(topic) == 1 else "the conversation is about all of them"
            return RepositoryChoice(repositories=topic, why=why, question=question)
        if len(asking.visible) == 1:
            return RepositoryChoice(
                repositories=asking.visible, why="you may ask about no other here", question=asking.naming.question
            )
        used = await self._threads.repository(asking.message)
        if used in asking.visible:
            return RepositoryChoice(repositories=(used,), why="it is in use in this channel", question=question)
        own = self._match_by_channel(asking)
        return (
            RepositoryChoice(repositories=own, why="it is this channel's", question=question) if len(own) == 1 else None
        )

    async def _infer_route(self, asking: _Asking, context: str) -> RepositoryChoice | AmbiguousRepository:
        findings = await self._find_hint_matches(asking, context)
        best = pick_winner(findings.found) if findings.complete else None
        if best is not None:
            strongest = sorted(findings.found[best], key=lambda hint: -hint.weight)[:3]
            names = ", ".join(f"`{_format_name(hint.text)}`" for hint in strongest)
            return RepositoryChoice(
                repositories=(best,), why=f"what you name is there: {names}", question=asking.message.text
            )
        likeliest = sort_by_likelihood(findings.found, await self._order(asking))
        if _is_talk(asking.message.text):
            why, question = "nothing of the code was asked", asking.message.text
            return RepositoryChoice(repositories=likeliest[:1], why=why, question=question, decides=False)
        return AmbiguousRepository(likeliest=likeliest[:MAX_TOGETHER], of=len(likeliest))

    async def _rank_by_content(self, asking: _Asking, context: str) -> tuple[str, ...]:
        """Sort all repositories by their share of the question's names and words."""
        matches = await self._find_hint_matches(asking, context)
        words = await self._lookups.find_words(asking.naming.question, asking.visible)
        found = {name: {*matches.found[name], *words.found[name]} for name in asking.visible}
        return sort_by_likelihood(found, await self._order(asking))

    async def _find_hint_matches(self, asking: _Asking, context: str) -> HintMatches:
        findings = HintMatches(found=dict.fromkeys(asking.visible, ()), complete=True)
        hints = find_hints(context)
        if hints:
            findings = await self._lookups.find(hints, asking.visible)
        hinted = find_hinted(asking.message.text, self._get_profiles(asking.visible))
        found = {
            name: {*matches, find_name_hint(name)} if name in hinted else matches
            for name, matches in findings.found.items()
        }
        return HintMatches(found=found, complete=findings.complete)

    async def _order(self, asking: _Asking) -> Sequence[str]:
        """Put the channel's usual repositories first, the rest in the configured order."""
        channel = replace(asking.message.place, thread="").key()
        usual = (*self._match_by_channel(asking), *await self._ledger.recent(channel))
        return tuple(dict.fromkeys((*(name for name in usual if name in asking.visible), *asking.visible)))

    def _match_by_channel(self, asking: _Asking) -> tuple[str, ...]:
        signs = self._get_profiles(asking.visible)
        return tuple(name for name in asking.visible if is_listed(signs[name].channels, asking.message))

    async def _find_topic(self, asking: _Asking) -> tuple[str, ...]:
        topic = await self._ledger.topic(asking.conversation)
        alone = asking.message.private and asking.message.kind != "direct"
        # All slash commands of a person are one conversation; its subject changes each time.
        if topic is None or (alone and self._clock.now() - topic.at > GOES_ON_SECONDS):
            return ()
        return topic.repositories

    async def _make_remark(self, asking: _Asking, names: tuple[str, ...]) -> str:
        topic = await self._find_topic(asking)
        if not topic or set(topic) == set(names) or not set(topic) <= set(asking.visible):
            return ""
        change = f" (`use {_format_name(names[0])}` changes that)" if len(names) == 1 else ""
        them = "it" if len(names) == 1 else "them"
        return (
            f"This is about {_list_names(names)}, as you name {them}; the conversation stays with "
            f"{_list_names(topic)}{change}."
        )

    async def _keep(self, asking: _Asking, route: RepositoryChoice) -> None:
        """Store the conversation's repositories, unless it has some."""
        topic = await self._find_topic(asking)
        if route.decides and (not topic or set(topic) == set(route.repositories)):
            await self._ledger.set_topic(asking.conversation, topic or route.repositories)


def _list_names(names: Sequence[str]) -> str:
    *most, last = (f"`{_format_name(name)}`" for name in names)
    return f"{', '.join(most)} and {last}" if most else last


def _is_talk(text: str) -> bool:
    """Whether a message asks about no repository, or answers a question of the agent."""
    return text in _REPLIES or find_small_talk(text) is not None or is_history_request(text) or is_repeat_request(text)


def _format_name(name: str) -> str:
    return to_one_line(name).replace("`", "'")[:80]
