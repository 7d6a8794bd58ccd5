"""Sizes and options: what breaks a rule is refused, and the message says value, rule and fix."""

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from selectmdp.envs import Circle, CircleRules, PredatorPrey
from selectmdp.envs.base import check_commands
from selectmdp.spec import SelectError, Spec, check_count
from selectmdp.tasks import describe, make


def spec(**sizes: Any) -> Spec:
    usual = {
        "num_items": 5,
        "item_features": 3,
        "num_context": 2,
        "context_features": 3,
        "num_select": 2,
        "num_commands": 4,
    }
    return Spec(**(usual | sizes))


def refusal(make_it: Any, *args: Any, **options: Any) -> str:
    """The message with which this is refused; never anything but a SelectError."""
    with pytest.raises(SelectError) as caught:
        make_it(*args, **options)
    return str(caught.value)


def test_the_smallest_world_is_one_item_and_one_command() -> None:
    smallest = Spec(1, 1, 0, 0, 1, 1)
    assert smallest.num_items == smallest.num_select == smallest.num_commands == 1
    assert smallest.num_context == smallest.context_features == 0


def test_choosing_all_items_is_allowed() -> None:
    assert spec(num_items=5, num_select=5).num_select == 5


def test_whole_numbers_of_other_libraries_become_ints() -> None:
    sizes = spec(num_items=np.int64(5), num_select=np.uint8(2), num_commands=jnp.asarray(4))
    assert [type(sizes.num_items), type(sizes.num_select), type(sizes.num_commands)] == [int] * 3
    assert (sizes.num_items, sizes.num_select, sizes.num_commands) == (5, 2, 4)


def test_choosing_more_than_there_are_is_refused() -> None:
    message = refusal(spec, num_items=5, num_select=6)
    assert "num_select=6" in message
    assert "num_items=5" in message
    assert "choose at most num_items" in message


@pytest.mark.parametrize("name", ["num_items", "item_features", "num_select", "num_commands"])
def test_sizes_that_cannot_be_0_say_so(name: str) -> None:
    assert refusal(spec, **{name: 0}) == f"{name}=0: must be at least 1"


@pytest.mark.parametrize(
    "name",
    [
        "num_items",
        "item_features",
        "num_context",
        "context_features",
        "num_select",
        "num_commands",
    ],
)
def test_no_size_is_negative(name: str) -> None:
    assert refusal(spec, **{name: -1}) == f"{name}=-1: must not be negative"


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (True, "bool"),
        (np.True_, "bool"),
        (3.0, "float"),
        ("3", "str"),
        (None, "NoneType"),
        (np.float32(3), "float32"),
        (np.array(1.5), "ndarray"),
        (np.array(True), "ndarray"),
        (np.array([3, 3]), "ndarray"),
    ],
)
def test_what_is_no_whole_number_is_refused_by_its_kind(value: Any, kind: str) -> None:
    message = refusal(spec, num_items=value)
    assert message == f"num_items={value!r}: must be a whole number, not {kind}"


def test_a_fraction_of_jax_is_refused_too() -> None:
    assert "must be a whole number" in refusal(check_count, "steps", jnp.asarray(2.5))


def test_context_without_numbers_is_refused() -> None:
    message = refusal(spec, num_context=2, context_features=0)
    assert "context_features=0" in message
    assert "num_context=2" in message
    assert "or set num_context=0" in message


def test_a_count_keeps_its_name_in_the_message() -> None:
    assert check_count("steps", 7) == 7
    assert check_count("steps", 0) == 0
    assert refusal(check_count, "steps", -3) == "steps=-3: must not be negative"


@pytest.mark.parametrize(
    ("commands", "complaint"),
    [
        ((), "give a tuple of one or more of stay, up, down, left, right"),
        ("up", "give a tuple of one or more of stay, up, down, left, right"),
        (None, "give a tuple of one or more of stay, up, down, left, right"),
        (5, "give a tuple of one or more of stay, up, down, left, right"),
        (("up", "jump"), "'jump' is none of stay, up, down, left, right"),
        (("up", 1), "1 is none of stay, up, down, left, right"),
        (("up", ["down"]), "['down'] is none of stay, up, down, left, right"),
        (("up", "down", "up"), "a name occurs twice; give each once"),
    ],
)
@pytest.mark.parametrize("world", [Circle, PredatorPrey])
def test_commands_must_be_distinct_known_names(world: Any, commands: Any, complaint: str) -> None:
    message = refusal(world, commands=commands)
    assert message == f"commands={commands!r}: {complaint}"


