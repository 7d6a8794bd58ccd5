"""The model card of a run: what a policy is for, where it comes from, what it earned, its limits.

Markdown, made from the manifest of a checkpoint and the run's `result.json` alone; what stands in
these files is text to show, never Markdown to obey.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from selectmdp import runs
from selectmdp.algorithms import Algorithm, algorithm
from selectmdp.config import TrainConfig
from selectmdp.console import plus_minus
from selectmdp.export import why_not
from selectmdp.files import read_json
from selectmdp.learners.presets import preset
from selectmdp.spec import SelectError, Spec
from selectmdp.tasks import told_items
from selectmdp.worlds import has_name


def model_card(path: str | Path) -> str:
    """The card of a run's newest policy, or of the checkpoint in this very folder."""
    config, meta = runs.meta_of(runs.checkpoint_of(path))
    spec, row = Spec(**meta["spec"]), algorithm(config.algorithm)
    title = f"# {_text(config.algorithm)} on {_text(config.task)}, K = {spec.num_select}"
    parts = [
        title,
        *_task(config, spec, meta["command_names"]),
        *_training(config, row, meta),
        *_evaluation(config, _result(Path(path)), meta["step"]),
        "## Limits",
        _bullets(_limits(row, spec, meta["needs"], _items(config, spec))),
        *_use(
            spec, _asked(config, meta), why_not(config.algorithm, "legal_after" in meta["needs"])
        ),
    ]
    return "\n\n".join(parts) + "\n"


def _task(config: TrainConfig, spec: Spec, commands: Sequence[str]) -> list[str]:
    named = f": {', '.join(map(_text, commands))}" if commands else ""
    seen = "No other things are seen."
    if spec.num_context:
        seen = (
            f"{spec.num_context} things (U) of {spec.context_features} numbers each are seen and "
            "cannot be picked."
        )
    return [
        "## Task",
        f"In every step, pick {'up to ' * spec.allow_pass}{spec.num_select} (K) of N items and "
        f"give each one of {spec.num_commands} commands{named}. An item is described by "
        f"{spec.item_features} numbers. {seen} Trained with N = {_items(config, spec)}.",
        _table(("world", "value"), [("task", config.task), *config.options.items()]),
    ]


def _training(config: TrainConfig, row: Algorithm, meta: Mapping[str, Any]) -> list[str]:
    rows: list[tuple[Any, ...]] = [
        ("algorithm", config.algorithm, row.about),
        ("preset", config.preset, preset(config.preset).about),
        ("steps", f"{meta['step']:,} of {config.steps:,}", "environment steps"),
        ("time", f"{meta['seconds']:,.0f} s", "with compilation and evaluations"),
        ("seed", config.seed, "of everything that is random"),
        ("parameter sets", len(set(meta["phase_map"])), f"by phase: {meta['phase_map']}"),
        *((name, value, "a setting that is not the preset's") for name, value in _changed(config)),
        ("versions", ", ".join(f"{name} {each}" for name, each in meta["versions"].items()), ""),
    ]
    return ["## Training", _table(("what", "value", "meaning"), rows)]


def _changed(config: TrainConfig) -> list[tuple[str, Any]]:
    usual = preset(config.preset).settings()
    return [
        (name, value) for name, value in config.settings.items() if value != getattr(usual, name)
    ]


def _evaluation(config: TrainConfig, result: Mapping[str, Any] | None, step: int) -> list[str]:
    head = "## Evaluation"
    if result is None or result["steps"] != step:
        return [head, "None is stored with this policy: `selectmdp evaluate RUN` makes one."]
    judged = {config.algorithm: result, **result["references"]}
    rows = [
        (name, plus_minus(told["mean_reward"], told["ci95"]), told["unit"])
        for name, told in judged.items()
    ]
    dynamics = "" if result["dynamics"] is None else f", {_text(result['dynamics'])} dynamics"
    return [
        head,
        f"Mean reward of a step ± 95 % interval over {result['episodes']} episodes of "
        f"{result['evaluation_steps']} steps, the same for all (seed {result['evaluation_seed']}"
        f"{dynamics}); the policy never explores.",
        _table(("policy", "reward", "unit"), rows),
        "The interval is over episodes of this one training; another seed would have trained "
        "another policy.",
    ]


