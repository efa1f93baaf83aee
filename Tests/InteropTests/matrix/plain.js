// A WHIP publisher and a WHEP player as a plain page has them: the browser's standard offer, nothing added to it.
window.plain = {
    async exchange(url, token) {
        const { connection } = this;
        await connection.setLocalDescription();
        await new Promise((done) => {
            const look = () => connection.iceGatheringState === "complete" && done();
            connection.onicegatheringstatechange = look;
            look();
        });
        const headers = { "Content-Type": "application/sdp", Authorization: `Bearer ${token}` };
        const reply = await fetch(url, { method: "POST", body: connection.localDescription.sdp, headers });
        const text = await reply.text();
        if (reply.status !== 201) return `${reply.status} ${text}`;
        this.location = new URL(reply.headers.get("Location"), url).href;
        this.token = token;
        await connection.setRemoteDescription({ type: "answer", sdp: text });
        return "created";
    },
    draw(width, height, framesPerSecond) {
        const pen = Object.assign(document.createElement("canvas"), { width, height }).getContext("2d");
        let n = 0;
        setInterval(() => {
            pen.fillStyle = `hsl(${n++ * 3} 60% 50%)`;
            pen.fillRect(0, 0, width, height);
            // Detail that moves, or the largest layer takes hardly more than the smallest.
            for (let i = 0; i < 60; i++) {
                pen.fillStyle = `hsl(${(47 * i) % 360} 70% 50%)`;
                pen.fillRect((i * 173 + n * 7) % width, (i * 97 + n * 3) % height, width / 24, height / 24);
            }
        }, 1000 / framesPerSecond);
        return pen.canvas.captureStream(framesPerSecond).getVideoTracks()[0];
    },
    async publish(url, token, { codec, encodings, width, height, framesPerSecond }) {
        this.connection = new RTCPeerConnection({ bundlePolicy: "max-bundle" });
        const track = this.draw(width, height, framesPerSecond);
        const transceiver = this.connection.addTransceiver(track, { direction: "sendonly", sendEncodings: encodings });
        const wanted = ({ mimeType, sdpFmtpLine = "" }) =>
            (mimeType === `video/${codec}` && !/profile-id=[1-9]/.test(sdpFmtpLine)) || mimeType === "video/rtx";
        transceiver.setCodecPreferences(RTCRtpReceiver.getCapabilities("video").codecs.filter(wanted));
        this.sender = transceiver.sender;
        return this.exchange(url, token);
    },
    // Sends so many of the simulcast encodings, from the smallest.
    async sendLayers(count) {
        const parameters = this.sender.getParameters();
        parameters.encodings.forEach((one, index) => { one.active = index < count; });
        await this.sender.setParameters(parameters);
    },
    // A single stream leaves out spatial layers that its bitrate does not carry.
    async limit(bitrate) {
        const parameters = this.sender.getParameters();
        if (bitrate) parameters.encodings[0].maxBitrate = bitrate; else delete parameters.encodings[0].maxBitrate;
        await this.sender.setParameters(parameters);
    },
    async play(url, token) {
        this.connection = new RTCPeerConnection({ bundlePolicy: "max-bundle" });
        const video = Object.assign(document.createElement("video"), { autoplay: true, muted: true, playsInline: true });
        video.srcObject = new MediaStream();
        document.body.replaceChildren(video);
        this.connection.ontrack = ({ track }) => video.srcObject.addTrack(track);
        for (const kind of ["video", "audio"]) this.connection.addTransceiver(kind, { direction: "recvonly" });
        return this.exchange(url, token);
    },
    async stop() {
        this.connection.close();
        await fetch(this.location, { method: "DELETE", headers: { Authorization: `Bearer ${this.token}` } });
    },
    async received() {
        let found = {};
        (await this.connection.getStats()).forEach((one) => { if (one.type === "inbound-rtp" && one.kind === "video") found = one; });
        return {
            frames: found.framesDecoded ?? 0, height: found.frameHeight ?? 0, requests: found.pliCount ?? 0, bytes: found.bytesReceived ?? 0,
            keyframes: found.keyFramesDecoded ?? 0, freezes: found.freezeCount ?? 0, assembled: found.framesReceived ?? 0, nacks: found.nackCount ?? 0,
            lost: found.packetsLost ?? 0, dropped: found.framesDropped ?? 0,
        };
    },
    async sent() {
        const all = [];
        (await this.connection.getStats()).forEach((one) => {
            if (one.type === "outbound-rtp" && one.kind === "video")
                all.push({ rid: one.rid, height: one.frameHeight, frames: one.framesEncoded, bytes: one.bytesSent, mode: one.scalabilityMode, plis: one.pliCount, keyframes: one.keyFramesEncoded });
        });
        return all;
    },
};
