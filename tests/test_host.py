"""Host environments as worlds to train in: what they give reaches the replay as it was."""

import shutil
from pathlib import Path
from typing import Any

import gymnasium
import jax
import numpy as np
import pytest
import tiny

import selectmdp as sm
from selectmdp import runs, worlds
from selectmdp.config import TrainConfig
from selectmdp.interop.crew import Crew, Source, here
from selectmdp.interop.host import HostWorld, is_registered, registered
from selectmdp.interop.spaces import SelectSpace, observation_space
from selectmdp.learners.presets import preset
from selectmdp.settings import Hosting
from selectmdp.spec import SelectError, Spec, WorldFault
from selectmdp.trainer import Trainer

haste = tiny.haste

SPEC = Spec(num_items=4, item_features=1, num_context=0, context_features=1,
            num_select=2, num_commands=2)  # fmt: skip
HOST = {**tiny.RUN, "steps": 200, "evaluations": 2, "workers": 0}
HERE = Hosting(workers=0)
SIDE_BY_SIDE = {**tiny.SETTINGS, "num_envs": 2}


class Counter(gymnasium.Env[Any, Any]):
    """A step shows its number; every third ends the episode, by truncation and terminal in turn."""

    open_now = 0

    def __init__(self, reward: float = 1.0) -> None:
        self.observation_space = observation_space(SPEC)
        self.action_space = SelectSpace(SPEC)
        self.reward, self.steps, self.episodes = reward, 0, 0
        Counter.open_now += 1

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.steps, self.episodes = 0, self.episodes + 1
        return self._seen(), {}

    def step(self, action: Any) -> Any:
        self.action_space.check(action)
        self.steps += 1
        ended = self.steps == 3
        terminal = ended and self.episodes % 2 == 0
        return self._seen(), self.reward, terminal, ended and not terminal, {}

    def close(self) -> None:
        Counter.open_now -= 1

    def _seen(self) -> dict[str, Any]:
        return {
            "items": np.full((4, 1), 10.0 * self.episodes + self.steps, np.float32),
            "context": np.zeros((0, 1), np.float32),
            "present": np.ones(4, np.int8),
            "context_present": np.zeros(0, np.int8),
            "legal": np.array([[1, 1], [1, 0], [1, 1], [0, 0]], np.int8),
        }


@pytest.fixture(autouse=True)
def all_closed() -> Any:
    """No test leaves an environment open."""
    yield
    assert Counter.open_now == 0


# Transitions


@pytest.mark.slow
def test_truncation_and_termination_reach_the_replay_as_what_they_are() -> None:
    place = HostWorld(Source.of(Counter, {"reward": 2.0}), HERE)
    config = TrainConfig("Counter", {}, "isq-p", "paper", SIDE_BY_SIDE, 200, 0)
    learner = preset("paper").learner(runs.agent_of(config, place.env), config.full_settings, 200)
    with place.opened():
        engine = place.engine(learner, 0)
        running, report = engine.run(engine.start())
        assert (report.reward, int(running.step)) == (2.0, 50)
        rings = jax.tree.map(np.asarray, running.learner.replay)
        assert rings.filled.tolist() == [25 + 8, 25 + 8]  # eight episodes have ended in each
        for ring in (jax.tree.map(lambda rows, i=i: rows[i], rings) for i in range(2)):
            # Three steps and what was seen last, of an episode that is truncated, then of one that
            # terminates; items tell episode and step.
            assert ring.items[:8, 0, 0].tolist() == [10, 11, 12, 13, 20, 21, 22, 23]
            assert ring.step[:8].tolist() == [True, True, True, False] * 2
            gamma = np.float32(0.99)
            assert ring.discount[:3].tolist() == [gamma] * 3  # what a truncation cuts had a worth
            assert ring.discount[4:7].tolist() == [gamma, gamma, 0.0]
            assert ring.reward[[0, 1, 2, 4, 5, 6]].tolist() == [2.0] * 6

        # A checkpoint cuts all episodes; what was seen last has a row, and the next are the first.
        running = engine.boundary(engine.boundary(running))
        assert running.learner.replay.filled.tolist() == [34, 34]
        assert running.learner.replay.step[:, 33].tolist() == [False, False]
        running, _ = engine.run(running)
        assert running.learner.replay.items[:, 34, 0, 0].tolist() == [100.0, 100.0]  # the tenth


def test_what_each_step_led_to_is_from_before_the_reset() -> None:
    crew = Crew(here(Source.of(Counter, {}), SPEC, 2, partial_reward=False))
    crew.reset(0)
    action = sm.Action(np.array([[0, 1], [2, 0]]), np.array([[1, 0], [0, 0]]))
    for _ in range(3):
        stepped = crew.step(action)
    crew.close()
    assert stepped.truncated.tolist() == [True, True]
    assert np.asarray(stepped.last.items)[:, 0, 0].tolist() == [13.0, 13.0]
    assert np.asarray(stepped.observation.items)[:, 0, 0].tolist() == [20.0, 20.0]


# Whole trainings


@pytest.mark.slow
def test_a_registered_world_of_ours_trains_and_resumes_to_the_same_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    result = sm.train("selectmdp/Circle-v0", out=whole, **tiny.WORLD, **HOST)
    assert list(result.references) == ["random"]
    assert result.evaluation.unit == "area"
    policy = sm.load(whole)
    assert runs.world_of(policy, {"num_items": 9, "grid": None}).env.spec.num_items == 9
    told = worlds.evaluated(runs.world_of(policy, {}), policy, episodes=8)
    assert told.episode_rewards == result.evaluation.episode_rewards

    shutil.copytree(whole, cut)
    shutil.rmtree(cut / "checkpoints" / "step-000000000200")
    with pytest.raises(SelectError, match="num_items=7 where the run has 6"):
        sm.train(None, out=cut, resume=True, num_items=7)
    monkeypatch.setattr(Trainer, "_finish", lambda self, running: result)  # judged already
    sm.train(None, out=cut, resume=True, num_items=6)
    assert tiny.state(cut, 200) == tiny.state(whole, 200)
    assert tiny.rows(cut) == tiny.rows(whole)


