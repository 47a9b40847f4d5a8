"""Marks answers whose code has changed, by silent edits that never delay answers in progress."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from bot.access import AccessPolicy, is_listed
from bot.clock import Clock
from bot.errors import ChatError, InboxError, PlatformUnreachable, RateLimited
from bot.markdown.formatting import is_allowed_link, neutralize, quote_link
from bot.messages import Button, MessageContent, Place, SendMethod
from bot.ports import ChatPlatform
from bot.replies.paging import split_into_pages
from bot.replies.send_budget import ReplyTransport
from bot.settings import LivingTable
from bot.storage.inbox import Inbox, InboxEntry
from bot.storage.living_answers import LivingAnswer, LivingAnswerStore

LOOK_SECONDS = 5.0  # between looks at what another process may have noted
MAX_AT_ONCE = 100
AGAIN = "Answer again"
_NAMED, _NAMED_AGAIN = 3, 5  # changes in a footer, and in an answer that is given again

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class LivingEdits:
    """Marks outdated answers, and removes the mark if the code is restored.

    Each answer is claimed before its edit, and a claim that its process did not finish is claimed
    again. The present access rules count, not those at the time of the answer.
    """

    store: LivingAnswerStore
    inbox: Inbox
    access: AccessPolicy
    settings: LivingTable
    clock: Clock
    transports: Mapping[str, ReplyTransport]
    hosts: Collection[str]
    told: asyncio.Event

    async def run(self) -> None:
        """Edit until cancelled."""
        while True:
            self.told.clear()
            try:
                await self.edit_due()
            except InboxError as error:
                log.warning("outdated answers were not looked for: %s", error)
            await self._wait()

    async def _wait(self) -> None:
        """Wait for a signal, or until a change may have been noted elsewhere."""
        tasks = [asyncio.ensure_future(each) for each in (self.told.wait(), self.clock.sleep(LOOK_SECONDS))]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()

    async def edit_due(self) -> None:
        """Make the edits that are due."""
        for answer in await self.store.list_due(per_hour=self.settings.edits_per_hour, most=MAX_AT_ONCE):
            entry = await self.inbox.get(answer.entry)
            if entry is not None and answer.shared:
                shown = replace(entry.message, private=False, place=entry.message.place.make_public())
                entry = replace(entry, message=shown, handles=answer.shared)
            if entry is None or not self._may_show(answer, entry):
                await self.store.drop_due(answer)
            elif entry.run_id == answer.run_id and entry.state in {"settled", "closed"}:
                await self._edit(answer, entry)

    def _may_show(self, answer: LivingAnswer, entry: InboxEntry) -> bool:
        """Whether answers in the channel are followed, and its repositories may be asked about there now."""
        message = entry.message
        is_seen_once = message.private and message.kind == "command"  # and cannot be changed until it is shared
        if not entry.handles or is_seen_once or not is_listed(self.settings.channels, message):
            return False
        return self.access.may_see(message, answer.commits)

    async def _edit(self, answer: LivingAnswer, entry: InboxEntry) -> None:
        transport = self.transports.get(entry.message.place.platform)
        if transport is None or not transport.platform.capabilities.edits:
            return
        place = entry.message.place
        is_told = answer.is_watched and bool(answer.changes)
        methods: Sequence[SendMethod] = ("edit", "post") if is_told else ("edit",)
        if not all(transport.budget.take_spare(method, place) for method in methods):
            return  # answers in progress come first
        if not await self.store.claim_edit(answer, per_hour=self.settings.edits_per_hour):
            return
        again = False
        try:
            content, count = make_living_content(answer, self.hosts), len(entry.handles)
            if (page := _find_page(content, answer.content.text, count, transport)) is not None:
                await transport.platform.edit(entry.handles[-1], page)
            if is_told:
                await self._tell(answer, place, transport.platform)
        except (PlatformUnreachable, RateLimited) as error:
            log.info("an outdated answer waits to be marked: %s", error)
            again = True
            if isinstance(error, RateLimited):
                transport.budget.hold("edit", place, error.retry_after)
        except ChatError as error:
            log.info("an outdated answer could not be marked: %s", error)
        await self.store.end_edit(answer, again=again, told=is_told and not again)

    async def _tell(self, answer: LivingAnswer, place: Place, platform: ChatPlatform) -> None:
        """Tell the asker who watches an answer about its change, in the thread; an earlier process may have done it."""
        nonce = f"{answer.run_id[-18:]}.watch"
        if await platform.find_reply(place, nonce) is None:
            text = f"The answer that you watch has changed. {describe_changes(answer, self.hosts)}"
            await platform.post(place, MessageContent(text=text, buttons=_offer_again(answer)), nonce=nonce)


def describe_changes(answer: LivingAnswer, hosts: Collection[str]) -> str:
    """Describe the changes of an answer's evidence, and since when; empty if there are none."""
    if not answer.changes:
        return ""
    heading, *named = answer.changes
    more = ", …" if len(named) > _NAMED else ""
    return neutralize(f"Outdated since `{answer.since[:7]}`: {heading} ({', '.join(named[:_NAMED])}{more})", hosts)


def describe_renewal(answer: LivingAnswer | None) -> str:
    """Describe the changes since an answer that is given again; empty if there are none."""
    if answer is None or not answer.changes:
        return ""
    heading, *named = answer.changes
    return f"*Answered again. Since the earlier answer, {heading}:* {', '.join(named[:_NAMED_AGAIN])}"


def make_living_content(answer: LivingAnswer, hosts: Collection[str]) -> MessageContent:
    """Return an answer for display now, with links to the present places of moved lines."""
    text = answer.content.text
    for old, new in answer.links.items():
        if is_allowed_link(target := quote_link(new), hosts):
            text = text.replace(f"]({quote_link(old)})", f"]({target})")
    again = _offer_again(answer)  # in place of a button that asks anew
    content = replace(answer.content, text=text, buttons=() if answer.shared else answer.content.buttons)
    return replace(
        content,
        footer=" · ".join(filter(None, (describe_changes(answer, hosts), content.footer))),
        buttons=(*again, *(one for one in content.buttons if not again or one.action != "again")),
    )


def _offer_again(answer: LivingAnswer) -> tuple[Button, ...]:
    is_askable = answer.changes and answer.question and not answer.shared
    return (Button(action="again", label=AGAIN, value=answer.run_id),) if is_askable else ()


def _find_page(content: MessageContent, sent: str, count: int, transport: ReplyTransport) -> MessageContent | None:
    """Return the new content of a reply's last message; None if the reply would need other messages."""
    able = transport.platform.capabilities
    if count > 1:  # the earlier ones stay as they are: other links would cut the text elsewhere
        content = replace(content, text=sent)
    shorter = replace(content, footer=content.footer.partition(": ")[0]) if content.footer else content
    for each in (content, shorter):
        pages = split_into_pages(
            each, able.max_units, utf16=able.utf16, escaped=able.escapes, most=able.max_parts, final=True
        )
        if len(pages) == count:
            return pages[-1].content
    return None
