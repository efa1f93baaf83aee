// Tokens for a page without a login: only a development server (`martlet serve --dev`) hands them out.

export async function developmentToken(request) {
    const reply = await fetch("/dev/token", {
        method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(request),
    }).catch(() => { throw new Error("The server does not answer."); });
    if (reply.ok) return (await reply.json()).token;
    // Any other server has no such path; a development server that refuses says why.
    if (reply.status === 404) {
        throw Object.assign(new Error("This server requires an access token. Its operator creates one with “martlet token”."), { code: "token_needed" });
    }
    const { detail } = await reply.json().catch(() => ({}));
    throw new Error(detail ?? `The server refused to issue a token (HTTP ${reply.status}).`);
}

/** A unique identity, so that two windows with the same name are two people. */
export function newIdentity(name) {
    const suffix = Array.from(crypto.getRandomValues(new Uint8Array(3)), (byte) => byte.toString(16).padStart(2, "0")).join("");
    // An identity has 256 characters at most (Protocol.md, "Names").
    return `${[...name].slice(0, 200).join("")}-${suffix}`;
}
