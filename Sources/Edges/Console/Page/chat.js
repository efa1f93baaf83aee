// Chat and files next to the floor: messages of the topic "chat", and files of the module (martlet.js). Everything from others is shown as text.

import { bytes, element, isComposed, make } from "./elements.js";

const TOPIC = "chat";
/** A file is kept in memory on both sides, and the server forwards half a megabyte per second from one participant: this takes most of a minute. */
export const MAX_FILE_BYTES = 25_000_000;
/** Received files together; more are declined, so that nobody fills this page's memory. */
const MAX_KEPT_BYTES = 4 * MAX_FILE_BYTES;
/** Lines that are kept; the oldest are removed first. */
const MAX_LINES = 500;

export class Chat {
    /** `call()` is the stay, or null. */
    constructor(call) {
        Object.assign(this, { call, isAllowed: true });
        this.unread = 0;
        this.kept = 0; // bytes of received files
        this.links = []; // addresses of what can be downloaded
        this.transfers = new Set(); // of what is being sent: AbortController
        element("chat-open").onclick = () => this.setOpen(element("chat").hidden);
        element("chat-close").onclick = () => this.setOpen(false);
        // Escape within a composition cancels that: a person who writes Japanese or Chinese continues in the same field.
        element("chat").onkeydown = (event) => { if (event.key === "Escape" && !isComposed(event)) this.setOpen(false); };
        element("chat-form").onsubmit = (event) => {
            event.preventDefault();
            this.sendText();
        };
        element("chat-pick").onclick = () => element("chat-file").click();
        element("chat-file").onchange = ({ target }) => {
            this.sendFiles([...target.files]);
            target.value = ""; // The same file may be picked again.
        };
        this.takeDrops(element("room"));
    }

    takeDrops(area) {
        const isFile = (event) => event.dataTransfer?.types.includes("Files") && this.maySend;
        area.ondragover = (event) => {
            if (!isFile(event)) return;
            event.preventDefault();
            area.classList.add("dropping");
        };
        area.ondragleave = (event) => { if (!area.contains(event.relatedTarget)) area.classList.remove("dropping"); };
        area.ondrop = (event) => {
            area.classList.remove("dropping");
            if (!isFile(event)) return;
            event.preventDefault();
            this.setOpen(true);
            this.sendFiles([...event.dataTransfer.files]);
        };
    }

    setOpen(isOpen) {
        element("chat").hidden = !isOpen;
        element("chat-open").setAttribute("aria-expanded", String(isOpen));
        if (isOpen) {
            this.setUnread(0);
            this.scroll();
            element("chat-text").focus();
        } else element("chat-open").focus();
    }

    setUnread(count) {
        this.unread = count;
        element("chat-unread").textContent = count > 99 ? "99+" : count || "";
        element("chat-open").title = count ? `${count} unread ${count === 1 ? "message" : "messages"}` : "";
        if (!count) element("chat-news").textContent = "";
    }

    /** Whether the room's rules and this participant's permissions allow sending. */
    get maySend() { return this.isAllowed && (this.call()?.self?.permissions.canPublishData ?? false); }

    /** The room's rules let its members write, or no longer do. */
    allow(isAllowed) {
        this.isAllowed = isAllowed;
        this.render();
    }

    /** A stay began, or the room's rules or this participant's permissions changed. */
    render() {
        const { maySend } = this;
        for (const id of ["chat-text", "chat-pick", "chat-send"]) element(id).disabled = !maySend;
        element("chat-text").placeholder = maySend ? "Message to everybody" : this.isAllowed ? "You may only read here" : "Nobody may write in this room now";
    }

    /** The stay ended: its messages are not for the next one. */
    clear() {
        for (const transfer of this.transfers) transfer.abort();
        for (const link of this.links) URL.revokeObjectURL(link);
        Object.assign(this, { kept: 0, links: [] });
        element("chat-log").replaceChildren();
        element("chat-problem").textContent = "";
        element("chat").hidden = true;
        element("chat-open").setAttribute("aria-expanded", "false");
        this.setUnread(0);
    }

    complain(text) {
        element("chat-problem").textContent = text;
        this.scroll(); // The log became shorter: its last line stays in sight.
    }

    // MARK: Messages

    async sendText() {
        const field = element("chat-text"), text = field.value.trim(), call = this.call();
        if (!text) return;
        this.complain("");
        field.value = ""; // At once: what is written while this is sent is the next message.
        try {
            await call.room.send(text, { topic: TOPIC });
        } catch (problem) {
            if (call !== this.call()) return;
            if (!field.value) field.value = text;
            return this.complain(problem.message);
        }
        if (call !== this.call()) return;
        this.add(this.line("You", true, paragraph(text)));
    }