def _items(config: TrainConfig, spec: Spec) -> str:
    """N, or the range that it was drawn from."""
    return _text(told_items(config.options.get("num_items", spec.num_items)))


def _limits(row: Algorithm, spec: Spec, needs: Sequence[str], items: str) -> list[str]:
    """What is known to be out of reach, by the algorithm's row."""
    fixed = row.dense or row.per_item
    told = [
        f"N = {spec.num_items} only: the network has weights for each place."
        if fixed
        else f"Trained with N = {items}. It runs with any N; how well is not known until "
        "`selectmdp evaluate RUN --num-items …` has measured it.",
        "It knows the world that it trained in. Features outside the range seen there, or other "
        "rules, are extrapolation.",
    ]
    if not fixed:
        told.append(
            "The order of items does not matter to it: two items with the same features are the "
            "same to it, and a difference that an item does not show cannot be learned."
        )
        told.append(
            f"K = {spec.num_select} was trained. With another K, phases borrow the parameters of "
            "the nearest trained ones: it picks, and nothing was learned about it."
        )
    for known, sentence in (
        (not row.selected, "It does not know the picks already made in a step."),
        ("unselected" not in row.sources and not fixed, "An item does not see the other items."),
        (row.random_item, "Items are drawn at random; only their commands are learned."),
        (not row.rule.looks_ahead, "It does not look further than the reward of the step."),
        (row.commands is not None, f"It only ever gives: {', '.join(row.commands or ())}."),
        ("legal_after" in needs, "Which pairs stay legal after a pick is code of its world."),
    ):
        told += [sentence] if known else []
    return told


def _asked(config: TrainConfig, meta: Mapping[str, Any]) -> list[str]:
    """What `load` needs of a world of the user's own, which must then be given; mostly nothing."""
    used = ["legal_after", *(["sort_key"] if config.algorithm == "sorting" else [])]
    return [] if has_name(config.task) else [name for name in used if name in meta["needs"]]


def _use(spec: Spec, asked: Sequence[str], reason: str | None) -> list[str]:
    again = ")"
    if asked:
        again = f", env=world)  # the world it trained in, for its {' and '.join(asked)}"
    state = '{"items": items, "context": context}' if spec.num_context else '{"items": items}'
    code = (
        "```python\nimport selectmdp\n\n"
        f'policy = selectmdp.load("RUN"{again}\n'
        f"picks = policy.select({state})  # picks.items, picks.commands\n```"
    )
    exported = "As ONNX: `selectmdp export RUN -o policy.onnx`."
    if reason is not None:
        exported = f"It cannot be exported as ONNX: {reason}."
    return ["## Use", code, exported]


def _result(folder: Path) -> Mapping[str, Any] | None:
    """What the run earned at its end; a checkpoint alone, or a run under way, does not know."""
    path = folder / "result.json"
    try:
        told = read_json(path)
        # All that the card shows, so that a file that lacks it is told here.
        for name in ("steps", "episodes", "evaluation_steps", "evaluation_seed", "dynamics"):
            told[name]
        for judged in (told, *told["references"].values()):
            plus_minus(judged["mean_reward"], judged["ci95"])
            judged["unit"]
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise SelectError(
            f"{path} cannot be read ({error}): move it away for a card without evaluation"
        ) from None
    return told


def _bullets(sentences: Sequence[str]) -> str:
    return "\n".join(f"- {sentence}" for sentence in sentences)


def _table(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    lines = [head, ["---"] * len(head), *([_text(cell) for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _text(value: Any) -> str:
    """Text that means itself in Markdown: printable, on one line, marks escaped."""
    line = " ".join(str(value).split())
    return MARKS.sub(r"\\\g<0>", "".join(each for each in line if each.isprintable()))


MARKS = re.compile(r"""[]!"#$&'*+:<=>?@[\\^_`{|}~]|\.(?!\d)""")
"""What could mark up, or become a link."""
