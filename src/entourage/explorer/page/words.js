// Relations between two items in plain words.

/** How a point and a neighbour it attends to sit in the neighbourhood graph. */
export function relation({ shared, mine, theirs, trust, length }) {
  const common = `they share ${shared} of ${length} neighbours`;
  const ranks = theirs
    ? mine === theirs
      ? `each is the other's ${nth(mine)} nearest`
      : `each is among the other's first ${Math.max(mine, theirs)}`
    : `it is the item's ${nth(mine)} nearest, but the item is not among its first ${length}`;
  return `${capital(common)}; ${ranks}. ${judged(trust)}`;
}

function judged(trust) {
  const chance = `${Math.round(100 * trust)} %`;
  if (trust >= 0.75) return `The refiner trusts it: ${chance} to be of one kind.`;
  if (trust >= 0.35) return `The refiner is in two minds: ${chance} to be of one kind.`;
  return `The refiner hardly listens to it: ${chance} to be of one kind.`;
}

/** 1st, 2nd, 3rd, 4th, ... */
export function nth(number) {
  const tens = number % 100;
  const ending = tens > 10 && tens < 14 ? "th" : ["th", "st", "nd", "rd"][number % 10] ?? "th";
  return `${number}${ending}`;
}

/** Where a neighbour came from or went to. */
export function moved(rank, other, when) {
  if (other === rank) return "same rank";
  if (when === "after") return other > rank ? `▲ from ${other}` : `▼ from ${other}`;
  return other > rank ? `▼ now ${other}` : `▲ now ${other}`;
}

const capital = (text) => text[0].toUpperCase() + text.slice(1);
