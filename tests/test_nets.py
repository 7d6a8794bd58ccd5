"""Networks: the order of items does not matter, padding does not matter, and appendix A by hand."""

from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from selectmdp.nets.base import count, leaky
from selectmdp.nets.dense import Dense, by_features, largest_first
from selectmdp.nets.isq import ISQ
from selectmdp.nets.pairwise import Pairwise
from selectmdp.nets.per_item import PerItem
from selectmdp.spec import SelectError, Spec
from selectmdp.types import Action, Observation

jit = partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})  # runs few times
SPEC = Spec(5, 3, 2, 2, 3, 2)  # N, item features, U, context features, K, C
NETWORKS = {
    "isq": ISQ(6, 2),
    "isq of one layer": ISQ(6, 1),
    "eq": ISQ(6, 2, ("selected", "context")),
    "eq-local": ISQ(6, 2, ()),
    "of other means": ISQ(6, 2, ("context", "unselected")),
    "idqn": ISQ(6, 2, selected=False),
    "pairs": Pairwise(10),
    "pairs, normalised": Pairwise(10, normalises=True),
    "pairs, eq": Pairwise(10, sources=("selected", "context")),
    "pairs, eq-local": Pairwise(10, sources=()),
    "pairs, of other sets": Pairwise(10, sources=("context", "unselected")),
    "pairs, idqn": Pairwise(10, selected=False),
}
PAIRS = [name for name in NETWORKS if name.startswith("pairs")]
CLOSE = {"rtol": 1e-5, "atol": 1e-5}

seeds = st.integers(0, 2**31 - 1)
names = st.sampled_from(list(NETWORKS))
picked_counts = st.integers(0, 3)


@cache
def values_of(network: Any) -> Any:
    values = jit(network.values)
    return lambda *given: np.asarray(values(*given))


@cache
def value_of(network: Any) -> Any:
    return jit(network.value)


@cache
def params_of(network: Any, spec: Spec = SPEC) -> Any:
    """Parameters as `init` would give, but all random: biases too."""
    rng = np.random.default_rng(0)
    shapes = jax.eval_shape(lambda key: network.init(key, spec), jax.random.key(0))
    return jax.tree.map(lambda leaf: (0.4 * rng.normal(size=leaf.shape)).astype(leaf.dtype), shapes)


def scene(seed: int, num_picked: int, spec: Spec = SPEC, absent: bool = True) -> Any:
    """A random observation and picks of present items, the rest of the picks −1."""
    rng = np.random.default_rng(seed)
    num_items, num_context = spec.num_items, spec.num_context
    present = rng.permutation(num_items) < (num_items - 1 if absent else num_items)
    seen = Observation(
        items=rng.normal(size=(num_items, spec.item_features)).astype(np.float32),
        context=rng.normal(size=(num_context, spec.context_features)).astype(np.float32),
        present=present,
        context_present=(rng.random(num_context) < 0.7) | (not absent),
        legal=rng.random((num_items, spec.num_commands)) < 0.7,
    )
    items = rng.permutation(np.flatnonzero(present))[:num_picked]
    return seen, picks_of(items, rng.integers(0, spec.num_commands, num_picked), spec.num_select)


def picks_of(items: Any, commands: Any, num_select: int = 3) -> Action:
    missing = num_select - len(items)
    return Action(
        np.array([*items, *[-1] * missing], np.int32),
        np.array([*commands, *[0] * missing], np.int32),
    )


def open_rows(seen: Observation, picks: Action) -> Any:
    """The items whose values mean something: present and not picked."""
    rows = seen.present.copy()
    rows[picks.items[picks.items >= 0]] = False
    return rows


def permuted(seen: Observation, picks: Action, order: Any) -> tuple[Observation, Action]:
    """The same state, its item `order[i]` in place i."""
    moved = seen._replace(
        items=seen.items[order], present=seen.present[order], legal=seen.legal[order]
    )
    place = np.argsort(order)
    return moved, picks._replace(items=np.where(picks.items >= 0, place[picks.items], -1))


