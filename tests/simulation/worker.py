"""One life of a simulated worker process: the project's own supervisor over its stages."""

import asyncio

from mnemolog.streams.runtime.supervisor import run_stages
from tests.simulation.stages import World, stage_builders


class SimulatedWorker:
    """A process."""

    def __init__(self, name: str, world: World) -> None:
        self.name = name
        self.stop = asyncio.Event()
        self._world = world

    async def run(self) -> None:
        """Run until `stop` is set, as the real worker does."""
        builders = stage_builders(self.name, self._world)
        last = [build for stage, build in builders.items() if stage == "project"]
        first = [build for stage, build in builders.items() if stage != "project"]
        await run_stages(first, self.stop, last=last)
