"""Files and command lines into options: defaults, unused keys, wrong keys and values, remote updates."""

from __future__ import annotations

import attrs
import pytest
from twisted.logger import capturedLogs, formatEvent

from twisted_mq.config.errors import ConfigError, KeyNotAllowed
from twisted_mq.config.options import load_options, option, options_text, parse_updates, read_options
from twisted_mq.config.properties import Entry, parse_properties


@attrs.define(kw_only=True)
class Settings:
    """A small daemon's."""

    broker_name: str = option("brokerName", attrs.Factory(lambda: "host"), "its name", type="string", remote=True)
    listen_port: int = option("listenPort", 10911, "its port", low=0, high=65535)
    trace: bool = option("traceOn", True, "traces", remote=True)
    namesrv_addr: str | None = option("namesrvAddr", None, "name servers", type="string")
    delete_when: str = option("deleteWhen", "04", "hours", has_effect=False)


def read(text: bytes, **overrides: str) -> tuple[Settings, list[str]]:
    given = [Entry(key, value) for key, value in overrides.items()]
    return read_options(Settings, [*parse_properties(text), *given], "b.conf")


def test_empty_file_gives_the_defaults():
    assert read(b"") == (Settings(broker_name="host", listen_port=10911, trace=True, namesrv_addr=None), [])


def test_file_sets_and_command_line_overrides():
    options, ignored = read(b"listenPort=1\nbrokerName=a\nbrokerName=b\nnamesrvAddr=\n", listenPort="2")
    assert (options, ignored) == (Settings(broker_name="b", listen_port=2), [])


def test_unused_keys_of_apache_are_named_once_each():
    options, ignored = read(b"sendMessageThreadPoolNums=16\ndLegerGroup=x\nsendMessageThreadPoolNums=4\n")
    assert (options, ignored) == (Settings(), ["sendMessageThreadPoolNums", "dLegerGroup"])


def test_field_without_effect_is_taken_and_named():
    assert read(b"deleteWhen=05\n") == (Settings(delete_when="05"), ["deleteWhen"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"a=1\n", "b.conf line 1: a=1: no RocketMQ knows this key"),
        (b"\nbrokerNam=1\n", "b.conf line 2: brokerNam=1: no RocketMQ knows this key, is brokerName meant?"),
        (b"#\n#\nlistenPort=x\n", "b.conf line 3: listenPort=x: a whole number is needed"),
        (b"listenPort=70000\n", "b.conf line 1: listenPort=70000: at most 65535 is allowed"),
        (b"listenPort=-1\n", "b.conf line 1: listenPort=-1: at least 0 is needed"),
        (b"traceOn=on\n", "b.conf line 1: traceOn=on: true or false is needed"),
        (
            b"adminBrokerThreadPoolNums=many\n",
            "b.conf line 1: adminBrokerThreadPoolNums=many: a whole number is needed",
        ),
    ],
    ids=["unknown", "misspelled", "type", "above", "below", "boolean", "type of an unused key"],
)
def test_wrong_line_is_an_error_that_names_it(text, message):
    with pytest.raises(ConfigError) as caught:
        read(text)
    assert str(caught.value) == message


def test_wrong_value_of_the_command_line_names_no_file():
    with pytest.raises(ConfigError) as caught:
        read(b"", listenPort="x")
    assert str(caught.value) == "listenPort=x: a whole number is needed"


def test_load_logs_each_unused_key_on_a_line_of_its_own(tmp_path):
    path = tmp_path / "b.conf"
    path.write_text("duplicationEnable=false\nhighSpeedMode=true\nlistenPort=5\n")
    with capturedLogs() as events:
        assert load_options(Settings, str(path)) == Settings(listen_port=5)
    assert [formatEvent(one) for one in events] == [
        f"{path} line 1: duplicationEnable has no effect here",
        f"{path} line 2: highSpeedMode has no effect here",
    ]


def test_update_takes_only_keys_of_the_allow_list():
    assert parse_updates(Settings, [Entry("traceOn", "false", 1), Entry("brokerName", "n", 2)]) == {
        "trace": False,
        "broker_name": "n",
    }
    for key in ("listenPort", "highSpeedMode", "nonsense"):
        with pytest.raises(
            KeyNotAllowed, match=f"^{key}=1: cannot be changed while it runs; these can: brokerName, traceOn$"
        ):
            parse_updates(Settings, [Entry("traceOn", "false", 1), Entry(key, "1", 2)])
    with pytest.raises(ConfigError, match="traceOn=2: true or false is needed"):
        parse_updates(Settings, [Entry("traceOn", "2", 1)])


def test_text_lists_what_is_set_and_has_an_effect_sorted():
    assert options_text(Settings()) == "brokerName=host\nlistenPort=10911\ntraceOn=true\n"
