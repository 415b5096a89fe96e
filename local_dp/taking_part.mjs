/**
 * Taking part in a collection from a web page: fetch what is asked, answer it once, send the answer.
 *
 *   const respondent = new Respondent(new LocalAnswers(), { epsilonUnitsMax: 2 ** 40 });
 *   const url = "https://collect.example.org/collections/survey";
 *   await takePart(url, new LocalTokens(), respondent, { smokes: "no" });
 *
 * Whatever fails may be called again: the answer is the kept one, and is sent under the token that is
 * kept with it, so that it counts once, by whatever URL the collection is reached.
 */

import { SiteStorage } from "./answer_store.mjs";
import { NothingKept } from "./respondent.mjs";

const LATE = new Set(["invalid_request", "too_large"]); // what a closed or a full collection says

/** The collection, or the way to it, says no. */
export class NotTaken extends Error {
  /** @param {string} code Such as "not_allowed"; stable. */
  constructor(code, message) {
    super(message);
    this.code = code;
  }
}

/** A token for each campaign, kept in the browser's storage for this site. */
export class LocalTokens {
  #kept;
  #name;

  constructor({ name = "tacit-tokens", ...browser } = {}) {
    this.#kept = new SiteStorage({ name, ...browser });
    this.#name = name;
  }

  /**
   * The token for a campaign, made of fresh entropy when it is first asked for.
   *
   * @param {string} campaign Its digest, to which the kept answer belongs as well.
   * @param {{isKept?: boolean}} options Whether the token was made before; null if it is not there.
   */
  of(campaign, { isKept = false } = {}) {
    return this.#kept.alone((storage) => {
      const place = `${this.#name} ${campaign}`;
      let token = storage.getItem(place);
      if (token === null && !isKept) {
        token = fresh();
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
 * @param {LocalTokens | string} tokens The respondent's own; or the token that they were invited with.
 * @param {{warn?: (remark: string) => void}} options Who tells the respondent, once the answer is sent,
 *   what the server never hears: that a level was not asked about, or another token is kept.
 * @returns {Promise<boolean>} Whether it was counted now, and not before.
 */
export async function takePart(url, tokens, respondent, row, { warn = console.warn } = {}) {
  const given = await answered(url, tokens, respondent, row);
  const headers = bearer(given.token);
  const reply = await text(
    await fetch(`${url}/answers`, { method: "POST", headers, body: given.answer }),
  );
  const isNew = JSON.parse(reply).counted_before === false;
  for (const remark of given.remarks) warn(remark);
  return isNew;
}

async function answered(url, tokens, respondent, row) {
  const headers = bearer(typeof tokens === "string" ? tokens : fresh());
  let campaign;
  try {
    campaign = await text(await fetch(`${url}/assignment`, { headers }));
  } catch (late) {
    if (!LATE.has(late.code)) throw late;
    return givenBefore(url, headers, tokens, respondent, late);
  }
  return respondent.answer(campaign, row, tokens);
}

/** The kept answer, for a respondent who never heard whether it was counted; without one they are too late. */
async function givenBefore(url, headers, tokens, respondent, late) {
  try {
    const campaign = await text(await fetch(`${url}/campaign`, { headers }));
    return await respondent.kept(campaign, tokens);
  } catch (error) {
    throw error instanceof NothingKept || error instanceof NotTaken ? late : error;
  }
}

function bearer(token) {
  return { authorization: `Bearer ${token}` };
}

function fresh() {
  const bytes = crypto.getRandomValues(new Uint8Array(32));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

async function text(reply) {
  const found = await reply.text();
  if (reply.ok) return found;
  let refusal = { code: "unavailable", message: `the server answered with status ${reply.status}` };
  try {
    refusal = JSON.parse(found);
  } catch {
    // A proxy in between replied with something else.
  }
  throw new NotTaken(refusal.code, refusal.message);
}
