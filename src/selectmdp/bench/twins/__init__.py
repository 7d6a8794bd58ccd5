"""Plain NumPy twins of the paper's two environments (appendix, "Evaluation Settings").

Slow on purpose: loops that read like the rules of the game, in float64, with every random number
handed in. They are written from the specification alone, so the tests can use them as an oracle for
the compiled environments, and `selectmdp bench envs` as the pace to beat.
"""

from .circle import CircleTwin
from .predator_prey import PredatorPreyTwin, features

__all__ = ["CircleTwin", "PredatorPreyTwin", "features"]
