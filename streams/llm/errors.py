"""What a provider can fail with, by what the stage does about it."""


class ProviderError(Exception):
    """Base of the providers' errors."""


class PromptRefusedError(ProviderError):
    """This prompt can never succeed (too long, refused, always timing out): the turn fails, others go on."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
        self.detail = detail


class ProviderConfigurationError(ProviderError):
    """The provider cannot work as configured (missing package, unknown model name): refused at start."""
