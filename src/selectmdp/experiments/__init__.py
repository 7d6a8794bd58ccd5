"""The paper's experiments (§5): each figure as data, run side by side, kept as small CSV files."""
