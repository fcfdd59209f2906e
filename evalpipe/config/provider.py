"""`data/providers/<name>.yaml`: where calls of models go. The key itself stands in no file: a variable holds it."""

import re
from typing import Literal, Self
from urllib.parse import urlsplit

from pydantic import Field, model_validator

from evalpipe.config.values import ConfigModel, Count, Slug, Text, refuse

WireFormName = Literal["anthropic_messages", "openai_responses", "openai_chat", "gemini"]


class ProviderConfig(ConfigModel):
    """A provider of models, or a server of the team's own. Its name is the name of its file."""

    name: Slug = Field(description="the name of the file, without `.yaml`")
    base_url: Text = Field(description="what stands before `/v1/…` in the addresses of its calls")
    forms: tuple[WireFormName, ...] = Field(description="how it is spoken to")
    key_variable: Text | None = Field(
        default=None, description="the environment variable that holds its key; never the key itself"
    )
    price_list: Text | None = Field(
        default=None, description="its name in genai-prices; without it the cost of calls is left open"
    )
    concurrency: Count = Field(default=4, description="the most attempts that use it at one time")

    @model_validator(mode="after")
    def _fields_are_of_a_provider(self) -> Self:
        url = urlsplit(self.base_url)
        faults = []
        if url.scheme not in ("http", "https") or not url.hostname or url.username or url.query or url.fragment:
            # Without its text: what does not look like an address may be a key.
            faults.append(("base_url", "is no address: write https://host, and a path where there is one"))
        if not self.forms:
            faults.append(("forms", "is empty; name at least one"))
        if self.key_variable is not None and re.fullmatch(r"[A-Z_][A-Z0-9_]{0,99}", self.key_variable) is None:
            faults.append(("key_variable", "is no name of a variable: capitals, digits and _, as ANTHROPIC_API_KEY"))
        refuse(faults)
        return self
