"""Run by the system's Python: what GStreamer reads in session descriptions, a JSON list of texts on stdin.

    /usr/bin/python3 gst_sdp.py      prints a list of sections for each description
"""
import json
import sys

import gi

gi.require_version("Gst", "1.0")
gi.require_version("GstSdp", "1.0")
from gi.repository import Gst, GstSdp  # noqa: E402

DIRECTIONS = ("sendrecv", "sendonly", "recvonly", "inactive")


def codec(caps):
    """A format as GStreamer describes it to its own elements."""
    shape = caps.get_structure(0)
    fields = [shape.nth_field_name(index) for index in range(shape.n_fields())]
    return {
        "name": shape.get_value("encoding-name"), "rate": shape.get_value("clock-rate"), "apt": shape.get_value("apt") if "apt" in fields else None,
        "feedback": [field.removeprefix("rtcp-fb-") for field in fields if field.startswith("rtcp-fb-")]}


def values(media, key):
    """All values of an attribute, in their order."""
    found = []
    while (value := media.get_attribute_val_n(key, len(found))) is not None:
        found.append(value)
    return found


def section(media):
    formats = [media.get_format(index) for index in range(media.formats_len())]
    described = {name: media.get_caps_from_media(int(name)) for name in formats if name.isdigit()}
    return {
        "kind": media.get_media(), "port": media.get_port(), "proto": media.get_proto(), "formats": formats, "mid": media.get_attribute_val("mid"),
        "direction": next((one for one in DIRECTIONS if media.get_attribute_val(one) is not None), None),
        "codecs": {name: codec(caps) for name, caps in described.items() if caps is not None},
        "rids": values(media, "rid"), "simulcast": media.get_attribute_val("simulcast")}


def main():
    Gst.init(None)
    found = []
    for text in json.load(sys.stdin):
        result, message = GstSdp.SDPMessage.new_from_text(text)
        assert result == GstSdp.SDPResult.OK, text
        found.append([section(message.get_media(index)) for index in range(message.medias_len())])
    print(json.dumps(found))


if __name__ == "__main__":
    main()
