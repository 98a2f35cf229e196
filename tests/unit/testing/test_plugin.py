"""The pytest plugin: two fixtures, without imports until they are used."""

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
