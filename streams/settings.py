"""Settings of Kafka, the stages and the models; each is an environment variable, too."""

from dataclasses import fields
from pathlib import Path
from typing import Annotated, Final, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, SecretStr, model_validator

from mnemolog.projections.settings import PostgresSettings, Seconds
from mnemolog.schemas.admission import DEFAULT_MAX_TURN_BYTES
from mnemolog.schemas.base import Fraction, Record
from mnemolog.schemas.costs import DEFAULT_CURRENCY, ModelPrice, PriceTable
from mnemolog.schemas.entities import ENTITY_TYPES, EntityType, SummaryLanguage
from mnemolog.schemas.facts import CATEGORIES, ConfidencePreset, Slot
from mnemolog.schemas.policy import (
    CallLinger,
    CallTokens,
    CallTurns,
    EffectivePolicy,
    SummaryChanges,
    SummaryTime,
    SummaryTokens,
)
from mnemolog.schemas.turn import ShownAge, ShownCount, ShownTimeout, ShownTokens
from mnemolog.streams.kafka_address import KafkaAddress, Mechanism, Security

ProviderName = Literal["offline", "openai"]
RULES: Final = EffectivePolicy()


def http_url(text: str) -> str:
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"{text!r} is no URL of a server: write it like http://localhost:11434/v1")
    if parts.username is not None or parts.password is not None:
        raise ValueError("a name or a password in the URL would be shown, and is not sent: set MNEMOLOG_API_KEY")
    return text


def model_url(text: str) -> str:
    if (tail := urlsplit(http_url(text)).path.rstrip("/")).endswith(("/completions", "/embeddings", "/responses")):
        raise ValueError(f"{text!r} ends in the name of a call ({tail}): write the address before it, often up to /v1")
    return text


class Fallback(Record):
    """Another server for the models; `embeds` says that it has the same embedding model."""

    base_url: Annotated[str, AfterValidator(model_url)]
    api_key: SecretStr | None = None
    chat_model: str | None = None
    embeds: bool = False

    @property
    def name(self) -> str:
        return urlsplit(self.base_url).netloc


