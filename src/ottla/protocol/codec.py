"""Encoding and decoding of messages, for every version of a message class.

The code for a class and a version is compiled on first use (`encoder_source`, `decoder_source`). A
field with a value other than its default, in a version without that field, is left out if Kafka
calls it ignorable, and otherwise refused with UNSUPPORTED_VERSION, because its value would be lost.
A value that does not fit its type is a bug of the caller and raises ValueError. Malformed input
raises ProtocolError.
"""

from collections.abc import Iterator
from struct import error as struct_error
from typing import TypeVar

from ottla.model.errors import ProtocolError
from ottla.protocol.decoder_source import ELEMENTS_MAX, Decoder, compile_decoder
from ottla.protocol.encoder_source import (
    Encoder,
    SteppingEncoder,
    compile_encoder,
    compile_stepping_encoder,
)
from ottla.protocol.varint import Buffer

M = TypeVar("M")

_encoders: dict[tuple[type, int], Encoder] = {}
_stepping_encoders: dict[tuple[type, int], SteppingEncoder] = {}
_decoders: dict[tuple[type, int], Decoder] = {}


def encode(message: object, version: int) -> bytes:
    out = bytearray()
    encode_into(message, version, out)
    return bytes(out)


def encode_into(message: object, version: int, out: bytearray) -> None:
    """Append the message to `out`; earlier contents stay unchanged, also on failure."""
    cls = type(message)
    encoder = _encoders.get((cls, version))
    if encoder is None:
        encoder = compile_encoder(cls, version, _is_flexible(cls, version))
        _encoders[cls, version] = encoder
    start = len(out)
    try:
        encoder(message, out)
    except (struct_error, TypeError, AttributeError) as error:
        del out[start:]
        raise _does_not_fit(message, version, error) from error
    except BaseException:
        del out[start:]
        raise


def encode_steps(message: object, version: int, out: bytearray) -> Iterator[None]:
    """The same in steps of a millisecond or two, for a message of any length.

    Arrays of structs may be any sized iterable, so that elements can be created lazily, too. On
    failure, the contents of `out` are undefined.
    """
    cls = type(message)
    encoder = _stepping_encoders.get((cls, version))
    if encoder is None:
        encoder = compile_stepping_encoder(cls, version, _is_flexible(cls, version))
        _stepping_encoders[cls, version] = encoder
    try:
        yield from encoder(message, out)
    except (struct_error, TypeError, AttributeError) as error:
        raise _does_not_fit(message, version, error) from error


def _does_not_fit(message: object, version: int, error: Exception) -> ValueError:
    shown = f"{message!r:.200}"  # A long name in a message must not fill the log.
    return ValueError(f"{shown} does not fit version {version}: {error}")


def decode(cls: type[M], buffer: Buffer, version: int, *, elements_max: int = ELEMENTS_MAX) -> M:
    """Decode the message in `buffer`; trailing bytes are ignored, as in Kafka."""
    return decode_from(cls, buffer, 0, version, elements_max=elements_max)[0]


def decode_from(
    cls: type[M], buffer: Buffer, position: int, version: int, *, elements_max: int = ELEMENTS_MAX
) -> tuple[M, int]:
    """Decode the message at `position`; return it and its end position.

    `elements_max` bounds the number of elements of all arrays together, and of tagged fields.
    """
    decoder = _decoders.get((cls, version))
    if decoder is None:
        decoder = compile_decoder(cls, version, _is_flexible(cls, version))
        _decoders[cls, version] = decoder
    try:
        return decoder(buffer, position, elements_max)
    except (struct_error, IndexError) as error:
        raise ProtocolError(f"{_name(cls)} v{version} ends too early: {error}") from error


def _is_flexible(cls: type, version: int) -> bool:
    versions: range = cls.VERSIONS  # type: ignore[attr-defined]
    flexible_since: int = cls.FLEXIBLE_SINCE  # type: ignore[attr-defined]
    if version not in versions:
        raise ValueError(f"{_name(cls)} has no version {version}, only {versions}")
    return version >= flexible_since


def _name(cls: type) -> str:
    return f"{cls.__module__.rpartition('.')[2]}.{cls.__qualname__}"
