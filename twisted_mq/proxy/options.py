"""Settings of the proxy's calls, by the keys of Apache's rmq-proxy.json (ProxyConfig), with the same defaults."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from typing import TypeVar

import attrs
import msgspec

from twisted_mq.config.environment import name_servers_of_environment
from twisted_mq.config.errors import ConfigError
from twisted_mq.config.limits import PORT
from twisted_mq.config.metrics_options import MetricsExporterType
from twisted_mq.config.options import load_options, option, option_fields
from twisted_mq.config.properties import Entry

ACCESS_KEYS = frozenset({"authenticationEnabled", "authorizationEnabled", "enableACL", "aclEnable"})
"""Keys that promise a check of users. A start with one that is not served is refused."""


@attrs.define(kw_only=True)
class ProxyOptions:
    """Settings for serving gRPC clients. Local and cluster mode have the same ones."""

    # gRPC clients

    grpc_max_inbound_message_size: int = option(
        136_314_880, "bytes of one gRPC message, also when decompressed", low=1024
    )
    grpc_client_idle_time_mills: int = option(
        120_000,
        "ms without calls after which a gRPC connection is closed",
        type="long",
        low=1,
    )
    channel_expired_timeout: int = option(
        120_000,
        "ms without heartbeats after which a client is removed and its messages are delivered again",
        type="long",
        low=1,
    )
    proxy_protocol_from: str = option(
        "",
        "load balancers that tell the addresses of clients in PROXY headers (versions 1 and 2): addresses or ranges such as"
        " 10.0.0.0/8, separated by commas; ours, Apache's proxy believes everyone",
    )
    max_user_property_size: int = option(
        16_384, "bytes of names and values of a message's properties, tag and keys", low=1
    )
    user_property_max_num: int = option(128, "number of user properties of a message", low=0)
    max_message_group_size: int = option(64, "limit in bytes of a message group, exclusive", low=1)
    enable_message_body_empty_check: bool = option(True, "refuse messages without a body from gRPC clients")
    enable_topic_message_type_check: bool = option(True, "a message must have the type of its topic (message.type)")
    min_invisible_time_mills_for_recv: int = option(
        10_000,
        "shortest ms of invisibility that a receive may request",
        type="long",
        low=1,
    )
    max_invisible_time_mills: int = option(43_200_000, "longest ms of invisibility", type="long", low=1)
    max_delay_time_mills: int = option(
        86_400_000, "longest ms until the delivery of a delayed message", type="long", low=0
    )
    max_transaction_recovery_second: int = option(
        3600,
        "longest time in s until a producer is asked about its transaction",
        type="long",
        low=1,
    )
    default_invisible_time_mills: int = option(
        60_000, "ms of invisibility of receives that are renewed", type="long", low=1
    )
    grpc_client_producer_max_attempts: int = option(3, "number of attempts of producers to send a message", low=1)
    grpc_client_producer_backoff_initial_millis: int = option(
        10, "ms before the second attempt of a producer", type="long", low=0
    )
    grpc_client_producer_backoff_max_millis: int = option(
        1000, "longest ms between two attempts of a producer", type="long", low=0
    )
    grpc_client_producer_backoff_multiplier: int = option(2, "factor by which that time grows with each attempt", low=1)
    grpc_client_consumer_min_long_polling_timeout_millis: int = option(
        5000, "shortest ms that a receive waits", type="long", low=0
    )
    grpc_client_consumer_max_long_polling_timeout_millis: int = option(
        20_000, "longest ms that a receive waits", type="long", low=0
    )
    grpc_client_consumer_long_polling_batch_size: int = option(
        32, "number of messages that consumers receive at once", low=1
    )
    enable_proxy_auto_renew: bool = option(True, "keep messages of push consumers invisible while they are consumed")
    renew_ahead_time_millis: int = option(10_000, "ms before its end that invisibility is renewed", type="long", low=1)
    renew_max_time_millis: int = option(10_800_000, "ms after which it is no longer renewed", type="long", low=1)
    renew_schedule_period_millis: int = option(5000, "ms between checks for renewals", type="long", low=1)
    invisible_time_millis_when_clear: int = option(
        1000,
        "ms after which messages of a removed client are delivered again",
        type="long",
        low=1,
    )
    grpc_proxy_relay_request_timeout_in_seconds: int = option(
        5,
        "s that a client has to answer what an operator asks it: thread stacks, a message to verify",
        low=1,
    )
    transaction_data_expire_millis: int = option(
        30_000,
        "ms for which the location of a transaction is stored",
        type="long",
        low=1,
    )


OptionsT = TypeVar("OptionsT", bound=ProxyOptions)


def read_json(path: str) -> list[Entry]:
    """Return the entries of rmq-proxy.json in their order, each with its line. Raises ConfigError."""
    try:
        with open(path, "rb") as file:
            content = file.read(1 << 20)
        found = msgspec.json.decode(content)
    except (OSError, msgspec.DecodeError) as error:
        raise ConfigError(f"cannot be read: {error}", path=path, key="proxyConfigPath", value=path) from None
    if not isinstance(found, dict):
        raise ConfigError("must be a JSON object", path=path, key="proxyConfigPath", value=path)
    return [Entry(key, _text(value), line=_line(content, key)) for key, value in found.items()]


def _line(content: bytes, key: str) -> int:
    """Return the line of a key's first occurrence; 1 for a key that is written with escapes."""
    return content.count(b"\n", 0, max(0, content.find(f'"{key}"'.encode()))) + 1


