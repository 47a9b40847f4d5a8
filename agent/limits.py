"""How often a turn may go round: the outer loop, the inner loop, the graph."""

from __future__ import annotations

MAX_ITERATIONS = 10  # of the router, and of plan, execute, refine
MAX_EXECUTOR_STEPS = 5  # answers of the model within one step of a plan
MAX_PLAN = 8  # steps
RECURSION_LIMIT = 150  # nodes; ten iterations of the longest kind take 138
APPROVAL_CALLS = 30  # model calls that a plan may take before a person is asked
