"""The checker itself: for each anomaly a history that has it, and one that nearly has."""

import random
import time

import pytest

from ottla.simulation.history.anomalies import Anomaly, Report
from ottla.simulation.history.history_checker import check
from ottla.simulation.history.operations import Assign, Kind, Operation, Outcome, Poll, Send
from tests.unit.simulation.histories import KEY, HistoryWriter

OTHER = "events-1"


def history() -> HistoryWriter:
    return HistoryWriter()


def report_of(written: HistoryWriter) -> Report:
    return check(written.operations)


def anomalies(written: HistoryWriter) -> set[Anomaly]:
    return set(report_of(written).anomalies)


def test_a_history_without_faults_is_good() -> None:
    written = history().sent("a", "b").poll((0, "a")).poll((1, "b")).drain((0, "a"), (1, "b"))
    report = report_of(written)
    assert report.is_good
    assert report.operations == 5


def test_operations_may_come_in_any_order() -> None:
    operations = history().sent("a", "b").poll((0, "a"), (1, "b")).operations
    assert check(reversed(operations)).is_good


def test_a_value_that_is_sent_twice_makes_no_history() -> None:
    with pytest.raises(ValueError, match="second time"):
        report_of(history().sent("a", "a"))


# What is in the log.


def test_a_value_that_nobody_sent_is_a_phantom() -> None:
    assert anomalies(history().poll((0, "a"))) == {Anomaly.PHANTOM}


def test_a_value_of_another_partition_is_a_phantom() -> None:
    written = history().add(Kind.SEND, Send(OTHER, "a", 0)).poll((0, "a"))
    assert anomalies(written) == {Anomaly.PHANTOM}


def test_a_value_whose_sender_heard_nothing_is_no_phantom() -> None:
    assert not anomalies(history().send("a", outcome=Outcome.INFO).poll((0, "a")))


def test_two_values_at_one_offset_are_found() -> None:
    written = history().sent("a").send("b", process="q", outcome=Outcome.INFO)
    written.poll((0, "a")).poll((0, "b"), process="d")
    report = report_of(written)
    assert set(report.anomalies) == {Anomaly.INCONSISTENT_OFFSETS}
    (case,) = report.anomalies[Anomaly.INCONSISTENT_OFFSETS].cases
    assert case.operations == (2, 3)


def test_an_acknowledged_offset_counts_as_much_as_a_polled_one() -> None:
    written = history().sent("a").send("b", outcome=Outcome.INFO).poll((0, "b"))
    assert Anomaly.INCONSISTENT_OFFSETS in anomalies(written)


def test_one_value_that_two_read_at_one_offset_is_no_contradiction() -> None:
    assert not anomalies(history().sent("a").poll((0, "a")).poll((0, "a"), process="d"))


def test_the_offset_of_what_failed_says_nothing() -> None:
    written = history().send("a", 0, outcome=Outcome.FAIL).send("b", 0, process="q").poll((0, "b"))
    assert not anomalies(written)


def test_one_value_at_two_offsets_is_a_duplicate() -> None:
    assert anomalies(history().sent("a").poll((0, "a"), (1, "a"))) == {Anomaly.DUPLICATE}


def test_two_values_that_look_alike_in_two_partitions_are_no_duplicate() -> None:
    written = history().sent("a").add(Kind.SEND, Send(OTHER, "a", 7))
    assert not anomalies(written.add(Kind.POLL, Poll({KEY: [(0, "a")], OTHER: [(7, "a")]})))


# What was written and read.


def test_what_was_read_though_its_sending_failed_is_found() -> None:
    written = history().send("a", outcome=Outcome.FAIL).poll((0, "a"))
    assert anomalies(written) == {Anomaly.ABORTED_READ}


def test_what_a_failed_transaction_polled_counts() -> None:
    written = history().send("a", outcome=Outcome.FAIL)
    written.add(Kind.TXN, Poll({KEY: [(0, "a")]}), process="c", outcome=Outcome.FAIL)
    assert anomalies(written) == {Anomaly.ABORTED_READ}


def test_a_transaction_that_reads_what_it_sends_is_found() -> None:
    steps = (Send(KEY, "a", 0), Poll({KEY: [(0, "a")]}))
    assert anomalies(history().add(Kind.TXN, *steps)) == {Anomaly.PRECOMMITTED_READ}


def test_a_transaction_may_read_what_the_one_before_it_sent() -> None:
    written = history().add(Kind.TXN, Send(KEY, "a", 0))
    assert not anomalies(written.add(Kind.TXN, Send(KEY, "b", 2), Poll({KEY: [(0, "a")]})))


