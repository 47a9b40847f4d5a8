"""Remote repositories over HTTP and from files: what is fetched, and what is said when it cannot be."""

from __future__ import annotations

import asyncio
import base64
import logging
import shutil
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from pydantic import SecretStr

from bot.jobs.local_refreshes import LocalRefreshJobs
from bot.repositories.library import RepositoryLibrary
from bot.repositories.refresh import LoggingDisplay
from indexer.errors import RemoteError, StorageLocked
from indexer.index import CodeIndex
from indexer.remotes.clone import RemoteClone, open_clones
from indexer.remotes.remote_repository import RemoteRepository
from indexer.remotes.transport import FetchLimits
from indexer.types import Location
from tests.fakes.disks import mounted
from tests.fakes.git_host import GitHost, command_lines, published, serving
from tests.fakes.repositories import GitRepo, run_git
from tests.waiting import expect, wait_for, wait_for_end

ROOT = Path(__file__).parents[3]
TOKEN = "tok-5ecret/with:odd@signs%"


@pytest.fixture
async def host(tmp_path: Path) -> AsyncIterator[GitHost]:
    async with serving(GitHost(tmp_path / "host")) as host:
        yield host


@pytest.fixture
def work(tmp_path: Path, host: GitHost) -> GitRepo:
    """A working copy; `push` brings its branch to the host."""
    work = GitRepo(tmp_path / "work")
    work.write("shop.py", "def sell() -> None: ...\n")
    work.commit("first")
    work.git("remote", "add", "origin", str(published(work.root, host, "team/shop.git")))
    return work


def push(work: GitRepo, *arguments: str) -> None:
    work.git("push", "--quiet", "origin", *(arguments or ("HEAD",)))


def clone(host: GitHost, home: Path, *, path: str = "team/shop.git", **options: object) -> RemoteClone:
    limits = options.pop("limits", None)
    remote = RemoteRepository(name="shop", url=f"{host.url}/{path}", **options)  # type: ignore[arg-type]
    return RemoteClone(remote, home, limits=limits)  # type: ignore[arg-type]


async def refused(clone: RemoteClone) -> RemoteError:
    with pytest.raises(RemoteError) as caught:
        await clone.newest()
    return caught.value


@pytest.mark.exhaustive
async def test_the_tags_of_the_branch_come_with_it(host: GitHost, work: GitRepo, tmp_path: Path) -> None:
    shop = clone(host, tmp_path / "home")
    work.git("tag", "v1")
    work.branch("topic")
    work.commit("not followed")
    work.git("tag", "topic-1")
    push(work, "main", "--tags")
    await shop.newest()
    first = run_git(shop.path, "tag")
    work.checkout("main")
    work.commit("second")
    work.git("tag", "-a", "v2", "-m", "The second one")
    push(work, "main", "--tags")
    await shop.newest()

    assert (first, run_git(shop.path, "tag")) == ("v1", "v1\nv2")


@pytest.mark.exhaustive
async def test_a_tag_that_cannot_be_stored_does_not_keep_the_branch_back(
    host: GitHost, work: GitRepo, tmp_path: Path
) -> None:
    shop = clone(host, tmp_path / "home")
    work.git("tag", "v2/beta")
    push(work, "main", "--tags")
    await shop.newest()
    push(work, "--delete", "v2/beta")
    work.git("tag", "-d", "v2/beta")
    work.commit("second")
    work.git("tag", "v2")
    push(work, "main", "--tags")

    assert (await shop.newest()).commit == work.sha()
    assert run_git(shop.path, "tag") == "v2/beta"


