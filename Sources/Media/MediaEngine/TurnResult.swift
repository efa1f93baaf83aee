/// Whether work remains after a call that writes many datagrams.
public enum TurnResult: Sendable, Hashable {
    /// All work of the turn is done.
    case done
    /// The batch was full before the work was done: send it, empty it and call again with the same time.
    case needsFlush
}
