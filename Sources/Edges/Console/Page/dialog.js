// Asks before something that cannot be undone. The browser's own modal dialog keeps the focus inside, closes on Escape and gives the
// focus back; "Cancel" has it first, so that neither a second click nor Enter confirms by accident.

const dialog = document.getElementById("ask");
let last = Promise.resolve();

/**
 * Whether a person confirmed: `title` is the question, `text` the consequences, `action` the confirming button's label, red unless `isHarmless`. `signal`
 * withdraws the question, even before it is shown: questions follow each other, so that no answer counts for two.
 */
export function ask(question) {
    last = last.catch(() => {}).then(() => pose(question));
    return last;
}

function pose({ title, text, action, isHarmless = false, signal }) {
    if (signal?.aborted) return false;
    const [heading, paragraph, confirm] = ["ask-title", "ask-text", "ask-confirm"].map((id) => document.getElementById(id));
    heading.textContent = title;
    paragraph.textContent = text;
    confirm.textContent = action;
    confirm.classList.toggle("danger", !isHarmless);
    dialog.returnValue = "";
    dialog.showModal();
    const takeBack = () => dialog.close("");
    signal?.addEventListener("abort", takeBack, { once: true });
    return new Promise((resolve) => {
        dialog.addEventListener("close", () => {
            signal?.removeEventListener("abort", takeBack);
            resolve(dialog.returnValue === "confirm");
        }, { once: true });
    });
}