async def test_a_push_is_fetched_and_can_be_indexed(host: GitHost, work: GitRepo, tmp_path: Path) -> None:
    shop = clone(host, tmp_path / "home")
    first = await shop.newest()
    index = await CodeIndex.open(shop.path, home=tmp_path / "home", name="shop", web_url="https://git.example/shop")
    try:
        assert (await index.refresh()).commit == first.commit == work.sha()
        work.write("till.py", "def open_till() -> None: ...\n")
        work.commit("second")
        push(work)
        second = await shop.newest()
        report = await index.refresh()
        reader, status = await index.pin(), await index.status()
    finally:
        await index.aclose()
    assert (second.state, second.branch, second.remark) == ("ready", "main", "")
    assert (report.commit, report.changed) == (second.commit, 1) == (work.sha(), 1)
    assert (status.repository, status.branch) == ("shop", "main")
    assert reader.permalink(Location(path="till.py", start_line=1, end_line=1)) == (
        f"https://git.example/shop/blob/{work.sha()}/till.py#L1"
    )


@pytest.mark.exhaustive
async def test_an_index_can_be_opened_before_the_host_ever_answered(tmp_path: Path) -> None:
    shop = RemoteClone(RemoteRepository(name="shop", url="https://git.invalid/team/shop"), tmp_path)
    await shop.prepare()
    index = await CodeIndex.open(shop.path, home=tmp_path, name="shop")

    assert (await index.status()).commit is None
    await index.aclose()


async def test_nothing_new_means_no_fetch(host: GitHost, work: GitRepo, tmp_path: Path) -> None:
    shop = clone(host, tmp_path)
    await shop.newest()
    before = len(host.seen)

    again = await shop.newest()

    assert again.commit == work.sha()
    assert all("git-upload-pack" in seen.path or "info/refs" in seen.path for seen in host.seen[before:])
    assert len(host.seen) - before == 2  # capabilities and the list of branches


@pytest.mark.exhaustive
async def test_only_the_branch_that_is_followed_is_fetched(host: GitHost, work: GitRepo, tmp_path: Path) -> None:
    work.branch("feature")
    other = work.commit("elsewhere")
    push(work)

    shop = clone(host, tmp_path, branch="main")
    tip = await shop.newest()

    assert (tip.branch, tip.commit) == ("main", work.sha("main"))
    assert not await has(shop, other)


@pytest.mark.exhaustive
async def test_no_more_history_is_fetched_than_is_wanted_until_it_is(
    host: GitHost, work: GitRepo, tmp_path: Path
) -> None:
    shallow = clone(host, tmp_path, depth=2)
    for subject in ("second", "third"):
        work.commit(subject)
    push(work)
    first = await shallow.newest()
    assert await commits(shallow) == 2

    for subject in ("fourth", "fifth", "sixth"):  # more than the depth at once, which is not taken for a force-push
        work.commit(subject)
    push(work)
    second = await shallow.newest()
    assert (first.state, second.state, second.commit) == ("ready", "ready", work.sha())
    assert await commits(shallow) == 2

    deep = clone(host, tmp_path)
    assert (await deep.newest()).commit == work.sha()
    assert await commits(deep) == 6


async def test_a_force_push_goes_on_and_is_remarked(host: GitHost, work: GitRepo, tmp_path: Path) -> None:
    shop = clone(host, tmp_path)
    old = (await shop.newest()).commit
    work.git("commit", "--quiet", "--amend", "--message", "rewritten")
    push(work, "--force", "HEAD")

    tip = await shop.newest()

    assert (tip.commit, tip.state) == (work.sha(), "force-pushed")
    assert tip.remark == (f"main was force-pushed: {old[:7]} is no longer part of it. It is now at {work.sha()[:7]}.")
    work.commit("after")
    push(work)
    assert (await shop.newest()).state == "ready"


@pytest.mark.exhaustive
async def test_a_branch_that_is_gone_names_those_that_are_there(host: GitHost, work: GitRepo, tmp_path: Path) -> None:
    work.branch("release")
    push(work)
    shop = clone(host, tmp_path, branch="release")
    kept = (await shop.newest()).commit
    push(work, "--delete", "release")

    error = await refused(shop)

    assert error.state == "branch gone"
    assert "has no branch release: it was deleted or renamed" in str(error)
    assert "Existing branches: main. Set branch to one that exists." in str(error)
    assert await has(shop, kept)