    /** A message from anybody; those of other topics are not for people. */
    received({ topic, text, participant, identity }) {
        if (topic !== TOPIC || text === undefined) return;
        const name = nameOf(participant, identity);
        this.add(this.line(name, false, paragraph(text)));
        this.note(`${name}: ${text}`);
    }

    /** The server delivered nothing, and says why. */
    refused({ message }) { this.complain(message); }

    // MARK: Files

    sendFiles(files) {
        this.complain("");
        for (const file of files) {
            if (file.size > MAX_FILE_BYTES) {
                this.complain(`“${file.name}” has ${bytes(file.size)}. A file may have at most ${bytes(MAX_FILE_BYTES)}; nothing was sent.`);
            } else this.sendFile(file);
        }
    }

    async sendFile(file) {
        const entry = new FileEntry(file.name, file.size), transfer = new AbortController();
        entry.offerEnd("Cancel", () => transfer.abort());
        this.transfers.add(transfer);
        this.add(this.line("You", true, entry.element));
        entry.say("Waiting for the others…");
        try {
            const { receivers } = await this.call().room.sendFile(file, { signal: transfer.signal, onProgress: (done) => entry.progress(done) });
            entry.finish(receivers === 1 ? "Received by 1 person" : `Received by ${receivers} people`);
        } catch (problem) {
            entry.fail(problem.message);
        }
        this.transfers.delete(transfer);
    }

    /** Somebody sends a file: it is received at once, because it may be small, and shown only when it is complete. */
    async offered({ file, participant }) {
        if (this.kept + file.size > MAX_KEPT_BYTES) {
            file.decline("too_large");
            return this.complain(`“${file.name}” was declined: this page keeps at most ${bytes(MAX_KEPT_BYTES)} of files.`);
        }
        this.kept += file.size;
        const entry = new FileEntry(file.name, file.size);
        entry.offerEnd("Decline", () => file.decline());
        this.add(this.line(nameOf(participant), false, entry.element));
        this.note(`${nameOf(participant)}: ${file.name}`);
        try {
            const content = await file.accept({ onProgress: (done) => entry.progress(done) });
            // As bytes: a browser that showed a page or an image with scripts would run them.
            const link = URL.createObjectURL(new Blob([content], { type: "application/octet-stream" }));
            this.links.push(link);
            entry.finish("", link);
        } catch (problem) {
            this.kept -= file.size;
            entry.fail(problem.message);
        }
    }

    // MARK: The log

    line(name, isOwn, content) {
        const item = make("li", isOwn ? "own" : "");
        const head = make("p", "head");
        head.append(make("bdi", "", name), make("time", "", new Date().toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" })));
        item.append(head, content);
        return item;
    }

    add(item) {
        const log = element("chat-log");
        log.append(item);
        if (log.childElementCount > MAX_LINES) log.firstElementChild.remove();
        this.scroll();
    }

    /** While the log is hidden, screen readers do not read it out. */
    note(text) {
        if (!element("chat").hidden) return;
        this.setUnread(this.unread + 1);
        element("chat-news").textContent = text; // The same words again are another message.
    }

    scroll() { element("chat-log").scrollTop = element("chat-log").scrollHeight; }
}

/** A person's text, in the direction of its own script: otherwise its words and its full stop would be in the wrong places. */
function paragraph(text) { return Object.assign(make("p", "", text), { dir: "auto" }); }

function nameOf(participant, identity) { return participant?.name || participant?.identity || identity || "The server"; }

/** A file in the log: its name and size, its progress, and its buttons. */
class FileEntry {
    constructor(name, size) {
        this.name = name;
        this.size = size;
        this.element = make("div", "file");
        this.bar = Object.assign(document.createElement("progress"), { max: Math.max(size, 1), value: 0 });
        this.bar.setAttribute("aria-label", `Progress of ${name}`);
        this.state = make("span", "state");
        this.actions = make("span", "actions");
        this.element.append(make("bdi", "name", name), this.bar, this.state, this.actions);
        this.say("");
    }

    offerEnd(label, action) {
        const button = make("button", "button small", label);
        button.type = "button";
        button.onclick = action;
        this.actions.replaceChildren(button);
    }

    say(text) { this.state.textContent = [bytes(this.size), text].filter(Boolean).join(" · "); }

    progress(done) {
        this.bar.value = done;
        this.state.textContent = `${bytes(done)} of ${bytes(this.size)}`;
    }

    finish(text, link) {
        this.bar.remove();
        this.say(text);
        this.actions.replaceChildren(...(link ? [Object.assign(make("a", "button small", "Download"), { href: link, download: this.name })] : []));
    }

    fail(text) {
        this.element.classList.add("failed");
        this.bar.remove();
        this.say(text);
        this.actions.replaceChildren();
    }
}
