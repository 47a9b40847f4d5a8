"""Goal runs as people see them: bounded however long they are, with the patch wherever there is room for it."""

from __future__ import annotations

from dataclasses import replace

from agent.goals.goal_verdict import GoalVerdict
from agent.limits import TokenUsage
from bot.markdown.splitting import count_units
from bot.messages import Attachment, MessageContent
from bot.replies.goal_content import GrowingGoal
from bot.replies.paging import show_without_file, split_into_pages
from tests.fakes.parts import ANSWER, event
from tests.fakes.platform import ABLE

VERDICT = GoalVerdict(
    goal="pytest", achieved=True, reason="", details={}, patch=b"", changed=(), repository="demo", commit="0" * 40,
    iterations=1, calls=1, usage=TokenUsage(), commands=(), ended_by="", model="m",
)  # fmt: skip


def grow(iterations: int, steps: int) -> GrowingGoal:
    goal = GrowingGoal("run", (), str)
    for number in range(1, iterations + 1):
        goal.take(event("step_start", node="plan", stage=f"Iteration {number} of 90: choosing what to do"))
        for step in range(steps):
            goal.take(event("command", line=f"echo {step} " + "x" * 5_000))
        goal.take(
            event("goal_check", achieved=False, label="Not reached", reason="@everyone " + "no " * 500 + "\n\nmore")
        )
    return goal


def test_a_long_run_shows_its_last_iterations_and_the_newest_steps() -> None:
    shown = grow(90, 100).partial_content()

    assert "*83 earlier iterations*" in shown.text
    assert "**Iteration 89 of 90**: 100 steps. Not reached:" in shown.text
    assert "*92 earlier steps*" in shown.text
    assert "echo 99" in shown.text
    assert len(shown.text) < 5_000
    assert "@everyone" not in shown.text
    assert shown.status == "Choosing what to do …"


def test_nothing_is_shown_of_a_run_that_has_not_begun_but_who_comes_first() -> None:
    goal = GrowingGoal("run", (), str)
    goal.wait(2)

    assert goal.partial_content().text == ""
    assert "2 goal runs are ahead of this one" in goal.partial_content().status


def test_a_patch_that_is_no_text_says_that_it_may_not_apply() -> None:
    goal = GrowingGoal("run", (), str)
    goal.take(event("goal_end", verdict=replace(VERDICT, patch=b"+\xff\n")))
    goal.take(event("answer", answer=ANSWER))

    assert "may not apply" in goal.final_content().text


def test_a_file_that_cannot_be_attached_fills_the_room_that_is_left() -> None:
    file = Attachment(
        name="a.patch", text="\n".join(f"+line {number} ``` @everyone" for number in range(900)), language="diff"
    )
    content = MessageContent(text="**Reached.**", footer="demo at 0123456", file=file)

    shown = show_without_file(content, "No permission.", ABLE)

    assert shown.file is None
    assert "The file could not be attached: No permission. This is its beginning." in shown.text
    assert "````diff\n+line 0" in shown.text
    assert "@everyone" not in shown.text
    assert ABLE.max_units * 0.9 < count_units(shown.text + shown.footer, utf16=ABLE.utf16) <= ABLE.max_units


def test_a_verdict_that_is_too_long_keeps_its_patch() -> None:
    file = Attachment(name="a.patch", text="+x", language="diff")
    pages = split_into_pages(MessageContent(text="word " * 9_000, file=file), 1_000, utf16=False, most=3)

    assert [page.content.file for page in pages] == [None, file]
