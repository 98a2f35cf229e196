"""The seam between a connection and whatever carries its bytes."""

from ottla.env.network import DEFAULT_OPTIONS, Address, SocketOptions


def test_an_address_is_written_as_people_write_it() -> None:
    assert str(Address("localhost", 9092)) == "localhost:9092"
    assert str(Address("::1", 9092)) == "[::1]:9092"
    assert str(Address("", 0)) == ":0"


def test_sockets_are_left_to_the_system_unless_told_otherwise() -> None:
    assert SocketOptions() == DEFAULT_OPTIONS
    assert DEFAULT_OPTIONS.backlog == 50
    assert DEFAULT_OPTIONS.receive_buffer_bytes == DEFAULT_OPTIONS.send_buffer_bytes == -1
