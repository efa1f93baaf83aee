// Asks before something that cannot be undone. The browser's own modal dialog keeps the focus inside, closes on Escape and gives the
// focus back; "Cancel" has it first, so that neither a second click nor Enter confirms by accident.

const dialog = document.getElementById("ask");

/** Whether a person confirmed: `title` is the question, `text` what follows from it, `action` the confirming button's label, red unless `isHarmless`. */
export function ask({ title, text, action, isHarmless = false }) {
    const [heading, paragraph, confirm] = ["ask-title", "ask-text", "ask-confirm"].map((id) => document.getElementById(id));
    heading.textContent = title;
    paragraph.textContent = text;
    confirm.textContent = action;
    confirm.classList.toggle("danger", !isHarmless);
    dialog.returnValue = "";
    dialog.showModal();
    return new Promise((resolve) => {
        dialog.addEventListener("close", () => resolve(dialog.returnValue === "confirm"), { once: true });
    });
}
