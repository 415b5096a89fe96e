/**
 * The respondent's side for a web page: the protocol of respondent.py, bit by bit.
 *
 * A module without dependencies. It reads a campaign, trusts nothing in it, computes on its own what
 * an answer would lose, refuses before anything is drawn, and answers once. Whole numbers are BigInt
 * wherever privacy rests on them; entropy is the browser's. What it refuses, and in which words, is what
 * respondent.py refuses.
 *
 * It protects from those who collect, not from who serves this file: a page from the one who collects
 * may hold any other code. Serve it from somewhere that the respondents trust.
 *
 *   import { LocalAnswers } from "./answer_store.mjs";
 *   const respondent = new Respondent(new LocalAnswers(), { epsilonUnitsMax: 2 ** 40 });
 *   const answer = await respondent.answer(campaignText, { smokes: "no" });
 */

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
const COIN = 1n << 32n;
const TOO_MANY_CELLS = "a combination has no or too many cells";
const PROBABILITY = /^([0-9]{1,40})\/([0-9]{1,40})$/;
const STRINGS = /"[^"\\]*(?:\\.[^"\\]*)*"/g;
const NUMBERS = /-?[0-9][0-9.eE+-]*/g;

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
   * @param {Object} row The true level of every attribute that is asked about. It stays here.
   */
  async answer(text, row) {
    const asked = await checkCampaign(text);
    return this.#store.once(asked.digest, (spent) => {
      if (spent + asked.epsilonUnits > this.#epsilonUnitsMax) {
        throw new CampaignRefused("the campaign loses more epsilon than is left");
      }
      const below = (n) => this.#entropy.below(n);
      return { epsilonUnits: asked.epsilonUnits, answer: randomised(asked, row, below) };
    });
  }

  /** The answer that was given to a campaign, to be sent again; or NothingKept, and nothing is drawn. */
  async kept(text) {
    return this.#store.once(await digestOf(text), () => {
      throw new NothingKept("nothing was answered");
    });
  }
}

/**
 * An answer to a checked campaign. Draws are, in this order: the view; which of its combinations, by
 * exchanging places from the first on; then the answer of each in the order of their places.
 */
export function randomised(asked, row, below) {
  const cells = cellsOf(asked, row);
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
  let reason = "it has not the form of one"; // whatever else goes wrong with it
  try {
    require(nCharacters(text) <= N_CHARACTERS_MAX, "the campaign is too long");
    return checked(read(text), await digestOf(text));
  } catch (error) {
    if (error instanceof NotHeld) reason = error.message;
  }
  throw new CampaignRefused(`this is no campaign to answer: ${reason}`);
}

