"""What a person reads: the report of all experiments, and replays of a policy, as single pages."""
