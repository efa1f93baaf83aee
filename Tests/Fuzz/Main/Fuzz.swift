import Foundation

// libFuzzer's own main calls these. MARTLET_FUZZ_TARGET names the target; MARTLET_FUZZ_SEEDS a folder that gets its seeds.

nonisolated(unsafe) private var run: (UnsafeRawBufferPointer) -> Void = { _ in }

@_cdecl("LLVMFuzzerInitialize")
public func initialise(
    _ count: UnsafeMutablePointer<CInt>?, _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?
) -> CInt {
    let environment = ProcessInfo.processInfo.environment
    guard let name = environment["MARTLET_FUZZ_TARGET"], let target = FuzzTarget.all.first(where: { $0.name == name })
    else {
        print(FuzzTarget.all.map(\.name).joined(separator: "\n"))
        exit(0)
    }
    do {
        run = try target.start()
        if let folder = environment["MARTLET_FUZZ_SEEDS"] { try write(try target.seeds(), to: folder) }
    } catch {
        print("\(name): \(error)")
        exit(1)
    }
    return 0
}

@_cdecl("LLVMFuzzerTestOneInput")
public func testOneInput(_ data: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    run(UnsafeRawBufferPointer(start: data, count: count))
    return 0
}

private func write(_ seeds: [[UInt8]], to folder: String) throws {
    let url = URL(fileURLWithPath: folder)
    try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
    for (index, seed) in seeds.enumerated() {
        try Data(seed).write(to: url.appendingPathComponent("seed\(index)"))
    }
}
