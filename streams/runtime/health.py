"""How a worker is: its stages, what it waits for, and which of its background loops fail."""

from dataclasses import dataclass, field


@dataclass(slots=True, kw_only=True)
class Health:
    """Filled by those who know; `/health` shows it.

    `stages`: whether each is a member of its group. `waiting_for`: by server that the start waits for, why.
    `failing`: by background loop whose last round failed, its error.
    """

    stages: dict[str, bool] = field(default_factory=dict)
    waiting_for: dict[str, str] = field(default_factory=dict)
    failing: dict[str, str] = field(default_factory=dict)

    @property
    def ready(self) -> bool:
        """Whether turns are processed. A failing background loop delays no turn, and a restart would not help it."""
        return not self.waiting_for and bool(self.stages) and all(self.stages.values())
