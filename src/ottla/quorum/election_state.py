"""The `quorum-state` file: the epoch, who leads it, and whom this node voted for in it.

It is synced before anything follows from it: a node that forgets its vote may vote twice. Two
versions exist: 0 where voters are static, and names them; 1 since voters have directory ids.
"""

import json
from dataclasses import dataclass
from typing import Any, Final

from ottla.model.types import ZERO_UUID, NodeId, Uuid, uuid_from_text, uuid_text

FILE_NAME: Final = "quorum-state"
NOBODY: Final = NodeId(-1)


@dataclass(frozen=True, slots=True)
class ElectionState:
    epoch: int = 0
    leader: NodeId = NOBODY
    voted: NodeId = NOBODY
    voted_directory_id: Uuid = ZERO_UUID


def to_json(state: ElectionState, kraft_version: int, voters: tuple[NodeId, ...]) -> bytes:
    """The file's bytes, as Kafka writes them."""
    content: dict[str, Any]
    if kraft_version == 0:
        content = {
            "clusterId": "",
            "leaderId": state.leader,
            "leaderEpoch": state.epoch,
            "votedId": state.voted,
            "appliedOffset": 0,
            "currentVoters": [{"voterId": voter} for voter in voters],
            "data_version": 0,
        }
    else:
        content = {
            "leaderId": state.leader,
            "leaderEpoch": state.epoch,
            "votedId": state.voted,
            "votedDirectoryId": uuid_text(state.voted_directory_id),
            "data_version": 1,
        }
    return json.dumps(content, separators=(",", ":")).encode()


def from_json(data: bytes) -> ElectionState:
    """ValueError says why this is not a state that a node of KRaft wrote."""
    content = json.loads(data)
    if not isinstance(content, dict):
        raise ValueError("it is not a JSON object")
    version = content.get("data_version")
    if version not in (0, 1):
        raise ValueError(f"its data_version is {version}, but 0 and 1 are known")
    try:
        directory = content.get("votedDirectoryId")
        return ElectionState(
            epoch=int(content["leaderEpoch"]),
            leader=NodeId(int(content["leaderId"])),
            voted=NodeId(int(content["votedId"])),
            voted_directory_id=uuid_from_text(directory) if directory else ZERO_UUID,
        )
    except (KeyError, TypeError) as error:
        raise ValueError(f"it lacks {error}") from None
