"""Defines settings of encrypted connections to servers."""

from __future__ import annotations

import attrs

from twisted_mq.config.tls_options import TlsMode, TlsOptions


@attrs.frozen
class ClientSettings:
    """Settings of a client's encrypted connections. Without `auth_server`, a server may show any certificate;
    `check_host` also requires that it is valid for the host.
    """

    cert_path: str | None = None
    key_path: str | None = None
    key_password: str | None = attrs.field(default=None, repr=False)
    auth_server: bool = True
    trust_cert_path: str | None = None
    check_host: bool = True
    names: tuple[str, str, str] = ("tls_cert_path", "tls_key_path", "tls_trust_cert_path")
    """The names of the settings in errors."""


def own_settings(options: TlsOptions) -> ClientSettings:
    """Return the settings of a server's own connections to others. As in Apache, host names are not checked."""
    return ClientSettings(
        cert_path=options.tls_client_cert_path,
        key_path=options.tls_client_key_path,
        key_password=options.tls_client_key_password,
        auth_server=options.tls_client_auth_server and not options.tls_test_mode_enable,
        trust_cert_path=options.tls_client_trust_cert_path,
        check_host=False,
        names=("tls.client.certPath", "tls.client.keyPath", "tls.client.trustCertPath"),
    )


def encrypts_requests(options: TlsOptions) -> bool:
    """Return True if a server's own requests are encrypted."""
    return options.tls_enable or options.use_tls or options.tls_server_mode is TlsMode.ENFORCING
