"""The voters of the metadata log: who they are and where their controllers listen.

With kraft.version 0 they are named by `controller.quorum.voters` and have no directory ids; with
kraft.version 1 the log itself names them, in voters records.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from ottla.model.types import ZERO_UUID, NodeId, Uuid, uuid_from_text
from ottla.protocol import control_records as records

KRAFT_VERSION_MAX: Final = 1


class Address(NamedTuple):
    host: str
    port: int


class ReplicaKey(NamedTuple):
    """A node with the disk that holds its log: on another disk it is another replica."""

    id: NodeId
    directory_id: Uuid


@dataclass(frozen=True, slots=True)
class Voter:
    id: NodeId
    directory_id: Uuid  # ZERO_UUID where the voters are static.
    endpoints: Mapping[str, Address]  # By listener name.
    kraft_versions: tuple[int, int] = (0, KRAFT_VERSION_MAX)

    def is_replica(self, key: ReplicaKey) -> bool:
        """A replica that does not say its disk is taken at its word, as Kafka does."""
        is_same_disk = self.directory_id == key.directory_id
        return self.id == key.id and (
            is_same_disk or ZERO_UUID in (self.directory_id, key.directory_id)
        )

    def address(self, listener: str) -> Address | None:
        """Where its controller is reached, by the name that we give that listener if it has it."""
        found = self.endpoints.get(listener)
        return found if found is not None else next(iter(self.endpoints.values()), None)


@dataclass(frozen=True, slots=True)
class Voters:
    """A set of voters. Changing it is the quorum's business, one voter at a time."""

    by_id: Mapping[NodeId, Voter]

    @classmethod
    def of(cls, voters: Iterable[Voter]) -> "Voters":
        return cls({voter.id: voter for voter in sorted(voters, key=lambda voter: voter.id)})

    @property
    def is_alone(self) -> bool:
        return len(self.by_id) == 1

    @property
    def majority(self) -> int:
        return len(self.by_id) // 2 + 1

    def has(self, node: NodeId, directory_id: Uuid) -> bool:
        """Whether this very replica votes: the same node with another disk has no memory."""
        voter = self.by_id.get(node)
        return voter is not None and voter.directory_id in (directory_id, ZERO_UUID)

    def voter(self, key: ReplicaKey) -> Voter | None:
        """The voter that this replica is, if it is one."""
        voter = self.by_id.get(key.id)
        return voter if voter is not None and voter.is_replica(key) else None

    def plus(self, voter: Voter) -> "Voters":
        """With one more, or with one changed."""
        return Voters.of([*(v for v in self.by_id.values() if v.id != voter.id), voter])

    def minus(self, node: NodeId) -> "Voters":
        return Voters.of(v for v in self.by_id.values() if v.id != node)

    def to_record(self) -> records.VotersRecord:
        return records.VotersRecord(
            voters=[
                records.Voter(
                    voter_id=voter.id,
                    voter_directory_id=voter.directory_id,
                    endpoints=[
                        records.Endpoint(name, address.host, address.port)
                        for name, address in voter.endpoints.items()
                    ],
                    kraft_version_feature=records.KRaftVersionFeature(*voter.kraft_versions),
                )
                for voter in self.by_id.values()
            ]
        )

    @classmethod
    def from_record(cls, record: records.VotersRecord) -> "Voters":
        return cls.of(
            Voter(
                NodeId(voter.voter_id),
                voter.voter_directory_id,
                {e.name: Address(e.host, e.port) for e in voter.endpoints},
                (
                    voter.kraft_version_feature.min_supported_version,
                    voter.kraft_version_feature.max_supported_version,
                ),
            )
            for voter in record.voters
        )


def initial_voters(text: str, listener: str) -> Voters:
    """`--initial-controllers`: "1@host:9093:DIRECTORY_ID,..."; ValueError says what is wrong."""
    voters = []
    for entry in text.split(","):
        node, at, rest = entry.strip().partition("@")
        address, colon, directory = rest.rpartition(":")
        if not at or not colon or not node.isdigit():
            sentence = f"{entry.strip()!r} is not a controller: ID@HOST:PORT:DIRECTORY_ID expected"
            raise ValueError(sentence)
        endpoints = {listener: _address(address, entry)}
        voters.append(Voter(NodeId(int(node)), uuid_from_text(directory), endpoints))
    return _distinct(voters, text)


def _address(text: str, entry: str) -> Address:
    host, colon, port = text.rpartition(":")
    if not colon or not host or not port.isdigit() or int(port) > 0xFFFF:
        raise ValueError(f"{entry.strip()!r} has no HOST:PORT")
    return Address(host.strip("[]"), int(port))


def _distinct(voters: list[Voter], text: str) -> Voters:
    if len({voter.id for voter in voters}) < len(voters):
        raise ValueError(f"{text!r} names a voter twice")
    return Voters.of(voters)
