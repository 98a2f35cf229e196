"""Which batches belong to aborted transactions, and when a marker has served."""

from ottla.records.batch import Batch
from ottla.records.cleaning import CleaningRules, Verdict, clean_batch
from ottla.storage.cleaned_transactions import CleanedTransactions
from ottla.storage.offset_map import OffsetMap
from ottla.storage.transaction_index import AbortedTransaction
from tests.unit.storage.making import NOW, make_batch, make_marker


def data(offset: int, producer_id: int, *, is_transactional: bool = True) -> Batch:
    batch = make_batch(producer_id=producer_id, is_transactional=is_transactional)
    batch.assign(offset, 0)
    return batch


def marker(offset: int, producer_id: int, *, is_abort: bool) -> Batch:
    batch = make_marker(producer_id, is_abort=is_abort)
    batch.assign(offset, 0)
    return batch


def test_only_batches_between_begin_and_marker_are_aborted() -> None:
    aborted = AbortedTransaction(7, 10, 12, 13)
    transactions = CleanedTransactions([aborted])
    assert not transactions.is_aborted(data(5, 7))
    assert not transactions.is_marker_of_nothing(marker(6, 7, is_abort=False))
    assert transactions.is_aborted(data(10, 7))
    assert not transactions.is_aborted(data(11, 8))
    assert not transactions.is_aborted(data(11, 7, is_transactional=False))
    assert not transactions.is_marker_of_nothing(marker(12, 7, is_abort=True))
    assert transactions.retained == [aborted]
    assert not transactions.is_aborted(data(13, 7))


def test_a_marker_without_records_has_served() -> None:
    transactions = CleanedTransactions([AbortedTransaction(7, 10, 12, 13)])
    assert transactions.is_marker_of_nothing(marker(12, 7, is_abort=True))
    assert transactions.is_marker_of_nothing(marker(13, 7, is_abort=False))
    assert transactions.retained == []


def test_a_commit_counts_for_its_own_transaction_only() -> None:
    transactions = CleanedTransactions([])
    assert not transactions.is_aborted(data(1, 7))
    assert transactions.is_marker_of_nothing(marker(2, 8, is_abort=False))
    assert not transactions.is_marker_of_nothing(marker(3, 7, is_abort=False))
    assert transactions.is_marker_of_nothing(marker(4, 7, is_abort=False))


def test_a_marker_of_which_only_the_header_is_left_has_served() -> None:
    transactions = CleanedTransactions([])
    verdict = Verdict(is_discarded=True, is_kept_empty=True)
    empty = clean_batch(
        marker(4, 7, is_abort=True), OffsetMap(0, 0.9, 1), verdict, CleaningRules(NOW, 0, 1000)
    )
    assert empty is not None
    assert transactions.is_marker_of_nothing(Batch(empty))


def test_two_transactions_of_one_producer_are_told_apart() -> None:
    first, second = AbortedTransaction(7, 10, 12, 13), AbortedTransaction(7, 20, 22, 23)
    transactions = CleanedTransactions([second, first])
    assert transactions.is_aborted(data(10, 7))
    assert not transactions.is_marker_of_nothing(marker(12, 7, is_abort=True))
    assert not transactions.is_aborted(data(15, 7))
    assert not transactions.is_marker_of_nothing(marker(16, 7, is_abort=False))
    assert transactions.is_aborted(data(20, 7))
    assert not transactions.is_marker_of_nothing(marker(22, 7, is_abort=True))
    assert transactions.retained == [first, second]
