"""Every key of Apache's broker has an effect here, or one reason why not."""

from __future__ import annotations

from twisted_mq.broker.options import BrokerOptions
from twisted_mq.config.known_keys import known_keys
from twisted_mq.config.options import option_fields
from twisted_mq.config.reasons import _BY_REASON, REASONS, reason_of

CLASSES = {"BrokerConfig", "MessageStoreConfig", "NettyServerConfig", "NettyClientConfig", "AuthConfig"}
BROKERS_KEYS = {key for key, forms in known_keys().items() if any(CLASSES & set(form.classes) for form in forms)}
EFFECTIVE = {key for key, field in option_fields(BrokerOptions).items() if field.metadata["has_effect"]}


def test_every_key_has_an_effect_or_a_reason() -> None:
    assert len(BROKERS_KEYS) == 449
    assert REASONS.keys() == BROKERS_KEYS - EFFECTIVE


def test_a_key_has_one_reason() -> None:
    keys = [key for keys in _BY_REASON.values() for key in keys]
    assert len(keys) == len(set(keys))


def test_keys_of_other_classes_name_these() -> None:
    assert reason_of("enableControllerInNamesrv") == "for Apache's NamesrvConfig"
    assert reason_of("nameOfNothing") == "for no class of Apache's"
