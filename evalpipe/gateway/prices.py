"""What calls cost, by the price table of the pinned package `genai-prices`; what it does not know has no price."""

from datetime import datetime
from decimal import Decimal

from genai_prices import Usage, calc_price

from evalpipe.gateway.usage import TokenUsage


def cost_usd(price_list: str | None, model: str | None, usage: TokenUsage, when: datetime) -> Decimal | None:
    """The cost of one call in US dollars, or None when the list, the model or its price is not known.

    `price_list` is a provider's name in genai-prices (`anthropic`, `openai`, `google`, …). Some prices depend on the
    size of a prompt, so calls are priced one by one and not by their sum.
    """
    if price_list is None or model is None:
        return None
    cached = min(usage.cached, usage.input)
    reported = Usage(
        input_tokens=usage.input,
        cache_read_tokens=cached,
        cache_write_tokens=min(usage.cache_write, usage.input - cached),
        output_tokens=usage.output,
    )
    try:
        return calc_price(reported, model, provider_id=price_list, genai_request_timestamp=when).total_price
    except LookupError:
        return None


def is_priced(price_list: str | None, model: str, when: datetime) -> bool:
    """Whether calls of `model` can be priced."""
    return cost_usd(price_list, model, TokenUsage(input=1, output=1), when) is not None
