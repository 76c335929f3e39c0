"""The console's pages in a browser, beside Apache's servers and this project's: for eyes, keys, small screens and readers."""

from __future__ import annotations

import contextlib
import json
import re
import threading
import urllib.parse
from collections.abc import Iterator

import pytest

from interop.peers.browser import Browser, running_console, running_server
from interop.peers.clients import unique
from interop.peers.console_visitor import Visitor
from interop.peers.process import wait_until
from interop.peers.requirements import require_browser
from interop.peers.servers import Cluster
from twisted_mq.blocking import Message, Producer, PushConsumer
from twisted_mq.client.core.errors import ClientError

pytestmark = pytest.mark.peer

HOSTILE = '"\'><script>window.ran = 1</script><img src=x onerror="window.ran = 2"><svg onload=window.ran=3>\u202e'


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    require_browser()
    opened = Browser()
    yield opened
    opened.close()


class Filled:
    """A cluster with something on each page."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.topic, self.group = unique("Shown"), unique("Reader")
        with Producer(cluster.name_server, group="shop") as producer:
            hostile = Message.make(
                self.topic, HOSTILE.encode(), HOSTILE, "hostile", {"note": HOSTILE, "what<b>": "name"}
            )
            self.id = producer.send(hostile).offset_msg_id
            for number in range(3):
                producer.send(Message.make(self.topic, b'{"order": %d}' % number, "new", f"order-{number}"))
            later = Message.make(self.topic, b"later", None, "later")
            later.delay_time_level = 5
            producer.send(later)
        self._give_up()

    def _give_up(self) -> None:
        """The group refuses what it gets; it comes to the dead letters at once."""
        with PushConsumer(self.cluster.name_server, group=self.group, topics={self.topic: "*"}) as consumer:
            for number, message in enumerate(consumer.messages(timeout=30), 1):
                message.retry(delay_level=-1)
                if number == 4:
                    break
        self.cluster.wait_route(f"%DLQ%{self.group}")

    def pages(self) -> dict[str, str]:
        """Path -> what stands there."""
        name = urllib.parse.quote(self.topic)
        asked = f"topic={name}&id={self.id}"
        return {
            "/": "broker-a",
            f"/broker?address={self.cluster.broker}": "No slave is connected.",
            f"/topics?q={name}": self.topic,
            f"/topic?name={name}": "Send a message to try it",
            "/groups": self.group,
            f"/group?name={self.group}": "Lag by queue",
            f"/group/reset?name={self.group}&topic={name}&to=earliest": "Nothing is changed yet.",
            f"/messages?topic={name}": "4 messages, the newest first",
            f"/messages?by=key&topic={name}&key=order-1": "1 messages",
            f"/message?{asked}": "<script>window.ran = 1</script>",
            f"/message?{asked}&view=hex": "73 63 72 69",
            "/dead-letters": self.group,
            f"/dead-letters/group?name={self.group}": "Send the chosen again",
            "/waiting": "1m",
            f"/waiting/delayed?address={self.cluster.broker}&level=5": "The next 1 of 1 messages",
            "/charts": "Messages in, a second",
            "/producers": "Group or client contains",
            "/access": "Users and rights",
            f"/search?q={name}": self.topic,
            "/search?q=nothing-of-this": "No name has that in it.",
            f"/topic?name={urllib.parse.quote(HOSTILE)}": "Not there",
            f"/topics?q={urllib.parse.quote(HOSTILE)}": "No topic fits.",
            "/nothing": "No such page",
        }


@pytest.fixture(scope="module")
def filled(cluster: Cluster) -> Filled:
    return Filled(cluster)


@pytest.fixture(scope="module")
def inside(browser: Browser, filled: Filled) -> Iterator[Browser]:
    """Log in to the console."""
    with running_console(filled.cluster.name_server) as address:
        browser.come_in(address)
        assert address.partition("#")[2] not in browser.driver.current_url
        yield browser


def test_each_page_shows_what_it_is_for_and_runs_nothing_of_it(inside: Browser, filled: Filled) -> None:
    for path, text in filled.pages().items():
        inside.look(path)
        assert text in inside.text, f"{path}: {inside.text}"
        assert "\u202e" not in inside.text
        assert inside.script("return window.ran === undefined"), path
        missing = [one for one in inside.errors() if "404 (Not Found)" not in one]
        assert missing == [], path


def test_pages_are_for_readers_of_screens_too_and_fit_small_ones(inside: Browser, filled: Filled) -> None:
    """Apache's broker makes no other pages: they are looked at for their width alone."""
    found = {}
    for path in filled.pages():
        for width, dark in ((1280, False), (400, True)) if filled.cluster.kind == "ours" else ((400, False),):
            inside.look(path, width, dark=dark)
            complaints = inside.complaints() if filled.cluster.kind == "ours" else inside.errors()
            if inside.overflow > 0:
                complaints.append(f"wider than the screen by {inside.overflow}")
            found[path, width] = [one for one in complaints if "404 (Not Found)" not in one]
    assert {place: complaints for place, complaints in found.items() if complaints} == {}


