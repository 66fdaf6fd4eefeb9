"""A Kafka that asks for accounts and certificates: the embedded one with two more listeners, SASL_SSL and SSL.

Its own listener, without any of it, stays for the broker itself; tests make topics and give rights there.
"""

import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

import jwt
from aiokafka.protocol.admin import CreateAclsRequest  # type: ignore[import-untyped] # aiokafka ships no types
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from mnemolog.embedded import kafka
from mnemolog.embedded.child import Child
from mnemolog.embedded.data_folder import LOOPBACK, PORTS
from mnemolog.embedded.jars import cache_folder, ensure_jars, read_lock
from mnemolog.streams.kafka import connected_admin
from mnemolog.streams.kafka_address import KafkaAddress

PASSWORD: Final = "correct horse"  # noqa: S105 - of a server of the tests
SESSION_MILLISECONDS: Final = 2000
TOPIC, GROUP, LITERAL, PREFIXED, ALLOW = 2, 3, 3, 4, 3
READ, WRITE, CREATE, DESCRIBE, DESCRIBE_CONFIGS = 3, 4, 5, 8, 10
"""Kafka's numbers in requests about rights."""
_PACKAGE: Final = "org.apache.kafka.common.security"
MODULES: Final = {
    "scram-sha-512": f"{_PACKAGE}.scram.ScramLoginModule required;",
    "plain": f'{_PACKAGE}.plain.PlainLoginModule required user_worker="{PASSWORD}";',
    "oauthbearer": f"{_PACKAGE}.oauthbearer.OAuthBearerLoginModule required;",
}


def token() -> str:
    """A token that a broker without a key server takes: a JSON Web Token without signature."""
    now = datetime.now(UTC)
    return jwt.encode({"sub": "worker", "iat": now, "exp": now + timedelta(hours=1)}, key="", algorithm="none")


@dataclass(frozen=True, slots=True, kw_only=True)
class SecuredKafka:
    """`settings` has what a client sets to sign in as a user, by listener."""

    plain: str
    sasl: str
    tls: str
    folder: Path

    def scram(self, user: str = "worker") -> dict[str, Any]:
        listener = {"kafka": self.sasl, "kafka_security": "SASL_SSL", "kafka_ca_file": self.folder / "ca.pem"}
        return listener | {"kafka_username": user, "kafka_password": PASSWORD}

    def token(self) -> dict[str, Any]:
        path = f"{__name__}:token"
        more = {"kafka_mechanism": "OAUTHBEARER", "kafka_token": path, "kafka_username": None, "kafka_password": None}
        return self.scram() | more

    def certificate(self) -> dict[str, Any]:
        files = {"kafka_ca_file": self.folder / "ca.pem", "kafka_certificate_file": self.folder / "client.pem"}
        return {"kafka": self.tls, "kafka_security": "SSL"} | files

    async def allow(
        self, user: str, operation: int, name: str, *, resource: int = TOPIC, pattern: int = LITERAL
    ) -> None:
        """Give a user a right on a topic or group, or on all whose names begin so."""
        right = CreateAclsRequest(resource, name, pattern, f"User:{user}", "*", operation, ALLOW)
        async with connected_admin(KafkaAddress(self.plain)) as admin:
            answer = await admin._send_request(right)
        assert answer.creation_responses[0][0] == 0, answer


@asynccontextmanager
async def secured_kafka(folder: Path) -> AsyncIterator[SecuredKafka]:
    """Started in `folder`: `worker` may do everything, `publisher` and `least` have its password and no right."""
    plain, controller, sasl, tls = (port for port in random.sample(PORTS, 4))
    jars = ensure_jars(cache_folder(folder), jars=read_lock())
    plan = kafka.KafkaPlan(folder=folder, jars=jars, port=plain, controller_port=controller, log=folder / "log")
    _write_certificates(folder)
    properties = kafka.server_properties(plan)
    own = {name: properties[name] for name in ("listeners", "advertised.listeners")}
    added = f",SASL_SSL://{LOOPBACK}:{sasl},SSL://{LOOPBACK}:{tls}"
    properties |= {name: value + added for name, value in own.items()} | {
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SASL_SSL:SASL_SSL,SSL:SSL",
        "inter.broker.listener.name": "PLAINTEXT",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(folder / "server.pem"),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(folder / "ca.pem"),
        "listener.name.ssl.ssl.client.auth": "required",
        "sasl.enabled.mechanisms": "SCRAM-SHA-512,PLAIN,OAUTHBEARER",
        **{f"listener.name.sasl_ssl.{name}.sasl.jaas.config": module for name, module in MODULES.items()},
        "listener.name.sasl_ssl.scram-sha-512.connections.max.reauth.ms": str(SESSION_MILLISECONDS),
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS;User:worker;User:CN=worker",
    }
    plan.temporary.mkdir()
    (folder / kafka.PROPERTIES).write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
    account = f"SCRAM-SHA-512=[name={{}},password={PASSWORD}]".format
    users = tuple(part for user in ("worker", "publisher", "least") for part in ("--add-scram", account(user)))
    format_storage = ("kafka.tools.StorageTool", "format", "--cluster-id=A", "-c", kafka.PROPERTIES, *users)
    await Child(kafka._command(plan, format_storage)).wait_until_finished(timeout=60)
    started: list[Child] = []
    try:
        with patch.object(kafka, "server_properties", lambda _: properties):
            await kafka.start_kafka(plan, started.append)
        yield SecuredKafka(plain=plan.bootstrap, sasl=f"{LOOPBACK}:{sasl}", tls=f"{LOOPBACK}:{tls}", folder=folder)
    finally:
        for child in started:
            await child.stop(timeout=10)


def _write_certificates(folder: Path) -> None:
    """`ca.pem`, `other-ca.pem` that signed nothing, and those of server and client, valid or expired."""
    authority = _new_key()
    for name in ("ca", "other-ca"):
        key = authority if name == "ca" else _new_key()
        (folder / f"{name}.pem").write_bytes(_signed(name, key, key, name).public_bytes(Encoding.PEM))
    for name, subject, days in (
        ("server", "kafka", 1),
        ("client", "worker", 1),
        ("expired-server", "kafka", 0),
        ("expired-client", "worker", 0),
    ):
        key = _new_key()
        private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        signed = _signed(subject, key, authority, "ca", days=days).public_bytes(Encoding.PEM)
        (folder / f"{name}.pem").write_bytes(private + signed)


def _new_key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


def _signed(
    subject: str, key: ec.EllipticCurvePrivateKey, authority: ec.EllipticCurvePrivateKey, issuer: str, *, days: int = 1
) -> x509.Certificate:
    def named(name: str) -> x509.Name:
        return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])

    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(named(subject))
        .issuer_name(named(issuer))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=days))
        .add_extension(x509.BasicConstraints(ca=subject == issuer, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address(LOOPBACK))]), critical=False)
        .sign(authority, hashes.SHA256())
    )
