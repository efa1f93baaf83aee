// Who waits to be let in, for those who may decide.

const list = document.getElementById("guests");

/** Shows `guests` of `room`, the first to come first; each with the two things that can be done. */
export function showGuests(guests, room) {
    list.hidden = guests.length === 0;
    list.replaceChildren(...guests.map((guest) => line(guest, room)));
}

function line({ identity, name }, room) {
    const item = document.createElement("li");
    const label = document.createElement("span");
    label.textContent = `${name || identity} waits to be let in.`;
    item.append(label, button("Let in", "letIn", identity, room), button("Turn away", "turnAway", identity, room));
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
            button.disabled = false;
            // The guest has given up, or another moderator was faster: the list says so.
            if (problem.code !== "guest_not_found") room.complain(problem);
        }
    });
    return button;
}
