// One constructed stylesheet for every dashboard of a page: no style element, no style attribute, so that a page's
// Content-Security-Policy needs nothing for it. Colours and sizes are the page's to change: --sla-* on the element.

const TEXT = `
:host {
  color-scheme: light dark;
  --_text: var(--sla-text, light-dark(#17202e, #e6eaf1));
  --_muted: var(--sla-muted, light-dark(#566276, #9ba7b9));
  --_surface: var(--sla-surface, light-dark(#ffffff, #151b25));
  --_raised: var(--sla-raised, light-dark(#f6f8fb, #1c2431));
  --_line: var(--sla-line, light-dark(#dfe5ee, #2c3646));
  --_accent: var(--sla-accent, light-dark(#2456c9, #8ab0ff));
  --_good: var(--sla-good, light-dark(#16794c, #4cc38a));
  --_warn: var(--sla-warn, light-dark(#9a6400, #e3b04b));
  --_bad: var(--sla-bad, light-dark(#c0273c, #ff7b86));
  --_idle: var(--sla-idle, light-dark(#b6c0ce, #4a5668));
  --_radius: var(--sla-radius, 10px);
  --_gap: 1.5rem;
  display: block;
  container-type: inline-size;
  color: var(--_text);
  background: var(--_surface);
  font: 400 var(--sla-font-size, 15px) / 1.5 var(--sla-font, system-ui, -apple-system, "Segoe UI", Roboto, sans-serif);
  font-variant-numeric: tabular-nums;
  text-align: start;
}
:host([theme="light"]) { color-scheme: light; }
:host([theme="dark"]) { color-scheme: dark; }
:host([hidden]), [hidden] { display: none !important; }
* { box-sizing: border-box; }
.frame { display: grid; gap: var(--_gap); padding: var(--sla-padding, 1.5rem); min-width: 0; }
.body { display: grid; gap: var(--_gap); min-width: 0; }
.body > * { min-width: 0; }
h2, h3, h4, h5, p, ul, dl, dd, pre { margin: 0; }
ul { padding: 0; list-style: none; }
h2 { font-size: 1.45em; line-height: 1.25; font-weight: 650; letter-spacing: -0.01em; overflow-wrap: anywhere; }
h3 { font-size: 1.05em; font-weight: 650; }
h4 { font-size: 0.95em; font-weight: 600; overflow-wrap: anywhere; }
h5 { font-size: 0.95em; font-weight: 600; }
.muted { color: var(--_muted); font-size: 0.9em; }
code, pre { font: 0.86em/1.5 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; overflow-wrap: anywhere; }
pre { padding: 0.6rem 0.75rem; background: var(--_raised); border: 1px solid var(--_line); border-radius: calc(var(--_radius) * 0.6); white-space: pre-wrap; }
:focus-visible { outline: 2px solid var(--_accent); outline-offset: 2px; border-radius: 4px; }

.head { display: grid; grid-template-columns: minmax(0, 1fr) auto; gap: 0.75rem 1.5rem; align-items: start; }
.now { display: grid; gap: 0.5rem; justify-items: end; }
.when { font-size: 0.9em; color: var(--_muted); }
.remark { grid-column: 1 / -1; padding: 0.6rem 0.85rem; background: var(--_raised); border-inline-start: 3px solid var(--_idle); border-radius: 4px; }
select, button { font: inherit; font-size: 0.9em; color: var(--_text); background: var(--_raised); border: 1px solid var(--_line); border-radius: calc(var(--_radius) * 0.6); padding: 0.35rem 0.7rem; max-width: 100%; }
button { cursor: pointer; font-weight: 550; }
button:hover, select:hover { border-color: var(--_accent); }
button[aria-disabled="true"] { color: var(--_muted); cursor: default; border-color: var(--_line); opacity: 0.6; }
.turn { display: flex; flex-wrap: wrap; gap: 0.35rem 0.75rem; align-items: center; justify-content: flex-end; }

.pill, .proof, .hidden { display: inline-flex; align-items: center; gap: 0.35em; font-size: 0.85em; font-weight: 600; line-height: 1.4; }
.pill { padding: 0.15em 0.65em 0.15em 0.45em; border-radius: 99px; border: 1px solid currentcolor; white-space: nowrap; }
.pill.met { color: var(--_good); }
.pill.breached { color: var(--_bad); }
.pill.none { color: var(--_muted); }
.hidden { color: var(--_muted); font-weight: 500; }
.unseen { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
.states { display: flex; flex-wrap: wrap; gap: 0.3rem 0.8rem; align-items: center; justify-content: flex-end; }
span.standing { padding: 0.05em 0.6em; border: 1px solid currentcolor; border-radius: 4px; font-size: 0.8em; color: var(--_muted); white-space: nowrap; }
span.standing.draft { border-style: dashed; }
.now .standing { max-width: 34ch; text-align: end; }
.icon { width: 1.05em; height: 1.05em; flex: none; fill: none; stroke: currentcolor; stroke-width: 1.9; stroke-linecap: round; stroke-linejoin: round; }

.panel { display: grid; gap: 0.75rem; }
.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 15rem), 1fr)); gap: 0.9rem; }
.card { display: grid; gap: 0.45rem; align-content: start; padding: 1rem; background: var(--_raised); border: 1px solid var(--_line); border-radius: var(--_radius); min-width: 0; }
.cardhead { display: flex; flex-wrap: wrap; gap: 0.35rem 0.6rem; justify-content: space-between; align-items: center; }
.figure { font-size: 1.75em; line-height: 1.2; font-weight: 650; letter-spacing: -0.02em; }
.figure .hidden { font-size: 0.5em; letter-spacing: 0; }
.facts { display: grid; gap: 0.1rem; color: var(--_muted); font-size: 0.87em; }
.facts .hidden { font-size: 1em; }
.meter { display: block; width: 100%; height: 10px; }
.rail { fill: var(--_line); }
.fill { fill: var(--_idle); }
.met .fill { fill: var(--_good); }
.breached .fill { fill: var(--_bad); }
.tick { stroke: var(--_text); stroke-width: 2; vector-effect: non-scaling-stroke; }

.chart { display: grid; gap: 0.4rem; }
.chart + .chart { padding-top: 0.75rem; }
.plot { display: grid; gap: 0.3rem; }
.canvas { position: relative; height: 56px; cursor: crosshair; touch-action: pan-y; }
.shares .canvas { height: 132px; margin-inline-end: 3.4rem; background: var(--_raised); border: 1px solid var(--_line); border-radius: calc(var(--_radius) * 0.6); }
.canvas svg { display: block; width: 100%; height: 100%; overflow: visible; }
.bar.clean { fill: var(--_good); }
.bar.failures { fill: var(--_warn); }
.bar.undecided { fill: none; stroke: var(--_warn); stroke-width: 1.5; vector-effect: non-scaling-stroke; }
.bar.missed { fill: var(--_bad); }
.bar.idle { fill: var(--_idle); }
.bar.excluded, .bar.no_data { fill: none; stroke: var(--_idle); stroke-width: 1.5; vector-effect: non-scaling-stroke; }
.bar.no_data { stroke-dasharray: 3 2; }
.target { stroke: var(--_muted); stroke-width: 1.5; stroke-dasharray: 5 4; vector-effect: non-scaling-stroke; }
.share { fill: none; stroke: var(--_idle); stroke-width: 1.5; vector-effect: non-scaling-stroke; }
.point { stroke-width: 7; stroke-linecap: round; vector-effect: non-scaling-stroke; stroke: var(--_idle); }
.point.clean { stroke: var(--_good); }
.point.failures, .point.undecided { stroke: var(--_warn); }
.point.missed { stroke: var(--_bad); stroke-width: 10; }
.level { position: absolute; inset-inline-start: calc(100% + 0.45rem); font-size: 0.75em; line-height: 1; color: var(--_muted); transform: translateY(-50%); white-space: nowrap; pointer-events: none; }
.level.aim { inset-inline-start: 0.4rem; color: var(--_text); transform: translateY(35%); }
.shares .axis { margin-inline-end: 3.4rem; }
.cursor { position: absolute; inset-block: -3px; width: 0; border-inline-start: 1.5px solid var(--_text); pointer-events: none; }
.axis { display: flex; justify-content: space-between; gap: 1rem; font-size: 0.78em; color: var(--_muted); }
.legend { display: flex; flex-wrap: wrap; gap: 0.15rem 1rem; font-size: 0.82em; color: var(--_muted); }
.legend li::before { content: ""; display: inline-block; width: 0.65em; height: 0.65em; margin-inline-end: 0.4em; border-radius: 2px; background: var(--_idle); }
.legend .clean::before { background: var(--_good); }
.legend .failures::before { background: var(--_warn); }
.legend .undecided::before { background: none; border: 1.5px solid var(--_warn); }
.legend .missed::before { background: var(--_bad); }
.legend .excluded::before, .legend .no_data::before { background: none; border: 1.5px solid var(--_idle); }
.legend .no_data::before { border-style: dashed; }
.under { display: flex; flex-wrap: wrap; gap: 0.1rem 1.5rem; justify-content: space-between; align-items: baseline; min-height: 1.5em; }
.readout { font-size: 0.85em; font-weight: 550; }

.table summary { cursor: pointer; font-size: 0.87em; color: var(--_accent); width: fit-content; }
.scroll { overflow: auto; max-height: 20rem; margin-top: 0.4rem; border: 1px solid var(--_line); border-radius: calc(var(--_radius) * 0.6); }
table { border-collapse: collapse; width: 100%; font-size: 0.87em; }
th, td { padding: 0.35rem 0.7rem; text-align: end; white-space: nowrap; border-bottom: 1px solid var(--_line); font-weight: 400; }
th:first-child, td:nth-child(2), thead th:nth-child(2) { text-align: start; }
thead th { position: sticky; top: 0; background: var(--_raised); font-weight: 600; }
tbody tr:last-child > * { border-bottom: 0; }

.rows { border: 1px solid var(--_line); border-radius: var(--_radius); overflow: hidden; }
.rows > li + li { border-top: 1px solid var(--_line); }
.row > summary { display: grid; grid-template-columns: 1rem minmax(0, 1.2fr) minmax(0, 1.2fr) auto; gap: 0.35rem 0.9rem; align-items: center; padding: 0.65rem 1rem; cursor: pointer; list-style: none; }
.row > summary::-webkit-details-marker { display: none; }
.row > summary::before { content: ""; width: 0.45rem; height: 0.45rem; border: solid var(--_muted); border-width: 0 1.8px 1.8px 0; transform: rotate(-45deg); }
.row[open] > summary::before { transform: rotate(45deg); }
.row > summary:hover { background: var(--_raised); }
.row > summary:focus-visible { outline-offset: -3px; }
.main { font-weight: 550; overflow-wrap: anywhere; }
.amount { font-weight: 650; }
.row dl { display: grid; grid-template-columns: minmax(7rem, auto) minmax(0, 1fr); gap: 0.35rem 1.2rem; padding: 0.3rem 1rem 0.9rem 2.9rem; font-size: 0.9em; }
dt { color: var(--_muted); }
.lines { padding: 0.3rem 1rem 0.6rem 2.9rem; overflow-x: auto; }
.lines th, .lines td { white-space: normal; padding-inline: 0 1rem; }
.lines thead th { background: none; color: var(--_muted); font-weight: 400; }
.lines td:last-child, .lines th:last-child { text-align: end; white-space: nowrap; padding-inline-end: 0; }
.lines .void > * { color: var(--_muted); text-decoration: line-through; }
.evidence { display: grid; gap: 0.2rem; }
.verify { display: grid; gap: 0.5rem; padding: 0 1rem 1rem 2.9rem; }
.outcome { margin-inline-start: 0.75rem; font-size: 0.87em; color: var(--_bad); }
.total { font-weight: 600; }
.proof svg { width: 43px; height: 12px; }
.proof .due { fill: none; stroke: var(--_muted); stroke-width: 1.4; }
.proof .done { fill: var(--_good); stroke: var(--_good); stroke-width: 1.4; }
.proof.none { color: var(--_muted); }

.notice { padding: 2rem 1.25rem; text-align: center; display: grid; gap: 0.5rem; justify-items: center; background: var(--_raised); border: 1px solid var(--_line); border-radius: var(--_radius); }
.notice p { max-width: 46ch; color: var(--_muted); }
.skeleton { display: grid; gap: 1.25rem; }
.ghost { background: var(--_raised); border: 1px solid var(--_line); border-radius: var(--_radius); }
.ghost.line { height: 2.2rem; width: min(100%, 22rem); }
.ghost.card { height: 9rem; }
.ghost.chart { height: 7rem; }
.foot { display: flex; flex-wrap: wrap; gap: 0.35rem 1rem; align-items: center; justify-content: space-between; font-size: 0.85em; color: var(--_muted); border-top: 1px solid var(--_line); padding-top: 0.9rem; }
.foot p { display: flex; flex-wrap: wrap; gap: 0.15rem 0.9rem; }
.status { color: var(--_warn); font-weight: 550; }
.status:empty { display: none; }

@container (max-width: 34rem) {
  .frame { padding: var(--sla-padding, 1rem); }
  .head { grid-template-columns: minmax(0, 1fr); }
  .now { justify-items: start; }
  .now .standing { max-width: none; text-align: start; }
  .states, .turn { justify-content: flex-start; }
  .turn .muted { flex-basis: 100%; order: 1; }
  .row > summary { grid-template-columns: 1rem minmax(0, 1fr); }
  .row > summary > :not(.main) { grid-column: 2; justify-self: start; }
  .row dl { grid-template-columns: minmax(0, 1fr); padding-inline-start: 2.9rem; }
  .lines { padding-inline: 1rem; }
  .lines th, .lines td { padding-inline-end: 0.6rem; }
  .row dd { margin-bottom: 0.35rem; }
}
@media (prefers-reduced-motion: no-preference) {
  .ghost { animation: wait 1.6s ease-in-out infinite alternate; }
  .row > summary::before { transition: transform 0.12s; }
  @keyframes wait { to { opacity: 0.55; } }
}
@media (forced-colors: active) {
  .canvas svg, .meter, .proof svg { forced-color-adjust: none; }
}
`;

export const styles = new CSSStyleSheet();
styles.replaceSync(TEXT);
