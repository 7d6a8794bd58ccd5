"""Every algorithm of the paper's experiments (§5.2) as a row of one table: what differs, as data.

Where the paper's text and its published code differ, the published reading has the plain name and
the literal one a row of its own (`eq-local`, `idqn-own`).
"""

from dataclasses import dataclass
from typing import Any

from selectmdp import td
from selectmdp.envs.base import offers
from selectmdp.nets.base import Network
from selectmdp.nets.dense import Dense, by_features, largest_first
from selectmdp.nets.isq import ISQ, SOURCES, Source
from selectmdp.nets.pairwise import Pairwise
from selectmdp.nets.per_item import PerItem
from selectmdp.sharing import Sharing
from selectmdp.spec import SelectError


@dataclass(frozen=True)
class Algorithm:
    """What distinguishes one way to learn from the others."""

    about: str
    sharing: Sharing = "independent"
    rule: td.Rule = td.Rule(td.best)  # noqa: RUF009 - a tuple of functions does not change
    dense: bool = False
    """A dense network instead of an equi-invariant one."""
    sorts: bool = False
    """Items are sorted before the network sees them."""
    sources: tuple[Source, ...] = SOURCES
    """The sets whose means an equi-invariant network sees."""
    selected: bool = True
    """Whether the network knows the picks made so far."""
    per_item: bool = False
    """Each item has parameters of its own."""
    random_item: bool = False
    """The item is always drawn at random; only its command is learned."""
    commands: tuple[str, ...] | None = None
    """The only commands that are ever given."""


CHAIN_NOTHING = td.Rule(td.best_of_the_same_item, chains=False)

ALGORITHMS: dict[str, Algorithm] = {
    "isq-i": Algorithm("ISQ with I-sharing: parameters of its own for each phase"),
    "isq-u": Algorithm("ISQ with I- and U-sharing: one parameter set for all phases", "unified"),
    "isq-p": Algorithm("ISQ with progressive sharing: from one set to K", "progressive"),
    "isq-i-1": Algorithm("ISQ-I that only ever gives the command stay", commands=("stay",)),
    "vanilla": Algorithm("DQN with a dense network on the flattened state", dense=True),
    "sorting": Algorithm("vanilla on sorted items", dense=True, sorts=True),
    "myopic": Algorithm(
        "MQ: ISQ-I that learns the step's reward alone", rule=td.Rule(td.best, looks_ahead=False)
    ),
    "eq": Algorithm("EQ: no mean over the other unselected items", sources=("selected", "context")),
    "eq-local": Algorithm("EQ as the text says: an item sees only itself", sources=()),
    "rsq": Algorithm(
        "RSQ: items at random, commands learned",
        rule=td.Rule(td.best_of_a_random_item),
        random_item=True,
    ),
    "idqn": Algorithm(
        "IDQN: one table of values a step, K picks from it, each for itself",
        sharing="unified",
        rule=CHAIN_NOTHING,
        selected=False,
    ),
    "idqn-own": Algorithm(
        "IDQN as the text says: each item has a Q-function of its own",
        sharing="unified",
        rule=CHAIN_NOTHING,
        selected=False,
        per_item=True,
    ),
}


def algorithm(name: str) -> Algorithm:
    """The row of this name."""
    if name not in ALGORITHMS:
        raise SelectError(f"algorithm {name!r} is none of {', '.join(ALGORITHMS)}")
    return ALGORITHMS[name]


@dataclass(frozen=True)
class Shape:
    """How large a network is, and of which kind where the algorithm leaves it open."""

    channels: int = 48
    layers: int = 2
    """φ layers of the paper's network."""
    hidden: tuple[int, ...] = ()
    """Hidden widths of a dense network; none: two of 6 × its input."""
    pairs: bool = False
    """Items meet picks and context in pairs, instead of the paper's network."""
    layer_norm: bool = False
    """Of the network of pairs."""
    sums: bool = False
    """Sums over sets where the paper has means."""


def network(name: str, env: Any, shape: Shape) -> Network:
    """The network of an algorithm on a world; a world that it cannot serve is refused."""
    row = algorithm(name)
    if row.commands is not None:
        command_names(row, env)
    if row.dense:
        sort_key = offers(env, "sort_key")
        order = by_features if sort_key is None else largest_first(sort_key)
        return Dense(shape.hidden, order if row.sorts else None)
    made: Network = ISQ(shape.channels, shape.layers, row.sources, row.selected, shape.sums)
    if shape.pairs:
        made = Pairwise(shape.channels, shape.layer_norm, row.sources, row.selected, shape.sums)
    return PerItem(made) if row.per_item else made


def command_names(row: Algorithm, env: Any) -> tuple[str, ...]:
    """A world's commands, for an algorithm that gives some of them only; all those are there."""
    names = tuple(offers(env, "command_names") or ())
    for command in row.commands or ():
        if command not in names:
            known = f"has {', '.join(names)}" if names else "does not name its commands"
            name = next(name for name, each in ALGORITHMS.items() if each is row)
            raise SelectError(
                f"algorithm {name!r} only gives the command {command!r}, and this world "
                f"{known}; take another algorithm"
            )
    return names
