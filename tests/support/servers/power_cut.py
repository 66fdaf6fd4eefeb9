"""What a power cut does to a single broker: the newest records, which were in memory only, are gone."""

from pathlib import Path


def cut_log(kafka: Path, topic: str, partition: int, *, share: float) -> int:
    """Cut off so much (0 to 1) of the newest file of a partition of a Kafka that does not run; the bytes cut.

    `kafka` is its folder in the data folder of the stack. Kafka drops what is left of a broken batch when it starts.
    """
    newest = max((kafka / "data" / f"{topic}-{partition}").glob("*.log"))
    size = newest.stat().st_size
    kept = round(size * (1 - share))
    with newest.open("r+b") as file:
        file.truncate(kept)
    return size - kept
