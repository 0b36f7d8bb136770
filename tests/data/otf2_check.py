"""Read an OTF2 archive with the reader of the format's makers (PyPI: otf2), hold it to what must be true of every one, and print what is in it as JSON."""

import json
import sys

import otf2
from otf2.events import Enter, Leave, MeasurementOnOff, MpiCollectiveBegin, MpiCollectiveEnd, MpiRecv, MpiSend

result = {"ranks": {}, "pairs": {}, "communicators": [], "regions": {}, "nodes": []}
with otf2.reader.open(sys.argv[1]) as trace:
    clock = trace.definitions.clock_properties
    assert clock.timer_resolution == 10**9, clock
    result["length_s"] = clock.trace_length / clock.timer_resolution
    result["nodes"] = sorted(node.name for node in trace.definitions.system_tree_nodes if node.class_name == "node")
    for comm in trace.definitions.comms:
        result["communicators"].append(comm.name)
    sends, receives, stacks, last, pending = {}, {}, {}, {}, {}
    for location, event in trace.events:
        name = location.group.name
        own = result["ranks"].setdefault(name, {"sends": {}, "receives": {}, "collectives": {}, "paused": 0})
        stack = stacks.setdefault(name, [])
        assert event.time >= last.get(name, 0), f"{name}: {event.time} comes after {last[name]}"
        assert event.time <= clock.global_offset + clock.trace_length, f"{name}: {event.time} is behind the end"
        last[name] = event.time
        if isinstance(event, Enter):
            stack.append(event.region.name)
            result["regions"].setdefault(event.region.name, 0)
            result["regions"][event.region.name] += 1
        elif isinstance(event, Leave):
            assert stack and stack[-1] == event.region.name, f"{name} leaves {event.region.name} within {stack}"
            stack.pop()
        elif isinstance(event, MpiSend):
            key = f"{event.communicator.name} {event.msg_tag} {event.msg_length}"
            own["sends"][key] = own["sends"].get(key, 0) + 1
            sends.setdefault((event.communicator.name, name if "SELF" in event.communicator.name else "", event.receiver, event.msg_tag), []).append(event.time)
        elif isinstance(event, MpiRecv):
            key = f"{event.communicator.name} {event.msg_tag} {event.msg_length}"
            own["receives"][key] = own["receives"].get(key, 0) + 1
            pair = f"{event.communicator.name}: {event.sender} to {name}"
            result["pairs"][pair] = result["pairs"].get(pair, 0) + 1
        elif isinstance(event, MpiCollectiveBegin):
            assert name not in pending, f"{name} is in two collective calls at once"
            pending[name] = stack[-1]
        elif isinstance(event, MpiCollectiveEnd):
            assert pending.pop(name) == stack[-1], f"{name}: another call ends than the one that began"
            op = str(event.collective_op).rsplit(".")[-1].lower()
            root = event.root if event.root not in (None, 0xFFFFFFFF) else "-"
            key = f"{event.communicator.name} {op} {root} {event.size_sent} {event.size_received}"
            own["collectives"][key] = own["collectives"].get(key, 0) + 1
        elif isinstance(event, MeasurementOnOff):
            own["paused"] += 1
    assert all(not stack for stack in stacks.values()), stacks
    assert not pending, pending
print(json.dumps(result))
