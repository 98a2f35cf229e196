"""This broker's own session: whether the controller may have fenced it, as far as it can tell.

The counterpart of the controller's `Sessions` (`metadata/decisions/sessions.py`), measured by the
clock that counts suspended time. It also relies on the age of the committed image
(`quorum/freshness.py`).
"""

from ottla.broker.liveness.context import LivenessContext
from ottla.model.types import Monotonic


class OwnSession:
    def __init__(self, context: LivenessContext) -> None:
        self._context = context
        # When the last heartbeat was sent that was answered, by the clock that counts sleep.
        self._heard_at = Monotonic(0)
        self._heard_again_at = Monotonic(0)  # When one was answered after too long a silence.

    @property
    def may_be_fenced(self) -> bool:
        """True if the controller may have given our leaderships away.

        After a silence an answered heartbeat is not enough: the controller's decisions of the
        meantime have to be in our image.
        """
        quorum = self._context.quorum
        if quorum.is_alone:
            return False
        return self._may_be_over or (quorum.known_at or 0) < self._heard_again_at

    def now(self) -> Monotonic:
        """For `answered`; it goes on while the machine is suspended."""
        return self._context.env.clock.counting_sleep()

    def answered(self, sent_at: Monotonic) -> None:
        """A heartbeat that was sent then is answered: the controller got it no earlier."""
        if self._may_be_over:
            self._heard_again_at = self._context.now
        self._heard_at = sent_at

    @property
    def _may_be_over(self) -> bool:
        silent_ms = self.now() - self._heard_at
        return silent_ms >= self._context.settings.broker_session_timeout_ms