def test_the_fast_learner_trains_on_the_host_too(tmp_path: Path) -> None:
    settings = {"num_envs": 2, "rollout": 4, "minibatch": 4, "channels": 8, "chunk": 16}
    how = {**HOST, "preset": "fast", "algorithm": "isq-u", "steps": 64, "settings": settings}
    result = sm.train(Counter, out=tmp_path / "run", **how)
    assert result.to_json()["steps"] == 64
    assert result.evaluation.mean_reward == 1.0
    assert [row["step"] for row in tiny.rows(tmp_path / "run") if "loss" in row] == [16, 32, 48, 64]


def test_an_environment_of_ones_own_trains_from_a_function_that_makes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "run"
    result = sm.train(Counter, out=out, **{**HOST, "settings": SIDE_BY_SIDE})
    assert Counter.open_now == 0
    assert result.evaluation.mean_reward == 1.0
    assert result.evaluation.steps == 1000  # it has no time limit, and ends after three
    assert result.policy.about["config"]["task"] == "Counter"
    picks = sm.load(out).select(np.ones((4, 1)))
    assert len(set(picks.items.tolist())) == 2
    with pytest.raises(SelectError, match="is a run on 'Counter', which no name stands for here"):
        sm.train(None, out=out, resume=True)
    monkeypatch.setattr(Trainer, "_finish", lambda self, running: int(running.step))
    assert sm.train(Counter, out=out, resume=True, workers=0) == 200


def test_predator_prey_as_a_host_world_offers_what_the_jax_world_does() -> None:
    place = worlds.world("selectmdp/PredatorPrey-v0", {"num_items": 5, "time_limit": 9}, HERE)
    env = sm.PredatorPrey(num_items=5, time_limit=9)
    assert place.name == "selectmdp/PredatorPrey-v0"
    assert place.env.spec == env.spec
    assert (place.env.time_limit, place.env.unit) == (9, "caught")
    assert place.env.command_names == env.command_names
    told = worlds.evaluated(place, "random", episodes=3, seed=1)
    again = worlds.evaluated(place, "random", episodes=3, seed=1)
    other = worlds.evaluated(place, "random", episodes=3, seed=2)
    assert (told.steps, told.episodes, told.unit) == (9, 3, "caught")
    assert told == again
    assert told.episode_rewards != other.episode_rewards
    with pytest.raises(SelectError, match=r"PredatorPrey-v0 offers no greedy\(\): take 'random'"):
        worlds.evaluated(place, "greedy")


def test_the_time_limit_of_a_registration_is_the_length_of_an_episode() -> None:
    gymnasium.register("tests/Counter-v0", entry_point=Counter, max_episode_steps=2)
    try:
        assert is_registered("tests/Counter-v0")
        place = HostWorld(registered("tests/Counter-v0", {"reward": 3.0}), HERE)
        told = worlds.evaluated(place, "random", episodes=2)
        assert told.episode_rewards == (3.0, 3.0)
        with pytest.raises(
            SelectError,
            match=r"making the environment with \{'speed': 1\}.*speed",
        ):
            HostWorld(registered("tests/Counter-v0", {"speed": 1}), HERE)
    finally:
        del gymnasium.registry["tests/Counter-v0"]


# What cannot be trained in


class Flat(Counter):
    def __init__(self) -> None:
        super().__init__()
        self.action_space = gymnasium.spaces.Discrete(3)


@pytest.mark.parametrize(
    ("task", "options", "said"),
    [
        (Flat, {}, "the action space is Discrete: tell by selectmdp.from_gymnasium(env, spec,"),
        ("CartPole-v1", {}, "the action space is Discrete"),
        (dict, {}, "dict makes a dict without reset(): give a function that makes a world"),
        (Counter, {"speed": 3}, "speed=3: Counter has no such option; it takes reward"),
        (Counter, {"workers": 2.5}, "workers=2.5: must be a whole number"),
        (Counter, {"timeout": 0}, "timeout=0: must be more than 0 and at most 1000000"),
        (Counter, {"timeout": 1e20}, "timeout=1e+20: must be more than 0 and at most 1000000"),
        (
            lambda: Counter(),
            {"workers": 2},
            "workers=2: <lambda> cannot be made in another",
        ),
        ("selectmdp/Circle-v0", {"captors": 3}, "captors=3: circle has no such option"),
    ],
)
def test_what_cannot_be_trained_in_is_refused_and_nothing_is_left_open(
    tmp_path: Path, task: Any, options: dict[str, Any], said: str
) -> None:
    with pytest.raises(SelectError) as refused:
        sm.train(task, out=tmp_path / "run", **options)
    assert said in str(refused.value)
    assert not (tmp_path / "run").exists()


def test_an_environment_that_breaks_on_the_way_is_named_and_closed(tmp_path: Path) -> None:
    class Breaks(Counter):
        def step(self, action: Any) -> Any:
            if self.episodes == 2:
                raise RuntimeError("out of order")
            return super().step(action)

    place = r"environment 0, step 1 of the episode with seed \d+, "
    said = r"raised RuntimeError: out of order \(test_host.py, line \d+\)"
    with pytest.raises(WorldFault, match=place + said):
        sm.train(Breaks, out=tmp_path / "run", **{**HOST, "settings": SIDE_BY_SIDE})
