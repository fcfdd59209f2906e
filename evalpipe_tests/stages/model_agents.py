"""An agent of a test workspace that asks a scripted model what to do, and does it."""

from __future__ import annotations

import json

from evalpipe_tests.stages.workspaces import TestBench

KEY_VARIABLE = "EVALPIPE_TEST_KEY"
REAL_KEY = "sk-real-canary-0815-4711"
MEND = "sed -i 's/return 11/return 12/' clock.py"

# Asks until the model says that it is done; each answer is a command for the shell.
_PROGRAM = """
import json, os, subprocess, sys, urllib.request
said, prompt = "", sys.stdin.read()
while said != "done":
    body = json.dumps({"model": os.environ["MODEL"], "messages": [{"role": "user", "content": prompt}]})
    headers = {"Authorization": "Bearer " + os.environ["OPENAI_API_KEY"], "Content-Type": "application/json"}
    url = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
    reply = json.load(urllib.request.urlopen(urllib.request.Request(url, body.encode(), headers)))
    said = reply["choices"][0]["message"]["content"]
    print(said, flush=True)
    if said != "done":
        subprocess.run(["sh", "-c", said], check=True)
"""


def add_model_agent(bench: TestBench, url: str, more: str = "", sweep: str = "") -> None:
    """Write the agent `asking`, whose provider is at `url`, and put it into the sweep `spring` alone."""
    root = bench.workspace.root / "data"
    (root / "providers").mkdir(exist_ok=True)
    (root / "providers" / "local.yaml").write_text(
        f"base_url: {url}\nforms: [openai_chat]\nkey_variable: {KEY_VARIABLE}\nprice_list: openai\nconcurrency: 2\n"
    )
    (root / "agents" / "asking.yaml").write_text(
        'adapter: command\nprovider: local\nforwarder: python\nmodel: gpt-5\nmodel_version: "1"\nscaffold: ours\n'
        f'scaffold_version: "1"\ncommand: [python3, -c, {json.dumps(_PROGRAM)}]\n'
        'variables: {OPENAI_BASE_URL: "{url}/v1", OPENAI_API_KEY: "{key}", MODEL: "{model}"}\n'
        f"max_turns: 5\n{more}"
    )
    bench.rewrite("data/sweeps/spring.yaml", "agents: [reference, empty]", "agents: [asking]")
    path = root / "sweeps" / "spring.yaml"
    path.write_text(f"{sweep}{path.read_text()}")
