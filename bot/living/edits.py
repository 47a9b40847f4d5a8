"""Shows below answers that the code has changed: quietly, by edits that no answer in progress waits for."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from bot.access import AccessPolicy, is_listed
from bot.clock import Clock
from bot.errors import ChatError, InboxError, NotAllowed, PlatformUnreachable, RateLimited
from bot.markdown.safety import neutralize
from bot.messages import Button, MessageContent
from bot.replies.paging import split_into_pages
from bot.replies.send_budget import ReplyTransport
from bot.settings import LivingTable
from bot.storage.inbox import Inbox, InboxEntry
from bot.storage.living_answers import LivingAnswer, LivingAnswerStore

LOOK_SECONDS = 5.0  # between looks at what another process may have noted
MOST_AT_ONCE = 100
AGAIN = "Answer again"
_NAMED = 3  # changes in a footer

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class LivingEdits:
    """Changes what outdated answers show, and takes it back where the code is as it was.

    Each is claimed before it is changed, and a claim that its process did not bring to an end is taken up again. Who
    may ask about a repository now is what counts, not who could when the answer was sent.
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
        """Wait until somebody tells of a change, or one may have been noted elsewhere."""
        tasks = [asyncio.ensure_future(each) for each in (self.told.wait(), self.clock.sleep(LOOK_SECONDS))]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()

    async def edit_due(self) -> None:
        """Edit what may be edited by now."""
        for answer in await self.store.list_due(per_hour=self.settings.edits_per_hour, most=MOST_AT_ONCE):
            entry = await self.inbox.get(answer.entry)
            if entry is None or not self._may_show(answer, entry):
                await self.store.drop_due(answer)
            elif entry.run_id == answer.run_id and entry.state in {"settled", "closed"}:
                await self._edit(answer, entry)

    def _may_show(self, answer: LivingAnswer, entry: InboxEntry) -> bool:
        """Whether the channel is one in which answers live, and its repositories may be asked about there now."""
        message = entry.message
        if not entry.handles or entry.handles[-1].line or not is_listed(self.settings.channels, message):
            return False
        try:
            for repository in answer.commits:
                self.access.check_repository(message, repository)
        except NotAllowed:
            return False
        return True

    async def _edit(self, answer: LivingAnswer, entry: InboxEntry) -> None:
        transport = self.transports.get(entry.message.place.platform)
        if transport is None or not transport.platform.capabilities.edits:
            return
        place = entry.message.place
        if not transport.budget.take_spare("edit", place):
            return  # answers in progress come first
        if not await self.store.claim_edit(answer, per_hour=self.settings.edits_per_hour):
            return
        again = False
        try:
            if (page := _find_page(make_living_content(answer, self.hosts), len(entry.handles), transport)) is not None:
                await transport.platform.edit(entry.handles[-1], page)
        except (PlatformUnreachable, RateLimited) as error:
            log.info("an outdated answer waits to be marked: %s", error)
            again = True
            if isinstance(error, RateLimited):
                transport.budget.hold("edit", place, error.retry_after)
        except ChatError as error:
            log.info("an outdated answer could not be marked: %s", error)
        await self.store.end_edit(answer, again=again)


def make_living_content(answer: LivingAnswer, hosts: Collection[str]) -> MessageContent:
    """Return an answer as it is to be shown now."""
    content = answer.content
    if not answer.changes:
        return content
    heading, *named = answer.changes
    more = ", …" if len(named) > _NAMED else ""
    said = neutralize(f"Outdated since `{answer.since[:7]}`: {heading} ({', '.join(named[:_NAMED])}{more})", hosts)
    button = Button(action="again", label=AGAIN, value=answer.run_id)
    return replace(
        content,
        footer=" · ".join(filter(None, (said, content.footer))),
        buttons=(*((button,) if answer.question else ()), *content.buttons),
    )


def _find_page(content: MessageContent, count: int, transport: ReplyTransport) -> MessageContent | None:
    """Return what the last message of a reply is to show; None where the reply would need other messages for it."""
    able = transport.platform.capabilities
    shorter = replace(content, footer=content.footer.partition(": ")[0]) if content.footer else content
    for each in (content, shorter):
        pages = split_into_pages(
            each, able.max_units, utf16=able.utf16, escaped=able.escapes, most=able.max_parts, final=True
        )
        if len(pages) == count:
            return pages[-1].content
    return None
