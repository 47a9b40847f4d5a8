"""Posts, edits and deletes one message on a chat platform, for `citebot doctor --live`."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import uuid4

from bot.adapters.slack.client import API_URL, open_client
from bot.adapters.slack.ephemeral import SlackEphemeralMessages
from bot.adapters.slack.platform import SlackPlatform
from bot.clock import Clock
from bot.errors import ChatError
from bot.messages import MessageContent, Place
from bot.monitoring.doctor_findings import DoctorFinding, make_ok, make_problem
from bot.ports import ChatPlatform
from bot.settings import Settings

_POSTED = MessageContent(text="`citebot doctor --live` is checking that I can write here.")
_EDITED = MessageContent(text="`citebot doctor --live` can edit this message, and deletes it now.")
_NOT_SET_UP = "Without --live, `citebot doctor` says how to set it up."
_HOW_TO_NAME = (
    "Invite citebot to the channel, and name it by its id: in Slack at the bottom of the channel's details, in Discord "
    "by Copy Channel ID in developer mode."
)


def is_discord_channel(channel: str) -> bool:
    """Whether an id is one of Discord, which are numbers; those of Slack are not."""
    return channel.isdecimal()


def report_not_set_up(name: str, channels: Sequence[str]) -> Sequence[DoctorFinding]:
    """Say that nothing was posted on a platform that citebot knows no token of."""
    what = f"{name} is not set up, so nothing was posted in {', '.join(channels)}."
    return [make_problem(what, _NOT_SET_UP)] if channels else []


async def check_slack_delivery(settings: Settings, channels: Sequence[str], clock: Clock) -> Sequence[DoctorFinding]:
    """Check whether citebot can write in channels of Slack; raises a `ChatError` where Slack cannot be reached."""
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
