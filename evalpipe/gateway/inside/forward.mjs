// Runs inside an agent's container: carries a port of loopback to the gateway's socket while a command runs.
//
//     node forward.mjs SOCKET PORT COMMAND [ARGUMENT...]
//
// The port listens before the command starts. The command has this process's streams, and its exit code becomes this
// one's (128 + n for a signal n). For images whose agent brings Node and where Python may be missing.

import { spawn } from "node:child_process";
import net from "node:net";
import os from "node:os";

const [path, port, command, ...args] = process.argv.slice(2);

const server = net.createServer({ allowHalfOpen: true }, (caller) => {
  const gateway = net.connect({ path, allowHalfOpen: true });
  caller.pipe(gateway);
  gateway.pipe(caller);
  // One side broke off: the other is to see no orderly end.
  caller.on("error", () => gateway.destroy());
  gateway.on("error", () => caller.destroy());
});

server.listen(Number(port), "127.0.0.1", () => {
  // Listened for before the command starts; heard only after this function has ended, when there is a child.
  process.on("SIGTERM", () => child.kill("SIGTERM"));
  const child = spawn(command, args, { stdio: "inherit" });
  child.on("error", (error) => {
    process.stderr.write(`${error.message}\n`);
    process.exit(127);
  });
  child.on("exit", (code, signal) => process.exit(code ?? 128 + os.constants.signals[signal]));
});
