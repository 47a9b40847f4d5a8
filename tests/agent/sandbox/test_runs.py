"""Commands in a sandbox: their limits, how they end, and that they leave nothing behind."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from agent.errors import SandboxUnavailable
from agent.sandbox import supervision
from agent.sandbox.box_folders import find_user
from agent.sandbox.boxes import Bubblewrap, Landlock, PythonEnvironment, try_sandbox
from agent.sandbox.memory_group import find_memory_group
from agent.sandbox.sandbox import Channel, Ending, Execution, Sandbox, SandboxCommand, SandboxLimits
from agent.sandbox.supervision import SOCKET_BYTES, measure_memory
from indexer.subprocesses import start_confined_async
from tests.agent.sandbox.conftest import MECHANISMS
from tests.agent.sandbox.surroundings import SYSTEM_PATH, Surroundings, list_processes
from tests.waiting import LIMIT_SECONDS, block_for, block_until, wait_for, wait_until

ROOT = Path(__file__).parents[3]
MEGABYTE = 1 << 20
LIMITS = SandboxLimits(
    seconds=20, cpu_seconds=20, address_bytes=1024 * MEGABYTE, memory_bytes=600 * MEGABYTE, file_bytes=20 * MEGABYTE,
    disk_bytes=60 * MEGABYTE, files=2_000, processes=40, output_bytes=MEGABYTE, kept_bytes=1000,
)  # fmt: skip
JAVA = 'class A { public static void main(String[] a) { System.out.println(String.join(",", "2", "4", "6")); } }'
SCRIPT = "console.log([1, 2, 3].map(n => 2 * n).join())"
# Writes to files that no folder has any more.
REMOVED_FILES = """
import ctypes, os, time
libc = ctypes.CDLL(None)
def hold(file):
    held.append(file)
def map(file):
    libc.mmap(None, ctypes.c_long(10 << 20), 1, 1, file.fileno(), ctypes.c_long(0)); file.close()
held = []
for _ in range(12):
    file = open('f', 'wb+', buffering=0); os.unlink('f')
    file.write(b'x' * (10 << 20))
    hold(file)
time.sleep(10)
"""
FORK_BOMB = """
import os, signal
def children():
    while True:
        try:
            if os.fork() == 0:
                signal.pause()
        except OSError:
            return
        yield
print(sum(1 for _ in zip(children(), range(400))))
"""
DAEMON = """
import os, signal, sys, time
if os.fork() == 0:
    os.setsid()
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    if os.fork() == 0:
        time.sleep(600)
    os._exit(0)
time.sleep(float(sys.argv[1]))
"""


def python(program: str, *arguments: str) -> SandboxCommand:
    return SandboxCommand(argv=["python3", "-c", program, *arguments])


async def run(
    sandbox: Sandbox, surroundings: Surroundings, command: SandboxCommand, limits: SandboxLimits = LIMITS
) -> Execution:
    return await sandbox.run(command, surroundings.make_working_copy(), limits)


async def test_a_command_gets_its_input_and_gives_its_outputs_and_its_code(
    sandbox: Sandbox, surroundings: Surroundings
) -> None:
    command = SandboxCommand(
        argv=["sh", "-c", "cat; echo $WORD >&2; exit 7"], stdin=b"in\nput", variables={"WORD": "x"}
    )

    result = await run(sandbox, surroundings, command)

    assert (result.ending, result.exit_code) == ("exited", 7)
    assert (result.stdout.text, result.stderr.text) == ("in\nput", "x\n")


async def test_what_a_command_writes_stays_in_the_working_copy_alone(
    sandbox: Sandbox, surroundings: Surroundings
) -> None:
    tree = surroundings.make_working_copy()
    command = SandboxCommand(argv=["sh", "-c", "echo kept > here; echo gone > $TMPDIR/a; echo gone > $HOME/b; pwd"])

    await sandbox.run(command, tree, LIMITS)
    again = await sandbox.run(SandboxCommand(argv=["sh", "-c", "cat here; ls $TMPDIR $HOME"]), tree, LIMITS)

    assert again.stdout.text.splitlines()[0] == "kept"
    assert "gone" not in again.stdout.text
    assert [path.name for path in tree.parent.iterdir()] == ["tree"]


@pytest.mark.exhaustive
async def test_a_command_that_shuts_its_folders_hinders_no_other(sandbox: Sandbox, surroundings: Surroundings) -> None:
    tree = surroundings.make_working_copy()
    shut = "import os\nfor folder in ('.', os.environ['HOME'], os.environ['TMPDIR']):\n    os.chmod(folder, 0)"

    first = await sandbox.run(python(shut), tree, LIMITS)
    again = await sandbox.run(SandboxCommand(argv=["sh", "-c", "echo kept > here; cat here"]), tree, LIMITS)

    assert (first.ending, first.exit_code) == ("exited", 0)
    assert again.stdout.text == "kept\n"
    assert [path.name for path in tree.parent.iterdir()] == ["tree"]


@pytest.mark.exhaustive
async def test_support_files_can_be_read_and_not_changed_and_a_report_is_handed_out(
    sandbox: Sandbox, surroundings: Surroundings
) -> None:
    program = """