def by_hand(network: Any, params: Any, seen: Observation, picks: Action) -> Any:
    """The items that are left and their values, in loops and float64."""
    params = jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), params)
    rule = pairs_by_hand if isinstance(network, Pairwise) else appendix_a
    return rule(network, params, seen, picks)


def pairs_by_hand(network: Pairwise, params: Any, seen: Observation, picks: Action) -> Any:
    """Every item alone, beside each pick, beside each thing of the context, and the mean."""
    items, one_hot = seen.items.astype(np.float64), np.eye(seen.legal.shape[1])
    chosen = [int(item) for item in picks.items if item >= 0]
    hidden = chosen if network.selected else []
    left = [i for i in range(len(items)) if seen.present[i] and i not in hidden]

    def bent(x: Any) -> Any:
        return np.where(x > 0, x, 0.1 * x)

    def layer(affine: Any, x: Any) -> Any:
        return x @ affine["weight"] + affine["bias"]

    pairs = zip(chosen, picks.commands, strict=False)
    others = {
        "selected": [np.concatenate([items[i], one_hot[c]]) for i, c in pairs],
        "context": [
            row for row, there in zip(seen.context, seen.context_present, strict=True) if there
        ],
    }
    if "gather" in params:  # what the picks bring to each thing, before anybody meets it
        part = params["gather"]
        brought = [
            sum(
                (
                    bent(layer(part["pick"], pick) + thing @ part["thing"])
                    for pick in others["selected"]
                ),
                np.zeros(network.channels),
            )
            @ part["join"]
            for thing in others["context"]
        ]
    else:
        brought = [np.zeros(network.channels)] * len(others["context"])
    met = {
        name: [layer(params[name]["other"], other) for other in others[name]]
        for name in ("selected", "context")
        if name in params
    }
    if "context" in met:
        met["context"] = [thing + more for thing, more in zip(met["context"], brought, strict=True)]
    worth = sum((bent(x) @ params[name]["worth"])[0] for name in met for x in met[name])
    expected = []
    for i in left:
        x, common = layer(params["join"], bent(layer(params["encode"], items[i]))), worth
        for name, part in ((name, params[name]) for name in met):
            for other in met[name]:
                pair = bent(items[i] @ part["meets"] + other)
                x = x + bent(layer(part["deepen"], pair)) @ part["join"]
        if "mean" in params:
            mean = np.mean([bent(layer(params["encode"], items[j])) for j in left], axis=0)
            deep = bent(layer(params["mean"]["deepen"], mean))
            x = x + deep @ params["mean"]["join"]
            common = common + (np.concatenate([deep, mean]) @ params["mean"]["worth"])[0]
        if network.normalises:
            x = (x - x.mean()) / np.sqrt(x.var() + 1e-5)
        expected.append(layer(params["out"], bent(layer(params["mix"], bent(x)))) + common)
    return left, np.array(expected)


