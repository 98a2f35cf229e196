from ottla.consumer import dead_letters as consumers
from ottla.spark import dead_letters


def test_the_headers_are_those_of_the_consumer_library() -> None:
    """Tools and jobs read each other's letters; the two packages do not import each other."""
    names = (
        *("TOPIC", "PARTITION", "OFFSET", "CONNECTOR", "TASK", "STAGE", "EXECUTING_CLASS"),
        *("EXCEPTION_CLASS", "EXCEPTION_MESSAGE", "PREFIX"),
    )
    for name in names:
        assert getattr(dead_letters, name) == getattr(consumers, name)
