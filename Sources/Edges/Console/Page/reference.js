// The page /reference: the control API as /openapi.json describes it, so it is never about another version than the server's.

import { isComposed, make } from "./elements.js";
import { Schemas, prose } from "./schema.js";

const element = (id) => document.getElementById(id);
const METHODS = ["get", "post", "put", "patch", "delete"];
/** Operations without a tag. */
const OTHERS = "Other";

class Reference {
    constructor(document) {
        this.schemas = new Schemas(document);
        this.document = document;
        this.entries = []; // { element, link, text, group }
        this.groups = new Map(); // tag -> { section, list }
        element("operations").append(this.introduction());
        for (const { name, description } of document.tags ?? []) this.group(name, description);
        for (const [path, item] of Object.entries(document.paths)) {
            for (const method of METHODS) if (item[method]) this.add(method, path, item[method], item.parameters ?? []);
        }
        for (const [tag, { section, part }] of this.groups) {
            if (section.querySelector("section")) continue;
            section.remove();
            part.remove();
            this.groups.delete(tag);
        }
    }

    introduction() {
        const { info } = this.document;
        const intro = make("section", "introduction");
        const source = Object.assign(make("a", "", "/openapi.json"), { href: "/openapi.json" });
        const how = make("p");
        how.append("Every call needs an access token in ", make("code", "", "Authorization: Bearer …"), "; ", make("code", "", "martlet token"),
            " prints one. The same description for programs is ", source, ".");
        intro.append(make("h2", "", info.title), prose(info.description), how, code(`export MARTLET=${location.origin}\nexport TOKEN=…`));
        return intro;
    }

    group(tag, description = "") {
        const section = make("section", "group");
        section.append(make("h2", "", tag));
        if (description) section.append(prose(description));
        element("operations").append(section);
        const part = make("div"), list = make("ul");
        part.append(make("h3", "", tag), list);
        element("groups").append(part);
        this.groups.set(tag, { section, part, list });
    }

    add(method, path, operation, shared) {
        const tag = operation.tags?.[0] ?? OTHERS;
        if (!this.groups.has(tag)) this.group(tag);
        const { section, list } = this.groups.get(tag);
        const parameters = [...shared, ...(operation.parameters ?? [])].map((one) => this.schemas.resolve(one).schema);
        const part = this.section(method, path, operation, parameters);
        section.append(part);
        const link = Object.assign(make("a"), { href: `#${operation.operationId}` });
        link.append(methodMark(method), make("span", "", operation.summary));
        const item = make("li");
        item.append(link);
        list.append(item);
        const words = [method, path, operation.operationId, operation.summary, operation.description, tag, ...parameters.map(({ name }) => name)];
        this.entries.push({ part, item, tag, words: words.join(" ").toLowerCase() });
    }

    section(method, path, operation, parameters) {
        const part = Object.assign(make("section", "operation"), { id: operation.operationId, tabIndex: -1 });
        const title = make("h3");
        title.append(Object.assign(make("a", "anchor", operation.summary), { href: `#${operation.operationId}` }));
        const line = make("p", "path");
        line.append(methodMark(method), ...pathParts(path));
        part.append(title, line);
        if (operation.description) part.append(prose(operation.description));
        const body = this.bodyOf(operation);
        part.append(code(this.curl(method, path, parameters, body)));
        for (const [place, heading] of [["path", "In the path"], ["query", "In the query"], ["header", "Header fields"]]) {
            const found = parameters.filter((one) => one.in === place);
            if (found.length) part.append(make("h4", "", heading), this.parameters(found));
        }
        if (body) part.append(...this.body(body));
        part.append(make("h4", "", "Answers"), this.answers(operation.responses));
        return part;
    }

    parameters(found) {
        const list = make("dl", "members");
        for (const { name, schema, required, description } of found) list.append(...this.schemas.member(name, { ...schema, description }, required, 0));
        return list;
    }

    /** The type and schema of a request's body; a merge patch before a replacement, which sends everything. */
    bodyOf({ requestBody }) {
        if (!requestBody) return null;
        const [type, { schema }] = Object.entries(requestBody.content)[0];
        return { type, schema, isRequired: requestBody.required, types: Object.keys(requestBody.content) };
    }

    body({ schema, types, isRequired }) {
        const heading = make("h4", "", isRequired ? "Body" : "Body, may be absent");
        const kind = make("p", "dim", types.join(" or "));
        const members = this.schemas.members(schema);
        return [heading, kind, members ?? make("p", "", this.schemas.words(schema))];
    }

    answers(responses) {
        const list = make("div", "answers");
        const ordered = Object.entries(responses).sort(([a], [b]) => a.localeCompare(b));
        const refusals = [];
        for (const [status, reference] of ordered) {
            const { schema: response } = this.schemas.resolve(reference);
            const content = Object.entries(response.content ?? {});
            if (!/^2/.test(status)) {
                if (status !== "default") refusals.push(status);
                continue;
            }
            list.append(this.answer(status, response, content));
        }
        if (refusals.length) {
            const line = make("p", "refusals");
            line.append(...refusals.map((status) => make("code", "status", status)), " with a problem document, whose ", make("code", "", "code"), " says why.");
            list.append(line);
        }
        return list;
    }

