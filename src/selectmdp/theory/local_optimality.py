"""Theorem 1 (paper §4): where a shared network cannot improve, its dense twin has no slope either.

A shared network is trained to a stationary point of L_Θ, in float64. What the proof rests on is
measured on the way: Q_ω(θ) = Q_θ, lemma 1, and that the slope of L_Ω at ω(θ) does not leave
ω(Θ). At the end the slope of L_Ω must have vanished with that of L_Θ. The proof speaks of slopes
alone, and a point without slope may be a saddle of L_Ω: so directions of negative curvature, and
random ones, are followed to see whether they descend.
"""

from typing import Any, NamedTuple

import jax
import numpy as np
from scipy.optimize import minimize

from selectmdp.theory import networks, targets
from selectmdp.theory.landscape import Flat, Landscape, Setting, landscape
from selectmdp.theory.networks import Sizes
from selectmdp.theory.plan import Plan, Progress, Verdict
from selectmdp.theory.targets import EQUI_INVARIANT, Kind

STATIONARY = 1e-9
"""The gradient of L_Θ is at most so long where a training has arrived."""
ALLOWED = 1e-8
"""And that of L_Ω there."""
EXACT = 1e-10
"""Rounding in what the proof rests on; lemma 1 and the tangent space relative to loss and slope."""
BENT = 1e-6
"""Curvature that is no rounding."""
STEP = 0.01
"""How far a direction is followed to see whether it descends."""
DIRECTIONS = 32
PLACE = Kind(targets.by_place, 1)

SETTINGS = (
    Setting(Sizes(0, 3, 1, 1, channels=1, hidden=1), "sums", 100),
    Setting(Sizes(1, 3, 1, 2, channels=1, hidden=1), "sums", 60),
    Setting(Sizes(1, 3, 2, 2, channels=2), "pairwise maxima", 40, penalty=1e-3),
    Setting(Sizes(2, 3, 1, 2, channels=2), "sorted statistics", 30, penalty=1e-3),
)


class Arrival(NamedTuple):
    """A stationary point of L_Θ, and how it was come by."""

    theta: Flat
    slope: float
    """|∇L_Θ| there."""
    path: list[tuple[float, float]]
    """|∇L_Θ| and |∇L_Ω| on the way."""


def check(plan: Plan, progress: Progress) -> Verdict:
    """Trainings from several starts in every setting, and the controls."""
    points: list[dict[str, Any]] = []
    unconverged, done, total = 0, 0, len(SETTINGS) * plan.starts
    broken = plan.broken
    with jax.enable_x64(True):
        for setting in SETTINGS:
            kind = PLACE if broken == "target" else EQUI_INVARIANT[setting.target]
            ground = landscape(setting, kind, plan.seed)
            for start in range(plan.starts):
                begin = beginning(setting, plan.seed + start)
                arrival = train(ground, begin)
                if arrival.slope <= STATIONARY:
                    told = {"target": setting.target, "penalty": setting.penalty}
                    points.append({**told, **judged(ground, begin, arrival, broken == "untie")})
                unconverged += arrival.slope > STATIONARY
                progress(done := done + 1, total)
        controls = controlled(plan.seed)
    exact = all(max(p["outputs"], p["lemma_1"], p["tangent"]) <= EXACT for p in points)
    worst = max((point["dense_slope"] for point in points), default=1.0)
    strict = [point for point in points if point["shared_curvature"] > BENT]
    return Verdict(
        statement="a stationary θ is stationary as ω(θ) too (theorem 1)",
        checked="slope of L_Ω at ω(θ*) for trained θ*; Q_ω(θ) = Q_θ, lemma 1, tangent space",
        holds=len(points) >= len(SETTINGS) and exact and worst <= ALLOWED < min(controls.values()),
        instances=len(points),
        max_error=worst,
        allowed=ALLOWED,
        details={
            "unconverged": unconverged,
            "largest": {
                name: max((point[name] for point in points), default=1.0)
                for name in ("outputs", "lemma_1", "tangent", "shared_slope")
            },
            "descent_found": any(point["descends"] for point in points),
            "saddles": sum(point["descends"] for point in points),
            "strict_minima": len(strict),
            "strict_minima_that_are_saddles": sum(point["descends"] for point in strict),
            "random_directions": DIRECTIONS * len(points),
            "random_directions_that_descend": sum(p["random_descents"] for p in points),
            "points": points,
            "controls": controls,
        },
    )


def beginning(setting: Setting, seed: int) -> Flat:
    """A random θ."""
    theta = networks.init(np.random.default_rng([seed, 1]), setting.sizes)
    return np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(theta)])


def train(ground: Landscape, begin: Flat) -> Arrival:
    """BFGS, then a trust region with the exact Hessian, then Newton's steps to the last digits."""
    path: list[tuple[float, float]] = []

    def note(theta: Flat) -> None:
        _, dense = ground.dense_slope(ground.projection @ theta)
        shared = ground.projection.T @ np.asarray(dense)
        path.append((float(np.linalg.norm(shared)), float(np.linalg.norm(dense))))

    note(begin)
    slope, options = ground.shared_slope, {"gtol": 1e-5, "maxiter": 800}
    theta = minimize(slope, begin, jac=True, method="BFGS", callback=note, options=options).x
    if path[-1][0] < 1e-2:  # otherwise its weights still grow, and there is nothing to arrive at
        theta = minimize(
            slope,
            theta,
            jac=True,
            hess=ground.shared_curvature,
            method="trust-exact",
            options={"gtol": 1e-7, "maxiter": 40},
        ).x
        note(theta)
    for _ in range(4):
        if not STATIONARY / 1e3 < path[-1][0] < 1e-4:
            break
        # Some directions change no output; the pseudo-inverse leaves them alone.
        newton = np.linalg.pinv(ground.shared_curvature(theta), 1e-9, hermitian=True)
        theta = theta - newton @ slope(theta)[1]
        note(theta)
    return Arrival(theta, path[-1][0], path)


