"""What a check of an environment found: a verdict a row, and how a table of checks is walked.

A check is a function of one probe. It returns a sentence saying what it covered, raises `Wrong`
with what is wrong and how to mend it, or raises `NotChecked` with the reason.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from selectmdp.check.watch import Hangs
from selectmdp.factories import told
from selectmdp.spec import SelectError

Status = Literal["pass", "fail", "not checked"]


@dataclass(frozen=True)
class CheckResult:
    """The verdict of one check."""

    name: str
    status: Status
    message: str
    """What was covered; or what is wrong and how to mend it; or why it was not checked."""


@dataclass(frozen=True)
class CheckReport:
    """The verdicts of all checks on one environment."""

    subject: str
    """What was checked."""
    results: tuple[CheckResult, ...]

    @property
    def passed(self) -> bool:
        return not self.failures

    @property
    def failures(self) -> tuple[CheckResult, ...]:
        return tuple(result for result in self.results if result.status == "fail")

    def raise_for_failures(self) -> None:
        """Raise a SelectError that lists every failed check, or return where there is none."""
        if self.passed:
            return
        lines = [f"- {result.name}: {result.message}" for result in self.failures]
        raise SelectError(
            f"{self.subject} fails {len(lines)} of {len(self.results)} checks:\n" + "\n".join(lines)
        )

    def to_json(self) -> dict[str, Any]:
        """The report as plain data."""
        return {"passed": self.passed, **asdict(self)}

    def __str__(self) -> str:
        rows = [f"{row.status:>11}  {row.name}: {row.message}" for row in self.results]
        failed = len(self.failures)
        verdict = f"{failed} checks fail" if failed else "all checks pass"
        return "\n".join([*rows, f"{self.subject}: {verdict}"])


class Wrong(Exception):
    """The environment breaks a rule; the text says which and how to mend it."""


class NotChecked(Exception):
    """The rule does not apply, or could not be tested; the text says why."""


@dataclass(frozen=True)
class Check:
    """One row of a table of checks."""

    name: str
    run: Callable[[Any], str]
    needs: tuple[str, ...] = ()
    """Checks without which this one says nothing: it is skipped unless they passed."""


def walk(
    checks: Sequence[Check], probe: object, progress: Callable[[int, int], None]
) -> tuple[CheckResult, ...]:
    """Every check's verdict on the probe, in the table's order; `progress` hears (done, all)."""
    results: dict[str, CheckResult] = {}
    for check in checks:
        progress(len(results), len(checks))
        unmet = [name for name in check.needs if results[name].status != "pass"]
        if unmet:
            message = f"first mend what {' and '.join(map(repr, unmet))} says"
            results[check.name] = CheckResult(check.name, "not checked", message)
        else:
            results[check.name] = _verdict(check, probe)
    return tuple(results.values())


def close(got: Any, want: Any) -> Any:
    """Where two arrays agree up to float32's rounding at the scale of the second."""
    scale = np.abs(want[np.isfinite(want)]).max(initial=0.0)
    return np.isclose(got, want, rtol=1e-4, atol=1e-5 * (1 + scale), equal_nan=True)


def _verdict(check: Check, probe: object) -> CheckResult:
    try:
        return CheckResult(check.name, "pass", check.run(probe))
    except Wrong as wrong:
        return CheckResult(check.name, "fail", str(wrong))
    except NotChecked as reason:
        return CheckResult(check.name, "not checked", str(reason))
    except Hangs as hangs:
        return CheckResult(check.name, "fail", f"{hangs}; mend that first")
    except KeyboardInterrupt as stopped:
        raise KeyboardInterrupt(", ".join([f"in check {check.name!r}", *stopped.args])) from stopped
    except (Exception, SystemExit) as error:  # the environment's own: it fails this check only
        message = f"the environment raised {told(error)}; mend that first"
        return CheckResult(check.name, "fail", message)
