"""The methods about the app itself: auth, home, status and prompts of threads."""

from __future__ import annotations

from typing import Any

from tests.fakes.loopback.wire import JSON
from tests.fakes.slack.arguments import Args
from tests.fakes.slack.blocks import MAX_VIEW_BLOCKS, check_blocks, numbered
from tests.fakes.slack.errors import SlackError, invalid
from tests.fakes.slack.workspace import APP_ID, BOT_ID, BOT_USER, TEAM, Status, Workspace

MAX_LOADING_MESSAGES, MAX_PROMPTS = 10, 4


class Apps:
    """auth.test, views.publish, assistant.threads.*."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    def auth_test(self, args: Args) -> JSON:
        """Tell whose token it is."""
        who = {"user": "citebot", "user_id": BOT_USER, "bot_id": BOT_ID, "app_id": APP_ID}
        return {
            "url": "https://home.slack.test/",
            "team": "Home",
            "team_id": TEAM,
            "is_enterprise_install": False,
        } | who

    def publish_home(self, args: Args) -> JSON:
        """Show a person their Home tab."""
        user = args.required("user_id")
        if user not in self._workspace.people:
            raise SlackError("user_not_found")
        old = self._workspace.homes.get(user)
        if args.text("hash") and old and args.text("hash") != old["hash"]:
            raise SlackError("hash_conflict")
        view = _view(args)
        number = self._workspace.number()
        view |= {"id": old["id"] if old else f"V{number:04d}", "hash": f"{number}.hash", "app_id": APP_ID}
        view |= {"team_id": TEAM, "bot_id": BOT_ID}
        self._workspace.homes[user] = view
        self._workspace.touch()
        return {"view": view}

    def set_status(self, args: Args) -> JSON:
        """Show below a thread that the app works; an empty status clears it."""
        key = self._thread(args)
        loading = args.value("loading_messages", refusal="invalid_arguments") or []
        if len(loading) > MAX_LOADING_MESSAGES:
            raise invalid("invalid_arguments", "no more than 10 items allowed [json-pointer:/loading_messages]")
        status = Status(text=args.text("status"), loading_messages=tuple(loading), since=self._workspace.clock.now())
        self._workspace.statuses[key] = status
        self._workspace.touch()
        return {}

    def set_prompts(self, args: Args) -> JSON:
        """Offer questions; without a thread, in the messages tab."""
        channel = self._workspace.channel(args.required("channel_id")).id
        prompts = args.items("prompts", refusal="invalid_arguments") or []
        if not 1 <= len(prompts) <= MAX_PROMPTS or not all({"title", "message"} <= each.keys() for each in prompts):
            raise invalid("invalid_arguments", "one to four prompts, each with a title and a message")
        self._workspace.prompts[channel, args.text("thread_ts")] = prompts
        self._workspace.touch()
        return {}

    def _thread(self, args: Args) -> tuple[str, str]:
        return self._workspace.channel(args.required("channel_id")).id, args.required("thread_ts")


def _view(args: Args) -> JSON:
    view: Any = args.value("view", refusal="invalid_arguments")
    if not isinstance(view, dict) or view.get("type") != "home":
        raise invalid("invalid_arguments", "a view of type home is needed [json-pointer:/view/type]")
    blocks = view.get("blocks", [])
    check_blocks(blocks, most=MAX_VIEW_BLOCKS)
    numbered(blocks)
    return dict(view)
