"""What every test shares: how hard Hypothesis searches, and processes that can be interrupted."""

import os
import signal

from hypothesis import HealthCheck, settings

# A busy machine may stall any single example, so time per example says nothing.
settings.register_profile("developer", deadline=None, suppress_health_check=[HealthCheck.too_slow])
# CI tries the same examples each time; developers and the nightly run search for new ones.
settings.register_profile(
    "ci", settings.get_profile("developer"), print_blob=True, derandomize=True
)
settings.register_profile(
    "nightly", settings.get_profile("developer"), print_blob=True, max_examples=5_000
)
settings.load_profile(
    os.environ.get("HYPOTHESIS_PROFILE", "ci" if os.environ.get("CI") else "developer")
)

# A shell ignores SIGINT for what it starts in the background, and the processes of a test would
# inherit that; those with a handler of their own have the default one after exec.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
