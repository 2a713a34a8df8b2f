import { isInteger, isSafeNumber, parse } from "lossless-json";

// JSON.parse rounds integers beyond 2⁵³; these become bigint.
const number = (text) => (isInteger(text) && !isSafeNumber(text) ? BigInt(text) : Number(text));

export const exact = (text) => parse(text, undefined, number);
