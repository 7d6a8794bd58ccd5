"""Every statement that the method rests on, checked numerically: what `selectmdp verify` runs."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from selectmdp.theory import (
    counts,
    decomposition,
    equi_invariance,
    equivalence,
    local_optimality,
    unified,
    universality,
)
from selectmdp.theory.plan import Plan, Progress, Verdict


class Check(NamedTuple):
    """One statement's check, and its share of the time."""

    run: Callable[[Plan, Progress], Verdict]
    share: int


CHECKS: Mapping[str, Check] = {
    "equivalence": Check(equivalence.check, 10),
    "equi_invariance": Check(equi_invariance.check, 6),
    "theorem_1": Check(local_optimality.check, 30),
    "theorem_2": Check(universality.check, 45),
    "parameter_counts": Check(counts.check, 1),
    "decomposition": Check(decomposition.check, 6),
    "unified_sharing": Check(unified.check, 2),
}


def verify(plan: Plan | None = None, progress: Progress | None = None) -> dict[str, Verdict]:
    """All checks by name, in order; all hold unless something is broken."""
    plan = plan or Plan()
    tell = progress or (lambda done, total: None)
    total, before = sum(check.share for check in CHECKS.values()), 0
    verdicts = {}
    for name, check in CHECKS.items():
        verdicts[name] = check.run(plan, _part(tell, before, check.share, total))
        before += check.share
    return verdicts


def _part(tell: Progress, before: int, share: int, total: int) -> Progress:
    """The progress of one check as part of the whole, in hundredths of a share."""

    def heard(done: int, of: int) -> None:
        tell(100 * before + 100 * share * done // of, 100 * total)

    return heard
