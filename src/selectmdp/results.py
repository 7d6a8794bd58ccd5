"""What a training run leaves: a policy, what it earns beside the references, and its curve."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from selectmdp.evaluation import Evaluation
from selectmdp.files import write_whole
from selectmdp.machine import cores
from selectmdp.policy import Policy
from selectmdp.runlog import read_rows
from selectmdp.tasks import told_items


@dataclass(frozen=True)
class TrainResult:
    """What a training run leaves."""

    policy: Policy
    evaluation: Evaluation
    """Of the last policy, ε = 0, on episodes that it never trained on."""
    references: Mapping[str, Evaluation]
    """Random and, where the world offers it, greedy: on the same episodes."""
    folder: Path
    seconds: float
    """Of the run, over all its parts, with compilation and evaluations."""
    megabytes: float
    """The most memory that the process ever had."""

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        config, judged = self.policy.about["config"], self.evaluation.to_json()
        named = {name: judged.pop(name) for name in ("steps", "seed")}
        return {
            **{name: config[name] for name in ("task", "algorithm", "preset", "steps", "seed")},
            "settings": config["settings"],
            **self.policy.about["spec"],
            **{name: each for name, each in config["options"].items() if name == "num_items"},
            **judged,
            **{f"evaluation_{name}": value for name, value in named.items()},
            "references": {name: told.to_json() for name, told in self.references.items()},
            "seconds": round(self.seconds, 1),
            "cores": cores(),
            "devices": self.policy.about["devices"],
            "megabytes": None if math.isnan(self.megabytes) else round(self.megabytes),
            "folder": str(self.folder),
        }


def write(result: TrainResult) -> None:
    """`result.json` and `curve.png` into the run's folder."""
    content = json.dumps(result.to_json(), indent=2, allow_nan=False) + "\n"
    write_whole(result.folder / "result.json", content.encode())
    draw_curve(result)


def draw_curve(result: TrainResult) -> None:
    """The learning curve beside the references, as `curve.png` in the run's folder."""
    from selectmdp.curves import save_curve

    told = result.policy.about
    config, spec = told["config"], told["spec"]
    items = told_items(config["options"].get("num_items", spec["num_items"]))
    save_curve(
        result.folder / "curve.png",
        read_rows(result.folder / "metrics.csv"),
        title=f"{config['algorithm']} on {config['task']}, N={items}, "
        f"K={spec['num_select']}, {config['preset']} preset, seed {config['seed']}",
        unit=result.evaluation.unit,
        references={
            name: (each.mean_reward, None if math.isnan(each.ci95) else each.ci95)
            for name, each in result.references.items()
        },
    )
