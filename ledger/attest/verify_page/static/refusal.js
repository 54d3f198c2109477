// How a check says no. Whatever else is thrown is a value that could not be evaluated, and fails as well.

/** A check that does not hold; the message is for people. */
export class Refusal extends Error {}

/** A file that cannot be read as what it is said to be. */
export class BadInput extends Error {}

/** Throw a Refusal unless a condition holds. */
export function require(holds, message) {
  if (holds !== true) throw new Refusal(message);
}

/** The error of a field of a document: `objectives[0].target: ...`. */
export function fail(at, message) {
  return new Refusal(`${at || "document"}: ${message}`);
}

/** What `how` makes of a field's value; its refusal is thrown again with the path before it. */
export function convert(at, value, how) {
  try {
    return how(value);
  } catch (error) {
    throw error instanceof Refusal ? fail(at, error.message) : error;
  }
}
