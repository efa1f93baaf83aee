import CLiveKitProtocol
import Glibc

/// A message as protobuf-c read it from a client's bytes; owned here, and freed with it.
struct UnpackedMessage<Message>: ~Copyable {
    /// Makes a message from bytes: protobuf-c has one such function per type.
    typealias Unpack = (
        UnsafeMutablePointer<ProtobufCAllocator>?, Int, UnsafePointer<UInt8>?
    ) -> UnsafeMutablePointer<Message>?

    private let pointer: UnsafeMutablePointer<Message>

    /// nil if the bytes are no such message, or one that would take more memory than `budget`: two bytes on the wire can become a structure of
    /// two hundred.
    init?(_ bytes: [UInt8], budget: Int = defaultBudget, _ unpack: Unpack) {
        var left = budget
        let made = withUnsafeMutablePointer(to: &left) { left in
            var allocator = ProtobufCAllocator(
                alloc: { left, size in
                    guard let left = left?.assumingMemoryBound(to: Int.self), size <= left.pointee else { return nil }
                    left.pointee -= size
                    return malloc(size)
                }, free: { _, block in free(block) }, allocator_data: UnsafeMutableRawPointer(left))
            return bytes.withUnsafeBufferPointer { unpack(&allocator, $0.count, $0.baseAddress) }
        }
        guard let made else { return nil }
        pointer = made
    }

    deinit {
        pointer.withMemoryRebound(to: ProtobufCMessage.self, capacity: 1) {
            protobuf_c_message_free_unpacked($0, nil)
        }
    }

    /// Lends the message; nothing of it may be kept.
    func read<Value>(_ body: (Message) -> Value) -> Value { body(pointer.pointee) }
}

/// Sixteen times the largest frame that a socket accepts: texts take as much memory as on the wire, small messages in lists a dozen times as much.
private let defaultBudget = 4 << 20

extension String {
    /// A text of a message; bytes that are no UTF-8 are replaced.
    init(_ text: UnsafeMutablePointer<CChar>?) { self = text.map { String(cString: $0) } ?? "" }
}

extension Array where Element == String {
    /// The texts of a list in a message.
    init(texts list: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?, _ count: Int) {
        self = (0..<count).map { String(list?[$0]) }
    }

    /// The first texts of several lists, each once.
    init(
        distinct lists: [(texts: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?, count: Int)], atMost limit: Int
    ) {
        self = []
        var seen = Set<String>()
        for list in lists {
            for index in 0..<list.count {
                guard count < limit else { return }
                let text = String(list.texts?[index])
                if seen.insert(text).inserted { append(text) }
            }
        }
    }
}

extension Array where Element == UInt8 {
    /// The bytes of a member.
    init(_ data: ProtobufCBinaryData) {
        self = data.data.map { Array(UnsafeBufferPointer(start: $0, count: data.len)) } ?? []
    }
}

/// The values in a list of messages.
func messages<Message, Value>(
    _ list: UnsafeMutablePointer<UnsafeMutablePointer<Message>?>?, _ count: Int, _ read: (Message) -> Value
) -> [Value] {
    (0..<count).compactMap { list?[$0].map { read($0.pointee) } }
}
