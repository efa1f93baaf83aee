import CLinux
import Glibc

/// A thread that runs one function to its end.
public final class LoopThread: Sendable {
    private let handle: pthread_t

    /// What the new thread runs, carried across pthread's C interface.
    private final class Body: Sendable {
        let name: String
        let cpu: Int32?
        let run: @Sendable () -> Void

        init(name: String, cpu: Int32?, run: @escaping @Sendable () -> Void) {
            self.name = name
            self.cpu = cpu
            self.run = run
        }
    }

    /// Starts a thread with a `name` of at most 15 bytes, pinned to processor `cpu` if one is given.
    ///
    /// `join()` must be called once.
    public init(name: String, cpu: Int?, run: @escaping @Sendable () -> Void) throws(SystemError) {
        let body = Unmanaged.passRetained(Body(name: name, cpu: cpu.map(Int32.init), run: run))
        var handle = pthread_t()
        let code = pthread_create(&handle, nil, runLoopThread, body.toOpaque())
        guard code == 0 else {
            body.release()
            throw SystemError("pthread_create", code: code)
        }
        self.handle = handle
    }

    /// Waits for the function to return. Blocks the calling thread.
    public func join() { pthread_join(handle, nil) }

    fileprivate static func main(_ context: UnsafeMutableRawPointer) {
        let body = Unmanaged<Body>.fromOpaque(context).takeRetainedValue()
        clinux_name_thread(body.name)
        // If this fails (a cpuset has removed the processor), the scheduler chooses one.
        if let cpu = body.cpu { _ = clinux_pin_thread(cpu) }
        body.run()
    }
}

/// A named function, because a closure literal handed to C may be taken for main-actor code.
private func runLoopThread(_ context: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
    if let context { LoopThread.main(context) }
    return nil
}

/// Thread priorities, for when processors are scarce.
public enum Scheduling {
    /// Before ordinary threads, which still get a tenth of a processor that both could use completely.
    private static let nice: Int32 = -10
    /// The shortest slice that the kernel accepts: a thread with shorter slices than others preempts them when it wakes up.
    private static let slice: UInt64 = 100_000

    /// Puts the calling thread before those that may wait: media before signalling. Without the right to do so (CAP_SYS_NICE, RLIMIT_NICE), it is
    /// only woken sooner.
    public static func preferCurrentThread() { _ = clinux_prefer_thread(nice, slice) }

    /// Whether it has that right.
    static var mayPreferThreads: Bool { clinux_may_nice(nice) != 0 }
    /// Puts the calling thread after those that calls wait for: recordings may reach the disk later.
    public static func yieldCurrentThread() { _ = clinux_prefer_thread(patient, slice) }
    private static let patient: Int32 = 5
    /// Puts the calling thread after all others: its work is not urgent.
    public static func idleCurrentThread() { _ = clinux_prefer_thread(last, slice) }
    private static let last: Int32 = 19
}

/// The processors of the machine that this process may use.
public enum Processors {
    /// Their numbers, lowest first; at least one.
    public static var usable: [Int] {
        let numbers = (0..<clinux_usable_cpus()).map { Int(clinux_usable_cpu($0)) }.filter { $0 >= 0 }
        return numbers.isEmpty ? [0] : numbers
    }

    /// How many of them it may keep busy, at least one, within a container's limit of processor time (`cpu.max` of cgroup v2, as
    /// `--cpus` and Kubernetes' limits set it). With more threads than that, the kernel would stop all of them for a part
    /// of each tenth of a second. `root` contains `/proc` and `/sys`.
    public static func busyAtOnce(root: String = "") -> Int {
        // v1 has the two numbers in separate files, which are not read.
        let lines = ControlGroups.values(of: "cpu.max", orOf: "cpu", "cpu.max", root: root)
        let shares = lines.compactMap { line -> Int? in
            // "150000 100000": microseconds of processor time in each period; "max 100000": no limit.
            let numbers = line.split(separator: " ").compactMap { Int($0) }
            guard numbers.count == 2, numbers[0] > 0, numbers[1] > 0 else { return nil }
            return (numbers[0] - 1) / numbers[1] + 1
        }
        return min(usable.count, shares.min() ?? .max)
    }
}

/// A number that is the same only for calls from the same thread.
public func currentThread() -> UInt { UInt(pthread_self()) }
