"""Builds the access control of one server from its settings. Without such settings nothing is read, and nothing checked."""

from __future__ import annotations

import os
from collections.abc import Callable

import attrs

from twisted_mq.access import resources
from twisted_mq.access.accounts import Accounts
from twisted_mq.access.guard import AccessCheck
from twisted_mq.access.migration import migrate
from twisted_mq.access.names import ResourceNames
from twisted_mq.access.plain_access import PlainAccess
from twisted_mq.access.plain_files import LOOK_SECONDS as LOOK_SECONDS
from twisted_mq.access.plain_files import PlainFiles
from twisted_mq.access.requests import AccountRequests
from twisted_mq.access.resources import Resource
from twisted_mq.access.secrets import first_user, inner_credentials
from twisted_mq.access.user_access import Remembered, UserAccess
from twisted_mq.config.access_options import AccessOptions
from twisted_mq.config.errors import ConfigError
from twisted_mq.extras import require
from twisted_mq.logs import Logger
from twisted_mq.protocol.bodies import UserInfo
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.errors import BrokerError
from twisted_mq.protocol.requests.rights import Action
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.signature import ACCESS_KEY, Credentials
from twisted_mq.reactor_threads import InThread
from twisted_mq.remoting.channel import Channel, Processor
from twisted_mq.storage.tables.small_tables import AccessTable

log = Logger()

STATEFUL = ("StatefulAuthenticationStrategy", "StatefulAuthorizationStrategy")
_USERS = "org.apache.rocketmq.auth.authentication."
_RIGHTS = "org.apache.rocketmq.auth.authorization."


def _check_classes(options: AccessOptions) -> None:
    """Check the classes in the settings. Raises ConfigError for a class that has no counterpart here."""
    for key, given, *names in (
        ("authenticationProvider", options.authentication_provider, f"{_USERS}provider.DefaultAuthenticationProvider"),
        (
            "authenticationMetadataProvider",
            options.authentication_metadata_provider,
            f"{_USERS}provider.LocalAuthenticationMetadataProvider",
        ),
        (
            "authenticationStrategy",
            options.authentication_strategy,
            f"{_USERS}strategy.StatelessAuthenticationStrategy",
            f"{_USERS}strategy.StatefulAuthenticationStrategy",
        ),
        ("authorizationProvider", options.authorization_provider, f"{_RIGHTS}provider.DefaultAuthorizationProvider"),
        (
            "authorizationMetadataProvider",
            options.authorization_metadata_provider,
            f"{_RIGHTS}provider.LocalAuthorizationMetadataProvider",
        ),
        (
            "authorizationStrategy",
            options.authorization_strategy,
            f"{_RIGHTS}strategy.StatelessAuthorizationStrategy",
            f"{_RIGHTS}strategy.StatefulAuthorizationStrategy",
        ),
    ):
        if given is not None and given not in names:
            raise ConfigError(f"must be one of {', '.join(names)}", key=key, value=given)


@attrs.frozen(eq=False)
class ServerAccess:
    """The access control of one server. `checks` are made one after the other, 1.0 before 2.0 as in Apache's servers that
    had both; empty without access control. `processors` serve users and policies; call `plain.look` from time to time;
    `credentials` sign the server's own requests. `strict`: see `guarded`.
    """

    checks: tuple[AccessCheck, ...] = ()
    accounts: Accounts | None = None
    plain: PlainFiles | None = None
    credentials: Credentials | None = None
    strict: bool = True

    def check_topic(self, channel: Channel, command: RemotingCommand, actions: tuple[Action, ...], topic: str) -> None:
        """Raise BrokerError unless the sender may do one of `actions` with a topic that the request does not name."""
        self._check(channel, command.ext_fields.get(ACCESS_KEY), command.code, actions, resources.topic(topic))

    def check_group(self, channel: Channel, command: RemotingCommand, actions: tuple[Action, ...], group: str) -> None:
        """Check the same for a group."""
        self._check(channel, command.ext_fields.get(ACCESS_KEY), command.code, actions, resources.group(group))

    def check_resource(
        self, channel: Channel, account: str | None, code: int, actions: tuple[Action, ...], resource: Resource
    ) -> None:
        """Raises BrokerError unless an account that was authenticated may do one of `actions`, as requests of this code do."""
        self._check(channel, account, code, actions, resource)

    def may_publish(self, channel: Channel, account: str | None, *named: Resource) -> bool:
        """Return True if a client that connected with that account's signature may publish to all of these, by the
        current rights.
        """
        try:
            for resource in named:
                self._check(channel, account, RequestCode.END_TRANSACTION, (Action.PUB,), resource)
        except BrokerError:
            return False
        return True

    def _check(
        self, channel: Channel, account: str | None, code: int, actions: tuple[Action, ...], resource: Resource
    ) -> None:
        for check in self.checks:
            check.check_resource(channel, account, code, actions, resource)

    @property
    def processors(self) -> dict[RequestCode, Processor]:
        return {} if self.accounts is None else dict(AccountRequests(self.accounts, self.credentials).processors)


