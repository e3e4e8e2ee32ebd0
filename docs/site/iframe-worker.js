// Browsers start no worker from a page on a disk. There the search of the site runs in a frame,
// which speaks as a worker does. (The theme would load such a script from elsewhere; it looks for
// this name.)
if (location.protocol === "file:") {
  window.IFrameWorker = window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.inside = new Promise((ready) => {
        const frame = document.createElement("iframe");
        frame.hidden = true;
        frame.onload = () => {
          frame.onload = null;
          const inside = frame.contentWindow;
          inside.postMessage = (data) =>
            this.dispatchEvent(new MessageEvent("message", { data }));
          const script = inside.document.createElement("script");
          script.src = url;
          script.onload = () => ready(inside);
          inside.document.body.append(script);
        };
        document.body.append(frame);
      });
    }

    postMessage(data) {
      this.inside.then((inside) =>
        inside.dispatchEvent(new MessageEvent("message", { data })));
    }
  };
}
