// The flows under load, and what their steps' handlers return.

export const SHARED_QUEUE = 'load_shared'

/** Steps as arguments of add_step, and `queue` for a step that is routed elsewhere. */
const flows = {
  load_chain: [{ slug: 'a' }, { slug: 'b', deps: ['a'] }, { slug: 'c', deps: ['b'], queue: SHARED_QUEUE }],
  load_diamond: [
    { slug: 'list' },
    { slug: 'left', deps: ['list'], type: 'map' },
    { slug: 'right', deps: ['list'], type: 'map', queue: SHARED_QUEUE },
    { slug: 'join', deps: ['left', 'right'] },
  ],
  load_wide: [{ slug: 'each', type: 'map' }, { slug: 'sum', deps: ['each'] }],
  load_guarded: [
    { slug: 'first' },
    { slug: 'even', deps: ['first'], required: { first: { even: true } }, unmet: 'skip' },
    { slug: 'after_even', deps: ['even'] },
    { slug: 'odd', deps: ['first'], forbidden: { first: { even: true } }, unmet: 'skip-cascade' },
    { slug: 'after_odd', deps: ['odd'] },
    { slug: 'shaky', deps: ['first'], exhausted: 'skip' },
    { slug: 'after_shaky', deps: ['shaky'], exhausted: 'skip-cascade' },
    { slug: 'last', deps: ['after_shaky', 'after_even'] },
  ],
}

export const LASTING_FLOWS = Object.keys(flows)
const WIDTH = 100

/** Where workers look for messages: pairs of flow and queue. */
export const ROUTES = [
  ...LASTING_FLOWS.map((flow) => [flow, flow]),
  ['load_chain', SHARED_QUEUE],
  ['load_diamond', SHARED_QUEUE],
]

export async function defineFlows(sql) {
  await sql`select from pgmq.create(${SHARED_QUEUE})`
  for (const [flow, steps] of Object.entries(flows)) await defineFlow(sql, flow, steps)
}

/** A flow of one step after another in its own queue, or of the steps given. */
export async function defineFlow(sql, flow, steps = [{ slug: 'a' }, { slug: 'b', deps: ['a'] }]) {
  await sql`select from pgflow.create_flow(${flow}, max_attempts => 2, base_delay => 0)`
  for (const { slug, deps = [], type = 'single', queue, required, forbidden, unmet, exhausted } of steps) {
    await sql`
      select from pgflow.add_step(
        ${flow}, ${slug}, ${deps}, step_type => ${type}, when_unmet => ${unmet ?? 'skip'},
        when_exhausted => ${exhausted ?? 'fail'}, required_input_pattern => ${json(sql, required)},
        forbidden_input_pattern => ${json(sql, forbidden)})`
    if (queue) await sql`update pgflow.steps set queue_name = ${queue} where flow_slug = ${flow} and step_slug = ${slug}`
  }
}

const json = (sql, value) => (value === undefined ? null : sql.json(value))

export const inputOf = (flow) => (flow === 'load_wide' ? Array.from({ length: WIDTH }, (_, i) => i) : {})

let handled = 0

/** An output that no other call of a handler returns. A list is wrong once in a while: a map step depends on it. */
export function outputOf(stepSlug) {
  handled += 1
  if (stepSlug === 'first') return { even: handled % 2 === 0, handled }
  if (stepSlug === 'list' && handled % 50 !== 0) return Array.from({ length: handled % 5 }, () => handled)
  return { handled }
}