def test_a_topic_is_found_and_sent_to_by_keys_alone(inside: Browser, filled: Filled) -> None:
    inside.look("/")
    inside.tab_to(".skip")
    inside.tab_to('.top nav a[href="/topics"]')
    inside.press("\n")
    inside.wait(lambda: inside.path == "/topics", "list of topics")
    inside.tab_to('main input[name="q"]')
    inside.press(filled.topic, "\n")
    inside.wait(lambda: "1 of " in inside.text, "topic found")
    inside.tab_to("tbody a")
    inside.press("\n")
    inside.wait(lambda: inside.path.startswith("/topic?"), "the topic's page")
    inside.tab_to("textarea[name='body']")
    inside.press("sent by keys")
    inside.tab_to("form[action='/topic/send'] button")
    inside.press("\n")
    inside.wait(lambda: "SEND_OK" in inside.text, "what became of the message")


def test_charts_are_drawn_with_what_readers_of_screens_hear(inside: Browser, filled: Filled) -> None:
    inside.look("/charts")
    label = "return document.querySelector('.chart').getAttribute('aria-label')"
    inside.wait(lambda: "broker-a" in inside.script(label), "figures in the label")
    line = "return (document.querySelector('.chart polyline').getAttribute('points') || '').split(' ').length"
    inside.wait(lambda: inside.script(line) >= 2, "line of two points")
    assert inside.errors() == []


def test_operators_forms_do_what_they_say_at_both_kinds_of_brokers(filled: Filled) -> None:
    group, topic, broker = unique("made"), unique("Typed"), filled.cluster.broker
    settings = {"retry_max_times": "5", "retry_queues": "2", "timeout_minutes": "30", "consume": "yes"}
    with running_console(filled.cluster.name_server) as address:
        visitor = Visitor(address)
        assert "is created at 1 brokers" in visitor.submit("/groups/create", name=group, **settings)
        assert "broker-a 5 2 30 yes no no" in visitor.submit("/group/configure", name=group, **settings)
        assert group in visitor.look("/groups", q=group)
        assert "is deleted" in visitor.submit("/group/delete", name=group, typed=group, offsets="yes")
        made = {
            "read_queues": "2",
            "write_queues": "2",
            "perm": "6",
            "type": "FIFO",
            "order": "yes",
            "broker": "broker-a",
        }
        assert "is created at 1 brokers" in visitor.submit("/topics/create", name=topic, **made)
        filled.cluster.wait_route(topic)
        assert "message.type=FIFO" in visitor.look("/topic", name=topic)
        changed = visitor.submit("/broker/setting", address=broker, key="fileReservedTime", value="99")
        assert "fileReservedTime of broker-a" in changed and "fileReservedTime 99" in changed
        assert "they may not send to it" in visitor.submit("/broker/writing", address=broker, write="off")
        assert "they may send to it" in visitor.submit("/broker/writing", address=broker, write="on")
        page = visitor.submit("/dead-letters/resend", name=filled.group, which="rest")
        wait_until(
            lambda: "All were sent again" in visitor.look("/dead-letters/progress", name=filled.group), lambda: page
        )


