"""Public checks that a new strategy must pass: soundness, budgets, same seed same plan, input untouched.

from narrowcast.testing import exam_channels

exam_channels(lambda interest, groups, sessions, seed: my_plan(...))
"""

from narrowcast.testing.channels import exam_channels, exam_hybrid
from narrowcast.testing.queries import exam_queries

__all__ = ["exam_channels", "exam_hybrid", "exam_queries"]
