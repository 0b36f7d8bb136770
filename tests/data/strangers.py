#!/usr/bin/env python3
"""A launcher for two nodes: before the second one hears where the first one listens, many strangers connect there, and say nothing for as long as the job runs.

ENTER: what enters a node. COUNT: how many. With "crowd" as its first argument this is the crowd itself."""
import json, resource, socket, struct, subprocess, sys, time

ENTER, COUNT = "@ENTER@", @COUNT@


def crowd(port):
    """From addresses of the loopback, one behind the other."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    all = []
    for n in range(COUNT):
        stranger = socket.socket()
        stranger.bind((f"127.0.1.{1 + n % 250}", 0))
        stranger.setblocking(False)
        try:
            stranger.connect(("127.0.0.1", port))
        except BlockingIOError:
            pass
        all.append(stranger)
    print("there", flush=True)
    sys.stdin.read()


if sys.argv[1] == "crowd":
    crowd(int(sys.argv[2]))
    sys.exit(0)

node = sys.argv[1]
child = subprocess.Popen([ENTER, *sys.argv[1:]], stdin=subprocess.PIPE)
if not node.endswith("b"):
    sys.exit(child.wait())


def exactly(source, count):
    got = b""
    while len(got) < count:
        more = source(count - len(got))
        if not more:
            raise EOFError
        got += more
    return got


strangers = None
try:
    while True:
        length, what = struct.unpack("<IB", exactly(sys.stdin.buffer.read, 5))
        body = exactly(sys.stdin.buffer.read, length - 1)
        if what == 0:
            request = json.loads(body).get("request")
            if isinstance(request, dict) and "table" in request:
                port = request["table"][0][0].rsplit(":", 1)[1]
                command = [ENTER, node[:-1] + "a", sys.executable, __file__, "crowd", port]
                strangers = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
                assert strangers.stdout.readline() == b"there\n"
        child.stdin.write(struct.pack("<IB", len(body) + 1, what) + body)
        child.stdin.flush()
except (EOFError, BrokenPipeError):
    pass
try:
    child.stdin.close()
except BrokenPipeError:
    pass
code = child.wait()
if strangers:
    strangers.stdin.close()
    strangers.wait()
sys.exit(code)
