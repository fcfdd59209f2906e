"""The metering proxy between an agent and its model: it holds the key, counts, enforces caps, keeps the evidence."""

from evalpipe.gateway.attempt import Caps, Progress
from evalpipe.gateway.budget import SweepBudget
from evalpipe.gateway.evidence import CAP_REFUSALS, PROVIDER_FAULTS, Call, CallResult, Evidence, read_calls
from evalpipe.gateway.gateway import Gateway, OpenAttempt
from evalpipe.gateway.provider import Provider, ProviderError
from evalpipe.gateway.usage import TokenUsage
from evalpipe.gateway.wire import WireForm

__all__ = [
    "CAP_REFUSALS",
    "PROVIDER_FAULTS",
    "Call",
    "CallResult",
    "Caps",
    "Evidence",
    "Gateway",
    "OpenAttempt",
    "Progress",
    "Provider",
    "ProviderError",
    "SweepBudget",
    "TokenUsage",
    "WireForm",
    "read_calls",
]
