// Talking to the server. An answer is shown only if it names the question that is visible.
export class Refusal extends Error {
  constructor(status, failure) {
    super(failure.message);
    this.status = status;
    this.where = failure.where ?? "";
    this.rows = failure.rows ?? [];
  }
}

async function checked(response) {
  if (response.ok) return response;
  let failure;
  try { failure = await response.json(); } catch { failure = { message: `The studio failed (${response.status}).` }; }
  throw new Refusal(response.status, failure);
}

async function send(path, options) {
  let response;
  try { response = await fetch(path, options); } catch {
    throw new Refusal(0, { message: "The studio does not answer. Is it still running?", where: "server" });
  }
  return checked(response);
}

export const get = async (path) => (await send(path, {})).json();
export const post = (path, body) => send(path, { method: "POST", body, headers: { "Content-Type": "application/json" } });
export const upload = async (file) => (await send(`/api/data?name=${encodeURIComponent(file.name.slice(-200))}`, {
  method: "POST", body: file, headers: { "Content-Type": "application/octet-stream" },
})).json();

export async function digest(text) {
  const bytes = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
  return Array.from(new Uint8Array(bytes), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** One kind of answer: at most one request at a time, and always the newest question next. */
export class Channel {
  constructor(path, panels, { show, fail, done = () => {}, filled = (panel) => panel.childElementCount > 0 }) {
    Object.assign(this, { path, panels, show, fail, done, filled, wanted: null, shown: null, running: false });
  }

  /** Asks, or waits for nothing if the visible answer is the one to this question; `since` is when it changed. */
  ask(body, since) {
    this.wanted = body;
    this.since = since;
    this.mark();
    if (body !== null && body !== this.shown && !this.running) this.run();
  }

  /** What is on screen was taken away. */
  forget() {
    this.wanted = this.shown = null;
    this.mark();
  }

  /** True if what is on screen answers what is asked. */
  get current() {
    return this.wanted !== null && this.wanted === this.shown;
  }

  mark() {
    const { current } = this;
    for (const panel of this.panels()) {
      panel.classList.toggle("stale", !current && this.filled(panel));
      panel.setAttribute("aria-busy", String(this.wanted !== null && !current));
      panel.dataset.current = String(current);
    }
  }

  async run() {
    this.running = true;
    while (this.wanted !== null && this.wanted !== this.shown) {
      const body = this.wanted;
      try {
        const answer = await (await post(this.path, body)).json();
        const right = answer.inputs === (await digest(body));
        if (body !== this.wanted) continue;
        if (!right) throw new Refusal(0, { message: "The studio answered another question.", where: "server" });
        this.shown = body;
        this.show(answer, performance.now() - this.since);
        for (const panel of this.panels()) panel.dataset.waited = String(performance.now() - this.since);
      } catch (refusal) {
        if (body !== this.wanted) continue;
        this.shown = null;
        this.wanted = null;
        this.mark();
        this.fail(refusal);
      }
    }
    this.running = false;
    this.mark();
    this.done();
  }
}
