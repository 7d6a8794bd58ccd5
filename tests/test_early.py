"""What is wrong with a world of one's own is told at once, not after a training."""

from pathlib import Path
from typing import Any

import faulty
import pytest

import selectmdp as sm
from selectmdp import cli
from selectmdp.check import check_select_env
from selectmdp.envs.base import is_jax, is_numpy
from selectmdp.spec import SelectError

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
