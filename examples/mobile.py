"""mobile-env: which users of a mobile network connect to which base station (extra `envs`).

selectmdp train examples.mobile:small --minutes 10
"""

from selectmdp.interop.mobile import Mobile


def small(num_select: int = 2, heuristic: str = "waiting") -> Mobile:
    """5 users, 3 base stations."""
    return Mobile("small", num_select, heuristic=heuristic)


def medium(num_select: int = 4, heuristic: str = "waiting") -> Mobile:
    """15 users, 7 base stations."""
    return Mobile("medium", num_select, heuristic=heuristic)