def appendix_a(network: ISQ, params: Any, seen: Observation, picks: Action) -> Any:
    """Appendix A in loops and float64: own weight, one weight for each set's mean, a bias."""
    items, commands = seen.items.astype(np.float64), picks.commands
    chosen = [int(item) for item in picks.items if item >= 0]
    hidden = chosen if network.selected else []
    left = [i for i in range(len(items)) if seen.present[i] and i not in hidden]
    one_hot = np.eye(seen.legal.shape[1])
    sets = {"unselected": [items[i] for i in left]}
    if network.selected:
        pairs = zip(chosen, commands, strict=False)
        sets["selected"] = [np.concatenate([items[i], one_hot[c]]) for i, c in pairs]
    if "context" in params["phi"][0]:
        rows = zip(seen.context.astype(np.float64), seen.context_present, strict=True)
        sets["context"] = [row for row, there in rows if there]

    def layer(weights: Any, rows: Any, slope: float) -> Any:
        made = {}
        for name, affine in weights.items():
            own, means, bias = (affine[part] for part in ("own", "means", "bias"))
            made[name] = []
            for row in rows[name]:
                out, start = row @ own + bias, 0
                for source in [source for source in network.sources if source in rows]:
                    width = widths[source]
                    if rows[source]:  # the mean over an empty set is 0
                        out = out + np.mean(rows[source], axis=0) @ means[start : start + width]
                    start += width
                assert start == len(means)
                made[name].append(np.where(out > 0, out, slope * out))
        return made

    widths = {name: np.shape(affine["own"])[0] for name, affine in params["phi"][0].items()}
    for weights in params["phi"]:
        sets = layer(weights, sets, 0.1)
        widths = dict.fromkeys(widths, network.channels)
    out = layer({"unselected": params["psi"]}, sets, 1.0)["unselected"]
    return left, np.array(out).reshape(len(left), -1)


@given(name=names, seed=seeds, num_picked=picked_counts)
def test_values_are_those_made_by_hand_in_loops(name: str, seed: int, num_picked: int) -> None:
    network = NETWORKS[name]
    seen, picks = scene(seed, num_picked)
    params = params_of(network)
    rows, expected = by_hand(network, params, seen, picks)
    values = values_of(network)(params, seen, picks)
    assert values.shape == (5, 2)
    np.testing.assert_allclose(values[rows], expected, **CLOSE)


@pytest.mark.parametrize("name", ["isq", "pairs"])
def test_a_network_for_a_world_without_context_has_two_sets(name: str) -> None:
    network, spec = NETWORKS[name], Spec(5, 3, 0, 1, 3, 2)
    params = params_of(network, spec)
    for seed, num_picked in ((0, 0), (1, 1), (2, 3)):
        seen, picks = scene(seed, num_picked, spec)
        rows, expected = by_hand(network, params, seen, picks)
        values = values_of(network)(params, seen, picks)
        np.testing.assert_allclose(values[rows], expected, **CLOSE)


@given(name=names, seed=seeds, num_picked=picked_counts, order=st.permutations(range(5)))
def test_permuting_the_items_permutes_the_values(
    name: str, seed: int, num_picked: int, order: list[int]
) -> None:
    network = NETWORKS[name]
    seen, picks = scene(seed, num_picked)
    values, params = values_of(network), params_of(network)
    rows = open_rows(seen, picks)[order]
    expected = values(params, seen, picks)[order]
    got = values(params, *permuted(seen, picks, order))
    np.testing.assert_allclose(got[rows], expected[rows], **CLOSE)


@given(name=names, seed=seeds, order=st.permutations(range(3)), swap=st.booleans())
def test_the_order_of_picks_and_of_context_changes_nothing(
    name: str, seed: int, order: list[int], swap: bool
) -> None:
    network = NETWORKS[name]
    seen, picks = scene(seed, 3)
    context_order = np.array([1, 0] if swap else [0, 1])
    moved = seen._replace(
        context=seen.context[context_order], context_present=seen.context_present[context_order]
    )
    reordered = jax.tree.map(lambda leaf: leaf[np.array(order)], picks)
    values, params, rows = values_of(network), params_of(network), open_rows(seen, picks)
    np.testing.assert_allclose(
        values(params, moved, reordered)[rows], values(params, seen, picks)[rows], **CLOSE
    )


@given(
    name=names,
    seed=seeds,
    num_picked=picked_counts,
    noise=st.sampled_from([0.0, -1.0, 1e3, -3e4]),
)
def test_what_is_absent_changes_nothing_whatever_its_features(
    name: str, seed: int, num_picked: int, noise: float
) -> None:
    network = NETWORKS[name]
    seen, picks = scene(seed, num_picked)
    other = seen._replace(
        items=np.where(seen.present[:, None], seen.items, np.float32(noise)),
        context=np.where(seen.context_present[:, None], seen.context, np.float32(noise)),
    )
    values, params, rows = values_of(network), params_of(network), open_rows(seen, picks)
    np.testing.assert_allclose(
        values(params, other, picks)[rows], values(params, seen, picks)[rows], **CLOSE
    )


