/**
 * How a respondent's device draws an answer: draws.py, bit by bit. A part of respondent.mjs.
 *
 * Each channel has the largest ratio of an answer's probabilities under two cells, and draws the answer of a
 * respondent in a cell.
 */

export const COIN = 1n << 32n;

/** The true cell with some probability, otherwise one by weight. */
export function response(keep, weights) {
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
export function unary(noise, nCells) {
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
export function hashing(buckets, nBuckets, nSeeds) {
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