import os
os.write(int(os.environ["SANDBOX_REPORT"]), open(os.environ["SANDBOX_SUPPORT"] + "/words").read().encode())
open(os.environ["SANDBOX_SUPPORT"] + "/words", "w")
"""
    command = SandboxCommand(argv=["python3", "-c", program], support={"words": b"some words"})

    result = await run(sandbox, surroundings, command)

    assert result.report == b"some words"
    assert result.exit_code == 1
    assert result.stderr.text.splitlines()[-1].startswith(("OSError", "PermissionError"))


@pytest.mark.exhaustive
async def test_output_is_shown_while_the_command_runs(sandbox: Sandbox, surroundings: Surroundings) -> None:
    pieces: list[tuple[Channel, bytes]] = []
    shown = asyncio.Event()

    def say(channel: Channel, data: bytes) -> None:
        pieces.append((channel, data))
        shown.set()

    command = SandboxCommand(argv=["sh", "-c", "echo first; exec sleep 600"])
    running = asyncio.create_task(sandbox.run(command, surroundings.make_working_copy(), LIMITS, say=say))
    await shown.wait()

    assert pieces == [("stdout", b"first\n")]
    assert not running.done()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


@pytest.mark.exhaustive
async def test_an_unknown_program_is_told_as_a_shell_tells_it(sandbox: Sandbox, surroundings: Surroundings) -> None:
    result = await run(sandbox, surroundings, SandboxCommand(argv=["no-such-program"]))

    assert (result.ending, result.exit_code) == ("exited", 127)
    assert "no-such-program" in result.stderr.text


@pytest.mark.exhaustive
async def test_a_signal_is_told_as_a_shell_tells_it(sandbox: Sandbox, surroundings: Surroundings) -> None:
    result = await run(sandbox, surroundings, python("import os; os.abort()"))

    assert (result.ending, result.exit_code) == ("exited", 128 + signal.SIGABRT)


@pytest.mark.parametrize(
    ("program", "changes", "ending"),
    [
        ("while True: pass", {"seconds": 1.0}, "timeout"),
        ("import os, signal; os.kill(0, signal.SIGSTOP); os.kill(-1, signal.SIGSTOP)", {"seconds": 1.0}, "timeout"),
        ("input(); import time; time.sleep(600)", {"seconds": 1.0}, "exited"),
        ("while True: print('x' * 5000)", {}, "output"),
        ("import sys\nwhile True: sys.stderr.write('x' * 5000)", {}, "output"),
        ("import os, time\nfor _ in range(2): os.fork()\nx = b'x' * (60 << 20); time.sleep(60)",
         {"memory_bytes": 200 * MEGABYTE}, "memory"),
        ("for n in range(9999): open(str(n), 'wb').write(b'x' * (10 << 20))", {}, "files"),
        (REMOVED_FILES, {}, "files"),
        (REMOVED_FILES.replace("    hold(file)", "    map(file)"), {}, "files"),
        ("import os\nfor n in range(200): os.mkdir('d'); os.chdir('d')", {}, "files"),
        ("import os\nfor n in range(400): os.mkdir(os.environ['TMPDIR'] + '/' + str(n))", {"files": 300}, "files"),
    ],
)  # fmt: skip
async def test_a_limit_ends_the_command_and_is_told(
    sandbox: Sandbox, surroundings: Surroundings, program: str, changes: dict[str, float], ending: Ending
) -> None:
    limits = SandboxLimits(**{**{name: getattr(LIMITS, name) for name in LIMITS.__slots__}, **changes})

    result = await run(sandbox, surroundings, python(program), limits)

    assert result.ending == ending, result.stderr.text
    assert len(result.stdout.head + result.stdout.tail) <= LIMITS.kept_bytes


@pytest.mark.exhaustive
async def test_output_keeps_its_beginning_and_its_end(sandbox: Sandbox, surroundings: Surroundings) -> None:
    program = "print('begin'); print('x' * 10_000); print('end')"

    result = await run(sandbox, surroundings, python(program))

    assert result.stdout.text.startswith("begin\nxxx")
    assert result.stdout.text.endswith("xxx\nend\n")
    assert f"[... {10_000 + 11 - 1000:,} bytes left out ...]" in result.stdout.text


@pytest.mark.exhaustive
async def test_a_fork_bomb_gets_no_further_than_its_limit(sandbox: Sandbox, surroundings: Surroundings) -> None:
    result = await run(sandbox, surroundings, python(FORK_BOMB))

    assert 20 <= int(result.stdout.text) <= LIMITS.processes


@pytest.mark.parametrize(
    ("program", "error"),
    [
        ("x = bytearray(2 << 30)", "MemoryError"),
        ("open('f', 'wb').write(b'x' * (30 << 20))", "File too large"),
        ("open('f', 'wb').truncate(10 << 30)", "File too large"),
    ],
)
async def test_a_process_gets_no_more_memory_and_no_larger_file(
    sandbox: Sandbox, surroundings: Surroundings, program: str, error: str
) -> None:
    result = await run(sandbox, surroundings, python(f"import signal; signal.signal(25, signal.SIG_IGN)\n{program}"))

    assert (result.ending, result.exit_code) == ("exited", 1)
    assert error in result.stderr.text


@pytest.mark.exhaustive
async def test_processor_time_is_limited(sandbox: Sandbox, surroundings: Surroundings) -> None:
    limits = SandboxLimits(cpu_seconds=1, seconds=20)

    result = await run(sandbox, surroundings, python("while True: pass"), limits)

    assert (result.ending, result.exit_code) == ("exited", 128 + signal.SIGKILL)


async def test_nothing_outlives_a_command_that_ends(sandbox: Sandbox, surroundings: Surroundings) -> None:
    marker = f"marker-{os.urandom(8).hex()}"

    result = await run(sandbox, surroundings, python(DAEMON, "0", marker))

    assert result.ending == "exited"
    assert list_processes(marker) == []


@pytest.mark.exhaustive
async def test_nothing_outlives_a_command_that_is_cancelled(sandbox: Sandbox, surroundings: Surroundings) -> None:
    marker = f"marker-{os.urandom(8).hex()}"
    command, begun = python(f"print(1, flush=True)\n{DAEMON}", "600", marker), asyncio.Event()
    tree = surroundings.make_working_copy()
    running = asyncio.create_task(sandbox.run(command, tree, LIMITS, say=lambda *_: begun.set()))
    await begun.wait()

    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running

    await wait_until(lambda: not list_processes(marker), "the end of every process of the command")


@pytest.mark.parametrize("turns", [0, 2, 5, 20, None])
@pytest.mark.exhaustive
async def test_nothing_outlives_a_start_that_is_cancelled(
    sandbox: Sandbox, surroundings: Surroundings, turns: int | None
) -> None:
    marker = f"marker-{os.urandom(8).hex()}"
    running = asyncio.create_task(run(sandbox, surroundings, python(DAEMON, "600", marker)))
    for _ in range(turns or 0):
        await asyncio.sleep(0)
    if turns is None:
        await wait_until(lambda: list_processes(marker), "a first process")
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running

    await wait_until(lambda: not list_processes(marker), "the end of every process of the command")


CITEBOT = """
import asyncio, sys
from pathlib import Path
from agent.sandbox.boxes import Bubblewrap
from agent.sandbox.boxes import PythonEnvironment
from agent.sandbox.boxes import Landlock
from agent.sandbox.sandbox import SandboxCommand, SandboxLimits
from indexer.subprocesses import start_confined_async
mechanism = {"bubblewrap": Bubblewrap, "Landlock": Landlock}[sys.argv[1]]
sandbox = mechanism(start_confined_async, PythonEnvironment())
command = SandboxCommand(argv=["python3", "-c", *sys.argv[3:]])
print("ready", flush=True)
asyncio.run(sandbox.run(command, Path(sys.argv[2]), SandboxLimits(), say=lambda *_: print("began", flush=True)))
"""


@pytest.mark.parametrize("reached", ["ready", "a process", "began"])
@pytest.mark.exhaustive
def test_nothing_outlives_citebot_when_it_is_killed(sandbox: Sandbox, surroundings: Surroundings, reached: str) -> None:
    marker = f"marker-{os.urandom(8).hex()}"
    arguments = [sandbox.mechanism, str(surroundings.make_working_copy()), f"print(1, flush=True)\n{DAEMON}", "600"]
    with subprocess.Popen(
        [sys.executable, "-c", CITEBOT, *arguments, marker], cwd=ROOT, stdout=subprocess.PIPE
    ) as citebot:
        assert citebot.stdout is not None
        citebot.stdout.readline()
        if reached == "a process":
            block_until(lambda: len(list_processes(marker)) > 1, "a process beside citebot's own")
        elif reached == "began":
            citebot.stdout.readline()
        citebot.kill()

    block_until(lambda: not list_processes(marker), "the end of every process of the command")


@pytest.mark.exhaustive
async def test_a_command_has_no_descriptor_of_citebots_and_cannot_change_what_is_told_of_it(
    sandbox: Sandbox, surroundings: Surroundings
) -> None:
    program = """