@given(name=names, seed=seeds, num_picked=picked_counts)
def test_absent_items_can_as_well_be_left_out(name: str, seed: int, num_picked: int) -> None:
    """And so N and U at run time are not those of the parameters."""
    network = NETWORKS[name]
    seen, picks = scene(seed, num_picked)
    seen = seen._replace(context_present=np.array([False, True]))
    there, place = seen.present, np.cumsum(seen.present) - 1
    small = Observation(
        items=seen.items[there],
        context=seen.context[1:],
        present=seen.present[there],
        context_present=seen.context_present[1:],
        legal=seen.legal[there],
    )
    fewer = picks._replace(items=np.where(picks.items >= 0, place[picks.items], -1))
    values, params, rows = values_of(network), params_of(network), open_rows(seen, picks)
    got = values(params, small, fewer)
    assert got.shape == (4, 2)
    np.testing.assert_allclose(got[place[rows]], values(params, seen, picks)[rows], **CLOSE)


@pytest.mark.parametrize("name", ["isq", "pairs"])
def test_parameters_of_five_items_serve_two_hundred_and_ten_picks(name: str) -> None:
    network = NETWORKS[name]
    seen, picks = scene(3, 9, Spec(200, 3, 7, 2, 10, 2))
    params = params_of(network)
    rows, expected = by_hand(network, params, seen, picks)
    values = values_of(network)(params, seen, picks)
    assert values.shape == (200, 2)
    np.testing.assert_allclose(values[rows], expected, **CLOSE)


@given(name=names, seed=seeds, num_picked=st.integers(0, 2))
def test_the_value_of_a_pair_is_that_among_all_values(
    name: str, seed: int, num_picked: int
) -> None:
    network = NETWORKS[name]
    seen, picks = scene(seed, num_picked)
    params = params_of(network)
    values = values_of(network)(params, seen, picks)
    for item in np.flatnonzero(open_rows(seen, picks)):
        for command in range(2):
            one = value_of(network)(params, seen, picks, item, command)
            np.testing.assert_allclose(one, values[item, command], **CLOSE)


@given(name=st.sampled_from(PAIRS), seed=seeds, num_picked=picked_counts)
def test_values_after_picks_one_by_one_are_those_after_all_of_them(
    name: str, seed: int, num_picked: int
) -> None:
    network, params = NETWORKS[name], params_of(NETWORKS[name])
    seen, picks = scene(seed, num_picked)
    rows = open_rows(seen, picks)
    expected = values_of(network)(params, seen, picks)
    np.testing.assert_allclose(
        step_by_step(network)(params, seen, picks)[rows], expected[rows], **CLOSE
    )


@cache
def step_by_step(network: Pairwise) -> Any:
    def values(params: Any, seen: Observation, picks: Action) -> Any:
        begun = network.begin(params, seen)
        for place in range(3):
            pick = picks.items[place], picks.commands[place]
            begun = network.extend(params, begun, seen, *pick)
        return network.read(params, begun, seen)

    return jit(values)


def moved_by(network: Any, change: Any, num_picked: int = 1) -> float:
    """By how much a change of the observation changes the values of item 0, which is left."""
    seen, _ = scene(11, 0, absent=False)
    picks = picks_of([4, 3, 1][:num_picked], [1, 0, 1][:num_picked])
    values, params = values_of(network), params_of(network)
    return np.abs(values(params, change(seen), picks) - values(params, seen, picks))[0].max()


def added(rows: Any, place: int) -> Any:
    rows = rows.copy()
    rows[place] += 5.0
    return rows


