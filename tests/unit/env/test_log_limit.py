from ottla.env.log_limit import INTERVAL_SECONDS, LogLimit


def test_one_event_per_interval_is_logged_and_the_rest_counted() -> None:
    now = 0.0
    limit = LogLimit(lambda: now)
    assert limit.admits()
    assert limit.suppressed() == ""
    assert not limit.admits()
    assert not limit.admits()
    now = INTERVAL_SECONDS
    assert limit.admits()
    assert "2 more" in limit.suppressed()
    assert limit.suppressed() == ""
