// In the viewer's page: writes the browser's measurements of its only video to window.samples, five times per second.
(connection) => {
    window.samples = [];
    const began = performance.now();
    setInterval(async () => {
        const reports = await connection.getStats();
        reports.forEach((one) => {
            if (one.type !== "inbound-rtp" || one.kind !== "video") return;
            window.samples.push({
                t: (performance.now() - began) / 1000,
                height: one.frameHeight ?? 0, decoded: one.framesDecoded ?? 0, fps: one.framesPerSecond ?? 0,
                freezes: one.freezeCount, frozen: one.totalFreezesDuration, bytes: one.bytesReceived ?? 0,
                lost: one.packetsLost ?? 0, packets: one.packetsReceived ?? 0, keyframes: one.keyFramesDecoded ?? 0,
                buffered: one.jitterBufferDelay ?? 0, emitted: one.jitterBufferEmittedCount ?? 0, plis: one.pliCount ?? 0,
            });
        });
    }, 200);
}