def other_unselected(seen: Observation) -> Observation:
    return seen._replace(items=added(seen.items, 2))


def a_selected(seen: Observation) -> Observation:
    return seen._replace(items=added(seen.items, 4))


def a_context(seen: Observation) -> Observation:
    return seen._replace(context=added(seen.context, 1))


def itself(seen: Observation) -> Observation:
    return seen._replace(items=added(seen.items, 0))


@pytest.mark.parametrize(
    ("name", "seen"),
    [
        ("isq", (True, True, True)),
        ("eq", (False, True, True)),
        ("eq-local", (False, False, False)),
        ("of other means", (True, False, True)),
        ("idqn", (True, True, True)),  # there a picked item is one of all items
        ("pairs", (True, True, True)),
        ("pairs, eq", (False, True, True)),
        ("pairs, eq-local", (False, False, False)),
        ("pairs, of other sets", (True, False, True)),
        ("pairs, idqn", (True, True, True)),
    ],
)
def test_an_item_sees_other_unselected_and_selected_items_and_context_or_not(
    name: str, seen: tuple[bool, bool, bool]
) -> None:
    network = NETWORKS[name]
    for change, sees in zip((other_unselected, a_selected, a_context), seen, strict=True):
        moved = moved_by(network, change)
        assert moved > 0.01 if sees else moved == 0.0
    assert moved_by(network, itself) > 0.01


def test_idqn_does_not_know_the_picks_and_isq_does() -> None:
    seen, _ = scene(5, 0, absent=False)
    none, one, other = picks_of([], []), picks_of([3], [0]), picks_of([3, 1], [1, 0])
    known = {"idqn": True, "isq": False, "eq": False, "eq-local": True}
    known |= {"pairs": False, "pairs, eq": False, "pairs, eq-local": True, "pairs, idqn": True}
    for name, same in known.items():
        values = [
            values_of(NETWORKS[name])(params_of(NETWORKS[name]), seen, picks)[0]
            for picks in (none, one, other)
        ]
        assert bool((values[0] == values[1]).all()) == same
        assert bool((values[1] == values[2]).all()) == same


@pytest.mark.parametrize("name", ["isq", "pairs"])
def test_the_command_of_a_pick_is_known(name: str) -> None:
    network, (seen, _) = NETWORKS[name], scene(5, 0)
    values, params = values_of(network), params_of(network)
    apart = values(params, seen, picks_of([3], [0])) - values(params, seen, picks_of([3], [1]))
    assert np.abs(apart[0]).min() > 1e-3


@pytest.mark.parametrize("name", ["isq", "pairs"])
def test_gradients_are_finite_where_a_set_is_empty(name: str) -> None:
    network = NETWORKS[name]
    seen, picks = scene(0, 0)
    seen = seen._replace(context_present=np.zeros(2, bool))
    gradient = jit(jax.grad(lambda *given: network.values(*given).sum()))
    for present in (seen.present, np.zeros(5, bool)):
        slope = gradient(params_of(network), seen._replace(present=present), picks)
        assert all(bool(jnp.isfinite(leaf).all()) for leaf in jax.tree.leaves(slope))


def test_leaky_relu_has_slope_a_tenth_below_0() -> None:
    np.testing.assert_allclose(leaky(jnp.asarray([-2.0, 0.0, 3.0])), [-0.2, 0.0, 3.0], atol=1e-7)


def test_isq_counts_own_mean_and_bias_weights() -> None:
    # Layer 1, inputs 3 + 5 + 2 = 10: unselected 3·6, selected 5·6, context 2·6, 10·6 for each
    # set's means and 6 biases; layer 2: 6·6 and 18·6 and 6 for each; out: 6·2 + 18·2 + 2.
    shapes = jax.eval_shape(lambda key: NETWORKS["isq"].init(key, SPEC), jax.random.key(0))
    assert count(shapes) == (18 + 30 + 12 + 3 * 66) + 3 * (36 + 108 + 6) + (12 + 36 + 2)
    local = jax.eval_shape(lambda key: NETWORKS["eq-local"].init(key, SPEC), jax.random.key(0))
    assert count(local) == (18 + 30 + 12 + 3 * 6) + 3 * (36 + 6) + (12 + 2)


