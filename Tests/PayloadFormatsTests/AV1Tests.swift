import PayloadFormats
import Primitives
import TestSupport
import Testing

@Suite("AV1 payloads and the dependency descriptor (AV1 RTP 1.0)")
struct AV1Tests {
    /// The first descriptor of Chromium's L3T3 stream, with its structure, and two that follow.
    static let structure = """
        c10001c0081485214eafffaaaa863cf0430c10c302afc0aaa0063c00430010c002a000a80006000040001d954926e082b04a0941b820ac12
        82503157f974000ca864330e222222eca8655304224230eca87753013f00b3027f016704ff02cf1f80
        """

    private func read(_ hex: String, _ reader: inout DependencyDescriptorReader) throws -> DependencyDescriptor? {
        let bytes = try #require(ClientCaptures.bytes(hex))
        return reader.read(bytes.span.bytes)
    }

    @Test("G8: the structure of L3T3 as libwebrtc defines it")
    func structure() throws {
        var reader = DependencyDescriptorReader()
        let descriptor = try unwrapped(try read(Self.structure, &reader))
        let structure = try #require(reader.structure)
        #expect(structure.decodeTargetCount == 9)
        #expect(structure.spatialLayerCount == 3)
        #expect(structure.templates.count == 15)
        #expect(structure.chainCount == 3)
        #expect(structure.targetSpatialLayers == [0, 0, 0, 1, 1, 1, 2, 2, 2])
        #expect(structure.targetTemporalLayers == [0, 1, 2, 0, 1, 2, 0, 1, 2])
        #expect(structure.target(spatialLayer: 1, temporalLayer: 2) == 5)
        #expect(structure.target(spatialLayer: 3, temporalLayer: 0) == nil)
        #expect(structure.resolutions.map(\.width) == [320, 640, 1_280])
        #expect(structure.resolutions.map(\.height) == [180, 360, 720])
        #expect(structure.templates[0].references == [12])
        #expect(structure.templates[1].references == [])
        #expect(structure.templates[6].references == [1])
        #expect(descriptor.isFirstPacketInFrame && descriptor.isLastPacketInFrame)
        #expect(descriptor.hasStructure && descriptor.isKeyframe && descriptor.refersToNoEarlierTemporalUnit)
        #expect(descriptor.frameNumber == 1)
        #expect((0..<9).allSatisfy { descriptor.indication(for: $0) == .switch })
        #expect(descriptor.dimensions == FrameDimensions(width: 320, height: 180))
        #expect(descriptor.structureDimensions == FrameDimensions(width: 1_280, height: 720))
        #expect(descriptor.isSwitchingPoint && !descriptor.isDiscardable)
    }

    @Test("G2: the active decode targets within some layers are found; a look at a descriptor changes nothing")
    func targetsWithinLayers() throws {
        var reader = DependencyDescriptorReader()
        let structure = try #require(ClientCaptures.bytes(Self.structure))
        #expect(reader.peek(structure.span.bytes) != nil && reader.structure == nil)
        _ = reader.read(structure.span.bytes)
        #expect(reader.highestSpatialLayer == 2 && reader.highestTemporalLayer == 2)
        let plain = try unwrapped(try read("c10002", &reader))
        for (spatial, temporal, within) in [
            (0, 0, 0b000_000_001), (0, 2, 0b000_000_111), (1, 1, 0b000_011_011), (2, 0, 0b000_001_001),
            (255, 255, 0b000_111_111),
        ] as [(UInt8, UInt8, UInt32)] {
            let found = reader.targets(of: plain, upToSpatialLayer: spatial, temporalLayer: temporal)
            // Chromium begins with two of its three spatial layers.
            #expect(found == (active: 0b000_111_111, within: within))
        }
        // A frame's own mask counts.
        let masked = try unwrapped(try read("c1000341fc", &reader))
        #expect(masked.activeDecodeTargets == 0b001_111_111)
        #expect(reader.targets(of: masked, upToSpatialLayer: 2, temporalLayer: 1).within == 0b001_011_011)
    }

