/**
 * A respondent's answers in a browser: what respondent.mjs gives once is kept for the site of the page.
 *
 * A person who clears the storage of the site, or uses another browser, counts as another respondent.
 */

/** Answers are kept, and cannot be read: an answer that was given must not be drawn again. */
export class AnswersUnreadable extends Error {}

/** What the browser keeps for this site; a lock keeps two tabs from reading and writing it at once. */
export class SiteStorage {
  #storage;
  #locks;
  #name;

  constructor({
    storage = globalThis.localStorage,
    locks = globalThis.navigator?.locks,
    name,
  }) {
    if (!storage || !locks) throw new Error(`${name} need a browser's storage and locks`);
    this.#storage = storage;
    this.#locks = locks;
    this.#name = name;
  }

  /** What is done with the storage while nobody else uses it. */
  alone(work) {
    return this.#locks.request(this.#name, () => work(this.#storage));
  }
}

/** Answers in the browser's storage for this site. */
export class LocalAnswers {
  #kept;
  #name;

  constructor({ name = "tacit-answers", ...browser } = {}) {
    this.#kept = new SiteStorage({ name, ...browser });
    this.#name = name;
  }

  /**
   * The kept answer to a campaign; if there is none, the one that is made now, kept before it is given.
   *
   * With it is kept the token that it is sent under, so that it counts once, whatever is passed later.
   *
   * @param {(spent: bigint) => {epsilonUnits: bigint, answer: string}} make May throw.
   * @param {string | {of: Function} | null} tokens One that was given, or LocalTokens; or none yet.
   * @returns {Promise<{answer: string, token: string | null}>}
   */
  once(campaign, make, tokens = null) {
    return this.#kept.alone(async (storage) => {
      const answers = this.#read(storage);
      const isKept = answers.has(campaign);
      if (!isKept) {
        const spent = [...answers.values()].reduce((sum, [units]) => sum + BigInt(units), 0n);
        const made = make(spent);
        answers.set(campaign, [Number(made.epsilonUnits), made.answer]);
      }
      const [units, answer, own = null] = answers.get(campaign);
      const token = own ?? (await tokenOf(tokens, campaign, isKept));
      if (!isKept || token !== own) {
        answers.set(campaign, token === null ? [units, answer] : [units, answer, token]);
        storage.setItem(this.#name, JSON.stringify(Object.fromEntries(answers)));
      }
      return { answer, token };
    });
  }

  #read(storage) {
    const text = storage.getItem(this.#name);
    if (text === null) return new Map();
    try {
      const answers = new Map(Object.entries(object(JSON.parse(text))));
      for (const [units, answer, token = ""] of answers.values()) {
        if (!Number.isSafeInteger(units) || units <= 0) throw null;
        if (typeof answer !== "string" || typeof token !== "string") throw null;
      }
      return answers;
    } catch {
      throw new AnswersUnreadable(`${this.#name} is not a store of answers`);
    }
  }
}

/** A token for an answer that has none: a new one, or one that was kept before tokens were. */
async function tokenOf(tokens, campaign, isKept) {
  if (tokens === null || typeof tokens === "string") return tokens;
  const own = await tokens.of(campaign, { isKept });
  // Without it the answer would be sent under another, and count twice if it was sent before.
  if (own === null) throw new AnswersUnreadable("the token of a kept answer is lost");
  return own;
}

function object(value) {
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw new TypeError();
  return value;
}
