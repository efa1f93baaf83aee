import Primitives

@testable import PayloadFormats

/// A stream of dependency descriptors, each behind a byte that gives its length; each is rewritten and read again.
func fuzzDependencyDescriptor(_ input: UnsafeRawBufferPointer) {
    var reader = DependencyDescriptorReader()
    var position = 0
    while position < input.count {
        let length = min(Int(input[position]), input.count - position - 1)
        let value = UnsafeRawBufferPointer(rebasing: input[(position + 1)..<(position + 1 + length)]).bytes
        let before = reader
        if let descriptor = reader.read(value) { check(descriptor, value, before) }
        position += 1 + length
    }
}

private func check(_ descriptor: DependencyDescriptor, _ value: RawSpan, _ reader: DependencyDescriptorReader) {
    for target in 0..<descriptor.decodeTargetCount { _ = descriptor.indication(for: target) }
    for index in 0..<descriptor.referenceCount { _ = descriptor.reference(at: index) }
    let mask = UInt32(truncatingIfNeeded: 0x5555_5555 & ((1 << UInt64(descriptor.decodeTargetCount)) - 1))
    let length = DependencyDescriptorRewriter.length(of: descriptor, settingMask: true)
    let slot = UnsafeMutableRawBufferPointer.allocate(byteCount: length, alignment: 8)
    defer { slot.deallocate() }
    let written = DependencyDescriptorRewriter.write(
        value, descriptor, activeDecodeTargets: mask, to: slot, at: 0)
    precondition(written == length, "it needs as much as it says")
    var again = reader
    guard let read = again.read(slot.bytes) else { preconditionFailure("what was written can be read") }
    precondition(read.activeDecodeTargets == mask && again.activeDecodeTargets == mask, "the mask is set")
    precondition(read.frameNumber == descriptor.frameNumber && read.templateID == descriptor.templateID, "head")
    precondition(read.decodeTargetIndications == descriptor.decodeTargetIndications, "indications")
    precondition(read.referenceCount == descriptor.referenceCount, "references")
    precondition(read.hasStructure == descriptor.hasStructure, "structure")
    precondition(bitsBehindMask(of: read, in: slot.bytes) == bitsBehindMask(of: descriptor, in: value), "the rest")
}

/// What the packet says otherwise than its template, chains included.
private func bitsBehindMask(of descriptor: DependencyDescriptor, in value: RawSpan) -> [Bool] {
    let mask = descriptor.activeDecodeTargets == nil ? 0 : descriptor.decodeTargetCount
    var bits: [Bool] = []
    for bit in (descriptor.maskPosition + mask)..<descriptor.bitCount {
        bits.append(value.readUInt8(bit >> 3) & (0x80 >> UInt8(bit & 7)) != 0)
    }
    return bits
}
