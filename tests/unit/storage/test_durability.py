from tests.unit.storage.making import fill, make_disk, open_log


def test_what_was_synced_survives_power_and_the_recovery_point_says_so() -> None:
    disk = make_disk()
    log = open_log(disk)
    fill(log, 15)
    assert log.is_unsynced
    assert log.recovery_point == 0
    end_offset = log.end_offset
    work = log.durability.begin_sync(log.end_offset)
    fill(log, 3)
    for each in work:
        each.sync()
    log.durability.synced_to(end_offset)
    assert log.recovery_point == 15
    disk.cut_power()
    again = open_log(disk, clean=False, recovery_point=15, power_lost=True)
    assert 15 <= again.end_offset <= 18


def test_a_sync_does_not_vouch_for_what_replaced_what_it_synced() -> None:
    log = open_log(make_disk())
    fill(log, 10)
    work = log.durability.begin_sync(log.end_offset)
    log.truncate_to(4)
    fill(log, 8)
    for each in work:
        each.sync()
    log.durability.synced_to(10)
    assert log.recovery_point == 4


def test_nothing_is_left_to_sync_after_a_sync() -> None:
    log = open_log(make_disk())
    fill(log, 15)
    log.sync()
    assert not log.is_unsynced
    assert log.durability.begin_sync(log.end_offset) == []
