"""What the checks of the theory rest on, against numbers by hand; each check can fail."""

import itertools
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jax.flatten_util import ravel_pytree

from selectmdp.nets.base import leaky
from selectmdp.nets.isq import ISQ
from selectmdp.spec import SelectError, Spec
from selectmdp.theory import (
    PROBES,
    Plan,
    construction,
    counts,
    decomposition,
    equi_invariance,
    equivalence,
    landscape,
    networks,
    plan,
    random_world,
    solve,
    solve_iterated,
    symmetric_world,
    targets,
    unified,
    universality,
)
from selectmdp.theory.local_optimality import lemma_1_error, tangent_error
from selectmdp.theory.networks import Sizes
from selectmdp.types import Action, Observation

TINY = Plan(worlds=1, shapes=((3, 2, 2, 2), (4, 3, 1, 2)))
PHASE = Sizes(selected=2, unselected=3, features=1, commands=2, channels=2)


def nobody(done: int, total: int) -> None:
    assert 0 < done <= total


# The IS-MDP solved for itself


@pytest.mark.parametrize("name", PROBES)
def test_the_iterated_solution_has_the_q_values_of_a_probe(name):
    probe = PROBES[name]()
    found = solve_iterated(probe.world, probe.gamma)
    for state, picks, values in probe.answers:
        np.testing.assert_allclose(found.phase_q(state, picks), values, rtol=0, atol=1e-10)


@pytest.mark.parametrize("seed", range(3))
def test_it_agrees_with_joint_actions_where_some_pairs_are_not_legal(seed):
    world = random_world(seed, num_states=4, num_items=3, legal_share=0.4)
    one, other = solve(world, 0.9), solve_iterated(world, 0.9)
    np.testing.assert_allclose(one.values, other.values, rtol=0, atol=1e-9)
    for index in np.flatnonzero(world.allowed[0]):
        for order in itertools.permutations(world.joint[index]):
            for count in range(len(order)):
                np.testing.assert_allclose(
                    one.phase_q(0, order[:count]), other.phase_q(0, order[:count]), atol=1e-9
                )


def test_a_discount_of_a_half_between_phases_halves_the_value_of_the_first_pick():
    # Every step earns 1, K = 2: V = ½ (1 + ½ V) = ⅔ with γ = ½.
    world = replace(PROBES["constant"]().world)
    found = solve_iterated(world, 0.5, between=0.5)
    np.testing.assert_allclose(found.values, [2 / 3], atol=1e-10)
    np.testing.assert_allclose(found.phase_q(0, ((0, 0),))[1:], 4 / 3, atol=1e-10)


def test_questions_to_it_that_have_no_answer_are_refused():
    world = symmetric_world(0)
    with pytest.raises(SelectError, match=r"between=1\.5"):
        solve_iterated(world, 0.9, between=1.5)
    with pytest.raises(SelectError, match="lie behind no phase"):
        solve_iterated(world, 0.9).phase_q(0, ((0, 0), (1, 0)))


def test_a_symmetric_world_earns_and_moves_alike_for_all_items():
    world = symmetric_world(3, num_items=3, num_select=2, num_commands=1, levels=2)
    asymmetric = symmetric_world(3, 3, 2, 1, 2, symmetric=False)
    # States 1 and 4 are the levels 001 and 100; the picks {1, 2} and {0, 1} hold the high item.
    assert world.joint == (((0, 0), (1, 0)), ((0, 0), (2, 0)), ((1, 0), (2, 0)))
    assert world.rewards[1, 2] == pytest.approx(world.rewards[4, 0], abs=1e-12)
    assert world.transitions[1, 2, 4] == pytest.approx(world.transitions[4, 0, 1], abs=1e-12)
    assert abs(asymmetric.rewards[1, 2] - asymmetric.rewards[4, 0]) > 0.01


# Equivalence, proposition 1, lemma 2, U-sharing


def test_both_forms_have_one_optimum_and_the_footnotes_have_not():
    verdict = equivalence.check(TINY, nobody)
    assert verdict.holds
    assert verdict.instances == 2
    assert verdict.details["states_with_ties"] > 0
    assert verdict.details["footnote"]["smallest_error"] > 0.1
    assert verdict.details["footnote"]["states_with_other_picks"] > 0
    broken = equivalence.check(replace(TINY, broken="discount"), nobody)
    assert not broken.holds
    assert broken.max_error > 0.1


def test_best_sets_that_differ_by_a_tie_are_all_found():
    # Items 0 and 1 are alike, and one pick of four is the best in state 0 of this probe.
    world = PROBES["pair"]().world
    found = solve(world, 0.5), solve_iterated(world, 0.5)
    assert equivalence.greedy_sets(found[1], 0) == {((0, 0), (1, 0))}
    level = solve_iterated(PROBES["constant"]().world, 0.9)
    assert len(equivalence.greedy_sets(level, 0)) == 12