class StreamsSettings(PostgresSettings):
    """Settings of the Kafka side and of the stages."""

    kafka: str | None = Field(default=None, description="host:port of Kafka; without it `mnemolog up` starts its own")
    kafka_security: Security = Field(
        default="PLAINTEXT", description="what Kafka's listener speaks: with TLS (SSL), and with an account (SASL)"
    )
    kafka_mechanism: Mechanism = Field(default="SCRAM-SHA-512", description="how the account signs in")
    kafka_username: str | None = Field(default=None, min_length=1, description="the account's name")
    kafka_password: SecretStr | None = Field(default=None, description="its password")
    kafka_password_file: Path | None = Field(
        default=None, description="file with the password, read for each new client of Kafka"
    )
    kafka_token: str | None = Field(
        default=None,
        pattern=r"^[\w.]+:\w+$",
        description="function that returns a token for OAUTHBEARER, `package.module:function`",
    )
    kafka_ca_file: Path | None = Field(
        default=None, description="certificates (PEM) that Kafka's is signed by; those of the system unless set"
    )
    kafka_certificate_file: Path | None = Field(
        default=None, description="certificate (PEM) of this client, where Kafka asks for one"
    )
    kafka_key_file: Path | None = Field(default=None, description="its private key, if not in the same file")
    kafka_rack: str | None = Field(
        default=None, min_length=1, description="rack or zone of this process: it reads from replicas there"
    )
    topic_prefix: str = Field(default="", pattern=r"^[a-zA-Z0-9._-]*$", description="put before every topic and group")
    partitions: int = Field(
        default=12, ge=1, le=1000, description="partitions of every topic; cannot be changed later (`up` uses 4)"
    )
    replication_factor: int = Field(default=1, ge=1, le=9, description="copies of every new topic; 3 in production")
    compression: Literal["zstd", "lz4", "gzip", "snappy", "none"] = Field(
        default="zstd", description="how producers compress batches"
    )
    max_in_flight: int = Field(default=256, ge=1, description="users whose records one stage processes at once")
    max_pending: int = Field(default=1024, ge=1, description="records one stage holds; of one owner, a sixteenth")
    chain: bool = Field(
        default=True,
        description="whether a worker with extract, embed, match and resolve hands records on between them in memory; "
        "false sends each through its topic, and all workers must agree",
    )
    drain_grace: Seconds = Field(
        default=30.0, description="seconds to finish started records on rebalance and shutdown"
    )
    session_timeout: Seconds = Field(default=10.0, description="seconds without heartbeat until Kafka removes a worker")
    watchdog: Seconds = Field(
        default=900.0,
        description="seconds without progress, while records are pending, after which a stage is restarted",
    )
    max_turn_bytes: int = Field(
        default=DEFAULT_MAX_TURN_BYTES, ge=1024, le=1_000_000, description="bytes of the largest turn that is accepted"
    )
    command_token: SecretStr | None = Field(
        default=None,
        min_length=1,
        description="token that each command must have in its header `mnemolog-token`, set for workers and clients; "
        "without it, whoever may publish turns may send commands",
    )

    provider: ProviderName = Field(
        default="offline",
        description="provider that extracts and resolves: `offline` (simple rules) or an OpenAI-compatible server",
    )
    embedding_provider: ProviderName | None = Field(
        default=None, description="provider that embeds; as `provider` unless set"
    )
    base_url: Annotated[str, AfterValidator(model_url)] | None = Field(
        default=None, description="URL of the OpenAI-compatible server, if it is not OpenAI"
    )
    api_key: SecretStr | None = Field(default=None, description="its key; OPENAI_API_KEY is read if unset")
    fallbacks: tuple[Fallback, ...] = Field(
        default=(),
        description="servers to ask, in this order, while the first cannot be reached, is out of quota or refuses the "
        "key, a JSON list: each with `base_url`, and where needed `api_key`, its own `chat_model`, and `embeds` (true) "
        "where it has the very same embedding model under the same name",
    )
    chat_model: str = Field(default="gpt-4.1-mini", description="model that extracts and resolves")
    resolve_model: str | None = Field(default=None, description="model that resolves; `chat_model` unless set")
    embedding_model: str = Field(default="text-embedding-3-small", description="model that embeds")
    embedding_dimensions: int | None = Field(
        default=None, ge=1, le=4000, description="for models that can shorten vectors"
    )
    structured_output: Literal["json_schema", "json_object", "none"] = Field(
        default="json_schema", description="how the server is asked for structured output"
    )
    leave_out: tuple[
        Literal["system", "max_tokens", "temperature", "seed", "response_format", "dimensions", "encoding_format"], ...
    ] = Field(
        default=(),
        description="parameters not sent to the server (a JSON list); one that it refuses is left out anyway. "
        "Without `system` the instructions are a part of the user's message",
    )
    prices: tuple[ModelPrice, ...] = Field(
        default=(),
        description="what models cost, a JSON list: each with `model` (a name, `*` for any letters), and money for a "
        "million tokens of `input`, `cached_input` and `output`, from the day `since` on; the first that fits counts",
    )
    currency: str = Field(
        default=DEFAULT_CURRENCY, min_length=1, max_length=12, description="the currency of `prices`, as it is shown"
    )
    llm_timeout: Seconds = Field(default=25.0, description="seconds one completion may take; below `drain_grace`")
    llm_max_tokens: int = Field(
        default=8192, ge=256, description="tokens of a completion at the most, with what a model thinks before it"
    )
    embedding_timeout: Seconds = Field(default=25.0, description="seconds one embedding call may take")
    llm_concurrency: int = Field(default=128, ge=1, description="completions at once")
    embedding_concurrency: int = Field(default=4, ge=1, description="embedding calls at once")
    embedding_batch: int = Field(default=256, ge=1, le=2048, description="texts in one embedding call at the most")
    embedding_linger: float = Field(
        default=0.010, ge=0, le=10, description="seconds to wait for more texts before a call"
    )
    # The profile is built from the known categories, so configured ones are added to them.
    categories: Annotated[tuple[Slot, ...], AfterValidator(lambda given: (*dict.fromkeys((*CATEGORIES, *given)),))] = (
        Field(
            default=CATEGORIES,
            description="categories a fact can have; given ones (a JSON list) are added to the known",
        )
    )
    entity_types: tuple[EntityType, ...] = Field(
        default=ENTITY_TYPES, description="types of entities that the extraction is asked for (a JSON list)"
    )
    detect_mood: bool = Field(
        default=False, description="ask for the emotion of each turn, its intensity and energy; kept with the turn"
    )

    duplicate_threshold: Fraction | None = Field(
        default=None, description="cosine similarity above which a fact is skipped; by embedding model if unset"
    )
    raw_duplicate_threshold: Fraction | None = Field(default=None, description="the same for raw stores")
    conflict_threshold: Fraction | None = Field(
        default=None, description="cosine similarity from which a known fact may conflict; by embedding model if unset"
    )
    near_duplicate_threshold: Fraction | None = Field(
        default=None, description="cosine similarity above which two facts of one turn are one"
    )
    ending_threshold: Fraction | None = Field(
        default=None, description="cosine similarity from which a known fact may be the one that a statement ends"
    )
    name_twin_threshold: Fraction | None = Field(
        default=None,
        description="cosine similarity from which the names of two things may mean the same, so that a new one is "
        "marked as a possible twin; 0 for never, then names get no vectors; by embedding model if unset",
    )
    search_threshold: Fraction | None = Field(
        default=None,
        description="cosine similarity from which a search shows a fact that has no word in common with the question, "
        "0 for all; by embedding model if unset",
    )
    search_model: str | None = Field(
        default=None,
        description="chat model that searches ask to order hits and for other wordings; `chat_model` unless set",
    )
    search_model_timeout: Seconds = Field(
        default=5.0, description="seconds a search waits for such a model, then it goes on without it"
    )
    candidates: int = Field(default=10, ge=1, le=100, description="known facts compared with a new one at the most")

    add_only: bool = Field(
        default=False, description="never change or end a fact; only equal words are duplicates (policies come first)"
    )
    confidence_preset: ConfidencePreset = Field(
        default="standard", description="first confidence of a fact: by how it was stated, or .40 for all (`cautious`)"
    )
    confirm_below: Fraction = Field(
        default=RULES.confirm_below,
        description="confidence below which no statement overwrites a high-risk fact or denies a fact of this "
        "confidence, and from which no single one denies a high-risk fact",
    )
    resend_window: float = Field(
        default=RULES.resend_window,
        ge=0,
        description="seconds within which a speaker who says the same once more confirms nothing",
    )
    high_risk: tuple[Slot, ...] = Field(
        default=RULES.high_risk,
        description="categories and keys whose overwrite waits for a confirmation (a JSON list)",
    )
    single_valued_keys: tuple[Slot, ...] = Field(
        default=(), description="keys that hold one value at a time (a JSON list), besides the known ones"
    )
    min_importance: Fraction = Field(default=0.0, description="importance below which a fact is not kept")
    ask_about_names: bool = Field(
        default=True,
        description="whether a model is asked, in the call about conflicts, which known one a doubtful name means; "
        "else, and by the offline rules, such a name is a new entity with possible twins",
    )

    conversation_messages: ShownCount = Field(
        default=RULES.conversation_messages,
        description="messages before a turn that its extraction is shown at the most",
    )
    conversation_tokens: ShownTokens = Field(
        default=RULES.conversation_tokens,
        description="estimated tokens that these may have; of a longer one the end is shown",
    )
    conversation_age: ShownAge = Field(
        default=RULES.conversation_age, description="seconds before the turn since when such a message was said"
    )
    known_entities: ShownCount = Field(
        default=RULES.known_entities,
        description="known entities that an extraction is told the names of at the most, those that the turn names "
        "first; with 0 none. The offline rules read none",
    )
    known_facts: ShownCount = Field(
        default=RULES.known_facts,
        description="known facts near the turn that its extraction is shown at the most, besides those of keys that "
        "hold one value; with 0 none. The offline rules read none",
    )
    known_tokens: ShownTokens = Field(default=RULES.known_tokens, description="estimated tokens that these may have")
    known_timeout: ShownTimeout = Field(
        default=RULES.known_timeout, description="seconds to wait for these, then an extraction goes on without"
    )

    call_turns: CallTurns = Field(
        default=RULES.call_turns,
        description="waiting turns of one conversation that a call may ask about; with 1 each turn has its own call. "
        "The offline rules take one at a time",
    )
    call_tokens: CallTokens = Field(
        default=RULES.call_tokens, description="estimated tokens that the messages of these turns may have together"
    )
    call_linger: CallLinger = Field(
        default=0.0, description="seconds after its publication that a turn waits for others to share its call"
    )

    entity_summary: SummaryTime = Field(
        default="off",
        description="when a model writes a summary of an entity from its facts: never, when a command asks for it "
        "(`on_demand`), or also after so many changed facts (`after_changes`)",
    )
    summary_changes: SummaryChanges = Field(
        default=RULES.summary_changes,
        description="changed facts of an entity after which `after_changes` has it summarised",
    )
    summary_tokens: SummaryTokens = Field(
        default=RULES.summary_tokens, description="estimated tokens that a summary may have"
    )
    summary_language: SummaryLanguage = Field(
        default="facts", description="whether a summary is in the language of its facts or in English"
    )

    expiry_interval: Seconds = Field(
        default=30.0, description="seconds between searches for facts whose end has passed"
    )

    metrics_host: str = Field(default="127.0.0.1", description="address of the worker's /metrics and /health")
    metrics_port: int = Field(
        default=9464, ge=0, le=65535, description="their port; 0 takes a free one, as `up` does if it is taken"
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="lowest level logged (`warning` in `up`)"
    )
    log_format: Literal["console", "json"] = Field(default="console", description="format of log lines")

    @property
    def price_table(self) -> PriceTable:
        return PriceTable(self.prices, self.currency)

    @model_validator(mode="after")
    def _check_consistency(self) -> Self:
        duplicate, conflict = self.duplicate_threshold, self.conflict_threshold
        if duplicate is not None and conflict is not None and conflict > duplicate:
            raise ValueError("MNEMOLOG_CONFLICT_THRESHOLD must not be above MNEMOLOG_DUPLICATE_THRESHOLD")
        if self.ending_threshold is not None and conflict is not None and self.ending_threshold > conflict:
            raise ValueError("MNEMOLOG_ENDING_THRESHOLD must not be above MNEMOLOG_CONFLICT_THRESHOLD")
        return self

    @model_validator(mode="after")
    def _check_kafka(self) -> Self:
        """An account or a certificate that would never be sent is a mistake, and the mistake may be a password."""
        if self.kafka_security != "PLAINTEXT" and not self.kafka:
            raise ValueError("MNEMOLOG_KAFKA_SECURITY needs MNEMOLOG_KAFKA: the embedded Kafka has no TLS")
        has_account = self.kafka_username and (self.kafka_password or self.kafka_password_file)
        if self.kafka_security.startswith("SASL"):
            if self.kafka_mechanism == "OAUTHBEARER" and not self.kafka_token:
                raise ValueError("MNEMOLOG_KAFKA_MECHANISM=OAUTHBEARER needs MNEMOLOG_KAFKA_TOKEN")
            if self.kafka_mechanism != "OAUTHBEARER" and not has_account:
                raise ValueError(
                    f"MNEMOLOG_KAFKA_SECURITY={self.kafka_security} needs MNEMOLOG_KAFKA_USERNAME and "
                    "MNEMOLOG_KAFKA_PASSWORD or MNEMOLOG_KAFKA_PASSWORD_FILE"
                )
        elif self.kafka_username or self.kafka_token:
            raise ValueError("an account of Kafka is set: MNEMOLOG_KAFKA_SECURITY must be SASL_SSL or SASL_PLAINTEXT")
        if not self.kafka_security.endswith("SSL") and (self.kafka_ca_file or self.kafka_certificate_file):
            raise ValueError("certificates for Kafka are set: MNEMOLOG_KAFKA_SECURITY must be SASL_SSL or SSL")
        return self

    @property
    def kafka_address(self) -> KafkaAddress:
        return KafkaAddress(
            self.kafka or "",
            security=self.kafka_security,
            mechanism=self.kafka_mechanism,
            username=self.kafka_username,
            password=self.kafka_password.get_secret_value() if self.kafka_password else None,
            password_file=self.kafka_password_file,
            token=self.kafka_token,
            ca_file=self.kafka_ca_file,
            certificate_file=self.kafka_certificate_file,
            key_file=self.kafka_key_file,
            rack=self.kafka_rack,
        )


def default_rules(settings: StreamsSettings) -> EffectivePolicy:
    """The rules where no policy is set."""
    names = [rule.name for rule in fields(EffectivePolicy) if rule.name in StreamsSettings.model_fields]
    rules = {name: getattr(settings, name) for name in names}
    if settings.provider == "offline":  # the rules are shown nothing of what is known, and take one turn at a time
        rules |= {"known_entities": 0, "known_facts": 0, "call_turns": 1}
    return EffectivePolicy(confidence=settings.confidence_preset, single_valued=settings.single_valued_keys, **rules)
