"""What every test shares: how hard Hypothesis searches."""

import os

from hypothesis import HealthCheck, settings

# A busy machine may stall any single example, so time per example says nothing.
settings.register_profile("developer", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", settings.get_profile("developer"), print_blob=True)
settings.register_profile("nightly", settings.get_profile("ci"), max_examples=5_000)
settings.load_profile(
    os.environ.get("HYPOTHESIS_PROFILE", "ci" if os.environ.get("CI") else "developer")
)
