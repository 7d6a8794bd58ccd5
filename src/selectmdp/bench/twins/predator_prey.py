"""Selective Predator-Prey (paper §5.1 and appendix) in plain NumPy, one animal at a time.

N predators and U preys live on distinct cells of a G x G grid. Each step the preys wander, then K
picked predators follow their commands, and every prey with enough picked predators among its 8
neighbouring cells is caught and reappears elsewhere. The reward is the number caught. The paper's
text asks for "more than two" predators, its figures for two or more: `captors` is 3 or 2. A cell is
an integer pair (x, y), each in 0..G-1.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Cells = npt.NDArray[np.int64]  # [count, 2]: x, y
Cell = tuple[int, int]
Picks = Sequence[tuple[int, int]]  # (predator index, index into the twin's commands)

DIRECTIONS = {"stay": (0, 0), "up": (0, 1), "down": (0, -1), "left": (-1, 0), "right": (1, 0)}
PREY_COMMANDS = ("stay", "up", "down", "left", "right")
PREY_PROBABILITIES = (0.6, 0.1, 0.1, 0.1, 0.1)


class PredatorPreyTwin:
    """The rules of Selective Predator-Prey; the state is passed in and out, never kept."""

    def __init__(
        self,
        *,
        num_items: int,
        num_context: int,
        num_select: int,
        grid: int,
        captors: int,
        commands: tuple[str, ...],
    ) -> None:
        """N predators, U preys, K, G, how many catch a prey, and the commands in index order."""
        if not 1 <= num_select <= num_items:
            raise ValueError(f"num_select={num_select} must lie in 1..num_items={num_items}")
        if num_context < 0:
            raise ValueError(f"num_context={num_context} must not be negative")
        if num_items + num_context > grid * grid:
            raise ValueError(f"{num_items} + {num_context} animals need a larger grid than {grid}")
        if captors < 1:
            raise ValueError(f"captors={captors} must be at least 1")
        if not commands or len(set(commands)) < len(commands) or set(commands) - set(DIRECTIONS):
            raise ValueError(f"commands={commands} must be distinct and among {tuple(DIRECTIONS)}")
        self.num_items = num_items
        self.num_context = num_context
        self.num_select = num_select
        self.grid = grid
        self.captors = captors
        self.commands = commands

    def reset(self, rng: np.random.Generator) -> tuple[Cells, Cells]:
        """Predators [N, 2] and preys [U, 2] on distinct uniformly random cells."""
        count = self.num_items + self.num_context
        indices = rng.choice(self.grid * self.grid, size=count, replace=False)
        cells = [self._cell(int(index)) for index in indices]
        predators = np.array(cells[: self.num_items], dtype=np.int64).reshape(-1, 2)
        preys = np.array(cells[self.num_items :], dtype=np.int64).reshape(-1, 2)
        return predators, preys

    def draw(self, rng: np.random.Generator) -> dict[str, npt.NDArray[Any]]:
        """All the randomness of one step.

        prey_command [U]: index into `PREY_COMMANDS`. order [K]: the order in which the picks move.
        reappear [U]: how far through the free cells a caught prey reappears, uniform in [0, 1).
        """
        return {
            "prey_command": rng.choice(5, size=self.num_context, p=PREY_PROBABILITIES),
            "order": rng.permutation(self.num_select),
            "reappear": rng.random(self.num_context),
        }

    def random_picks(self, rng: np.random.Generator) -> list[tuple[int, int]]:
        """K distinct predators, each with a uniformly random command."""
        chosen = rng.choice(self.num_items, size=self.num_select, replace=False)
        return [(int(item), int(rng.integers(len(self.commands)))) for item in chosen]

    def step(
        self,
        predators: Cells,
        preys: Cells,
        picks: Picks,
        draws: Mapping[str, npt.NDArray[Any]],
    ) -> tuple[Cells, Cells, float]:
        """Next predators [N, 2], next preys [U, 2] and the number caught; K picks or fewer."""
        selected = [predator for predator, _ in picks]
        if len(selected) > self.num_select or len(set(selected)) < len(selected):
            raise ValueError(f"picks={picks} must hold at most {self.num_select} distinct items")
        predator_cells = [(int(x), int(y)) for x, y in predators]
        prey_cells = [(int(x), int(y)) for x, y in preys]

        for u in range(self.num_context):
            command = PREY_COMMANDS[int(draws["prey_command"][u])]
            occupied = predator_cells + prey_cells
            prey_cells[u] = self._moved(prey_cells[u], command, occupied)

        for position in draws["order"]:
            if position >= len(picks):
                continue  # fewer than K were picked
            predator, command_index = picks[int(position)]
            command = self.commands[command_index]
            occupied = predator_cells + prey_cells
            predator_cells[predator] = self._moved(predator_cells[predator], command, occupied)

        hunters = [predator_cells[predator] for predator in selected]
        caught = [u for u in range(self.num_context) if self._is_caught(prey_cells[u], hunters)]

        # All the caught leave the grid together, then return one by one.
        taken = predator_cells + [prey_cells[u] for u in range(self.num_context) if u not in caught]
        for u in caught:
            prey_cells[u] = self._reappearance(taken, float(draws["reappear"][u]))
            taken.append(prey_cells[u])

        next_predators = np.array(predator_cells, dtype=np.int64).reshape(-1, 2)
        next_preys = np.array(prey_cells, dtype=np.int64).reshape(-1, 2)
        return next_predators, next_preys, float(len(caught))

    def _moved(self, cell: Cell, command: str, occupied: list[Cell]) -> Cell:
        """The cell after a command; a move off the grid or into an occupied cell is cancelled."""
        dx, dy = DIRECTIONS[command]
        x, y = cell[0] + dx, cell[1] + dy
        on_grid = 0 <= x < self.grid and 0 <= y < self.grid
        if not on_grid or (x, y) in occupied:
            return cell
        return x, y

    def _is_caught(self, prey: Cell, hunters: list[Cell]) -> bool:
        """Whether enough selected predators stand on the 8 cells around a prey."""
        neighbours = 0
        for hunter in hunters:
            if max(abs(hunter[0] - prey[0]), abs(hunter[1] - prey[1])) == 1:
                neighbours += 1
        return neighbours >= self.captors

    def _reappearance(self, taken: list[Cell], share: float) -> Cell:
        """The free cell that lies this share of the way through them, in order of their index.

        There is always one: the prey has just left its own.
        """
        everywhere = [self._cell(index) for index in range(self.grid * self.grid)]
        free = [cell for cell in everywhere if cell not in taken]
        return free[int(share * len(free))]

    def _cell(self, index: int) -> Cell:
        """The cell (x, y) whose index is x * G + y."""
        return index // self.grid, index % self.grid


def features(cells: Cells, grid: int) -> npt.NDArray[np.float64]:
    """Cells [count, 2] with x and y scaled from 0..G-1 to [-1, 1]; 0 on a grid of one cell."""
    scaled = np.zeros(cells.shape, dtype=np.float64)
    if grid == 1:
        return scaled
    for row, (x, y) in enumerate(cells):
        scaled[row] = (2 * x / (grid - 1) - 1, 2 * y / (grid - 1) - 1)
    return scaled
