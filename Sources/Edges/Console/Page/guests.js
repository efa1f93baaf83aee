// The guests who wait to be let in, for people who may decide.

import { nameInText } from "./elements.js";

const list = document.getElementById("guests");

/** The guests of these lines, and their stay. */
const lines = new Map();
let shown = null;

/**
 * Shows `guests` of `room`, the first to come first; each with two buttons. A guest who is shown already keeps the line and its buttons, because others arrive
 * while somebody decides.
 */
export function showGuests(guests, room) {
    list.hidden = guests.length === 0;
    const waiting = new Set(room === shown ? guests.map(({ identity }) => identity) : []);
    shown = room;
    for (const [identity, item] of lines) {
        if (waiting.has(identity)) continue;
        item.remove();
        lines.delete(identity);
    }
    let place = list.firstElementChild;
    for (const guest of guests) {
        const item = lines.get(guest.identity) ?? line(guest, room);
        lines.set(guest.identity, item);
        item.firstElementChild.replaceChildren(nameInText(guest.name || guest.identity), " waits to be let in.");
        if (item === place) place = place.nextElementSibling;
        else list.insertBefore(item, place);
    }
}

function line({ identity }, room) {
    const item = document.createElement("li");
    item.append(document.createElement("span"), button("Let in", "letIn", identity, room), button("Turn away", "turnAway", identity, room));
    return item;
}

function button(text, request, identity, room) {
    const button = document.createElement("button");
    button.className = "button small";
    button.textContent = text;
    button.addEventListener("click", async () => {
        button.disabled = true;
        try {
            await room.signal.request(request, { identity });
        } catch (problem) {
            // The guest has given up, or another moderator was faster: the list says so.
            if (problem.code !== "guest_not_found") room.complain(problem);
        } finally {
            // The line stays if the guest asks again before a list without it has arrived.
            button.disabled = false;
        }
    });
    return button;
}