@pytest.mark.exhaustive
async def test_a_renamed_default_branch_is_followed(host: GitHost, work: GitRepo, tmp_path: Path) -> None:
    shop = clone(host, tmp_path)
    await shop.newest()
    bare = GitRepo(host.root / "scratch")  # for its way of running git
    bare.root = host.root / "team/shop.git"
    bare.git("branch", "--move", "main", "trunk")
    bare.git("branch", "trunk-is-a-folder/now", "trunk")
    bare.git("symbolic-ref", "HEAD", "refs/heads/trunk")

    assert (await shop.newest()).branch == "trunk"
    bare.git("branch", "--delete", "--force", "trunk-is-a-folder/now")
    bare.git("branch", "--move", "trunk", "trunk/main")
    tip = await shop.newest()
    assert (tip.branch, tip.commit) == ("trunk/main", work.sha())


@pytest.mark.exhaustive
async def test_a_repository_without_commits_is_told_and_then_noticed(host: GitHost, tmp_path: Path) -> None:
    work = GitRepo(tmp_path / "work")
    work.git("remote", "add", "origin", str(published(work.root, host, "team/new.git")))
    shop = clone(host, tmp_path / "home", path="team/new.git")

    error = await refused(shop)
    work.commit("first")
    push(work)

    assert error.state == "empty"
    assert "has no commit yet. Push one" in str(error)
    assert (await shop.newest()).commit == work.sha()


@pytest.mark.exhaustive
async def test_a_repository_that_moved_is_followed_and_says_where_to(
    host: GitHost, work: GitRepo, tmp_path: Path
) -> None:
    host.moved["/old/"] = f"{host.url}/team/"
    shop = clone(host, tmp_path, path="old/shop.git")

    tip = await shop.newest()

    assert (tip.commit, tip.state) == (work.sha(), "moved")
    assert f"has moved to {host.url}/team/shop.git" in tip.remark


@pytest.mark.exhaustive
async def test_a_redirect_that_only_completes_the_address_is_no_move(
    host: GitHost, work: GitRepo, tmp_path: Path
) -> None:
    host.moved["/team/shop/"] = f"{host.url}/team/shop.git/"

    tip = await clone(host, tmp_path, path="team/shop").newest()

    assert (tip.state, tip.remark) == ("ready", "")


@pytest.mark.parametrize(
    ("status", "state", "words"),
    [
        (404, "not found", "Check url and the token"),
        (410, "not found", "Check url and the token"),
        (403, "auth refused", "Check that the token"),
        (503, "host down", "retried automatically"),
        (429, "host down", "retried automatically"),
        (418, "failed", "could not be fetched"),
        (200, "not found", "There is no repository at"),
    ],
)
@pytest.mark.exhaustive
async def test_what_a_host_answers_is_a_state_and_a_sentence(
    host: GitHost, tmp_path: Path, status: int, state: str, words: str
) -> None:
    host.status = status

    error = await refused(clone(host, tmp_path, token=SecretStr(TOKEN)))

    assert (error.state, words in str(error)) == (state, True), str(error)


async def test_a_host_that_is_down_keeps_what_was_fetched(host: GitHost, work: GitRepo, tmp_path: Path) -> None:
    shop = clone(host, tmp_path)
    kept = (await shop.newest()).commit
    async with serving(GitHost(tmp_path)) as gone:
        down = clone(gone, tmp_path)

    assert (await refused(down)).state == "host down"
    host.status = 500
    assert (await refused(shop)).state == "host down"
    assert await has(shop, kept)


@pytest.mark.exhaustive
async def test_a_host_that_does_not_answer_is_left_after_its_time(host: GitHost, tmp_path: Path) -> None:
    host.silent = asyncio.Event()

    error = await refused(clone(host, tmp_path, limits=FetchLimits(listing=0.5)))

    assert (error.state, "did not answer within 0.5 seconds" in str(error)) == ("host down", True)


