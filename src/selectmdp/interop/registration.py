"""Gymnasium's ids for the paper's worlds; importing this module registers them.

    import gymnasium, selectmdp.interop.registration
    gymnasium.make("selectmdp/Circle-v0", num_items=50, num_select=6)

or, in one, `gymnasium.make("selectmdp.interop.registration:selectmdp/Circle-v0")`. Entry points are
strings, so that JAX is imported when an environment is made and not before.
"""

import gymnasium

WORLD_OF_ID = {
    "selectmdp/Circle-v0": "circle",
    "selectmdp/PredatorPrey-v0": "predator-prey",
}


def register() -> None:
    """Register each id that is not registered yet."""
    for name, world in WORLD_OF_ID.items():
        if name in gymnasium.registry:
            continue
        gymnasium.register(
            id=name,
            entry_point="selectmdp.interop.gymnasium:make",
            vector_entry_point="selectmdp.interop.vector:make",
            # A step before a reset is ours to refuse, with our message; so is the time limit.
            order_enforce=False,
            kwargs={"world": world},
        )


register()