NOBODY_IS_ASKED = ServerAccess()


def server_access(
    options: AccessOptions, folder: str, cluster_name: str, now: Callable[[], float], in_thread: InThread
) -> ServerAccess:
    """Return the access control of the settings; users and policies are in `folder`. Raises ConfigError, MissingExtra,
    OSError.
    """
    _check_classes(options)
    names = ResourceNames(cluster_name, in_thread)
    plain = _plain_files(options)
    accounts = _accounts(options, folder, in_thread, plain)
    checks: list[AccessCheck] = []
    if plain is not None and options.acl_enable:
        checks.append(PlainAccess(plain, names))
    if accounts is not None and (options.authentication_enabled or options.authorization_enabled):
        checks.append(_user_access(options, accounts, names, now))
    return ServerAccess(
        (*checks,),
        accounts,
        plain if options.acl_enable else None,
        inner_credentials(options.inner_client_authentication_credentials),
        options.signed_fields_strict,
    )


def _plain_files(options: AccessOptions) -> PlainFiles | None:
    if not options.acl_enable and not options.migrate_auth_from_v1_enabled:
        return None
    key = "aclEnable" if options.acl_enable else "migrateAuthFromV1Enabled"
    if options.rocketmq_home is None:
        raise ConfigError(
            "set rocketmqHome or ROCKETMQ_HOME to the directory that contains conf", key=key, value="true"
        )
    require(f"{key}=true", "access")
    files = PlainFiles(options.rocketmq_home)
    files.load()
    return files


def _accounts(options: AccessOptions, folder: str, in_thread: InThread, plain: PlainFiles | None) -> Accounts | None:
    if not (
        options.authentication_enabled
        or options.authorization_enabled
        or options.migrate_auth_from_v1_enabled
        or options.authentication_metadata_provider is not None
    ):
        return None
    table = AccessTable(os.path.join(folder, "access.json"))
    accounts = Accounts.load(table, in_thread)
    for user in (first_user(options), _inner_user(options)):
        if user is not None and user.username not in accounts.users:
            accounts.create_user(user)
    if plain is not None and options.migrate_auth_from_v1_enabled:
        made = migrate(plain.accounts.accounts.values(), accounts)
        log.info("accounts migrated to users: {names}", names=", ".join(made) or "none")
    table.save()
    return accounts


def _inner_user(options: AccessOptions) -> UserInfo | None:
    inner = inner_credentials(options.inner_client_authentication_credentials)
    return None if inner is None else UserInfo(inner.access_key, inner.secret_key, "Super")


def _user_access(
    options: AccessOptions, accounts: Accounts, names: ResourceNames, now: Callable[[], float]
) -> UserAccess:
    stateful_users = (options.authentication_strategy or "").endswith(STATEFUL)
    stateful_rights = (options.authorization_strategy or "").endswith(STATEFUL)
    return UserAccess(
        accounts=accounts,
        names=names,
        authenticates=options.authentication_enabled,
        authorizes=options.authorization_enabled,
        not_authenticated=_codes("authenticationWhitelist", options.authentication_whitelist),
        not_authorized=_codes("authorizationWhitelist", options.authorization_whitelist),
        authenticated=Remembered(
            options.stateful_authentication_cache_expired_second, options.stateful_authentication_cache_max_num, now
        )
        if stateful_users
        else None,
        authorized=Remembered(
            options.stateful_authorization_cache_expired_second, options.stateful_authorization_cache_max_num, now
        )
        if stateful_rights
        else None,
    )


def _codes(key: str, text: str | None) -> frozenset[int]:
    parts = [part.strip() for part in (text or "").split(",") if part.strip()]
    wrong = [part for part in parts if not part.isdecimal()]
    if wrong:
        raise ConfigError(f"{wrong[0]} is not a request code", key=key, value=text)
    return frozenset(int(part) for part in parts)
