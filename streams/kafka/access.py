"""Why Kafka refuses a client, in words: its own client says "cannot be reached" for a password as for a dead broker."""

import asyncio
import ssl
from typing import Final

from aiokafka.conn import create_conn  # type: ignore[import-untyped] # aiokafka ships no types
from aiokafka.errors import (  # type: ignore[import-untyped] # as above
    AuthenticationFailedError,
    ClusterAuthorizationFailedError,
    GroupAuthorizationFailedError,
    KafkaError,
    SaslAuthenticationFailed,
    TopicAuthorizationFailedError,
    UnsupportedSaslMechanismError,
)

from mnemolog.schemas.errors import SettingsError
from mnemolog.streams.kafka import connection_options
from mnemolog.streams.kafka_address import KafkaAddress

SECONDS: Final = 5.0
RIGHTS: Final = {
    TopicAuthorizationFailedError: "Describe, DescribeConfigs (workers), and Read or Write, on the topic",
    GroupAuthorizationFailedError: "Read on the consumer group",
    ClusterAuthorizationFailedError: "Write on the topic (before Kafka 3.0 IdempotentWrite on the cluster), or Create",
}
"""The right of an account (ACL) whose absence each error means."""


async def refuse_wrong_access(address: KafkaAddress, error: Exception) -> None:
    """Raise `SettingsError` where a client failed with `error` for its account, certificate or rights.

    Returns where no broker says so: it may be away, and waiting may help.
    """
    if problem := missing_right(address, error):
        raise SettingsError(problem) from error
    for server in address.servers.split(","):
        if problem := await _problem_of(address, server):
            raise SettingsError(f"Kafka at {server} {problem}") from error


def missing_right(address: KafkaAddress, error: BaseException) -> str | None:
    """Which right the account lacks, in words, where that is what `error` means."""
    right = next((right for kind, right in RIGHTS.items() if isinstance(error, kind)), None)
    return f"{_account(address)} lacks a right at Kafka ({error}): give it {right}" if right else None


def _account(address: KafkaAddress) -> str:
    return f"the account {address.username}" if address.username else "this client"


async def _problem_of(address: KafkaAddress, server: str) -> str | None:
    host, _, port = server.rpartition(":")
    host, problem = host.strip("[]"), None
    try:
        connecting = create_conn(
            host, int(port), request_timeout_ms=round(SECONDS * 1000), **connection_options(address)
        )
        (await asyncio.wait_for(connecting, SECONDS)).close()
    except ssl.SSLCertVerificationError as error:
        problem = f"has a certificate that is not trusted ({error.verify_message}): " + (
            "renew it at the broker"
            if "expired" in error.verify_message
            else "set MNEMOLOG_KAFKA_CA_FILE to the certificates of its authority, and MNEMOLOG_KAFKA to a name in the "
            "certificate"
        )
    except (SaslAuthenticationFailed, AuthenticationFailedError):
        problem = f"refuses {_account(address)}: correct MNEMOLOG_KAFKA_USERNAME and MNEMOLOG_KAFKA_PASSWORD"
        if address.mechanism == "OAUTHBEARER":
            problem = "refuses the token that the function of MNEMOLOG_KAFKA_TOKEN returned: look at what it returns"
    except UnsupportedSaslMechanismError as error:
        problem = f"does not take MNEMOLOG_KAFKA_MECHANISM={address.mechanism} ({error})"
    except TimeoutError:
        return None  # slow
    except (KafkaError, OSError) as error:  # ssl.SSLError is an OSError
        uses_tls, speaks_tls = address.security.endswith("SSL"), await _speaks_tls(host, int(port))
        if speaks_tls and not uses_tls:
            problem = "speaks TLS: set MNEMOLOG_KAFKA_SECURITY to SSL or SASL_SSL"
        elif speaks_tls and (address.security == "SSL" or isinstance(error, ssl.SSLError)):
            problem = "wants a certificate that it trusts and that has not expired: set MNEMOLOG_KAFKA_CERTIFICATE_FILE"
        elif uses_tls and not speaks_tls and await _speaks_plaintext(host, int(port)):
            problem = "has no TLS: set MNEMOLOG_KAFKA_SECURITY to PLAINTEXT or SASL_PLAINTEXT"
    return problem


async def _speaks_tls(host: str, port: int) -> bool:
    """Whether a handshake begins; no certificate is looked at, and nothing is sent."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        _, writer = await asyncio.wait_for(asyncio.open_connection(host, port, ssl=context), SECONDS)
    except (OSError, TimeoutError):
        return False
    writer.close()
    return True


async def _speaks_plaintext(host: str, port: int) -> bool:
    try:
        async with asyncio.timeout(SECONDS):
            (await create_conn(host, port)).close()
    except (KafkaError, OSError, TimeoutError):
        return False
    return True