async function digestOf(text) {
  const bytes = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
  return Array.from(new Uint8Array(bytes), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function checked(value, digest) {
  require(whole(field(value, "format")) === FORMAT, "its format is not known");
  const [attributes, combinations] = [list(field(value, "attributes")), list(field(value, "combinations"))];
  const views = list(field(value, "views"));
  require(attributes.length <= N_ATTRIBUTES_MAX, "it has too many attributes");
  require(combinations.length <= N_COMBINATIONS_MAX, "it has too many combinations");
  require(0 < views.length && views.length <= N_VIEWS_MAX, "it has no or too many views");
  const levels = new Map(
    attributes.map((one) => [string(field(one, "name")), list(field(one, "levels"))]),
  );
  require(levels.size === attributes.length, "two attributes have the same name");
  for (const [name, found] of levels) {
    require(found.length <= N_LEVELS_MAX, `${name} has too many levels`);
    if (found.some((level) => level !== null && typeof level === "object")) throw new TypeError();
    const areDistinct = new Set(found).size === found.length && found.length > 1;
    require(areDistinct, `the levels of ${name} are not distinct`);
  }
  const scopes = combinations.map((one) => list(field(one, "attributes")).map(string));
  const channels = scopes.map((scope, place) => {
    require(new Set(scope).size === scope.length, "an attribute is asked about twice");
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
      require(0 <= place && place < named.length, "a view is of nothing");
      require((seen & named[place]) === 0n, "an attribute is asked about twice");
      seen |= named[place];
    }
    require(1 <= nAnswered && nAnswered <= view.length, "a view has too few combinations");
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
    require(list(field(value, "weights")).length === nCells, "there is not one fake answer for each cell");
    const weights = value.weights.map(whole);
    const areDrawn = weights.every((weight) => weight >= 1);
    require(areDrawn, "a fake answer is never drawn, so that it would be a proof");
    const total = weights.reduce((sum, weight) => sum + weight, 0);
    require(total <= WEIGHTS_MAX, "its fake answers have too large weights");
    return response(probability(field(value, "keep")), weights.map(BigInt));
  }
  if (kind === "unary_encoding") {
    require(nCells <= N_BITS_MAX, TOO_MANY_CELLS);
    const noise = probability(field(value, "noise"));
    require(2n * noise.over < noise.under, "the noise is no less than a coin's");
    require(COIN % noise.under === 0n, "the noise is no multiple of 2**-32");
    return unary(noise, nCells);
  }
  require(kind === "local_hashing", "a channel is not known");
  const nBuckets = whole(field(value, "buckets"));
  require(1 < nBuckets && nBuckets <= N_BUCKETS_MAX, "the number of buckets is out of range");
  let nSeeds = nBuckets;
  while (nSeeds < nCells) nSeeds *= nBuckets;
  return hashing(response(probability(field(value, "keep")), Array(nBuckets).fill(1n)), nBuckets, nSeeds);
}

/** The true cell with some probability, otherwise one by weight. */
function response(keep, weights) {
  const total = weights.reduce((sum, weight) => sum + weight, 0n);
  const least = weights.reduce((least, weight) => (weight < least ? weight : least));
  const fakes = keep.under - keep.over;
  return {
    ratio: { over: fakes * least + keep.over * total, under: fakes * least },
    draw(cell, below) {
      const drawn = below(keep.under * total);
      if (drawn < keep.over * total) return cell;
      let place = (drawn - keep.over * total) / fakes;
      return weights.findIndex((weight) => (place -= weight) < 0n);
    },
  };
}

/** A bit for each cell, the first cell's the lowest. */
function unary(noise, nCells) {
  const end = (noise.over * COIN) / noise.under;
  return {
    ratio: { over: noise.under - noise.over, under: noise.over },
    draw(cell, below) {
      const bits = Array.from({ length: nCells }, (_, place) =>
        below(COIN) < (place === cell ? COIN / 2n : end) ? "1" : "0",
      );
      return BigInt(`0b${bits.reverse().join("")}`);
    },
  };
}

/** A seed, and by randomised response the bucket in which it puts the cell. */
function hashing(buckets, nBuckets, nSeeds) {
  return {
    ratio: buckets.ratio,
    draw(cell, below) {
      const seed = Number(below(BigInt(nSeeds)));
      let bucket = 0;
      for (let [rest, place] = [seed, cell]; rest > 0; ) {
        bucket += (rest % nBuckets) * (place % nBuckets);
        [rest, place] = [Math.floor(rest / nBuckets), Math.floor(place / nBuckets)];
      }
      return seed * nBuckets + buckets.draw(bucket % nBuckets, below);
    },
  };
}

/** The cell of a row in each combination: the last attribute's level counts in ones. */
function cellsOf({ levels, scopes }, row) {
  const positions = new Map(); // a level is looked for once, in however many combinations it is
  for (const name of new Set(scopes.flat())) {
    const position = Object.hasOwn(row, name) ? levels.get(name).indexOf(row[name]) : -1;
    if (position < 0) throw new RangeError(`the row has no level of ${name} that is asked about`);
    positions.set(name, position);
  }
  const oneMore = (cell, name) => cell * levels.get(name).length + positions.get(name);
  return scopes.map((scope) => scope.reduce(oneMore, 0));
}

/** JSON whose numbers are all whole, written so, and the same in every language. */
function read(text) {
  if (!text.isWellFormed()) throw new TypeError();
  const value = JSON.parse(text);
  for (const [number] of text.replace(STRINGS, '""').matchAll(NUMBERS)) {
    if (!/^-?[0-9]+$/.test(number) || !Number.isSafeInteger(Number(number))) throw new TypeError();
  }
  return value;
}

function nCharacters(text) {
  if (text.length <= N_CHARACTERS_MAX) return text.length;
  let found = 0;
  for (const _ of text) found += 1;
  return found;
}

function probability(value) {
  const match = PROBABILITY.exec(string(value));
  require(match !== null && BigInt(match[2]) > 0n, "a probability is not exact");
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
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw new TypeError();
  return value;
}

function field(value, name) {
  if (!Object.hasOwn(object(value), name)) throw new TypeError();
  return value[name];
}

function list(value) {
  if (!Array.isArray(value)) throw new TypeError();
  return value;
}

function string(value) {
  if (typeof value !== "string") throw new TypeError();
  return value;
}

function whole(value) {
  require(typeof value === "number", "a number is not whole");
  return value;
}

function require(holds, otherwise) {
  if (!holds) throw new NotHeld(otherwise);
}
