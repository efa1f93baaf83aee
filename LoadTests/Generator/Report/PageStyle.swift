/// What report pages share: one file, no scripts, no requests, light and dark.
enum PageStyle {
    static func page(title: String, body: String) -> String {
        """
        <!doctype html><html lang="en"><head><meta charset="utf-8"><title>\(escape(title))</title>
        <meta name="viewport" content="width=device-width"><style>\(css)</style></head><body>
        \(body)</body></html>

        """
    }

    static func escape(_ text: String) -> String {
        text.replacing("&", with: "&amp;").replacing("<", with: "&lt;").replacing(">", with: "&gt;")
    }

    private static let css = """
        :root { color-scheme: light dark; --ink: #1c2430; --dim: #66717f; --paper: #fff; --card: #f4f6f8;
          --c0: #1f6feb; --c1: #d1592b; --c2: #8250df; --c3: #1a7f5a; }
        @media (prefers-color-scheme: dark) { :root { --ink: #e6eaf0; --dim: #98a3b1; --paper: #14181d; --card: #1d232a;
          --c0: #6cb0ff; --c1: #f0935f; --c2: #b992ff; --c3: #55c795; } }
        body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); max-width: 1360px;
          margin: 2rem auto; padding: 0 1rem; }
        h1 { font-size: 1.5rem; margin: 0; } h2 { font-size: 1.1rem; margin-top: 2rem; } p, small { color: var(--dim); }
        .tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(190px, 1fr)); gap: .75rem; margin: 1.5rem 0; }
        .tile { background: var(--card); border-radius: 8px; padding: .75rem 1rem; }
        .tile b { display: block; font-size: 1.35rem; font-variant-numeric: tabular-nums; } .tile span { color: var(--dim); }
        .plots { display: grid; grid-template-columns: repeat(auto-fit, minmax(420px, 1fr)); gap: 1rem; }
        figure { margin: 0; background: var(--card); border-radius: 8px; padding: .75rem 1rem; }
        figcaption { font-weight: 600; } svg { width: 100%; height: auto; } svg text { font-size: 11px; fill: var(--dim); }
        .grid { stroke: var(--dim); stroke-opacity: .25; } polyline { fill: none; stroke-width: 1.6; }
        polyline.line0 { stroke: var(--c0); } polyline.line1 { stroke: var(--c1); } polyline.line2 { stroke: var(--c2); }
        rect.line0, circle.line0 { fill: var(--c0); } rect.line1, circle.line1 { fill: var(--c1); }
        rect.line2, circle.line2 { fill: var(--c2); } rect.line3, circle.line3 { fill: var(--c3); }
        rect { fill-opacity: .75; } circle { stroke: var(--paper); }
        .key { font-weight: 400; margin-left: .6rem; } .key.line0 { color: var(--c0); } .key.line1 { color: var(--c1); }
        .key.line2 { color: var(--c2); } .key.line3 { color: var(--c3); }
        table { border-collapse: collapse; font-variant-numeric: tabular-nums; } td, th { padding: .2rem .9rem .2rem 0;
          text-align: left; border-bottom: 1px solid color-mix(in srgb, var(--dim) 25%, transparent); }
        td + td, th + th { text-align: right; } pre { background: var(--card); padding: .75rem 1rem; border-radius: 8px;
          overflow: auto; }
        """
}
