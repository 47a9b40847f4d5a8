"""Make the pictures of the documents from the running product, without a model: an animation of the demo workspace,
stills of it and of the page, the terminal, and a call graph.

Usage: python -m scripts.make_pictures [FOLDER], by default docs/pictures. It asks about a clone of this repository,
with a data folder of its own, and needs Chromium. A goal run takes a model and a sandbox: its picture is of the shop
of the tests, with a model that is scripted, as the picture says; the sandbox, the test and the verdict are real.
"""

from __future__ import annotations

import asyncio
import io
import os
import pty
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from PIL import Image
from playwright.async_api import Page, async_playwright
from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

from tests.fakes.gemini import Failure, Received, Reply, calls, running_gemini, says
from tests.fakes.prepared_python import prepared_python
from tests.fakes.repositories import GitRepo
from tests.fakes.shop import SHOP

ROOT = Path(__file__).resolve().parent.parent
NAME = "is_lfs_pointer"
PAGE_QUESTION = f"who calls {NAME}?"
TERMINAL_QUESTION = f"what does {NAME} do?"
FILM_QUESTION = f"{PAGE_QUESTION} where is it tested? what does it do?"
CLAIM = "check that parse_date('tomorrow') raises ValueError"
CLAIM_TEST = """\
from shop.dates import parse_date


def call():
    try:
        return parse_date("tomorrow")
    except Exception as error:
        return error


def test_claim_holds():
    assert isinstance(call(), ValueError)


def test_claim_does_not_hold():
    assert not isinstance(call(), ValueError)
"""
COLUMNS = 92
WIDTH, HEIGHT, SCALE = 1240, 660, 2
COLORS = 128
MAX_BYTES = 1_400_000  # of all pictures together
ANIMATION, MAX_ANIMATION_BYTES = "demo.webp", 600_000
QUALITY = 82  # of WebP
FRAME_SECONDS = 0.8  # for which each step of an answer that grows is shown
MILLISECONDS = 600_000
# Keeps each look of the reply in the thread that is opened, and shows one of them again.
RECORD = """() => {
  const thread = document.getElementById("thread");
  window.steps = [];
  new MutationObserver(() => {
    const reply = thread.querySelectorAll(".message")[1];
    if (reply && steps.at(-1) !== reply.innerHTML) steps.push(reply.innerHTML);
  }).observe(thread, { subtree: true, childList: true, characterData: true });
}"""
SHOW = """step => {
  const list = document.querySelector("#thread .messages");
  list.querySelectorAll(".message")[1].innerHTML = steps[step];
  list.scrollTop = list.scrollHeight;
}"""
# Those of the page in the dark.
HUES = ((255, 154, 143), (143, 209, 158), (239, 176, 113), (130, 185, 244), (213, 155, 234), (91, 199, 178))
THEME = TerminalTheme(
    (24, 29, 32), (223, 229, 231),
    [(24, 29, 32), *HUES, (223, 229, 231)],
    [(152, 164, 171), *HUES, (255, 255, 255)],
)  # fmt: skip


def main(folder: Path) -> None:
    """Make all of them in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="citebot-pictures-") as scratch:
        repository = Path(scratch, "citebot")
        subprocess.run(["git", "clone", "--quiet", "--no-hardlinks", str(ROOT), str(repository)], check=True)
        subprocess.run(["git", "-C", str(repository), "checkout", "--quiet", "-B", "main"], check=True)
        environment = make_environment(Path(scratch, "data"))
        run_citebot(environment, "index", str(repository))
        run_citebot(environment, "callers", NAME, "--repo", str(repository), "--graph", str(folder / "calls.svg"))
        (folder / "terminal.svg").write_text(draw_terminal(environment, repository), encoding="utf-8")
        with open_page(environment, repository, "web") as address:
            asyncio.run(photograph(address, photograph_page, folder))
        with open_page(environment, repository, "demo") as address:
            asyncio.run(photograph(address, photograph_demo, folder))
        photograph_goal_run(Path(scratch), folder)
    sizes = {path.name: path.stat().st_size for path in sorted(folder.iterdir())}
    print("\n".join(f"{size:>8,}  {name}" for name, size in sizes.items()))
    if sizes[ANIMATION] > MAX_ANIMATION_BYTES:
        sys.exit(f"{ANIMATION} is larger than {MAX_ANIMATION_BYTES:,} bytes.")
    if sum(sizes.values()) > MAX_BYTES:
        sys.exit(f"Together they are larger than {MAX_BYTES:,} bytes.")


def make_environment(home: Path) -> Mapping[str, str]:
    """Return the environment of somebody who has set nothing up."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("CITEBOT_", "GOOGLE_"))}
    terminal = {"COLUMNS": str(COLUMNS), "TERM": "xterm-256color"}
    return {**kept, **terminal, "CITEBOT_HOME": str(home), "PYTHONPATH": str(ROOT)}