def test_fresh_weights_have_variance_one_over_what_flows_in_and_biases_are_0() -> None:
    network, spec = Dense((400,)), Spec(50, 2, 0, 1, 2, 3)
    first, last = network.init(jax.random.key(2), spec)
    assert first["weight"].shape == (110, 400)
    assert float(first["weight"].var() * 110) == pytest.approx(1.0, abs=0.05)
    assert float(last["weight"].var() * 400) == pytest.approx(1.0, abs=0.05)
    assert float(jnp.abs(first["weight"]).max()) <= (3 / 110) ** 0.5
    assert not first["bias"].any()


def test_each_item_asks_its_own_parameters_and_takes_its_own_row() -> None:
    own = PerItem(NETWORKS["idqn"])
    params = params_of(own)
    seen, picks = scene(7, 1)
    values = values_of(own)(params, seen, picks)
    assert values.shape == (5, 2)
    for item in range(5):
        alone = jax.tree.map(lambda leaf, item=item: leaf[item], params)
        row = values_of(NETWORKS["idqn"])(alone, seen, picks)[item]
        np.testing.assert_allclose(values[item], row, **CLOSE)
        one = value_of(own)(params, seen, picks, item, 1)
        np.testing.assert_allclose(one, row[1], **CLOSE)


@given(seed=seeds, order=st.permutations(range(5)))
def test_networks_of_their_own_move_with_their_items(seed: int, order: list[int]) -> None:
    own = PerItem(NETWORKS["idqn"])
    values, params = values_of(own), params_of(own)
    seen, picks = scene(seed, 2)
    there = seen.present[order]
    expected = values(params, seen, picks)[order]
    moved, moved_picks = permuted(seen, picks, order)
    moved_params = jax.tree.map(lambda leaf: leaf[np.array(order)], params)
    got = values(moved_params, moved, moved_picks)
    np.testing.assert_allclose(got[there], expected[there], **CLOSE)
    if order != [0, 1, 2, 3, 4]:  # and not without their networks
        stayed = values(params, moved, moved_picks)
        assert np.abs(stayed - expected)[there].max() > 1e-3


DENSE = Dense((12, 7))
SORTING = Dense((12, 7), largest_first(lambda seen: seen.items[:, 2]))
BY_FEATURES = Dense((12, 7), by_features)


def test_a_dense_network_is_layers_on_all_numbers_of_the_state() -> None:
    seen, picks = scene(2, 2)
    params = params_of(DENSE)
    flat = seen.items.astype(np.float64)
    flat[~open_rows(seen, picks)] = 0.0
    rows = np.zeros((3, 5))
    for place, (item, command) in enumerate(zip(picks.items, picks.commands, strict=True)):
        if item >= 0:
            rows[place] = [*seen.items[item], *np.eye(2)[command]]
    context = np.where(seen.context_present[:, None], seen.context, 0.0)
    x = np.concatenate([flat.ravel(), rows.ravel(), context.ravel()])
    for layer in params[:-1]:
        x = x @ np.asarray(layer["weight"], np.float64) + np.asarray(layer["bias"])
        x = np.where(x > 0, x, 0.1 * x)
    x = x @ np.asarray(params[-1]["weight"], np.float64) + np.asarray(params[-1]["bias"])
    np.testing.assert_allclose(values_of(DENSE)(params, seen, picks), x.reshape(5, 2), **CLOSE)