def test_a_consumer_shows_itself_and_takes_a_message_directly(filled: Filled) -> None:
    group, taken = unique("Direct"), list[bytes]()

    def take(consumer: PushConsumer) -> None:
        with contextlib.suppress(ClientError):  # it is stopped while this waits
            for message in consumer.messages(timeout=60):
                taken.append(message.body)
                message.ack()

    with running_console(filled.cluster.name_server) as address:
        visitor = Visitor(address)
        with PushConsumer(filled.cluster.name_server, group=group, topics={filled.topic: "*"}) as consumer:
            listener = threading.Thread(target=take, args=(consumer,))
            listener.start()
            wait_until(lambda: len(taken) >= 4, "the topic's messages are taken")
            wait_until(
                lambda: "does not say" not in visitor.look("/group", name=group), "the member tells what it does"
            )
            client = urllib.parse.unquote(re.findall(r'client=([^"&]+)', visitor.page("/group", name=group))[0])
            shown = visitor.look("/group/client", group=group, client=client, stack="yes")
            assert "in use" in shown
            before = len(taken)
            asked = {"topic": filled.topic, "id": filled.id, "group": group, "client": client}
            said = visitor.submit("/message/consume", **asked)
        listener.join()
    assert "answered CR_SUCCESS" in said, said
    assert taken[before:] == [HOSTILE.encode()]


def test_logging_out_ends_it(inside: Browser) -> None:
    inside.look("/")
    inside.tab_to(".who button")
    inside.press("\n")
    inside.wait(lambda: inside.path == "/login", "the form to log in")
    inside.look("/topics")
    assert inside.path == "/login"
    assert inside.complaints() == []


MANY = 100_000
MOST_PAGE_BYTES = 64 * 1024


@pytest.fixture(scope="module")
def many_topics(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """Log in to the console of a broker whose table of topics was written before its start."""
    store = tmp_path_factory.mktemp("many")
    names = [f"many-{number:06d}" for number in range(MANY)]
    table = {one: {"topicName": one, "readQueueNums": 1, "writeQueueNums": 1, "perm": 6} for one in names}
    (store / "config").mkdir()
    (store / "config" / "topics.json").write_text(json.dumps({"topicConfigTable": table, "dataVersion": {}}))
    with running_server(store) as address:
        browser.come_in(address)
        browser.wait(lambda: counted_anew(browser) == MANY, "all topics registered")
        yield browser


def counted(browser: Browser) -> int:
    """Return the number of topics that the list shows."""
    said = browser.script("return (document.querySelector('.count') || document.body).innerText")
    return int(re.sub(r"\D", "", said.partition(" of ")[0]) or 0)


def counted_anew(browser: Browser) -> int:
    browser.look("/topics")
    return counted(browser)


def names_shown(browser: Browser) -> list[str]:
    return list(browser.script("return [...document.querySelectorAll('tbody th')].map((one) => one.innerText)"))


def test_a_hundred_thousand_topics_are_paged_and_found_by_keys(many_topics: Browser) -> None:
    inside = many_topics
    inside.look("/topics")
    assert names_shown(inside) == [f"many-{number:06d}" for number in range(50)]
    inside.tab_to('a[rel="next"]')
    inside.press("\n")
    inside.wait(lambda: "page=2" in inside.path, "second page")
    assert names_shown(inside) == [f"many-{number:06d}" for number in range(50, 100)]
    inside.tab_to('main input[name="q"]')
    inside.press("many-09999", "\n")
    inside.wait(lambda: counted(inside) == 10, "topics found")
    assert names_shown(inside) == [f"many-{number:06d}" for number in range(99_990, MANY)]
    inside.tab_to("tbody a")
    inside.press("\n")
    inside.wait(lambda: inside.path == "/topic?name=many-099990", "the topic's page")


def test_pages_of_a_hundred_thousand_topics_stay_short_and_sound(many_topics: Browser) -> None:
    inside = many_topics
    for path in ("/topics", "/topics?kind=all&q=99", "/groups", "/topics?page=999999999"):
        inside.look(path, 400)
        assert len(inside.driver.page_source.encode()) <= MOST_PAGE_BYTES, path
        assert inside.overflow == 0, path
    assert names_shown(inside)[-1] == f"many-{MANY - 1:06d}"
    assert inside.complaints() == []
