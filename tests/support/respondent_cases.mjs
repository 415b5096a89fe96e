// Reads cases, a line of JSON each, and writes what local_dp/respondent.mjs makes of them.

import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

delete String.prototype.isWellFormed; // as in browsers of before 2023

const { CampaignRefused, Entropy, Respondent, checkCampaign, randomised } =
  await import(pathToFileURL(process.argv[2]));
const { AnswersUnreadable, LocalAnswers } = await import(
  new URL("answer_store.mjs", pathToFileURL(process.argv[2]))
);
const { LocalTokens, NotTaken, takePart } = await import(
  new URL("taking_part.mjs", pathToFileURL(process.argv[2]))
);

/** Entropy that is known, and how much of it was read. */
function tape(hex) {
  const bytes = Buffer.from(hex, "hex");
  const found = { nRead: 0 };
  found.entropy = new Entropy((nBytes) => {
    const next = bytes.subarray(found.nRead, found.nRead + nBytes);
    if (next.length !== nBytes) throw new Error("the tape is too short");
    found.nRead += nBytes;
    return next;
  });
  return found;
}

/** Storage and locks as a browser has them; nothing is read or written without the lock. */
class Storage {
  constructor(kept, locks) {
    this.kept = new Map(Object.entries(kept));
    this.locks = locks;
  }
  getItem(name) {
    if (!this.locks.isHeld(name)) throw new Error("the lock is not held");
    return this.kept.get(name) ?? null;
  }
  setItem(name, text) {
    if (!this.locks.isHeld(name)) throw new Error("the lock is not held");
    if (this.isFull) throw new Error("the storage is full");
    this.kept.set(name, text);
  }
}

/** A queue for each name. What is stored under a name, or with more behind it, is guarded by its lock. */
class Locks {
  last = new Map();
  held = new Set();
  request(lock, alone) {
    const next = (this.last.get(lock) ?? Promise.resolve()).then(() => {
      this.held.add(lock);
      return alone();
    });
    const free = () => this.held.delete(lock);
    this.last.set(lock, next.then(free, free));
    return next;
  }
  isHeld(name) {
    return this.held.has(name.split(" ")[0]);
  }
}

const kinds = {
  async answer({ campaign, row, entropy }) {
    const asked = await checkCampaign(campaign);
    const read = tape(entropy);
    const answer = randomised(asked, row, (n) => read.entropy.below(n));
    return { answer, nRead: read.nRead, epsilonUnits: Number(asked.epsilonUnits) };
  },
  below({ n, entropy }) {
    return { drawn: tape(entropy).entropy.below(BigInt(n)).toString() };
  },
  async visits({ visits, limit, kept, isFull }) {
    const locks = new Locks();
    const storage = new Storage(kept, locks);
    storage.isFull = isFull;
    const store = new LocalAnswers({ storage, locks });
    const respondent = new Respondent(store, { epsilonUnitsMax: limit });
    // All at once: what they find is in the order of the lock.
    const found = await Promise.all(
      visits.map(({ campaign, row }) => respondent.answer(campaign, row).catch(named)),
    );
    const given = found.map((one) => one.answer ?? one);
    const remarks = found.map((one) => one.remarks ?? []);
    return { given, remarks, kept: Object.fromEntries(storage.kept) };
  },
  /** A campaign in a browser whose digests are broken. */
  async brokenDigest({ campaign }) {
    const broken = () => {
      throw new TypeError("it is broken");
    };
    Object.defineProperty(crypto.subtle, "digest", { value: broken, configurable: true });
    try {
      return await checkCampaign(campaign);
    } finally {
      delete crypto.subtle.digest;
    }
  },
  /** One person, who visits a collection by each of these URLs, one after another. */
  async takePart({ urls, row, limit, token, kept = {} }) {
    const locks = new Locks();
    const storage = new Storage(kept, locks);
    const respondent = new Respondent(new LocalAnswers({ storage, locks }), { epsilonUnitsMax: limit });
    const tokens = token ?? new LocalTokens({ storage, locks });
    const [outcomes, warned] = [[], []];
    const warn = (remark) => warned.push(remark);
    for (const url of urls) {
      outcomes.push(await takePart(url, tokens, respondent, row, { warn }).catch(named));
    }
    return { outcomes, warned, kept: Object.fromEntries(storage.kept) };
  },
};

function named(error) {
  if (error instanceof CampaignRefused) return { refused: error.message };
  if (error instanceof NotTaken) return { notTaken: error.code, message: error.message };
  if (error instanceof AnswersUnreadable) return { unreadable: error.message };
  return { error: `${error.name}: ${error.message}` };
}

for await (const line of createInterface({ input: process.stdin })) {
  const { kind, ...asked } = JSON.parse(line);
  let found;
  try {
    found = await kinds[kind](asked);
  } catch (error) {
    found = named(error);
  }
  console.log(JSON.stringify(found));
}