def _text(value: object) -> str:
    """Return a value as a properties file has it."""
    if isinstance(value, str):
        return value
    return "" if value is None else msgspec.json.encode(value).decode()


def load_proxy_options(
    path: str | None,
    cls: type[OptionsT],
    overrides: Mapping[str, str] | None = None,
    *,
    ignore_unsupported: bool = False,
    strict: bool = False,
) -> OptionsT:
    """Return the settings of rmq-proxy.json with the command line's values (key -> text) on top.

    Findings are reported as by `load_options`. Raises ConfigError, also for access control that is not served: nothing would be
    checked.
    """
    entries = [*(read_json(path) if path else []), *(Entry(*pair) for pair in (overrides or {}).items())]
    served = option_fields(cls)
    for entry in entries:
        if entry.key in ACCESS_KEYS and entry.key not in served and entry.value.lower() == "true":
            reason = "is not served here: set it for the broker, which checks users and rights"
            raise ConfigError(
                reason, path=path if entry.line else None, line=entry.line, key=entry.key, value=entry.value
            )
    return load_options(cls, path, overrides, ignore_unsupported=ignore_unsupported, strict=strict, read=read_json)


@attrs.define(kw_only=True)
class ProxyServiceOptions(ProxyOptions):
    """Settings of a proxy in a process of its own (cluster mode)."""

    # the process

    grpc_server_port: int = option(8081, "port for gRPC clients; 0: a free port", low=0, high=65535)
    bind_address: str = option("0.0.0.0", "address to listen on; ours")
    namesrv_addr: str | None = option(
        attrs.Factory(name_servers_of_environment),
        "name servers, host:port separated by semicolons",
        type="string",
    )
    max_message_size: int = option(4_194_304, "bytes of a message's body", low=1)
    proxy_name: str = option(attrs.Factory(socket.gethostname), "name of this proxy in metrics", type="string")
    metrics_exporter_type: MetricsExporterType = option(  # noqa: RUF009 an attrs field, not a shared default
        MetricsExporterType.DISABLE,
        "PROM: metrics for Prometheus at /metrics; metrics are not pushed to a collector",
        type=MetricsExporterType,
    )
    metrics_prom_exporter_host: str = option("", "address of the metrics page; empty: bindAddress")
    metrics_prom_exporter_port: int = option(5557, "port of the metrics page; 0: a free port", limits=PORT)
    metrics_label: str = option("", "labels of every metric, as name:value,name:value")
    rocket_mq_cluster_name: str = option(
        "DefaultCluster", "cluster whose brokers are asked about users", key="rocketMQClusterName"
    )
    authentication_enabled: bool = option(
        False,
        "calls need the signature of a user; brokers are asked about users and check rights",
    )
    authorization_enabled: bool = option(
        False,
        "brokers check rights, and need this setting too; the proxy checks routes and settings of clients; requires "
        "authenticationEnabled",
    )
    inner_client_authentication_credentials: str | None = option(
        None,
        'credentials of this proxy, the same as those of the brokers, {"accessKey":"...","secretKey":"..."}',
        type="string",
        secret=True,
    )
    tls_enable: bool = option(False, "encrypt requests to name servers and brokers; ours", key="tls.enable")
    tls_client_auth_server: bool = option(
        False, "their certificates must be signed by one of tls.client.trustCertPath; ours", key="tls.client.authServer"
    )
    tls_client_trust_cert_path: str | None = option(
        None, "PEM file of the authorities of their certificates; ours", type="string", key="tls.client.trustCertPath"
    )
    tls_cert_path: str | None = option(None, "PEM file of the port's certificate", type="string")
    tls_key_path: str | None = option(None, "PEM file of its private key", type="string")

    @property
    def name_servers(self) -> list[str]:
        """Return the addresses, one by one."""
        return [one.strip() for one in (self.namesrv_addr or "").split(";") if one.strip()]
