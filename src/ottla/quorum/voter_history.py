"""The voters and the kraft.version as the log names them, and from which offset on.

The newest record counts as soon as it is in the log, committed or not; a truncation brings back
what was before it. Static voters and those of a snapshot lie before everything.
"""

from ottla.model.types import Offset
from ottla.quorum.voters import ReplicaKey, Voters

BEFORE_THE_LOG: Offset = -1


class VoterHistory:
    def __init__(self, voters: Voters, kraft_version: int) -> None:
        self._voters: list[tuple[Offset, Voters]] = [(BEFORE_THE_LOG, voters)]
        self._versions: list[tuple[Offset, int]] = [(BEFORE_THE_LOG, kraft_version)]

    @property
    def voters(self) -> Voters:
        return self._voters[-1][1]

    @property
    def kraft_version(self) -> int:
        return self._versions[-1][1]

    @property
    def are_voters_in_log(self) -> bool:
        """Voters that only the bootstrap snapshot names are not yet in the log."""
        return self._voters[-1][0] > BEFORE_THE_LOG

    @property
    def changed_at(self) -> Offset:
        """Where the newest voters record lies."""
        return self._voters[-1][0]

    def voters_at(self, offset: Offset) -> Voters:
        """As of the log up to, not including, `offset`: what a snapshot there has to name."""
        return next((v for at, v in reversed(self._voters) if at < offset), self._voters[0][1])

    def names(self, key: ReplicaKey) -> bool:
        """Whether it votes, or did before a record that may yet be truncated."""
        return any(voters.has(*key) for _, voters in self._voters)

    def voters_read(self, offset: Offset, voters: Voters) -> None:
        assert offset > self.changed_at, "records are read in order"
        self._voters.append((offset, voters))

    def kraft_version_read(self, offset: Offset, version: int) -> None:
        self._versions.append((offset, version))

    def snapshot_loaded(self, end_offset: Offset, voters: Voters | None, version: int) -> None:
        """Forget all before it. A snapshot of static voters names none."""
        at = end_offset - 1 if end_offset else BEFORE_THE_LOG
        if voters is not None:
            self._voters = [(at, voters)]
        if version or voters is not None:
            self._versions = [(at, version)]

    def truncated(self, end_offset: Offset) -> None:
        """What lies at or past `end_offset` is gone."""
        while self._voters[-1][0] >= end_offset and len(self._voters) > 1:
            self._voters.pop()
        while self._versions[-1][0] >= end_offset and len(self._versions) > 1:
            self._versions.pop()

    def committed(self, high_watermark: Offset) -> None:
        """Nothing below can be truncated any more, so that only the newest there is kept."""
        while len(self._voters) > 1 and self._voters[1][0] < high_watermark:
            self._voters.pop(0)
        while len(self._versions) > 1 and self._versions[1][0] < high_watermark:
            self._versions.pop(0)