def _two_transactions(second_reads: str) -> HistoryWriter:
    written = history().send("x", 0, process="q")
    written.add(Kind.TXN, Send(KEY, "a", 1), Poll({OTHER: [(0, "b")]}), process="t")
    found = {KEY: [(1, "a")]} if second_reads == "a" else {KEY: [(0, "x")]}
    return written.add(Kind.TXN, Send(OTHER, "b", 0), Poll(found), process="u")


def test_transactions_that_read_from_each_other_are_found() -> None:
    report = report_of(_two_transactions(second_reads="a"))
    (case,) = report.anomalies[Anomaly.CIRCULAR_READ].cases
    assert set(case.operations) == {1, 2}


def test_a_transaction_may_read_from_one_that_read_from_nobody() -> None:
    assert not anomalies(_two_transactions(second_reads="x"))


def test_an_acknowledged_record_that_a_reader_came_past_is_lost() -> None:
    written = history().sent("a", "b", "c").poll((0, "a")).poll((2, "c"), process="d")
    assert anomalies(written) == {Anomaly.LOST_WRITE}


def test_an_acknowledged_record_that_nobody_has_come_to_is_not_lost() -> None:
    assert not anomalies(history().sent("a", "b", "c").poll((0, "a"), (1, "b")))


def test_a_record_that_nobody_answered_need_not_be_there() -> None:
    written = history().send("a", 0).send("b", outcome=Outcome.INFO).drain((0, "a"))
    assert not anomalies(written)


def test_a_transaction_of_which_a_part_was_read_must_be_there_as_a_whole() -> None:
    written = history()
    written.add(Kind.TXN, Send(KEY, "a"), Send(OTHER, "b"), outcome=Outcome.INFO)
    written.add(Kind.DRAIN, Poll({KEY: [(0, "a")], OTHER: []}), process="drain")
    assert anomalies(written) == {Anomaly.UNSEEN}


def test_a_transaction_of_which_nothing_was_read_may_be_nowhere() -> None:
    written = history()
    written.add(Kind.TXN, Send(KEY, "a"), Send(OTHER, "b"), outcome=Outcome.INFO)
    written.add(Kind.DRAIN, Poll({KEY: [], OTHER: []}), process="drain")
    assert not anomalies(written)


def test_an_acknowledged_record_that_is_not_there_at_the_end_is_found() -> None:
    assert anomalies(history().sent("a", "b").drain((0, "a"))) == {Anomaly.UNSEEN}


def test_a_record_acknowledged_while_the_log_was_read_need_not_be_seen() -> None:
    written = history().sent("a").drain((0, "a")).send("b", 1)
    assert not anomalies(written)


def test_nothing_is_unseen_as_long_as_nobody_has_read_to_the_end() -> None:
    assert not anomalies(history().sent("a", "b").poll((0, "a")))


def test_a_record_that_was_read_and_is_gone_at_the_end_is_found() -> None:
    written = history().send("a", outcome=Outcome.INFO).poll((0, "a")).drain()
    assert anomalies(written) == {Anomaly.VANISHED}


def test_a_record_that_was_read_after_the_end_had_been_read_is_not_gone() -> None:
    written = history().send("a", outcome=Outcome.INFO).drain().poll((0, "a"))
    assert not anomalies(written)


# In which order.


def _all_sent() -> HistoryWriter:
    return history().sent("a", "b", "c").poll((0, "a"), (1, "b"), (2, "c"), process="d")


def test_a_reader_that_leaves_out_a_record_is_found() -> None:
    assert anomalies(_all_sent().poll((0, "a")).poll((2, "c"))) == {Anomaly.POLL_SKIP}


def test_a_reader_may_leave_out_offsets_that_hold_nothing() -> None:
    written = history().send("a", 0).send("b", 5)
    assert not anomalies(written.poll((0, "a")).poll((5, "b")))


def test_a_reader_that_goes_back_is_found() -> None:
    written = _all_sent().poll((0, "a"), (1, "b")).poll((1, "b"))
    assert anomalies(written) == {Anomaly.NONMONOTONIC_POLL}


def test_another_reader_may_begin_at_the_start() -> None:
    assert not anomalies(_all_sent().poll((1, "b")).poll((0, "a"), process="e"))


def test_within_a_poll_nothing_is_left_out_or_comes_again() -> None:
    skipped = _all_sent().poll((0, "a"), (2, "c"))
    assert anomalies(skipped) == {Anomaly.INTERNAL_POLL_SKIP}
    repeated = _all_sent().poll((0, "a"), (1, "b"), (0, "a"))
    assert anomalies(repeated) == {Anomaly.INTERNAL_NONMONOTONIC_POLL}


