"""Each check passes on sound worlds and fails, alone and with its message, on one broken for it."""

import json
import sys
from typing import Any, NamedTuple

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from selectmdp import cli
from selectmdp.check import CheckReport, check_select_env
from selectmdp.envs import Circle, PredatorPrey
from selectmdp.factories import found, made
from selectmdp.interop.gymnasium import SelectGymEnv
from selectmdp.interop.spaces import SelectSpace, check_action, observation_space
from selectmdp.iterative import picked
from selectmdp.spec import SelectError, Spec
from selectmdp.types import Action, Observation

N = 4
CIRCLE = Circle(num_items=4, num_context=1, num_select=2, commands=("stay", "up"), time_limit=6)
HUNT = PredatorPrey(num_items=3, num_context=1, num_select=2, grid=3, time_limit=6)


@pytest.fixture(autouse=True, scope="module")
def quick_to_compile():
    """Many tiny programs, each run once: optimising them would take most of the time."""
    before = jax.config.read("jax_disable_most_optimizations")
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", before)


class State(NamedTuple):
    worth: jax.Array
    clock: jax.Array


def cheap_draws(key: jax.Array) -> jax.Array:
    """A number in [0, 1] for each item: the key's own bits, which compile at once."""
    shifts = 8 * jnp.arange(N, dtype=jnp.uint32)
    return ((jax.random.key_data(key)[0] >> shifts) & 255) / jnp.float32(255)


class Orchard:
    """Pick 2 of 4 trees; ripe ones may also be cut. Sound; what breaks it overrides one method."""

    spec = Spec(N, 2, 1, 1, 2, 2)

    def reset(self, key: jax.Array) -> Any:
        return State(cheap_draws(key), jnp.zeros((), jnp.int32))

    def step(self, key: jax.Array, state: Any, action: Action) -> Any:
        chosen = picked(action, N)
        worth = jnp.where(chosen, 0.0, 0.5 * state.worth) + 0.5 * cheap_draws(key)
        reward = jnp.where(chosen, state.worth, 0.0).sum()
        return State(worth, state.clock + 1), reward, jnp.ones(())

    def observe(self, state: Any) -> Any:
        return Observation(
            items=jnp.stack([state.worth, jnp.square(state.worth)], axis=1),
            context=state.worth.mean()[None, None],
            present=jnp.ones(N, bool),
            context_present=jnp.ones(1, bool),
            legal=jnp.stack([jnp.ones(N, bool), state.worth > 0.3], axis=1),
        )


class Permutable(Orchard):
    def permute(self, state: State, order: jax.Array) -> State:
        return state._replace(worth=state.worth[order])


class Partial(Orchard):
    def partial_reward(self, key: jax.Array, state: State, action: Action) -> jax.Array:
        return jnp.cumsum(jnp.where(action.items < 0, 0.0, state.worth[action.items]))


class Everything(Permutable, Partial):
    time_limit = 5
    command_names = ("pick", "cut")

    def legal_after(self, observation: Observation, chosen: Any, command: Any) -> jax.Array:
        """One tree is cut in a step."""
        cut = (chosen & (command == 1)).any()
        return jnp.stack([jnp.ones(N, bool), jnp.full(N, ~cut)], axis=1)

    def greedy(self, key: jax.Array, state: State) -> Action:
        return Action(jnp.argsort(-state.worth)[:2], jnp.zeros(2, jnp.int32))

    def learning_reward(self, reward: jax.Array) -> jax.Array:
        return reward / 2


def status(report: CheckReport) -> dict[str, str]:
    return {result.name: result.status for result in report.results}


def failures(report: CheckReport) -> dict[str, str]:
    return {result.name: result.message for result in report.failures}


@pytest.mark.parametrize("env", [CIRCLE, HUNT], ids=["circle", "predator-prey"])
def test_the_papers_worlds_pass_and_nothing_offered_goes_unchecked(env):
    report = check_select_env(env)
    assert failures(report) == {}
    unchecked = {name for name, verdict in status(report).items() if verdict != "pass"}
    assert unchecked == {"legal_after", "illegal pairs refused"}  # neither has any of that


