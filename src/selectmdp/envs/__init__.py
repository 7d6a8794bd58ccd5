"""Worlds: one file each, and the protocol they follow."""

from selectmdp.envs.base import SelectEnv
from selectmdp.envs.circle import Circle
from selectmdp.envs.circle_rules import CircleRules
from selectmdp.envs.predator_prey import PredatorPrey

WORLDS: dict[str, type[Circle] | type[PredatorPrey]] = {
    "circle": Circle,
    "predator-prey": PredatorPrey,
}

__all__ = ["WORLDS", "Circle", "CircleRules", "PredatorPrey", "SelectEnv"]
