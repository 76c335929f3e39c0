"""Measures access control and TLS: 64 blocking senders with each against none, and TLS of ours beside TLS of Apache's.

.venv/bin/python -m tests.bench.bench_access [--only access,tls] [--rounds 16] [--millis 500] [--serialize ROCKETMQ]

Brokers run at the same time, and one virtual machine with Apache's client sends to one after the other, as in
`bench_pair`: printed are medians over the rounds, and medians of the ratios to the last side. The side `asked` checks the
signature of each send (authenticationEnabled) and its user's rights on the topic (authorizationEnabled); its client
signs. To the side `signed` a client signs for nothing. Those with TLS show a certificate, and every connection is encrypted.
Needs a JDK and the peers' jars (python -m interop.peers.setup).
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import attrs

from interop.peers.process import Process
from interop.peers.servers import COMMANDS
from interop.peers.setup import main as set_up_peers
from interop.peers.toolchain import use_top_speed
from tests.bench.bench_pair import HEAD, Side, compiled, measure, print_rows
from tests.support.certificates import Authority

LOAD, THREADS = "single", 64
USER, SECRET = "bench", "bench-secret"
RIGHTS = [{"resource": "*", "actions": ["Pub", "Sub", "Get"], "decision": "Allow"}]
ACCESS = {
    "users": {USER: {"username": USER, "password": SECRET, "userType": "Normal", "userStatus": "enable"}},
    "acls": {f"User:{USER}": {"subject": f"User:{USER}", "policies": [{"policyType": "Custom", "entries": RIGHTS}]}},
}
"""A user who may send by a policy, as brokers keep it in config/access.json."""


class SigningSide(Side):
    """A side whose client signs and whose broker does not check: AskedSide minus this is the broker's cost."""

    @property
    def place(self) -> str:
        return f"{super().place}@{USER}@{SECRET}"


class AskedSide(SigningSide):
    """A side whose broker checks the sender's signature and rights."""

    def start(self) -> None:
        config = self.store / "config"
        config.mkdir(parents=True)
        (config / "access.json").write_text(json.dumps(ACCESS))
        super().start()

    def _broker_settings(self) -> dict[str, object]:
        return super()._broker_settings() | {"authenticationEnabled": "true", "authorizationEnabled": "true"}


@attrs.define(eq=False)
class EncryptedSide(Side):
    """Takes encrypted connections alone."""

    tls: Mapping[str, str] = attrs.field(factory=dict)

    def _file(self, name: str, settings: dict[str, object]) -> None:
        super()._file(name, {**settings, **(self.tls if self.kind == "ours" else {})})

    def _launch(self, which: int, name: str, port: int) -> Process:
        files = (self.directory / "namesrv.conf", self.directory / "broker.conf")
        command = COMMANDS[self.kind](self.directory / "home", *files)[which]
        if self.kind == "apache":
            command[1:1] = [f"-D{key}={value}" for key, value in self.tls.items()]
        process = Process.start(command, self.directory / f"{name}.log", self.directory)
        process.wait_listening(port)
        return process


def encryption(folder: Path) -> tuple[dict[str, str], dict[str, str]]:
    """Return the settings of servers and of clients for certificates of a new authority."""
    authority = Authority(folder / "certificates")
    files = authority.issue("server")
    client = {
        "tls.enable": "true", "tls.test.mode.enable": "false", "tls.client.authServer": "true",
        "tls.client.trustCertPath": authority.path,
    }  # fmt: skip
    server = {
        **client, "tls.server.mode": "permissive", "tls.server.certPath": files.certificate,
        "tls.server.keyPath": files.key, "tls.server.need.client.auth": "none",
    }  # fmt: skip
    return server, client


def compare(
    title: str,
    sides: Mapping[str, Side],
    classes: Path,
    arguments: argparse.Namespace,
    properties: Mapping[str, str] | None = None,
) -> None:
    """Start the sides, load them in turn, and print what came of it."""
    try:
        for side in sides.values():
            side.start()
        results = measure(
            [*sides.values()], LOAD, THREADS, classes, arguments.rounds, arguments.millis, arguments.serialize,
            properties or {},
        )  # fmt: skip
        print_rows(title, [*sides], results)
    finally:
        for side in sides.values():
            side.stop()


def main(given: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", type=lambda text: text.split(","), default=["access", "tls"])
    parser.add_argument("--rounds", type=int, default=16)
    parser.add_argument("--millis", type=int, default=500)
    parser.add_argument("--serialize", choices=["JSON", "ROCKETMQ"], default="JSON")
    parser.add_argument("--dir", default="/dev/shm" if os.path.isdir("/dev/shm") else None)
    arguments = parser.parse_args(given)
    if set_up_peers():
        sys.exit("the peers are missing, see above")
    use_top_speed()
    folder = Path(tempfile.mkdtemp(prefix="bench-access-", dir=arguments.dir))
    try:
        classes = compiled(folder)
        print(HEAD)
        if "access" in arguments.only:
            sides = {
                "asked": AskedSide("ours", folder / "asked"),
                "signed": SigningSide("ours", folder / "signed"),
                "not asked": Side("ours", folder / "plain"),
            }
            compare("access", sides, classes, arguments)
        if "tls" in arguments.only:
            server, client = encryption(folder)
            encrypted = {kind: EncryptedSide(kind, folder / kind, tls=server) for kind in ("ours", "apache")}
            compare("tls", encrypted, classes, arguments, client)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