import glob, os
report = int(os.environ["SANDBOX_REPORT"])
def is_open(number):
    try:
        return bool(os.fstat(number))
    except OSError:
        return False
print([number for number in range(3, 2_000) if is_open(number)] == [report], flush=True)
known = {(status.st_dev, status.st_ino) for status in map(os.fstat, (0, 1, 2, report))}
for path in glob.glob("/proc/[0-9]*/fd/*"):
    try:
        target = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
        status = os.fstat(target)
        if (status.st_dev, status.st_ino) not in known and os.write(target, b'{"exit-code": 0}'):
            print("written", os.readlink(path), flush=True)
    except OSError:
        pass
os._exit(3)
"""
    with ExitStack() as busy:  # a process with so much open gives higher numbers than a command may have
        for _ in range(LIMITS.descriptors):
            busy.callback(os.close, os.open(os.devnull, os.O_RDONLY))
        result = await sandbox.run(
            python(program), surroundings.make_working_copy(), replace(LIMITS, seconds=LIMIT_SECONDS)
        )
    assert (result.ending, result.exit_code, result.stdout.text) == ("exited", 3, "True\n")


@pytest.mark.exhaustive
async def test_sockets_hold_no_more_than_is_counted_for_them(sandbox: Sandbox, surroundings: Surroundings) -> None:
    program = """