def test_the_league_passes_by_its_name(capsys):
    cli.main(["check", "league", "--num-items", "14", "--json"])
    told = json.loads(capsys.readouterr().out)
    assert told["passed"]
    unchecked = {each["name"] for each in told["results"] if each["status"] != "pass"}
    assert unchecked == {"partial reward"}  # it offers none


@pytest.mark.parametrize("env", [CIRCLE, HUNT], ids=["circle", "predator-prey"])
def test_their_gymnasium_forms_pass(env):
    report = check_select_env(SelectGymEnv(env))
    assert failures(report) == {}
    unchecked = {name for name, verdict in status(report).items() if verdict != "pass"}
    assert unchecked == {"permutation", "illegal pairs refused"}


def test_a_world_that_offers_everything_is_checked_in_everything():
    assert set(status(check_select_env(Everything)).values()) == {"pass"}


def test_what_is_not_offered_is_reported_as_not_checked():
    verdicts = status(check_select_env(Orchard()))
    unchecked = {name for name, verdict in verdicts.items() if verdict == "not checked"}
    assert unchecked == {
        *("legal_after", "partial reward", "learning reward", "greedy", "permutation"),
        "time limit",
    }
    assert "fail" not in verdicts.values()


BROKEN: list[Any] = []


def broken(name: str, says: str, base: type = Orchard, **overrides: Any) -> None:
    """A world like `base` but for these methods, the one check it fails, and what that says."""
    world = type(f"Broken{len(BROKEN)}", (base,), overrides)
    BROKEN.append(pytest.param(world, name, says, id=f"{name}: {says}"))


def seen_with(**changes: Any) -> Any:
    def observe(self: Any, state: Any) -> Any:
        given = {name: make(state) for name, make in changes.items()}
        return Orchard.observe(self, state)._replace(**given)

    return observe


def step_with(change: Any) -> Any:
    def step(self: Any, key: Any, state: Any, action: Any) -> Any:
        return change(*Orchard.step(self, key, state, action), action)

    return step


def branching_reset(self: Any, key: Any) -> State:
    state = Orchard.reset(self, key)
    return state if state.worth[0] > 0.5 else state._replace(worth=1 - state.worth)


def batch_shy(state: State) -> Any:
    shape = jax.ShapeDtypeStruct((N,), np.float32)
    worth = jax.pure_callback(lambda x: np.asarray(x), shape, state.worth)
    return jnp.stack([worth, worth], axis=1)


def forgetful_reset(self: Any, key: Any) -> State:
    del key
    return State(jnp.asarray(np.random.default_rng().random(N, np.float32)), jnp.zeros((), int))


def partial_with(change: Any) -> Any:
    return lambda self, *given: change(Partial.partial_reward(self, *given))


def on_the_last(self: Any, key: Any, state: State, action: Action) -> Any:
    worth = (0.5 * state.worth + 0.5 * cheap_draws(key)).at[action.items].set(0.0)
    following, reward, discount = Orchard.step(self, key, state, action)
    return following._replace(worth=worth), reward, discount


def paid_for_the_last(self: Any, key: Any, state: State, action: Action) -> Any:
    following, _, discount = Orchard.step(self, key, state, action)
    return following, state.worth[action.items].sum(), discount


