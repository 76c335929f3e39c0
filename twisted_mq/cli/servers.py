"""Finds servers for commands: their addresses, the account that signs, and encryption; from options, variables or a context."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeAlias

import attrs

from twisted_mq.cli.contexts import Contexts, contexts_path, read_contexts
from twisted_mq.cli.errors import CliError
from twisted_mq.config.environment import home_of_environment

if TYPE_CHECKING:
    from twisted_mq.client.core.client_options import ClientOptions
    from twisted_mq.encryption.settings import ClientSettings
    from twisted_mq.protocol.wire.signature import Credentials

HERE = "127.0.0.1:9876"
"""The address of the name server of `mq up`."""

Given: TypeAlias = Mapping[str, "str | bool | None"]
"""Setting's name -> value; None if it is not given."""


@attrs.frozen
class ServerSetting:
    """A setting about servers: an option, a variable of the environment, and a member of a context."""

    name: str
    variable: str
    help: str
    is_switch: bool = False
    is_file: bool = False
    secret: bool = False

    @property
    def flag(self) -> str:
        return f"--{self.name}"

    @property
    def attribute(self) -> str:
        return self.name.replace("-", "_")


SETTINGS = (
    ServerSetting("namesrv", "NAMESRV_ADDR", f"Name servers, host:port separated by semicolons.  [default: {HERE}]"),
    ServerSetting("access-key", "MQ_ACCESS_KEY", "Access key (user name) that signs requests."),
    ServerSetting(
        "secret-key",
        "MQ_SECRET_KEY",
        "Secret key of that user; other users of this machine can see command lines.",
        secret=True,
    ),
    ServerSetting(
        "credentials",
        "MQ_CREDENTIALS",
        "File with accessKey and secretKey, like Apache's tools.yml.  [default: $ROCKETMQ_HOME/conf/tools.yml]",
        is_file=True,
    ),
    ServerSetting("tls", "MQ_TLS", "Encrypt connections with TLS.", is_switch=True),
    ServerSetting(
        "tls-ca",
        "MQ_TLS_CA",
        "Certificate of the authority that signed the servers' certificates (PEM file); requires --tls.",
        is_file=True,
    ),
    ServerSetting("tls-cert", "MQ_TLS_CERT", "Client certificate (PEM file); requires --tls-key.", is_file=True),
    ServerSetting("tls-key", "MQ_TLS_KEY", "Private key of the client certificate (PEM file).", is_file=True),
    ServerSetting("tls-key-password", "MQ_TLS_KEY_PASSWORD", "Password of the private key.", secret=True),
    ServerSetting(
        "tls-any-host",
        "MQ_TLS_ANY_HOST",
        "Accept a server's certificate that is issued for another host.",
        is_switch=True,
    ),
    ServerSetting("tls-insecure", "MQ_TLS_INSECURE", "Accept any certificate of a server.", is_switch=True),
)
BY_NAME = {setting.name: setting for setting in SETTINGS}
CONTEXT_VARIABLE = "MQ_CONTEXT"


