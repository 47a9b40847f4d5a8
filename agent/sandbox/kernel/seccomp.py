"""Builds the filter of system calls: a program for the kernel against what name spaces and Landlock leave open.

Anything not named is allowed, as tests of any project have to run; calls newer than the table do
not exist. The filter cannot read memory, so calls that hide their arguments there are refused in
favour of their older forms.
"""

from __future__ import annotations

import errno
import platform
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from agent.errors import SandboxUnavailable

# Numbers above this one are younger than the table; the filter says of them that the kernel does not have them.
NEWEST = 451
# name, number on x86_64, number on aarch64; a dash if there is no such call
_TABLE = """
acct 163 89                 add_key 248 217             adjtimex 159 171            bind 49 200
bpf 321 280                 chmod 90 -                  chown 92 -                  chroot 161 51
clock_adjtime 305 266       clock_settime 227 112       clone 56 220                clone3 435 435
connect 42 203              creat 85 -                  delete_module 176 106       fallocate 285 47
fanotify_init 300 262
fchmod 91 52                fchmodat 268 53             fchown 93 55                fchownat 260 54
finit_module 313 273        fremovexattr 199 16         fsconfig 431 431            fsetxattr 190 7
fsmount 432 432             fsopen 430 430              fspick 433 433              futimesat 261 -
init_module 175 105         inotify_add_watch 254 27    io_uring_enter 426 426      io_uring_register 427 427
io_uring_setup 425 425      ioctl 16 29                 ioperm 173 -                iopl 172 -
ioprio_set 251 30           kcmp 312 272                kexec_file_load 320 294     kexec_load 246 104
keyctl 250 219              lchown 94 -                 lookup_dcookie 212 18       lremovexattr 198 15
lsetxattr 189 6             memfd_create 319 279        memfd_secret 447 447        migrate_pages 256 238
mknod 133 -                 mknodat 259 33              modify_ldt 154 -            mount 165 40
mount_setattr 442 442       move_mount 429 429          move_pages 279 239          mq_open 240 180
mq_unlink 241 181           msgget 68 186               name_to_handle_at 303 264   open 2 -
open_by_handle_at 304 265   open_tree 428 428           openat 257 56               openat2 437 437
perf_event_open 298 241     personality 135 92          pidfd_getfd 438 438         pivot_root 155 41
prlimit64 302 261           process_madvise 440 440     process_mrelease 448 448    process_vm_readv 310 270
process_vm_writev 311 271   ptrace 101 117              quotactl 179 60             quotactl_fd 443 443
reboot 169 142              removexattr 197 14          request_key 249 218         sched_setaffinity 203 122
sched_setattr 314 274       sched_setparam 142 118      sched_setscheduler 144 119  semget 64 190
setdomainname 171 162       sethostname 170 161         setns 308 268               setpriority 141 140
setsockopt 54 208
settimeofday 164 170        setxattr 188 5              shmget 29 194               socket 41 198
socketpair 53 199           swapoff 168 225             swapon 167 224              syslog 103 116
umount2 166 39              unshare 272 97              userfaultfd 323 282         uselib 134 -
utime 132 -                 utimensat 280 88            utimes 235 -                vhangup 153 58
vmsplice 278 75
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Architecture:
    """A machine architecture for the filter: its name and its system calls."""

    audit: int  # AUDIT_ARCH_* of linux/audit.h
    numbers: Mapping[str, int]


def find_architecture(machine: str = "") -> Architecture:
    """Return the architecture of a machine, by default this one; `SandboxUnavailable` for an unknown one."""
    column, audit = {"x86_64": (1, 0xC000003E), "aarch64": (2, 0xC00000B7)}.get(machine or platform.machine(), (0, 0))
    if not column:
        raise SandboxUnavailable("The sandbox supports only x86_64 and aarch64.")
    words = _TABLE.split()
    rows = [words[at : at + 3] for at in range(0, len(words), 3)]
    return Architecture(audit=audit, numbers={row[0]: int(row[column]) for row in rows if row[column] != "-"})


_ALLOW, _ERRNO, _KILL = 0x7FFF0000, 0x00050000, 0x80000000
_LOAD, _AND, _EQUAL, _ABOVE, _BITS, _RETURN = 0x20, 0x54, 0x15, 0x25, 0x45, 0x06  # operations of classic BPF
_NUMBER, _MACHINE, _ARGUMENTS = 0, 4, 16  # offsets in struct seccomp_data
_X32 = 0x40000000  # on x86_64, a bit of the number that means another table
_UNIX, _INET, _INET6 = 1, 2, 10

# Never needed by tests: debugging, kernel keys, modules, mounts, name spaces, clocks, and memory that no limit counts.
_DENIED = """acct add_key adjtimex bpf chroot clock_adjtime clock_settime delete_module fanotify_init finit_module
fsconfig fsmount fsopen fspick init_module io_uring_enter io_uring_register io_uring_setup ioperm iopl kcmp
kexec_file_load kexec_load keyctl lookup_dcookie memfd_create memfd_secret migrate_pages modify_ldt mount mount_setattr
move_mount move_pages msgget name_to_handle_at open_by_handle_at open_tree perf_event_open pidfd_getfd pivot_root
process_madvise process_mrelease process_vm_readv process_vm_writev ptrace quotactl quotactl_fd reboot request_key
semget setdomainname sethostname setns settimeofday shmget swapoff swapon syslog umount2 unshare userfaultfd uselib
vhangup vmsplice"""
# Where the files of the host can be named: their modes, owners, times and attributes. They seem to be changed.
_METADATA = """chmod chown fchmod fchmodat fchown fchownat fremovexattr fsetxattr futimesat lchown lremovexattr
lsetxattr removexattr setxattr utime utimensat utimes"""
# Where processes and sockets of the host can be named.
_SHARED = "bind connect inotify_add_watch mq_open mq_unlink"
# The argument that holds a process; 0 is oneself.
_OF_PROCESS = {
    "ioprio_set": 1, "prlimit64": 0, "sched_setaffinity": 0, "sched_setattr": 0, "sched_setparam": 0,
    "sched_setscheduler": 0, "setpriority": 1,
}  # fmt: skip
# The argument that holds the mode of a file.
_OF_MODE = {
    "chmod": 1, "creat": 1, "fchmod": 1, "fchmodat": 2, "mknod": 1, "mknodat": 2, "open": 2, "openat": 3,
}  # fmt: skip
_SETUID, _SETGID, _FORMAT, _CHARACTER, _BLOCK = 0o4000, 0o2000, 0o170000, 0o020000, 0o060000
_NAMESPACES = (17, 25, 26, 27, 28, 29, 30)  # bits of `clone`: mount, cgroup, UTS, IPC, user, PID, network
# Keys pressed for somebody else at a terminal, and flags of a file that outlive its mode.
_TIOCSTI, _TIOCLINUX, _SETFLAGS, _FSSETXATTR = 0x5412, 0x541C, 0x40086602, 0x401C5820
# Options that would let a socket hold more memory than is counted for it; with FORCE, and without.
_BUFFERS = (7, 8, 32, 33)
_STREAM, _SEQPACKET, _KIND = 1, 5, 0xF  # kinds of socket that cannot be connected again


@dataclass(frozen=True, kw_only=True, slots=True)
class _Rule:
    """Refuse a call, or only if the low half of an argument has some bits, a value, or none of some values."""

    name: str
    error: int = errno.EPERM
    argument: int | None = None
    how: Literal["bits", "equal", "other"] = "equal"
    values: tuple[int, ...] = ()
    mask: int = 0xFFFFFFFF


def build_filter(architecture: Architecture, *, isolated: bool) -> bytes:
    """Build the program for the kernel.

    `isolated` if the box has separate name spaces for files, processes and the network. Elsewhere
    it may make no socket, and change nothing that is named by a path or by the number of a process.
    """
    lines = [
        _encode(_LOAD, _MACHINE),
        _encode(_EQUAL, architecture.audit, 1, 0),
        _encode(_RETURN, _KILL),
        _encode(_LOAD, _NUMBER),
        _encode(_BITS, _X32, 0, 1),
        _encode(_RETURN, _KILL),
        _encode(_ABOVE, NEWEST, 0, 1),
        _encode(_RETURN, _ERRNO | errno.ENOSYS),
    ]
    for rule in _list_rules(isolated=isolated):
        if rule.name in architecture.numbers:
            lines += _translate(rule, architecture.numbers[rule.name])
    return b"".join([*lines, _encode(_RETURN, _ALLOW)])


def _list_rules(*, isolated: bool) -> Iterator[_Rule]:
    yield from (_Rule(name=name) for name in _DENIED.split())
    for name in ("clone3", "openat2"):  # the C library then takes `clone` and `openat`, whose arguments can be seen
        yield _Rule(name=name, error=errno.ENOSYS)
    # It reserves in no time what the limits are looked at too late for; the C library then writes instead.
    yield _Rule(name="fallocate", error=errno.EOPNOTSUPP)
    yield from (_Rule(name="clone", argument=0, how="bits", values=(1 << bit,)) for bit in _NAMESPACES)
    yield _Rule(name="personality", argument=0, how="other", values=(0xFFFFFFFF,))
    for request in (_TIOCSTI, _TIOCLINUX, _SETFLAGS, _FSSETXATTR):
        yield _Rule(name="ioctl", argument=1, values=(request,))
    yield _Rule(name="setsockopt", error=0, argument=2, values=_BUFFERS)
    for name, argument in _OF_MODE.items():
        yield _Rule(name=name, argument=argument, how="bits", values=(_SETUID | _SETGID,))
    for name in ("mknod", "mknodat"):
        yield _Rule(name=name, argument=_OF_MODE[name], values=(_CHARACTER, _BLOCK), mask=_FORMAT)
    families = (_UNIX, _INET, _INET6) if isolated else ()
    yield _Rule(name="socket", error=errno.EAFNOSUPPORT, argument=0, how="other", values=families)
    if not isolated:
        yield from _list_shared_rules()


def _list_shared_rules() -> Iterator[_Rule]:
    yield from (_Rule(name=name) for name in _SHARED.split())
    yield from (_Rule(name=name, error=0) for name in _METADATA.split())
    for name, argument in _OF_PROCESS.items():
        yield _Rule(name=name, argument=argument, how="other", values=(0,))
    yield _Rule(name="socketpair", argument=1, how="other", values=(_STREAM, _SEQPACKET), mask=_KIND)


def _translate(rule: _Rule, number: int) -> list[bytes]:
    """Translate a rule into instructions; the call's number is loaded before and after them."""
    refusal = _encode(_RETURN, _ERRNO | rule.error)
    if rule.argument is None:
        return [_encode(_EQUAL, number, 0, 1), refusal]
    body = [_encode(_LOAD, _ARGUMENTS + 8 * rule.argument)]
    body += [] if rule.mask == 0xFFFFFFFF else [_encode(_AND, rule.mask)]
    test = _BITS if rule.how == "bits" else _EQUAL
    for left, value in zip(reversed(range(len(rule.values))), rule.values, strict=True):
        if rule.how == "other":
            body.append(_encode(test, value, left + 1, 0))  # over the refusal
        else:
            body.append(_encode(test, value, left, 0 if left else 1))
    body += [refusal, _encode(_LOAD, _NUMBER)]
    return [_encode(_EQUAL, number, 0, len(body)), *body]


def _encode(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)
