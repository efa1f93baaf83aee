// A page's side of Janus's VideoRoom over HTTP: window.janus = { publish, view }. For comparisons only.
window.janus = (() => {
    const post = async (url, body) => {
        const answer = await fetch(url, { method: "POST", body: JSON.stringify({ transaction: crypto.randomUUID?.() ?? String(Math.random()), ...body }) });
        return answer.json();
    };

    class Handle {
        static async attach(base) {
            const handle = new Handle();
            const session = await post(base, { janus: "create" });
            handle.session = `${base}/${session.data.id}`;
            handle.waiting = new Map();
            handle.events = [];
            const attached = await post(handle.session, { janus: "attach", plugin: "janus.plugin.videoroom" });
            handle.url = `${handle.session}/${attached.data.id}`;
            handle.poll();
            return handle;
        }

        async poll() {
            for (;;) {
                const event = await (await fetch(`${this.session}?maxev=1`)).json();
                if (event.janus === "event") this.arrived?.(event);
            }
        }

        /** Sends a request and waits for its event. */
        async ask(body, jsep) {
            const arrived = new Promise((resolve) => { this.arrived = resolve; });
            await post(this.url, { janus: "message", body, ...(jsep ? { jsep } : {}) });
            const event = await arrived;
            if (event.plugindata.data.error) throw new Error(event.plugindata.data.error);
            return event;
        }
    }

    const gathered = (connection) => new Promise((resolve) => {
        const look = () => { if (connection.iceGatheringState === "complete") resolve(); };
        connection.onicegatheringstatechange = look;
        look();
    });

    return {
        async publish(base, room, stream, encodings, codec) {
            const handle = await Handle.attach(base);
            await post(handle.url, { janus: "message", body: { request: "create", room, publishers: 2, videocodec: codec.toLowerCase(), bitrate: 0 } });
            await handle.ask({ request: "join", ptype: "publisher", room, id: 1 });
            const connection = new RTCPeerConnection();
            for (const track of stream.getTracks()) {
                connection.addTransceiver(track, {
                    direction: "sendonly", streams: [stream], ...(track.kind === "video" ? { sendEncodings: encodings } : {}),
                });
            }
            await connection.setLocalDescription();
            await gathered(connection);
            const event = await handle.ask({ request: "publish" }, connection.localDescription);
            await connection.setRemoteDescription(event.jsep);
            return connection;
        },

        async view(base, room) {
            const handle = await Handle.attach(base);
            const event = await handle.ask({ request: "join", ptype: "subscriber", room, streams: [{ feed: 1 }] });
            const connection = new RTCPeerConnection();
            const shown = document.createElement("video");
            shown.autoplay = shown.muted = true;
            shown.srcObject = new MediaStream();
            document.body.append(shown);
            connection.ontrack = ({ track }) => shown.srcObject.addTrack(track);
            await connection.setRemoteDescription(event.jsep);
            await connection.setLocalDescription(await connection.createAnswer());
            await gathered(connection);
            await handle.ask({ request: "start" }, connection.localDescription);
            return connection;
        },
    };
})();
