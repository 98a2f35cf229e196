from collections.abc import Callable
from dataclasses import replace

import pytest

from ottla.client.metadata import Topic
from ottla.client.reader import Reader
from ottla.simulation.clients.old_reader import OldReader
from ottla.simulation.runs.run import simulate
from tests.unit.simulation.small import small_cluster


@pytest.mark.parametrize("old", [0, 1])
def test_a_plans_old_consumers_send_no_leader_epochs(
    old: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: set[tuple[type, bool]] = set()

    def noted(original: Callable[..., int]) -> Callable[..., int]:
        def epoch_of(self: Reader, topic: Topic, partition: int) -> int:
            epoch = original(self, topic, partition)
            sent.add((type(self), epoch >= 0))
            return epoch

        return epoch_of

    for kind in (Reader, OldReader):
        monkeypatch.setattr(kind, "_epoch_of", noted(kind._epoch_of))
    report = simulate(1, replace(small_cluster(), consumers=2, old_consumers=old))
    assert report.read > 0
    assert sent == {(Reader, True), *([(OldReader, False)] if old else [])}
