"""config/access.json: users and their rights. Not in Apache, which keeps them in RocksDB, config/users and config/acls.

{"acls":{"User:ada":{"policies":[{"entries":[{"actions":["Pub"],"decision":"Allow","resource":"Topic:Orders"}],
"policyType":"Custom"}],"subject":"User:ada"}},
"users":{"ada":{"password":"...","userStatus":"enable","userType":"Normal","username":"ada"}}}

Passwords are stored in plain text, because signatures are computed from them: only the file's owner can read it.
"""

from __future__ import annotations

from twisted_mq.protocol.bodies import AccessWrapper, AclInfo, UserInfo
from twisted_mq.protocol.bodies.codec import decode_body
from twisted_mq.storage.files.json_file import OWNER_ONLY
from twisted_mq.storage.tables.config_tables import ConfigTable


class AccessTable(ConfigTable[AccessWrapper]):
    """`users` by name, `acls` by subject (`User:ada`)."""

    def __init__(self, path: str) -> None:
        super().__init__(path, lambda data: decode_body(AccessWrapper, data), OWNER_ONLY)
        self.users: dict[str, UserInfo] = {}
        self.acls: dict[str, AclInfo] = {}

    def _fill(self, body: AccessWrapper) -> None:
        self.users, self.acls = dict(body.users), dict(body.acls)

    def _body(self) -> AccessWrapper:
        return AccessWrapper(dict(self.users), dict(self.acls))
