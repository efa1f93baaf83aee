"""A WHIP client in a page of Chromium: trickles candidates and restarts ICE by PATCH, as RFC 9725 section 4.3 describes."""
SCRIPT = r"""
window.whip = {
    async start(url, token, shapes) {
        const pen = Object.assign(document.createElement("canvas"), { width: 640, height: 360 }).getContext("2d");
        let n = 0;
        setInterval(() => {
            pen.fillStyle = `hsl(${n++ * 5} 80% 50%)`;
            pen.fillRect(0, 0, 640, 360);
            // The more of them, the more bits a frame takes.
            for (let i = 0; i < shapes; i++) {
                pen.fillStyle = `hsl(${360 * Math.random()} 70% 50%)`;
                pen.fillRect(640 * Math.random(), 360 * Math.random(), 20, 20);
            }
        }, 50);
        const connection = this.connection = new RTCPeerConnection({ bundlePolicy: "max-bundle" });
        connection.addTransceiver(pen.canvas.captureStream(20).getVideoTracks()[0], { direction: "sendonly" });
        this.headers = { Authorization: `Bearer ${token}` };
        this.trickled = [];
        const early = [];
        connection.onicecandidate = ({ candidate }) => this.location ? this.trickle(candidate) : early.push(candidate);
        await connection.setLocalDescription();
        // Sent at once, without a single candidate.
        const sdp = connection.localDescription.sdp.split("\r\n").filter((line) => !line.startsWith("a=candidate")).join("\r\n");
        const reply = await fetch(url, { method: "POST", body: sdp, headers: { ...this.headers, "Content-Type": "application/sdp" } });
        this.location = new URL(reply.headers.get("Location"), url).href;
        this.etag = reply.headers.get("ETag");
        await connection.setRemoteDescription({ type: "answer", sdp: await reply.text() });
        for (const candidate of early) await this.trickle(candidate);
        return reply.status;
    },
    credentials(sdp) {
        return ["a=ice-ufrag:", "a=ice-pwd:"].map((name) => sdp.split("\r\n").find((line) => line.startsWith(name))).join("\r\n");
    },
    fragment(...lines) {
        const { sdp } = this.connection.localDescription;
        return [this.credentials(sdp), sdp.split("\r\n").find((line) => line.startsWith("m=")), "a=mid:0", ...lines, ""].join("\r\n");
    },
    patch(body, etag = this.etag) {
        return fetch(this.location, { method: "PATCH", body, headers: {
            ...this.headers, "Content-Type": "application/trickle-ice-sdpfrag", "If-Match": etag } });
    },
    async trickle(candidate) {
        const line = candidate?.candidate ? `a=${candidate.candidate}` : "a=end-of-candidates";
        this.trickled.push((await this.patch(this.fragment(line))).status);
    },
    async restart() {
        const connection = this.connection;
        connection.restartIce();
        // Its own candidates come with the fragment's answer or by checks: ICE-lite needs none.
        connection.onicecandidate = null;
        const offer = await connection.createOffer();
        await connection.setLocalDescription(offer);
        const reply = await this.patch(this.fragment(), "*");
        const text = await reply.text();
        const lines = text.split(/\r?\n/);
        let answer = connection.remoteDescription.sdp;
        for (const name of ["a=ice-ufrag:", "a=ice-pwd:"]) {
            const line = lines.find((one) => one.startsWith(name));
            answer = answer.replace(new RegExp(`${name}.*`, "g"), line);
        }
        const before = this.etag;
        this.etag = reply.headers.get("ETag");
        await connection.setRemoteDescription({ type: "answer", sdp: answer });
        return { status: reply.status, type: reply.headers.get("Content-Type"), before, after: this.etag };
    },
    async transport() {
        let found = null;
        (await this.connection.getStats()).forEach((one) => { if (one.type === "transport") found = one; });
        return found;
    },
    async localPort() {
        let port = null;
        const reports = await this.connection.getStats();
        reports.forEach((one) => {
            if (one.type === "transport" && one.selectedCandidatePairId) {
                port = reports.get(reports.get(one.selectedCandidatePairId).localCandidateId).port;
            }
        });
        return port;
    },
};
"""


async def open_whip(browser, server, url, token, shapes=0):
    """A page that publishes a moving picture, of random `shapes` too, to `url`; its client is `window.whip`."""
    page = await browser.new_page(bypass_csp=True)
    await page.goto(server.url + "/")
    await page.evaluate(SCRIPT)
    status = await page.evaluate("([url, token, shapes]) => whip.start(url, token, shapes)", [url, token, shapes])
    assert status == 201, status
    return page
