// The page /examples: shows the file that it runs, so that a reader copies code that works; and copies each example.

import { element } from "./elements.js";

const EXAMPLE = "/console/example.js";

element("example-code").textContent = (await (await fetch(EXAMPLE)).text()).trimEnd();

element("example-run").onclick = async () => {
    element("example-run").disabled = true;
    element("example-problem").textContent = "";
    element("example").replaceChildren();
    try {
        await import(EXAMPLE);
    } catch (problem) {
        element("example-problem").textContent = `${problem.message} Reload the page to run it again.`;
    }
};

for (const code of document.querySelectorAll("pre")) {
    const copy = Object.assign(document.createElement("button"), { className: "button small", type: "button", textContent: "Copy" });
    copy.onclick = async () => {
        // Browsers allow copying only over HTTPS and on the same machine: elsewhere the text is selected, to be copied by hand.
        if (navigator.clipboard) await navigator.clipboard.writeText(code.textContent);
        else getSelection().selectAllChildren(code);
        copy.textContent = navigator.clipboard ? "Copied" : "Marked";
        setTimeout(() => { copy.textContent = "Copy"; }, 1500);
    };
    code.parentElement.append(copy);
}
