"""Run by the system's Python: decodes a file with GStreamer's own demuxer and decoder.

    /usr/bin/python3 gst_read.py FILE [--packets] [--pad video_0]
        prints {"buffers": 60, "start": 0.0, "end": 2.0, "kinds": ["video/x-raw"], "caps": "video/x-raw, format=(string)I420, ...", "longest": [0.4, 0.43], "rises": true}

longest: between which two buffers, one after the other, most time passes. rises: whether each is later than the one before it.

--pad: the track of a file that has several. Times are those of the movie, after its edit list.

--packets: demultiplex only. For each fragment of an unfinished file GStreamer 1.22 derives another frame rate, and its VP8 decoder restarts when that
changes, so it drops everything up to the next keyframe (measured). ffmpeg decodes the same packets.
"""
import json
import sys

import gi

gi.require_version("Gst", "1.0")
gi.require_version("GstApp", "1.0")
from gi.repository import Gst, GstApp  # noqa: E402, F401


def main(path, *options):
    Gst.init(None)
    pad = f"demux.{options[options.index('--pad') + 1]} " if "--pad" in options else ""
    pipeline = Gst.parse_launch(f"filesrc name=file ! qtdemux name=demux {pad}! "
                                + ("" if "--packets" in options else "decodebin ! ") + "appsink name=out sync=false")
    pipeline.get_by_name("file").set_property("location", path)
    pipeline.set_state(Gst.State.PLAYING)
    times, kinds = [], []
    while sample := pipeline.get_by_name("out").emit("try-pull-sample", 10 * Gst.SECOND):
        caps = sample.get_caps()
        kind = caps.get_structure(0).get_name()
        times.append(sample.get_segment().to_running_time(Gst.Format.TIME, sample.get_buffer().pts) / Gst.SECOND)
        if kind not in kinds:
            kinds.append(kind)
    message = pipeline.get_bus().pop_filtered(Gst.MessageType.ERROR)
    assert message is None, message.parse_error()
    pipeline.set_state(Gst.State.NULL)
    between = list(zip(times, times[1:]))
    print(json.dumps({
        "buffers": len(times), "start": times[0] if times else None, "end": times[-1] if times else 0, "kinds": kinds,
        "caps": caps.to_string() if times else "", "longest": max(between, key=lambda pair: pair[1] - pair[0], default=None),
        "rises": all(a < b for a, b in between)}))


if __name__ == "__main__":
    main(*sys.argv[1:])