@pytest.mark.exhaustive
async def test_a_host_that_says_more_than_anybody_wants_to_know_is_left(
    host: GitHost, work: GitRepo, tmp_path: Path
) -> None:
    for number in range(50):
        work.git("branch", f"topic{number}")
    push(work, "--all")

    error = await refused(clone(host, tmp_path, limits=FetchLimits(saying=2_000)))

    assert (error.state, "sent more than any repository needs" in str(error)) == ("failed", True)
    assert (await clone(host, tmp_path).newest()).commit == work.sha()


@pytest.mark.exhaustive
async def test_a_host_that_stops_sending_is_left(host: GitHost, work: GitRepo, tmp_path: Path) -> None:
    host.silent, host.patience = asyncio.Event(), 5

    error = await refused(clone(host, tmp_path, limits=FetchLimits(stalling=2)))

    assert (error.state, "too slow" in str(error)) == ("host down", True), str(error)
    assert host.asked.is_set()


@pytest.mark.exhaustive
async def test_a_cancelled_fetch_leaves_no_process_and_no_lock(host: GitHost, work: GitRepo, tmp_path: Path) -> None:
    host.silent = asyncio.Event()
    shop = clone(host, tmp_path)
    fetching = asyncio.create_task(shop.newest())
    await wait_for(host.asked.wait(), "host.asked")
    fetching.cancel()
    await wait_for_end(fetching, "the end of fetching")
    assert fetching.cancelled()
    assert not [line for line in command_lines().splitlines() if "ls-remote" in line and str(shop.path) in line]
    host.silent.set()

    assert (await shop.newest()).commit == work.sha()


@pytest.mark.parametrize("request_number", [1, 2, 3, 4])
@pytest.mark.exhaustive
async def test_a_fetch_that_was_cut_off_anywhere_is_made_good(
    host: GitHost, work: GitRepo, tmp_path: Path, request_number: int
) -> None:
    shop = clone(host, tmp_path)
    kept = (await shop.newest()).commit
    work.commit("second")
    push(work)
    host.seen.clear()
    host.silent, host.patience = asyncio.Event(), request_number
    fetching = asyncio.create_task(shop.newest())
    await wait_for(host.asked.wait(), "host.asked")
    fetching.cancel()
    await wait_for_end(fetching, "the end of fetching")
    assert fetching.cancelled()
    assert await has(shop, kept)
    host.silent.set()

    assert (await clone(host, tmp_path).newest()).commit == work.sha()


FETCH = """
import asyncio, sys
from pathlib import Path
from indexer.remotes.clone import RemoteClone
from indexer.remotes.remote_repository import RemoteRepository
asyncio.run(RemoteClone(RemoteRepository(name="shop", url=sys.argv[1]), Path(sys.argv[2])).newest())
"""


@pytest.mark.exhaustive
async def test_a_process_that_is_killed_while_it_fetches_leaves_git_the_lock(
    host: GitHost, work: GitRepo, tmp_path: Path
) -> None:
    host.silent, host.patience = asyncio.Event(), 4
    shop = clone(host, tmp_path)
    other = await asyncio.create_subprocess_exec(sys.executable, "-c", FETCH, shop.remote.url, str(tmp_path), cwd=ROOT)
    await wait_for(host.asked.wait(), "host.asked")
    other.kill()
    await wait_for(other.wait(), "other")

    with pytest.raises(StorageLocked):
        await shop.newest()
    host.silent.set()
    async with expect("a process that is killed while it fetches leaves git the lock"):
        while (commit := await unless_locked(shop)) is None:  # noqa: ASYNC110 - a lock tells nobody that it is free
            await asyncio.sleep(0.05)
    assert commit == work.sha()


async def unless_locked(clone: RemoteClone) -> str | None:
    try:
        return (await clone.newest()).commit
    except StorageLocked:
        return None


def overwrite_head(path: Path) -> None:
    (path / "HEAD").write_bytes(b"\0")


def overwrite_config(path: Path) -> None:
    (path / "config").write_bytes(b"[core\n\0")


def lose_refs(path: Path) -> None:
    shutil.rmtree(path / "refs")


