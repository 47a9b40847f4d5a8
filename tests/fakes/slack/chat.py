"""The methods that write messages: chat.* without streams."""

from __future__ import annotations

from typing import Any

from tests.fakes.loopback.wire import JSON
from tests.fakes.slack.arguments import Args
from tests.fakes.slack.blocks import check_blocks, numbered
from tests.fakes.slack.errors import SlackError
from tests.fakes.slack.messages import Message
from tests.fakes.slack.workspace import BOT_ID, BOT_USER, TEAM, Channel, Workspace

TRUNCATED_AT = 40_000
MAX_UPDATE_TEXT = 4000
MAX_MARKDOWN = 12_000


def content(args: Args, *, most_text: int | None) -> JSON:
    """Return the checked fields of a message that a call sets; text beyond `most_text` is refused, None cuts it."""
    found: JSON = {}
    if args.has("text"):
        found["text"] = _plain(args, most_text)
    if (blocks := args.items("blocks", refusal="invalid_blocks_format")) is not None:
        check_blocks(blocks)
        found["blocks"] = numbered(blocks)
    if (metadata := args.value("metadata", refusal="invalid_metadata_format")) is not None:
        found["metadata"] = _metadata(metadata)
    if not any(found.get(name) for name in ("text", "blocks")):
        raise SlackError("no_text")
    return found


def _plain(args: Args, most: int | None) -> str:
    text = args.text("text")
    if most is not None and len(text) > most:
        raise SlackError("msg_too_long")
    return text[:TRUNCATED_AT]


def _metadata(metadata: Any) -> JSON:
    if not isinstance(metadata, dict) or not {"event_type", "event_payload"} <= metadata.keys():
        raise SlackError("invalid_metadata_format")
    return metadata


def writable(workspace: Workspace, identity: str) -> Channel:
    """The channel, if the app may write there."""
    channel = workspace.channel(identity)
    if channel.archived:
        raise SlackError("is_archived")
    if BOT_USER not in channel.members:
        raise SlackError("not_in_channel")
    return channel


class Chat:
    """chat.postMessage, update, delete, postEphemeral."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    def post_message(self, args: Args) -> JSON:
        """Post to a channel or thread."""
        channel = writable(self._workspace, args.required("channel"))
        message = self._new(channel, args)
        self._workspace.post(message)
        return {"channel": channel.id, "ts": message.ts, "message": message.wire()}

    def post_ephemeral(self, args: Args) -> JSON:
        """Show a message to one member of a channel."""
        channel = writable(self._workspace, args.required("channel"))
        user = args.required("user")
        if user not in channel.members:
            raise SlackError("user_not_in_channel")
        message = self._new(channel, args)
        message.for_user = user
        self._workspace.whisper(message)
        return {"message_ts": message.ts}

    def update(self, args: Args) -> JSON:
        """Replace what one of the app's messages says."""
        channel = self._workspace.channel(args.required("channel"))
        message = self._own(channel, args.required("ts"), refusal="cant_update_message")
        if message.streaming_since is not None:
            raise SlackError("streaming_state_conflict")
        new = content(args, most_text=MAX_UPDATE_TEXT)
        self._check_update(message, new)
        before = self._workspace.wire(message)
        self._apply(message, new)
        self._workspace.changed(message, before)
        return {"channel": channel.id, "ts": message.ts, "text": message.text, "message": message.wire()}

    def delete(self, args: Args) -> JSON:
        """Take one of the app's messages away."""
        channel = self._workspace.channel(args.required("channel"))
        message = self._own(channel, args.required("ts"), refusal="cant_delete_message")
        self._workspace.remove(message)
        return {"channel": channel.id, "ts": message.ts}

    def _new(self, channel: Channel, args: Args) -> Message:
        fields = content(args, most_text=None)
        return Message(
            ts=self._workspace.next_ts(),
            channel=channel.id,
            user=BOT_USER,
            team=TEAM,
            bot_id=BOT_ID,
            thread_ts=args.optional("thread_ts"),
            unfurls=not (args.flag("unfurl_links") is False and args.flag("unfurl_media") is False),
            **fields,
        )

    def _own(self, channel: Channel, ts: str, *, refusal: str) -> Message:
        message = self._workspace.message(channel.id, ts)
        if message.bot_id != BOT_ID:
            raise SlackError(refusal)
        return message

    def _check_update(self, message: Message, new: JSON) -> None:
        window = self._workspace.edit_window
        if window is not None and self._workspace.clock.now() - float(message.ts) > window:
            raise SlackError("edit_window_closed")
        was_rich = any(block["type"] == "rich_text" for block in message.blocks)
        if was_rich and new.get("blocks") and not any(block["type"] == "rich_text" for block in new["blocks"]):
            raise SlackError("block_mismatch")

    def _apply(self, message: Message, new: JSON) -> None:
        if "blocks" not in new and not self._workspace.keeps_blocks:
            message.blocks = []
        for name, value in new.items():
            setattr(message, name, value)
        message.edits += 1
        message.text_shows = False
        message.edited_by = BOT_USER
