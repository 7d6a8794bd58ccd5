"""All checks of an environment, in the order they run, and what each needs to have passed."""

from collections.abc import Callable

from selectmdp.check import (
    forms,
    gym_env,
    nothing,
    numpy_env,
    numpy_rules,
    played,
    refusals,
    symmetry,
)
from selectmdp.check.gym_probe import GymProbe
from selectmdp.check.probe import JaxProbe
from selectmdp.check.report import Check
from selectmdp.interop.gymnasium import SelectGymEnv

_FORMS = (
    "vmap",
    "observation shapes",
    "observation dtypes",
    "reward and discount",
    "state keeps its form",
    "time_limit's form",
    "legal_after's form",
)
_EDGE = (*_FORMS, "legal picks accepted")


def _edge(probe: JaxProbe) -> GymProbe:
    """Validation of a JAX environment lives in `SelectGymEnv`: that is what is asked."""
    return GymProbe(SelectGymEnv(probe.env), probe.seed, probe.steps)


def _at_edge(check: Callable[[GymProbe], str]) -> Callable[[JaxProbe], str]:
    return lambda probe: check(_edge(probe))


def _time_limit(probe: JaxProbe) -> str:
    return f"{played.time_limit(probe)}; at the edge {gym_env.time_limit(_edge(probe))}"


JAX_CHECKS = (
    Check("protocol", forms.protocol),
    Check("jit", forms.jit, ("protocol",)),
    Check("vmap", forms.vmap, ("jit",)),
    Check("observation shapes", forms.observation_shapes, ("jit",)),
    Check("observation dtypes", forms.observation_dtypes, ("observation shapes",)),
    Check("reward and discount", forms.reward_form, ("jit",)),
    Check("state keeps its form", forms.state_form, ("jit",)),
    Check("command names", forms.command_names, ("protocol",)),
    Check("suits", forms.suits, ("protocol",)),
    Check("time_limit's form", forms.time_limit_form, ("protocol",)),
    Check("legal_after's form", forms.legal_after_form, ("observation shapes",)),
    Check("seeds", played.seeds, _FORMS),
    Check("finite", played.finite, _FORMS),
    Check("discount", played.discount, _FORMS),
    Check("legal mask", played.legal_mask, _FORMS),
    Check("legal_after", played.legal_after, _FORMS),
    Check("partial reward", played.partial_reward, _FORMS),
    Check("learning reward", played.learning_reward, (*_FORMS, "finite")),
    Check("greedy", played.greedy, _FORMS),
    Check("item −1", nothing.minus_one, _FORMS),
    Check("permutation", symmetry.permutation, _FORMS),
    Check("time limit", _time_limit, _FORMS),
    Check("legal picks accepted", _at_edge(gym_env.accepted), _FORMS),
    Check("duplicates refused", _at_edge(refusals.duplicates), _EDGE),
    Check("out-of-range picks refused", _at_edge(refusals.out_of_range), _EDGE),
    Check("illegal pairs refused", _at_edge(refusals.illegal), _EDGE),
)

_STEP = ("spaces", "reset and step")
_PLAYED = (*_STEP, "legal picks accepted", "observation shapes")

GYM_CHECKS = (
    Check("spaces", gym_env.spaces),
    Check("reset and step", gym_env.step_form, ("spaces",)),
    Check("legal picks accepted", gym_env.accepted, _STEP),
    Check("observation shapes", gym_env.observation_shapes, (*_STEP, "legal picks accepted")),
    Check("observation dtypes", gym_env.observation_dtypes, _PLAYED),
    Check("finite", gym_env.finite, _PLAYED),
    Check("seeds", gym_env.seeds, _PLAYED),
    Check("legal mask", gym_env.legal_mask, _PLAYED),
    Check("duplicates refused", refusals.duplicates, _PLAYED),
    Check("out-of-range picks refused", refusals.out_of_range, _PLAYED),
    Check("illegal pairs refused", refusals.illegal, _PLAYED),
    Check(
        "refusals change nothing",
        refusals.harmless,
        (*_PLAYED, "seeds", "out-of-range picks refused"),
    ),
    Check("permutation", gym_env.permutation),
    Check("time limit", gym_env.time_limit, _PLAYED),
)

_SHOWN = ("protocol", "steps")

NUMPY_CHECKS = (
    Check("protocol", numpy_env.protocol),
    Check("reset", numpy_env.reset_form, ("protocol",)),
    Check("time_limit's form", forms.time_limit_form, ("protocol",)),
    Check("legal_after", numpy_env.legal_after, ("reset",)),
    Check("steps", numpy_env.step_form, ("reset", "time_limit's form", "legal_after")),
    Check("command names", forms.command_names, ("protocol",)),
    Check("suits", forms.suits, ("protocol",)),
    Check("seeds", numpy_env.seeds, _SHOWN),
    Check("copies", numpy_env.copies, (*_SHOWN, "seeds")),
    Check("legal mask", numpy_env.legal_mask, _SHOWN),
    Check("rules between picks", numpy_rules.rules, (*_SHOWN, "seeds")),
    Check("partial reward", numpy_env.partial_reward, (*_SHOWN, "seeds")),
    Check("learning reward", played.learning_reward, _SHOWN),
    Check("greedy", numpy_env.greedy, _SHOWN),
    Check("time limit", numpy_env.time_limit, _SHOWN),
)
