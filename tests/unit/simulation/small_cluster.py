"""Small plans for clusters: what tests of the simulation itself run."""

from dataclasses import replace

from ottla.simulation.cluster_plan import ClusterPlan, ClusterRates, cluster_plan_for


def small_cluster(
    seed: int = 1, rates: ClusterRates | None = None, *, is_synced: bool = False, brokers: int = 3
) -> ClusterPlan:
    settings = {"auto.create.topics.enable": "false", "broker.session.timeout.ms": "3000"}
    if is_synced:
        settings["log.flush.interval.messages"] = "1"
    plan = cluster_plan_for(seed, brokers)
    return replace(
        plan,
        seconds=2.0,
        topics=1,
        partitions=2,
        producers=plan.producers[:1],
        consumers=1,
        records_per_second=30.0,
        is_synced=is_synced,
        rates=rates or ClusterRates(),
        settings=settings,
        groups=(),
        is_restarted=False,
    )
