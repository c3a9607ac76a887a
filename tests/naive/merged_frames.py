"""Frames that connect, said as one: the definition."""

from __future__ import annotations

from dataclasses import replace

from narrowcast.deliver.wire import Attach, Frame, Malformed, Pulse, decode

Found = Frame | Attach | Pulse | Malformed


def naive_merged(packets: list[bytes]) -> list[Found]:
    """Each frame joins the last one of its channel if it begins where that one ends; what is no frame comes last."""
    found = [decode(packet) for packet in packets]
    frames: list[Frame] = []
    for frame in found:
        if not isinstance(frame, Frame):
            continue
        same = [
            k
            for k, f in enumerate(frames)
            if (f.shard, f.channel, f.epoch) == (frame.shard, frame.channel, frame.epoch)
        ]
        if same and frames[same[-1]].upto == frame.after:
            before = frames[same[-1]]
            frames[same[-1]] = replace(before, upto=frame.upto, messages=before.messages + frame.messages)
        else:
            frames.append(frame)
    return [*frames, *(each for each in found if not isinstance(each, Frame))]
