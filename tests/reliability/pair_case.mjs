// Draws a case for pairs.mjs: a small flow, what was done with it so far, and two calls that meet. The same seed draws
// the same case.

/** A generator of numbers in [0, 1), mulberry32. */
function generator(seed) {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

const REPORTS = ['complete', 'complete', 'complete', 'completeAll', 'fail']
const KINDS = [...REPORTS, ...REPORTS, 'claim', 'claim', 'claim', 'claim', 'claim', 'start', 'recover', 'poke', 'delete']
const OUTPUTS = ['[]', '[1, 2]', '[true]', '{"go": true}', '{"go": false}', '1']

/** `steps` are arguments of add_step, `before` and `pair` operations as play.mjs carries them out. */
export function draw(seed) {
  const random = generator(seed)
  const below = (limit) => Math.floor(random() * limit)
  const one = (list) => list[below(list.length)]
  const chance = (probability) => random() < probability

  const steps = drawSteps()
  const everything = [false, true].map((routed) => ({ kind: 'claim', routed, ids: [1, 2, 3, 4, 5, 6, 7, 8] }))
  // Most of what could be claimed is, so that reports find started tasks.
  const before = [{ kind: 'start', run: 1 }, ...everything]
  for (let number = below(4); number > 0; number -= 1) before.push(drawOperation(), ...everything)
  if (chance(0.5)) before.push(drawOperation())
  const drawn = chance(0.6) ? () => drawOperation(REPORTS) : () => drawOperation()
  return { steps, before, pair: [drawn(), drawn()], way: one(['hold', 'hold', 'race', 'undo']) }

  function drawSteps() {
    const slugs = ['a', 'b', 'c', 'd'].slice(0, 2 + below(3))
    return slugs.map((slug, at) => {
      const deps = slugs.slice(0, at).filter(() => chance(0.5))
      const type = deps.length === 1 && chance(0.5) ? 'map' : 'single'
      const condition = deps.length > 0 && chance(0.3) ? { [one(deps)]: { go: true } } : undefined
      return {
        slug, deps, type, condition, forbids: chance(0.5), unmet: one(['skip', 'skip-cascade', 'fail']),
        exhausted: one(['fail', 'skip', 'skip-cascade']), routed: chance(0.3),
      }
    })
  }

  function drawTask() {
    return { run: chance(0.9) ? 1 : 2, step: one(steps.slice(0, 1 + below(steps.length))).slug, index: chance(0.8) ? 0 : 1 }
  }

  function drawOperation(kinds = KINDS) {
    const kind = one(kinds)
    switch (kind) {
      case 'claim': return { kind, routed: chance(0.3), ids: Array.from({ length: 1 + below(6) }, () => 1 + below(8)) }
      case 'complete': return { kind, task: drawTask(), output: one(OUTPUTS) }
      case 'completeAll':
        return { kind, reports: Array.from({ length: 1 + below(4) }, () => ({ task: drawTask(), output: one(OUTPUTS) })) }
      case 'fail': return { kind, task: drawTask() }
      case 'start': return { kind, run: chance(0.8) ? 1 : 2 }
      case 'poke': return { kind, run: chance(0.8) ? 1 : 2 }
      case 'delete': return chance(0.3) ? { kind } : { kind: 'claim', routed: false, ids: [1, 2, 3] }
      default: return { kind }
    }
  }
}