def test_commands_keep_their_order_and_may_come_as_a_list() -> None:
    assert check_commands(["right", "stay"]) == ("right", "stay")  # type: ignore[arg-type]
    env = Circle(commands=["right", "stay"])  # type: ignore[arg-type]
    assert env.command_names == ("right", "stay")
    assert env.spec.num_commands == 2
    assert hash(env) == hash(Circle(commands=("right", "stay")))


def test_a_circle_world_refuses_what_it_cannot_play() -> None:
    assert refusal(Circle, dynamics="paper") == "dynamics='paper': must be one of figures, text"
    assert "num_select=6 is more than num_items=5" in refusal(Circle, num_items=5)
    assert refusal(Circle, num_select=0) == "num_select=0: must be at least 1"
    assert refusal(Circle, time_limit=0) == "time_limit=0: must be at least 1"
    assert refusal(Circle, num_context=-1) == "num_context=-1: must not be negative"
    assert "must be a whole number, not bool" in refusal(Circle, num_items=True)
    message = refusal(Circle, rules="text")
    assert "rules='text'" in message
    assert "CircleRules" in message


@pytest.mark.parametrize("value", [-0.1, 10, float("nan"), True, "0.1", None])
def test_a_rule_of_the_circle_world_is_a_number_from_0_to_10(value: Any) -> None:
    usual = {
        "growth_low": 0.1,
        "growth_high": 0.2,
        "growth_share": None,
        "restarts": True,
        "noise": 0.0,
        "radius_noise": 0.0,
        "replacement_low": 0.0,
        "replacement_high": 0.1,
    }
    assert CircleRules(**usual).noise == 0.0
    message = refusal(CircleRules, **(usual | {"noise": value}))
    assert message == f"noise={value!r}: must be a number, at least 0 and less than 10"
    swapped = refusal(CircleRules, **(usual | {"growth_low": 0.3}))
    assert swapped == "growth_low=0.3 is more than growth_high=0.2: swap them"


def test_more_animals_than_cells_are_refused() -> None:
    assert PredatorPrey(num_items=12, num_context=4, num_select=12, grid=4).grid == 4
    message = refusal(PredatorPrey, num_items=13, num_context=4, grid=4)
    assert "grid=4" in message
    assert "13 predators and 4 preys do not fit on 16 cells" in message
    assert "take a larger grid" in message


def test_captors_that_could_never_meet_are_refused() -> None:
    assert PredatorPrey(num_select=3, captors=3).captors == 3
    message = refusal(PredatorPrey, num_select=2, captors=3)
    assert "captors=3" in message
    assert "num_select=2" in message
    assert "take fewer" in message
    assert "captors=9" in refusal(PredatorPrey, num_items=20, num_select=12, captors=9)


@pytest.mark.parametrize("name", ["grid", "captors", "time_limit"])
def test_the_grid_world_checks_its_own_sizes(name: str) -> None:
    assert refusal(PredatorPrey, **{name: 0}) == f"{name}=0: must be at least 1"
    assert refusal(PredatorPrey, **{name: -2}) == f"{name}=-2: must not be negative"
    assert "must be a whole number, not float" in refusal(PredatorPrey, **{name: 2.0})


def test_a_task_is_made_by_name() -> None:
    assert make("circle", num_items=7, dynamics="text") == Circle(num_items=7, dynamics="text")
    assert make("predator-prey", num_items=None) == PredatorPrey()
    assert refusal(make, "circles") == "task 'circles' is none of circle, predator-prey, league"


def test_an_unknown_option_lists_those_there_are() -> None:
    message = refusal(make, "circle", captors=3)
    assert message.startswith("captors=3: circle has no such option; it has num_items, num_context")
    assert "spec" not in message
    assert "spec" in refusal(make, "circle", spec=spec())


def test_a_world_says_what_a_number_of_it_means() -> None:
    assert describe(make("circle", num_items=7, num_context=3)) == {
        "dynamics": "figures",
        "unit": "area",
        "num_items": 7,
        "num_context": 3,
        "num_select": 6,
        "num_commands": 5,
    }
    world = describe(make("predator-prey", captors=3))
    assert (world["dynamics"], world["unit"]) == ("captors-3", "caught")
