"""Run by the system's Python: decodes a file with GStreamer's own demuxer and decoder.

    /usr/bin/python3 gst_read.py FILE [--packets]     prints {"buffers": 60, "end": 2.0, "kinds": ["video/x-raw"]}

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
    pipeline = Gst.parse_launch("filesrc name=file ! qtdemux ! "
                                + ("" if "--packets" in options else "decodebin ! ") + "appsink name=out sync=false")
    pipeline.get_by_name("file").set_property("location", path)
    pipeline.set_state(Gst.State.PLAYING)
    buffers, end, kinds = 0, 0, []
    while sample := pipeline.get_by_name("out").emit("try-pull-sample", 10 * Gst.SECOND):
        kind = sample.get_caps().get_structure(0).get_name()
        buffers += 1
        end = sample.get_buffer().pts / Gst.SECOND
        if kind not in kinds:
            kinds.append(kind)
    message = pipeline.get_bus().pop_filtered(Gst.MessageType.ERROR)
    assert message is None, message.parse_error()
    pipeline.set_state(Gst.State.NULL)
    print(json.dumps({"buffers": buffers, "end": end, "kinds": kinds}))


if __name__ == "__main__":
    main(*sys.argv[1:])
