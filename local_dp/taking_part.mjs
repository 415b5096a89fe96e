/**
 * Taking part in a collection from a web page: fetch what is asked, answer it once, send the answer.
 *
 *   const respondent = new Respondent(new LocalAnswers(), { epsilonUnitsMax: 2 ** 40 });
 *   const url = "https://collect.example.org/collections/survey";
 *   await takePart(url, await new LocalTokens().token(url), respondent, { smokes: "no" });
 *
 * Whatever fails may be called again: the answer is the kept one, and counts once for its token.
 */

import { SiteStorage } from "./answer_store.mjs";

/** The collection, or the way to it, says no. */
export class NotTaken extends Error {
  /** @param {string} code Such as "not_allowed"; stable. */
  constructor(code, message) {
    super(message);
    this.code = code;
  }
}

/** A token for each collection, kept in the browser's storage for this site. */
export class LocalTokens {
  #kept;
  #name;

  constructor({ name = "tacit-tokens", ...browser } = {}) {
    this.#kept = new SiteStorage({ name, ...browser });
    this.#name = name;
  }

  /** The token for a collection, made of fresh entropy when it is first asked for. */
  token(url) {
    const place = `${this.#name} ${url}`;
    return this.#kept.alone((storage) => {
      let token = storage.getItem(place);
      if (token === null) {
        const bytes = crypto.getRandomValues(new Uint8Array(32));
        token = Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
        storage.setItem(place, token);
      }
      return token;
    });
  }
}

/**
 * Answer a collection, and have the answer counted.
 *
 * @param {string} url Of the collection, without what is behind its name.
 * @param {string} token Of LocalTokens; or the one that the respondent was invited with.
 * @returns {Promise<boolean>} Whether it was counted now, and not before.
 */
export async function takePart(url, token, respondent, row) {
  const headers = { authorization: `Bearer ${token}` };
  const campaign = await text(await fetch(`${url}/assignment`, { headers }));
  const body = await respondent.answer(campaign, row);
  const reply = await text(await fetch(`${url}/answers`, { method: "POST", headers, body }));
  return JSON.parse(reply).counted_before === false;
}

async function text(reply) {
  const found = await reply.text();
  if (reply.ok) return found;
  let refusal = { code: "unavailable", message: `the server says ${reply.status}` };
  try {
    refusal = JSON.parse(found);
  } catch {
    // Whoever stands between says something else.
  }
  throw new NotTaken(refusal.code, refusal.message);
}