broken("protocol", "`spec` is None", spec=None)
broken("protocol", "no method `observe`", observe=None)
broken("jit", "`reset` fails under jax.jit", reset=branching_reset)
broken("jit", "must return three things", step=step_with(lambda s, r, d, a: (s, r)))
broken("vmap", "`observe` fails under jax.vmap", observe=seen_with(items=batch_shy))
broken("observation shapes", "return a selectmdp", observe=lambda self, state: {"items": state})
broken(
    "observation shapes",
    "observation.items has shape (4, 1), the spec says (4, 2)",
    observe=seen_with(items=lambda s: s.worth[:, None]),
)
broken(
    "observation shapes",
    "observation.legal has shape (4,)",
    observe=seen_with(legal=lambda s: s.worth > 0),
)
broken(
    "observation dtypes",
    "observation.items is int32",
    observe=seen_with(items=lambda s: jnp.ones((N, 2), jnp.int32)),
)
broken(
    "observation dtypes",
    "observation.present is float32",
    observe=seen_with(present=lambda s: jnp.ones(N)),
)
broken(
    "reward and discount",
    "reward of `step` has shape (1,)",
    step=step_with(lambda s, r, d, a: (s, r[None], d)),
)
broken(
    "reward and discount",
    "discount of `step` is bool",
    step=step_with(lambda s, r, d, a: (s, r, d > 0)),
)
broken(
    "state keeps its form",
    "turns state.clock from int32() into float32()",
    step=step_with(lambda s, r, d, a: (s._replace(clock=s.clock + 0.5), r, d)),
)
broken(
    "state keeps its form",
    "return the same structure",
    step=step_with(lambda s, r, d, a: (s._replace(clock=(s.clock, r)), r, d)),
)
broken("command names", "give 2 names", command_names=("pick",))
broken("legal_after's form", "shape (4, 2)", legal_after=lambda self, seen, chosen, c: ~chosen)
broken("seeds", "the same key gave two different episodes", reset=forgetful_reset)
broken(
    "finite",
    "observation.items[0, 0] is nan at step 1",
    observe=seen_with(items=lambda s: jnp.stack([jnp.log(s.worth - 2), s.worth], axis=1)),
)
broken("discount", "the discount is 1.5", step=step_with(lambda s, r, d, a: (s, r, 1.5 * d)))
broken(
    "legal mask",
    "nothing can ever be picked",
    observe=seen_with(legal=lambda s: jnp.zeros((N, 2), bool)),
)
broken(
    "legal_after",
    "legal again after pick 0",
    legal_after=lambda self, seen, chosen, command: jnp.ones((N, 2), bool).at[3].set(chosen.any()),
)
broken(
    "legal_after",
    "not backwards",
    legal_after=lambda self, seen, chosen, command: jnp.ones((N, 2), bool).at[0].set(~chosen.any()),
)
broken(
    "partial reward",
    "has shape (1,)",
    Partial,
    partial_reward=partial_with(lambda parts: parts[:1]),
)
broken(
    "partial reward",
    "with 2 of 2 picks is",
    Partial,
    partial_reward=partial_with(lambda parts: parts.at[1].add(0.01)),
)
broken(
    "partial reward",
    "with 1 of 2 picks is",
    Partial,
    partial_reward=partial_with(lambda parts: parts.at[0].set(parts[1] + 0.1)),
)
broken("partial reward", "raised KeyError: 'kaput'", partial_reward=lambda *_: {}["kaput"])
broken(
    "learning reward",
    "learning_reward makes nan of the reward",
    learning_reward=lambda self, reward: jnp.log(reward - 100.0),
)
broken("learning reward", "makes [", learning_reward=lambda self, reward: jnp.stack([reward] * 2))
broken(
    "greedy",
    "greedy at step 1: items[1]=0 is picked twice",
    greedy=lambda self, key, state: Action(jnp.zeros(2, jnp.int32), jnp.zeros(2, jnp.int32)),
)
broken(
    "greedy",
    "pick 1: item 1 with command 1 is not legal after the picks",
    Everything,
    greedy=lambda self, key, state: Action(jnp.arange(2), jnp.ones(2, jnp.int32)),
    observe=seen_with(legal=lambda s: jnp.ones((N, 2), bool)),
)
broken(
    "item −1",
    "in place of the last pick state.worth is in each of",
    spec=Spec(N, 2, 1, 1, 2, 2, allow_pass=True),
    step=on_the_last,
)
broken(
    "item −1",
    "in place of the last pick the reward is in each of",
    observe=seen_with(legal=lambda s: jnp.stack([s.worth > 0.4, s.worth > 0.4], axis=1)),
    step=paid_for_the_last,
)
broken(
    "permutation",
    "observation.items[0, 1] is",
    Permutable,
    observe=seen_with(items=lambda s: jnp.stack([s.worth, jnp.arange(4.0)], axis=1)),
)
broken(
    "permutation",
    "put item order[i] at place i",
    Permutable,
    permute=lambda self, s, order: s._replace(worth=s.worth[jnp.argsort(order)]),
)
broken(
    "permutation",
    "the reward is",
    Permutable,
    step=step_with(lambda s, r, d, a: (s, r + s.worth.mean() + picked(a, N)[0], d)),
)
broken(
    "permutation",
    "the sum of item feature 0 after the step is",
    Permutable,
    observe=seen_with(legal=lambda s: jnp.ones((N, 2), bool)),
    step=step_with(lambda s, r, d, a: (s._replace(worth=s.worth + 0.2 + picked(a, N)[0]), r, d)),
)
broken(
    "permutation",
    "`permute` turns state",
    Permutable,
    permute=lambda self, s, o: (s, o)[0]._replace(worth=s.worth[:2]),
)
broken(
    "time limit",
    "the discount is 0 at step 5",
    time_limit=5,
    step=step_with(lambda s, r, d, a: (s, r, jnp.where(s.clock >= 5, 0.0, 1.0))),
)
broken("time_limit's form", "time_limit='5': must be a whole number", time_limit="5")


