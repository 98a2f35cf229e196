"""CreateTopics through a broker: what is confirmed can be written to, and what is refused."""

import pytest

from ottla.broker.handlers import create_topics as handler
from ottla.broker.machines.answer import Answer, refused
from ottla.broker.wire import responses
from ottla.model.errors import ErrorCode, Refusal
from ottla.protocol.messages import create_topics as wire
from tests.unit.broker.requests import write
from tests.unit.broker.serving import CONTROLLER, World, serving


def one(
    world: World, topic: wire.CreatableTopic, version: int = 7, *, validate_only: bool = False
) -> wire.CreatableTopicResult:
    request = wire.Request([topic], timeout_ms=1000, validate_only=validate_only)
    [result] = world.client().ask(request, version).topics
    assert result.name == topic.name
    return result


@pytest.mark.parametrize("version", range(2, 8))
def test_a_topic_is_made_and_written_to_at_once(version: int) -> None:
    with serving() as world:
        config = wire.CreatableTopicConfig("retention.ms", "1000")
        made = one(world, wire.CreatableTopic("t", 3, 1, configs=[config]), version)
        assert made.error_code == 0
        if version >= 5:
            assert (made.num_partitions, made.replication_factor) == (3, 1)
            assert {c.name: c.value for c in made.configs}["retention.ms"] == "1000"
        if version >= 7:
            assert made.topic_id == world.broker.image.topics_by_name["t"].id
        assert write(world, b"a", partition=2) == 0
        assert world.partition().log.config.retention_ms == 1000


def test_defaults_are_the_brokers() -> None:
    with serving(num_partitions=5) as world:
        assert one(world, wire.CreatableTopic("t", -1, -1)).num_partitions == 5
        assert len(world.broker.partitions) == 5


def test_partitions_may_be_assigned_by_hand() -> None:
    with serving() as world:
        assignments = [wire.CreatableReplicaAssignment(index, [1]) for index in range(2)]
        assert one(world, wire.CreatableTopic("t", -1, -1, assignments)).error_code == 0
        elsewhere = [wire.CreatableReplicaAssignment(0, [2])]
        refused = one(world, wire.CreatableTopic("u", -1, -1, elsewhere))
        assert refused.error_code == ErrorCode.INVALID_REPLICA_ASSIGNMENT


def test_validating_makes_nothing() -> None:
    with serving() as world:
        made = one(world, wire.CreatableTopic("t", 2, 1), validate_only=True)
        assert (made.error_code, made.num_partitions) == (0, 2)
        assert world.broker.image.topics_by_name == {}
        assert [name for name in world.disk.list("/data") if name.startswith("t-")] == []


