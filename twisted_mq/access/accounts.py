"""Keeps users and their policies (Apache: AuthenticationMetadataManager, AuthorizationMetadataManager) in an AccessTable."""

from __future__ import annotations

from collections.abc import Mapping

import attrs
from twisted.internet import defer
from twisted.python import failure

from twisted_mq.access.policies import Policies, PolicyType, parse_policies, policies_info, refused
from twisted_mq.access.resources import Resource
from twisted_mq.logs import Logger
from twisted_mq.protocol.bodies import AclInfo, UserInfo
from twisted_mq.protocol.codes import ResponseCode
from twisted_mq.protocol.errors import BrokerError
from twisted_mq.reactor_threads import InThread, at_once
from twisted_mq.storage.tables.small_tables import AccessTable

SUPER, NORMAL = "Super", "Normal"
ENABLED, DISABLED = "enable", "disable"

_SUBJECT = "User:"
_TYPES = {SUPER.lower(): SUPER, NORMAL.lower(): NORMAL}
_STATES = {ENABLED: ENABLED, DISABLED: DISABLED}

SYSTEM_ERROR = "An system error occurred, please try again later."


def subject_of(name: str) -> str:
    """Return a user's name as policies write it."""
    return _SUBJECT + name


def user_of_subject(subject: str | None) -> str | None:
    """Return the user's name of `User:name`; None for any other text."""
    kind, _, name = (subject or "").partition(":")
    return name if kind.lower() == "user" else None


@attrs.define(eq=False)
class Accounts:
    """All users and policies. A change that is not possible is refused with a BrokerError.

    A change takes effect at once; `saved` fires when it is on disk.
    """

    _table: AccessTable
    _in_thread: InThread = at_once
    _policies: dict[str, Policies] = attrs.field(factory=dict)
    _order: defer.DeferredLock = attrs.field(factory=defer.DeferredLock)
    version: int = 0
    """The number of changes: earlier decisions may not hold after one."""
    log = Logger()

    @classmethod
    def load(cls, table: AccessTable, in_thread: InThread = at_once) -> Accounts:
        """Load a table's file. Policies that cannot be parsed are left out, with a line in the log: they allow nothing."""
        table.load()
        accounts = cls(table, in_thread)
        for subject, info in table.acls.items():
            try:
                accounts._policies[subject] = parse_policies(info)
            except BrokerError as error:
                cls.log.error("policies of {subject} are ignored: {e}", subject=subject, e=error)
        return accounts

    @property
    def users(self) -> Mapping[str, UserInfo]:
        """Return the users by name."""
        return self._table.users

    def policies_of(self, name: str) -> Policies | None:
        """Return the policies of a user; None if the user has none."""
        return self._policies.get(subject_of(name))

    def is_super(self, name: str) -> bool:
        """Return True if a user may do everything. Raises BrokerError for an unknown user."""
        user = self.users.get(name)
        if user is None:
            raise refused(f"User:{name} is not found")
        return user.user_type == SUPER

    def create_user(self, user: UserInfo) -> None:
        """Create a user; Normal and enabled by default."""
        name, password = user.username or "", user.password or ""
        if not name.strip():
            raise refused("username can not be blank")
        if not password.strip():
            raise refused("password can not be blank")
        if name in self.users:
            raise refused("The user is existed")
        kind = parse_user_type(user.user_type) or NORMAL
        self._set_user(UserInfo(name, password, kind, _state(user) or ENABLED))

    def update_user(self, user: UserInfo) -> None:
        """Change the given members of a user."""
        old = self.users.get(user.username or "")
        if old is None:
            raise refused("The user is not exist")
        given = user.password if user.password and user.password.strip() else old.password
        kind = parse_user_type(user.user_type) or old.user_type
        self._set_user(UserInfo(old.username, given, kind, _state(user) or old.user_status))

    def delete_user(self, name: str) -> None:
        """Delete a user and the user's policies."""
        if not name.strip():
            raise refused("username can not be blank")
        self._table.users.pop(name, None)
        self._set_policies(subject_of(name), None)

    def list_users(self, text: str) -> list[UserInfo]:
        """Return the users with the text in their names, by name."""
        return [self.users[name] for name in sorted(self.users) if text in name]

    def put_policies(self, subject: str, info: AclInfo) -> None:
        """Add rules to a user's policies; they replace those about the same resources (createAcl and updateAcl are the same)."""
        changes = parse_policies(info)
        name = self._known(subject, f"The subject of {subject} is not exist.")
        old = self.policies_of(name) or Policies()
        self._set_policies(subject_of(name), old.updated(changes))

    def delete_policies(self, subject: str, policy_type: PolicyType, resource: Resource | None) -> None:
        """Delete the rules about a resource, or all of a user."""
        name = self._known(subject, "The subject is not exist.")
        old = self.policies_of(name)
        if old is None:
            raise refused("The acl is not exist.")
        left = Policies() if resource is None else old.without(policy_type, resource)
        self._set_policies(subject_of(name), left if left != Policies() else None)

    def policies_info_of(self, subject: str) -> AclInfo | None:
        """Return a user's policies as answers have them; None if the user has none."""
        name = self._known(subject, "The subject is not exist.")
        policies = self.policies_of(name)
        return None if policies is None else policies_info(subject_of(name), policies)

    def list_policies(self, subject_filter: str, resource_filter: str) -> list[AclInfo]:
        """Return policies of subjects with the text in their names, about resources with the other text in theirs."""
        shown = [
            policies_info(subject, self._policies[subject], "" if resource_filter in subject else resource_filter)
            for subject in sorted(self._policies)
            if subject_filter in subject
        ]
        return [info for info in shown if info.policies]

    def _known(self, subject: str, remark: str) -> str:
        name = user_of_subject(subject)
        if name is None:
            raise BrokerError(ResponseCode.SYSTEM_ERROR, SYSTEM_ERROR)
        if name not in self.users:
            raise refused(remark)
        return name

    def _set_user(self, user: UserInfo) -> None:
        self.version += 1
        self._table.users[user.username or ""] = user

    def _set_policies(self, subject: str, policies: Policies | None) -> None:
        self.version += 1
        if policies is None:
            self._policies.pop(subject, None)
            self._table.acls.pop(subject, None)
            return
        self._policies[subject] = policies
        self._table.acls[subject] = policies_info(subject, policies)

    def saved(self) -> defer.Deferred[None]:
        """Fire when all changes made so far are on disk. Fails with BrokerError if they cannot be written."""
        written = self._order.run(lambda: self._in_thread(self._table.snapshot()))
        return written.addCallbacks(lambda _: None, self._not_saved)

    def _not_saved(self, reason: failure.Failure) -> None:
        reason.trap(OSError)
        self.log.error("users and policies are not saved: {e}", e=reason.value)
        raise BrokerError(ResponseCode.SYSTEM_ERROR, SYSTEM_ERROR)


def parse_user_type(text: str | None) -> str | None:
    """Return Super or Normal; None for any other text."""
    return _TYPES.get((text or "").lower())


def _state(user: UserInfo) -> str | None:
    return _STATES.get((user.user_status or "").lower())
