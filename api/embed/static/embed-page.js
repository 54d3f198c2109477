// The framed page. The page around it posts the token; this one posts its height and asks for tokens.
//
//   to this page:    {type: "sla-dashboard:token", token: "..."}
//                    {type: "sla-dashboard:hello"} (ask me again: I was not listening yet)
//   from this page:  {type: "sla-dashboard:token-needed", slaId}, {type: "sla-dashboard:height", height}
//
// Both ways only with an origin that the server allows to frame it.

import "./sla-dashboard.js";

const TYPE = "sla-dashboard:";
const dashboard = document.querySelector("sla-dashboard");
const allowed = (dashboard.dataset.ancestors ?? "").split(" ").filter(Boolean);
const framed = window.parent !== window;
// Until a message from an allowed page has come, the browser's own word says who frames this one.
let parentOrigin = allowed.find((origin) => origin === framingOrigin()) ?? null;
let needed = false;

function framingOrigin() {
  if (!framed) return null;
  if (location.ancestorOrigins?.length) return location.ancestorOrigins[0];
  try {
    return new URL(document.referrer).origin;
  } catch {
    return null;
  }
}

function post(type, values) {
  if (framed && parentOrigin !== null) window.parent.postMessage({ type: TYPE + type, ...values }, parentOrigin);
}

function askForToken() {
  needed = true;
  post("token-needed", { slaId: dashboard.getAttribute("sla-id") });
}

if (framed) {
  window.addEventListener("message", (event) => {
    if (event.source !== window.parent || !allowed.includes(event.origin)) return;
    const { type, token } = typeof event.data === "object" && event.data !== null ? event.data : {};
    parentOrigin = event.origin;
    if (type === `${TYPE}token` && typeof token === "string") {
      needed = false;
      dashboard.token = token;
    } else if (type === `${TYPE}hello` && needed) askForToken();
  });
  dashboard.addEventListener("sla-token-needed", askForToken);
  new ResizeObserver(() => {
    post("height", { height: Math.ceil(document.documentElement.getBoundingClientRect().height) });
  }).observe(document.documentElement);
}
