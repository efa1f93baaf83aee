extension RecordingBooks {
    /// Tries again to finish what the disk refused when its recording ended. Returns the recordings of which less is refused now. Blocks.
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

    /// Has tables moved for which the disk had no room and has now. Returns the recordings that have any. Looks at the disk.
    func retryIndexes() -> [String] {
        guard movesIndexes, hadRoom else { return [] }
        return all.compactMap { summary in
            let names = Set(summary.refusedIndexes.filter { hasRoom(beside: $0.bytes ?? 0) }.map(\.name))
            guard !names.isEmpty else { return nil }
            let isThere = change(summary.sid, isKept: false) { $0.retryIndexes(of: names) }
            return isThere ? summary.sid : nil
        }
    }
}
