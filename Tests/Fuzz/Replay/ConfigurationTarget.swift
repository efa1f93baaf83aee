@testable import martlet

extension FuzzTarget {
    /// The configuration file. It comes from the operator, so it is replayed and not fuzzed: libFuzzer's program cannot hold the
    /// server's own main.
    static let configuration = FuzzTarget("Configuration", fuzzConfiguration, seeds: Seeds.configurations)
}

/// A configuration file, and the same text as the value of every environment variable.
func fuzzConfiguration(_ input: UnsafeRawBufferPointer) {
    let text = String(decoding: input, as: UTF8.self)
    var reader = ConfigurationReader()
    if let document = try? YAMLDocument(parsing: text) {
        checkLines(document.members)
        reader.apply(document, from: "fuzz.yaml")
    }
    let names = Setting.all.map(\.variable) + ["MARTLET_KEYS", "MARTLET_KEYS_APP"]
    reader.apply(Dictionary(uniqueKeysWithValues: names.map { ($0, text) }))
    let faults = reader.faults + reader.configuration.keyFaults
    for fault in faults { precondition(fault.line > 0 && !fault.description.isEmpty) }
    _ = Spelling.nearest(to: String(text.prefix(100)), among: names)
}

private func checkLines(_ members: [YAMLDocument.Member]) {
    for member in members {
        precondition(member.line > 0 && member.value.line > 0)
        if case .map(let inner) = member.value.content { checkLines(inner) }
    }
}