@attrs.frozen
class Servers:
    """A cluster for a command. Its text shows no secrets."""

    namesrv: str = HERE
    access_key: str | None = None
    secret_key: str | None = attrs.field(default=None, repr=False)
    credentials: str | None = None
    tls: bool = False
    tls_ca: str | None = None
    tls_cert: str | None = None
    tls_key: str | None = None
    tls_key_password: str | None = attrs.field(default=None, repr=False)
    tls_any_host: bool = False
    tls_insecure: bool = False

    @property
    def addresses(self) -> list[str]:
        """Return the addresses of the name servers."""
        return [part.strip() for part in self.namesrv.split(";") if part.strip()]

    @property
    def encrypted(self) -> bool:
        """True if the user names an authority or a certificate, or asks for encryption."""
        return self.tls or self.tls_insecure or any((self.tls_ca, self.tls_cert, self.tls_key))

    def client_options(self) -> ClientOptions:
        """Return the options for producers and consumers. Raises CliError for an account without one of its keys."""
        from twisted_mq.client.core.client_options import ClientOptions

        keys = self.account()
        return ClientOptions(
            access_key=None if keys is None else keys.access_key,
            secret_key=None if keys is None else keys.secret_key,
            tls_enable=self.encrypted,
            tls_auth_server=not self.tls_insecure,
            tls_check_host=not self.tls_any_host,
            tls_trust_cert_path=self.tls_ca,
            tls_cert_path=self.tls_cert,
            tls_key_path=self.tls_key,
            tls_key_password=self.tls_key_password,
        )

    def tls_settings(self) -> ClientSettings | None:
        """Return the settings of encryption; None without. Loads nothing of the client library, like `account`."""
        from twisted_mq.encryption.settings import ClientSettings

        if not self.encrypted:
            return None
        return ClientSettings(
            cert_path=self.tls_cert,
            key_path=self.tls_key,
            key_password=self.tls_key_password,
            auth_server=not self.tls_insecure,
            trust_cert_path=self.tls_ca,
            check_host=not self.tls_any_host,
            names=("--tls-cert", "--tls-key", "--tls-ca"),
        )

    def account(self) -> Credentials | None:
        """Return the given keys, or else those of the file, or else of Apache's. Raises CliError if one of the two is missing."""
        from twisted_mq.access.secrets import credentials_in, credentials_of_tools
        from twisted_mq.protocol.wire.signature import Credentials

        if self.access_key or self.secret_key:
            if not self.access_key or not self.secret_key:
                raise CliError(
                    "an account needs both keys", "give --access-key and --secret-key, or a --credentials file"
                )
            return Credentials(self.access_key, self.secret_key)
        try:
            return credentials_in(self.credentials) if self.credentials else credentials_of_tools(home_of_environment())
        except (ImportError, ValueError) as error:
            raise CliError(
                str(error), 'the file must have accessKey and secretKey; pip install "rocketmq-twisted[access]"'
            ) from None


def servers_of(given: Given, context: str | None = None, environ: Mapping[str, str] = os.environ) -> Servers | None:
    """Return the cluster of the options, then a context, then the environment; None if none of them names a name server.

    A context that is merely in use counts only if neither option nor environment names servers: they may be another
    cluster's. Raises CliError for an unknown context.
    """
    from_environment = {one.name: _of_variable(one, environ.get(one.variable)) for one in SETTINGS}
    kept = _context(context or environ.get(CONTEXT_VARIABLE), given, from_environment, contexts_path(environ))
    values = {**_only_given(from_environment), **kept, **_only_given(given)}
    if not str(values.get("namesrv", "")).strip(" ;"):
        return None
    return servers_from(values)


def servers_from(values: Given) -> Servers:
    """Return settings by name; a ~ at the beginning of a file's name is the home."""
    files = {name: os.path.expanduser(str(values[name])) for name in values if BY_NAME[name].is_file}
    known = {BY_NAME[name].attribute: value for name, value in {**values, **files}.items()}
    return Servers(**known)  # type: ignore[arg-type]  # of the types that BY_NAME has


def _context(name: str | None, given: Given, from_environment: Given, path: str) -> Given:
    if name:
        return read_contexts(path, BY_NAME).named(name)
    if given.get("namesrv") or from_environment["namesrv"]:
        return {}
    contexts: Contexts = read_contexts(path, BY_NAME)
    return contexts.named(contexts.in_use) if contexts.in_use else {}


def _only_given(values: Given) -> dict[str, str | bool]:
    return {name: value for name, value in values.items() if value is not None}


def _of_variable(setting: ServerSetting, text: str | None) -> str | bool | None:
    if not text:
        return None
    return text.strip().lower() in ("1", "true", "yes", "on") if setting.is_switch else text
