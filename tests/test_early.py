"""What is wrong with a world of one's own is told at once, not after a training."""

from pathlib import Path
from typing import Any

import faulty
import numpy as np
import pytest

import selectmdp as sm
from selectmdp import cli
from selectmdp.check import check_select_env
from selectmdp.envs.base import is_jax, is_numpy
from selectmdp.spec import SelectError, WorldFault

SMALL = {"num_envs": 2, "rollout": 4, "minibatch": 4, "channels": 8, "chunk": 16}
BRIEF = {"steps": 16, "evaluations": 1, "episodes": 3, "workers": 0, "settings": SMALL}

# Worlds that exit


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("import sys\nsys.exit(0)\n", "importing exits raised SystemExit: 0; mend it"),
        ("def make():\n    raise SystemExit\n", "without arguments raised SystemExit; write a"),
    ],
)
def test_a_module_or_factory_that_exits_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str, said: str
) -> None:
    (tmp_path / "exits.py").write_text(body)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(__import__("sys").modules, "exits", raising=False)
    with pytest.raises(SelectError, match=said):
        sm.evaluate("exits:make", episodes=1)
    with pytest.raises(SystemExit) as ended:
        cli.main(["check", "exits:make"])
    assert ended.value.code not in (0, None)


# NumPy or JAX?


class Options(faulty.Sound):
    def step(self, action: Any, render: bool = False, verbose: bool = False) -> Any:
        return super().step(action)


class AnyArguments(faulty.Sound):
    def step(self, *given: Any) -> Any:
        return super().step(*given)

    def observe(self) -> Any:
        return self._seen()


@pytest.mark.parametrize("world", [Options, AnyArguments])
def test_a_step_that_could_take_three_things_does_not_make_a_jax_world(world: Any) -> None:
    assert is_numpy(world())
    assert not is_jax(world())
    check_select_env(world).raise_for_failures()
    assert sm.evaluate(world, episodes=2, workers=0).mean_reward > 0


def test_what_observes_a_state_is_a_jax_world() -> None:
    class Loose:
        spec = sm.Circle().spec

        def step(self, *given: Any) -> Any: ...

        def observe(self, state: Any) -> Any: ...

    assert is_jax(Loose())
    assert is_jax(sm.Circle())


# Heuristics are tried before a training


class TwiceTheSame(faulty.Sound):
    def greedy(self) -> Any:
        return [0, 0], [0, 0]


class NoSuchThing(sm.Circle):
    def greedy(self, key: Any, state: Any) -> Any:
        return state.nothing


def test_a_broken_heuristic_is_refused_before_a_training_begins(tmp_path: Path) -> None:
    said = r"environment 0, greedy after step 0 .* is wrong: items\[1\]=0 is picked twice"
    with pytest.raises(WorldFault, match=said):
        sm.train(TwiceTheSame, out=tmp_path / "run", **BRIEF)
    said = r"NoSuchThing: a step by its greedy\(key, state\) raised AttributeError: .*'nothing'"
    with pytest.raises(SelectError, match=said):
        sm.train(NoSuchThing(num_items=8, num_select=2), out=tmp_path / "run", steps=16)
    assert not (tmp_path / "run").exists()


# Plain data that a world offers


@pytest.mark.parametrize(
    ("offered", "check", "said"),
    [
        (
            {"time_limit": "10"},
            "time_limit's form",
            "time_limit='10': must be a whole number, not str",
        ),
        ({"time_limit": 0}, "time_limit's form", "time_limit=0: give at least 1 step, or None"),
        ({"command_names": ("half",)}, "command names", "give 2 names, one for each command"),
        ({"command_names": "ab"}, "command names", "command_names='ab': give 2 names"),
        ({"suits": {"discount": 0.9}}, "suits", "preset 'discount' is none of fast, paper"),
        ({"suits": {"fast": {"discont": 0.9}}}, "suits", "no setting 'discont': there are"),
    ],
)
def test_data_that_cannot_be_is_found_by_check_and_refused_by_train(
    tmp_path: Path, offered: dict[str, Any], check: str, said: str
) -> None:
    world = type("Odd", (faulty.Sound,), offered)
    failures = {result.name: result.message for result in check_select_env(world).failures}
    assert said in failures[check]
    with pytest.raises(SelectError, match="Odd offers") as told:
        sm.train(world, out=tmp_path / "run", **BRIEF)
    assert said in str(told.value)
    assert not (tmp_path / "run").exists()


def test_a_jax_world_is_asked_the_same(tmp_path: Path) -> None:
    class Odd(sm.Circle):
        command_names = ("stay",)  # type: ignore[assignment]
        suits = {"slow": {}}  # noqa: RUF012

    failures = {result.name: result.message for result in check_select_env(Odd()).failures}
    assert "preset 'slow' is none of fast, paper" in failures["suits"]
    with pytest.raises(SelectError, match=r"Odd offers command_names=\('stay',\): give 5 names"):
        sm.train(Odd(), out=tmp_path / "run", steps=16)


# What is said of resets, steps and closing


class WithInfo(faulty.Sound):
    def reset(self, seed: int) -> Any:
        return super().reset(seed), {}


class Late(faulty.Sound):
    """Breaks in the second step of the third evaluated episode, whose seed is 2."""

    def reset(self, seed: int) -> Any:
        self.seed = seed
        return super().reset(seed)

    def step(self, action: Any) -> Any:
        self.steps += 1
        return 1 // 0 if (self.seed, self.steps) == (2, 2) else self.sold(action)


class Closes(faulty.Sound):
    def close(self) -> None:
        raise RuntimeError("the door is stuck")


def test_a_reset_that_returns_an_info_too_is_told_so() -> None:
    with pytest.raises(WorldFault, match="reset returned a tuple of 2 things: return the obs"):
        sm.evaluate(WithInfo, episodes=1, workers=0)


def test_a_fault_in_an_evaluation_says_that_it_is_one() -> None:
    said = r"^in an evaluation, environment 2, step 2 of the episode with seed 2, raised ZeroDiv"
    with pytest.raises(WorldFault, match=said):
        sm.evaluate(Late, episodes=3, workers=0)


@pytest.mark.slow
def test_an_environment_that_cannot_be_closed_is_a_warning_and_loses_nothing(
    tmp_path: Path,
) -> None:
    with pytest.warns(UserWarning, match="close") as told:
        result = sm.train(Closes, out=tmp_path / "run", **BRIEF)
    assert np.isfinite(result.evaluation.mean_reward)
    said = [str(each.message).partition("; ")[0] for each in told]
    stuck = "close() raised RuntimeError: the door is stuck (test_early.py, line "
    assert said[0].startswith(f"the first environment of Closes: {stuck}")
    assert {text.partition(":")[0] for text in said[1:]} == {f"environment {i}" for i in range(8)}
    assert all(stuck in text for text in said)
