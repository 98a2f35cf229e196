from random import Random

import pytest

from ottla.protocol.apis import ApiKey, request_class
from ottla.protocol.codec import decode, encode
from ottla.simulation.clients.breakage import build, mutate


@pytest.mark.parametrize("key", [ApiKey.PRODUCE, ApiKey.FETCH, ApiKey.JOIN_GROUP])
def test_built_messages_can_be_encoded_in_every_version(key: ApiKey) -> None:
    cls = request_class(key)
    for version in cls.VERSIONS:  # type: ignore[attr-defined]
        message = build(cls, version, Random(version))
        assert type(decode(cls, encode(message, version), version)) is cls


def test_a_mutation_changes_bytes_and_is_the_same_for_the_same_seed() -> None:
    data = bytes(range(200))
    mutated = [mutate(data, Random(seed)) for seed in range(50)]
    assert mutated == [mutate(data, Random(seed)) for seed in range(50)]
    assert len(set(mutated)) > 40
    assert mutate(b"", Random(1)) is not None