@pytest.mark.parametrize(("world", "name", "says"), BROKEN)
def test_a_broken_world_fails_the_check_for_it_and_no_other(world, name, says):
    found = failures(check_select_env(world()))
    assert list(found) == [name]
    assert says in found[name]


def test_no_verdict_is_given_where_a_pick_of_nothing_cannot_be_told_from_the_last_item():
    """Item N − 1 stands for nobody here, and a step takes exactly K picks."""

    def step(self, key, state, action):
        assert action.items.shape == (2,)
        chosen = picked(action, N).at[N - 1].set(False)
        worth = jnp.where(chosen, 0.0, 0.5 * state.worth) + 0.5 * cheap_draws(key)
        reward = jnp.where(chosen, state.worth, 0.0).sum()
        return State(worth, state.clock + 1), reward, jnp.ones(())

    spec = Spec(N, 2, 1, 1, 2, 2, allow_pass=True)
    report = check_select_env(type("Fixed", (Orchard,), {"spec": spec, "step": step})())
    assert report.passed
    (told,) = (result for result in report.results if result.name == "item −1")
    assert told.status == "not checked"
    assert "step takes no fewer picks to show whether that is nothing" in told.message


def test_a_step_that_would_act_on_the_last_item_is_noted_where_every_pick_is_made():
    report = check_select_env(type("Wrapped", (Orchard,), {"step": on_the_last})())
    assert report.passed
    (told,) = (result for result in report.results if result.name == "item −1")
    assert "no pick was −1 in 80 steps. Note: should one be, with −1 in place" in told.message
    assert "mode='drop'" in told.message


def test_a_last_item_that_does_nothing_is_not_taken_for_a_fault():
    def step(self: Any, key: Any, state: State, action: Action) -> Any:
        kept = action._replace(items=jnp.where(action.items == N - 1, -1, action.items))
        return Orchard.step(self, key, state, kept)

    spec = Spec(N, 2, 1, 1, 2, 2, allow_pass=True)
    assert check_select_env(type("Idle", (Orchard,), {"step": step, "spec": spec})()).passed


def test_a_deterministic_world_passes_with_a_note():
    calm = type("Calm", (Orchard,), {})
    calm.reset = lambda self, key: State(jnp.linspace(0.1, 0.9, N), jnp.zeros((), jnp.int32))
    calm.step = lambda self, key, state, action: (state, jnp.ones(()), jnp.ones(()))
    report = check_select_env(calm())
    assert report.passed
    (seeds,) = (result for result in report.results if result.name == "seeds")
    assert "Note: so do other keys" in seeds.message


