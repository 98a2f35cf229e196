"""The controller of one epoch: what it writes, in which batches, and when it stops."""

from typing import Any

from ottla.broker.controller.active_controller import ActiveController, Told
from ottla.broker.controller.committed_image import CommittedImage
from ottla.broker.controller.metadata_log import MetadataLog
from ottla.metadata.decisions.context import ControllerSettings
from ottla.model.errors import ErrorCode, Refusal
from ottla.protocol.messages import incremental_alter_configs as wire
from ottla.protocol.metadata_records import FeatureLevelRecord, TopicRecord
from ottla.quorum.voters import Voters
from tests.answers import collect
from tests.unit.broker.driving import CLUSTER, ONE, Node, run


class Stage:
    """The log grows and is synced; only the test says what is committed."""

    def __init__(self) -> None:
        self.node = Node()
        self.node.format()
        self.log = MetadataLog(self.node.env, self.node.settings)
        self.committed = CommittedImage(self.node.env, CLUSTER, self.log)
        self.committed.load()
        self.work = 0
        self.grew: list[int] = []
        self.synced: list[int] = []

    def active(self, epoch: int = 1) -> ActiveController:
        told = Told(self._work, lambda: self.grew.append(self.log.end_offset), self.synced.append)
        settings = ControllerSettings(ONE)
        return ActiveController(
            self.node.env, self.log, settings, self.committed.image, epoch, told
        )

    def _work(self) -> None:
        self.work += 1


VERSION = FeatureLevelRecord("metadata.version", 30)
CHANGE = wire.Request(
    [wire.AlterConfigsResource(4, "", [wire.AlterableConfig("log.retention.ms", 0, "7000")])]
)
TOPIC = TopicRecord("t", b"t" * 16)


def test_what_is_decided_is_written_and_synced_but_answered_only_when_committed() -> None:
    stage = Stage()
    answers: list[Any] = []

    async def work() -> None:
        active = stage.active()
        active.write_records([VERSION])
        collect(active.submit(CHANGE), answers)
        assert stage.work
        await active.write()
        end = stage.log.end_offset
        assert stage.grew == stage.synced == [end]
        assert answers == []
        stage.committed.advance(end, list(active.written))
        active.committed(end)
        assert len(answers) == 1
        assert not active.written
        active.drop(Refusal(ErrorCode.NOT_CONTROLLER))

    run(work())


def test_control_records_keep_their_turn_among_decisions() -> None:
    stage = Stage()

    async def work() -> None:
        active = stage.active(epoch=5)
        active.write_records([VERSION])
        active.write_controls((Voters.of(()).to_record(),))
        active.write_records([TOPIC])
        assert active.controller.next_offset == 3
        await active.write()
        assert stage.synced == [1, 2, 3]
        assert stage.log.history.changed_at == 1
        assert [(o, type(r)) for o, r in stage.log.records(0, 3)] == [
            (0, FeatureLevelRecord),
            (2, TopicRecord),
        ]
        assert stage.log.last_epoch == 5

    run(work())


def test_a_new_one_goes_on_with_what_the_log_holds_beyond_the_committed() -> None:
    stage = Stage()

    async def work() -> None:
        first = stage.active()
        first.write_records([VERSION, TOPIC])
        await first.write()
        second = stage.active(epoch=2)
        assert "t" in second.controller.image.topics_by_name
        assert "t" not in stage.committed.image.topics_by_name
        assert second.controller.next_offset == 2

    run(work())


def test_once_dropped_nothing_more_is_written_and_everyone_is_told() -> None:
    stage = Stage()
    answers: list[Any] = []

    async def work() -> None:
        active = stage.active()
        active.write_records([VERSION])
        collect(active.submit(CHANGE), answers)
        active.drop(Refusal(ErrorCode.NOT_CONTROLLER))
        assert [answer.code for answer in answers] == [ErrorCode.NOT_CONTROLLER]
        assert not active.pending
        assert stage.log.end_offset == 0

    run(work())
