"""Files and command lines into options: defaults, unused keys, wrong keys and values, remote updates."""

from __future__ import annotations

import attrs
import pytest
from twisted.logger import capturedLogs, formatEvent

from twisted_mq.config.errors import ConfigError, KeyNotAllowed
from twisted_mq.config.findings import Effect
from twisted_mq.config.limits import PORT, Limits
from twisted_mq.config.options import load_options, option, options_text, parse_updates, read_options
from twisted_mq.config.properties import Entry, parse_properties


@attrs.define(kw_only=True)
class Settings:
    """The options of a small daemon."""

    broker_name: str = option(attrs.Factory(lambda: "host"), "its name", type="string", remote=True)
    listen_port: int = option(10911, "its port", limits=PORT)
    disk_ratio: int = option(75, "percent", low=10, high=95, remote=True, key="diskMaxUsedSpaceRatio")
    precision: int = option(1000, "ms", limits=Limits(100, 1000, choices=(100, 200, 500, 1000)), key="timerPrecisionMs")
    file_size: int = option(6000000, "bytes", limits=Limits(low=20, step=20), key="mappedFileSizeConsumeQueue")
    log_size: int = option(1 << 30, "bytes", low=1024, key="mappedFileSizeCommitLog")
    trace: bool = option(True, "traces", remote=True, key="traceOn")
    namesrv_addr: str | None = option(None, "name servers", type="string")
    delete_when: str = option("04", "hours", has_effect=False)


def read(text: bytes, **overrides: str) -> tuple[Settings, list[tuple[str, Effect]]]:
    given = [Entry(key, value) for key, value in overrides.items()]
    options, findings = read_options(Settings, [*parse_properties(text), *given], "b.conf")
    return options, [(one.entry.key, one.effect) for one in findings]


def test_empty_file_gives_the_defaults():
    assert read(b"") == (Settings(broker_name="host", listen_port=10911, trace=True, namesrv_addr=None), [])


def test_file_sets_and_command_line_overrides():
    options, ignored = read(b"listenPort=1\nbrokerName=a\nbrokerName=b\nnamesrvAddr=\n", listenPort="2")
    assert (options, ignored) == (Settings(broker_name="b", listen_port=2), [])


def test_unused_keys_of_apache_are_named_once_each():
    options, ignored = read(b"sendMessageThreadPoolNums=16\ndLegerGroup=x\nsendMessageThreadPoolNums=4\n")
    assert (options, ignored) == (
        Settings(),
        [("dLegerGroup", Effect.NO_EFFECT), ("sendMessageThreadPoolNums", Effect.NO_EFFECT)],
    )


def test_field_without_effect_is_taken_and_named():
    assert read(b"deleteWhen=05\n") == (Settings(delete_when="05"), [("deleteWhen", Effect.NO_EFFECT)])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"#\n#\nlistenPort=x\n", "b.conf line 3: listenPort=x: must be a whole number"),
        (b"listenPort=70000\n", "b.conf line 1: listenPort=70000: must be at most 65535"),
        (b"listenPort=-1\n", "b.conf line 1: listenPort=-1: must be at least 0"),
        (b"traceOn=on\n", "b.conf line 1: traceOn=on: must be true or false"),
        (
            b"adminBrokerThreadPoolNums=many\n",
            "b.conf line 1: adminBrokerThreadPoolNums=many: must be a whole number",
        ),
    ],
    ids=["type", "above", "below", "boolean", "type of an unused key"],
)
def test_wrong_line_is_an_error_that_names_it(text, message):
    with pytest.raises(ConfigError) as caught:
        read(text)
    assert str(caught.value) == message


def test_wrong_value_of_the_command_line_names_no_file():
    with pytest.raises(ConfigError) as caught:
        read(b"", listenPort="x")
    assert str(caught.value) == "listenPort=x: must be a whole number"


WARNED = """duplicationEnable=false
highSpeedMode=true
brokerNam=a
a=1
storePathConsumeQueue=/data/consumequeue
diskMaxUsedSpaceRatio=98
timerPrecisionMs=700
mapedFileSizeCommitLog=4096
mapedFileSizeConsumeQueue=1
listenPort=5
"""
LINES = [
    "line 1: duplicationEnable: no effect here: slaves pull copies of the log (brokerRole)",
    "line 2: highSpeedMode: no effect here: version 5.3.3 does not read it",
    "line 3: brokerNam: unknown key, did you mean brokerName?",
    "line 4: a: unknown key",
    "line 5: storePathConsumeQueue: unknown key, the consume queues are in storePathRootDir/consumequeue",
    "line 6: diskMaxUsedSpaceRatio: must be at most 95, so 95 is used instead of 98",
    "line 7: timerPrecisionMs: must be one of 100, 200, 500, 1000, so 500 is used instead of 700",
    "line 9: mapedFileSizeConsumeQueue: must be at least 20, so 20 is used instead of 1",
]