def test_a_key_that_a_reader_gave_up_begins_anew() -> None:
    def read_again(*keys: str) -> HistoryWriter:
        written = _all_sent().poll((0, "a"), (1, "b"))
        written.add(Kind.ASSIGN, Assign([OTHER]), process="c")
        return written.add(Kind.ASSIGN, Assign(keys), process="c").poll((0, "a"))

    assert not anomalies(read_again(KEY))


def test_a_key_that_a_reader_keeps_goes_on() -> None:
    written = _all_sent().poll((0, "a"), (1, "b"))
    written.add(Kind.ASSIGN, Assign([KEY, OTHER]), process="c").poll((0, "a"))
    assert anomalies(written) == {Anomaly.NONMONOTONIC_POLL}


def test_a_key_that_was_rebalanced_begins_anew() -> None:
    written = _all_sent().poll((0, "a"), (1, "b")).poll((0, "a"), rebalanced=[KEY])
    assert not anomalies(written.poll((1, "b")))


def test_a_member_of_a_group_may_be_sent_back() -> None:
    written = _all_sent().add(Kind.SUBSCRIBE, process="c").poll((1, "b")).poll((0, "a"))
    report = report_of(written)
    assert report.is_good
    assert set(report.normal) == {Anomaly.NONMONOTONIC_POLL}


def test_a_member_of_a_group_gets_the_records_of_one_poll_in_order() -> None:
    written = _all_sent().add(Kind.SUBSCRIBE, process="c").poll((1, "b"), (0, "a"))
    assert anomalies(written) == {Anomaly.INTERNAL_NONMONOTONIC_POLL}


def test_a_process_that_crashed_begins_anew() -> None:
    written = _all_sent().poll((1, "b")).add(Kind.CRASH, process="c").poll((0, "a"))
    assert not anomalies(written)


def test_a_process_whose_records_change_places_is_found() -> None:
    assert anomalies(history().send("a", 1).send("b", 0)) == {Anomaly.NONMONOTONIC_SEND}


def test_a_record_that_only_a_reader_knows_the_place_of_counts_too() -> None:
    written = history().send("a", outcome=Outcome.INFO).send("b", 0).poll((0, "b"), (1, "a"))
    assert anomalies(written) == {Anomaly.NONMONOTONIC_SEND}


def test_records_of_two_processes_may_lie_in_any_order() -> None:
    assert not anomalies(history().send("a", 1).send("b", 0, process="q"))


def test_within_a_transaction_records_keep_their_order() -> None:
    swapped = history().add(Kind.TXN, Send(KEY, "a", 1), Send(KEY, "b", 0))
    assert anomalies(swapped) == {Anomaly.INTERNAL_NONMONOTONIC_SEND}
    others_between = history().add(Kind.TXN, Send(KEY, "a", 0), Send(KEY, "b", 5))
    assert not anomalies(others_between)


# Large ones.


def _large(count: int) -> list[Operation]:
    """Four producers and three readers, that many operations in all."""
    chance = random.Random(7)
    written = history()
    ends = {f"k-{number}": 0 for number in range(4)}
    kept: dict[str, list[tuple[int, str]]] = {key: [] for key in ends}
    positions: dict[tuple[str, str], int] = {}
    while len(written.operations) < count:
        key = chance.choice(list(ends))
        if chance.random() < 0.7:
            value = str(len(written.operations))
            is_told = chance.random() < 0.99
            if is_told or chance.random() < 0.5:
                kept[key].append((ends[key], value))
                ends[key] += 1
            outcome = Outcome.OK if is_told else Outcome.INFO
            process = f"p{chance.randrange(4)}"
            step = Send(key, value, kept[key][-1][0] if is_told else None)
            written.add(Kind.SEND, step, process=process, outcome=outcome)
        else:
            process = f"c{chance.randrange(3)}"
            start = positions.get((process, key), 0)
            found = kept[key][start : start + 50]
            positions[process, key] = start + len(found)
            written.add(Kind.POLL, Poll({key: found}), process=process)
    written.add(Kind.DRAIN, Poll(dict(kept)), process="drain")
    return written.operations


@pytest.mark.timeout(60)
def test_two_hundred_thousand_operations_take_a_few_seconds() -> None:
    operations = _large(200_000)
    began = time.process_time()
    report = check(operations)
    assert report.is_good, str(report)
    assert time.process_time() - began < 10


def test_a_single_loss_among_many_operations_is_found() -> None:
    operations = _large(5_000)
    drain = operations.pop()
    assert isinstance(drain.steps[0], Poll)
    found = {key: list(records) for key, records in drain.steps[0].found.items()}
    found["k-1"].pop()
    lost = Operation(
        drain.index, "drain", Outcome.OK, Kind.DRAIN, drain.began_ns, drain.ended_ns, [Poll(found)]
    )
    report = check([*operations, lost])
    assert sum(findings.count for findings in report.anomalies.values()) == 1
