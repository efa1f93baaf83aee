// WCAG 2.2: contrast of text (1.4.3) and of the focus ring (1.4.11) as the browser paints them, for tests.
(() => {
    const pen = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
    /** Any CSS colour as [red, green, blue, alpha]. */
    const read = (color) => {
        pen.clearRect(0, 0, 1, 1);
        pen.fillStyle = color;
        pen.fillRect(0, 0, 1, 1);
        const [red, green, blue, alpha] = pen.getImageData(0, 0, 1, 1).data;
        return [red, green, blue, alpha / 255];
    };
    const over = (front, back) => [0, 1, 2].map((part) => front[part] * front[3] + back[part] * (1 - front[3]));
    const luminance = (color) => {
        const [red, green, blue] = color.map((part) => part / 255).map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
    };
    const ratio = (a, b) => {
        const [dark, light] = [luminance(a), luminance(b)].sort((one, other) => one - other);
        return (light + 0.05) / (dark + 0.05);
    };
    /** What is painted behind an element's text. Behind a tile's controls is a video: any colour, so black and white are tried. */
    const grounds = (element) => {
        const layers = [];
        for (let one = element; one; one = one.parentElement) {
            if (one.classList.contains("tile")) {
                return [[0, 0, 0], [255, 255, 255]].map((video) => layers.reduceRight((back, front) => over(front, back), video));
            }
            const color = read(getComputedStyle(one).backgroundColor);
            layers.push(color);
            if (color[3] === 1) break;
        }
        return [layers.reduceRight((back, front) => over(front, back), [255, 255, 255])];
    };
    window.contrastOf = (element) => {
        const style = getComputedStyle(element);
        return Math.min(...grounds(element).map((ground) => ratio(over(read(style.color), ground), ground)));
    };
    /** Of the focus ring, which lies outside of the element; 0 where there is none. */
    window.ringOf = (element) => {
        const style = getComputedStyle(element);
        if (style.outlineStyle === "none" || parseFloat(style.outlineWidth) < 2) return 0;
        if (element.closest(".tile")) return ratio(over(read(style.outlineColor), [0, 0, 0]), read(getComputedStyle(element.closest(".tile")).backgroundColor));
        return Math.min(...grounds(element.parentElement).map((ground) => ratio(over(read(style.outlineColor), ground), ground)));
    };
})()
