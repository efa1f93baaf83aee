extension CaseIterable where Self: RawRepresentable<String> {
    /// Every word that there is, for messages: "grid, speaker, presentation".
    public static var allWords: String { allCases.map(\.rawValue).joined(separator: ", ") }
}