class Stall(gymnasium.Env):
    """Sell 2 of 4 goods; the dear ones have no second command. Sound, and NumPy only."""

    spec_of_stall = Spec(N, 1, 0, 0, 2, 2)
    time_limit = 6

    def __init__(self) -> None:
        self.action_space = SelectSpace(self.spec_of_stall)
        self.observation_space = observation_space(self.spec_of_stall)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.clock, self.prices = 0, self.np_random.random(N)
        return self.show(), {}

    def step(self, action: Any) -> Any:
        self.check(action)
        self.clock += 1
        reward = float(self.prices[action["items"] % N].sum())
        self.prices = self.np_random.random(N)
        return self.show(), reward, *self.ends(), {}

    def check(self, action: Any) -> None:
        check_action(self.spec_of_stall, self.legal, action)

    def ends(self) -> tuple[Any, Any]:
        return False, self.clock >= 6

    def show(self) -> dict[str, Any]:
        self.legal = np.stack([np.ones(N, bool), self.prices < 0.7], axis=1)
        self.action_space.legal = self.legal
        items = self.prices[:, None].astype(np.float32)
        return {"items": items, "present": np.ones(N, np.int8), "legal": self.legal}


def show_with(**changes: Any) -> Any:
    return lambda self: Stall.show(self) | {name: make(self) for name, make in changes.items()}


def lax(self: Any, action: Any) -> None:
    """Sees to it that no pick is out of range, and to nothing else."""
    if not all(-1 <= i < N for i in action["items"]) or not set(action["commands"]) <= {0, 1}:
        raise SelectError("out of range")


def lax_on_legality(self: Any, action: Any) -> None:
    check_action(self.spec_of_stall, np.ones((N, 2), bool), action)


def lax_on_duplicates(self: Any, action: Any) -> None:
    if len(set(action["items"].tolist())) == 2:
        Stall.check(self, action)


def lax_on_range(self: Any, action: Any) -> None:
    if (action["items"] < N).all():
        Stall.check(self, action)


def by_accident(self: Any, action: Any) -> None:
    self.prices[action["items"]]
    Stall.check(self, action)


def too_late(self: Any, action: Any) -> None:
    self.prices = self.np_random.random(N)
    Stall.check(self, action)


def picky(self: Any, action: Any) -> None:
    Stall.check(self, action)
    if self.clock > 0 and 3 in action["items"]:
        raise SelectError("not the last")


def silent_legal(self: Any) -> dict[str, Any]:
    seen = Stall.show(self)
    self.legal = self.action_space.legal = np.zeros((N, 2), bool)
    return seen | {"legal": self.legal}


def stale_legal(self: Any) -> dict[str, Any]:
    seen = Stall.show(self)
    self.action_space.legal = np.ones((N, 2), bool)
    return seen


def unseeded(self: Any, *, seed: int | None = None, options: Any = None) -> Any:
    return Stall.reset(self)


def returning(change: Any) -> Any:
    return lambda self, action: change(*Stall.step(self, action))


BROKEN_STALLS = [
    ("spaces", "use selectmdp.interop.spaces.SelectSpace", {"__init__": lambda self: None}),
    (
        "reset and step",
        "(observation, info)",
        {"reset": lambda self, seed: Stall.reset(self, seed=seed)[0]},
    ),
    ("reset and step", "lacks ['present']", {"show": lambda self: drop(Stall.show(self))}),
    ("reset and step", "terminated, truncated, info", {"step": returning(lambda *five: five[:4])}),
    ("reset and step", "return one number", {"step": returning(lambda o, r, *_: (o, [r], *_))}),
    ("reset and step", "terminated is 0", {"ends": lambda self: (0, False)}),
    ("legal picks accepted", "not the last", {"check": picky}),
    ("observation shapes", "shape (4,)", {"show": show_with(items=lambda s: s.prices)}),
    ("observation dtypes", "is float64", {"show": show_with(items=lambda s: s.prices[:, None])}),
    ("observation dtypes", "a mask is", {"show": show_with(present=lambda s: np.ones(N))}),
    ("finite", "'items'] is not finite", {"show": show_with(items=lambda s: NOTHING)}),
    ("finite", "reward is not", {"step": returning(lambda o, r, *_: (o, float("inf"), *_))}),
    ("seeds", "the same seed gave two different episodes", {"reset": unseeded}),
    ("legal mask", "nothing can ever be picked", {"show": silent_legal}),
    ("legal mask", "set self.action_space.legal in reset", {"show": stale_legal}),
    ("duplicates refused", "step accepted an item twice", {"check": lax_on_duplicates}),
    ("out-of-range picks refused", "accepted item 4 of 4", {"check": lax_on_range}),
    ("out-of-range picks refused", "raised IndexError", {"check": by_accident}),
    ("illegal pairs refused", "which is not legal", {"check": lax_on_legality}),
    ("refusals change nothing", "refuse before anything is drawn", {"check": too_late}),
    ("time limit", "terminated=False", {"ends": lambda self: (self.clock >= 6, False)}),
    ("time limit", "goes on after step 6", {"ends": lambda self: (False, False)}),
    ("time limit", "truncated at step 5", {"ends": lambda self: (False, self.clock >= 5)}),
]
NOTHING = np.full((N, 1), np.nan, np.float32)


