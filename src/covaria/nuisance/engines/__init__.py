"""How all models of one learner are fitted: one promise, kept by every engine.

An engine is a module with two functions: `supports(plan)` says whether it can fit a plan, and
`run(plan)` returns or yields an `Outcome` for each of the plan's tasks, in order, or one for
several tasks in a row. What it returns is what the plain engine returns, faster. A task it has no
fast way for it hands to `plain.fit_task`.
"""
