import asyncio
from random import Random

from ottla.client.dialer import Dialer
from ottla.env.network import Address
from ottla.protocol.messages import produce
from ottla.simulation.clients.hostile_client import HostileClient, HostileFrames
from tests.unit.broker.requests import batch, only, produce_request
from tests.unit.broker.serving import serving

TOPICS = {
    "h-plain": {},
    "h-compacted": {"cleanup_policy": "compact"},
    "h-append": {"message_timestamp_type": "LogAppendTime", "compression_type": "zstd"},
}
NOW = 1_700_000_000_000
ADDRESS = Address("broker", 9092)


def test_the_same_seed_makes_the_same_streams() -> None:
    def streams() -> list[bytes]:
        frames = HostileFrames(Random(7), list(TOPICS), lambda: NOW)
        return [frames.stream() for _ in range(30)]

    assert streams() == streams()


def test_a_broker_serves_others_beside_a_hostile_client() -> None:
    with serving(auto_create_topics_enable="false") as world:
        world.topic("good")
        for topic, config in TOPICS.items():
            world.topic(topic, **config)
        rng = Random(3)
        frames = HostileFrames(rng, list(TOPICS), lambda: world.now)
        network = world.network.host("hostile")
        hostile = HostileClient(network, ADDRESS, frames, rng)

        async def work() -> None:
            attack = asyncio.create_task(hostile.run())
            host = world.network.host("good")
            good = await Dialer("good").dial(host, ADDRESS, timeout_ms=1000)
            for offset in range(20):
                await asyncio.sleep(0.2)
                request = produce_request(batch(b"value", at=world.now), "good")
                answer = await good.ask(request, produce.Response, timeout_ms=1000, version_max=12)
                assert (only(answer).error_code, only(answer).base_offset) == (0, offset)
            hostile.is_over = True
            await attack
            good.close()

        world.run(work())
        assert hostile.streams > 20
        assert world.broker.env.network.peer_failures == 0
