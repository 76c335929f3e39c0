"""Names of versions against ordinals of Apache's MQVersion."""

import pytest

from twisted_mq.protocol.names.versions import version_name


@pytest.mark.parametrize(
    ("number", "name"),
    [
        (-1, "V3_0_0_SNAPSHOT"),
        (0, "V3_0_0_SNAPSHOT"),
        (1, "V3_0_0_ALPHA1"),
        (6, "V3_0_0_BETA5"),
        (7, "V3_0_0_BETA6_SNAPSHOT"),
        (15, "V3_0_0_FINAL"),
        (16, "V3_0_1_SNAPSHOT"),
        (46, "V3_1_0_SNAPSHOT"),
        (86, "V3_3_1_SNAPSHOT"),
        (212, "V4_0_0_SNAPSHOT"),
        (412, "V5_0_0_SNAPSHOT"),
        (479, "V5_3_3"),
        (611, "V5_9_9"),
        (612, "HIGHER_VERSION"),
        (70_000, "HIGHER_VERSION"),
    ],
)
def test_a_number_has_the_name_of_apaches_constant(number, name):
    assert version_name(number) == name
