"""Where Kafka is and how its clients sign in."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

Security = Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]
Mechanism = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"]


@dataclass(frozen=True, slots=True)
class KafkaAddress:
    """Brokers and what they ask for.

    `servers` are host:port, several separated by commas. Files are read when a client is made, so that a client made
    after a rotation has the new password and certificate. `token` is the dotted name of a function without arguments
    (`package.module:function`), async or not, that returns a token for OAUTHBEARER. `rack` is where this process runs:
    consumers then fetch from a replica of that rack, where the brokers have a rack-aware selector.
    """

    servers: str
    security: Security = "PLAINTEXT"
    mechanism: Mechanism = "SCRAM-SHA-512"
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    password_file: Path | None = None
    token: str | None = None
    ca_file: Path | None = None
    certificate_file: Path | None = None
    key_file: Path | None = None
    rack: str | None = None

    def __str__(self) -> str:
        return self.servers