import resource, socket
one, two = socket.socketpair()
one.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 8 << 20)
print(one.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF), resource.getrlimit(resource.RLIMIT_NOFILE)[1])
try:
    print(open("/proc/self/oom_score_adj").read())
except PermissionError:  # Landlock shows nothing of /proc
    print(1000)
"""
    result = await sandbox.run(python(program), surroundings.make_working_copy(), LIMITS)
    assert result.stdout.text.split() == [str(SOCKET_BYTES), "256", "1000"], result.stderr.text


async def test_what_a_pipe_holds_of_memory_that_was_given_back_cannot_grow(
    sandbox: Sandbox, surroundings: Surroundings
) -> None:
    program = """
import ctypes, os
print(ctypes.CDLL(None).vmsplice(os.pipe()[1], (ctypes.c_void_p * 2)(ctypes.addressof(ctypes.c_int()), 1), 1, 0))
"""
    result = await sandbox.run(python(program), surroundings.make_working_copy(), LIMITS)
    assert result.stdout.text == "-1\n", result.stderr.text


async def test_a_box_is_ended_before_the_machine_has_no_memory_left(
    sandbox: Sandbox, surroundings: Surroundings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the kernel holds for it, and however many files it has, which take long to look at."""
    machine, looked = tmp_path / "meminfo", threading.Event()
    machine.write_text("MemTotal: 1600 kB\nMemAvailable: 1000 kB\n", encoding="ascii")
    monkeypatch.setattr(supervision, "_MACHINE", machine)
    monkeypatch.setattr(supervision, "exceeds", lambda *_, **__: block_for(looked, "the end of the box"))

    def say(_: Channel, __: bytes) -> None:
        machine.write_text("MemTotal: 1600 kB\nMemAvailable: 99 kB\n", encoding="ascii")

    command = SandboxCommand(argv=["sh", "-c", "echo filled; exec sleep 600"])
    try:
        result = await sandbox.run(command, surroundings.make_working_copy(), LIMITS, say=say)
    finally:
        looked.set()

    assert result.ending == "memory"


