"""Progress: how far behind, and how fast of late."""

from ottla.cdc.progress import Progress, Rate


def test_lag_is_the_log_retained_for_the_tail() -> None:
    assert Progress().lag_bytes == 0
    assert Progress(wal_lsn=500).lag_bytes == 0, "nothing was confirmed yet, so nothing is known"
    assert Progress(confirmed_lsn=100, wal_lsn=500).lag_bytes == 400
    assert Progress(confirmed_lsn=600, wal_lsn=500).lag_bytes == 0


def test_the_rate_is_that_of_the_last_looks() -> None:
    rate = Rate(looks_max=3)
    assert rate.look(0, 0) == 0
    assert rate.look(1000, 50) == 50
    assert rate.look(2000, 150) == 75
    assert rate.look(3000, 450) == 200, "the first look is forgotten"
