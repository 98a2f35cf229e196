"""`ottla cluster`: overview of brokers, quorum, under-replicated and moving partitions, disks."""

from ottla.cli.tasks.client_options import BOOTSTRAP_DEFAULT, AsJson, Bootstrap, ask
from ottla.cli.tool import Tool

app = Tool("cluster")


@app.command()
def cluster(bootstrap: Bootstrap = BOOTSTRAP_DEFAULT, as_json: AsJson = False) -> None:
    """Show brokers, the quorum, partitions that lack replicas or move, disks and features.

    \b
    Examples:
      ottla cluster
      ottla cluster --bootstrap-server broker1:9092,broker2:9092
      ottla cluster --json | jq '.brokers[].id'
      ottla cluster --json | jq '.under_replicated | length'
    """
    from ottla.cli.views.cluster_view import describe_cluster

    ask(lambda found: describe_cluster(found, as_json=as_json), bootstrap)
