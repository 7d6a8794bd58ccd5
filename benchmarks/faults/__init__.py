"""Bad days, with figures: what becomes of runs that are killed, damaged, starved or raced for.

    python -m benchmarks.faults --trials 200          # a table; --json: one object
    python -m benchmarks.faults --only kill --trials 20
    python -m benchmarks.faults --soak 60             # an hour of training with flat memory

Every fault is done to real processes and real files. A run counts as lost when a checkpoint that
was complete no longer loads, when the run cannot go on, or when it ends with other bytes than the
same run undisturbed; as loaded corrupt when anything is loaded that the undisturbed run never
wrote.
"""
