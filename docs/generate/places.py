"""The table of places that requests name, from the one that the test walks."""

from __future__ import annotations

from docs.generate.tables import code, table
from tests.support.named_places import NAMED_PLACES
from tests.support.named_places_grpc import NAMED_IN_CALLS

TEST = "tests/twisted_mq/broker/test_named_places.py"
CALLS_TEST = "tests/twisted_mq/proxy/test_named_places.py"


def named_places() -> str:
    """A row for each request; the test's case has the request's name."""
    return table(
        ("code", "request", "fields", "place of", "how it is proved", "test"),
        [
            (int(request), request.name, code(one.fields), one.place_of, one.proof, code(f"{TEST} -k {request.name}"))
            for request, one in sorted(NAMED_PLACES.items())
        ],
    )


def named_in_calls() -> str:
    """A row for each gRPC call; the test's case has the call's name."""
    return table(
        ("call", "field", "place of", "how it is proved", "test"),
        [
            (name, code(one.field), one.place_of, one.proof, code(f"{CALLS_TEST} -k {name}"))
            for name, one in sorted(NAMED_IN_CALLS.items())
        ],
    )
