"""Frames of a captured stream by their dependency descriptors, read by the specification alone (AV1 RTP payload format 1.0, appendix A.8)."""
import dataclasses

from aiortc.codecs.vpx import vp8_depayload

from .captures import payload


class Bits:
    def __init__(self, data):
        self._value, self._left = int.from_bytes(data), 8 * len(data)

    def read(self, count):
        self._left -= count
        assert self._left >= 0, "the descriptor is cut off"
        return self._value >> self._left & (1 << count) - 1

    def below(self, limit):
        """A number below `limit` (ns(n), AV1 section 4.10.7)."""
        width = limit.bit_length()
        spare = (1 << width) - limit
        value = self.read(width - 1)
        return value if value < spare else (value << 1) - spare + self.read(1)


@dataclasses.dataclass
class Template:
    spatial: int
    temporal: int
    #: Of each decode target: 0 not present, 1 discardable, 2 switch, 3 required.
    indications: list = dataclasses.field(default_factory=list)
    #: How far back the frames lie to which it refers.
    references: list = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Frame:
    """One coded frame: of one spatial layer where there are several."""
    number: int
    spatial: int
    temporal: int
    indications: list
    #: Those to which it refers.
    references: list
    timestamp: int
    packets: list = dataclasses.field(default_factory=list)
    is_whole: bool = False

    @property
    def is_discardable(self):
        """No later frame of any decode target refers to it."""
        return max(self.indications) < 2

    @property
    def joins(self):
        """It refers to nothing but lower layers of its own time."""
        return all(one.timestamp == self.timestamp for one in self.references)

    def ancestors(self):
        """The frame and all that it needs."""
        found, todo = {}, [self]
        while todo:
            frame = todo.pop()
            if frame.number not in found:
                found[frame.number] = frame
                todo += frame.references
        return found


class _Descriptors:
    """Keeps the structure in force."""

    def __init__(self):
        self.structures = 0

    def _read_structure(self, bits):
        self.structures += 1
        self._offset, self._targets = bits.read(6), bits.read(5) + 1
        self._templates = [Template(0, 0)]
        while (step := bits.read(2)) != 3:
            last = self._templates[-1]
            self._templates.append(Template(last.spatial + 1, 0) if step == 2 else Template(last.spatial, last.temporal + step))
        for one in self._templates:
            one.indications = [bits.read(2) for _ in range(self._targets)]
        for one in self._templates:
            while bits.read(1):
                one.references.append(bits.read(4) + 1)
        if chains := bits.below(self._targets + 1):
            for _ in range(self._targets):
                bits.below(chains)
            bits.read(4 * chains * len(self._templates))
        if bits.read(1):
            bits.read(32 * (self._templates[-1].spatial + 1))

    def read(self, data):
        """(whether a frame begins, whether it ends, its number, its template with what the packet says otherwise)."""
        bits, flags = Bits(data[3:]), [0] * 5
        if len(data) > 3:
            flags = [bits.read(1) for _ in range(5)]
        if flags[0]:
            self._read_structure(bits)
        if flags[1]:
            bits.read(self._targets)
        template = self._templates[(data[0] % 64 - self._offset) % 64]
        indications, references = template.indications, template.references
        if flags[2]:
            indications = [bits.read(2) for _ in range(self._targets)]
        if flags[3]:
            references = []
            while size := bits.read(2):
                references.append(bits.read(4 * size) + 1)
        found = Template(template.spatial, template.temporal, indications, references)
        return bool(data[0] & 0x80), bool(data[0] & 0x40), int.from_bytes(data[1:3]), found


def extension(packet, number):
    """The value of an RTP packet's header extension (RFC 8285), or None."""
    if not packet[0] & 0x10:
        return None
    at = 12 + 4 * (packet[0] & 0xF)
    is_short, end = packet[at:at + 2] == b"\xbe\xde", at + 4 + 4 * int.from_bytes(packet[at + 2:at + 4])
    at += 4
    while at < end:
        if not packet[at]:
            at += 1
            continue
        if is_short:
            found, size, at = packet[at] >> 4, (packet[at] & 0xF) + 1, at + 1
        else:
            found, size, at = packet[at], packet[at + 1], at + 2
        if found == number:
            return packet[at:at + size]
        at += size
    return None


def frames(sent, number):
    """(frames, how many packets had a structure) of the packets of a stream, whose descriptors are the header extension `number`."""
    first = int.from_bytes(sent[0][2:4])
    ordered = sorted(sent, key=lambda packet: (int.from_bytes(packet[2:4]) - first + 0x8000) % 0x10000)
    descriptors, found, known = _Descriptors(), [], {}
    for packet in ordered:
        begins, ends, frame, template = descriptors.read(extension(packet, number))
        if begins:
            references = [known[frame - back & 0xFFFF] for back in template.references]
            known[frame] = Frame(frame, template.spatial, template.temporal, template.indications, references, int.from_bytes(packet[4:8]))
            found.append(known[frame])
        assert found[-1].number == frame, "a frame's packets follow one another"
        found[-1].packets.append(packet)
        found[-1].is_whole = ends
    return found, descriptors.structures


def vp9_layers(data):
    """(spatial layer, temporal layer, what stands behind it) of a VP9 payload descriptor (RFC 9628 section 4.2)."""
    first, at = data[0], 1
    spatial = temporal = 0
    if first & 0x80:
        at += 2 if data[at] & 0x80 else 1
    if first & 0x20:
        temporal, spatial = data[at] >> 5, data[at] >> 1 & 7
        at += 1 if first & 0x10 else 2
    if first & 0x50 == 0x50:
        while data[at] & 1:
            at += 1
        at += 1
    if first & 0x02:
        structure, at = data[at], at + 1
        if structure & 0x10:
            at += 4 * ((structure >> 5) + 1)
        if structure & 0x08:
            count, at = data[at], at + 1
            for _ in range(count):
                at += 1 + (data[at] >> 2 & 3)
    return spatial, temporal, data[at:]


def coded(frame, codec):
    """What a decoder takes of a VP8 or VP9 frame."""
    parts = (payload(packet) for packet in frame.packets)
    return b"".join(vp8_depayload(part) if codec == "vp8" else vp9_layers(part)[2] for part in parts)
