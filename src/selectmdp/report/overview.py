"""The report: every claim of the paper with a verdict, every figure redrawn, as one page.

All numbers are made here, as plain data; the page draws them and knows nothing of its own.
"""

import math
import shlex
from collections.abc import Callable
from typing import Any

from selectmdp.experiments.cost import SECONDS
from selectmdp.experiments.figures import FIGURES, GENERALIZATION
from selectmdp.machine import ONE_THREAD
from selectmdp.report.across import across
from selectmdp.report.claims import CLAIMS, Claim
from selectmdp.report.drawn import figure_of, known_runs, made_with, reproduce_command
from selectmdp.report.judging import Evidence
from selectmdp.report.measures import cost_of, generalization_of, parameters_of
from selectmdp.report.page import asset, page
from selectmdp.report.paper import paper_of, sweep_command
from selectmdp.report.results import Results
from selectmdp.report.rules import judged_costs

TITLE = "Continual combinatorial selection, reproduced"
SCRIPTS = (
    *("dom.js", "chart.js", "marks.js", "claims.js", "across.js"),
    *("tables.js", "figures.js", "paper.js", "measures.js", "report.js"),
)


def claims_of(results: Results) -> list[dict[str, Any]]:
    """Every claim with its verdict, our number, the published one and what it rests on."""
    return [_judged(claim, results) for claim in CLAIMS]


def overview(
    results: Results, claims: list[dict[str, Any]], progress: Callable[[int, int], None]
) -> dict[str, Any]:
    """All that the page shows."""
    total = len(FIGURES) + 1
    figures = []
    for number, figure in enumerate(FIGURES.values()):
        progress(number, total)
        figures.append(figure_of(results, figure))
    made = next((figure for figure in figures if figure["runs"]), figures[0])
    return {
        "folder": str(results.folder),
        "facts": _facts(results),
        "problems": results.problems,
        "claims": claims,
        "across": across(results),
        "figures": figures,
        "paper": paper_of(results),
        "generalization": generalization_of(results),
        "cost": cost_of(results),
        "parameters": parameters_of(),
        "commands": _commands(results, made["budget"], made["preset"]),
    }


def page_of(data: dict[str, Any]) -> str:
    """The page that shows it."""
    return page(
        TITLE,
        body=asset("report.html"),
        style=asset("page.css", "report.css"),
        script=asset(*SCRIPTS),
        data=data,
    )


def _commands(results: Results, budget: str, preset: str) -> dict[str, str]:
    """What makes the rows again, each line a command; by this budget and preset what has none.

    `one_thread` goes before the command of a run that was made beside others.
    """
    played = made_with(results.generalization, known_runs(*GENERALIZATION))
    budgets = {seconds: name for name, seconds in SECONDS.items()}
    costs = dict.fromkeys(
        (budgets.get(float(row["seconds"] or 0), budget), row["preset"]) for row in results.cost
    )
    judged, _ = judged_costs(results.cost)
    made = {
        "generalization": [played or (budget, preset)],
        "cost": sorted(costs, key=lambda each: each[1] != judged) or [(budget, preset)],
    }
    told = {
        what: "\n".join(reproduce_command(results, what, *each) for each in pairs)
        for what, pairs in made.items()
    }
    everything = "\n".join(_everything(results, budget, preset))
    return {"all": everything, "one_thread": ONE_THREAD, **told}


def _everything(results: Results, budget: str, preset: str) -> list[str]:
    """What makes the whole page again; the same list stands in docs/results.md."""
    costs = [] if preset == "paper" else [reproduce_command(results, "cost", budget, "paper")]
    return [
        reproduce_command(results, "all", budget, preset),
        *costs,
        sweep_command(results.folder / "paper"),
        f"selectmdp report {shlex.quote(str(results.folder))} -o report.html --figures images",
    ]


def _judged(claim: Claim, results: Results) -> dict[str, Any]:
    judged = claim.judge(results)
    return {
        "name": claim.name,
        "text": claim.text,
        "verdict": judged.verdict,
        "ours": judged.ours,
        "published": claim.paper,
        "rule": claim.rule,
        "evidence": [_evidence(each) for each in judged.evidence],
        "lacking": judged.lacking,
    }


def _evidence(each: Evidence) -> dict[str, Any]:
    return {
        "what": each.what,
        "verdict": each.verdict,
        "value": each.estimate.value,
        "low": each.estimate.low,
        "high": each.estimate.high,
        "kind": each.kind,
        "published": each.published,
        "probability": each.probability,
        "least": each.least if math.isfinite(each.least) else None,
        "most": each.most if math.isfinite(each.most) else None,
    }


def _facts(results: Results) -> dict[str, Any]:
    """What all runs together are."""
    rows = [row for finals in results.finals.values() for row in finals]
    return {
        "runs": len({row["run"] for row in rows}),
        "hours": sum(float(row["seconds"] or 0) for row in rows) / 3600,
        "steps": sorted({int(row["steps"]) for row in rows}),
        "published_steps": sorted(
            {figure.full for name, figure in FIGURES.items() if results.finals[name]}
            | {figure.full for figure in GENERALIZATION if results.finals["generalization"]}
        ),
        **{
            name: sorted({row[name] for row in rows})
            for name in ("preset", "selectmdp", "jax", "machine", "cores")
        },
    }
