"""People's actions on messages, as verbs for tests."""

from __future__ import annotations

import mimetypes

from tests.fakes.discord.channels import Channel, Kind
from tests.fakes.discord.checks import check_thread_name
from tests.fakes.discord.guilds import User
from tests.fakes.discord.mentions import KINDS, Allowed
from tests.fakes.discord.messages import DEFAULT, REPLY, Message
from tests.fakes.discord.payloads import reaction_event
from tests.fakes.discord.permissions import Permission
from tests.fakes.discord.posts import Posts
from tests.fakes.discord.requests import Upload
from tests.fakes.discord.threads import Threads
from tests.fakes.discord.world import World

EVERYTHING = Allowed(kinds=frozenset(KINDS))


class People:
    """Verbs; channels, users and messages go by their ids. Each returns before the app has heard of it."""

    world: World
    threads: Threads
    posts: Posts

    def message(
        self, channel: str, user: str, text: str, *, reply_to: str | None = None, files: dict[str, bytes] | None = None
    ) -> str:
        """Write in a channel, thread or direct conversation; return the id."""
        place = self.world.channels[channel]
        self._refuse_stranger(place, user)
        message = self._written(place, self.world.users[user], text, files or {})
        message.reply_to, message.kind = reply_to, REPLY if reply_to else DEFAULT
        self.posts.ring(message, EVERYTHING, self.world.permissions(user, place))
        if place.is_thread:
            self.threads.before_writing(place, user)
            for mentioned in message.mentioned.users:
                self.threads.join(place, mentioned)
        self.world.add(message)
        return message.id

    def mention(
        self, channel: str, user: str, text: str, *, reply_to: str | None = None, files: dict[str, bytes] | None = None
    ) -> str:
        """Write to the bot; return the id."""
        return self.message(channel, user, f"<@{self.world.bot.id}> {text}", reply_to=reply_to, files=files)

    def forward(self, message: str, user: str) -> str:
        """Forward a message to the bot directly, which takes no words; return the id."""
        found = self.world.find(message)
        sent = self._written(self.world.dm(self.world.users[user]), self.world.users[user], "", {})
        sent.forwarded = found
        self.world.add(sent)
        return sent.id

    def reply(self, message: str, user: str, text: str) -> str:
        """Answer a message; its author is pinged. Return the id."""
        return self.message(self.world.find(message).channel_id, user, text, reply_to=message)

    def dm(self, user: str, text: str, *, files: dict[str, bytes] | None = None) -> str:
        """Write to the bot directly; return the id."""
        return self.message(self.dm_channel(user), user, text, files=files)

    def dm_channel(self, user: str) -> str:
        """The direct conversation of a person with the bot."""
        return self.world.dm(self.world.users[user]).id

    def webhook(self, channel: str, name: str, text: str) -> str:
        """Let an integration write under a name; return the id."""
        identity = self.world.ids.next()
        author = User(id=identity, name=name, is_bot=True)
        message = self._written(self.world.channels[channel], author, text, {})
        message.webhook_id = identity
        self.posts.ring(message, EVERYTHING, Permission(0))
        self.world.add(message)
        return message.id

    def system_message(self, channel: str, user: str, kind: int) -> str:
        """Let Discord write, such as kind 7 when somebody joins, or 6 when something is pinned; return the id."""
        message = self._written(self.world.channels[channel], self.world.users[user], "", {})
        message.kind = kind
        self.world.add(message)
        return message.id

    def edit(self, message: str, text: str) -> None:
        """Change one's own message; mentions are found again, nobody is rung again."""
        found = self.world.find(message)
        rang = found.rang
        found.content = text
        self.posts.ring(
            found, EVERYTHING, self.world.permissions(found.author.id, self.world.channels[found.channel_id])
        )
        found.rang, found.edited_at = rang, self.world.clock.now()
        found.edits += 1
        self.world.changed(found)

    def unfurl(self, message: str) -> None:
        """Let Discord add a preview to a message some time after it was sent: an update that nobody made."""
        found = self.world.find(message)
        found.embeds = [{"type": "link", "url": "https://example.test/", "title": "Example"}]
        self.world.changed(found)

    def delete(self, message: str) -> None:
        """Delete a message."""
        self.world.remove(self.world.find(message))

    def react(self, message: str, user: str, emoji: str) -> None:
        """React to a message."""
        self._react(message, user, emoji, added=True)

    def unreact(self, message: str, user: str, emoji: str) -> None:
        """Take a reaction away."""
        self._react(message, user, emoji, added=False)

    def start_thread(self, channel: str, user: str, name: str, *, message: str = "", private: bool = False) -> str:
        """Start a thread, on a message or on none; return the id."""
        if message:
            return self.threads.start_from(self.world.find(message), user, check_thread_name(name)).id
        return self.threads.start_alone(self.world.channels[channel], user, check_thread_name(name), private=private).id

    def post(self, forum: str, user: str, title: str, text: str) -> str:
        """Begin a post in a forum: a thread whose first message has its id. Return the id."""
        place = self.world.channels[forum]
        thread = self.threads.start(place, user, check_thread_name(title), kind=Kind.PUBLIC_THREAD)
        message = self._written(thread, self.world.users[user], text, {}, identity=thread.id)
        self.posts.ring(message, EVERYTHING, self.world.permissions(user, thread))
        for mentioned in message.mentioned.users:
            self.threads.join(thread, mentioned)
        self.world.add(message)
        return thread.id

    def add_to_thread(self, thread: str, user: str) -> None:
        """Take somebody, or the bot, into a thread."""
        self.threads.join(self.world.channels[thread], user)

    def _written(
        self, channel: Channel, author: User, text: str, files: dict[str, bytes], *, identity: str = ""
    ) -> Message:
        uploads = [
            Upload(key="", filename=name, content=content, content_type=mimetypes.guess_type(name)[0] or "text/plain")
            for name, content in files.items()
        ]
        return Message(
            id=identity or self.world.ids.next(),
            channel_id=channel.id,
            author=author,
            sent_at=self.world.clock.now(),
            content=text,
            attachments=[self.posts.store(channel.id, each) for each in uploads],
        )

    def _refuse_stranger(self, channel: Channel, user: str) -> None:
        if channel.guild_id is not None and not self.world.sees(user, channel):
            raise PermissionError(f"{self.world.users[user].name} does not see #{channel.name}")

    def _react(self, message: str, user: str, emoji: str, *, added: bool) -> None:
        found = self.world.find(message)
        users = found.reactions.setdefault(emoji, [])
        (users.append if added else users.remove)(user)
        body = reaction_event(self.world, found, emoji, user, added=added)
        name = "MESSAGE_REACTION_ADD" if added else "MESSAGE_REACTION_REMOVE"
        self.world.tell(name, body, self.world.channels[found.channel_id])
