// A room's policy as a form. Each change gets a dry run first (`dryRun`): the form shows whom it would affect before anybody applies it.
// Every edit names the revision that it was made for, so that two operators never overwrite each other unnoticed.

import { path } from "./api.js";
import { ask } from "./dialog.js";
import { clock, count, element, make } from "./elements.js";
import { isLost, wordsOf } from "./impact.js";
import { placeOf } from "./places.js";
import { fieldsOf } from "./rules.js";

/** How long after the last key the dry run begins. */
const PAUSE_MS = 400;
/** After how many updates of the tab the policy, or the dry run, is read again: people join and leave meanwhile. */
const LOOKS = 3;
/** The members that decide who is let in: a change may leave somebody in the room who would no longer be. */
const LETS_IN = ["maxParticipants", "countsHidden", "countsPublishOnly", "requireEncryption"];

export class PolicyEditor {
    constructor({ api }) {
        Object.assign(this, { api, name: "policy", room: null, fields: new Map(), looks: 0, run: 0 });
        element("policy-form").oninput = () => this.changed();
        element("policy-form").onsubmit = (event) => event.preventDefault();
        element("policy-remove-excess").onchange = () => this.changed();
        element("policy-discard").onclick = () => { this.discard(); element("policy-title").focus(); };
        element("policy-apply").onclick = () => this.apply();
    }

    /** Unapplied input for the same room is kept. */
    show({ room }) {
        element("policy-title").textContent = `Policy of ${room}`;
        element("policy-back").href = placeOf(["rooms", room]);
        element("policy-done").textContent = "";
        if (room !== this.room) {
            // Pending requests are about the former one.
            clearTimeout(this.timer);
            this.run += 1;
            this.room = room;
            this.tag = this.impact = this.conflict = null;
            this.isFaulty = false;
            element("policy-form").replaceChildren();
            this.fields.clear();
        }
        this.looks = -1;
        return this.look();
    }

    async look() {
        this.looks = (this.looks + 1) % LOOKS;
        if (this.looks || this.isApplying) return;
        if (!this.tag) await this.attempt(() => this.read());
        else if (this.conflict) return;
        else if (this.hasChanges) await this.rehearse();
        else await this.attempt(() => this.read());
    }

    get policyPath() { return path(this.room, "policy"); }

    /** The policy in force, in all fields that nobody changed. */
    async read() {
        const { room } = this;
        const [{ value, tag }, properties] = await Promise.all([this.api.exchange("GET", this.policyPath), this.schema()]);
        // Text typed meanwhile was meant for the policy that was shown; the dry run will report that there is another one now.
        if (room !== this.room || this.tag && this.tag !== tag && this.hasChanges) return;
        if (!this.fields.size) this.build(properties);
        this.adopt(value, tag, true);
        this.complain(null);
        this.render();
    }

    async schema() {
        this.description ??= await this.api.call("GET", "/openapi.json");
        return this.description.components.schemas.Policy.properties;
    }

    build(properties) {
        for (const [title, fields] of fieldsOf(properties)) {
            if (!fields.length) continue;
            const group = make("section");
            group.append(make("h3", "", title), ...fields.map((field) => field.element));
            element("policy-form").append(group);
            for (const field of fields) this.fields.set(field.name, field);
        }
    }

    adopt(policy, tag, keep = false) {
        this.tag = tag;
        for (const field of this.fields.values()) field.setBase(policy[field.name], keep);
    }

    /** As a merge patch (RFC 7396). */
    get patch() {
        const changed = [...this.fields.values()].map((field) => [field.name, field.change]).filter(([, change]) => change !== undefined);
        return Object.fromEntries(changed);
    }

    get hasChanges() { return Object.keys(this.patch).length > 0; }
    /** Whether the changes can leave somebody in the room who would no longer be let in. */
    get mayExceed() { return LETS_IN.some((name) => name in this.patch); }
    get query() { return element("policy-remove-excess").checked && this.mayExceed ? "removeExcess=true" : ""; }

    changed() {
        clearTimeout(this.timer);
        this.run += 1;
        this.impact = null;
        element("policy-done").textContent = "";
        const isValid = this.check();
        this.render();
        if (!isValid || this.conflict || !this.hasChanges) return;
        this.timer = setTimeout(() => this.rehearse(), PAUSE_MS);
    }

    /** Whether all fields can be sent; marks those that cannot. */
    check() {
        const faults = [...this.fields.values()].map((field) => {
            field.complain(field.fault);
            return field.fault;
        });
        this.isFaulty = faults.some(Boolean);
        this.complain(null);
        return !this.isFaulty;
    }

    /** Asks whom the changes would affect. */
    async rehearse() {
        const run = ++this.run;
        // The change that is being applied is the base of the next one.
        if (this.isFaulty || this.isApplying) return;
        await this.attempt(async () => {
            const [impact, { participants }] = await Promise.all([
                this.api.call("PATCH", `${this.policyPath}?dryRun=true${this.query && `&${this.query}`}`, { body: this.patch, match: this.tag }),
                this.api.call("GET", path(this.room)),
            ]);
            if (run !== this.run) return;
            Object.assign(this, { impact, participants });
            this.complain(null);
            this.render();
        }, () => run === this.run);
    }