    @Test("Without the structure a descriptor yields nothing, and so do templates that it lacks")
    func withoutStructure() throws {
        var reader = DependencyDescriptorReader()
        #expect(try read("c10002", &reader) == nil)
        _ = try read(Self.structure, &reader)
        #expect(try read("c10002", &reader) != nil)
        #expect(try read("ff0002", &reader) == nil)
        #expect(try read("c100", &reader) == nil)
        #expect(try read("", &reader) == nil)
    }

    @Test("Every truncated structure is refused and leaves the reader unchanged")
    func cuts() throws {
        let whole = try #require(ClientCaptures.bytes(Self.structure))
        for length in 0..<(whole.count - 1) {
            var reader = DependencyDescriptorReader()
            #expect(reader.read(Array(whole[..<length]).span.bytes) == nil)
            #expect(reader.structure == nil)
        }
    }

    @Test("Upper layers: what starts a layer, what is discardable, which decode target is the frame's own")
    func layers() throws {
        var reader = DependencyDescriptorReader()
        _ = try read(Self.structure, &reader)
        // Template ids are the index plus the structure's offset.
        let offset = try #require(reader.structure).templateIDOffset
        func template(_ index: Int) throws -> DependencyDescriptor {
            let byte = UInt8(0xc0 | (index + offset) & 63)
            return try unwrapped(reader.read([byte, 0, 9].span.bytes))
        }
        let upper = try template(6)
        #expect(upper.spatialLayer == 1 && upper.temporalLayer == 0)
        #expect(upper.refersToNoEarlierTemporalUnit && !upper.isKeyframe)
        #expect(upper.indication(for: 0) == .notPresent)
        #expect(upper.isSwitchingPoint)
        let delta = try template(0)
        #expect(!delta.refersToNoEarlierTemporalUnit)
        let last = try template(14)
        #expect(last.spatialLayer == 2 && last.temporalLayer == 2)
        #expect(last.isDiscardable)
        #expect(last.indication(for: 8) == .discardable)
        #expect(last.isSwitchingPoint)
    }

    @Test(
        "A frame that is discardable in its own target is a switching point only where all frames of its layer are",
        arguments: [
            // VP8 of Chromium: SSS, SSS, SRR, -SS, -DS that refers to the frame before in its own layer, --D, --D.
            ("c000018002044eaaaf2860414d34538a0940404fc02cc0", [true, true, true, true, false, true, true]),
            // VP8 of Firefox: SS, SS, SR, -S, -D that does so.
            ("c00001800104eaac851450460404fc02cc", [true, true, true, true, false]),
            // VP9 of Chromium: SSS, SSS, -DS, --D, --D.
            ("c00001800214eaa860414d1410208427013f00b3", [true, true, true, true, true]),
        ])
    func switchingPoints(hex: String, expected: [Bool]) throws {
        var reader = DependencyDescriptorReader()
        _ = try read(hex, &reader)
        let structure = try #require(reader.structure)
        #expect(structure.templates.count == expected.count)
        for (index, isSwitchingPoint) in expected.enumerated() {
            let byte = UInt8(0xc0 | (index + structure.templateIDOffset) & 63)
            let descriptor = try unwrapped(reader.read([byte, 0, 9].span.bytes))
            #expect(descriptor.isSwitchingPoint == isSwitchingPoint, "template \(index)")
        }
    }

