"""Regular expressions over the names of topics, within a few milliseconds of each loop turn.

RE2 takes time linear in the name, but that times the size of its program, and a few bytes make a
large one: `(a?){1000}`. So programs are bounded, and what was found out about a name is kept. All
coordinators of a broker together have a part of each turn. Whoever needs more is refused until a
later turn, with a code that clients answer by asking again, and goes on where the last one ended.
"""

from collections import OrderedDict
from collections.abc import Callable
from importlib import import_module
from typing import Any, Final

from ottla.groups.topics import BadExpression
from ottla.model.errors import ErrorCode, Refusal
from ottla.model.types import Millis, Monotonic

TURN_MS: Final[Millis] = 10
EXPRESSION_BYTES_MAX: Final = 8192
# Of `\p` and `\P`: each is hundreds of ranges, which are made whatever the program may have.
UNICODE_CLASSES_MAX: Final = 32
# RE2's own count; some 4000 instructions, which take 8 ms for the longest name at worst.
PROGRAM_BYTES_MAX: Final = 128 * 1024
KEPT_MAX: Final = 250_000  # Names that an expression was tried on, a hundred bytes each;
EXPRESSION_WEIGHT: Final = 1000  # an expression itself counts as so many.


class _Expression:
    __slots__ = ("found", "pattern")

    def __init__(self, pattern: Any) -> None:  # noqa: ANN401  It has no types.
        self.pattern = pattern
        self.found: dict[str, bool] = {}


class Expressions:
    def __init__(
        self,
        now: Callable[[], Monotonic],
        call_soon: Callable[[Callable[[], None]], object],
        kept_max: int = KEPT_MAX,
    ) -> None:
        self._now = now
        self._call_soon = call_soon
        self._kept_max = kept_max
        self._kept: OrderedDict[str, _Expression] = OrderedDict()
        self._count = 0
        self._turn_ends: Monotonic | None = None

    def compile(self, text: str) -> Callable[[str], bool]:
        """What says of a whole name whether it matches; BadExpression if the text is none.

        Raises Refusal if there is no time for it in this turn; and so does what it returns.
        """
        known = self._kept.get(text)
        if known is None:
            _check(text)
            self._take_time()
            known = self._kept[text] = _Expression(_compiled(text))
            self._keep(EXPRESSION_WEIGHT)
        self._kept.move_to_end(text)
        found, fullmatch = known.found, known.pattern.fullmatch

        def matches(name: str) -> bool:
            result = found.get(name)
            if result is None:
                self._take_time()
                result = found[name] = fullmatch(name) is not None
                self._keep(1)
            return result

        return matches

    def _take_time(self) -> None:
        now = self._now()
        if self._turn_ends is None:
            self._turn_ends = Monotonic(now + TURN_MS)
            self._call_soon(self._begin_turn)
        elif now >= self._turn_ends:
            message = "The expression is looked up step by step; ask again."
            raise Refusal(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, message)

    def _begin_turn(self) -> None:
        self._turn_ends = None

    def _keep(self, weight: int) -> None:
        self._count += weight
        while self._count > self._kept_max and len(self._kept) > 1:
            _, oldest = self._kept.popitem(last=False)
            self._count -= EXPRESSION_WEIGHT + len(oldest.found)


def _check(text: str) -> None:
    if len(text.encode()) > EXPRESSION_BYTES_MAX:
        raise BadExpression(f"it has more than {EXPRESSION_BYTES_MAX} bytes")
    if text.count("\\p") + text.count("\\P") > UNICODE_CLASSES_MAX:
        raise BadExpression(f"it has more than {UNICODE_CLASSES_MAX} classes of Unicode")


def _compiled(text: str) -> Any:  # noqa: ANN401
    re2 = import_module("re2")  # Only those who subscribe by expression pay for it.
    options = re2.Options()
    options.log_errors = False
    options.max_mem = PROGRAM_BYTES_MAX
    try:
        return re2.compile(text, options=options)
    except re2.error as error:
        reason = error.args[0] if error.args else error
        raise BadExpression(
            reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)
        ) from error