    async apply() {
        const lost = this.impact.participants.filter(isLost);
        const question = { title: `Apply the policy of “${this.room}”?`, text: consequences(this.impact), action: "Apply" };
        if (lost.length && !await ask(question) || !this.impact) return;
        this.isApplying = true;
        this.run += 1;
        this.render();
        const { room, patch: sent } = this;
        let isDone = false;
        await this.attempt(async () => {
            const { value, tag } = await this.api.exchange("PATCH", `${this.policyPath}${this.query && `?${this.query}`}`, { body: sent, match: this.tag });
            if (room !== this.room) return;
            isDone = true;
            this.impact = null;
            element("policy-remove-excess").checked = false;
            this.tag = tag;
            // Text typed meanwhile is the next change.
            for (const field of this.fields.values()) {
                const { name, change } = field;
                field.setBase(value[name], change === undefined || JSON.stringify(change) !== JSON.stringify(sent[name]));
            }
            this.complain(null);
            element("policy-done").textContent = `Applied at ${clock(Date.now())}.`;
        });
        this.isApplying = false;
        this.render();
        if (isDone && this.hasChanges) this.rehearse();
        // The button that was pressed is disabled now, and a disabled button keeps no focus.
        if (document.activeElement === document.body) element("policy-title").focus();
    }

    discard() {
        if (this.conflict) this.tag = null;
        this.conflict = this.impact = null;
        this.run += 1;
        for (const field of this.fields.values()) {
            field.setBase(field.base);
            field.complain("");
        }
        this.isFaulty = false;
        this.complain(null);
        this.render();
        return this.attempt(() => this.read());
    }

    // MARK: Refusals

    async attempt(work, isCurrent = () => true) {
        const { room } = this;
        try {
            await work();
        } catch (problem) {
            if (!isCurrent() || room !== this.room) return;
            this.impact = null;
            if (problem.status === 412) await this.attempt(() => this.meet());
            else this.complain(problem);
            this.render();
        }
    }

    /** Somebody else changed the policy since it was read: what they changed is shown, and a person decides. */
    async meet() {
        const { value, tag } = await this.api.exchange("GET", this.policyPath);
        const theirs = [...this.fields.values()].filter((field) => JSON.stringify(field.base) !== JSON.stringify(value[field.name]));
        // Undone meanwhile: there is nothing to decide.
        if (!theirs.length) {
            this.adopt(value, tag, true);
            return this.rehearse();
        }
        this.conflict = { value, tag, lines: theirs.map((field) => this.clash(field, value[field.name])) };
        this.complain(null);
    }

    clash(field, theirs) {
        const own = field.change === undefined ? "" : `; you want ${field.words(field.change)}`;
        return `${field.title}: ${field.words(theirs)}, was ${field.words(field.base)}${own}`;
    }

    keep() {
        const { value, tag } = this.conflict;
        this.conflict = null;
        this.adopt(value, tag, true);
        this.changed();
        element("policy-title").focus();
    }

    complain(problem) {
        const words = { 404: "This room was closed.", 410: "This room was closed." }[problem?.status] ?? problem?.message ?? "";
        element("policy-problem").textContent = words && problem.code && problem.status < 500 ? `${words} (${problem.code})` : words;
        element("policy").classList.toggle("stale", problem?.status === 0);
        const place = problem?.pointer?.split("/")[1];
        this.fields.get(place)?.complain(problem.message);
    }

    // MARK: What is shown

    render() {
        const changes = [...this.fields.values()].filter((field) => field.change !== undefined);
        for (const field of this.fields.values()) field.element.classList.toggle("changed", field.change !== undefined);
        fill(element("policy-changes"), changes.map((field) => `${field.title}: ${field.words(field.base)} → ${field.words(field.change)}`));
        element("policy-excess").hidden = this.conflict || !this.mayExceed;
        element("policy-choices").hidden = this.conflict;
        element("policy-discard").disabled = !changes.length && !this.isFaulty || this.isApplying;
        element("policy-apply").disabled = !this.impact || this.conflict || this.isApplying;
        this.renderConflict();
        fill(element("policy-impact"), this.impactLines(changes.length));
    }

    impactLines(changes) {
        if (this.isFaulty) return ["Correct the marked fields first."];
        if (!changes) return this.tag ? ["Nothing is changed yet."] : [];
        if (!this.impact) return this.conflict || element("policy-problem").textContent ? [] : ["Checking …"];
        return wordsOf(this.impact, this.participants);
    }

    renderConflict() {
        const box = element("policy-conflict");
        const key = JSON.stringify(this.conflict?.lines ?? null);
        if (box.dataset.key === key) return;
        box.dataset.key = key;
        box.replaceChildren();
        if (!this.conflict) return;
        const lines = make("ul"), choices = make("div", "choices");
        fill(lines, this.conflict.lines);
        const keep = make("button", "button", "Keep my changes"), take = make("button", "button", "Discard my changes");
        keep.onclick = () => this.keep();
        take.onclick = () => { this.discard(); element("policy-title").focus(); };
        choices.append(keep, take);
        box.append(make("p", "problem", "Somebody else changed this policy after you opened it. Nothing of yours was applied."), lines, choices);
    }
}

/** The text of a confirmation about what ends. */
function consequences({ participants }) {
    const leaving = participants.filter((one) => one.leaves).length;
    const tracks = participants.reduce((sum, one) => sum + one.endedTracks.length, 0);
    const parts = [];
    if (leaving) parts.push(`${count(leaving, "participant")} ${leaving === 1 ? "is" : "are"} disconnected`);
    if (tracks) parts.push(`${count(tracks, "track")} ${tracks === 1 ? "ends" : "end"}`);
    return `${parts.join(", and ")}.`;
}

/** Lines that are the same already stay, so that nothing is read out twice. */
function fill(list, lines) {
    const key = JSON.stringify(lines);
    if (list.dataset.lines === key) return;
    list.dataset.lines = key;
    list.replaceChildren(...lines.map((line) => make(list.tagName === "UL" ? "li" : "p", "", line)));
}
