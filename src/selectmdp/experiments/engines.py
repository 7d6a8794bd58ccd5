"""What can make many runs: the processes of this machine, or a Ray cluster."""

from collections.abc import Callable

from selectmdp.experiments import local
from selectmdp.experiments.reproduce import Engine
from selectmdp.spec import SelectError


def _ray() -> Engine:
    try:
        from selectmdp.experiments import on_ray
    except ImportError as error:
        raise SelectError(f'Ray is not here ({error}): pip install "selectmdp[ray]"') from None
    return on_ray.run_all


ENGINES: dict[str, Callable[[], Engine]] = {"local": lambda: local.run_all, "ray": _ray}
"""By name; asked for when needed, since Ray is an extra."""
