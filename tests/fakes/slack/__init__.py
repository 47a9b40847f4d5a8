"""A Slack that speaks its protocols over loopback: Web API, Socket Mode, signed HTTP requests, response URLs."""

from tests.fakes.loopback.clock import Clock
from tests.fakes.loopback.faults import Gate
from tests.fakes.slack.calls import Call
from tests.fakes.slack.deliveries import Delivery
from tests.fakes.slack.events import SUBSCRIPTIONS
from tests.fakes.slack.messages import Seen
from tests.fakes.slack.server import FakeSlack

__all__ = ["SUBSCRIPTIONS", "Call", "Clock", "Delivery", "FakeSlack", "Gate", "Seen"]
