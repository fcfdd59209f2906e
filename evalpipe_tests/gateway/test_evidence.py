"""What the words of providers come to: too many calls, no money left, a fault of theirs, or one of the agent."""

import pytest

from evalpipe.gateway.evidence import CallResult, classify
from evalpipe.gateway.usage import ReplyFacts
from evalpipe.gateway.wire import WireForm

_QUOTA = (
    "You exceeded your current quota, please check your plan and billing details. "
    + "* Quota exceeded for metric: generate_content_requests, limit: 20. " * 9
)


@pytest.mark.parametrize(
    ("status", "error", "result"),
    [
        (429, {"status": "RESOURCE_EXHAUSTED", "message": f"{_QUOTA}Please retry in 36.584147483s."}, "rate_limited"),
        (429, {"status": "RESOURCE_EXHAUSTED", "message": f"{_QUOTA}Please retry in 412.5ms."}, "rate_limited"),
        (429, {"status": "RESOURCE_EXHAUSTED", "message": f"{_QUOTA}Please retry in 2h47m56.58s."}, "usage_limit"),
        (429, {"status": "RESOURCE_EXHAUSTED", "message": _QUOTA}, "usage_limit"),
        (429, {"status": "RESOURCE_EXHAUSTED", "message": "Resource has been exhausted (quota)."}, "rate_limited"),
        (429, {"type": "insufficient_quota", "message": _QUOTA}, "usage_limit"),
        (400, {"type": "invalid_request_error", "message": "Your credit balance is too low"}, "usage_limit"),
        (400, {"type": "invalid_request_error", "message": "prompt is too long"}, "bad_request"),
        (529, {"type": "overloaded_error", "message": "Overloaded"}, "rate_limited"),
        (200, {"type": "overloaded_error", "message": "Overloaded"}, "rate_limited"),
        (200, {"type": "api_error", "message": "Internal server error"}, "provider_error"),
        (200, {"code": "rate_limit_exceeded", "message": "Rate limit reached"}, "rate_limited"),
        (200, {"code": "insufficient_quota", "message": "x"}, "usage_limit"),
        (403, {"type": "permission_error", "message": "no access to this model"}, "auth_error"),
        (402, {"message": "Payment required"}, "usage_limit"),
        (503, {"code": 503, "status": "UNAVAILABLE", "message": "The model is overloaded."}, "provider_error"),
    ],
)
def test_an_error_is_called_by_what_it_says_and_not_by_its_status_alone(
    status: int, error: dict[str, object], result: str
) -> None:
    facts = ReplyFacts(WireForm.GEMINI if "status" in error else WireForm.OPENAI_RESPONSES)
    facts.read({"error": error})
    assert classify(status, facts) is CallResult(result)
