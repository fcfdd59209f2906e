"""Runs inside an agent's container: carries a port of loopback to the gateway's socket while a command runs.

    python3 forward.py SOCKET PORT COMMAND [ARGUMENT...]

The port listens before the command starts. The command has this process's streams, and its exit code becomes this
one's (128 + n for a signal n). Needs Python 3.6 and nothing else: agents bring the interpreter, not evalpipe.
"""

import contextlib
import signal
import socket
import subprocess
import sys
import threading


def pump(source, sink):
    """Copy until the end, and pass the end on."""
    try:
        while True:
            chunk = source.recv(65536)
            if not chunk:
                break
            sink.sendall(chunk)
    except OSError:
        pass  # One side broke off: the other is to see no orderly end.
    with contextlib.suppress(OSError):
        sink.shutdown(socket.SHUT_WR)


def carry(caller, path):
    gateway = socket.socket(socket.AF_UNIX)
    try:
        gateway.connect(path)
        back = threading.Thread(target=pump, args=(gateway, caller), daemon=True)
        back.start()
        pump(caller, gateway)
        back.join()
    except OSError:
        pass  # The attempt's socket is gone: the caller sees its connection closed.
    finally:
        gateway.close()
        caller.close()


def serve(listener, path):
    while True:
        caller, _ = listener.accept()
        threading.Thread(target=carry, args=(caller, path), daemon=True).start()


def main(path, port, command):
    listener = socket.socket(socket.AF_INET)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", int(port)))
    listener.listen(128)
    threading.Thread(target=serve, args=(listener, path), daemon=True).start()
    stopped, children = [], []

    def stop(number, frame):
        stopped.append(number)
        for child in children:
            child.terminate()

    # Before the command starts: whoever stops this process at that moment means both.
    signal.signal(signal.SIGTERM, stop)
    child = subprocess.Popen(command)
    children.append(child)
    if stopped:
        child.terminate()
    code = child.wait()
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], sys.argv[3:]))
