import MediaControl
import Primitives
import Testing

@testable import MediaEngine

@Suite("Log of estimates")
struct EstimateLogTests {
    @Test("I5: lowest and highest of every twenty seconds, without gaps, nothing older than an hour")
    func hour() {
        var log = EstimateLog()
        let start = MonotonicTime(nanoseconds: 0) + .seconds(40)
        #expect(log.records(at: start).isEmpty)
        log.note(.kilobitsPerSecond(700), at: start)
        log.note(.kilobitsPerSecond(500), at: start + .seconds(5))
        log.note(.kilobitsPerSecond(600), at: start + .seconds(19))
        log.note(.kilobitsPerSecond(300), at: start + .seconds(60))
        #expect(
            log.records(at: start + .seconds(70)) == [
                EstimateRecord(age: .seconds(70), least: .kilobitsPerSecond(500), most: .kilobitsPerSecond(700)),
                EstimateRecord(age: .seconds(10), least: .kilobitsPerSecond(300), most: .kilobitsPerSecond(300)),
            ])
        #expect(log.records(at: start + .seconds(3_599)).map(\.age) == [.seconds(3_599), .seconds(3_539)])
        #expect(log.records(at: start + .seconds(3_600)).map(\.age) == [.seconds(3_540)])
        #expect(log.records(at: start + .seconds(9_000)).isEmpty)
        log.note(.kilobitsPerSecond(900), at: start + .seconds(9_000))
        #expect(
            log.records(at: start + .seconds(9_000)) == [
                EstimateRecord(age: .zero, least: .kilobitsPerSecond(900), most: .kilobitsPerSecond(900))
            ])
    }

    @Test("I5: after a day of estimates one hour is kept")
    func day() {
        var log = EstimateLog()
        let seconds = 24 * 3_600
        for second in 0..<seconds {
            log.note(.kilobitsPerSecond(Int64(second)), at: MonotonicTime(nanoseconds: 0) + .seconds(Int64(second)))
        }
        let records = log.records(at: MonotonicTime(nanoseconds: 0) + .seconds(Int64(seconds - 1)))
        #expect(records.count == EstimateLog.capacity)
        #expect(records.first?.least == .kilobitsPerSecond(Int64(seconds - 3_600)))
        #expect(records.last?.most == .kilobitsPerSecond(Int64(seconds - 1)))
    }
}