async def test_a_control_group_ends_what_takes_too_much_memory(surroundings: Surroundings) -> None:
    group = await find_memory_group(start_confined_async)
    if group is None:
        pytest.skip("this machine lets citebot have no control group")
    program = "import resource; print(resource.getrlimit(resource.RLIMIT_NOFILE)[1], flush=True); bytearray(200 << 20)"
    limits = SandboxLimits(seconds=30, memory_bytes=64 << 20)
    async with group.open(limits) as member:
        outside = await start_confined_async([*member.prefix, sys.executable, "-c", program])
        await wait_for(outside.wait(), "the end of the program")
        assert member.is_exceeded()
    for make in MECHANISMS.values():
        box = make(start_confined_async, PythonEnvironment(), group)
        result = await box.run(python(program), surroundings.make_working_copy(), limits)
        assert (result.ending, result.stdout.text) == ("memory", "1024\n"), result.stderr.text
    assert not [*group.parent.glob(f"citebot-{os.getpid()}-*")]


@pytest.mark.exhaustive
@pytest.mark.parametrize(("program", "line"), [("node", f"node -e '{SCRIPT}'"), ("javac", "java A.java")])
async def test_what_reserves_much_address_space_runs(
    sandbox: Sandbox, surroundings: Surroundings, program: str, line: str
) -> None:
    if shutil.which(program, path=SYSTEM_PATH) is None:
        pytest.skip(f"there is no {program} in {SYSTEM_PATH}")
    command = SandboxCommand(argv=["sh", "-c", f"echo '{JAVA}' > A.java && {line}"])
    result = await sandbox.run(command, surroundings.make_working_copy(), SandboxLimits(seconds=60))
    assert result.stdout.text == "2,4,6\n", result.stderr.text


