"""Configuration files after those that are published for Apache's brokers: each starts a broker, which acts by what it says."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from twisted.internet import reactor
from twisted.trial.unittest import TestCase

from twisted_mq.broker.options import BrokerOptions
from twisted_mq.broker.service import make_broker
from twisted_mq.config.checks import check_file
from twisted_mq.config.errors import ConfigError
from twisted_mq.config.findings import Effect
from twisted_mq.config.known_keys import OLD_NAMES
from twisted_mq.config.options import load_options, option_fields
from twisted_mq.config.properties import read_properties
from twisted_mq.protocol.codes import RequestCode, ResponseCode
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.remoting.client import RemotingClient

FILES = sorted((Path(__file__).parents[1] / "config" / "files").glob("*.conf"))
OF_THE_TEST = {
    "bindAddress": "127.0.0.1",
    "brokerIP1": "127.0.0.1",
    "brokerIP2": "127.0.0.1",
    "listenPort": "0",
    "haListenPort": "0",
    "namesrvAddr": "",
    "haMasterAddress": "",
}
"""Addresses of this machine in place of the file's; the store's folder is the test's, too."""

ACCOUNTS = """accounts:
- accessKey: RocketMQ
  secretKey: "12345678"
"""
NOT_SERVED = {
    "5.3-rocksdb",
    "controller-quick",
    "dledger-n0",
    "multi-disk",
    "operator-controller",
}
"""Files with safety settings that are not supported: they prevent the start until the operator decides to run without them."""


class PublishedFilesTest(TestCase):
    timeout = 60

    async def shown(self, path: Path) -> dict[str, str]:
        """Return the answer of a broker with this file to GET_BROKER_CONFIG."""
        store = os.path.abspath(self.mktemp())
        own = OF_THE_TEST | {"storePathRootDir": store, "storePathCommitLog": os.path.join(store, "commitlog")}
        (Path(store) / "conf").mkdir(parents=True)
        (Path(store) / "conf" / "plain_acl.yml").write_text(ACCOUNTS)
        own["rocketmqHome"] = store
        options = load_options(BrokerOptions, str(path), own, ignore_unsupported=path.stem in NOT_SERVED)
        broker, client = make_broker(options, reactor), RemotingClient(reactor)
        broker.startService()
        try:
            await broker.started
            request = RemotingCommand.request(RequestCode.GET_BROKER_CONFIG, {}, b"")
            answer = await client.invoke(f"127.0.0.1:{broker.port}", request)
            if options.asks:
                self.assertNotEqual(answer.code, ResponseCode.SUCCESS)
                return {}
            return dict(line.split("=", 1) for line in answer.body.decode().splitlines())
        finally:
            await client.close()
            await broker.stopService()

    def test_there_are_forty_of_them(self) -> None:
        self.assertGreaterEqual(len(FILES), 40)
        self.assertLessEqual(NOT_SERVED, {path.stem for path in FILES})

    def test_files_that_promise_what_is_not_served_end_the_start(self) -> None:
        for path in FILES:
            effects = {one.effect for one in check_file(BrokerOptions, str(path))}
            self.assertEqual(Effect.NOT_SERVED in effects, path.stem in NOT_SERVED, path.stem)
            self.assertNotIn(Effect.WRONG, effects, path.stem)
            if path.stem in NOT_SERVED:
                self.assertRaises(ConfigError, load_options, BrokerOptions, str(path))


def _test_of(path: Path) -> Any:
    async def test(self: PublishedFilesTest) -> None:
        shown = await self.shown(path)
        fields = option_fields(BrokerOptions)
        clamped = {one.key for one in check_file(BrokerOptions, str(path)) if one.effect is Effect.CLAMPED}
        for entry in read_properties(str(path)):
            key = OLD_NAMES.get(entry.key, entry.key)
            counts = key in fields and fields[key].metadata["has_effect"] and not fields[key].metadata["secret"]
            if shown and counts and key not in OF_THE_TEST and not key.startswith("storePath"):
                self.assertEqual(shown[key] != entry.value, entry.key in clamped, f"{key}: {shown[key]}")

    return test


for _path in FILES:
    setattr(PublishedFilesTest, f"test_{_path.stem.replace('-', '_').replace('.', '_')}_starts", _test_of(_path))
