import CLiveKitProtocol
import EdgeSupport
import Foundation
import Glibc

/// protobuf-c's messages as JSON, written from protobuf-c's descriptors, so that no type needs code of its own.
enum MessageJSON {
    /// How a message is written.
    struct Style: Sendable {
        /// `camelCase` in place of the schema's `snake_case`.
        var usesCamelCase = false
        /// Members that have their default are written, too.
        var writesDefaults = true
    }

    private typealias Field = ProtobufCFieldDescriptor

    /// A message as JSON.
    static func value<Message>(of message: UnsafeMutablePointer<Message>, style: Style = Style()) -> JSONValue {
        message.withMemoryRebound(to: ProtobufCMessage.self, capacity: 1) { object($0, style) }
    }

    private static func object(_ message: UnsafePointer<ProtobufCMessage>, _ style: Style) -> JSONValue {
        var members: [String: JSONValue] = [:]
        for field in fields(of: message.pointee.descriptor) {
            guard let value = member(field, of: UnsafeRawPointer(message), style) else { continue }
            let name = String(cString: field.name)
            members[style.usesCamelCase ? camelCase(name) : name] = value
        }
        return .object(members)
    }

    private static func fields(of descriptor: UnsafePointer<ProtobufCMessageDescriptor>?) -> [Field] {
        guard let descriptor, let fields = descriptor.pointee.fields else { return [] }
        return (0..<Int(descriptor.pointee.n_fields)).map { fields[$0] }
    }

    private static func member(_ field: Field, of message: UnsafeRawPointer, _ style: Style) -> JSONValue? {
        let place = message + Int(field.offset)
        if field.label == PROTOBUF_C_LABEL_REPEATED {
            let count = message.load(fromByteOffset: Int(field.quantifier_offset), as: Int.self)
            guard let list = place.load(as: UnsafeRawPointer?.self), count > 0 else {
                return style.writesDefaults ? (isMap(field) ? .object([:]) : .array([])) : nil
            }
            let values = (0..<count).compactMap { scalar(field, at: list + $0 * size(field), style) }
            return isMap(field) ? map(values) : .array(values)
        }
        if isOneOf(field) {
            let chosen = message.load(fromByteOffset: Int(field.quantifier_offset), as: UInt32.self)
            return chosen == field.id ? scalar(field, at: place, style) : nil
        }
        guard let value = scalar(field, at: place, style) else { return nil }
        return style.writesDefaults || !isDefault(value, of: field) ? value : nil
    }

    private static func isOneOf(_ field: Field) -> Bool {
        field.flags & UInt32(PROTOBUF_C_FIELD_FLAG_ONEOF.rawValue) != 0
    }

    /// protoc turns a map into a list of entries with key and value, and gives their type this name.
    private static func isMap(_ field: Field) -> Bool {
        guard field.label == PROTOBUF_C_LABEL_REPEATED, let descriptor = messageType(field) else { return false }
        return String(cString: descriptor.pointee.short_name).hasSuffix("Entry")
    }

    private static func map(_ entries: [JSONValue]) -> JSONValue {
        var members: [String: JSONValue] = [:]
        for case .object(let entry) in entries {
            guard case .text(let key) = entry["key"] ?? .text("") else { continue }
            members[key] = entry["value"] ?? .text("")
        }
        return .object(members)
    }

    private static func messageType(_ field: Field) -> UnsafePointer<ProtobufCMessageDescriptor>? {
        guard field.type == PROTOBUF_C_TYPE_MESSAGE else { return nil }
        return field.descriptor?.assumingMemoryBound(to: ProtobufCMessageDescriptor.self)
    }

    private static func isDefault(_ value: JSONValue, of field: Field) -> Bool {
        switch value {
        case .flag(false), .integer(0), .number(0), .text(""): true
        // A 64-bit number, but not a text with the same digit.
        case .text("0"): field.type == PROTOBUF_C_TYPE_INT64 || field.type == PROTOBUF_C_TYPE_UINT64
        default: false
        }
    }

