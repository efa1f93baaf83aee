// A JSON schema, as OpenAPI documents contain them, for people: its type in words, its members as a list, and an example.

import { make } from "./elements.js";

/** The depth to which nested members are shown; a schema may contain itself. */
const DEEPEST = 6;

export class Schemas {
    constructor(document) { this.document = document; }

    /** The target of a reference, with its name. */
    resolve(schema) {
        if (!schema?.$ref) return { schema: schema ?? {}, name: "" };
        const parts = schema.$ref.slice(2).split("/");
        return { schema: parts.reduce((found, part) => found?.[part], this.document) ?? {}, name: parts.at(-1) };
    }

    /** "string", "integer, 1 to 100, or null", "array of Track" */
    words(reference) {
        const { schema, name } = this.resolve(reference);
        const options = schema.oneOf ?? schema.anyOf;
        if (options) return join(options.map((one) => this.words(one)));
        if (schema.const !== undefined) return JSON.stringify(schema.const);
        const types = [schema.type ?? (schema.properties ? "object" : schema.enum ? "" : "any")].flat().filter((type) => type && type !== "null");
        const isNullable = [schema.type].flat().includes("null");
        let text = types.join(" or ");
        if (schema.enum) text = join(schema.enum.filter((one) => one !== null).map((one) => JSON.stringify(one)));
        else if (types.includes("array")) text = `array of ${plural(this.words(schema.items ?? {}))}`;
        else if (types.includes("object") && name) text = name;
        const bounds = boundsOf(schema);
        return `${text}${bounds ? `, ${bounds}` : ""}${isNullable ? " or null" : ""}`;
    }

    /** The members of an object, or of an array's elements: a list in which members that have members open. null: there are none. */
    members(reference, depth = 0) {
        const { schema } = this.resolve(reference);
        if (depth >= DEEPEST) return null;
        if (schema.items) return this.members(schema.items, depth);
        const options = (schema.oneOf ?? schema.anyOf ?? []).map((one) => this.members(one, depth)).filter(Boolean);
        if (options.length) return group(options);
        const entries = Object.entries(schema.properties ?? {});
        const others = typeof schema.additionalProperties === "object" ? schema.additionalProperties : null;
        if (!entries.length && !others) return null;
        const list = make("dl", "members");
        for (const [name, member] of entries) list.append(...this.member(name, member, (schema.required ?? []).includes(name), depth));
        if (others) list.append(...this.member("any other name", others, false, depth));
        return list;
    }

    member(name, reference, isRequired, depth) {
        const { schema } = this.resolve(reference);
        const term = make("dt");
        term.append(make("code", "", name), make("span", "type", this.words(reference)));
        if (isRequired) term.append(make("span", "required", "required"));
        const text = make("dd");
        const description = reference.description ?? schema.description;
        if (description) text.append(prose(description));
        if (schema.default !== undefined) text.append(make("p", "dim", `Default: ${JSON.stringify(schema.default)}`));
        const inner = this.members(reference, depth + 1);
        if (inner) {
            const more = make("details");
            more.append(make("summary", "", "Members"), inner);
            text.append(more);
        }
        return [term, text];
    }

    /** A matching value, as small as is instructive. `name` is the member's name. */
    example(reference, name = "", depth = 0) {
        const { schema } = this.resolve(reference);
        if (schema.examples?.length) return schema.examples[0];
        if (schema.default !== undefined) return schema.default;
        if (schema.const !== undefined) return schema.const;
        if (schema.enum) return schema.enum[0];
        const option = (schema.oneOf ?? schema.anyOf)?.[0];
        if (option) return this.example(option, name, depth);
        switch ([schema.type].flat().find((type) => type !== "null")) {
        case "integer": case "number": return this.number(schema);
        case "boolean": return true;
        case "string": return name || "text";
        case "array": return depth >= DEEPEST ? [] : [this.example(schema.items ?? {}, singular(name), depth + 1)];
        default: return this.object(schema, depth);
        }
    }

    number({ minimum, maximum }) { return Math.max(minimum ?? 0, Math.min(maximum ?? 1, 1)); }

    object(schema, depth) {
        if (depth >= DEEPEST) return {};
        return Object.fromEntries(Object.entries(schema.properties ?? {}).map(([name, member]) => [name, this.example(member, name, depth + 1)]));
    }
}

/** Text with `code` in it. */
export function prose(text) {
    const paragraph = make("p");
    for (const [index, part] of text.split("`").entries()) paragraph.append(index % 2 ? make("code", "", part) : part);
    return paragraph;
}

function boundsOf({ minimum, maximum, minLength, maxLength, maxItems }) {
    const words = (from, to, unit) => {
        if (from !== undefined && to !== undefined) return `${from} to ${to}${unit}`;
        return from !== undefined ? `at least ${from}${unit}` : to !== undefined ? `at most ${to}${unit}` : "";
    };
    return words(minimum, maximum, "") || words(minLength, maxLength, " characters") || words(undefined, maxItems, " elements");
}

function join(words) { return words.length < 2 ? words.join() : `${words.slice(0, -1).join(", ")} or ${words.at(-1)}`; }

const plural = (words) => words.replace(/^(string|integer|number|object|boolean)/, "$1s");
const singular = (word) => word.replace(/ies$/, "y").replace(/s$/, "");

function group(lists) {
    const all = make("div");
    all.append(...lists);
    return all;
}
