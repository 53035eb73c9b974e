// Questions to the server, and its word that something has changed.

const TOKEN = "kron-token";

/** Why there is no answer, in words for the person. */
export class Refused extends Error {
  constructor(status, body) {
    super(body.message || "the server gave no reason");
    Object.assign(this, { status, hint: body.hint, field: body.field, excerpt: body.excerpt });
  }
}

export const token = {
  get: () => sessionStorage.getItem(TOKEN),
  set: (text) => (text ? sessionStorage.setItem(TOKEN, text) : sessionStorage.removeItem(TOKEN)),
};

function headers(more = {}) {
  return token.get() ? { ...more, Authorization: `Bearer ${token.get()}` } : more;
}

/** The address of a question. */
export function address(path, params = {}) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(params)) {
    if (value !== undefined && value !== null && value !== "") query.set(name, value);
  }
  const text = query.toString();
  return `api/${path}${text ? `?${text}` : ""}`;
}

async function ask(url, options) {
  let response;
  try {
    response = await fetch(url, { cache: "no-store", ...options });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refused(0, { message: "the server does not answer", hint: "what is shown may be old; it is asked again by itself" });
  }
  if (response.ok) return response;
  let body = {};
  try {
    const said = await response.json();
    body = said.error && typeof said.error === "object" ? said.error : said;
  } catch {
    body = { message: `the server answered with the status ${response.status}` };
  }
  if (response.status === 401) dispatchEvent(new CustomEvent("kron:sign-in", { detail: body }));
  throw new Refused(response.status, body);
}

/** Asks for something. */
export async function get(path, params, signal) {
  return (await ask(address(path, params), { headers: headers(), signal })).json();
}

/** Says something. */
export async function post(path, body, signal) {
  const options = { method: "POST", headers: headers({ "Content-Type": "application/json" }), body: JSON.stringify(body), signal };
  return (await ask(address(path), options)).json();
}

/** Saves an answer as a file. */
export async function save(path, params, name) {
  const response = await ask(address(path, params), { headers: headers() });
  const url = URL.createObjectURL(await response.blob());
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

// A stream of the browser's own could send no token.
const RETRY_FIRST = 1_000;
const RETRY_MAX = 15_000;
const SILENCE_MAX = 45_000;

/** Calls `changed` whenever the server says so, and `state` with whether it can be heard. */
export async function follow(changed, state) {
  let wait = RETRY_FIRST;
  for (;;) {
    const abort = new AbortController();
    let silence = setTimeout(() => abort.abort(), SILENCE_MAX);
    try {
      const response = await fetch("api/live", { headers: headers({ Accept: "text/event-stream" }), cache: "no-store", signal: abort.signal });
      if (!response.ok) throw new Error(`status ${response.status}`);
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      state(true);
      wait = RETRY_FIRST;
      let text = "";
      for (;;) {
        const { done, value } = await reader.read();
        if (done) break;
        clearTimeout(silence);
        silence = setTimeout(() => abort.abort(), SILENCE_MAX);
        text += value;
        const frames = text.split("\n\n");
        text = frames.pop();
        if (frames.some((frame) => frame.startsWith("event: changed"))) changed();
      }
    } catch {
      // It is told below.
    }
    clearTimeout(silence);
    state(false);
    await new Promise((resolve) => setTimeout(resolve, wait));
    wait = Math.min(wait * 2, RETRY_MAX);
  }
}