    /// 64-bit integers are strings, because JavaScript's numbers cannot hold them.
    private static func scalar(_ field: Field, at place: UnsafeRawPointer, _ style: Style) -> JSONValue? {
        switch field.type {
        case PROTOBUF_C_TYPE_STRING: .text(String(place.load(as: UnsafeMutablePointer<CChar>?.self)))
        case PROTOBUF_C_TYPE_BYTES:
            .text(Data([UInt8](place.load(as: ProtobufCBinaryData.self))).base64EncodedString())
        case PROTOBUF_C_TYPE_BOOL: .flag(place.load(as: Int32.self) != 0)
        case PROTOBUF_C_TYPE_ENUM: word(field, place.load(as: Int32.self))
        case PROTOBUF_C_TYPE_INT32: .integer(Int64(place.load(as: Int32.self)))
        case PROTOBUF_C_TYPE_UINT32: .integer(Int64(place.load(as: UInt32.self)))
        case PROTOBUF_C_TYPE_INT64: .text(String(place.load(as: Int64.self)))
        case PROTOBUF_C_TYPE_UINT64: .text(String(place.load(as: UInt64.self)))
        case PROTOBUF_C_TYPE_FLOAT: .number(Double(place.load(as: Float.self)))
        case PROTOBUF_C_TYPE_MESSAGE:
            place.load(as: UnsafeMutablePointer<ProtobufCMessage>?.self).map { object($0, style) }
        default: nil
        }
    }

    private static func word(_ field: Field, _ number: Int32) -> JSONValue {
        let descriptor = field.descriptor?.assumingMemoryBound(to: ProtobufCEnumDescriptor.self)
        guard let value = protobuf_c_enum_descriptor_get_value(descriptor, number) else {
            return .integer(Int64(number))
        }
        return .text(String(cString: value.pointee.name))
    }

    private static func size(_ field: Field) -> Int {
        switch field.type {
        case PROTOBUF_C_TYPE_BYTES: MemoryLayout<ProtobufCBinaryData>.stride
        case PROTOBUF_C_TYPE_BOOL, PROTOBUF_C_TYPE_ENUM, PROTOBUF_C_TYPE_INT32, PROTOBUF_C_TYPE_UINT32,
            PROTOBUF_C_TYPE_FLOAT:
            4
        default: 8
        }
    }

    private static func camelCase(_ name: String) -> String {
        let words = name.split(separator: "_")
        return words.dropFirst().reduce(String(words.first ?? "")) { $0 + $1.prefix(1).uppercased() + $1.dropFirst() }
    }
}

// MARK: Reading

extension MessageJSON {
    /// What is wrong with a JSON body: the member's name.
    struct Fault: Error { var member: String }

    /// Fills a message with the members of `value`; names in either spelling, unknown ones skipped.
    static func fill<Message>(
        _ message: UnsafeMutablePointer<Message>, from value: JSONValue, _ arena: MessageArena
    ) throws(Fault) {
        let raw = UnsafeMutableRawPointer(message)
        try fill(raw.assumingMemoryBound(to: ProtobufCMessage.self), value, "", arena)
    }

    /// As deep as the schema, which has no message within itself.
    private static func fill(
        _ message: UnsafeMutablePointer<ProtobufCMessage>, _ value: JSONValue, _ name: String, _ arena: MessageArena
    ) throws(Fault) {
        guard case .object(let members) = value else { throw Fault(member: name) }
        for field in fields(of: message.pointee.descriptor) {
            let name = String(cString: field.name)
            guard let value = members[name] ?? members[camelCase(name)], value != .null else { continue }
            try set(field, of: UnsafeMutableRawPointer(message), value, name, arena)
        }
    }

