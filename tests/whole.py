"""Made-up results in which nothing is missing: the paper's own preset is at its end too."""

from pathlib import Path

from benchmarks import made_results
from selectmdp.experiments import store, sweeps


def make(folder: Path) -> Path:
    """As `made_results` has it, and the three runs of benchmarks/paper.toml."""
    made_results.make(folder)
    figure, configs = made_results.FIGURES["4b"], sweeps.configs_of(made_results.PAPER)
    finals = [made_results.final(figure, config, 50, 0.8) for config in configs]
    curves = [row for config in configs for row in made_results.curve(figure, config, 50, 0.8)]
    (folder / "paper").mkdir()
    store.write(folder / "paper" / "sweep-finals.csv", store.FINALS, finals)
    store.write(folder / "paper" / "sweep-curves.csv", store.CURVES, curves)
    return folder