@pytest.mark.parametrize(
    ("topic", "code"),
    [
        (wire.CreatableTopic("a/b", 1, 1), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (wire.CreatableTopic("t", 0, 1), ErrorCode.INVALID_PARTITIONS),
        (wire.CreatableTopic("t", -2, 1), ErrorCode.INVALID_PARTITIONS),
        (wire.CreatableTopic("t", 1, 0), ErrorCode.INVALID_REPLICATION_FACTOR),
        (wire.CreatableTopic("t", 1, 2), ErrorCode.INVALID_REPLICATION_FACTOR),
        (wire.CreatableTopic("exists", 1, 1), ErrorCode.TOPIC_ALREADY_EXISTS),
        (
            wire.CreatableTopic("t", 1, 1, configs=[wire.CreatableTopicConfig("no.such", "1")]),
            ErrorCode.INVALID_CONFIG,
        ),
        (
            wire.CreatableTopic(
                "t", 1, 1, configs=[wire.CreatableTopicConfig("retention.ms", "x")]
            ),
            ErrorCode.INVALID_CONFIG,
        ),
    ],
)
def test_what_cannot_be_is_refused(topic: wire.CreatableTopic, code: ErrorCode) -> None:
    with serving() as world:
        world.topic("exists")
        refused = one(world, topic)
        assert refused.error_code == code
        assert refused.error_message
        assert list(world.broker.image.topics_by_name) == ["exists"]


def test_one_name_twice_is_refused_both_times() -> None:
    with serving() as world:
        twice = wire.Request([wire.CreatableTopic("t", 1, 1), wire.CreatableTopic("t", 1, 1)])
        answer = world.client().ask(twice)
        assert {topic.error_code for topic in answer.topics} == {ErrorCode.INVALID_REQUEST}
        assert world.broker.image.topics_by_name == {}


def test_a_restart_remembers_topics_and_their_configs() -> None:
    with serving() as world:
        topic_id = world.topic("t", 2, max_message_bytes=1234)
        for again in (world.restart, world.lose_power):
            again()
            assert world.partition("t", 1).topic_id == topic_id
            assert world.partition("t", 1).policy.message_bytes_max == 1234


def test_the_controllers_door_makes_topics_too() -> None:
    with serving() as world:
        request = wire.Request([wire.CreatableTopic("t", 1, 1)])
        assert world.client(CONTROLLER).ask(request).topics[0].error_code == 0
        assert write(world, b"a") == 0


# Many topics in one request.


def many(*names: str, partitions: int = 1, **options: bool) -> wire.Request:
    topics = [wire.CreatableTopic(name, partitions, 1) for name in names]
    return wire.Request(topics, timeout_ms=1000, **options)


def slices(world: World, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """What the controller is asked to create from here on, request by request."""
    asked: list[list[str]] = []
    decide = world.broker.quorum.requests.decide

    def noting(request: object) -> Answer[wire.Response]:
        if isinstance(request, wire.Request):
            asked.append([topic.name for topic in request.topics])
        return decide(request)

    monkeypatch.setattr(world.broker.quorum.requests, "decide", noting)
    return asked


@pytest.mark.parametrize("version", range(2, 8))
@pytest.mark.parametrize("validate_only", [False, True])
def test_many_topics_are_made_slice_by_slice_and_answered_together(
    version: int, validate_only: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handler, "SLICE", 3)
    with serving() as world:
        world.topic("t3")
        asked = slices(world, monkeypatch)
        names = [f"t{number}" for number in range(8)]
        request = many("twice", *names, "twice", validate_only=validate_only)
        answer = world.client().ask(request, version)
        assert asked == [names[:3], names[3:6], [*names[6:], "twice", "twice"]]
        codes = [(topic.name, topic.error_code) for topic in answer.topics]
        assert codes == [
            *((n, ErrorCode.TOPIC_ALREADY_EXISTS if n == "t3" else 0) for n in names),
            ("twice", ErrorCode.INVALID_REQUEST),
        ]
        assert len(world.broker.image.topics_by_name) == (1 if validate_only else 8)


def test_slices_are_bounded_by_partitions_and_the_whole_by_what_one_batch_holds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(handler, "SLICE_PARTITIONS", 10)
    with serving() as world:
        asked = slices(world, monkeypatch)
        answer = world.client().ask(many("a", "b", "c", partitions=5))
        assert asked == [["a", "b"], ["c"]]
        assert [topic.error_code for topic in answer.topics] == [0, 0, 0]
        answer = world.client().ask(many("d", "e", partitions=5001))
        assert {topic.error_code for topic in answer.topics} == {ErrorCode.POLICY_VIOLATION}
        assert len(world.broker.image.topics_by_name) == 3


def test_what_was_made_before_the_controller_refused_is_answered_as_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(handler, "SLICE", 1)
    with serving() as world:
        decide = world.broker.quorum.requests.decide

        def decide_some(request: object) -> Answer[wire.Response]:
            if isinstance(request, wire.Request) and request.topics[0].name == "b":
                return refused(Refusal(ErrorCode.REQUEST_TIMED_OUT, "too late"))
            return decide(request)

        monkeypatch.setattr(world.broker.quorum.requests, "decide", decide_some)
        answer = world.client().ask(many("a", "b", "c"))
        assert [(t.name, t.error_code, t.error_message) for t in answer.topics] == [
            ("a", 0, None),
            ("b", ErrorCode.REQUEST_TIMED_OUT, "too late"),
            ("c", 0, None),
        ]
        answer = world.client().ask(many("b", "d"))
        assert {topic.error_code for topic in answer.topics} == {ErrorCode.REQUEST_TIMED_OUT}


@pytest.mark.parametrize("version", range(2, 8))
def test_a_long_answer_is_the_same_as_a_short_one(
    version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving() as world:
        names = [f"t{number}" for number in range(5)]
        request = many(*names, validate_only=True)
        at_once = world.client().ask(request, version)
        monkeypatch.setattr(responses, "FEW", 3)
        later = world.client().ask(request, version)
        for topic in (*at_once.topics, *later.topics):
            topic.topic_id = b""
        assert later == at_once
