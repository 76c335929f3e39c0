"""Settings of rmq-proxy.json."""

from __future__ import annotations

from pathlib import Path

import pytest

from twisted_mq.config.errors import ConfigError
from twisted_mq.proxy.cluster_service import ProxyService
from twisted_mq.proxy.options import ProxyOptions, ProxyServiceOptions, load_proxy_options, read_json

APACHES = """{
  "rocketMQClusterName": "DefaultCluster",
  "proxyMode": "CLUSTER",
  "grpcServerPort": 8082,
  "enableTopicMessageTypeCheck": false,
  "namesrvAddr": "10.0.0.1:9876;10.0.0.2:9876"
}
"""


def written(folder: Path, text: str) -> str:
    path = folder / "rmq-proxy.json"
    path.write_text(text)
    return str(path)


def test_file_of_apaches_proxy_is_taken(tmp_path: Path) -> None:
    options = load_proxy_options(written(tmp_path, APACHES), ProxyServiceOptions)
    assert (options.grpc_server_port, options.enable_topic_message_type_check) == (8082, False)
    assert options.name_servers == ["10.0.0.1:9876", "10.0.0.2:9876"]


def test_entries_have_their_lines_and_the_text_of_a_properties_file(tmp_path: Path) -> None:
    entries = read_json(written(tmp_path, '{"a": true,\n "b": 1,\n "c": null, "d": "x"}'))
    assert [(one.key, one.value, one.line) for one in entries] == [
        ("a", "true", 1), ("b", "1", 2), ("c", "", 3), ("d", "x", 3),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"grpcServerPrt": 1}', "grpcServerPrt=1: unknown key, did you mean grpcServerPort?"),
        ('{\n"grpcServerPort": 99999}', "line 2: grpcServerPort=99999"),
        ('{"remotingListenPort": 8080}', "remotingListenPort=8080: no effect here"),
    ],
)
def test_strict_start_refuses_what_is_not_as_written(tmp_path: Path, text: str, expected: str) -> None:
    path = written(tmp_path, text)
    load_proxy_options(path, ProxyServiceOptions)
    with pytest.raises(ConfigError) as refused:
        load_proxy_options(path, ProxyServiceOptions, strict=True)
    assert expected in str(refused.value)


@pytest.mark.parametrize("text", ["[]", "{", '{"grpcServerPort": "many"}'])
def test_file_that_is_wrong_ends_the_start(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigError):
        load_proxy_options(written(tmp_path, text), ProxyServiceOptions)


@pytest.mark.parametrize("key", ["enableACL", "aclEnable"])
def test_access_control_that_is_not_served_ends_the_start(tmp_path: Path, key: str) -> None:
    with pytest.raises(ConfigError, match=key):
        load_proxy_options(written(tmp_path, f'{{"{key}": true}}'), ProxyServiceOptions)


def test_broker_checks_users_by_its_own_settings(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="set it for the broker"):
        load_proxy_options(written(tmp_path, '{"authenticationEnabled": true}'), ProxyOptions)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"authentication_enabled": True}, "needs innerClientAuthenticationCredentials"),
        ({"authorization_enabled": True}, "needs authenticationEnabled"),
        ({"authentication_enabled": True, "inner_client_authentication_credentials": "{}"}, "accessKey"),
    ],
)
def test_access_control_without_what_it_needs_ends_the_start(settings: dict[str, object], expected: str) -> None:
    from twisted.internet import reactor

    options = ProxyServiceOptions(
        bind_address="127.0.0.1",
        grpc_server_port=0,
        namesrv_addr="127.0.0.1:1",
        **settings,  # type: ignore[arg-type]
    )
    service = ProxyService(options, reactor)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=expected):
        service.startService()
