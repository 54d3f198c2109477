// Decimal texts as exact integers, money in minor units, and exact fractions. Nothing here is a float.

import { Refusal } from "./refusal.js";
import { tables } from "./tables.js";

export const PARTS_PER_BILLION = 10n ** 9n;
export const BASIS_POINTS = 10_000n;
export const MAX_MINOR_UNITS = 2n ** 64n - 1n;

/** The exact value of a plain decimal text times 10^decimals. */
export function scaledInteger(text, decimals) {
  const match = /^(0|[1-9][0-9]{0,19})(?:\.([0-9]{1,9}))?$/.exec(text);
  if (!match) throw new Refusal(`'${text.slice(0, 32)}' is not a plain decimal number such as 99.95`);
  const digits = match[2] ?? "";
  if (digits.length > decimals) throw new Refusal(`'${text}' has more than ${decimals} decimal places`);
  return BigInt(match[1] + digits.padEnd(decimals, "0"));
}

/** A percentage as parts per billion, above 0 and at most 100. */
export function percentPpb(text) {
  const value = scaledInteger(text, 7);
  if (value <= 0n || value > PARTS_PER_BILLION) throw new Refusal(`'${text}' must be above 0 and at most 100 percent`);
  return value;
}

/** A percentage as basis points, at most 100 percent. */
export function percentBasisPoints(text) {
  const value = scaledInteger(text, 2);
  if (value > BASIS_POINTS) throw new Refusal(`'${text}' must be at most 100 percent`);
  return value;
}

/** Decimal digits of a currency's minor unit (ISO 4217). */
export function currencyExponent(currency) {
  if (!Object.hasOwn(tables.currencies, currency)) {
    throw new Refusal(`'${currency.slice(0, 10)}' is not an ISO 4217 currency code; write USD, EUR, CNY ...`);
  }
  return tables.currencies[currency];
}

export function minorUnits(text, currency) {
  const value = scaledInteger(text, currencyExponent(currency));
  if (value > MAX_MINOR_UNITS) throw new Refusal(`'${text}' ${currency} is more than 2^64 - 1 minor units`);
  return value;
}

/** Minor units as a decimal text with the currency's digits. */
export function formatMinorUnits(amount, currency) {
  const exponent = currencyExponent(currency);
  const digits = String(amount < 0n ? -amount : amount).padStart(exponent + 1, "0");
  const at = digits.length - exponent;
  return (amount < 0n ? "-" : "") + (exponent ? `${digits.slice(0, at)}.${digits.slice(at)}` : digits);
}

/** numerator / denominator as a whole number, for numerator >= 0 and denominator > 0. */
export function roundQuotient(numerator, denominator, mode) {
  const [quotient, rest] = [numerator / denominator, numerator % denominator];
  if (mode === "floor") return quotient;
  const half = 2n * rest === denominator && (mode === "half_up" || quotient % 2n === 1n);
  return 2n * rest > denominator || half ? quotient + 1n : quotient;
}

/** An exact fraction in lowest terms, with a denominator above 0. */
export class Fraction {
  constructor(numerator, denominator = 1n) {
    const [n, d] = denominator < 0n ? [-numerator, -denominator] : [numerator, denominator];
    const divisor = gcd(n < 0n ? -n : n, d);
    this.n = n / divisor;
    this.d = d / divisor;
  }

  plus(other) {
    return new Fraction(this.n * other.d + other.n * this.d, this.d * other.d);
  }

  times(other) {
    return new Fraction(this.n * other.n, this.d * other.d);
  }

  below(other) {
    return this.n * other.d < other.n * this.d;
  }

  document() {
    return { numerator: String(this.n), denominator: String(this.d) };
  }
}

export const smaller = (left, right) => (right.below(left) ? right : left);
export const sum = (fractions) => fractions.reduce((total, each) => total.plus(each), new Fraction(0n));
export const largest = (fractions) =>
  fractions.reduce((best, each) => (best === null || best.below(each) ? each : best), null) ?? new Fraction(0n);

function gcd(left, right) {
  let [a, b] = [left, right];
  while (b) [a, b] = [b, a % b];
  return a || 1n;
}
