extension CaseIterable where Self: RawRepresentable<String> {
    /// All words of the type, for messages: "grid, speaker, presentation".
    public static var allWords: String { allCases.map(\.rawValue).joined(separator: ", ") }
}
