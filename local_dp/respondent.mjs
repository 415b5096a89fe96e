/**
 * The respondent's side for a web page: the protocol of respondent.py, bit by bit.
 *
 * It needs draws.mjs and no other code. It reads a campaign, trusts nothing in it, computes on its own
 * what an answer would lose, refuses before anything is drawn, and answers once. Whole numbers are
 * BigInt wherever privacy rests on them; entropy is the browser's. What it refuses, and in which words,
 * is what respondent.py refuses. Whether something is answered is no function of what a row says, only
 * of the names it has: what a campaign does not list is answered too, and the respondent alone is told.
 *
 * It protects from those who collect, not from who serves this file: a page from the one who collects
 * may hold any other code. Serve it from somewhere that the respondents trust.
 *
 *   import { LocalAnswers } from "./answer_store.mjs";
 *   const respondent = new Respondent(new LocalAnswers(), { epsilonUnitsMax: 2 ** 40 });
 *   const { answer } = await respondent.answer(campaignText, { smokes: "no" });
 */

import { COIN, hashing, response, unary } from "./draws.mjs";

const FORMAT = 1;
const N_CHARACTERS_MAX = 2 ** 24;
const N_ATTRIBUTES_MAX = 1000; // as all limits here, a server's: nobody is asked for more
const N_COMBINATIONS_MAX = 10_000;
const N_VIEWS_MAX = 10_000;
const N_LEVELS_MAX = 2 ** 20;
const N_CELLS_MAX = 2 ** 16;
const N_BITS_MAX = 2 ** 12;
const WEIGHTS_MAX = 2 ** 20;
const N_BUCKETS_MAX = 251;
const EPSILON_BITS = 40n;
const EPSILON_UNITS_MAX = 16n << EPSILON_BITS;
const GUARD_BITS = 128n;
const RATIO_BITS = 192n; // a ratio is rounded up to so many behind the point, so that products stay short
const TOO_MANY_CELLS = "a combination has too few or too many cells";
const PROBABILITY = /^([0-9]{1,40})\/([0-9]{1,40})$/;
const STRINGS = /"[^"\\]*(?:\\.[^"\\]*)*"/g;
const NUMBERS = /-?[0-9][0-9.eE+-]*/g;
const LONE = /\p{Surrogate}/u; // of a pair it is none; `isWellFormed` is not in every browser
const NO_FORM = "it does not have the form of a campaign";

/** The campaign is not what it has to be, or would lose too much; nothing was drawn. */
export class CampaignRefused extends Error {}

/** No answer was given to this campaign. */
export class NothingKept extends Error {}

class NotHeld extends Error {}

/** Uniform whole numbers from uniform bytes, by rejection. */
export class Entropy {
  #read;

  /** @param {(nBytes: number) => Uint8Array} read So many fresh bytes; the browser's by default. */
  constructor(read = (nBytes) => crypto.getRandomValues(new Uint8Array(nBytes))) {
    this.#read = read;
  }

  /**
   * Uniform on 0n .. n - 1n: the smallest whole number of bytes that holds n - 1n, first byte first,
   * without the bits above its highest; again, if that is n or more.
   */
  below(n) {
    const nBits = n === 1n ? 0 : (n - 1n).toString(2).length;
    const nBytes = Math.ceil(nBits / 8);
    for (;;) {
      let drawn = 0n;
      for (const byte of this.#read(nBytes)) drawn = (drawn << 8n) | BigInt(byte);
      drawn &= (1n << BigInt(nBits)) - 1n;
      if (drawn < n) return drawn;
    }
  }
}

/** One person's answers. */
export class Respondent {
  #store;
  #epsilonUnitsMax;
  #entropy;

  /**
   * @param {{once: Function}} store As LocalAnswers.
   * @param {{epsilonUnitsMax: number | bigint, entropy?: Entropy}} options What all answers in the
   *   store may lose together, in units of 2**-40.
   */
  constructor(store, { epsilonUnitsMax, entropy = new Entropy() }) {
    this.#store = store;
    this.#epsilonUnitsMax = BigInt(epsilonUnitsMax);
    this.#entropy = entropy;
  }

  /**
   * The answer to a campaign, as JSON text; the kept one, if there is one.
   *
   * @param {string} text The campaign, as the server gives it.
   * @param {Object} row The true level of every attribute that is asked about. It stays here. A level
   *   that the campaign does not list is answered by chance, and remarked.
   * @param {string | {of: Function} | null} tokens What the answer is sent under, unless it has a token
   *   already: one that was given, or LocalTokens.
   * @returns {Promise<{answer: string, token: string | null, remarks: string[]}>} What is sent, and
   *   what the respondent alone is to hear afterwards.
   */
  async answer(text, row, tokens = null) {
    const asked = await checkCampaign(text);
    const make = (spent) => {
      if (spent + asked.epsilonUnits > this.#epsilonUnitsMax) {
        throw new CampaignRefused("the campaign would spend more epsilon than the respondent's limit leaves");
      }
      const below = (n) => this.#entropy.below(n);
      return { epsilonUnits: asked.epsilonUnits, answer: randomised(asked, row, below) };
    };
    return given(await this.#store.once(asked.digest, make, tokens), tokens, unlistedOf(asked, row));
  }

  /** The answer that was given to a campaign, to be sent again; or NothingKept, and nothing is drawn. */
  async kept(text, tokens = null) {
    const refuse = () => {
      throw new NothingKept("nothing was answered");
    };
    return given(await this.#store.once(await digestOf(text), refuse, tokens), tokens);
  }
}

function given({ answer, token }, tokens, unlisted = []) {
  const remarks = [];
  if (unlisted.length > 0) {
    remarks.push(
      `The campaign does not list the row's level of ${unlisted.join(", ")}. ` +
        "One of the listed levels was drawn at random and answered instead.",
    );
  }
  if (typeof tokens === "string" && tokens !== token) {
    remarks.push(
      "This answer was already sent under another token. It is sent under that token again, so " +
        "that it counts once; the new token is not used.",
    );
  }
  return { answer, token, remarks };
}

/**
 * An answer to a checked campaign. Draws are, in this order: a level for each that is not listed, in
 * the order of the names; the view; which of its combinations, by exchanging places from the first on;
 * then the answer of each in the order of their places.
 */
export function randomised(asked, row, below) {
  const cells = cellsOf(asked, row, below);
  const view = Number(below(BigInt(asked.views.length)));
  const places = [...asked.views[view]];
  for (let here = 0; here < asked.nAnswered; here += 1) {
    const other = here + Number(below(BigInt(places.length - here)));
    [places[here], places[other]] = [places[other], places[here]];
  }
  const chosen = places.slice(0, asked.nAnswered).sort((one, other) => one - other);
  const answers = chosen.map((place) => [
    place,
    asked.channels[place].draw(cells[place], below).toString(16),
  ]);
  return JSON.stringify({ answers, campaign: asked.digest, view });
}

/** The campaign of a text, with everything checked that privacy rests on; or CampaignRefused. */
export async function checkCampaign(text) {
  try {
    require(nCharacters(text) <= N_CHARACTERS_MAX, "it is too long");
    return checked(read(text), await digestOf(text));
  } catch (error) {
    if (!(error instanceof NotHeld)) throw error; // of this program or this browser, not of the text
    throw new CampaignRefused(`the campaign cannot be answered: ${error.message}`);
  }
}

async function digestOf(text) {
  const bytes = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
  return Array.from(new Uint8Array(bytes), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function checked(value, digest) {
  require(whole(field(value, "format")) === FORMAT, "its format is unknown");
  const [attributes, combinations] = [list(field(value, "attributes")), list(field(value, "combinations"))];
  const views = list(field(value, "views"));
  require(attributes.length <= N_ATTRIBUTES_MAX, "it has too many attributes");
  require(combinations.length <= N_COMBINATIONS_MAX, "it has too many combinations");
  require(0 < views.length && views.length <= N_VIEWS_MAX, "it has no views, or too many");
  const levels = new Map(
    attributes.map((one) => [string(field(one, "name")), list(field(one, "levels"))]),
  );
  require(levels.size === attributes.length, "two attributes have the same name");
  for (const [name, found] of levels) {
    require(found.length <= N_LEVELS_MAX, `${name} has too many levels`);
    require(!found.some((level) => level !== null && typeof level === "object"), NO_FORM);
    const areDistinct = new Set(found).size === found.length && found.length > 1;
    require(areDistinct, `${name} has fewer than two levels, or lists one twice`);
  }
  const scopes = combinations.map((one) => list(field(one, "attributes")).map(string));
  const channels = scopes.map((scope, place) => {
    require(new Set(scope).size === scope.length, "a combination names an attribute twice");
    require(scope.every((name) => levels.has(name)), NO_FORM);
    const nCells = scope.reduce((product, name) => product * levels.get(name).length, 1);
    require(1 < nCells && nCells <= N_CELLS_MAX, TOO_MANY_CELLS);
    return channelOf(field(combinations[place], "channel"), nCells);
  });
  const places = views.map((view) => list(view).map(whole));
  const nAnswered = whole(field(value, "answers"));
  const epsilonUnits = BigInt(whole(field(value, "epsilon")));
  const asked = { digest, levels, scopes, channels, views: places, nAnswered, epsilonUnits };
  checkViews(asked);
  return asked;
}

/** What is needed of a combination is computed once; a view costs a step for each of its places. */
function checkViews({ levels, scopes, channels, views, nAnswered, epsilonUnits }) {
  require(0n < epsilonUnits && epsilonUnits <= EPSILON_UNITS_MAX, "its epsilon is out of range");
  const limit = expBelow(epsilonUnits) << (RATIO_BITS - GUARD_BITS);
  const bits = new Map([...levels.keys()].map((name, place) => [name, 1n << BigInt(place)]));
  const named = scopes.map((scope) => scope.reduce((sum, name) => sum | bits.get(name), 0n));
  const ratios = channels.map(({ ratio }) => up(ratio.over << RATIO_BITS, ratio.under));
  for (const view of views) {
    let seen = 0n;
    for (const place of view) {
      require(0 <= place && place < named.length, "a view names a combination that does not exist");
      require((seen & named[place]) === 0n, "two combinations of a view share an attribute");
      seen |= named[place];
    }
    require(1 <= nAnswered && nAnswered <= view.length, "a view has fewer combinations than a respondent answers");
    const largest = view.map((place) => ratios[place]).sort(largestFirst).slice(0, nAnswered);
    let lost = 1n << RATIO_BITS;
    for (const ratio of largest) {
      lost = up(lost * ratio, 1n << RATIO_BITS);
      require(lost <= limit, "an answer would lose more than the declared epsilon");
    }
  }
}

function channelOf(value, nCells) {
  const kind = field(value, "kind");
  if (kind === "randomised_response") {
    require(list(field(value, "weights")).length === nCells, "the number of fake answers is not the number of cells");
    const weights = value.weights.map(whole);
    const areDrawn = weights.every((weight) => weight >= 1);
    require(areDrawn, "a fake answer has weight 0, so that this answer would reveal the true cell");
    const total = weights.reduce((sum, weight) => sum + weight, 0);
    require(total <= WEIGHTS_MAX, "the weights of its fake answers are too large");
    return response(probability(field(value, "keep")), weights.map(BigInt));
  }
  if (kind === "unary_encoding") {
    require(nCells <= N_BITS_MAX, TOO_MANY_CELLS);
    const noise = probability(field(value, "noise"));
    require(2n * noise.over < noise.under, "the noise is not below 1/2");
    require(COIN % noise.under === 0n, "the noise is not a multiple of 2**-32");
    return unary(noise, nCells);
  }
  require(kind === "local_hashing", "a kind of channel is unknown");
  const nBuckets = whole(field(value, "buckets"));
  require(1 < nBuckets && nBuckets <= N_BUCKETS_MAX, "the number of buckets is out of range");
  let nSeeds = nBuckets;
  while (nSeeds < nCells) nSeeds *= nBuckets;
  return hashing(response(probability(field(value, "keep")), Array(nBuckets).fill(1n)), nBuckets, nSeeds);
}

/** The attributes that are asked about, in the order in which combinations have them. */
function namesOf({ scopes }) {
  return [...new Set(scopes.flat())];
}

/** Where a level is listed, or -1; all are compared, so that the time is the same. */
function positionOf(own, levels) {
  return levels.reduce((found, level, place) => (level === own ? place : found), -1);
}

/** The attributes of which a row has a level that is not among the campaign's. */
function unlistedOf(asked, row) {
  return namesOf(asked).filter(
    (name) => Object.hasOwn(row, name) && positionOf(row[name], asked.levels.get(name)) < 0,
  );
}

/**
 * The cell of a row in each combination: the last attribute's level counts in ones.
 *
 * A level that is not listed is as one of those that are, each as likely. To refuse it would tell the
 * server that the row has none of them: exactly, and for no epsilon.
 */
function cellsOf(asked, row, below) {
  const { levels, scopes } = asked;
  const names = namesOf(asked);
  for (const name of names) {
    if (Object.hasOwn(row, name)) continue;
    throw new RangeError(`the row does not have ${name}, which the campaign asks about`);
  }
  const positions = new Map(); // a level is looked for once, in however many combinations it is
  for (const name of names) {
    const listed = levels.get(name);
    const found = positionOf(row[name], listed);
    positions.set(name, found < 0 ? Number(below(BigInt(listed.length))) : found);
  }
  const oneMore = (cell, name) => cell * levels.get(name).length + positions.get(name);
  return scopes.map((scope) => scope.reduce(oneMore, 0));
}

/** JSON whose numbers are all whole, written so, and the same in every language. */
function read(text) {
  require(!LONE.test(text), NO_FORM);
  const value = parsed(text);
  for (const [number] of text.replace(STRINGS, '""').matchAll(NUMBERS)) {
    require(/^-?[0-9]+$/.test(number) && Number.isSafeInteger(Number(number)), NO_FORM);
  }
  return value;
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    throw new NotHeld(NO_FORM); // no JSON, or nested too deep
  }
}

function nCharacters(text) {
  if (text.length <= N_CHARACTERS_MAX) return text.length;
  let found = 0;
  for (const _ of text) found += 1;
  return found;
}

function probability(value) {
  const match = PROBABILITY.exec(string(value));
  require(match !== null && BigInt(match[2]) > 0n, "a probability is not written as a fraction");
  const [over, under] = [BigInt(match[1]), BigInt(match[2])];
  require(0n < over && over < under, "a probability is not between 0 and 1");
  const common = greatestCommon(over, under);
  return { over: over / common, under: under / common };
}

function greatestCommon(one, other) {
  return other === 0n ? one : greatestCommon(other, one % other);
}

function largestFirst(one, other) {
  return one < other ? 1 : one > other ? -1 : 0;
}

function up(over, under) {
  return (over + under - 1n) / under;
}

/** At most the exponential, times 2**128: a part of its series, each term rounded down. */
function expBelow(units) {
  let [term, total, order] = [1n << GUARD_BITS, 1n << GUARD_BITS, 0n];
  while (term > 0n) {
    order += 1n;
    term = (term * units) / (order << EPSILON_BITS);
    total += term;
  }
  return total;
}

function object(value) {
  require(typeof value === "object" && value !== null && !Array.isArray(value), NO_FORM);
  return value;
}

function field(value, name) {
  require(Object.hasOwn(object(value), name), NO_FORM);
  return value[name];
}

function list(value) {
  require(Array.isArray(value), NO_FORM);
  return value;
}

function string(value) {
  require(typeof value === "string", NO_FORM);
  return value;
}

function whole(value) {
  require(typeof value === "number", "a number is not an integer");
  return value;
}

function require(holds, otherwise) {
  if (!holds) throw new NotHeld(otherwise);
}
