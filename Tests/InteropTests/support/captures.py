"""Packets of real clients in Tests/Vectors/rtp, the reports of our parsers on them in Tests/Vectors/golden, and what takes the packets apart without our parsers."""
import collections
import dataclasses
import pathlib
import re
import struct
import subprocess

VECTORS = pathlib.Path(__file__).resolve().parents[2] / "Vectors"
NAMES = sorted(path.stem for path in (VECTORS / "golden").glob("*.txt"))


@dataclasses.dataclass
class Stream:
    """What a report says of one SSRC."""
    codec: str
    payload_type: int
    #: Such as "mid 0", in the order in which they were first seen.
    names: list
    facts: dict = dataclasses.field(default_factory=dict)
    sizes: list = dataclasses.field(default_factory=list)

    def counts(self, beginning):
        """Those facts whose names begin so, by the rest of the name."""
        return {key.removeprefix(beginning): value for key, value in self.facts.items() if key.startswith(beginning)}


def report(name):
    """The streams of a capture's report, in the order in which they begin, and its counts of RTCP."""
    streams, control, facts = [], {}, {}
    for line in (VECTORS / f"golden/{name}.txt").read_text().splitlines():
        if match := re.fullmatch(r"stream \d+: (\w+) \((\d+)\)(.*)", line):
            streams.append(Stream(match[1], int(match[2]), match[3].split(", ")[1:]))
            facts = streams[-1].facts
        elif line == "rtcp":
            facts = control
        elif line.startswith("  sizes: "):
            streams[-1].sizes = line.removeprefix("  sizes: ").split()
        elif line.startswith("  packets "):
            facts |= {key: int(value) for key, value in (one.rsplit(" ", 1) for one in line.strip().split(", "))}
        else:
            key, value = line.strip().rsplit(": ", 1)
            facts[key] = int(value)
    return streams, control


def captured(name):
    """(seconds, "rtp" or "rtcp", packet) of all packets, in the order in which they came."""
    for line in (VECTORS / f"rtp/{name}.rtphex").read_text().splitlines():
        seconds, kind, text = line.split()
        yield float(seconds), kind, bytes.fromhex(text)


def packets(name):
    """RTP packets of a capture by payload type and SSRC."""
    found = collections.defaultdict(list)
    for _, kind, packet in captured(name):
        if kind == "rtp":
            found[packet[1] & 0x7F, packet[8:12]].append(packet)
    return found


def payload(packet):
    """Behind the header (RFC 3550 section 5.1), its contributing sources and its extension; without padding."""
    begin = 12 + 4 * (packet[0] & 0xF)
    if packet[0] & 0x10:
        begin += 4 + 4 * int.from_bytes(packet[begin + 2:begin + 4])
    return packet[begin:len(packet) - packet[-1] if packet[0] & 0x20 else len(packet)]


def _length(data, at):
    """A LEB128 number and where it ends (AV1 section 4.10.5)."""
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def _leb128(value):
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(out + bytes([value]))


def temporal_units(sent):
    """(timestamp, OBUs) of an AV1 stream's temporal units, put together from the payload format's elements (section 4.4)."""
    unit, stamp = [], None
    for packet in sent:
        data = payload(packet)
        if not data:
            continue
        if packet[4:8] != stamp and unit:
            yield int.from_bytes(stamp), unit
            unit = []
        stamp = packet[4:8]
        continues, count, at = data[0] & 0x80, data[0] >> 4 & 3, 1
        index = 0
        while at < len(data):
            index += 1
            size, at = (len(data) - at, at) if index == count else _length(data, at)
            element, at = data[at:at + size], at + size
            if continues and index == 1 and unit:
                unit[-1] += element
            else:
                unit.append(element)
    if unit:
        yield int.from_bytes(stamp), unit


def low_overhead(obus):
    """A temporal unit as a decoder takes it: a temporal delimiter, and OBUs with their sizes (AV1 section 5.2)."""
    data = bytearray(b"\x12\x00")
    for obu in obus:
        head = 2 if obu[0] & 4 else 1
        data += bytes([obu[0] | 2]) + obu[1:head] + _leb128(len(obu) - head) + obu[head:]
    return bytes(data)


#: RTP and RTCP of a capture that `write_pcap` wrote.
_PORTS = {"rtp": 5004, "rtcp": 5005}


def write_pcap(name, path):
    """Writes a capture as a file of IP packets, for programs that read only those."""
    with path.open("wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65_535, 101))
        for seconds, kind, packet in captured(name):
            port, size = _PORTS[kind], 28 + len(packet)
            file.write(struct.pack("<IIII", int(seconds), int(seconds % 1 * 1e6), size, size))
            file.write(struct.pack("!BBHHHBBH4s4s", 0x45, 0, size, 0, 0, 64, 17, 0, bytes([192, 0, 2, 1]), bytes([192, 0, 2, 2])))
            file.write(struct.pack("!HHHH", port, port, size - 20, 0) + packet)
    return path


def tshark(path, protocol, *fields, decode=()):
    """The fields of all packets of a protocol: a list of texts for each field of each packet."""
    command = ["tshark", "-n", "-r", path, "-Y", protocol, "-T", "fields"]
    for rule in [*(f"udp.port=={port},{kind}" for kind, port in _PORTS.items()), *decode]:
        command += ["-d", rule]
    for field in fields:
        command += ["-e", field]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return [[field.split(",") if field else [] for field in line.split("\t")] for line in done.stdout.splitlines()]
