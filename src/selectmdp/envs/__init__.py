"""Worlds: one file each, and the protocol they follow."""

from selectmdp.envs.base import SelectEnv
from selectmdp.envs.circle import Circle
from selectmdp.envs.circle_rules import CircleRules
from selectmdp.envs.league import League
from selectmdp.envs.predator_prey import PredatorPrey

WORLDS: dict[str, type[Circle] | type[PredatorPrey] | type[League]] = {
    "circle": Circle,
    "predator-prey": PredatorPrey,
    "league": League,
}

__all__ = ["WORLDS", "Circle", "CircleRules", "League", "PredatorPrey", "SelectEnv"]
