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
}
