from collections.abc import Iterator

import pytest

from ottla.spark.errors import SparkError
from ottla.spark.pipelines.topics import Topics, find_broker
from ottla.testing import Broker


@pytest.fixture(params=[True, False])
def creates(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture
def broker(creates: bool) -> Iterator[Broker]:
    with Broker(auto_create_topics_enable=creates) as made:
        made.create_topic("orders")
        yield made


def test_a_check_creates_nothing_and_names_the_nearest_topic(broker: Broker, creates: bool) -> None:
    with Topics(broker.bootstrap_servers) as topics:
        topics.check_target("orders")
        if creates:
            topics.check_target("oders")
            assert topics.missing == {
                "oders": "topic 'oders' will be created; did you mean 'orders'?"
            }
        else:
            with pytest.raises(SparkError, match=r"no topic 'oders'; did you mean 'orders'\?"):
                topics.check_target("oders")
        with pytest.raises(SparkError, match=r"no topic 'oders'; did you mean 'orders'\?"):
            topics.check_source("oders")
    assert "oders" not in broker.topics()


def test_a_name_that_no_topic_can_have_is_refused(broker: Broker) -> None:
    with Topics(broker.bootstrap_servers) as topics, pytest.raises(SparkError):
        topics.check_target("a b")


@pytest.mark.parametrize("creates", [True], indirect=False)
def test_a_missing_topic_is_created_on_request(broker: Broker) -> None:
    with Topics(broker.bootstrap_servers) as topics:
        topics.check_target("bills")
        topics.create("bills")
    with Topics(broker.bootstrap_servers) as topics:
        topics.check_target("bills")
        assert topics.missing == {}


def test_a_broker_that_is_there_is_found(broker: Broker) -> None:
    find_broker(broker.bootstrap_servers)
