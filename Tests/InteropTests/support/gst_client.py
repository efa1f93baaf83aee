#!/usr/bin/python3
"""A GStreamer WHIP publisher or WHEP player, run by the system's Python (its gi) inside a network namespace.

    gst_client.py publish URL TOKEN H264|VP8 SECONDS
    gst_client.py watch URL TOKEN H264|VP8|any SECONDS   any: offers all that it decodes; prints a JSON line five times a second:
                                                         {"video": frames, "audio": buffers, "height": lines}
"""
import json
import sys
import urllib.request
from urllib.parse import urljoin

import gi

gi.require_version("Gst", "1.0")
gi.require_version("GstSdp", "1.0")
gi.require_version("GstWebRTC", "1.0")
from gi.repository import GLib, Gst, GstSdp, GstWebRTC  # noqa: E402

mode, url, token, codec, seconds = sys.argv[1:6]
Gst.init(None)
loop = GLib.MainLoop()
counts = {"video": 0, "audio": 0}
locations = []
keep = []  # promises and descriptions must outlive the calls that use them

ENCODERS = {
    "VP8": "vp8enc deadline=1 target-bitrate=800000 keyframe-max-dist=60 ! rtpvp8pay pt=96 picture-id-mode=2 ! "
           "application/x-rtp,media=video,encoding-name=VP8,payload=96",
    "H264": "x264enc tune=zerolatency bitrate=800 key-int-max=60 speed-preset=ultrafast ! "
            "video/x-h264,profile=constrained-baseline ! rtph264pay pt=96 config-interval=-1 aggregate-mode=zero-latency ! "
            "application/x-rtp,media=video,encoding-name=H264,payload=96",
}
RECEIVED = {
    "VP8": "application/x-rtp,media=video,encoding-name=VP8,clock-rate=90000,payload=96",
    "VP9": "application/x-rtp,media=video,encoding-name=VP9,clock-rate=90000,payload=98",
    "H264": "application/x-rtp,media=video,encoding-name=H264,clock-rate=90000,payload=102,packetization-mode=(string)1",
}
PUBLISH = ("webrtcbin name=w bundle-policy=max-bundle "
           "videotestsrc is-live=true pattern=ball ! video/x-raw,width=640,height=360,framerate=15/1 ! " + ENCODERS.get(codec, "") + " ! w. "
           "audiotestsrc is-live=true wave=ticks ! audioconvert ! audioresample ! opusenc ! rtpopuspay pt=111 ! "
           "application/x-rtp,media=audio,encoding-name=OPUS,payload=111 ! w.")

if mode == "publish":
    pipeline = Gst.parse_launch(PUBLISH)
    peer = pipeline.get_by_name("w")
else:
    # A description of one element would be that element, not a pipeline.
    pipeline = Gst.Pipeline()
    peer = Gst.ElementFactory.make("webrtcbin", "w")
    peer.set_property("bundle-policy", GstWebRTC.WebRTCBundlePolicy.MAX_BUNDLE)
    pipeline.add(peer)


def post(sdp):
    request = urllib.request.Request(url, sdp.encode(), {"Content-Type": "application/sdp", "Authorization": f"Bearer {token}"})
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=10) as reply:
        return reply.read().decode(), urljoin(url, reply.headers["Location"])


def on_offer(promise, *_):
    reply = promise.get_reply()
    offer = reply.get_value("offer")
    keep.extend([reply, offer])
    peer.emit("set-local-description", offer, Gst.Promise.new())


def on_gathered(*_):
    if peer.get_property("ice-gathering-state") != GstWebRTC.WebRTCICEGatheringState.COMPLETE:
        return
    text = peer.get_property("local-description").sdp.as_text()
    answer, location = post(text)
    locations.append(location)
    result, message = GstSdp.SDPMessage.new_from_text(answer)
    assert result == GstSdp.SDPResult.OK, answer
    description = GstWebRTC.WebRTCSessionDescription.new(GstWebRTC.WebRTCSDPType.ANSWER, message)
    keep.append(description)
    peer.emit("set-remote-description", description, Gst.Promise.new())


def on_pad(_, pad):
    if pad.direction != Gst.PadDirection.SRC:
        return
    bin_ = Gst.ElementFactory.make("decodebin")
    pipeline.add(bin_)
    bin_.connect("pad-added", on_decoded)
    bin_.sync_state_with_parent()
    pad.link(bin_.get_static_pad("sink"))


def on_decoded(_, pad):
    kind = "video" if pad.get_current_caps().to_string().startswith("video") else "audio"
    sink = Gst.ElementFactory.make("fakesink")
    sink.set_property("sync", False)
    sink.set_property("signal-handoffs", True)

    def count(_, __, pad):
        counts[kind] += 1
        if kind == "video":
            counts["height"] = pad.get_current_caps().get_structure(0).get_value("height")

    sink.connect("handoff", count)
    pipeline.add(sink)
    sink.sync_state_with_parent()
    pad.link(sink.get_static_pad("sink"))


def finish():
    print(json.dumps(counts), flush=True)
    for location in locations:
        request = urllib.request.Request(location, method="DELETE", headers={"Authorization": f"Bearer {token}"})
        urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=5).read()
    loop.quit()
    return False


peer.connect("notify::ice-gathering-state", on_gathered)
peer.connect("pad-added", on_pad)
if mode != "publish":
    caps = RECEIVED.get(codec) or ";".join(RECEIVED.values())
    for text in (caps, "application/x-rtp,media=audio,encoding-name=OPUS,clock-rate=48000,payload=111"):
        peer.emit("add-transceiver", GstWebRTC.WebRTCRTPTransceiverDirection.RECVONLY, Gst.Caps.from_string(text))
started = []


def negotiate(*_):
    if not started:
        started.append(1)
        peer.emit("create-offer", None, Gst.Promise.new_with_change_func(on_offer))
    return False


if mode == "publish":
    peer.connect("on-negotiation-needed", negotiate)
pipeline.set_state(Gst.State.PLAYING)
if mode != "publish":
    GLib.idle_add(negotiate)
if mode == "watch":
    GLib.timeout_add(200, lambda: print(json.dumps(counts), flush=True) or True)
GLib.timeout_add_seconds(int(seconds), finish)
loop.run()
pipeline.set_state(Gst.State.NULL)
