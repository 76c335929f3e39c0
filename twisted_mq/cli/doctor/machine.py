"""Checks a broker's files and limits on this machine: its configuration, disk, permissions and open files."""

from __future__ import annotations

import os
import resource
import stat
from collections.abc import Iterator, Sequence

from twisted_mq.cli.doctor.checks import CheckOutcome, Result, graded
from twisted_mq.cli.doctor.figures import DISK_FULL, DISK_SHORT
from twisted_mq.config.errors import ConfigError
from twisted_mq.storage.files.directory import is_locked
from twisted_mq.storage.files.disk_space import disk_space
from twisted_mq.storage.files.paths import StorePaths

FEW_FILES = 65536
"""The limit that RocketMQ's own start scripts ask for: connections and log files take one each."""
MOST_FULL = 0.8
"""The part of a process's open files that gives a warning."""
MOST_NAMED = 5
OTHERS = 0o077
SECRET_TABLES = ("access.json",)


def check_config(path: str) -> Iterator[CheckOutcome]:
    """Check a broker's configuration file, and the store that it names."""
    from twisted_mq.broker.options import BrokerOptions, BrokerRole
    from twisted_mq.config.options import load_options
    from twisted_mq.config.startup import ALL_ADDRESSES

    try:
        options = load_options(BrokerOptions, path)
    except ConfigError as error:
        yield CheckOutcome(
            "configuration", path, Result.PROBLEM, str(error), f"`mq config check {path}` shows all findings"
        )
        return
    strangers = options.bind_address in ALL_ADDRESSES
    told_apart = options.ha_shared_secret or options.ha_allowed_slaves
    yield graded(
        "configuration",
        path,
        f"{options.broker_role.value}, listens on {options.bind_address}",
        (
            strangers and not options.asks,
            Result.WARNING,
            "every client that can connect may do everything: set bindAddress, or authenticationEnabled and authorizationEnabled",
        ),
        (
            strangers and options.broker_role == BrokerRole.SYNC_MASTER and not told_apart,
            Result.WARNING,
            "any host can count as a slave: set haSharedSecret at master and slave, or haAllowedSlaves",
        ),
    )
    if os.path.isdir(options.store_path_root_dir):
        yield from check_store(options.store_path_root_dir, options.store_path_commit_log)


def check_store(root: str, commit_log: str | None = None) -> Iterator[CheckOutcome]:
    """Check the files of a store. Nothing is opened for writing."""
    paths = StorePaths(root, commit_log)
    running = is_locked(paths.lock)
    left = os.path.exists(paths.abort)
    yield graded(
        "state",
        root,
        "a broker runs on it" if running else "no broker runs on it",
        (left and not running, Result.WARNING, "the last broker was killed: the next start recovers the log"),
    )
    yield _disk(paths.commit_log if os.path.isdir(paths.commit_log) else root)
    yield from _permissions(paths)
    if running and left:
        yield from _open_files(paths.abort)


def check_machine() -> Iterator[CheckOutcome]:
    """Check the limits of a broker started from here."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    yield graded(
        "descriptors",
        "this shell",
        f"{limit} open files at most",
        (
            limit < FEW_FILES,
            Result.WARNING,
            f"before starting a broker, run `ulimit -n {FEW_FILES}` or set LimitNOFILE in its unit",
        ),
    )


def _disk(path: str) -> CheckOutcome:
    disk = disk_space(path)
    used = disk.used_ratio
    remedy = "free space: `mq store sizes` shows the largest topics"
    return graded(
        "disk",
        path,
        f"{used:.0%} used, {disk.available / 2**30:.1f} GiB free",
        (used >= DISK_FULL, Result.PROBLEM, f"a broker refuses sends past {DISK_FULL:.0%}; {remedy}"),
        (used >= DISK_SHORT, Result.WARNING, f"old files are deleted at any hour past {DISK_SHORT:.0%}; {remedy}"),
    )


def _permissions(paths: StorePaths) -> Iterator[CheckOutcome]:
    """Check whether others can read messages and passwords, and whether this user can work with the files."""
    open_to_others: list[str] = []
    closed: list[str] = []
    for path in _files(paths):
        try:
            mode = stat.S_IMODE(os.stat(path).st_mode)
        except OSError:
            continue
        if mode & OTHERS:
            open_to_others.append(path)
        if not os.access(path, os.R_OK | os.W_OK):
            closed.append(path)
    secrets = [path for path in open_to_others if os.path.basename(path) in SECRET_TABLES]
    yield graded(
        "permissions",
        paths.root,
        _named(closed, "can't be read and written by you")
        or _named(secrets, "contain passwords and can be read by other users")
        or _named(open_to_others, "can be read by other users")
        or "only you can read the files",
        (bool(closed), Result.PROBLEM, "run the broker as their owner, or chown them"),
        (bool(secrets), Result.PROBLEM, f"chmod 600 {' '.join(secrets)}"),
        (bool(open_to_others), Result.WARNING, f"chmod -R go-rwx {paths.root}"),
    )


def _files(paths: StorePaths) -> Iterator[str]:
    for root in dict.fromkeys((paths.root, paths.commit_log)):
        for folder, _, names in os.walk(root):
            yield from (os.path.join(folder, name) for name in sorted(names))


def _named(paths: Sequence[str], what: str) -> str:
    more = f" and {len(paths) - MOST_NAMED} more" if len(paths) > MOST_NAMED else ""
    return f"{', '.join(paths[:MOST_NAMED])}{more} {what}" if paths else ""


def _open_files(abort: str) -> Iterator[CheckOutcome]:
    """Check how near the running broker is to its limit; the abort file has its process id. Only Linux reports it."""
    try:
        with open(abort, encoding="ascii") as file:
            process = int(file.read())
        opened = len(os.listdir(f"/proc/{process}/fd"))
        with open(f"/proc/{process}/limits", encoding="ascii") as limits:
            limit = next(int(line.split()[3]) for line in limits if line.startswith("Max open files"))
    except (OSError, ValueError, StopIteration):
        yield CheckOutcome("descriptors", abort, Result.UNKNOWN, "the system does not report its process")
        return
    yield graded(
        "descriptors",
        f"process {process}",
        f"{opened} of {limit} open files",
        (opened > limit * MOST_FULL, Result.PROBLEM, "connections will be refused: raise the limit (LimitNOFILE)"),
        (limit < FEW_FILES, Result.WARNING, f"raise the limit to {FEW_FILES} (LimitNOFILE)"),
    )
