"""A policy of `selectmdp export` at work with onnxruntime and NumPy alone.

    pip install numpy onnxruntime
    python examples/onnx_inference.py policy.onnx                      # a random state
    python examples/onnx_inference.py policy.onnx --state state.json   # one of yours
    python examples/onnx_inference.py policy.onnx --compare RUN        # as selectmdp itself picks?

A state is a JSON object with `items` [N, F], `context` [U, G] if the policy was trained with some,
and if need be the masks `present` [N], `context_present` [U] and `legal` [N, C].
"""

import argparse
import json
import sys
from pathlib import Path

import numpy as np
import onnxruntime

MASKS = {"present": "items", "context_present": "context", "legal": "items"}
"""Each mask, and what it has as many rows as."""


def main() -> int:
    """The picks of a state; 1 if they are not those of the run to compare with."""
    asked = arguments()
    if not Path(asked.model).is_file():
        sys.exit(f"{asked.model} is no file: `selectmdp export RUN -o {asked.model}` makes one")
    session = onnxruntime.InferenceSession(asked.model)
    told = session.get_modelmeta().custom_metadata_map
    names = json.loads(told["command_names"])
    given = random_state(session, asked) if asked.state is None else read(asked.state)
    state = completed(session, given)
    items, commands, values = session.run(None, {name: each[None] for name, each in state.items()})
    print(f"{json.loads(told['algorithm'])}, N = {len(state['items'])}:")
    for item, command, phase in zip(items[0], commands[0], values[0], strict=True):
        if item < 0:
            may_pass = len(phase) > len(state["items"])  # its value has a row of its own
            print(f"  pass (value {phase[-1, 0]:.4f})" if may_pass else "  nothing legal is left")
            break
        named = names[command] if names else f"command {command}"
        print(f"  item {item}: {named} (value {phase[item, command]:.4f})")
    return 0 if asked.compare is None or agrees(asked.compare, state, items[0], commands[0]) else 1


def read(path: Path) -> dict:
    """What a person wrote."""
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError) as error:
        sys.exit(f"{path} is no state: {error}")


def random_state(session, asked) -> dict:
    """Items and context at random; a tenth is absent, a tenth of the pairs illegal."""
    if asked.num_items < 1 or asked.num_context < 1:
        sys.exit(
            f"--num-items {asked.num_items}, --num-context {asked.num_context}: must be at least 1"
        )
    rng = np.random.default_rng(asked.seed)
    rows = {"items": asked.num_items, "context": asked.num_context}
    features = {
        each.name: rng.uniform(-0.5, 0.5, (rows[each.name], each.shape[2]))
        for each in session.get_inputs()
        if each.name in rows
    }
    masks = {
        each.name: rng.random((rows[MASKS[each.name]], *each.shape[2:])) < 0.9
        for each in session.get_inputs()
        if each.name in MASKS
    }
    return {**features, **masks}


def completed(session, given: dict) -> dict:
    """A state as the model wants it: float32 and bool; a mask that is not given is all true."""
    names = [each.name for each in session.get_inputs()]
    if not isinstance(given, dict) or not set(names) - set(MASKS) <= set(given) <= set(names):
        has = sorted(given) if isinstance(given, dict) else type(given).__name__
        needed = " and ".join(name for name in names if name not in MASKS)
        sys.exit(f"the state has {has}: it needs {needed}, and may have {', '.join(names)} alone")
    state = {}
    for each in session.get_inputs():  # features before their masks
        rows = state[MASKS[each.name]].shape[:1] if each.name in MASKS else None
        shape = (*(rows or ["rows"]), *each.shape[2:])
        if each.name in MASKS and each.name not in given:
            state[each.name] = np.ones(shape, bool)
            continue
        try:
            array = np.asarray(given[each.name], np.float32)
        except (TypeError, ValueError) as error:
            sys.exit(f"{each.name} is no array of numbers: {error}")
        if array.ndim != len(shape) or array.shape[1:] != shape[1:] or 0 in array.shape:
            sys.exit(f"{each.name} has shape {array.shape}: it must be {shape}")
        if rows and (array.shape != shape or not np.isin(array, (0, 1)).all()):
            sys.exit(f"{each.name} must be 0 or 1, or false or true, in shape {shape}")
        if not np.isfinite(array).all():  # the graph would pick what cannot be
            sys.exit(f"{each.name} has numbers that are not finite; absent rows may hold any other")
        state[each.name] = array.astype(bool) if rows else array
    return state


def agrees(run: str, state: dict, items, commands) -> bool:
    """Whether selectmdp itself picks the same from this run; only this needs selectmdp."""
    import selectmdp

    policy = selectmdp.load(run)
    other = len(items) if len(items) != policy.spec.num_select else None
    picks = policy.select(state, other)
    same = (picks.items == items).all() and (picks.commands == commands).all()
    if same:
        print("the same picks as selectmdp's own")
    else:
        print(f"selectmdp picks {picks.items} with commands {picks.commands}", file=sys.stderr)
    return bool(same)


def arguments() -> argparse.Namespace:
    """What is asked on the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", nargs="?", default="policy.onnx")
    parser.add_argument("--state", type=Path, help="a JSON file; a random state if not given")
    parser.add_argument("--num-items", type=int, default=50, help="N of the random state")
    parser.add_argument("--num-context", type=int, default=4, help="U of the random state")
    parser.add_argument("--seed", type=int, default=0, help="of the random state")
    parser.add_argument("--compare", metavar="RUN", help="exit code 1 if selectmdp picks otherwise")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
