"""Faults of a single node of a cluster."""

import pytest

from ottla.client.errors import Refused
from ottla.testing import Cluster


@pytest.mark.timeout(120)
def test_a_fault_set_on_a_node_is_met_by_its_clients() -> None:
    with Cluster(brokers=1) as cluster:
        (node_id,) = cluster.node_ids
        cluster.faults(node_id).fail("CreateTopics", "POLICY_VIOLATION", message="not today")
        with pytest.raises(Refused, match="not today"):
            cluster.create_topic("orders")
        assert cluster.create_topic("orders") == "orders"
        cluster.faults(node_id).fail("CreateTopics", "POLICY_VIOLATION")
        cluster.faults(node_id).clear_faults()
        assert cluster.create_topic("others") == "others"
        cluster.kill(node_id)
        with pytest.raises(RuntimeError, match="is not running"):
            cluster.faults(node_id)
