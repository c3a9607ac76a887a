"""Public checks that a new strategy must pass: soundness, budgets, same seed same plan, input untouched.

`exam_kind` takes plans of a new kind through every verb. Those of a carrier, a log or a registry say what the
runtime relies on.

from narrowcast.testing import exam_channels

exam_channels(lambda interest, groups, sessions, seed: my_plan(...))
"""

from narrowcast.testing.channels import exam_channels, exam_hybrid
from narrowcast.testing.engines import exam_carrier, exam_log, exam_registry
from narrowcast.testing.kind import exam_kind
from narrowcast.testing.queries import exam_queries

__all__ = ["exam_carrier", "exam_channels", "exam_hybrid", "exam_kind", "exam_log", "exam_queries", "exam_registry"]