def test_proposition_1_holds_on_worlds_and_networks_and_fails_without_their_symmetry():
    assert equi_invariance.check(TINY, nobody).holds
    asymmetric = equi_invariance.check(replace(TINY, broken="asymmetric"), nobody)
    assert (asymmetric.holds, asymmetric.details["worlds_max_error"] > 0.1) == (False, True)
    assert asymmetric.details["networks_max_error"] < 1e-12
    untied = equi_invariance.check(replace(TINY, broken="untie"), nobody)
    assert (untied.holds, untied.details["networks_max_error"] > 0.01) == (False, True)
    assert untied.details["worlds_max_error"] < 1e-12


def test_values_that_know_the_order_of_the_picks_are_seen_though_they_move_with_the_items():
    found = solve_iterated(symmetric_world(0, num_select=3, num_commands=1), 0.9)
    assert equi_invariance.deviation(found) < 1e-12
    looks = found.world.items.argmax(axis=2)
    ordered = [looks[:, first] > looks[:, then] for (first, _), (then, _) in found.prefixes[2]]
    last = found.q[2] + 0.5 * np.stack(ordered, axis=1)[:, :, None, None]
    wrong = replace(found, q=(*found.q[:2], last))
    assert equi_invariance.deviation(wrong) == pytest.approx(0.5)
    assert decomposition.counts_deviation(wrong) == pytest.approx(0.5)


@pytest.mark.slow
def test_lemma_2_holds_and_fails_on_worlds_that_are_not_symmetric():
    verdict = decomposition.check(TINY, nobody)
    assert verdict.holds
    assert verdict.details["powers_max_error"] < 1e-7
    assert not decomposition.check(replace(TINY, broken="asymmetric"), nobody).holds


def test_numbers_come_back_from_their_sums_of_powers():
    # 1, 2, 4 have the sums 7, 21, 73.
    np.testing.assert_array_equal(decomposition.powers(np.array([4.0, 1.0, 2.0]), 3), [7, 21, 73])
    np.testing.assert_allclose(decomposition.from_powers(np.array([7.0, 21.0, 73.0])), [1, 2, 4])


@given(st.lists(st.integers(-20, 20), min_size=1, max_size=4, unique=True))
def test_any_few_distinct_numbers_come_back(numbers):
    scaled = np.array(numbers) / 10
    back = decomposition.from_powers(decomposition.powers(scaled, len(scaled)))
    np.testing.assert_allclose(back, np.sort(scaled), atol=1e-6)


def test_an_item_of_the_best_set_keeps_its_value_and_loses_it_with_the_footnotes_discount():
    verdict = unified.check(TINY, nobody)
    assert verdict.holds
    assert verdict.details["after_other_picks"] > 0.1
    assert not unified.check(replace(TINY, broken="discount"), nobody).holds


def test_growth_is_read_off_as_powers():
    rows = [
        {"algorithm": "a", "N": n, "K": k, "parameters": 7 * n**2 * k}
        for n in (10, 20)
        for k in (1, 3)
    ]
    assert counts.exponents(rows, "a") == pytest.approx((2.0, 1.0))
    assert counts.misfit((2.0, 1.0), (0.0, 1.5)) == 2.0
    verdict = counts.check(TINY, nobody)
    assert verdict.holds
    assert verdict.details["controls"] == {"the growth of another network": pytest.approx(1.0)}


# Networks


def test_the_shared_network_is_the_librarys():
    spec = Spec(5, 2, 0, 1, 3, 2)
    params = ISQ(channels=4, layers=2).init(jax.random.key(0), spec)
    rng = np.random.default_rng(0)
    items = jnp.asarray(rng.normal(size=(5, 2)), jnp.float32)
    picks = Action(jnp.array([3, 1, -1]), jnp.array([1, 0, 0]))
    all_there = jnp.ones(5, bool)
    observation = Observation(
        items, jnp.zeros((0, 1)), all_there, jnp.ones(0, bool), jnp.ones((5, 2), bool)
    )
    whole = ISQ(channels=4, layers=2).values(params, observation, picks)
    x = jnp.concatenate([items[jnp.array([3, 1])], jnp.eye(2)[jnp.array([1, 0])]], axis=1)
    left = jnp.array([0, 2, 4])
    ours = networks.shared(params, x, items[left], leaky)
    np.testing.assert_allclose(ours, whole[left], atol=1e-5)


@pytest.mark.parametrize("selected", [0, 1, 2])
def test_the_dense_network_at_omega_of_theta_is_the_shared_one(selected):
    sizes = replace(PHASE, selected=selected)
    rng = np.random.default_rng(1)
    with jax.enable_x64(True):
        theta = networks.init(rng, sizes)
        omega = networks.projected(theta, sizes)
        x, i = targets.states(jax.random.key(0), sizes, 1)
        shared = networks.shared(theta, x[0], i[0], jnp.tanh)
        np.testing.assert_allclose(networks.dense(omega, x[0], i[0], jnp.tanh), shared, atol=1e-12)
        untied = equi_invariance.untie(omega)
        assert float(jnp.abs(networks.dense(untied, x[0], i[0], jnp.tanh) - shared).max()) > 1e-4
        assert jnp.zeros(1).dtype == jnp.float64
    assert jnp.zeros(1).dtype == jnp.float32


