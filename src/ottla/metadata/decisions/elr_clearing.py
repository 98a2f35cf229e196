"""Records that clear ELRs when `min.insync.replicas`, or the feature itself, changes.

A replica is eligible because its ISR was below the minimum and could commit nothing without it.
Under another minimum the ISR may commit alone, and the replica no longer holds all committed
records.
"""

from typing import Final

from ottla.metadata.image.image import ClusterImage
from ottla.protocol import metadata_records as records

MIN_ISR: Final = "min.insync.replicas"
ALL_TOPICS: Final = ""


def cleared(image: ClusterImage, topic_name: str) -> list[records.MetadataRecord]:
    """Clear the ELRs of one topic, or of ALL_TOPICS.

    A partition with an empty ISR keeps its ELR: it commits nothing until one of these replicas
    leads, and without them only an unclean election would be left.
    """
    named = [image.topics_by_name[topic_name]] if topic_name else image.topics_by_id.values()
    kept = [
        records.PartitionChangeRecord(
            partition_id=index,
            topic_id=topic.id,
            eligible_leader_replicas=list(partition.elr),
            last_known_elr=list(partition.last_known_elr),
        )
        for topic in named
        for index, partition in topic.partitions.items()
        if not partition.isr and (partition.elr or partition.last_known_elr)
    ]
    return [records.ClearElrRecord(topic_name), *kept]
