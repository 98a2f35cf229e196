"""What ends a consumer, said so that a person can act on it; and what a handler may raise.

ConsumerError
├── CannotConsume     the group or the topics cannot be read, and trying again will not help
├── HandlerFailed     a record still fails after its retries, and there are no dead letters
└── CannotDeadLetter  a record still fails, and could not be written to its dead letter topic
Reject                raised by a handler: this record is not worth a retry
"""


class ConsumerError(Exception):
    """The root of this tree. All records handled before it are committed."""


class CannotConsume(ConsumerError):
    pass


class HandlerFailed(ConsumerError):
    pass


class CannotDeadLetter(ConsumerError):
    pass


class Reject(Exception):
    """Raised by a handler: do not retry this record."""
