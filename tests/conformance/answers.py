"""What a broker answers to each served API in each version: a script that is run on a fresh broker.

Apache Kafka's answers are kept in `recorded/answers.json`. One command records them anew:

    python -m tests.conformance.answers
"""

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.conformance import (
    answer_cluster_steps,
    answer_config_steps,
    answer_description_steps,
    answer_group_steps,
    answer_migration_steps,
    answer_record_steps,
    answer_topic_steps,
    raw,
)
from tests.conformance.answer_frames import RAW
from tests.conformance.answer_world import World
from tests.conformance.apache_kafka import ApacheKafka
from tests.conformance.broker_process import BrokerProcess

RECORDED = Path(__file__).parent / "recorded/answers.json"
# In this order: later steps use what earlier ones made.
STEPS = [
    *answer_topic_steps.STEPS,
    *answer_record_steps.STEPS,
    *answer_description_steps.STEPS,
    *answer_config_steps.STEPS,
    *answer_cluster_steps.STEPS,
    *answer_group_steps.STEPS,
    *answer_migration_steps.STEPS,
]


def run(broker: BrokerProcess) -> dict[str, Any]:
    """Every step in each of its versions, in order, by name and version."""
    answers: dict[str, Any] = {}
    world = World(broker.bootstrap)
    for step in STEPS:
        for version in step.versions:
            name = f"{step.name} v{version}"
            answer = world.ask_until_loaded(step.request(world, version), version)
            world.answers[step.name, version] = answer
            answers[name] = answer if isinstance(answer, str) else raw.as_json(answer)
            if step.settles:
                world.settle()
    for name, data in RAW.items():
        with raw.Connection(broker.bootstrap) as connection:
            connection.send_bytes(data)
            frame = connection.receive_frame(seconds_max=3)
            answers[name] = frame if isinstance(frame, str) else "answered"
    return answers


def recorded() -> dict[str, Any]:
    return json.loads(RECORDED.read_text()) if RECORDED.exists() else {}


def record() -> None:
    with tempfile.TemporaryDirectory() as directory:
        broker = BrokerProcess(ApacheKafka(), Path(directory)).start()
        try:
            answers = run(broker)
        finally:
            broker.kill()
    RECORDED.parent.mkdir(exist_ok=True)
    lines = (f"{json.dumps(name)}: {json.dumps(answer)}" for name, answer in answers.items())
    RECORDED.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    sys.stdout.write(f"{len(answers)} answers of Apache Kafka are in {RECORDED}\n")


if __name__ == "__main__":
    record()