@pytest.mark.exhaustive
def test_what_sockets_may_hold_counts_as_memory() -> None:
    program = "import socket; held = [socket.socketpair() for _ in range(50)]; print(1, flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        assert measure_memory(process.pid) > 100 * SOCKET_BYTES
        process.communicate("\n")


@pytest.mark.exhaustive
async def test_a_command_is_never_root_and_has_no_rights(sandbox: Sandbox, surroundings: Surroundings) -> None:
    program = "import os; print(os.getuid(), os.getgroups(), flush=True); import time; time.sleep(60)"
    marker, said = f"marker-{os.urandom(8).hex()}", asyncio.Queue[bytes]()
    command, tree = python(program, marker), surroundings.make_working_copy()
    running = asyncio.create_task(sandbox.run(command, tree, LIMITS, say=lambda _, data: said.put_nowait(data)))

    assert (await said.get()).split()[0] != b"0"
    folders = [Path(f"/proc/{process}") for process in list_processes(marker)]
    found = [(each, await asyncio.to_thread((each / "cmdline").read_bytes)) for each in folders]
    paths = [folder / "status" for folder, line in found if b"box_watch" not in line]  # outside, and as citebot
    statuses = [await asyncio.to_thread(path.read_text) for path in paths]
    inside = [status for status in statuses if re.match(r"Name:\s*python", status)]
    assert inside
    for status in inside:
        assert re.findall(r"Uid:\s*(\d+)", status) == [str(find_user() or os.geteuid())]
        assert re.findall(r"CapEff:\s*(\w+)", status) == ["0" * 16]
        assert re.findall(r"Groups:(.*)", status)[0].split() in ([], [str(os.getegid())])
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


@pytest.mark.exhaustive
async def test_two_commands_side_by_side_do_not_touch_each_other(sandbox: Sandbox, surroundings: Surroundings) -> None:
    first, second = (surroundings.make_working_copy() for _ in range(2))
    program = "import os, sys\nprint(os.path.exists(sys.argv[1] + '/mine') and open(sys.argv[1] + '/mine').read())"
    (first / "mine").write_text("hidden")

    result = await sandbox.run(python(program, str(first)), second, LIMITS)

    assert "hidden" not in result.stdout.text


@pytest.mark.parametrize("mechanism", [Bubblewrap, Landlock])
async def test_what_cannot_be_confined_is_not_run(
    surroundings: Surroundings, mechanism: Callable[..., Sandbox], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(surroundings.root))
    monkeypatch.setattr(sys, "executable", str(surroundings.root / "no-python"))
    tree = surroundings.make_working_copy()

    with pytest.raises(SandboxUnavailable, match="cannot be started"):
        await mechanism(start_confined_async, PythonEnvironment()).run(
            SandboxCommand(argv=["touch", "ran"]), tree, LIMITS
        )

    assert list(tree.iterdir()) == []


@pytest.mark.exhaustive
async def test_a_trial_tells_what_does_not_hold(sandbox: Sandbox, surroundings: Surroundings) -> None:
    class Open:
        """Runs what it is given without any walls."""

        mechanism = "none"

        async def run(
            self,
            command: SandboxCommand,
            working_copy: Path,
            limits: SandboxLimits,
            *,
            say: Callable[[Channel, bytes], None] | None = None,
        ) -> Execution:
            process = await asyncio.create_subprocess_exec(
                *command.argv, cwd=working_copy, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
            )
            output, _ = await process.communicate()
            tree = surroundings.make_working_copy()
            return await sandbox.run(SandboxCommand(argv=["cat"], stdin=output), tree, limits)

    trial = await try_sandbox(Open(), surroundings.root)

    assert "a file of the machine can be read" in trial.problem
    assert "no filter of system calls is loaded" in trial.problem
