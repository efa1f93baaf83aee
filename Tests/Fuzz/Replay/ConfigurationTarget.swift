@testable import martlet

extension FuzzTarget {
    /// The configuration file. It comes from the operator, so it is replayed and not fuzzed: libFuzzer's program cannot hold the
    /// server's own main.
    static let configuration = FuzzTarget("Configuration", fuzzConfiguration, seeds: Seeds.configurations)
}

/// A configuration file, and the same text as the value of every environment variable.
func fuzzConfiguration(_ input: UnsafeRawBufferPointer) {
    let text = String(decoding: input, as: UTF8.self)
    var configuration = Configuration()
    var faults: [String] = []
    if let document = try? YAMLDocument(parsing: text) {
        for entry in document.entries { precondition(entry.line > 0 && !entry.values.contains { $0.utf8.contains(0) }) }
        configuration.take(document.entries, from: "fuzz.yaml", &faults)
    }
    let values = Setting.all.map { ($0.variable, text) } + [("MARTLET_KEYS", text)]
    configuration.take(Dictionary(uniqueKeysWithValues: values), &faults)
    _ = configuration.faults
}
