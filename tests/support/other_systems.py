"""Code that a process runs first to imitate another system, as far as Linux can."""

MACOS = """
import fcntl, os, sys
for name in (
    "posix_fallocate", "posix_fadvise", "fdatasync", "SEEK_DATA", "SEEK_HOLE", "O_TMPFILE", "O_DIRECT",
    "sched_getaffinity", "copy_file_range", "sendfile", "eventfd", "memfd_create", "getrandom",
):
    delattr(os, name)
fcntl.F_FULLFSYNC = fcntl.F_GETFD  # macOS's own number is refused by Linux
platform, sys.platform = sys.platform, "darwin"
import twisted_mq.storage.files.system_calls as system_calls
sys.platform = platform
assert system_calls.fdatasync is system_calls.fsync
assert system_calls.posix_fallocate is system_calls.write_blocks
"""

WINDOWS = """
import os, sys
import twisted.internet.reactor
for name in (
    "posix_fallocate", "posix_fadvise", "fdatasync", "SEEK_DATA", "SEEK_HOLE", "O_TMPFILE", "O_DIRECT", "O_SYNC", "O_DSYNC",
    "O_CLOEXEC", "O_DIRECTORY", "O_NOFOLLOW", "pread", "pwrite", "preadv", "pwritev", "sync", "lockf", "mkfifo",
    "statvfs", "fstatvfs", "sysconf", "sysconf_names", "getloadavg", "uname", "nice", "sched_getaffinity", "copy_file_range",
    "sendfile", "eventfd", "memfd_create", "getrandom", "fork", "forkpty", "register_at_fork", "killpg", "setsid", "getpgid",
    "getuid", "geteuid", "getgid", "getegid", "chown", "lchown", "fchown", "fchmod", "chroot", "openpty",
):
    delattr(os, name)
for name in ("fcntl", "resource", "pwd", "grp", "termios", "tty", "pty", "syslog"):
    sys.modules[name] = None
"""
"""Twisted has chosen what it needs of the system before."""
