"""The nodes of the plan-and-act loop: plan, approval, steps, tool calls, findings, continue or finish."""
