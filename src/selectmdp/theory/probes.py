"""Probes: tiny worlds whose optimal Q-values are known by hand, one thing to get right in each.

A learner that misses one of them shows where it is wrong: each probe holds the IS-MDP's Q-values
(paper eq. 1) of every state after any picks, as literal numbers. Rewards and discounts are sums of
powers of two, so that the numbers are exact; `constant` alone has γ = 0.9.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from selectmdp.theory.joint import Picks
from selectmdp.theory.tiny import TinyWorld
from selectmdp.theory.worlds import tabulate

X = -np.inf
"""Where a pair is not legal."""


class Answer(NamedTuple):
    """The Q-value of every pair in a state after some picks."""

    state: int
    picks: Picks
    values: tuple[tuple[float, ...], ...]
    """[N, C]; −∞ where the pair is not legal."""


@dataclass(frozen=True, eq=False)
class Probe:
    """A world, its discount, and its optimal Q-values in all phases."""

    world: TinyWorld
    gamma: float
    answers: tuple[Answer, ...]


def constant() -> Probe:
    """Every step earns 1: all pairs in all phases are worth 1 / (1 − γ) = 10.

    A γ between phases as well would make it 1 / (1 − γ²) or less.
    """
    world = tabulate(lambda state, picks: (1.0, 0), np.eye(3)[None], 2, num_commands=2)
    ten, none = (10.0, 10.0), (X, X)
    after = ((none, ten, ten), (ten, none, ten), (ten, ten, none))
    answers = (
        Answer(0, (), (ten, ten, ten)),
        *(Answer(0, ((item, command),), after[item]) for item in range(3) for command in range(2)),
    )
    return Probe(world, 0.9, answers)


def worth() -> Probe:
    """A pick earns by what the item looks like and by its command; the next state is chance.

    Looks 0, 1, 2 earn (0, ¼), (½, 0), (¾, 1) under commands 0 and 1. State 0 shows the looks 0, 1,
    2 and state 1 shows 0, 0, 1; whatever is picked, both follow with chance ½. The best steps earn
    1½ and ¾, hence a state is worth 2¼ in the mean, of which γ = ½ leaves 1⅛ for every pick.
    """
    earned = ((0.0, 0.25), (0.5, 0.0), (0.75, 1.0))
    looks = ((0, 1, 2), (0, 0, 1))

    def rule(state: int, picks: Picks) -> tuple[float, np.ndarray]:
        reward = sum(earned[looks[state][item]][command] for item, command in picks)
        return reward, np.array([0.5, 0.5])

    world = tabulate(rule, np.eye(3)[np.array(looks)], 2, num_commands=2)
    answers = (
        Answer(0, (), ((2.125, 2.375), (2.625, 2.125), (2.375, 2.625))),
        Answer(0, ((0, 0),), ((X, X), (1.625, 1.125), (1.875, 2.125))),
        Answer(0, ((0, 1),), ((X, X), (1.875, 1.375), (2.125, 2.375))),
        Answer(0, ((1, 0),), ((1.625, 1.875), (X, X), (2.375, 2.625))),
        Answer(0, ((1, 1),), ((1.125, 1.375), (X, X), (1.875, 2.125))),
        Answer(0, ((2, 0),), ((1.875, 2.125), (2.375, 1.875), (X, X))),
        Answer(0, ((2, 1),), ((2.125, 2.375), (2.625, 2.125), (X, X))),
        Answer(1, (), ((1.625, 1.875), (1.625, 1.875), (1.875, 1.375))),
        Answer(1, ((0, 0),), ((X, X), (1.125, 1.375), (1.625, 1.125))),
        Answer(1, ((0, 1),), ((X, X), (1.375, 1.625), (1.875, 1.375))),
        Answer(1, ((1, 0),), ((1.125, 1.375), (X, X), (1.625, 1.125))),
        Answer(1, ((1, 1),), ((1.375, 1.625), (X, X), (1.875, 1.375))),
        Answer(1, ((2, 0),), ((1.625, 1.875), (1.625, 1.875), (X, X))),
        Answer(1, ((2, 1),), ((1.125, 1.375), (1.125, 1.375), (X, X))),
    )
    return Probe(world, 0.5, answers)


def delayed() -> Probe:
    """To pick item 0, the seed, earns 1 in the next step, whatever is picked then.

    The context shows whether it was picked (state 1). With γ = ½ the states are worth 1 and 2. A
    first pick loses nothing, since the seed can be the second one; without the seed it is ½ less.
    A γ between phases would lower them all.
    """

    def rule(state: int, picks: Picks) -> tuple[float, int]:
        return float(state), int((0, 0) in picks)

    seed_and_two = np.repeat(np.array([[[1.0], [0.0], [0.0]]]), 2, axis=0)
    world = tabulate(rule, seed_and_two, 2, context=np.array([[[0.0]], [[1.0]]]))
    answers = (
        Answer(0, (), ((1.0,), (1.0,), (1.0,))),
        Answer(0, ((0, 0),), ((X,), (1.0,), (1.0,))),
        Answer(0, ((1, 0),), ((1.0,), (X,), (0.5,))),
        Answer(0, ((2, 0),), ((1.0,), (0.5,), (X,))),
        Answer(1, (), ((2.0,), (2.0,), (2.0,))),
        Answer(1, ((0, 0),), ((X,), (2.0,), (2.0,))),
        Answer(1, ((1, 0),), ((2.0,), (X,), (1.5,))),
        Answer(1, ((2, 0),), ((2.0,), (1.5,), (X,))),
    )
    return Probe(world, 0.5, answers)


def pair() -> Probe:
    """Only two items of one kind earn 1 together; the kinds are 0, 0, 1, 2.

    The first pick must know what the second will do: items 0 and 1 are worth 1 + ½ · 2 = 2, the
    others 1. After a pick of kind 0 the other one of kind 0 is worth 2, after another all are
    worth 1: the second pick must know what the first was.
    """
    kinds = (0, 0, 1, 2)

    def rule(state: int, picks: Picks) -> tuple[float, int]:
        (one, _), (other, _) = picks
        return float(kinds[one] == kinds[other]), 0

    world = tabulate(rule, np.eye(3)[np.array([kinds])], 2)
    answers = (
        Answer(0, (), ((2.0,), (2.0,), (1.0,), (1.0,))),
        Answer(0, ((0, 0),), ((X,), (2.0,), (1.0,), (1.0,))),
        Answer(0, ((1, 0),), ((2.0,), (X,), (1.0,), (1.0,))),
        Answer(0, ((2, 0),), ((1.0,), (1.0,), (X,), (1.0,))),
        Answer(0, ((3, 0),), ((1.0,), (1.0,), (1.0,), (X,))),
    )
    return Probe(world, 0.5, answers)


def short() -> Probe:
    """In state 1 one item is present and one command legal: its one pick is also the last.

    Two states take turns. State 0 earns ½ if item 0 is picked with command 0; state 1 earns 2.
    With γ = ½ they are worth ½ + ½ · 3 = 2 and 2 + ½ · 2 = 3.
    """

    def rule(state: int, picks: Picks) -> tuple[float, int]:
        return (2.0 if state == 1 else 0.5 * ((0, 0) in picks)), 1 - state

    items = np.array([[[1.0], [0.5], [0.5]], [[1.0], [0.0], [0.0]]])
    present = np.array([[True, True, True], [True, False, False]])
    legal = np.ones((2, 3, 2), bool)
    legal[1, 0, 1] = False
    world = tabulate(rule, items, 2, num_commands=2, present=present, legal=legal)
    more, less, none = (2.0, 1.5), (1.5, 1.5), (X, X)
    answers = (
        Answer(0, (), (more, (2.0, 2.0), (2.0, 2.0))),
        Answer(0, ((0, 0),), (none, (2.0, 2.0), (2.0, 2.0))),
        Answer(0, ((0, 1),), (none, less, less)),
        Answer(0, ((1, 0),), (more, none, less)),
        Answer(0, ((1, 1),), (more, none, less)),
        Answer(0, ((2, 0),), (more, less, none)),
        Answer(0, ((2, 1),), (more, less, none)),
        Answer(1, (), ((3.0, X), none, none)),
    )
    return Probe(world, 0.5, answers)


PROBES: Mapping[str, Callable[[], Probe]] = {
    "constant": constant,
    "worth": worth,
    "delayed": delayed,
    "pair": pair,
    "short": short,
}