def judged(ground: Landscape, begin: Flat, arrival: Arrival, untied: bool) -> dict[str, Any]:
    """What is so at a stationary point, and what the proof rests on at the start as well."""
    where = ground.untied if untied else lambda omega: omega
    starts = [where(ground.projection @ theta) for theta in (begin, arrival.theta)]
    omega = np.asarray(starts[1])
    curvature = np.asarray(ground.dense_curvature(omega))
    curvatures, directions = np.linalg.eigh(curvature)
    # Within ω(Θ): where k < 2, some directions of Θ change no network, and would seem flat.
    own = np.linalg.eigvalsh(ground.tangent.T @ curvature @ ground.tangent)
    bent = directions[:, curvatures < -BENT].T
    slope = float(np.linalg.norm(ground.dense_slope(omega)[1]))
    rng = np.random.default_rng(0)
    random = rng.normal(size=(DIRECTIONS, len(omega)))
    random /= np.linalg.norm(random, axis=1, keepdims=True)
    return {
        "loss": float(ground.dense_loss(omega)),
        "outputs": float(ground.apart(arrival.theta, omega)),
        "lemma_1": max(lemma_1_error(ground, np.asarray(start)) for start in starts),
        "tangent": tangent_error(ground, np.asarray(starts[0])),
        "shared_slope": arrival.slope,
        "dense_slope": slope,
        "shared_curvature": float(own[0]),
        "dense_curvature": float(curvatures[0]),
        # With a slope it is no saddle: any direction would do.
        "descends": slope <= ALLOWED and any(descends(ground, omega, each) for each in bent[:3]),
        "random_descents": sum(descends(ground, omega, direction) for direction in random),
        "profile": profile(ground, omega, directions[:, 0]),
        "random_profile": profile(ground, omega, random[0]),
        "path": thinned(arrival.path),
    }


def lemma_1_error(ground: Landscape, omega: Flat, directions: int = 3) -> float:
    """The largest |L_Ω(ω + d) − L_Ω(ω + σ(d))| over all σ and random d, relative to the loss."""
    rng = np.random.default_rng(1)
    worst = 0.0
    for direction in rng.normal(0.0, 0.1, (directions, len(omega))):
        plain = float(ground.dense_loss(omega + direction))
        turned = np.asarray(ground.dense_losses(omega[None] + direction[ground.moves]))
        worst = max(worst, float(np.abs(turned - plain).max()) / plain)
    return worst


def tangent_error(ground: Landscape, omega: Flat) -> float:
    """The share of the slope of L_Ω that leaves the space ω(Θ)."""
    slope = np.asarray(ground.dense_slope(omega)[1])
    outside = slope - ground.tangent @ (ground.tangent.T @ slope)
    return float(np.linalg.norm(outside) / np.linalg.norm(slope))


def descends(ground: Landscape, omega: Flat, direction: Flat) -> bool:
    """Whether a short step along a direction, or against it, lowers the loss beyond rounding."""
    here = float(ground.dense_loss(omega))
    return any(
        float(ground.dense_loss(omega + step * direction)) < here * (1.0 - 1e-12)
        for step in (STEP, -STEP)
    )


def profile(ground: Landscape, omega: Flat, direction: Flat) -> list[tuple[float, float]]:
    """Steps along a direction, and what the loss gains by them."""
    steps = np.linspace(-0.6, 0.6, 13)
    losses = np.asarray(ground.dense_losses(omega[None] + steps[:, None] * direction[None]))
    gains = losses - losses[6]
    return [(_short(step), _short(gain)) for step, gain in zip(steps, gains, strict=True)]


def controlled(seed: int) -> dict[str, float]:
    """The smallest of what fails without the premises: a target by place, and a weight untied."""
    setting = SETTINGS[1]
    begin = beginning(setting, seed)
    wrong = landscape(setting, PLACE, seed)
    right = landscape(setting, EQUI_INVARIANT[setting.target], seed)
    by_place = wrong.projection @ begin
    untied = np.asarray(right.untied(right.projection @ begin))
    return {
        "target that depends on places": min(
            lemma_1_error(wrong, by_place), tangent_error(wrong, by_place)
        ),
        "one weight untied": min(
            lemma_1_error(right, untied),
            tangent_error(right, untied),
            float(right.apart(begin, untied)),
        ),
    }


def thinned(path: list[tuple[float, float]], most: int = 30) -> list[tuple[int, float, float]]:
    """Some of the path with its steps' numbers, the last ones always."""
    kept = {*range(0, len(path), max(len(path) // most, 1)), *range(len(path))[-5:]}
    return [(step, _short(path[step][0]), _short(path[step][1])) for step in sorted(kept)]


def _short(number: float) -> float:
    """Three digits: enough for a picture."""
    return float(f"{number:.3g}")
