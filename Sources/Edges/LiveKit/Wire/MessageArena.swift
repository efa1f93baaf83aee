import CLiveKitProtocol
import Glibc

/// The memory of messages that are being written: everything that they point to lives as long as the arena.
///
/// protobuf-c's messages are C structures with pointers to texts, lists and other messages, and no owner. Here the owner is the arena, which frees
/// all of it at once; nothing that it hands out may be kept beyond it.
final class MessageArena {
    private var blocks: [UnsafeMutableRawPointer] = []

    deinit { for block in blocks { free(block) } }

    /// A message, initialised by `initialise`, which protobuf-c generates for each type, and then by `fill`.
    func make<Message>(
        _ initialise: (UnsafeMutablePointer<Message>?) -> Void, _ fill: (inout Message) -> Void = { _ in }
    ) -> UnsafeMutablePointer<Message> {
        let message = allocate(Message.self, 1)
        initialise(message)
        fill(&message.pointee)
        return message
    }

    /// A text, cut at its first NUL, where a C string ends.
    func text(_ text: String) -> UnsafeMutablePointer<CChar> {
        let bytes = text.utf8CString
        let copy = allocate(CChar.self, bytes.count)
        bytes.withUnsafeBufferPointer { copy.update(from: $0.baseAddress!, count: $0.count) }
        return copy
    }

    func bytes(_ bytes: [UInt8]) -> ProtobufCBinaryData {
        let copy = allocate(UInt8.self, max(bytes.count, 1))
        bytes.withUnsafeBufferPointer { buffer in
            if let base = buffer.baseAddress { copy.update(from: base, count: buffer.count) }
        }
        return ProtobufCBinaryData(len: bytes.count, data: copy)
    }

    /// A list of messages, or of texts.
    func list<Element>(
        _ elements: [UnsafeMutablePointer<Element>]
    ) -> UnsafeMutablePointer<UnsafeMutablePointer<Element>?> {
        let list = allocate(UnsafeMutablePointer<Element>?.self, max(elements.count, 1))
        for (index, element) in elements.enumerated() { (list + index).initialize(to: element) }
        return list
    }

    /// A list of numbers.
    func numbers<Number>(_ numbers: [Number]) -> UnsafeMutablePointer<Number> {
        let list = allocate(Number.self, max(numbers.count, 1))
        for (index, number) in numbers.enumerated() { (list + index).initialize(to: number) }
        return list
    }

    /// Memory for `size` bytes, all of them 0.
    func memory(_ size: Int) -> UnsafeMutableRawPointer {
        let block = allocate(UInt64.self, size / 8 + 1)
        block.initialize(repeating: 0, count: size / 8 + 1)
        return UnsafeMutableRawPointer(block)
    }

    private func allocate<Value>(_: Value.Type, _ count: Int) -> UnsafeMutablePointer<Value> {
        guard let block = malloc(max(MemoryLayout<Value>.stride * count, 1)) else {
            preconditionFailure("no memory for a message")
        }
        blocks.append(block)
        return block.bindMemory(to: Value.self, capacity: count)
    }

    /// The bytes of a message that was made here.
    func packed<Message>(_ message: UnsafeMutablePointer<Message>) -> [UInt8] {
        // Nothing else keeps what the message points to: the arena must not be freed after its last use by name.
        withExtendedLifetime(self) {
            message.withMemoryRebound(to: ProtobufCMessage.self, capacity: 1) { base in
                let size = protobuf_c_message_get_packed_size(base)
                return [UInt8](unsafeUninitializedCapacity: size) { buffer, count in
                    count = size == 0 ? 0 : protobuf_c_message_pack(base, buffer.baseAddress)
                }
            }
        }
    }
}
