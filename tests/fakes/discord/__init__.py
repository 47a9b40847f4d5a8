"""A Discord that speaks its protocols over loopback: gateway and REST, both in version 10."""

from tests.fakes.discord.calls import Call
from tests.fakes.discord.channels import Kind
from tests.fakes.discord.interactions import Interaction
from tests.fakes.discord.messages import Seen
from tests.fakes.discord.permissions import Permission
from tests.fakes.discord.server import FakeDiscord
from tests.fakes.loopback.clock import Clock
from tests.fakes.loopback.faults import Gate

__all__ = ["Call", "Clock", "FakeDiscord", "Gate", "Interaction", "Kind", "Permission", "Seen"]