def drop(seen: dict[str, Any]) -> dict[str, Any]:
    return {name: part for name, part in seen.items() if name != "present"}


def test_a_sound_gymnasium_environment_of_any_make_passes():
    verdicts = status(check_select_env(Stall()))
    assert verdicts.pop("permutation") == "not checked"
    assert set(verdicts.values()) == {"pass"}


@pytest.mark.parametrize(("name", "says", "overrides"), BROKEN_STALLS)
def test_a_broken_gymnasium_environment_fails_the_check_for_it_and_no_other(name, says, overrides):
    found = failures(check_select_env(type("Broken", (Stall,), overrides)()))
    assert list(found) == [name]
    assert says in found[name]


def test_one_environment_may_fail_several_checks_and_all_are_listed():
    report = check_select_env(type("Lax", (Stall,), {"check": lax})())
    assert list(failures(report)) == ["duplicates refused", "illegal pairs refused"]
    with pytest.raises(SelectError, match=r"(?s)Lax fails 2 of 14 checks.*- duplicates.*- illegal"):
        report.raise_for_failures()


def test_what_is_no_environment_fails_the_protocol_and_the_rest_is_not_checked():
    verdicts = status(check_select_env(object()))
    assert verdicts.pop("protocol") == "fail"
    assert set(verdicts.values()) == {"not checked"}


def test_checking_twice_gives_the_same_report():
    assert check_select_env(Stall(), seed=3) == check_select_env(Stall(), seed=3)


def test_a_report_goes_to_json_and_to_text():
    report = check_select_env(Stall())
    report.raise_for_failures()
    read = json.loads(json.dumps(report.to_json()))
    assert read["passed"] is True
    assert read["results"][0] == {
        "name": "spaces",
        "status": "pass",
        "message": "SelectSpace, and observations as its spec says",
    }
    assert "not checked  permutation: " in str(report)


@pytest.mark.parametrize("steps", [0, -1, 1.5])
def test_a_bad_number_of_steps_is_refused(steps):
    with pytest.raises(SelectError, match=f"steps={steps}"):
        check_select_env(Stall(), steps=steps)


def test_a_factory_in_the_current_directory_is_found(tmp_path, monkeypatch):
    (tmp_path / "my_stalls.py").write_text(
        "from test_check import Stall\n\ndef make():\n    return Stall()\n\nready = Stall()\n"
        "\ndef sized(size):\n    return Stall()\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", list(sys.path))
    for name in ("make", "Stall", "ready"):
        assert type(made(found(f"my_stalls:{name}"), name, {})) is Stall
    assert check_select_env(found("my_stalls:make")).passed
    with pytest.raises(SelectError, match="sized: making the environment without arguments"):
        made(found("my_stalls:sized"), "sized", {})
    assert type(made(found("my_stalls:sized"), "sized", {"size": 3})) is Stall
    with pytest.raises(SelectError, match=r"num_items=3: sized has no such option; it takes size"):
        made(found("my_stalls:sized"), "sized", {"num_items": 3})


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("selectmdp.envs.Circle", "'selectmdp.envs.Circle' names no factory: write module:factory"),
        (":Circle", "':Circle' names no factory"),
        ("no_such_module:make", "there is no module 'no_such_module'"),
        ("selectmdp.envs:Squares", "selectmdp.envs has no 'Squares'; write module:factory"),
    ],
)
def test_text_that_names_no_factory_is_refused_and_says_what_to_write(text, says):
    with pytest.raises(SelectError) as refusal:
        found(text)
    assert says in str(refusal.value)
