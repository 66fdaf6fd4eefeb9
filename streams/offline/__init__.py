"""The offline provider: deterministic rules in the place of a language model."""

from mnemolog.streams.offline.model import RuleModel

__all__ = ["RuleModel"]
