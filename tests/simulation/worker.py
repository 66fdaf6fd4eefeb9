"""One life of a simulated worker process: the project's own supervisor over the stages that it is given."""

import asyncio
from collections.abc import Callable, Sequence

from mnemolog.streams.runtime.supervisor import run_stages
from tests.simulation.stages import Builder, World, stage_builders


class SimulatedWorker:
    """A process. `wiring` gives a builder for each App that it runs."""

    def __init__(
        self, name: str, world: World, *, wiring: Callable[[str, World], Sequence[Builder]] = stage_builders
    ) -> None:
        self.name = name
        self.stop = asyncio.Event()
        self._world = world
        self._wiring = wiring

    async def run(self) -> None:
        """Run until `stop` is set, as the real worker does."""
        await run_stages(self._wiring(self.name, self._world), self.stop)
