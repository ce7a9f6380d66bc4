// Implements `Bun.hash` on node: Wyhash (the final version 4) and xxHash32, with the values that bun returns.

const MASK = (1n << 64n) - 1n;
const SECRET = [0xa0761d6478bd642fn, 0xe7037ed1a0b428dbn, 0x8ebc6af09c88c6e3n, 0x589965cc75374cc3n];

function toBytes(data) {
  if (typeof data === "string") return Buffer.from(data);
  return ArrayBuffer.isView(data) ? Buffer.from(data.buffer, data.byteOffset, data.byteLength) : Buffer.from(data);
}

/** The low and the high half of a product of 128 bits, combined. */
function mix(a, b) {
  const product = a * b;
  return (product & MASK) ^ (product >> 64n);
}

export function wyhash(data, seed = 0) {
  const bytes = toBytes(data);
  const { length } = bytes;
  const read4 = (at) => BigInt(bytes.readUInt32LE(at));
  const read8 = (at) => bytes.readBigUInt64LE(at);
  const start = BigInt(seed) & MASK;
  let state = start ^ mix(start ^ SECRET[0], SECRET[1]);
  let a = 0n;
  let b = 0n;
  if (length > 16) {
    const lanes = [state, state, state];
    let at = 0;
    for (; at + 48 < length; at += 48) {
      for (let lane = 0; lane < 3; lane++) {
        const from = at + 16 * lane;
        lanes[lane] = mix(read8(from) ^ SECRET[lane + 1], read8(from + 8) ^ lanes[lane]);
      }
    }
    if (length >= 48) state = lanes[0] ^ lanes[1] ^ lanes[2];
    for (; at + 16 < length; at += 16) state = mix(read8(at) ^ SECRET[1], read8(at + 8) ^ state);
    a = read8(length - 16);
    b = read8(length - 8);
  } else if (length >= 4) {
    const quarter = (length >> 3) << 2;
    a = (read4(0) << 32n) | read4(quarter);
    b = (read4(length - 4) << 32n) | read4(length - 4 - quarter);
  } else if (length > 0) {
    a = BigInt((bytes[0] << 16) | (bytes[length >> 1] << 8) | bytes[length - 1]);
  }
  const product = (a ^ SECRET[1]) * (b ^ state);
  return mix((product & MASK) ^ SECRET[0] ^ BigInt(length), (product >> 64n) ^ SECRET[1]);
}

const PRIMES = [0x9e3779b1, 0x85ebca77, 0xc2b2ae3d, 0x27d4eb2f, 0x165667b1];
const rotate = (value, bits) => (value << bits) | (value >>> (32 - bits));

export function xxHash32(data, seed = 0) {
  const bytes = toBytes(data);
  const [p1, p2, p3, p4, p5] = PRIMES;
  const base = Number(seed) | 0;
  let hash = base + p5;
  let at = 0;
  if (bytes.length >= 16) {
    const lanes = [base + p1 + p2, base + p2, base, base - p1];
    for (; at + 16 <= bytes.length; at += 16) {
      for (let lane = 0; lane < 4; lane++) {
        const word = bytes.readUInt32LE(at + 4 * lane);
        lanes[lane] = Math.imul(rotate((lanes[lane] + Math.imul(word, p2)) | 0, 13), p1);
      }
    }
    hash = rotate(lanes[0], 1) + rotate(lanes[1], 7) + rotate(lanes[2], 12) + rotate(lanes[3], 18);
  }
  hash = (hash + bytes.length) | 0;
  for (; at + 4 <= bytes.length; at += 4) hash = Math.imul(rotate((hash + Math.imul(bytes.readUInt32LE(at), p3)) | 0, 17), p4);
  for (; at < bytes.length; at++) hash = Math.imul(rotate((hash + Math.imul(bytes[at], p5)) | 0, 11), p1);
  hash = Math.imul(hash ^ (hash >>> 15), p2);
  hash = Math.imul(hash ^ (hash >>> 13), p3);
  return (hash ^ (hash >>> 16)) >>> 0;
}

export const hash = Object.assign((data, seed) => wyhash(data, seed), { wyhash, xxHash32 });
