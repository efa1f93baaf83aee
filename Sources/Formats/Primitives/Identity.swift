/// Names one room for the life of the process.
public struct RoomID: Hashable, Sendable, Comparable {
    /// The number; never reused.
    public let rawValue: UInt64
    @inlinable public init(_ rawValue: UInt64) { self.rawValue = rawValue }
    @inlinable public static func < (a: Self, b: Self) -> Bool { a.rawValue < b.rawValue }
}

/// Names one peer (one ICE and DTLS association) for the life of the process. A participant may hold several.
public struct PeerID: Hashable, Sendable, Comparable {
    /// The number; never reused.
    public let rawValue: UInt64
    @inlinable public init(_ rawValue: UInt64) { self.rawValue = rawValue }
    @inlinable public static func < (a: Self, b: Self) -> Bool { a.rawValue < b.rawValue }
}

/// Names one published track for the life of the process.
public struct TrackID: Hashable, Sendable, Comparable {
    /// The number; never reused.
    public let rawValue: UInt64
    @inlinable public init(_ rawValue: UInt64) { self.rawValue = rawValue }
    @inlinable public static func < (a: Self, b: Self) -> Bool { a.rawValue < b.rawValue }
}

/// Names one subscription (one track as one subscriber receives it) for the life of the process.
public struct SubscriptionID: Hashable, Sendable, Comparable {
    /// The number; never reused.
    public let rawValue: UInt64
    @inlinable public init(_ rawValue: UInt64) { self.rawValue = rawValue }
    @inlinable public static func < (a: Self, b: Self) -> Bool { a.rawValue < b.rawValue }
}
