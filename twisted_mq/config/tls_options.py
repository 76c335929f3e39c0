"""Defines settings of TLS (Apache: TlsSystemConfig), which Apache reads from system properties and from tls.config.file."""

from __future__ import annotations

import enum

import attrs

from twisted_mq.config.access_options import AccessOptions
from twisted_mq.config.errors import ConfigError
from twisted_mq.config.options import option, option_fields, read_options
from twisted_mq.config.properties import read_properties


class TlsMode(enum.StrEnum):
    """When connections are encrypted (Apache: TlsMode)."""

    DISABLED = "disabled"
    PERMISSIVE = "permissive"
    ENFORCING = "enforcing"


class ClientAuth(enum.StrEnum):
    """The demand for clients' certificates (netty: ClientAuth)."""

    NONE = "none"
    OPTIONAL = "optional"
    REQUIRE = "require"


@attrs.define(kw_only=True)
class TlsOptions(AccessOptions):
    """Settings of encryption."""

    # encryption

    tls_server_mode: TlsMode = option(  # noqa: RUF009 an attrs field, not a shared default
        TlsMode.DISABLED,
        "disabled, permissive (the port takes both) or enforcing; Apache's default is permissive",
        type=TlsMode,
        key="tls.server.mode",
    )
    tls_config_file: str | None = option(
        None,
        "properties file with more of these keys, which override those given here",
        type="string",
        key="tls.config.file",
    )
    tls_test_mode_enable: bool = option(
        False,
        "use a certificate created at the start, for tests only; Apache's default is true",
        key="tls.test.mode.enable",
    )
    tls_server_cert_path: str | None = option(
        None, "PEM file of the server's certificate and its chain", type="string", key="tls.server.certPath"
    )
    tls_server_key_path: str | None = option(
        None, "PEM file of the server's private key", type="string", key="tls.server.keyPath"
    )
    tls_server_key_password: str | None = option(
        None, "password of the private key", type="string", secret=True, key="tls.server.keyPassword"
    )
    tls_server_need_client_auth: ClientAuth = option(  # noqa: RUF009
        ClientAuth.NONE,
        "none, optional or require: client certificates",
        type=ClientAuth,
        key="tls.server.need.client.auth",
    )
    tls_server_auth_client: bool = option(
        False, "client certificates must be signed by one of tls.server.trustCertPath", key="tls.server.authClient"
    )
    tls_server_trust_cert_path: str | None = option(
        None, "PEM file of the authorities of client certificates", type="string", key="tls.server.trustCertPath"
    )
    tls_enable: bool = option(
        False, "encrypt requests to name servers and masters; always in enforcing mode", key="tls.enable"
    )
    use_tls: bool = option(False, "the same as tls.enable", key="useTLS")
    tls_client_cert_path: str | None = option(
        None, "PEM file of the client certificate for own requests", type="string", key="tls.client.certPath"
    )
    tls_client_key_path: str | None = option(
        None, "PEM file of its private key", type="string", key="tls.client.keyPath"
    )
    tls_client_key_password: str | None = option(
        None, "password of that key", type="string", secret=True, key="tls.client.keyPassword"
    )
    tls_client_auth_server: bool = option(
        False, "server certificates must be signed by one of tls.client.trustCertPath", key="tls.client.authServer"
    )
    tls_client_trust_cert_path: str | None = option(
        None, "PEM file of the authorities of server certificates", type="string", key="tls.client.trustCertPath"
    )
    ha_tls: bool = option(False, "encrypt replication; set it at master and slave; ours")


def with_tls_file(options: TlsOptions) -> TlsOptions:
    """Return the settings of encryption with those of tls.config.file. Raises ConfigError."""
    fields = option_fields(TlsOptions)
    given = {field.name: getattr(options, field.name) for field in fields.values()}
    path = options.tls_config_file
    if path is not None:
        entries = [entry for entry in read_properties(path) if entry.key in fields]
        read, _ = read_options(TlsOptions, entries, path)
        if any(entry.key == "tls.config.file" for entry in entries):
            raise ConfigError("cannot be set in such a file", path=path, key="tls.config.file", value=path)
        given |= {fields[entry.key].name: getattr(read, fields[entry.key].name) for entry in entries}
    return TlsOptions(**given)
