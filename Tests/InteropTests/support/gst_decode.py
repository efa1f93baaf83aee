"""Run by the system's Python: decodes one stream's RTP packets, a line of hex each on stdin, with GStreamer's own depayloader and decoder.

    /usr/bin/python3 gst_decode.py VP8|VP9|H264 PAYLOAD_TYPE      prints {"frames": 60, "sizes": ["640x360"]}
"""
import json
import sys

import gi

gi.require_version("Gst", "1.0")
gi.require_version("GstApp", "1.0")
from gi.repository import Gst, GstApp  # noqa: E402, F401

DECODERS = {"VP8": "rtpvp8depay ! vp8dec", "VP9": "rtpvp9depay ! vp9dec", "H264": "rtph264depay ! h264parse ! avdec_h264"}


def main(codec, payload_type):
    Gst.init(None)
    caps = f"application/x-rtp,media=video,clock-rate=90000,encoding-name={codec},payload={payload_type}"
    pipeline = Gst.parse_launch(f'appsrc name=in caps="{caps}" format=time ! {DECODERS[codec]} ! appsink name=out sync=false')
    source, sink = pipeline.get_by_name("in"), pipeline.get_by_name("out")
    pipeline.set_state(Gst.State.PLAYING)
    for line in sys.stdin:
        source.emit("push-buffer", Gst.Buffer.new_wrapped(bytes.fromhex(line)))
    source.emit("end-of-stream")
    frames, sizes = 0, []
    while sample := sink.emit("try-pull-sample", 10 * Gst.SECOND):
        shape = sample.get_caps().get_structure(0)
        size = f"{shape.get_value('width')}x{shape.get_value('height')}"
        frames += 1
        if size not in sizes:
            sizes.append(size)
    pipeline.set_state(Gst.State.NULL)
    print(json.dumps({"frames": frames, "sizes": sizes}))


if __name__ == "__main__":
    main(*sys.argv[1:])