def test_exchanged_units_exchange_the_outputs_of_any_dense_network():
    rng = np.random.default_rng(2)
    with jax.enable_x64(True):
        flat, tree = ravel_pytree(networks.projected(networks.init(rng, PHASE), PHASE))
        omega = tree(jnp.asarray(rng.normal(size=len(flat))))
        x, i = targets.states(jax.random.key(0), PHASE, 1)
        plain = networks.dense(omega, x[0], i[0], jnp.tanh)
        for order in [((1, 0), (0, 2, 1)), ((0, 1), (2, 0, 1)), ((1, 0), (1, 2, 0))]:
            picks, items = (np.array(part) for part in order)
            turned = networks.dense(
                networks.turned(omega, order, PHASE), x[0][picks], i[0][items], jnp.tanh
            )
            np.testing.assert_allclose(turned, plain[items], atol=1e-12)
            assert float(jnp.abs(turned - plain).max()) > 1e-3


def test_lemma_1_and_the_tangent_space_hold_at_shared_points_and_at_no_others():
    sizes = replace(PHASE, channels=1, hidden=1)
    with jax.enable_x64(True):
        ground = landscape.landscape(
            landscape.Setting(sizes, "sums", 5), targets.EQUI_INVARIANT["sums"], 0
        )
        theta = np.random.default_rng(0).normal(size=ground.projection.shape[1])
        omega = ground.projection @ theta
        untied = np.asarray(ground.untied(omega))
        assert lemma_1_error(ground, omega) < 1e-12
        assert tangent_error(ground, omega) < 1e-12
        assert float(ground.apart(theta, omega)) < 1e-12
        assert lemma_1_error(ground, untied) > 1e-4
        assert tangent_error(ground, untied) > 1e-3
        assert float(ground.apart(theta, untied)) > 1e-4


# Theorem 2


@pytest.mark.slow
def test_the_proofs_weights_keep_their_bound_and_get_four_times_better_with_twice_the_knots():
    target = targets.sums(np.random.default_rng(5), PHASE)
    errors = {}
    with jax.enable_x64(True):
        x, i = targets.states(jax.random.key(1), PHASE, 500)
        wanted = jax.vmap(target)(x, i)
        for knots in (8, 16, 32):
            theta = construction.construct(target, PHASE, knots)
            values = jax.vmap(lambda x, i, t=theta: networks.shared(t, x, i, leaky))(x, i)
            errors[knots] = float(jnp.abs(values - wanted).max())
            assert errors[knots] <= construction.bound(target, PHASE, knots)
    assert errors[16] < 0.4 * errors[8]
    assert errors[32] < 0.4 * errors[16]
    assert errors[32] < 0.05


def test_a_target_without_the_proofs_form_is_missed_by_its_weights():
    # The construction knows the target it was made for; for another it is wrong.
    one, other = (targets.sums(np.random.default_rng(seed), PHASE) for seed in (5, 6))
    with jax.enable_x64(True):
        x, i = targets.states(jax.random.key(1), PHASE, 100)
        theta = construction.construct(one, PHASE, 16)
        values = jax.vmap(lambda x, i: networks.shared(theta, x, i, leaky))(x, i)
        assert float(jnp.abs(values - jax.vmap(other)(x, i)).max()) > 0.3


@pytest.mark.parametrize("name", targets.EQUI_INVARIANT)
def test_a_target_is_equi_invariant_and_the_control_is_not(name):
    few = replace(TINY, points=64)
    assert universality.order_gap(targets.EQUI_INVARIANT[name], few) < 1e-5
    assert universality.order_gap(universality.CONTROL["by place"], few) > 0.4


def test_channels_of_zero_change_nothing():
    sizes = replace(PHASE, channels=3, hidden=3)
    theta = networks.init(np.random.default_rng(0), sizes)
    wide = universality.padded(theta, 8)
    assert len(wide["phi"][2]["selected"]["bias"]) == 8
    x, i = targets.states(jax.random.key(0), sizes, 1)
    np.testing.assert_allclose(
        networks.shared(wide, x[0], i[0], leaky),
        networks.shared(theta, x[0], i[0], leaky),
        atol=1e-6,
    )


# Plans


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"seed": -1}, "seed=-1"),
        ({"broken": "all"}, "break 'all' is none of untie"),
        ({"worlds": 0}, "worlds=0"),
        ({"widths": (8, 2)}, "rising"),
        ({"targets": ("sums", "sin")}, "target 'sin' is none of sums"),
    ],
)
def test_plans_that_cannot_be_are_refused(change, message):
    with pytest.raises(SelectError, match=message):
        Plan(**change)


def test_a_size_that_is_not_known_is_refused():
    with pytest.raises(SelectError, match="size 'huge' is none of small, default"):
        plan.plan("huge")
