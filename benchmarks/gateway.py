"""What the gateway adds to a model call. Run by `make bench`; needs no network and no engine.

Fifty agents call a model server side by side, each one call after another: straight, and through sockets and keys of
the gateway, in turns in one run, so that a busy machine is busy for both. The server thinks for a while, as models
do, and streams its answer in small events; clients, server and gateway are processes of their own.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import os
import statistics
import time
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Final, NamedTuple

from aiohttp import ClientSession, TCPConnector, UnixConnector

from evalpipe.gateway import Gateway, Provider, WireForm
from evalpipe_tests.model_replies import Say
from evalpipe_tests.model_server import ModelServer

SIDE_BY_SIDE: Final = 50
CALLS_EACH: Final = 20
ROUNDS: Final = 3
THINKING_S: Final = 0.25
_BODY: Final = b'{"model": "claude-sonnet-4-5", "stream": true, "x": "' + b"x" * 20_000 + b'"}'
_PIECE: Final = 2_000
_ANSWER: Final = "word " * 2_000


class Target(NamedTuple):
    """Where a client calls: a Unix socket with its key, or the server's own port."""

    url: str
    socket: str | None
    key: str


async def _call(target: Target, first_wait_s: float, times: list[float]) -> None:
    connector = UnixConnector(target.socket) if target.socket else TCPConnector()
    async with ClientSession(connector=connector) as session:
        # Agents do not march in step.
        await asyncio.sleep(first_wait_s)
        for _ in range(CALLS_EACH):
            begun = time.perf_counter()
            async with session.post(
                f"{target.url}/v1/messages", data=_BODY, headers={"x-api-key": target.key}
            ) as reply:
                await reply.read()
                reply.raise_for_status()
            times.append(time.perf_counter() - begun)


async def _call_all(targets: Sequence[Target]) -> list[float]:
    times: list[float] = []
    waits = [THINKING_S * number / len(targets) for number in range(len(targets))]
    await asyncio.gather(*(_call(target, wait, times) for target, wait in zip(targets, waits, strict=True)))
    return times


def _run_clients(targets: Sequence[Target]) -> list[float]:
    return asyncio.run(_call_all(targets))


def _serve(port: multiprocessing.Queue[int], done: multiprocessing.synchronize.Event) -> None:
    with ModelServer([Say(_ANSWER)], delay_s=THINKING_S, piece=_PIECE) as server:
        port.put(server.port)
        done.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    rounds: int = parser.parse_args().rounds
    spawn = multiprocessing.get_context("spawn")
    ports, done = spawn.Queue(), spawn.Event()
    server = spawn.Process(target=_serve, args=(ports, done))
    server.start()
    url = f"http://127.0.0.1:{ports.get()}"
    straight, through, cpu = [], [], 0.0
    provider = Provider("server", url, frozenset({WireForm.ANTHROPIC_MESSAGES}), price_list="anthropic")
    with spawn.Pool(1) as clients, Gateway([provider]) as gateway, ExitStack() as attempts:
        opened = [attempts.enter_context(gateway.open_attempt(str(n), "server")) for n in range(SIDE_BY_SIDE)]
        sockets = [Target("http://localhost", str(attempt.socket), attempt.key) for attempt in opened]
        ports_of_server = [Target(url, None, "x")] * SIDE_BY_SIDE
        for _ in range(rounds):
            straight += clients.apply(_run_clients, (ports_of_server,))
            before = time.process_time()
            through += clients.apply(_run_clients, (sockets,))
            cpu += time.process_time() - before
    done.set()
    server.join()
    _report(straight, through, cpu)


def _report(straight: Sequence[float], through: Sequence[float], cpu_s: float) -> None:
    print(f"{SIDE_BY_SIDE} calls side by side, {len(through)} calls, a server that thinks {THINKING_S * 1000:.0f} ms")
    print(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    for name, pick in (("median", statistics.median), ("mean", statistics.fmean), ("95th percentile", _percentile_95)):
        own, gateway = pick(straight) * 1000, pick(through) * 1000
        print(
            f"{name:>16}: straight {own:7.2f} ms, through the gateway {gateway:7.2f} ms, added {gateway - own:6.2f} ms"
        )
    print(f"CPU of the gateway: {cpu_s / len(through) * 1000:.2f} ms a call")


def _percentile_95(values: Sequence[float]) -> float:
    return statistics.quantiles(values, n=20)[-1]


if __name__ == "__main__":
    main()
