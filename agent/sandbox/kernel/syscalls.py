"""The numbers of the system calls that the filter names, on the machines that it can be built for."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import dataclass

from agent.errors import SandboxUnavailable

# Numbers above this one are younger than the table; the filter says of them that the kernel does not have them.
NEWEST = 451
# name, number on x86_64, number on aarch64; a dash where there is no such call
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
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Architecture:
    """How the kernel of a machine names itself and its system calls to a filter."""

    audit: int  # AUDIT_ARCH_* of linux/audit.h
    numbers: Mapping[str, int]


def find_architecture(machine: str = "") -> Architecture:
    """Return the numbers of a machine, this one by default; `SandboxUnavailable` for one that is not in the table."""
    column, audit = {"x86_64": (1, 0xC000003E), "aarch64": (2, 0xC00000B7)}.get(machine or platform.machine(), (0, 0))
    if not column:
        raise SandboxUnavailable("The sandbox supports only x86_64 and aarch64.")
    words = _TABLE.split()
    rows = [words[at : at + 3] for at in range(0, len(words), 3)]
    return Architecture(audit=audit, numbers={row[0]: int(row[column]) for row in rows if row[column] != "-"})
