"""Plan kinds, one folder each: planning, judging, explaining, re-planning, routing and reporting."""