def citebot(*words: str) -> list[str]:
    """Return the command line of a command."""
    return [sys.executable, "-P", "-m", "bot", *words]


def run_citebot(environment: Mapping[str, str], *words: str) -> None:
    """Run a command to its end."""
    subprocess.run(citebot(*words), env=environment, check=True, stdout=subprocess.DEVNULL)


def draw_terminal(environment: Mapping[str, str], repository: Path) -> str:
    """Ask in a terminal, and return what it shows as SVG."""
    words = citebot("ask", "--repo", str(repository), "--", TERMINAL_QUESTION)
    shown = read_terminal(environment, words)
    console = Console(record=True, width=COLUMNS, file=io.StringIO())
    console.print(Text(f'$ citebot ask "{TERMINAL_QUESTION}"', style="bold"))
    console.print(Text.from_ansi(f"{shown.rstrip()}\n"))
    drawn = console.export_svg(title="citebot", theme=THEME, unique_id="citebot")
    # A picture in a README loads no fonts.
    return re.sub(r"@font-face \{.*?\}\s*", "", drawn, flags=re.DOTALL).replace("Fira Code", "DejaVu Sans Mono")


def read_terminal(environment: Mapping[str, str], words: list[str]) -> str:
    """Run a command whose standard output is a terminal, and return what it wrote there."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(words, env=environment, stdout=theirs, stderr=subprocess.DEVNULL) as process:
        os.close(theirs)
        pieces = []
        try:
            while piece := os.read(ours, 65_536):
                pieces.append(piece)
        except OSError:  # the other end is closed
            pass
        os.close(ours)
    if process.returncode:
        sys.exit("citebot could not answer.")
    return b"".join(pieces).decode().replace("\r\n", "\n")


@contextmanager
def open_page(environment: Mapping[str, str], repository: Path, command: str) -> Iterator[str]:
    """Serve the page of a command; yield the address that signs in."""
    words = citebot(command, "--repo", str(repository), "--port", "0")
    with subprocess.Popen(words, env=environment, stderr=subprocess.PIPE, text=True) as process:
        try:
            for line in process.stderr or ():
                if found := re.search(r"http://\S+/login\?t=[\w-]+", line):
                    yield found[0]
                    return
            sys.exit("citebot did not serve the page.")
        finally:
            process.terminate()


async def photograph(address: str, work: Callable[[Page, Path], Awaitable[None]], folder: Path) -> None:
    """Take pictures of a page that an address signs in to."""
    async with async_playwright() as driver:
        browser = await driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        scale = SCALE if work is photograph_page else 1
        context = await browser.new_context(viewport={"width": WIDTH, "height": HEIGHT}, device_scale_factor=scale)
        page = await context.new_page()
        page.set_default_timeout(MILLISECONDS)
        await page.goto(address)
        await work(page, folder)
        await browser.close()


async def photograph_page(page: Page, folder: Path) -> None:
    """Ask on the page, open a citation, and take a picture of it in light and in dark."""
    await page.fill("#question", PAGE_QUESTION)
    await page.keyboard.press("Enter")
    await page.locator(".rating").wait_for()
    await page.locator("#panel tr.cited").first.wait_for()
    for scheme in ("light", "dark"):
        await page.emulate_media(color_scheme=scheme)
        shot = Image.open(io.BytesIO(await page.screenshot()))
        shot.convert("RGB").quantize(COLORS).save(folder / f"page-{scheme}.png", optimize=True)


class Film:
    """The frames of an animation, each with the milliseconds for which it is shown."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self._frames: list[Image.Image] = []
        self._times: list[int] = []

    async def shoot(self, seconds: float) -> None:
        """Add the page as it is now; where nothing has changed, the frame before is shown for longer."""
        frame = Image.open(io.BytesIO(await self._page.screenshot())).convert("RGB")
        if self._frames and frame.tobytes() == self._frames[-1].tobytes():
            self._times[-1] += round(1000 * seconds)
            return
        self._frames.append(frame)
        self._times.append(round(1000 * seconds))

    def save(self, path: Path) -> None:
        """Write the animation, which begins again at its end."""
        first, *others = self._frames
        first.save(path, save_all=True, append_images=others, duration=self._times, loop=0, quality=QUALITY, method=6)


