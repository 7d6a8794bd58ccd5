"""Two processes on one run: the second is refused with the first's id, and the first goes on."""

import random
from collections.abc import Callable

from benchmarks.faults.lab import Lab, Tally, heard
from benchmarks.faults.subject import RUNS


def two_processes(lab: Lab, trials: int, seed: int, done: Callable[[], None]) -> Tally:
    """A second comes while the first trains; some of the first are killed then; a third comes."""
    tally = Tally("two-processes", about="two processes on one run folder")
    rng = random.Random(f"rivals {seed}")
    for number in range(trials):
        preset = [*RUNS][number % len(RUNS)]
        out = lab.folder("shared")
        with lab.started(out, preset) as (first, told):
            while told.poll(300) and told.recv()[0] != "begun":
                pass
            second = lab.run(out, preset)
            if (
                second.how != "refused"
                or f"process {first.pid} is training here" not in second.said
            ):
                tally.untyped += 1
                tally.notes.append(f"{out}: the second was not refused: {second.said:.200}")
            if killed := rng.random() < 0.5:
                first.kill()
            ended = heard(first, told)
        if ended.how == "end":
            lab.judge_end(tally, out, preset)
        else:  # its lock is gone with it
            if not (killed and ended.how == "killed"):
                tally.lost += 1
                tally.notes.append(f"{out}: the second ended the first: {ended.said}")
            lab.judge(tally, out, preset, ended.step)
            lab.finish(tally, out, preset)
        tally.trials += 1
        done()
    return tally
