/** How numbers that are not packed are printed. */

/** A number that there is none of (JSON has no infinity) is a dash. */
export function fixed(value: number | null, digits = 3): string {
  if (value === null) return "–";
  if (!Number.isFinite(value)) return value < 0 ? "−∞" : "∞";
  return value.toFixed(digits);
}

export function percent(share: number, digits = 2): string {
  return `${(100 * share).toFixed(digits)} %`;
}

/** Four figures that count: for axes and tables of charts, whose numbers may be large or tiny. */
export function short(value: number | null | undefined): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  return Math.abs(value) >= 1e4 ? Math.round(value).toString() : String(Number(value.toPrecision(4)));
}

/** A width in CSS for a share between 0 and 1. */
export function width(share: number): { width: string } {
  return { width: `${Math.max(0, Math.min(1, share)) * 100}%` };
}

export function ordinal(n: number): string {
  const ending = n % 100 > 10 && n % 100 < 14 ? "th" : (["th", "st", "nd", "rd"][n % 10] ?? "th");
  return `${n}${ending}`;
}
