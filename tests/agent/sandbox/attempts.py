"""Programs that try to get out of a sandbox: each prints OUT where it does, and fails or prints nothing else."""

from __future__ import annotations

import json
from collections.abc import Mapping

from agent.sandbox.sandbox import SandboxCommand

# Makes each attempt in a process and a folder of its own, and says what it said; to import what all need is what takes
# the time.
_ROUND = """
import ctypes, fcntl, glob, json, os, pty, resource, signal, socket, struct, sys, threading
beginning, programs = json.loads(sys.argv[2])
for number, (name, program) in enumerate(programs.items()):
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.dup2(writing, 1); os.dup2(writing, 2); os.close(reading); os.close(writing)
            os.mkdir('attempt%d' % number); os.chdir('attempt%d' % number)
            exec(compile(beginning + program, name, 'exec'), {'__name__': '__main__'})
        except BaseException as error:
            print(repr(error))
        finally:
            sys.stdout.flush()
            os._exit(0)
    os.close(writing)
    with open(reading, 'rb') as said:
        print(json.dumps([name, said.read().decode(errors='replace')]), flush=True)
    os.waitpid(child, 0)
"""
# `at` says where things are: see `Surroundings`.
_BEGINNING = """
import ctypes, fcntl, glob, json, os, pty, resource, signal, socket, struct, sys, threading
at = json.loads(sys.argv[1])
numbers = at["numbers"]
libc = ctypes.CDLL(None, use_errno=True)

def call(name, *arguments):
    if name not in numbers:
        raise SystemExit("there is no such call")
    words = [ctypes.c_long(each) if isinstance(each, int) else each for each in arguments]
    return check(libc.syscall(ctypes.c_long(numbers[name]), *words))

def check(result):
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result

def out(found=True):
    if found:
        print("OUT", flush=True)

def talk(family, kind, address):
    with socket.socket(family, kind) as mine:
        mine.settimeout(2)
        mine.connect(address)
        mine.send(b"hello")
        out(mine.recv(9) == b"welcome")
"""
ATTEMPTS: Mapping[str, str] = {
    # Reading
    "read an ssh key": "out(at['secret'] in open(at['home'] + '/.ssh/id_ed25519').read())",
    "list the home folder": "out('.ssh' in os.listdir(at['home']))",
    "read the data folder": "out(at['secret'] in open(at['home'] + '/data/inbox.sqlite').read())",
    "read another repository": "out(at['secret'] in open(at['home'] + '/src/other/app.py').read())",
    "read through a symbolic link": """
os.symlink(at['home'] + '/.ssh', 'l')
out(at['secret'] in open('l/id_ed25519').read())""",
    "read through a hard link": "os.link(at['home'] + '/.ssh/id_ed25519', 'h'); out(at['secret'] in open('h').read())",
    "read what it inherits of the environment": "out(at['secret'] in str(os.environ))",
    "read the environment of the first process": """
found = ''
for process in (1, at['victim']):
    try:
        found += open('/proc/%d/environ' % process).read()
    except OSError:
        pass
out(at['secret'] in found)""",
    "read the environment of any process": """
found = ''
for name in glob.glob('/proc/[0-9]*/environ'):
    try:
        found += open(name).read()
    except OSError:
        pass
out(at['secret'] in found)""",
    "read the files of a process through /proc": "out(at['secret'] in open('/proc/%d/fd/0' % at['victim']).read())",
    "see the processes of the machine": "out('sleep' in open('/proc/%d/cmdline' % at['victim']).read())",
    "watch a folder": "out(check(libc.inotify_add_watch(check(libc.inotify_init()), at['home'].encode(), 0x100)) > 0)",
    "read a descriptor that it inherits": "out(at['secret'].encode() in os.pread(at['descriptor'], 99, 0))",
    # Writing
    "write outside": "open(at['home'] + '/planted', 'w').close(); out()",
    "change a file outside": "open(at['home'] + '/notes', 'a').write('x'); out()",
    "cut a file outside": "os.truncate(at['home'] + '/notes', 0); out()",
    "rename out": "open('f', 'w').close(); os.rename('f', at['home'] + '/moved'); out()",
    "change modes outside": """
before = os.stat(at['home'] + '/notes').st_mode
os.chmod(at['home'] + '/notes', before ^ 0o100)
out(os.stat(at['home'] + '/notes').st_mode != before)""",
    "change times outside": """
before = os.stat(at['home'] + '/notes').st_mtime
os.utime(at['home'] + '/notes', (before + 9, before + 9))
out(os.stat(at['home'] + '/notes').st_mtime != before)""",
    "change attributes outside": """
attribute = 'user.x%s' % os.urandom(8).hex()
os.setxattr(at['home'] + '/notes', attribute, b'1')
out(attribute in os.listxattr(at['home'] + '/notes'))""",
    "win a race with symbolic links": """
os.mkdir('a'); os.symlink(at['home'], 'b')
def swap():
    for _ in range(300):
        os.rename('a', 'c'); os.rename('b', 'a'); os.rename('c', 'b')
        os.rename('a', 'c'); os.rename('b', 'a'); os.rename('c', 'b')
swapping = threading.Thread(target=swap); swapping.start()
for number in range(3000):
    try:
        open('a/raced', 'w').close()
    except OSError:
        pass
swapping.join()
out('raced' in os.listdir(at['home']))""",
    "make a setuid file by chmod": "open('s', 'w').close(); os.chmod('s', 0o4755); out(os.stat('s').st_mode & 0o4000)",
    "make a setuid file by open": "os.open('t', os.O_CREAT | os.O_WRONLY, 0o4755); out(os.stat('t').st_mode & 0o4000)",
    "run setuid programs as their owner": "out(libc.prctl(39, 0, 0, 0, 0) == 0)",
    # The network
    "TCP": "talk(socket.AF_INET, socket.SOCK_STREAM, ('127.0.0.1', at['tcp']))",
    "UDP, as to a name server": "talk(socket.AF_INET, socket.SOCK_DGRAM, ('127.0.0.1', at['udp']))",
    "a socket in the file system": "talk(socket.AF_UNIX, socket.SOCK_STREAM, at['home'] + '/run.sock')",
    "an abstract socket": "talk(socket.AF_UNIX, socket.SOCK_STREAM, chr(0) + at['abstract'])",
    "one of a pair of sockets, connected anew": """
mine, _ = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
mine.connect(at['home'] + '/log.sock'); mine.send(b'hello'); out()""",
    "netlink": "socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0); out()",
    "vsock": "socket.socket(40, socket.SOCK_STREAM); out()",
    # Other processes
    "signal a process": "os.kill(at['victim'], signal.SIGCONT); out()",
    "limit a process": "resource.prlimit(at['victim'], resource.RLIMIT_CORE, (0, 0)); out()",
    "slow a process down": "os.setpriority(os.PRIO_PROCESS, at['victim'], 5); out()",
    "bind a process to a core": "os.sched_setaffinity(at['victim'], os.sched_getaffinity(0)); out()",
    "read the memory of a process": """
here = ctypes.create_string_buffer(8)
mine = struct.pack('PN', ctypes.addressof(here), 8)
line = open('/proc/%d/maps' % at['victim']).readline()
theirs = struct.pack('PN', int(line.split('-')[0], 16), 8)
out(call('process_vm_readv', at['victim'], mine, 1, theirs, 1, 0) == 8)""",
    "take a descriptor of a process": "out(call('pidfd_getfd', os.pidfd_open(at['victim']), 0, 0) > 0)",
    "trace a process": "out(libc.ptrace(0, 0, 0, 0) == 0)",
    "make shared memory": "made = check(libc.shmget(0, 4096, 0o600)); libc.shmctl(made, 0, None); out()",
    "make memory that no limit counts": "out(os.memfd_create('x') > 0)",
    "reserve more of the disk than a file may have": """
reserved = os.open('r', os.O_CREAT | os.O_WRONLY)
libc.fallocate(reserved, 1, ctypes.c_long(0), ctypes.c_long(300 << 20))
out(os.fstat(reserved).st_blocks * 512 > 200 << 20)""",
    "open a perf event": "out(call('perf_event_open', struct.pack('=IIQ', 1, 112, 0) + bytes(96), 0, -1, -1, 0) >= 0)",
    "load a program into the kernel": "out(call('bpf', 0, struct.pack('=IIII', 2, 4, 8, 1) + bytes(112), 128) >= 0)",
    "join a session of the kernel's keys": "out(call('keyctl', 1, b'citebot') > 0)",
    # The kernel
    "nest name spaces by unshare": "check(libc.unshare(0x10000000)); out()",
    "nest name spaces by clone": """
child = call('clone', 0x10000000 | 17, 0, 0, 0, 0)
if child == 0:
    os._exit(0)
out()""",
    "nest name spaces by clone3": """
child = call('clone3', struct.pack('=8Q', 0x10000000, 0, 0, 0, 17, 0, 0, 0), 64)
if child == 0:
    os._exit(0)
out()""",
    "mount a file system": """
libc.unshare(0x10000000 | 0x20000)
check(libc.mount(b'none', at['mount_point'].encode(), b'tmpfs', 0, None)); out()""",
    "io_uring": "out(call('io_uring_setup', 4, ctypes.create_string_buffer(120)) > 0)",
    "userfaultfd": "out(call('userfaultfd', 1) > 0)",
    "add a key to the kernel's": "out(call('add_key', b'user', b'citebot', b'x', 1, -3) > 0)",
    "change its personality": "check(libc.personality(0x0040000)); out()",
    "type for somebody else (TIOCSTI)": """
_, theirs = pty.openpty()
if os.fork() == 0:
    os.setsid(); fcntl.ioctl(theirs, 0x540E, 0); fcntl.ioctl(theirs, 0x5412, b'x'); out(); os._exit(0)
os.wait()""",
    "type for somebody else, with a bit too many": """
_, theirs = pty.openpty()
if os.fork() == 0:
    os.setsid(); fcntl.ioctl(theirs, 0x540E, 0)
    out(call('ioctl', theirs, 1 << 32 | 0x5412, b'x') == 0); os._exit(0)
os.wait()""",
}


def make_round(argument: str) -> SandboxCommand:
    """Return the command that makes all attempts, one after the other."""
    return SandboxCommand(argv=["python3", "-c", _ROUND, argument, json.dumps([_BEGINNING, dict(ATTEMPTS)])])


def read_round(output: str) -> Mapping[str, str]:
    """Return what each attempt said; fails where one was not made."""
    said = dict(json.loads(line) for line in output.splitlines() if line.startswith("["))
    assert list(said) == list(ATTEMPTS), output[-2000:]
    return said
