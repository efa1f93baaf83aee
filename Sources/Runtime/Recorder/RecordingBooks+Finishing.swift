extension RecordingBooks {
    /// Tries again to finish files that the disk refused when their recording ended. Returns the recordings with fewer such files now. Blocks.
    func finishRefused() -> [String] {
        guard hadRoom else { return [] }
        return all.filter { $0.endedAt != nil && $0.refusedFiles > 0 }.compactMap { summary in
            var tried = summary
            _ = tried.finishFiles(in: folder(of: summary))
            guard tried.refusedFiles < summary.refusedFiles else { return nil }
            let isThere = change(summary.sid, isKept: true) { summary in
                summary.apply(finishedFilesOf: tried)
                summary.markForWork(movesIndexes: movesIndexes)
            }
            return isThere ? summary.sid : nil
        }
    }

    /// Requests moves of tables and joins for which the disk had no room before and has room now. Returns the recordings that have any. Queries the disk.
    func retryRefused() -> [String] {
        guard hadRoom else { return [] }
        return all.compactMap { summary in
            let tables = summary.refusedIndexes.filter { movesIndexes && hasRoom(beside: $0.bytes ?? 0) }.map(\.name)
            let parts = summary.refusedJoins.filter { hasRoom(beside: $0.bytes) }.map(\.name)
            guard !tables.isEmpty || !parts.isEmpty else { return nil }
            let isThere = change(summary.sid, isKept: false) { summary in
                summary.retryIndexes(of: Set(tables))
                summary.retryJoins(of: Set(parts))
            }
            return isThere ? summary.sid : nil
        }
    }
}
