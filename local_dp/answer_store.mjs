/**
 * A respondent's answers in a browser: what respondent.mjs gives once is kept for the site of the page.
 *
 * Whoever clears the storage of the site, or uses another browser, is another respondent to it.
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
   * @param {(spent: bigint) => {epsilonUnits: bigint, answer: string}} make May throw.
   */
  once(campaign, make) {
    return this.#kept.alone((storage) => {
      const answers = this.#read(storage);
      if (!answers.has(campaign)) {
        const spent = [...answers.values()].reduce((sum, [units]) => sum + BigInt(units), 0n);
        const made = make(spent);
        answers.set(campaign, [Number(made.epsilonUnits), made.answer]);
        storage.setItem(this.#name, JSON.stringify(Object.fromEntries(answers)));
      }
      return answers.get(campaign)[1];
    });
  }

  #read(storage) {
    const text = storage.getItem(this.#name);
    if (text === null) return new Map();
    try {
      const answers = new Map(Object.entries(object(JSON.parse(text))));
      for (const [units, answer] of answers.values()) {
        if (!Number.isSafeInteger(units) || units <= 0 || typeof answer !== "string") throw null;
      }
      return answers;
    } catch {
      throw new AnswersUnreadable(`${this.#name} does not hold answers`);
    }
  }
}

function object(value) {
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw new TypeError();
  return value;
}