async def photograph_demo(page: Page, folder: Path) -> None:
    """Ask in a direct conversation; then, in a film, ask in a channel, watch the answer grow, and open a citation.

    A push makes the answer outdated in the end.
    """
    box, film, start = page.locator("#question"), Film(page), page.url
    await page.goto(start.replace("/c/general", "/c/dm-ann"))
    await send(page, TERMINAL_QUESTION)
    await page.locator(".message[data-finished]").wait_for()  # from then on the repository is indexed
    await page.emulate_media(color_scheme="dark")
    await save_still(page, folder / "direct.webp")
    await page.emulate_media(color_scheme="light")
    await page.goto(start)
    await film.shoot(0.8)
    words = f"@citebot {FILM_QUESTION}"
    for end in (3, 9, 22, 33, 53, len(words)):
        await box.fill(words[:end])
        await box.dispatch_event("input")
        await film.shoot(0.3)
    await page.evaluate(RECORD)
    await page.keyboard.press("Enter")
    await page.locator(".replies").click()
    await page.locator("#thread .buttons", has_text="Not helpful").wait_for()
    for step in range(await page.evaluate("steps.length")):  # as they came, each for as long as it takes to see it
        await page.evaluate(SHOW, step)
        await film.shoot(FRAME_SECONDS)
    await film.shoot(1.6)
    await page.locator("#thread a.cite").last.hover()
    await film.shoot(0.6)
    await page.locator("#thread a.cite").last.click()
    await page.locator("#panel tr.cited").first.wait_for()
    await film.shoot(4.0)
    film.save(folder / ANIMATION)
    await save_still(page, folder / "thread.webp")
    await page.goto(start.replace("/c/general", "/c/dm-ann"))
    await page.get_by_role("button", name="Push a commit").click()
    await page.get_by_text("Outdated since").wait_for()
    await save_still(page, folder / "outdated.webp")


def photograph_goal_run(scratch: Path, folder: Path) -> None:
    """Have a claim about the shop of the tests checked in the sandbox, with a model that is scripted."""
    shop = GitRepo(scratch / "shop")
    for path, text in SHOP.items():
        shop.write(path, text)
    shop.commit("Add the shop")
    with prepared_python() as python, running_gemini() as model:
        model.script = write_claim_test
        config = scratch / "citebot.toml"
        config.write_text(f'[sandbox]\npython = "{python}"\n', encoding="utf-8")
        environment = {
            **make_environment(scratch / "data"), "CITEBOT_CONFIG": str(config), "GOOGLE_API_KEY": "none",
            "GOOGLE_API_BASE_URL": model.url, "CITEBOT_MODEL": "google_genai:scripted",
        }  # fmt: skip
        with open_page(environment, shop.root, "demo") as address:
            asyncio.run(photograph(address, photograph_approval, folder))


def write_claim_test(asked: Received) -> Reply | Failure:
    """Answer as the model of the goal run: write the test, then be done."""
    if "functionResponse" in str(asked.body["contents"]):
        return says("The test is written.")
    return calls(("file_write", {"path": "test_citebot_claim.py", "content": CLAIM_TEST}))


async def photograph_approval(page: Page, folder: Path) -> None:
    """Approve the run that is proposed, and take a picture of the proposal and of the verdict."""
    await send(page, f"@citebot {CLAIM}")
    await page.locator(".replies").click()
    approve = page.locator("#thread").get_by_role("button", name="Approve", exact=True).first
    await approve.wait_for()
    await save_still(page, folder / "goal-proposed.webp")
    await approve.click()
    await page.locator("#thread").get_by_text("The claim is true").wait_for()
    await page.locator("#thread .message[data-finished]").wait_for()
    await page.locator("#thread .message").last.evaluate("message => message.scrollIntoView()")
    await save_still(page, folder / "goal-verdict.webp")


async def send(page: Page, text: str) -> None:
    """Write a message into the channel."""
    await page.fill("#question", text)
    await page.keyboard.press("Enter")


async def save_still(page: Page, path: Path) -> None:
    """Take one picture, without a pointer."""
    await page.mouse.move(0, 0)
    Image.open(io.BytesIO(await page.screenshot())).convert("RGB").save(path, quality=QUALITY, method=6)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "pictures")
