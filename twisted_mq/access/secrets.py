"""Reads secrets from settings and files without showing any of them in an error."""

from __future__ import annotations

import os

import msgspec

from twisted_mq.config.access_options import AccessOptions
from twisted_mq.config.errors import ConfigError
from twisted_mq.protocol.bodies import UserInfo
from twisted_mq.protocol.wire.signature import Credentials

_HIDDEN = "(secret)"


class _User(msgspec.Struct):
    username: str = ""
    password: str = ""


class _Credentials(msgspec.Struct):
    accessKey: str = ""
    secretKey: str = ""
    securityToken: str | None = None


def first_user(options: AccessOptions) -> UserInfo | None:
    """Return the super user of initAuthenticationUser. Raises ConfigError."""
    key, text = "initAuthenticationUser", options.init_authentication_user
    if text is None:
        return None
    try:
        user = msgspec.json.decode(text, type=_User)
    except (msgspec.DecodeError, UnicodeError):
        raise _wrong(key, "must be JSON of the form", "username", "password") from None
    if not user.username.strip() or not user.password.strip():
        raise _wrong(key, "both members are required:", "username", "password")
    return UserInfo(user.username, user.password, "Super")


def inner_credentials(text: str | None) -> Credentials | None:
    """Return the credentials for a server's own requests (innerClientAuthenticationCredentials). Raises ConfigError."""
    key = "innerClientAuthenticationCredentials"
    if text is None:
        return None
    try:
        given = msgspec.json.decode(text, type=_Credentials)
    except (msgspec.DecodeError, UnicodeError):
        raise _wrong(key, "must be JSON of the form", "accessKey", "secretKey") from None
    if not given.accessKey.strip() or not given.secretKey.strip():
        raise _wrong(key, "both members are required:", "accessKey", "secretKey")
    return Credentials(given.accessKey, given.secretKey, given.securityToken)


def _wrong(key: str, reason: str, name: str, secret: str) -> ConfigError:
    return ConfigError(f'{reason} {{"{name}":"...","{secret}":"..."}}', key=key, value=_HIDDEN)


def credentials_of_tools(home: str | None) -> Credentials | None:
    """Return administrators' credentials from conf/tools.yml below ROCKETMQ_HOME; None without the file (AclUtils.getAclRPCHook).

    Raises ValueError for a file that cannot be read.
    """
    path = os.path.join(home or "", "conf", "tools.yml")
    return None if home is None or not os.path.exists(path) else _keys_in(path)


def credentials_in(path: str) -> Credentials:
    """Return the credentials in a file of the same form. Raises ValueError, also if it lacks a key."""
    found = _keys_in(path)
    if found is None:
        raise ValueError(f"{path}: has no accessKey with a secretKey")
    return found


def _keys_in(path: str) -> Credentials | None:
    import yaml

    try:
        with open(path, "rb") as file:
            data = yaml.safe_load(file)
    except (OSError, yaml.YAMLError):
        raise ValueError(f"{path}: not valid YAML") from None
    keys = [data.get(name) for name in ("accessKey", "secretKey")] if isinstance(data, dict) else []
    given = [str(key) for key in keys if key is not None and str(key).strip()]
    return Credentials(*given) if len(given) == 2 else None
