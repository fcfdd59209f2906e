"""An agent that asks a scripted model what to do, and does it: what the files of a workspace say of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from evalpipe_tests.model_replies import Say

KEY_VARIABLE = "EVALPIPE_TEST_KEY"
REAL_KEY = "sk-real-canary-0815-4711"

# Asks until the model says that it is done; each answer is a command for the shell.
_PROGRAM = """
import json, os, subprocess, sys, urllib.request
said, messages = "", [{"role": "user", "content": sys.stdin.read()}]
while said != "done":
    body = json.dumps({"model": os.environ["MODEL"], "messages": messages})
    headers = {"Authorization": "Bearer " + os.environ["OPENAI_API_KEY"], "Content-Type": "application/json"}
    url = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
    reply = json.load(urllib.request.urlopen(urllib.request.Request(url, body.encode(), headers)))
    said = reply["choices"][0]["message"]["content"]
    messages.append({"role": "assistant", "content": said})
    print(said, flush=True)
    if said != "done":
        subprocess.run(["sh", "-c", said], check=True)
"""


def write_asking_agent(root: Path, url: str, more: str = "") -> None:
    """Write the agent `asking` into the workspace at `root`, with its provider at `url`; `more` are lines of its."""
    (root / "data" / "providers").mkdir(exist_ok=True)
    (root / "data" / "providers" / "local.yaml").write_text(
        f"base_url: {url}\nforms: [openai_chat]\nkey_variable: {KEY_VARIABLE}\nprice_list: openai\nconcurrency: 2\n"
    )
    (root / "data" / "agents" / "asking.yaml").write_text(
        'adapter: command\nprovider: local\nforwarder: python\nmodel: gpt-5\nmodel_version: "1"\nscaffold: ours\n'
        f'scaffold_version: "1"\ncommand: [python3, -c, {json.dumps(_PROGRAM)}]\n'
        'variables: {OPENAI_BASE_URL: "{url}/v1", OPENAI_API_KEY: "{key}", MODEL: "{model}"}\n'
        f"max_turns: 5\n{more}"
    )


def working_once(command: str) -> Callable[[int, dict[str, Any]], Say]:
    """A script of the model: each attempt is first told `command`, and then that it is done."""
    return lambda number, document: Say(command if len(document["messages"]) == 1 else "done")
