"""The pytest plugin: its fixtures, without imports until they are used."""

import subprocess
import sys

import pytest

pytest_plugins = ["pytester"]

SUITE = """
    import os, threading
    import pytest

    ports = set()

    @pytest.mark.parametrize("number", range(3))
    def test_each_test_has_a_broker_of_its_own(ottla_broker, number):
        assert ottla_broker.topics() == []
        ottla_broker.produce("topic", str(number))
        assert [r.value for r in ottla_broker.records("topic")] == [str(number).encode()]

    @pytest.mark.parametrize("number", range(3))
    def test_the_session_has_one_broker(ottla_broker_session, number):
        name = ottla_broker_session.create_topic(f"{__name__}-{number}")
        assert name in ottla_broker_session.topics()
        ports.add(ottla_broker_session.port)
        assert len(ports) == 1
"""


def test_the_plugin_imports_nothing_by_itself() -> None:
    program = (
        "import sys, pytest, typing, collections.abc\n"
        "before = set(sys.modules)\n"
        "import ottla.testing.plugin\n"
        "print(*sorted(set(sys.modules) - before))\n"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.split() == ["ottla", "ottla.testing", "ottla.testing.plugin"]


def test_the_fixtures_are_there_by_installation_alone(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(SUITE)
    result = pytester.runpytest_subprocess("-p", "no:randomly", "-W", "error")
    result.assert_outcomes(passed=6)


MARKED = """
    import pytest

    @pytest.mark.ottla(num_partitions=3)
    def test_settings_of_a_marker_are_those_of_the_broker(ottla_broker):
        ottla_broker.produce("topic", *"abcdefghij")
        assert {r.partition for r in ottla_broker.records("topic")} <= {0, 1, 2}
        ottla_broker.produce("topic", "last", partition=2)
        assert len(ottla_broker.wait_for("topic", 11)) == 11

    def test_a_factory_starts_several(ottla_broker_factory):
        first, second = ottla_broker_factory(num_partitions=2), ottla_broker_factory()
        assert first.port != second.port
        first.produce("topic", "value", partition=1)

    def test_waiting_for_too_many_records_ends(ottla_broker_module):
        ottla_broker_module.produce("topic", "one")
        with pytest.raises(TimeoutError, match="topic has 1 records after 0.1 s, not 2"):
            ottla_broker_module.wait_for("topic", 2, timeout=0.1)

    def test_the_module_has_one_broker(ottla_broker_module):
        assert ottla_broker_module.committed("nobody") == {}
        assert ottla_broker_module.lag("nobody") == 0
"""


def test_markers_factory_and_module_scope(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(MARKED)
    pytester.runpytest_subprocess(
        "-p", "no:randomly", "--strict-markers", "-W", "error"
    ).assert_outcomes(passed=4)


CLUSTER = """
    import pytest

    @pytest.mark.ottla(num_partitions=2)
    def test_a_cluster_survives_the_kill_of_a_leader(ottla_cluster):
        assert len(ottla_cluster.node_ids) == 3
        ottla_cluster.produce("orders", b"first")
        ottla_cluster.kill(ottla_cluster.leader("orders"))
        ottla_cluster.produce("orders", b"second", key=b"key")
        found = ottla_cluster.wait_for("orders", 2)
        assert sorted(record.value for record in found) == [b"first", b"second"]
        assert ottla_cluster.leader("orders", 1) in ottla_cluster.node_ids
"""


@pytest.mark.timeout(120)
def test_the_cluster_fixture_has_three_brokers_with_the_markers_settings(
    pytester: pytest.Pytester,
) -> None:
    pytester.makepyfile(CLUSTER)
    pytester.runpytest_subprocess("--strict-markers", "-W", "error").assert_outcomes(passed=1)
