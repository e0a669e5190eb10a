"""Settings for all tests."""

from hypothesis import settings

# derandomize: every run tries the same examples, so a red test is red for everyone.
settings.register_profile("hocal", derandomize=True, deadline=None, max_examples=30, database=None)
settings.load_profile("hocal")