    @Test("Frame numbers are rewritten in place, and the active decode targets bitmask is written where there was none")
    func rewriting() throws {
        let value = try #require(ClientCaptures.bytes("c1fffe"))
        value.withSlot(capacity: 3) { slot in
            DependencyDescriptorRewriter.moveFrameNumber(slot, by: 3)
            #expect([UInt8](slot) == [0xc1, 0x00, 0x01])
            DependencyDescriptorRewriter.moveFrameNumber(UnsafeMutableRawBufferPointer(rebasing: slot[..<2]), by: 3)
            #expect([UInt8](slot) == [0xc1, 0x00, 0x01], "too short to have a number")
        }
        for hex in ["c10002", Self.structure] {
            var reader = DependencyDescriptorReader()
            _ = try read(Self.structure, &reader)
            let value = try #require(ClientCaptures.bytes(hex))
            let descriptor = try unwrapped(reader.read(value.span.bytes))
            try [UInt8]().withSlot { slot in
                let length = try unwrapped(
                    DependencyDescriptorRewriter.write(
                        value.span.bytes, descriptor, activeDecodeTargets: 0b111, to: slot, at: 4))
                let again = try unwrapped(reader.read([UInt8](slot[4..<(4 + length)]).span.bytes))
                #expect(again.activeDecodeTargets == 0b111)
                #expect(reader.activeDecodeTargets == 0b111)
                #expect(again.frameNumber == descriptor.frameNumber)
                #expect(again.decodeTargetIndications == descriptor.decodeTargetIndications)
                #expect(again.referenceCount == descriptor.referenceCount)
            }
        }
    }

    @Test("Chromium's first packet: a new sequence with its header; either gives the size")
    func payload() throws {
        // Aggregation header with N and two elements, sequence header with 9 operating points, then the start of a frame.
        let hex = "28 1d 080087072b8195c04a60e530329809441ca20651012d4cffb3c01a0080 3400124fcb38"
        let plain = try #require(PayloadCodec.av1.summary(hex: hex))
        #expect(plain.startsKeyframe && plain.containsParameterSets && plain.startsFrame)
        #expect(plain.dimensions == FrameDimensions(width: 1_280, height: 720))
        var reader = DependencyDescriptorReader()
        let descriptor = try read(Self.structure, &reader)
        let full = try #require(PayloadCodec.av1.summary(hex: hex, marker: true, descriptor: descriptor))
        #expect(full.startsKeyframe && full.isKeyframe && full.hasDescriptor && full.endsPicture)
        #expect(full.dimensions == FrameDimensions(width: 1_280, height: 720))
        #expect(full.frameNumber == 1)
    }

    @Test(
        "A sequence header says whether its stream has spatial layers; temporal layers alone are none",
        arguments: [("87", true), ("81", false)])
    func spatialLayers(masks: String, expected: Bool) throws {
        // The same header: after it the first operating point's mask of spatial layers, then that of temporal ones.
        let bytes = try #require(
            ClientCaptures.bytes("0800\(masks)072b8195c04a60e530329809441ca20651012d4cffb3c01a0080"))
        let parameters = try unwrapped(AV1.SequenceParameters(obu: bytes.span.bytes))
        #expect(parameters.hasSpatialLayers == expected)
        #expect(parameters.dimensions == FrameDimensions(width: 1_280, height: 720))
    }

    @Test("Elements: sizes for all, for all but the last, and a continuation at both ends")
    func elements() throws {
        func types(_ hex: String) throws -> [String] {
            let bytes = try #require(ClientCaptures.bytes(hex))
            var elements = try unwrapped(AV1.Elements(bytes.span.bytes))
            var found: [String] = []
            while let element = elements.next(in: bytes.span.bytes) {
                found.append("\(element.type.map(String.init) ?? "-") \(element.length)\(element.continues ? "+" : "")")
            }
            return elements.isMalformed ? found + ["broken"] : found
        }
        #expect(try types("00 02 30aa 03 30bbcc") == ["6 1", "6 2"])
        #expect(try types("20 02 30aa 30bbcc") == ["6 1", "6 2"])
        #expect(try types("d0 aabb") == ["- 2+"])
        #expect(try types("10 34 61 aa") == ["6 1"])
        #expect(try types("00 05 30aa") == ["broken"])
        #expect(try types("20 ff") == ["broken"])
        #expect(try types("10 b0") == ["broken"])
        #expect(PayloadCodec.av1.summary(hex: "88 30") == nil, "a sequence cannot start inside of an OBU")
        #expect(PayloadCodec.av1.summary(hex: "10") == nil)
    }
}
