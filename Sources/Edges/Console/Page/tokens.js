// Tokens for a page without a login: only a development server (`martlet serve --dev`) hands them out.

export async function developmentToken(request) {
    const reply = await fetch("/dev/token", {
        method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(request),
    }).catch(() => { throw new Error("The server does not answer."); });
    if (reply.ok) return (await reply.json()).token;
    throw Object.assign(new Error("This server wants an access token. Whoever runs it makes one with “martlet token”."), { code: "token_needed" });
}

/** An identity of one's own, so that two windows with the same name are two people. */
export function newIdentity(name) {
    const suffix = Array.from(crypto.getRandomValues(new Uint8Array(3)), (byte) => byte.toString(16).padStart(2, "0")).join("");
    return `${name}-${suffix}`;
}
