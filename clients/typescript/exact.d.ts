/** A response in which each number beyond ±(2⁵³ − 1) is a bigint. */
export type Exact<T> = T extends number
  ? number | bigint
  : T extends readonly (infer Item)[]
    ? Exact<Item>[]
    : T extends object
      ? { [Member in keyof T]: Exact<T[Member]> }
      : T;

/** Parses the text of a response without rounding any integer. */
export function exact<T>(text: string): Exact<T>;
