from twisted_mq.broker.advertised_address import address_warning, advertised_ip, interface_towards


def test_configured_address_wins() -> None:
    assert advertised_ip("10.1.2.3", ["10.0.0.1:9876"], lambda host, port: "unused") == "10.1.2.3"


def test_interface_towards_the_first_name_server_is_taken() -> None:
    asked = []

    def towards(host: str, port: int) -> str:
        asked.append((host, port))
        return "10.0.0.7"

    assert advertised_ip(None, ["10.0.0.1:9876", "10.0.0.2:9876"], towards) == "10.0.0.7"
    assert asked == [("10.0.0.1", 9876)]


def test_without_name_servers_it_is_loopback() -> None:
    assert advertised_ip(None, []) == "127.0.0.1"
    assert interface_towards("127.0.0.1", 9876) == "127.0.0.1"


def test_addresses_no_client_can_reach_are_warned_about() -> None:
    assert "wildcard" in (address_warning("0.0.0.0", []) or "")
    assert "is loopback but the name server 10.0.0.1:9876 is not" in (
        address_warning("127.0.0.1", ["10.0.0.1:9876"]) or ""
    )
    assert "container" in (address_warning("172.17.0.2", ["10.0.0.1:9876"]) or "")


def test_good_addresses_give_no_warning() -> None:
    assert address_warning("127.0.0.1", ["127.0.0.1:9876"]) is None
    assert address_warning("10.0.0.7", ["10.0.0.1:9876"]) is None
    assert address_warning("broker.example", ["10.0.0.1:9876"]) is None
