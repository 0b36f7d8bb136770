"""Read a trace with the format's makers' own schema (PyPI: perfetto), hold it to what must be true of every trace, and print what is in it as JSON."""

import json
import sys

from google.protobuf.unknown_fields import UnknownFieldSet
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as schema

BEGIN, END, INSTANT, COUNTER = 1, 2, 3, 4

trace = schema.Trace()
with open(sys.argv[1], "rb") as file:
    trace.ParseFromString(file.read())

names, categories, notes, tracks, events = {}, {}, {}, {}, {}
for number, packet in enumerate(trace.packet):
    # Looking at all of them takes most of the time, and they are all made alike.
    for message in (packet, packet.track_event, packet.track_descriptor, packet.interned_data) if number < 2000 else ():
        assert not len(UnknownFieldSet(message)), f"a field that the format does not have: {message}"
    for table, entries in (
        (names, packet.interned_data.event_names),
        (categories, packet.interned_data.event_categories),
        (notes, packet.interned_data.debug_annotation_names),
    ):
        table.update((entry.iid, entry.name) for entry in entries)
    if packet.HasField("track_descriptor"):
        descriptor = packet.track_descriptor
        assert descriptor.uuid not in tracks, f"two tracks have the number {descriptor.uuid}"
        tracks[descriptor.uuid] = descriptor
    if packet.HasField("track_event"):
        events.setdefault(packet.track_event.track_uuid, []).append((packet.timestamp, packet.track_event))

result = {"tracks": {}, "counters": {}, "lost": {}, "names": sorted(names.values()), "slices": 0, "nodes": {}, "regions": {}}
begins, ends = {}, {}
for uuid, on_track in events.items():
    track = tracks[uuid]
    assert not track.parent_uuid or track.parent_uuid in tracks, track
    group = tracks[track.parent_uuid].name.rsplit(": ")[-1]
    label = f"{group}: {track.name}"
    current, last, sums, values = None, 0, {}, []
    for at, event in on_track:
        assert at >= last, f"{label}: {at} comes after {last}"
        last = at
        if event.type == BEGIN:
            assert current is None, f"{label}: {names[event.name_iid]} begins within {current}"
            current = (at, names[event.name_iid], categories[event.category_iids[0]])
            result["slices"] += 1
            if group == "nodes":
                result["nodes"][track.name] = {notes[note.name_iid]: note.int_value for note in event.debug_annotations}
        elif event.type == END:
            assert current is not None, f"{label}: something ends that did not begin"
            sums[current[2]] = sums.get(current[2], 0) + at - current[0]
            if group == "regions":  # by rank and name: how many, how long
                told = result["regions"].setdefault(track.name.split(",")[0], {}).setdefault(current[1], [0, 0])
                told[:] = [told[0] + 1, told[1] + at - current[0]]
            current = None
        elif event.type == INSTANT:
            about = {notes[note.name_iid]: note.int_value for note in event.debug_annotations}
            if group == "nodes":
                result["nodes"][track.name] = names[event.name_iid]
            if names[event.name_iid].endswith("were overwritten"):
                result["lost"][label] = about["events"]
            for flow in event.flow_ids:
                assert flow not in begins, f"flow {flow} begins twice"
                begins[flow] = (at, label, about, categories[event.category_iids[0]])
            for flow in event.terminating_flow_ids:
                assert flow not in ends, f"flow {flow} ends twice"
                ends[flow] = (at, label, about)
        elif event.type == COUNTER:
            assert track.HasField("counter"), label
            values.append(event.counter_value)
    assert current is None, f"{label}: {current} does not end"
    if values:
        assert values == sorted(values), f"{label}: what only grows went back"
        result["counters"][label] = [values[0], values[-1]]
    if sums:
        result["tracks"][label] = sums

assert begins.keys() == ends.keys(), "a flow has one end only"
pairs = {}
for flow, (sent, sender, about, category) in begins.items():
    received, receiver, other = ends[flow]
    assert sent <= received, f"flow {flow} goes back in time"
    assert (about["tag"], about["bytes"]) == (other["tag"], other["bytes"]), flow
    # `ranks: rank 3 (pid 17)`
    number = [int(label.split()[2]) for label in (sender, receiver)]
    assert (other["from"], about["to"]) == tuple(number), (flow, about, other, number)
    # A barrier goes by messages where ranks are on several nodes.
    if category == "point-to-point":
        key = f"{number[0]} {number[1]}"
        pairs[key] = pairs.get(key, 0) + 1
result["flows"] = len(begins)
result["pairs"] = pairs
print(json.dumps(result))
