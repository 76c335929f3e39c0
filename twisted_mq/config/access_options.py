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

    authentication_enabled: bool = option(False, "every request must have the signature of a user")
    authentication_provider: str | None = option(None, "Apache's class or nothing", type="string")
    authentication_metadata_provider: str | None = option(
        None,
        "Apache's class; users and policies can be created before requests are checked",
        type="string",
    )
    authentication_strategy: str | None = option(
        None,
        "Apache's class; the stateful one caches results for each connection",
        type="string",
    )
    authentication_whitelist: str | None = option(
        None, "request codes without signature, separated by commas", type="string"
    )
    init_authentication_user: str | None = option(
        None,
        'first super user, {"username":"...","password":"..."}; an existing user is not changed',
        type="string",
        secret=True,
    )
    inner_client_authentication_credentials: str | None = option(
        None,
        'credentials for the own requests of this server, {"accessKey":"...","secretKey":"..."}; a super user too',
        type="string",
        secret=True,
    )
    authorization_enabled: bool = option(False, "the rights of users are checked with their policies")
    authorization_provider: str | None = option(None, "Apache's class or nothing", type="string")
    authorization_metadata_provider: str | None = option(None, "Apache's class or nothing", type="string")
    authorization_strategy: str | None = option(
        None,
        "Apache's class; the stateful one caches the decisions for a user",
        type="string",
    )
    authorization_whitelist: str | None = option(
        None, "request codes that need no rights, separated by commas", type="string"
    )
    migrate_auth_from_v1_enabled: bool = option(
        False, "migrate accounts of plain_acl.yml to users; existing users are not changed"
    )
    stateful_authentication_cache_max_num: int = option(
        10_000, "number of results that the stateful strategy caches", low=1
    )
    stateful_authentication_cache_expired_second: int = option(60, "seconds that a result is cached", low=1)
    stateful_authorization_cache_max_num: int = option(
        10_000, "number of results that the stateful strategy caches", low=1
    )
    stateful_authorization_cache_expired_second: int = option(60, "seconds that a result is cached", low=1)
    signed_fields_strict: bool = option(
        True,
        "refuse a signed request with a field or body of another request; ours",
    )
    acl_enable: bool = option(False, "access control 1.0: accounts of conf/plain_acl.yml and conf/acl")
    rocketmq_home: str | None = option(
        attrs.Factory(home_of_environment),
        "directory that contains conf; unset: ROCKETMQ_HOME",
        type="string",
    )

    @property
    def asks(self) -> bool:
        """True if any access control is on."""
        return self.authentication_enabled or self.acl_enable
