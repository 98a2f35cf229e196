"""Errors between Spark and a cluster, each with a one-sentence message.

SparkError
├── BadOption    an option is unknown, contradicts another, or has a value that makes no sense
│   └── NoTopic  it names a topic that does not exist
├── DataLoss     records that were to be read are no longer there, or never will be
└── Unreadable   a record that Spark cannot hold, or bytes that are not what they claim to be

Spark's Python workers pass them to the driver as text: only the message is kept.
"""


class SparkError(Exception):
    """The root of this tree."""


class BadOption(SparkError, ValueError):
    def __init__(self, name: str, value: object, why: str) -> None:
        super().__init__(f"option {name!r} is {value!r}: {why}")
        self.option = name


class NoTopic(BadOption):
    pass


class DataLoss(SparkError):
    pass


class Unreadable(SparkError):
    pass
