// SPDX-License-Identifier: Apache-2.0
// The search of pages that are read from the disk, whose browser refuses to start a worker from a file: its script runs
// in a hidden frame instead. docs_site.py puts this file into the site; with its name MkDocs Material's plugin `offline`
// takes it for the shim that it would load from elsewhere.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const address = String(new URL(url, document.baseURI));
      const frame = document.createElement("iframe");
      frame.hidden = true;
      frame.srcdoc = "<!doctype html>";
      const loaded = new Promise((resolve) => {
        frame.addEventListener("load", () => {
          const inside = frame.contentWindow;
          const load = (source) => new Promise((done, failed) => {
            const script = inside.document.createElement("script");
            script.src = source;
            script.onload = done;
            script.onerror = () => failed(new Error(`cannot load ${source}`));
            inside.document.head.append(script);
          });
          // Relative to the worker's script, one after another; the caller awaits the last.
          inside.importScripts = (...sources) =>
            sources.reduce((before, one) => before.then(() => load(new URL(one, address))), Promise.resolve());
          inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
          load(address).then(() => resolve(inside), () => this.dispatchEvent(new Event("error")));
        }, { once: true });
      });
      // Messages are passed in order, once the script is there.
      this.postMessage = (data) =>
        loaded.then((inside) => inside.dispatchEvent(new inside.MessageEvent("message", { data })));
      this.terminate = () => frame.remove();
      document.documentElement.append(frame);
    }
  };
}
