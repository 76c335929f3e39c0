"""Defines settings of access control (Apache: AuthConfig; aclEnable of BrokerConfig until 5.3.2). Name servers here have
them too.
"""

from __future__ import annotations

import attrs

from twisted_mq.config.connection_options import ConnectionOptions
from twisted_mq.config.environment import home_of_environment
from twisted_mq.config.options import option


@attrs.define(kw_only=True)
class AccessOptions(ConnectionOptions):
    """Settings of authentication and authorization."""

    # access control

    authentication_enabled: bool = option(
        "authenticationEnabled", False, "every request is asked for a user's signature"
    )
    authentication_provider: str | None = option(
        "authenticationProvider", None, "Apache's class or nothing", type="string"
    )
    authentication_metadata_provider: str | None = option(
        "authenticationMetadataProvider",
        None,
        "Apache's class: users and policies can be made while nobody is asked yet",
        type="string",
    )
    authentication_strategy: str | None = option(
        "authenticationStrategy",
        None,
        "Apache's class; the stateful one remembers what a connection was answered",
        type="string",
    )
    authentication_whitelist: str | None = option(
        "authenticationWhitelist", None, "codes of requests that need no signature, parted by commas", type="string"
    )
    init_authentication_user: str | None = option(
        "initAuthenticationUser",
        None,
        'first super user, {"username":"...","password":"..."}; kept as it is where there is one of the name',
        type="string",
        secret=True,
    )
    inner_client_authentication_credentials: str | None = option(
        "innerClientAuthenticationCredentials",
        None,
        'what this server signs its own requests with, {"accessKey":"...","secretKey":"..."}; a super user too',
        type="string",
        secret=True,
    )
    authorization_enabled: bool = option("authorizationEnabled", False, "users may do what their policies allow")
    authorization_provider: str | None = option(
        "authorizationProvider", None, "Apache's class or nothing", type="string"
    )
    authorization_metadata_provider: str | None = option(
        "authorizationMetadataProvider", None, "Apache's class or nothing", type="string"
    )
    authorization_strategy: str | None = option(
        "authorizationStrategy",
        None,
        "Apache's class; the stateful one remembers what a user was allowed",
        type="string",
    )
    authorization_whitelist: str | None = option(
        "authorizationWhitelist", None, "codes of requests that need no rights, parted by commas", type="string"
    )
    migrate_auth_from_v1_enabled: bool = option(
        "migrateAuthFromV1Enabled", False, "accounts of plain_acl.yml become users, where there are none of the name"
    )
    stateful_authentication_cache_max_num: int = option(
        "statefulAuthenticationCacheMaxNum", 10_000, "answers that the stateful strategy remembers", low=1
    )
    stateful_authentication_cache_expired_second: int = option(
        "statefulAuthenticationCacheExpiredSecond", 60, "s for which it does", low=1
    )
    stateful_authorization_cache_max_num: int = option(
        "statefulAuthorizationCacheMaxNum", 10_000, "answers that the stateful strategy remembers", low=1
    )
    stateful_authorization_cache_expired_second: int = option(
        "statefulAuthorizationCacheExpiredSecond", 60, "s for which it does", low=1
    )
    signed_fields_strict: bool = option(
        "signedFieldsStrict",
        True,
        "a signed request with a field or a body that belongs to another request is refused; ours",
    )
    acl_enable: bool = option("aclEnable", False, "access control 1.0: accounts of conf/plain_acl.yml and conf/acl")
    rocketmq_home: str | None = option(
        "rocketmqHome", attrs.Factory(home_of_environment), "folder with conf; unset: ROCKETMQ_HOME", type="string"
    )

    @property
    def asks(self) -> bool:
        """True if any access control is on."""
        return self.authentication_enabled or self.acl_enable