    answer(status, { description, headers }, content) {
        const one = make("div", "answer");
        const line = make("p");
        line.append(make("code", "status good", status), ` ${description ?? ""}`);
        for (const name of Object.keys(headers ?? {})) line.append(" ", make("code", "", name));
        one.append(line);
        for (const [type, { schema }] of content) {
            if (!schema) continue;
            const members = this.schemas.members(schema);
            const more = make("details");
            more.append(make("summary", "", `${this.schemas.words(schema)}, ${type}`));
            if (/json/.test(type)) more.append(code(JSON.stringify(this.schemas.example(schema), null, 2), "Example"));
            if (members) more.append(members);
            one.append(more);
        }
        return one;
    }

    /** A call that works when $MARTLET and $TOKEN are set and the capitals in the path replaced by the names of something that exists. */
    curl(method, path, parameters, body) {
        const named = path.replace(/\{(\w+)\}/g, (_, name) => name.toUpperCase());
        const needed = parameters.filter((one) => one.in === "query" && one.required).map((one) => `${one.name}=${encodeURIComponent(this.schemas.example(one.schema, one.name))}`);
        const lines = [`curl${method === "get" ? "" : ` -X ${method.toUpperCase()}`} "$MARTLET${named}${needed.length ? `?${needed.join("&")}` : ""}"`, `-H "Authorization: Bearer $TOKEN"`];
        if (body) {
            const text = JSON.stringify(this.bodyExample(body)).replaceAll("'", "'\\''");
            lines.push(`-H "Content-Type: ${body.type}"`, `-d '${text}'`);
        }
        return lines.join(" \\\n  ");
    }

    /** For a merge patch or an optional body, one member is enough to show the form. */
    bodyExample({ schema, type, isRequired }) {
        const example = this.schemas.example(schema);
        const { schema: resolved } = this.schemas.resolve(schema);
        const required = resolved.required ?? [];
        if (Array.isArray(example) || typeof example !== "object") return example;
        if (required.length && !type.includes("merge-patch")) return Object.fromEntries(required.map((name) => [name, example[name]]));
        return isRequired || type.includes("merge-patch") ? Object.fromEntries(Object.entries(example).slice(0, 1)) : example;
    }

    /** Shows only what has all words of `query`. */
    search(query) {
        const words = query.toLowerCase().split(/\s+/).filter(Boolean);
        let count = 0;
        const shown = new Set();
        for (const { part, item, tag, words: text } of this.entries) {
            const isFound = words.every((word) => text.includes(word));
            part.hidden = item.hidden = !isFound;
            if (isFound) { count += 1; shown.add(tag); }
        }
        for (const [tag, { section, part }] of this.groups) section.hidden = part.hidden = !shown.has(tag);
        document.querySelector(".introduction").hidden = words.length > 0;
        element("found").textContent = words.length ? `${count} of ${this.entries.length} operations` : `${this.entries.length} operations`;
    }

    /** Goes to the place in the address, even if the search does not include it. */
    follow() {
        const id = decodeURIComponent(location.hash.slice(1));
        const found = id && this.entries.find(({ part }) => part.id === id);
        for (const { item } of this.entries) item.firstElementChild.removeAttribute("aria-current");
        if (!found) return;
        if (found.part.hidden) {
            element("search").value = "";
            this.search("");
        }
        found.item.firstElementChild.setAttribute("aria-current", "location");
        found.item.scrollIntoView({ block: "nearest" });
        found.part.scrollIntoView();
        found.part.focus({ preventScroll: true });
        if (isNarrow()) element("contents").open = false;
    }
}

function methodMark(method) { return make("span", `method ${method}`, method.toUpperCase()); }

/** A path that breaks at its slashes on a phone. */
function pathParts(path) {
    return path.split(/(?=\/)/).flatMap((part) => [make("code", part.startsWith("/{") ? "variable" : "", part), make("wbr")]);
}

/** A block of code with a button that copies it. */
function code(text, label = "") {
    const block = make("div", "code");
    const pre = Object.assign(make("pre", "", text), { tabIndex: 0 });
    block.append(pre);
    if (label) block.prepend(make("span", "dim", label));
    if (navigator.clipboard) {
        const copy = make("button", "button small", "Copy");
        copy.onclick = async () => {
            await navigator.clipboard.writeText(text);
            copy.textContent = "Copied";
            setTimeout(() => { copy.textContent = "Copy"; }, 1500);
        };
        block.append(copy);
    }
    return block;
}

const narrow = matchMedia("(max-width: 860px)");
const isNarrow = () => narrow.matches;

async function start() {
    try {
        const reply = await fetch("/openapi.json");
        if (!reply.ok) throw new Error(`The server answered ${reply.status} for /openapi.json.`);
        const reference = new Reference(await reply.json());
        element("contents").open = !isNarrow();
        narrow.onchange = () => { element("contents").open = !isNarrow(); };
        element("search").oninput = ({ target }) => {
            reference.search(target.value);
            if (isNarrow()) element("contents").open = Boolean(target.value);
        };
        element("search").onkeydown = (event) => {
            if (isComposed(event)) return;
            if (event.key === "Escape") { event.target.value = ""; reference.search(""); }
            // The first that was found.
            if (event.key === "Enter") reference.entries.find(({ item }) => !item.hidden)?.item.firstElementChild.click();
        };
        addEventListener("keydown", (event) => {
            if (event.key !== "/" || event.target.matches("input, textarea")) return;
            event.preventDefault();
            element("search").focus();
        });
        addEventListener("hashchange", () => reference.follow());
        reference.search("");
        reference.follow();
    } catch (problem) {
        element("reference-problem").textContent = problem.message === "Failed to fetch" ? "The server does not answer." : problem.message;
    }
}

start();
