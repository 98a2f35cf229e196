"""Transactions as a cleaner passes them: whose records go, and when a marker has served.

Records of an aborted transaction go at once. A marker stays while a record of its transaction was
seen; from then on it is kept for `delete.retention.ms` like a tombstone, so that who reads the log
slowly still learns how the transaction ended. What stays of aborted ones is indexed anew.
"""

from collections.abc import Iterable

from ottla.records.batch import Batch
from ottla.storage.producer_state import read_marker
from ottla.storage.transaction_index import AbortedTransaction


class CleanedTransactions:
    def __init__(self, aborted: Iterable[AbortedTransaction]) -> None:
        """`aborted` are all that have records in the stretch that is gone through."""
        self._coming = sorted(aborted, key=lambda each: each.first_offset, reverse=True)
        self._aborted: dict[int, AbortedTransaction] = {}  # By producer; their marker is to come.
        self._seen: set[int] = set()  # Of those, whose records were met.
        self._committed: set[int] = set()  # Producers of the other open ones, with records met.
        self.retained: list[AbortedTransaction] = []  # Markers that stay, in order.

    def is_aborted(self, batch: Batch) -> bool:
        """Whether the batch, which comes next and is none of control, belongs to an aborted one."""
        self._begin_up_to(batch.last_offset)
        if not batch.is_transactional:
            return False
        if batch.producer_id in self._aborted:
            self._seen.add(batch.producer_id)
            return True
        self._committed.add(batch.producer_id)
        return False

    def is_marker_of_nothing(self, batch: Batch) -> bool:
        """Whether no record is left of the transaction that this control batch, the next, ends."""
        self._begin_up_to(batch.last_offset)
        marker = read_marker(batch)
        if marker is None:
            return True  # It was cleaned before, and only its header is left.
        producer_id = batch.producer_id
        if not marker[0]:
            was_met = producer_id in self._committed
            self._committed.discard(producer_id)
            return not was_met
        aborted = self._aborted.pop(producer_id, None)
        if aborted is None or producer_id not in self._seen:
            return True
        self._seen.discard(producer_id)
        self.retained.append(aborted)
        return False

    def _begin_up_to(self, offset: int) -> None:
        while self._coming and self._coming[-1].first_offset <= offset:
            aborted = self._coming.pop()
            self._aborted.setdefault(aborted.producer_id, aborted)