def test_a_dense_network_minds_the_order_of_items() -> None:
    seen, picks = scene(0, 1, absent=False)
    order = [1, 0, 2, 3, 4]
    values, params = values_of(DENSE), params_of(DENSE)
    straight = values(params, seen, picks)[order]
    assert np.abs(values(params, *permuted(seen, picks, order)) - straight).max() > 0.1


@given(seed=seeds, num_picked=picked_counts, order=st.permutations(range(5)), own=st.booleans())
def test_a_sorting_network_does_not_mind_the_order_of_items(
    seed: int, num_picked: int, order: list[int], own: bool
) -> None:
    network = SORTING if own else BY_FEATURES
    seen, picks = scene(seed, num_picked)  # normal features: no ties
    values, params = values_of(network), params_of(network)
    rows = open_rows(seen, picks)[order]
    expected = values(params, seen, picks)[order]
    got = values(params, *permuted(seen, picks, order))
    np.testing.assert_allclose(got[rows], expected[rows], **CLOSE)


@given(seed=seeds, noise=st.sampled_from([0.0, 1e3, -3e4]), which=st.integers(0, 2))
def test_dense_networks_do_not_see_what_is_absent(seed: int, noise: float, which: int) -> None:
    network = (DENSE, SORTING, BY_FEATURES)[which]
    seen, picks = scene(seed, 2)
    other = seen._replace(
        items=np.where(seen.present[:, None], seen.items, np.float32(noise)),
        context=np.where(seen.context_present[:, None], seen.context, np.float32(noise)),
    )
    values, params, rows = values_of(network), params_of(network), open_rows(seen, picks)
    np.testing.assert_allclose(
        values(params, other, picks)[rows], values(params, seen, picks)[rows], **CLOSE
    )


def looks(items: Any, present: Any) -> Observation:
    items = jnp.asarray(items, jnp.float32)
    return Observation(
        items, jnp.zeros((0, 1)), jnp.asarray(present), jnp.ones(0, bool), jnp.ones((4, 1), bool)
    )


def test_items_are_sorted_by_their_features_in_order_largest_first_absent_last() -> None:
    seen = looks([[1.0, 5.0], [2.0, 0.0], [1.0, 7.0], [9.0, 9.0]], [True, True, True, False])
    assert by_features(seen).tolist() == [1, 2, 0, 3]
    assert largest_first(lambda seen: seen.items[:, 1])(seen).tolist() == [2, 0, 1, 3]


@pytest.mark.parametrize("name", ["isq", "pairs"])
def test_other_numbers_of_items_context_and_picks_are_served_but_no_other_features(
    name: str,
) -> None:
    network = NETWORKS[name]
    network.check(SPEC, Spec(200, 3, 9, 2, 40, 2))
    network.check(SPEC, Spec(3, 3, 0, 2, 1, 2))
    for shown, name in (
        (Spec(5, 4, 2, 2, 3, 2), "item_features=4"),
        (Spec(5, 3, 2, 7, 3, 2), "context_features=7"),
        (Spec(5, 3, 2, 2, 3, 6), "num_commands=6"),
    ):
        with pytest.raises(SelectError, match=name):
            network.check(SPEC, shown)
    with pytest.raises(SelectError, match="num_context=2: the policy was trained without context"):
        network.check(Spec(5, 3, 0, 2, 3, 2), SPEC)


def test_dense_and_per_item_networks_refuse_another_number_of_items() -> None:
    more = Spec(6, 3, 2, 2, 3, 2)
    DENSE.check(SPEC, SPEC)
    with pytest.raises(SelectError, match="serves only the sizes it was trained for"):
        DENSE.check(SPEC, more)
    own = PerItem(NETWORKS["idqn"])
    own.check(SPEC, Spec(5, 3, 0, 2, 1, 2))
    with pytest.raises(SelectError, match="num_items=6"):
        own.check(SPEC, more)
    with pytest.raises(SelectError, match="item_features=4"):
        own.check(SPEC, Spec(5, 4, 2, 2, 3, 2))
