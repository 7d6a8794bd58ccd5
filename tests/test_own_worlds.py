"""Worlds of one's own: what a NumPy class gives and offers arrives, and what is wrong is found."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import faulty
import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tiny
from worlds import Shelf

import selectmdp as sm
from selectmdp import cli, factories, worlds
from selectmdp.check import check_select_env
from selectmdp.config import TrainConfig
from selectmdp.interop.crew import Crew, Source, here
from selectmdp.interop.edge import outcome, put
from selectmdp.runs import config_of, learner_of
from selectmdp.settings import Hosting
from selectmdp.spec import SelectError, Spec, WorldFault
from selectmdp.training import suits
from selectmdp.types import Action, Observation, expected_shapes

haste = tiny.haste

HERE = Hosting(workers=0)
SMALL = {"num_envs": 2, "rollout": 4, "minibatch": 4, "channels": 8, "chunk": 16}


def place_of(spec: Spec) -> dict[str, Any]:
    kinds = {"items": np.float32, "context": np.float32}
    shapes = expected_shapes(spec).items()
    return {name: np.zeros(shape, kinds.get(name, np.bool_)) for name, shape in shapes}


# Observations


def test_what_an_observation_leaves_out_is_all_there() -> None:
    place = place_of(Spec(3, 2, 1, 1, 1, 2))
    items, context = np.arange(6).reshape(3, 2), [[4.5]]
    put({"items": items, "context": context, "present": [1, 0, 1]}, place)
    assert place["items"].tolist() == [[0, 1], [2, 3], [4, 5]]
    assert place["context"].tolist() == [[4.5]]
    assert place["context_present"].tolist() == [True]
    assert place["legal"].tolist() == [[True, True], [False, False], [True, True]]
    seen = Observation(items, context, np.ones(3, bool), np.zeros(1, bool), np.eye(3, 2) > 0)
    put(seen, place)
    assert place["legal"].tolist() == [[True, False], [False, True], [False, False]]
    assert place["context_present"].tolist() == [False]
    alone = place_of(Spec(3, 2, 0, 0, 1, 2))
    put(items, alone)  # items alone
    assert alone["legal"].all()


@pytest.mark.parametrize(
    ("seen", "said"),
    [
        ({"item": 1}, r"the observation has \['item'\]: it may have items, context, present"),
        ({"items": np.zeros((3, 2))}, r"has no 'context': give them, of shape \(1, 1\)"),
        ({"context": [[0]]}, "has no 'items'"),
        ({"items": np.zeros((2, 2)), "context": [[0]]}, r"items has shape \(2, 2\), the spec says"),
        ({"items": [[1], [2, 3]], "context": [[0]]}, "items is no array"),
        ({"items": [["a", "b"]] * 3, "context": [[0]]}, "items is <U1: features are numbers"),
        ({"items": np.zeros((3, 2)), "context": [[np.inf]]}, r"context\[0, 0\] is inf"),
        (
            {"items": np.zeros((3, 2)), "context": [[0]], "present": [1, 2, 0]},
            "present is int64: a",
        ),
        ({"items": np.zeros((3, 2)), "context": [[0]], "legal": np.ones((3, 2))}, "legal is float"),
    ],
)
def test_an_observation_that_does_not_fit_is_told(seen: Any, said: str) -> None:
    with pytest.raises(SelectError, match=said):
        put(seen, place_of(Spec(3, 2, 1, 1, 1, 2)))


@pytest.mark.filterwarnings("ignore:overflow")
def test_a_number_that_float32_cannot_hold_is_told() -> None:
    with pytest.raises(SelectError, match=r"items\[1, 0\] is 1e\+300, too large for float32"):
        put([[0.0], [1e300]], place_of(Spec(2, 1, 0, 0, 1, 1)))
    with pytest.raises(SelectError, match=r"the reward is 1e\+300"):
        outcome(([[0.0]], 1e300, False))


# What a class may offer


def test_a_step_gets_the_picks_that_were_made_and_no_others() -> None:
    got: list[Any] = []

    class Sees(faulty.Sound):
        def sold(self, action: Any) -> Any:
            got.append((action.items.tolist(), action.commands.tolist()))
            return self._seen(), 1, np.True_

    crew = Crew(here(Source.of(Sees, {}), Sees().spec, 1, partial_reward=False))
    crew.reset(0)
    stepped = crew.step(Action(np.array([[3, -1]]), np.array([[1, 0]])))
    crew.close()
    assert got == [([3], [1])]
    assert (stepped.reward.tolist(), stepped.terminated.tolist()) == ([1.0], [True])
    assert stepped.truncated.tolist() == [False]


@pytest.mark.slow
def test_legal_after_partial_reward_and_greedy_of_a_class_are_heeded(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # A step of this world fails where more than one item is told the second command.
    how = {"steps": 64, "evaluations": 1, "episodes": 4, "workers": 0}
    result = sm.train("faulty:Pairs", out=tmp_path / "run", settings=SMALL, **how)
    assert list(result.references) == ["random", "greedy"]
    best = result.references["greedy"].mean_reward
    assert best > result.references["random"].mean_reward
    assert best >= result.evaluation.mean_reward
    assert result.policy.about["needs"] == ["legal_after"]
    paper = {**tiny.RUN, "steps": 100, "evaluations": 1, "workers": 0}
    sm.train(faulty.Pairs, out=tmp_path / "paper", **paper)
    again = sm.load(tmp_path / "run", env=faulty.Pairs())
    assert sm.evaluate(faulty.Pairs, again, episodes=4, workers=0) == result.evaluation
    assert sum(again.select(np.ones((4, 2))).commands) <= 1
    capsys.readouterr()
    world = ["--world", "faulty:Pairs", "--episodes", "4", "--workers", "0", "--json"]
    cli.main(["evaluate", str(tmp_path / "run"), *world])
    assert json.loads(capsys.readouterr().out)["mean_reward"] == result.evaluation.mean_reward
    with pytest.raises(SelectError, match=r"needs legal_after of the world 'faulty:Pairs'"):
        sm.load(tmp_path / "run")


def test_each_pick_learns_what_it_added() -> None:
    place = worlds.world(faulty.Pairs, {}, HERE)
    config = TrainConfig("Pairs", {}, "isq-u", "fast", SMALL, 64, 0)
    learner = learner_of(config, place.env)
    seen: list[Any] = []

    class Listening:
        def __getattr__(self, name: str) -> Any:
            return getattr(learner, name)

        def learn(self, key: Any, state: Any, played: Any, step: Any) -> Any:
            jax.debug.callback(lambda *told: seen.append(told), played.marginal,
                               played.steps.reward, played.steps.action.items)  # fmt: skip
            return learner.learn(key, state, played, step)

    with place.opened():
        engine = place.engine(Listening(), 0)  # type: ignore[arg-type]
        engine.run(engine.start())
    jax.effects_barrier()
    added, reward, items = (np.asarray(part) for part in seen[0])
    assert added.shape == (4, 2, 2)
    assert (items >= 0).all()
    np.testing.assert_allclose(added.sum(axis=2), reward, rtol=1e-6)
    assert (added > 0).all()


def test_a_made_world_a_class_and_a_name_give_the_same() -> None:
    told = sm.evaluate("faulty:Sound", episodes=3, workers=2, num_items=5)
    assert sm.evaluate(faulty.Sound, episodes=3, workers=0, num_items=5) == told
    assert sm.evaluate(faulty.Sound(5), episodes=3) == told
    with pytest.raises(SelectError, match=r"options \['num_items'\]: give them to the world"):
        sm.evaluate(faulty.Sound(5), num_items=5)
    with pytest.raises(SelectError, match=r"Sound offers no greedy\(\): take 'random'"):
        sm.evaluate(faulty.Sound, "greedy", workers=0)


def test_a_heuristic_that_breaks_a_rule_is_told() -> None:
    class Cheats(faulty.Pairs):
        def greedy(self) -> Any:
            return np.array([0, 1]), np.array([1, 1])

    place = "environment 0, greedy after step 0 of the episode with seed 0, is wrong: "
    with pytest.raises(WorldFault, match=place + "pick 1: item 1 with command 1 is not"):
        sm.evaluate(Cheats, "greedy", workers=0)


class Logarithm(faulty.Sound):
    def learning_reward(self, reward: Any) -> Any:
        with np.errstate(invalid="ignore"):
            return np.log(reward - 100.0)


class NoNumber(faulty.Sound):
    def learning_reward(self, reward: Any) -> Any:
        return np.full((), "x") if isinstance(reward, np.ndarray) else 1 // 0


class Logged(Shelf):
    def learning_reward(self, reward: Any) -> Any:
        return jnp.log(reward - 100.0)


class Promised(Shelf):
    def partial_reward(self, key: Any, state: Any, action: Any) -> Any:
        return jnp.full(3, jnp.nan)


@pytest.mark.parametrize(
    ("world", "said"),
    [
        (Logarithm, "the reward, or what learning_reward makes of it, is nan at step "),
        (Logged, "the reward, or what learning_reward makes of it, is nan at step "),
        (Promised, "the reward, or what partial_reward makes of it, is nan at step "),
        (NoNumber, "`learning_reward` raised ValueError: could not convert string to float"),
    ],
)
def test_what_is_learned_of_a_reward_must_be_a_number(
    world: Any, said: str, tmp_path: Path
) -> None:
    """Else all that is learned is nothing, and nobody would know."""
    how = {"steps": 128, "evaluations": 1, "episodes": 2, "settings": SMALL, "workers": 0}
    with pytest.raises(SelectError, match=said):
        sm.train(world, out=tmp_path / "run", **how)


class Whole(Shelf):
    def step(self, key: Any, state: Any, action: Any) -> Any:
        state, reward, discount = super().step(key, state, action)
        return state, reward.astype(int), discount


class Grows(Shelf):
    def step(self, key: Any, state: Any, action: Any) -> Any:
        state, reward, discount = super().step(key, state, action)
        return state._replace(refills=state.refills + 0.5), reward, discount


class Flat(Shelf):
    def observe(self, state: Any) -> Any:
        return super().observe(state)._replace(items=jnp.ones(4))


class Branches(Shelf):
    def observe(self, state: Any) -> Any:
        assert state.refills >= 0
        return super().observe(state)


@pytest.mark.parametrize(
    ("world", "said"),
    [
        (Whole, r"Whole.*: reward is int32 \(\) and must be float \(\)"),
        (Grows, "Grows.*: a step changes the form of the state"),
        (Flat, r"Flat.*: items is float \(4,\) and must be float \(4, 1\)"),
        (Branches, "tracing reset, observe and step raised TracerBoolConversionError"),
    ],
)
def test_a_jax_world_of_the_wrong_form_is_refused_before_anything_is_made(
    world: Any, said: str, tmp_path: Path
) -> None:
    with pytest.raises(SelectError, match=said):
        sm.train(world, out=tmp_path / "run", steps=128)
    assert list(tmp_path.iterdir()) == []


def test_what_a_world_prints_is_not_among_the_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", list(sys.path))
    (tmp_path / "noisy.py").write_text(
        "import faulty\nprint('imported')\n"
        "class Noisy(faulty.Sound):\n"
        "    def __init__(self):\n        print('made')\n        super().__init__()\n"
        "    def sold(self, action):\n        print('step')\n        return super().sold(action)\n"
        "    def close(self):\n        print('closed')\n"
    )
    cli.main(["evaluate", "noisy:Noisy", "--episodes", "1", "--workers", "0", "--json"])
    out, said = capsys.readouterr()
    assert json.loads(out)["episodes"] == 1
    assert set(said.split()) >= {"imported", "made", "step", "closed"}


@pytest.mark.slow
def test_the_fast_preset_as_it_is_trains_on_the_host(tmp_path: Path) -> None:
    result = sm.train("faulty:Sound", out=tmp_path / "run", steps=40_000, evaluations=2)
    chance = result.references["random"]
    assert result.evaluation.mean_reward > chance.mean_reward + 2 * chance.ci95


# Settings that suit a world


class Suited(faulty.Sound):
    suits = {"fast": {**SMALL, "discount": 0.5}}  # noqa: RUF012


def test_settings_that_a_world_offers_are_taken_told_and_kept(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    how = {"steps": 16, "evaluations": 1, "episodes": 2, "workers": 0}
    sm.train(Suited, out=tmp_path / "run", settings={"discount": 0.25}, **how)
    assert "channels=8, chunk=16, discount=0.25 in place of the fast" in capfd.readouterr().err
    config = config_of(tmp_path / "run")[0]
    assert config.settings == {**SMALL, "discount": 0.25}
    assert config.full_settings.learning_rate == 0.002  # the preset's own
    sm.train(Suited, out=tmp_path / "run", resume=True, workers=0)
    place = worlds.world(Suited, {}, HERE)
    assert suits(place, "fast")["discount"] == 0.5
    assert suits(place, "paper") == {}


@pytest.mark.parametrize(
    ("offered", "said"),
    [
        ({"fast": {"discont": 0.5}}, "no setting 'discont'"),
        ({"fast": {"discount": 2.0}}, "discount=2.0: must be"),
        ({"fast": 0.5}, "not iterable"),
        ([0.5], "cannot convert"),
        ({"discount": 0.9}, "preset 'discount' is none of fast, paper"),
        ({"paper": {"pairs": True}}, "no setting 'pairs'"),
    ],
)
def test_settings_that_cannot_be_are_the_worlds_fault(offered: Any, said: str) -> None:
    world = type("Suited", (faulty.Sound,), {"suits": offered})
    with pytest.raises(SelectError, match=r"Suited offers suits=") as told:
        sm.train(world, steps=16, workers=0)
    assert said in str(told.value)


# What can be found by name


def outside() -> Any:
    return faulty.Sound()


def test_only_what_another_process_finds_has_an_address() -> None:
    assert factories.address(faulty.Sound) == "faulty:Sound"
    assert factories.address(outside) == f"{__name__}:outside"
    assert factories.address(lambda: faulty.Sound()) is None
    assert factories.address(faulty.Sound()) is None

    def inside() -> Any:
        return faulty.Sound()

    assert factories.address(inside) is None
    inside.__module__ = "__main__"
    assert factories.address(inside) is None


# From Gymnasium


class Lights(gymnasium.Env[Any, Any]):
    """Four lights; those that are switched on are seen, and pay until the third step."""

    observation_space = gymnasium.spaces.MultiBinary(4)
    action_space = gymnasium.spaces.MultiBinary(4)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.steps = 0
        return np.zeros(4, np.int8), {}

    def step(self, action: Any) -> Any:
        self.steps += 1
        return action, int(action.sum()), self.steps == 3, False, {}


def lights(**offers: Any) -> Any:
    def act(picks: Action) -> Any:
        on = np.zeros(4, np.int8)
        on[picks.items] = 1
        return on

    spec = Spec(4, 1, 0, 0, num_select=2, num_commands=1)
    return sm.from_gymnasium(Lights(), spec, lambda theirs: theirs[:, None], act, **offers)


def test_a_gymnasium_environment_is_adapted_by_two_functions() -> None:
    told = sm.evaluate(lights, episodes=2, steps=9, workers=0)
    assert told.episode_rewards == (2.0, 2.0)
    seen: list[Any] = []

    def greedy(theirs: Any) -> Any:
        seen.append(theirs.tolist())
        return np.flatnonzero(theirs == 0)[:2], np.zeros(2, int)

    sm.evaluate(lambda: lights(greedy=greedy), "greedy", episodes=1, steps=3)
    assert seen == [[0, 0, 0, 0], [1, 1, 0, 0], [0, 0, 1, 1]]


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: lights(speed=3), "speed=3: a world may offer command_names, legal_after"),
        (lambda: sm.from_gymnasium(3, None, len, len), "env=3: give a Gymnasium environment"),
        (lambda: sm.from_gymnasium(Lights, None, len, len), "Lights'>: give a Gymnasium env"),
        (lambda: sm.from_gymnasium(Lights(), None, None, len), "observe=None: give a function"),
        (lambda: sm.from_gymnasium(Lights(), None, len, 3), "act=3: give a function"),
        (lambda: sm.from_gymnasium(Lights(), None, len, len, 4), "greedy=4: give a function"),
        (lambda: sm.from_gymnasium(Lights(), (4, 1), len, len), r"spec=\(4, 1\): give a"),
    ],
)
def test_an_adapter_that_cannot_be_is_refused(make: Callable[[], Any], said: str) -> None:
    with pytest.raises(SelectError, match=said):
        make()


# What `check` finds in a NumPy class


class NoSpec(faulty.Sound):
    def __init__(self) -> None:
        self.spec = (4, 2)  # type: ignore[assignment]


class Keyed(faulty.Sound):
    def reset(self) -> Any:  # type: ignore[override]
        return self._seen()


class Unseeded(faulty.Sound):
    def reset(self, seed: int) -> Any:
        seen = super().reset(seed)
        self.rng = np.random.default_rng()
        return seen


class Shared(faulty.Sound):
    """Seeded, but all copies draw from one generator."""

    def reset(self, seed: int) -> Any:
        seen = super().reset(seed)
        np.random.seed(seed)  # noqa: NPY002
        self.rng = np.random  # type: ignore[assignment]
        return seen


class Remembers(faulty.Sound):
    def reset(self, seed: int) -> Any:
        seen = super().reset(seed)
        seen["items"][0, 0] = self.steps
        return seen


class Names(faulty.Sound):
    command_names = ("half",)  # type: ignore[assignment]


class NothingLegal(faulty.Sound):
    def _seen(self) -> Any:
        return {**super()._seen(), "legal": np.zeros((4, 2), bool)}


class Terminal(faulty.Sound):
    def reset(self, seed: int) -> Any:
        self.number = 0
        return super().reset(seed)

    def sold(self, action: Any) -> Any:
        seen, reward, _ = super().sold(action)
        self.number += 1
        return seen, reward, self.number == 7


class Refuses(faulty.Sound):
    def sold(self, action: Any) -> Any:
        if 3 in action.items:
            raise KeyError("no third shelf")
        return super().sold(action)


class Five(faulty.Sound):
    def sold(self, action: Any) -> Any:
        return (*super().sold(action), False, {})


class After(faulty.Sound):
    def legal_after(self, observation: Any, chosen: Any, command: Any) -> Any:
        return ~chosen


class Budget(faulty.Pairs):
    """How often `full` may be given is drawn in reset, and shown nowhere."""

    def reset(self, seed: int) -> Any:
        self.left = seed % 2
        return super().reset(seed)

    def legal_after(self, observation: Any, chosen: Any, command: Any) -> Any:
        legal = super().legal_after(observation, chosen, command)
        legal[:, 1] &= self.left > 0
        return legal


class Late(Budget):
    left = 1


class Again(faulty.Sound):
    def legal_after(self, observation: Any, chosen: Any, command: Any) -> Any:
        legal = np.ones((4, 2), bool)
        legal[3] = np.any(chosen)
        return legal


class First(faulty.Sound):
    """Nothing follows on item 3: legal as the second, and not as the first."""

    def legal_after(self, observation: Any, chosen: Any, command: Any) -> Any:
        return np.full((4, 2), not chosen[3])


class Ends(faulty.Sound):
    def sold(self, action: Any) -> Any:
        raise SystemExit(3)


class Partial(faulty.Sound):
    def partial_reward(self, action: Any) -> Any:
        return np.ones(len(action.items))


class Greedy(faulty.Sound):
    def greedy(self) -> Any:
        return np.array([0, 0]), np.array([0, 0])


class Fractions(faulty.Sound):
    def greedy(self) -> Any:
        return np.array([0, 1]), np.array([0.9, 0.9])


@pytest.mark.parametrize(
    ("world", "check", "said"),
    [
        (NoSpec, "protocol", r"`spec` is (4, 2): give the world a selectmdp.Spec"),
        (Keyed, "protocol", "`reset` does not take one argument: write reset(seed)"),
        (lambda: faulty.Shape(after=1), "steps", "items has shape (5, 2), the spec says (4, 2)"),
        (lambda: faulty.Nan(after=1), "steps", "items[1, 0] is nan"),
        (lambda: faulty.NanReward(after=1), "steps", "the reward is nan"),
        (Refuses, "steps", "raised KeyError: 'no third shelf' on picks that `legal` allows"),
        (Five, "steps", "it returned 5 things: return (observation, reward, terminated)"),
        (Names, "command names", "give 2 names, one for each command"),
        (Unseeded, "seeds", "reset with the same seed gave two different episodes"),
        (Remembers, "seeds", "begin everything anew in reset"),
        (Shared, "copies", "draw no chance from np.random itself, which all copies share"),
        (NothingLegal, "legal mask", "in none of 20 steps was any pair legal"),
        (After, "legal_after", "`legal_after` gives bool (4,): it must be bool (4, 2)"),
        (Budget, "rules between picks", "`legal_after` raised AttributeError: 'Budget' object"),
        (Late, "rules between picks", "says something else in step 1 if another instance is"),
        (Again, "rules between picks", "legal again after pick 0 of step 1: picks may only"),
        (First, "rules between picks", "are legal in this order and not backwards"),
        (Ends, "steps", "step 1 raised SystemExit: 3"),
        (Partial, "partial reward", "partial_reward promised 1 for all picks of step 1"),
        (Greedy, "greedy", "items[1]=0 is picked twice"),
        (Fractions, "greedy", "commands [0.9, 0.9]: give whole numbers"),
        (Logarithm, "learning reward", "learning_reward makes nan of the reward"),
        (Terminal, "time limit", "the episode is terminated at step 7, the time limit"),
    ],
)
def test_a_planted_fault_is_found(world: Any, check: str, said: str) -> None:
    failures = {result.name: result.message for result in check_select_env(world).failures}
    assert said in failures[check]


@pytest.mark.parametrize("world", [faulty.Sound, faulty.Pairs, lights])
def test_a_sound_world_passes(world: Any) -> None:
    check_select_env(world).raise_for_failures()
