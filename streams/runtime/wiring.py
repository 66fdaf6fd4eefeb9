"""Puts the Apps of a worker together: what each reads, through which windows, and when it may begin."""

from collections.abc import Callable, Collection
from datetime import UTC, datetime
from functools import partial

from mnemolog.schemas.provenance import Stage
from mnemolog.streams.errors import StageCrash
from mnemolog.streams.kafka.app import KafkaTuning, StageApp, build_app
from mnemolog.streams.runtime.layouts import check_layout
from mnemolog.streams.runtime.stage_windows import CHAINABLE, SOURCES, SharedResources, StageWindows
from mnemolog.streams.settings import StreamsSettings
from mnemolog.streams.stages.project import start_offsets

ALL_STAGES: tuple[Stage, ...] = ("journal", "extract", "embed", "match", "resolve", "project")


class StageFactory:
    """Builds a stage's App, afresh at each call: a stopped App cannot be started again.

    `stages` are those of this process: with the setting `chain`, and all of `CHAINABLE` among them, the App of the
    first hands its records on to the others in memory.
    """

    def __init__(
        self,
        settings: StreamsSettings,
        bootstrap: str,
        resources: SharedResources,
        stages: Collection[Stage] = (),
    ) -> None:
        self._settings = settings
        self._bootstrap = bootstrap
        self._resources = resources
        self._chained = settings.chain and set(CHAINABLE) <= set(stages)
        later = CHAINABLE[1:] if self._chained else ()
        self.app_stages = tuple(stage for stage in ALL_STAGES if stage in stages and stage not in later)
        """The stages that have an App of their own."""
        self._windows = StageWindows(settings, resources)
        self._built: dict[Stage, StageApp] = {}

    def partitions(self, stage: Stage) -> frozenset[int]:
        """The partitions that `stage` has now in this process."""
        return self._built[stage].assigned_partitions if stage in self._built else frozenset()

    def written_offsets(self) -> dict[int, int]:
        """Per partition of the log, where this process's `project` has written up to since it was assigned."""
        app = self._built.get("project")
        return {partition: offset for (_, partition), offset in app.window.finished.items()} if app else {}

    async def crash(self, stage: Stage, error: StageCrash) -> None:
        """Have a stage of this process started again."""
        await self._built[stage].crash(error)

    def builder(self, stage: Stage) -> Callable[[], StageApp]:
        """A way to build the stage's App. Raises `ProviderConfigurationError` for a model that it cannot have."""
        settings, shared = self._settings, self._resources
        is_first = self._chained and stage == CHAINABLE[0]
        chain = CHAINABLE if is_first else (stage,)
        for one in chain:
            shared.models.build_for(one)
        offsets = start_offsets(shared.projector, shared.kafka_log, shared.table_log) if stage == "project" else None
        check = partial(check_layout, self._bootstrap, chain, prefix=settings.topic_prefix)
        tuning = KafkaTuning(
            session_timeout=settings.session_timeout,
            heartbeat_interval=settings.heartbeat_interval,
            drain_timeout=settings.drain_grace,
            compression=None if settings.compression == "none" else settings.compression,
        )

        def build() -> StageApp:
            app = build_app(
                stage,
                SOURCES[stage],
                partial(self._windows.build, chain),
                bootstrap=self._bootstrap,
                prefix=settings.topic_prefix,
                tuning=tuning,
                start_offsets=offsets,
                chain=chain,
                check_start=check,
            )
            self._built.update(dict.fromkeys(chain, app))
            return app

        return build


def utc_now() -> datetime:
    return datetime.now(UTC)
