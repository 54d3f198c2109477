// Figures as a locale spells them. Money, percentages and counts reach Intl as texts or whole numbers, never as a
// float: Intl.NumberFormat reads a decimal text exactly.

/** The first usable one of some BCP 47 tags. */
export function usableLocale(...tags) {
  for (const tag of tags) {
    try {
      if (tag && Intl.NumberFormat.supportedLocalesOf(tag).length) return Intl.getCanonicalLocales(tag)[0];
    } catch {
      // Not a tag: the next one.
    }
  }
  return "en";
}

export class Format {
  constructor(locale, timeZone) {
    this.locale = locale;
    this.timeZone = timeZone;
    const zoned = (options) => new Intl.DateTimeFormat(locale, { timeZone, ...options });
    // Rounded down, so that 99.99996 never reads 100.
    const percent = { style: "unit", unit: "percent", maximumFractionDigits: 4, roundingMode: "floor" };
    this._percent = new Intl.NumberFormat(locale, { ...percent, minimumFractionDigits: 2 });
    this._target = new Intl.NumberFormat(locale, percent);
    this._score = new Intl.NumberFormat(locale, { maximumFractionDigits: 6, roundingMode: "floor" });
    this._count = new Intl.NumberFormat(locale);
    this._day = zoned({ dateStyle: "medium" });
    this._time = zoned({ timeStyle: "short" });
    this._moment = zoned({ dateStyle: "medium", timeStyle: "short" });
    this._clock = new Intl.DateTimeFormat(locale, { timeStyle: "medium" });
  }

  /** A share such as "97.1052". */
  percent(text) {
    return this._percent.format(text);
  }

  /** A promised share such as "99.95", without decimals that the agreement does not have. */
  target(text) {
    return this._target.format(text);
  }

  /** A share of 1 such as "0.940000". */
  score(text) {
    return this._score.format(text);
  }

  /** A whole number, or the text of a decimal one. */
  count(value) {
    return this._count.format(value);
  }

  /** {currency, amount}: the amount is a decimal text with the currency's own digits. */
  money({ currency, amount }) {
    return new Intl.NumberFormat(this.locale, { style: "currency", currency }).format(amount);
  }

  /** An amount more or less, always with its sign. */
  difference({ currency, amount }) {
    return new Intl.NumberFormat(this.locale, { style: "currency", currency, signDisplay: "exceptZero" }).format(amount);
  }

  day(instant) {
    return this._day.format(millis(instant));
  }

  moment(instant) {
    return this._moment.format(millis(instant));
  }

  /** From one instant to another, the date named once where it is one. */
  range(start, end) {
    return this._moment.formatRange(millis(start), millis(end));
  }

  times(start, end) {
    return `${this._time.format(millis(start))}–${this._time.format(millis(end))}`;
  }

  /** A settled period: its day, or its first and last day. */
  period(start, end) {
    return this._day.formatRange(millis(start), millis(end) - 1);
  }

  /** The reader's own clock, of a fetch. */
  clock(ms) {
    return this._clock.format(ms);
  }
}

/** {ns: "..."} as whole milliseconds, which every date within a million years has exactly. */
function millis(instant) {
  return Number(BigInt(instant.ns) / 1000000n);
}
