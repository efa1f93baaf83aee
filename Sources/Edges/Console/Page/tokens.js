// Tokens for a page without a login: only a development server (`martlet serve --dev`) hands them out.

export async function developmentToken(request) {
    const reply = await fetch("/dev/token", {
        method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(request),
    });
    if (!reply.ok) {
        throw Object.assign(new Error("This server needs an access token; make one with: martlet token --room ROOM --identity NAME"), { code: "token_needed" });
    }
    return (await reply.json()).token;
}
