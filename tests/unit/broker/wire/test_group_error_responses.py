"""Answers about groups that failed as a whole say the error wherever a client looks."""

import pytest

from ottla.broker.wire.apis import error_response
from ottla.model.errors import ErrorCode
from ottla.protocol.apis import ApiKey, request_class
from tests.unit.broker.wire.test_error_responses import codes_in, round_trip, two_of_everything

CODE = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
KEYS = [
    ApiKey.OFFSET_COMMIT, ApiKey.OFFSET_FETCH, ApiKey.FIND_COORDINATOR, ApiKey.JOIN_GROUP,
    ApiKey.HEARTBEAT, ApiKey.LEAVE_GROUP, ApiKey.SYNC_GROUP, ApiKey.DESCRIBE_GROUPS,
    ApiKey.LIST_GROUPS, ApiKey.DELETE_GROUPS, ApiKey.OFFSET_DELETE,
    ApiKey.CONSUMER_GROUP_HEARTBEAT, ApiKey.CONSUMER_GROUP_DESCRIBE,
]  # fmt: skip
COUNTS = {ApiKey.OFFSET_COMMIT: 4, ApiKey.DESCRIBE_GROUPS: 2, ApiKey.DELETE_GROUPS: 2}


@pytest.mark.parametrize("key", KEYS, ids=lambda key: key.name)
def test_an_error_answer_can_be_sent_in_every_version(key: ApiKey) -> None:
    cls = request_class(key)
    for version in cls.VERSIONS:
        request = two_of_everything(cls)
        for field in ("key", "coordinator_keys", "members", "groups", "topics"):
            if not hasattr(request, field):
                continue
            if key is ApiKey.FIND_COORDINATOR and version < 4:
                request.coordinator_keys = []
            if key is ApiKey.LEAVE_GROUP and version < 3:
                request.members = []
            if key is ApiKey.OFFSET_FETCH:
                request = cls(groups=request.groups) if version >= 8 else cls(topics=request.topics)
                for group in request.groups:
                    group.topics = []
            if key is ApiKey.LIST_GROUPS:
                request = cls()
        if key is ApiKey.LIST_GROUPS:
            request = cls()
        request = round_trip(request, version)
        answer = round_trip(error_response(key, request, version, CODE, "a sentence"), version)
        codes = codes_in(answer, version)
        assert set(codes) == {CODE}, f"version {version}"
        assert len(codes) == COUNTS.get(key, len(codes))


def test_a_refused_member_hears_its_own_id() -> None:
    request = request_class(ApiKey.JOIN_GROUP)(member_id="m")
    for version in (0, 6, 7, 9):
        answer = error_response(ApiKey.JOIN_GROUP, request, version, CODE)
        assert round_trip(answer, version).member_id == "m"
