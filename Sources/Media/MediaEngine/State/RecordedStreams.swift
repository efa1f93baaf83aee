import Forwarding
import MediaControl
import Primitives

/// The tracks that are recorded, and the records of the current turn.
struct RecordedStreams: ~Copyable {
    /// More than one turn's packets: some 500 of them.
    static let batchBytes = 1 << 20

    private var streams = Slab<RecordedStream>(capacity: 4)
    /// The track of each stream, by the stream's id.
    private var tracks = FlatTable<UInt64>()
    /// Streams whose end has not been reported yet, because there was no room.
    private var ended: [UInt64] = []
    /// Records for the recorder; nil before the first stream, or the first one that was refused.
    private var batch: UnsafeMutablePointer<RecordBatch>?

    deinit {
        batch?.deinitialize(count: 1)
        batch?.deallocate()
    }

    /// Whether `handOn` is due: there are records, or the recorder had no room. Nothing is written until it has room, and only a further `handOn` can find that
    /// out.
    var hasRecords: Bool { batch.map { $0.pointee.used > 0 || !$0.pointee.hasAmpleRoom } ?? false }

    /// The track that the stream with this id is of.
    func track(of id: SubscriptionID) -> Int? { tracks[id.rawValue] }

    /// Adds a stream of the track with the number `track`; returns the stream's own number.
    mutating func add(_ stream: consuming RecordedStream, ofTrack track: Int) -> Int {
        makeBatch()
        let id = stream.description.id.rawValue
        tracks.set(id, to: track)
        return streams.insert(stream)
    }

    /// Reports the end of a stream that could not be added.
    mutating func refuse(_ id: SubscriptionID, at now: MonotonicTime) {
        makeBatch()
        ended.append(id.rawValue)
        reportEnded(at: now)
    }

    private mutating func makeBatch() {
        guard batch == nil else { return }
        batch = .allocate(capacity: 1)
        batch?.initialize(to: RecordBatch(capacity: Self.batchBytes))
    }

    /// The stream with this number, until the next one is added.
    func stream(_ number: Int) -> UnsafeMutablePointer<RecordedStream> { streams[number] }

    /// Removes a stream; its recorder is notified behind its last packet.
    mutating func remove(_ number: Int, at now: MonotonicTime) {
        let id = streams[number].pointee.description.id.rawValue
        tracks.remove(id)
        streams.remove(number)
        ended.append(id)
        reportEnded(at: now)
    }

    private mutating func reportEnded(at now: MonotonicTime) {
        while let id = ended.first {
            guard batch?.pointee.append(RecordBatch.Header(kind: .ended, stream: id, arrival: now)) == true else {
                return
            }
            ended.removeFirst()
        }
    }

    /// Writes a turn's packets of a stream; returns the layer that should send a keyframe, if one should.
    mutating func write(_ number: Int, of track: PublishedTrack, at now: MonotonicTime) -> Int? {
        // There is a batch since the first stream.
        guard let batch else { return nil }
        return streams[number].pointee.write(track, at: now, into: &batch.pointee)
    }

    /// Lends the records, and makes room for the next turn's; `take` returns how much room there is now.
    mutating func handOn(at now: MonotonicTime, _ take: (UnsafeRawBufferPointer) -> (room: Int, isAmple: Bool)) {
        guard let batch else { return }
        let (room, isAmple) = take(batch.pointee.bytes)
        batch.pointee.removeAll(room: room, isAmple: isAmple)
        if !ended.isEmpty { reportEnded(at: now) }
    }
}
