// What the program that assembled this page says: schemas, currencies, methods, zone rules. One data block of the page.

/** Filled by `loadTables`, before anything else runs. */
export const tables = {};

export function loadTables(text) {
  Object.assign(tables, JSON.parse(text));
}
