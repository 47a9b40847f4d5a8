"""Tokens and what they allow."""

from __future__ import annotations

from tests.fakes.slack.arguments import Args
from tests.fakes.slack.conversations import kind_of
from tests.fakes.slack.errors import SlackError
from tests.fakes.slack.workspace import Workspace

BOT_SCOPES = frozenset({
    "app_mentions:read", "assistant:write", "channels:history", "channels:read", "chat:write", "commands", "files:read",
    "files:write", "groups:history", "groups:read", "im:history", "im:read", "im:write", "mpim:history", "mpim:read",
    "pins:read", "reactions:read", "reactions:write", "users:read", "users:read.email",
})  # fmt: skip
NEEDED = {
    "assistant.threads.setStatus": "chat:write",
    "assistant.threads.setSuggestedPrompts": "assistant:write",
    "files.completeUploadExternal": "files:write",
    "files.getUploadURLExternal": "files:write",
}
KINDS = {"channel": "channels", "group": "groups", "im": "im", "mpim": "mpim"}


class Access:
    """The tokens of the app: scopes may be taken away, tokens revoked."""

    def __init__(self, workspace: Workspace) -> None:
        self.bot_token = "xoxb-citebot-of-home"
        self.app_token = "xapp-1-citebot"
        self.scopes = set(BOT_SCOPES)
        self.app_scopes = {"connections:write"}
        self.refusal: str | None = None  # token_revoked, account_inactive ... for every call
        self._workspace = workspace

    def granted_to(self, token: str) -> str:
        """What the header of each answer lists."""
        granted = {self.bot_token: self.scopes, self.app_token: self.app_scopes}.get(token, set())
        return ",".join(sorted(granted))

    def check(self, method: str, token: str, args: Args) -> None:
        """Refuse a call that the token does not allow."""
        if not token:
            raise SlackError("not_authed")
        if token not in {self.bot_token, self.app_token}:
            raise SlackError("invalid_auth")
        if self.refusal is not None:
            raise SlackError(self.refusal)
        for_app = method.startswith("apps.connections.")
        if for_app != (token == self.app_token) and method != "auth.test":
            raise SlackError("not_allowed_token_type")
        granted = self.app_scopes if for_app else self.scopes
        needed = "connections:write" if for_app else self._needed(method, args)
        if needed and needed not in granted:
            raise SlackError("missing_scope", needed=needed, provided=",".join(sorted(granted)))

    def _needed(self, method: str, args: Args) -> str | None:
        if method in NEEDED:
            return NEEDED[method]
        if method.startswith("chat.") and method != "chat.getPermalink":
            return "chat:write"
        if method == "users.conversations":
            kinds = [kind_of(each) for each in args.text("types", "public_channel").split(",")]
            return next((scope for kind in kinds if (scope := f"{KINDS[kind]}:read") not in self.scopes), None)
        channel = self._workspace.channels.get(args.text("channel"))
        if channel is None:
            return None
        if method in {"conversations.history", "conversations.replies"}:
            return f"{KINDS[channel.kind]}:history"
        return f"{KINDS[channel.kind]}:read" if method.startswith("conversations.") else None