def lose_objects(path: Path) -> None:
    shutil.rmtree(path / "objects")
    (path / "objects").mkdir()


def overwrite_objects(path: Path) -> None:
    for each in [each for each in (path / "objects").rglob("*") if each.is_file()]:
        each.chmod(0o600)
        each.write_bytes(b"\xa5" * each.stat().st_size)


@pytest.mark.parametrize("damage", [overwrite_head, overwrite_config, lose_refs, lose_objects, overwrite_objects])
async def test_a_damaged_clone_is_fetched_again_and_said_so(
    damage: Callable[[Path], None], host: GitHost, work: GitRepo, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    shop = clone(host, tmp_path)
    await shop.newest()
    damage(shop.path)
    work.write("more.py", "more = 1\n")
    work.commit()
    push(work)

    assert (await shop.newest()).commit == work.sha()

    run_git(shop.path, "fsck", "--strict")
    assert damage in {lose_refs, lose_objects} or "was damaged and is fetched again" in caplog.text


@pytest.mark.exhaustive
async def test_a_damaged_clone_keeps_no_index_from_being_opened(host: GitHost, work: GitRepo, tmp_path: Path) -> None:
    shop = clone(host, tmp_path)
    await shop.newest()
    index = await CodeIndex.open(shop.path, home=tmp_path)
    await index.refresh()
    await index.aclose()
    overwrite_head(shop.path)

    await shop.prepare()
    index = await CodeIndex.open(shop.path, home=tmp_path)
    try:
        assert (await index.pin()).commit.sha == work.sha()  # what was indexed answers on
        await shop.newest()
        assert await index.is_current()
    finally:
        await index.aclose()


@pytest.mark.exhaustive
async def test_objects_that_turn_out_damaged_when_they_are_indexed_are_fetched_again(
    host: GitHost, work: GitRepo, tmp_path: Path
) -> None:
    shop = clone(host, tmp_path)
    await shop.newest()
    for blob in (shop.path / "objects").rglob("*"):
        if blob.is_file() and blob.suffix not in {".idx", ".rev"}:
            blob.chmod(0o600)
            data = blob.read_bytes()
            blob.write_bytes(data[: len(data) // 2] + b"\xa5" * (len(data) - len(data) // 2))
    await shop.prepare()
    index = await CodeIndex.open(shop.path, home=tmp_path)
    try:
        jobs = LocalRefreshJobs()
        library = RepositoryLibrary({"shop": index}, LoggingDisplay(), jobs, clones={"shop": shop})
        async with jobs.work_on_refreshes(library.index_now):
            assert (await library.index_here("shop")).commit == work.sha()
    finally:
        await index.aclose()


async def test_a_token_signs_in_and_is_shown_nowhere(
    host: GitHost, work: GitRepo, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    host.password = TOKEN
    shop = clone(host, tmp_path / "home", token=SecretStr(TOKEN))

    assert (await shop.newest()).commit == work.sha()

    signed = {seen.authorization for seen in host.seen if seen.authorization}
    assert signed == {"Basic " + base64.b64encode(f"x-access-token:{TOKEN}".encode()).decode()}
    assert any("ls-remote" in lines for lines in host.processes)
    assert not any(TOKEN in lines for lines in host.processes)
    kept = [path.read_bytes() for path in (tmp_path / "home").rglob("*") if path.is_file()]
    assert not any(TOKEN.encode() in data for data in kept)
    assert TOKEN not in caplog.text
    assert TOKEN not in repr(shop.remote)


@pytest.mark.parametrize("token", [None, SecretStr("revoked-token")])
@pytest.mark.exhaustive
async def test_a_refused_sign_in_prompts_nobody_and_names_no_token(
    host: GitHost, work: GitRepo, tmp_path: Path, token: SecretStr | None
) -> None:
    host.password = TOKEN

    error = await refused(clone(host, tmp_path, token=token))

    assert error.state == "auth refused"
    assert "refused the sign-in" in str(error)
    assert "revoked-token" not in f"{error!r} {error.__cause__!r}"


@pytest.mark.exhaustive
async def test_a_host_redirected_to_gets_no_token(host: GitHost, work: GitRepo, tmp_path: Path) -> None:
    host.password = TOKEN
    async with serving(GitHost(tmp_path / "other", password="x"), "127.0.0.2") as other:
        host.moved["/away/"] = f"{other.url}/team/"

        error = await refused(clone(host, tmp_path, path="away/shop.git", token=SecretStr(TOKEN)))

        assert error.state == "auth refused"
        assert [seen.authorization for seen in other.seen] == [None] * len(other.seen) != []


@pytest.mark.exhaustive
async def test_a_redirect_to_a_file_is_not_followed(host: GitHost, work: GitRepo, tmp_path: Path) -> None:
    host.moved["/away/"] = f"file://{host.root}/team/"

    error = await refused(clone(host, tmp_path, path="away/shop.git"))

    assert (error.state, "Set url to its new address" in str(error)) == ("moved", True), str(error)


@pytest.mark.exhaustive
async def test_a_branch_that_is_no_utf8_is_followed_and_shown(host: GitHost, work: GitRepo, tmp_path: Path) -> None:
    work.branch("caf\udce9")
    work.commit("second")
    push(work)
    shop = clone(host, tmp_path / "home", branch="caf\udce9")

    assert (await shop.newest()).commit == work.sha()
    assert (await shop.newest()).branch == "caf\\xe9"
    assert "Existing branches: caf\\xe9, main." in str(await refused(clone(host, tmp_path / "other", branch="none")))


@pytest.mark.exhaustive
async def test_a_file_is_fetched_from_where_the_operator_says(work: GitRepo, tmp_path: Path) -> None:
    shop = RemoteClone(RemoteRepository(name="shop", url=str(work.root)), tmp_path / "home")

    assert (await shop.newest()).commit == work.sha()
    shutil.rmtree(work.root)
    assert (await refused(shop)).state == "not found"


async def test_hooks_and_settings_of_a_repository_run_nothing(work: GitRepo, tmp_path: Path) -> None:
    trap = tmp_path / "ran"
    shop = RemoteClone(RemoteRepository(name="shop", url=str(work.root)), tmp_path / "home")
    await shop.prepare()
    for place in (work.root / ".git", shop.path):
        (place / "hooks").mkdir(exist_ok=True)
        for hook in ("reference-transaction", "post-update", "post-checkout"):
            (place / "hooks" / hook).write_text(f"#!/bin/sh\ntouch {trap}\n")
            (place / "hooks" / hook).chmod(0o755)
    work.git("config", "uploadpack.packObjectsHook", f"touch {trap};")

    await shop.newest()

    assert not trap.exists()


@pytest.mark.exhaustive
async def test_locks_left_by_a_killed_git_are_taken_away(host: GitHost, work: GitRepo, tmp_path: Path) -> None:
    shop = clone(host, tmp_path)
    await shop.newest()
    (shop.path / "refs/citebot/incoming.lock").touch()
    (shop.path / "refs/heads/main.lock").touch()
    work.commit("second")
    push(work)

    assert (await shop.newest()).commit == work.sha()


@pytest.mark.exhaustive
async def test_two_processes_do_not_fetch_into_one_clone(host: GitHost, work: GitRepo, tmp_path: Path) -> None:
    host.silent = asyncio.Event()
    one, two = clone(host, tmp_path), clone(host, tmp_path)
    first = asyncio.create_task(one.newest())
    await wait_for(host.asked.wait(), "host.asked")

    with pytest.raises(StorageLocked, match="Another citebot is fetching shop"):
        await two.newest()
    host.silent.set()
    assert (await first).commit == work.sha()


@pytest.mark.exhaustive
async def test_a_clone_that_was_deleted_is_made_again(host: GitHost, work: GitRepo, tmp_path: Path) -> None:
    shop = clone(host, tmp_path)
    await shop.newest()
    shutil.rmtree(shop.path)

    assert (await shop.newest()).commit == work.sha()


@pytest.mark.exhaustive
async def test_twenty_repositories_are_fetched_side_by_side(host: GitHost, work: GitRepo, tmp_path: Path) -> None:
    remotes = [RemoteRepository(name=f"shop-{number}", url=f"{host.url}/team/shop.git") for number in range(20)]
    clones = open_clones(remotes, tmp_path, at_once=2)

    tips = await asyncio.gather(*(each.newest() for each in clones))

    assert {tip.commit for tip in tips} == {work.sha()}
    assert len({each.path for each in clones}) == 20


async def has(clone: RemoteClone, commit: str) -> bool:
    """Whether a commit is in a clone."""
    process = await asyncio.create_subprocess_exec(
        "git", f"--git-dir={clone.path}", "cat-file", "-e", commit, stderr=asyncio.subprocess.DEVNULL
    )
    return await wait_for(process.wait(), "process") == 0


async def commits(clone: RemoteClone) -> int:
    """How many commits are in a clone up to its HEAD."""
    process = await asyncio.create_subprocess_exec(
        "git", f"--git-dir={clone.path}", "rev-list", "--count", "HEAD", stdout=asyncio.subprocess.PIPE
    )
    output, _ = await wait_for(process.communicate(), "process.communicate()")
    return int(output)


FULL = """
cat >try.py <<'EOF'
import asyncio, os, sys
from pathlib import Path
from indexer.errors import IndexerError
from indexer.remotes.clone import RemoteClone
from indexer.remotes.remote_repository import RemoteRepository
remote = RemoteRepository(name="shop", url=os.getcwd())
clone = RemoteClone(remote, Path(os.environ["CITEBOT_HOME"]))
async def look():
    try:
        print((await clone.newest()).state)
    except IndexerError as error:
        print(getattr(error, "state", type(error).__name__), error)
async def main():
    await look()
    for command in sys.argv[1:]:
        os.system(command)
        await look()
asyncio.run(main())
EOF
"$0" try.py "head -c 3000000 /dev/urandom >big; git add big; git -c user.name=a -c user.email=a@b commit -qm big" \
  "mount -o remount,size=40m $CITEBOT_HOME"
"""


@pytest.mark.needs("mounts")
@pytest.mark.exhaustive
def test_a_full_disk_is_told_and_gone_on_from_when_there_is_room(
    work: GitRepo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CITEBOT_HOME", str(tmp_path / "home"))
    done = mounted("size=1m", FULL, work.root, tmp_path / "home")

    first, full, later = done.stdout.splitlines()
    assert (first, later) == ("ready", "ready"), done.stderr
    assert full.startswith("disk full There is no space on the disk for the clone of shop.")


SSH = """#!/bin/sh
case "$*" in *BatchMode=yes*) ;; *) exit 9 ;; esac
case "$*" in
  *denied@*) echo "denied@git.example: Permission denied (publickey)." >&2; exit 255 ;;
  *unknown@*) echo "Host key verification failed." >&2; exit 255 ;;
esac
for last; do :; done
exec sh -c "$last"
"""


@pytest.mark.parametrize(
    ("user", "state"), [("git", "ready"), ("denied", "auth refused"), ("unknown", "host not trusted")]
)
@pytest.mark.exhaustive
async def test_over_ssh_the_agent_signs_in_and_nobody_is_asked(
    work: GitRepo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, user: str, state: str
) -> None:
    ssh = tmp_path / "bin/ssh"
    ssh.parent.mkdir()
    ssh.write_text(SSH)
    ssh.chmod(0o755)
    monkeypatch.setenv("PATH", str(ssh.parent), prepend=":")
    monkeypatch.setenv("GIT_SSH_COMMAND", "false")
    shop = RemoteClone(RemoteRepository(name="shop", url=f"{user}@git.example:{work.root}"), tmp_path / "home")

    assert (await shop.newest() if state == "ready" else await refused(shop)).state == state