    private static func set(
        _ field: Field, of message: UnsafeMutableRawPointer, _ value: JSONValue, _ name: String, _ arena: MessageArena
    ) throws(Fault) {
        let place = message + Int(field.offset)
        guard field.label == PROTOBUF_C_LABEL_REPEATED else {
            try write(field, to: place, value, name, arena)
            if isOneOf(field) {
                (message + Int(field.quantifier_offset)).storeBytes(of: field.id, as: UInt32.self)
            }
            return
        }
        let values = try elements(of: field, value, name)
        let list = arena.memory(values.count * size(field))
        for (index, element) in values.enumerated() {
            try write(field, to: list + index * size(field), element, name, arena)
        }
        place.storeBytes(of: list, as: UnsafeMutableRawPointer.self)
        (message + Int(field.quantifier_offset)).storeBytes(of: values.count, as: Int.self)
    }

    private static func elements(
        of field: Field, _ value: JSONValue, _ name: String
    ) throws(Fault) -> [JSONValue] {
        switch value {
        case .array(let values) where !isMap(field): return values
        case .object(let members) where isMap(field):
            return members.sorted { $0.key < $1.key }.map { .object(["key": .text($0.key), "value": $0.value]) }
        default: throw Fault(member: name)
        }
    }

    private static func write(
        _ field: Field, to place: UnsafeMutableRawPointer, _ value: JSONValue, _ name: String, _ arena: MessageArena
    ) throws(Fault) {
        switch (field.type, value) {
        case (PROTOBUF_C_TYPE_STRING, .text(let text)):
            place.storeBytes(of: arena.text(text), as: UnsafeMutablePointer<CChar>.self)
        case (PROTOBUF_C_TYPE_BYTES, .text(let text)):
            guard let bytes = JoinParameters.base64(text) else { throw Fault(member: name) }
            place.storeBytes(of: arena.bytes(bytes), as: ProtobufCBinaryData.self)
        case (PROTOBUF_C_TYPE_BOOL, .flag(let flag)): place.storeBytes(of: flag ? 1 : 0, as: Int32.self)
        case (PROTOBUF_C_TYPE_ENUM, .text(let word)):
            let descriptor = field.descriptor?.assumingMemoryBound(to: ProtobufCEnumDescriptor.self)
            guard let found = protobuf_c_enum_descriptor_get_value_by_name(descriptor, word) else {
                throw Fault(member: name)
            }
            place.storeBytes(of: found.pointee.value, as: Int32.self)
        case (PROTOBUF_C_TYPE_MESSAGE, _):
            guard let descriptor = messageType(field) else { throw Fault(member: name) }
            let made = arena.memory(descriptor.pointee.sizeof_message)
                .bindMemory(to: ProtobufCMessage.self, capacity: 1)
            protobuf_c_message_init(descriptor, made)
            try fill(made, value, name, arena)
            place.storeBytes(of: made, as: UnsafeMutablePointer<ProtobufCMessage>.self)
        default: try writeNumber(field, to: place, value, name)
        }
    }

    private static func writeNumber(
        _ field: Field, to place: UnsafeMutableRawPointer, _ value: JSONValue, _ name: String
    ) throws(Fault) {
        let number: Int64?
        switch value {
        case .integer(let integer): number = integer
        case .number(let real): number = Int64(exactly: real)
        case .text(let text): number = Int64(text)
        default: number = nil
        }
        guard let number else { throw Fault(member: name) }
        switch field.type {
        case PROTOBUF_C_TYPE_INT32, PROTOBUF_C_TYPE_ENUM:
            guard let small = Int32(exactly: number) else { throw Fault(member: name) }
            place.storeBytes(of: small, as: Int32.self)
        case PROTOBUF_C_TYPE_UINT32:
            guard let small = UInt32(exactly: number) else { throw Fault(member: name) }
            place.storeBytes(of: small, as: UInt32.self)
        case PROTOBUF_C_TYPE_INT64: place.storeBytes(of: number, as: Int64.self)
        case PROTOBUF_C_TYPE_UINT64:
            guard let natural = UInt64(exactly: number) else { throw Fault(member: name) }
            place.storeBytes(of: natural, as: UInt64.self)
        default: throw Fault(member: name)
        }
    }
}