def test_start_takes_old_names_and_warns_once_of_each_line_that_does_not_do_what_it_says(tmp_path):
    path = tmp_path / "b.conf"
    path.write_text(WARNED)
    expected = Settings(listen_port=5, disk_ratio=95, precision=500, log_size=4096, file_size=20)
    with capturedLogs() as events:
        assert load_options(Settings, str(path)) == expected
    told = [(one["log_level"].name, formatEvent(one)) for one in events]
    assert [text for level, text in told if level == "warn"] == [f"{path} {line}" for line in LINES]
    assert [text for level, text in told if level != "warn"] == [
        f"{path} line 8: mapedFileSizeCommitLog: old name of mappedFileSizeCommitLog, used as that"
    ]


@pytest.mark.parametrize(
    "line", [line for line in WARNED.splitlines() if not line.startswith(("mapedFileSizeC", "list"))]
)
def test_strict_start_refuses_what_the_other_warns_of(tmp_path, line):
    path = tmp_path / "b.conf"
    path.write_text(f"listenPort=5\n{line}\n")
    with pytest.raises(ConfigError) as caught:
        load_options(Settings, str(path), strict=True)
    assert str(caught.value).startswith(f"{path} line 2: {line}: ") and str(caught.value).endswith(
        "; --strict refuses it"
    )


def test_strict_start_says_how_many_more_there_are_and_takes_old_names(tmp_path):
    path = tmp_path / "b.conf"
    path.write_text(WARNED)
    with pytest.raises(ConfigError, match=r"; 7 more such keys; --strict refuses it$"):
        load_options(Settings, str(path), strict=True)
    path.write_text("mapedFileSizeCommitLog=4096\n")
    assert load_options(Settings, str(path), strict=True).log_size == 4096


def test_present_name_overrides_the_old_one_wherever_it_is(tmp_path):
    for text in (
        "mappedFileSizeCommitLog=2048\nmapedFileSizeCommitLog=4096\n",
        "mapedFileSizeCommitLog=4096\nmappedFileSizeCommitLog=2048\n",
    ):
        assert read(text.encode())[0].log_size == 2048


@pytest.mark.parametrize(("text", "counts"), [("1", 20), ("20", 20), ("401", 420)])
def test_size_is_rounded_up_to_whole_entries(text, counts):
    assert read(f"mappedFileSizeConsumeQueue={text}\n".encode())[0].file_size == counts


@pytest.mark.parametrize(("text", "counts"), [("1", 100), ("100", 100), ("199", 100), ("999", 500), ("5000", 1000)])
def test_choice_is_the_next_lower_one(text, counts):
    """As Apache's MessageStoreConfig.setTimerPrecisionMs."""
    assert read(f"timerPrecisionMs={text}\n".encode())[0].precision == counts


def test_update_outside_the_limits_is_refused():
    with pytest.raises(ConfigError, match="diskMaxUsedSpaceRatio=98: must be at most 95"):
        parse_updates(Settings, [Entry("diskMaxUsedSpaceRatio", "98", 1)])


def test_update_takes_only_keys_of_the_allow_list():
    assert parse_updates(Settings, [Entry("traceOn", "false", 1), Entry("brokerName", "n", 2)]) == {
        "trace": False,
        "broker_name": "n",
    }
    for key in ("listenPort", "highSpeedMode", "nonsense"):
        with pytest.raises(
            KeyNotAllowed,
            match=f"^{key}=1: cannot be changed at run time; these can: brokerName, diskMaxUsedSpaceRatio, traceOn$",
        ):
            parse_updates(Settings, [Entry("traceOn", "false", 1), Entry(key, "1", 2)])
    with pytest.raises(ConfigError, match="traceOn=2: must be true or false"):
        parse_updates(Settings, [Entry("traceOn", "2", 1)])


def test_text_lists_what_is_set_and_has_an_effect_sorted():
    assert options_text(Settings()) == (
        "brokerName=host\ndiskMaxUsedSpaceRatio=75\nlistenPort=10911\nmappedFileSizeCommitLog=1073741824\n"
        "mappedFileSizeConsumeQueue=6000000\ntimerPrecisionMs=1000\ntraceOn=true\n"
    )
