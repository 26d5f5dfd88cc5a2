// What an application and its workers do between the fuzz's calls, so that these meet flows, runs and tasks in every
// state.
import { FLOWS, POOLS, STEPS, literal, uuid } from './values.mjs'

/** A queue name that is valid and unpleasant: no public call routes a step there. */
const ODD_QUEUE = 'odd "%s%i" \\ queue'
const ODD_FLOW = 'oddly_routed'

export const workers = (pool) => [0, 1, 2, 3].map((n) => `
  insert into pgflow.workers (worker_id, queue_name, function_name) values (${literal(uuid(pool, n))}, 'flow_a', 'fuzz')`)

const route = [
  `select from pgmq.create(${literal(ODD_QUEUE)})`,
  `update pgflow.steps set queue_name = ${literal(ODD_QUEUE)} where flow_slug = '${ODD_FLOW}'`,
  `select from pgmq.drop_queue('${ODD_FLOW}')`, // deletion leaves it to whoever routes elsewhere
]

/** Defines the flows that are not there (any more), or not in this spelling: a single step, two after it, a map, a conditional step, a last one. */
export function definitions() {
  return FLOWS.flatMap((flow) => [
    `select pgflow.delete_flow_and_data(flow_slug) from pgflow.flows where lower(flow_slug) = lower('${flow}') and flow_slug <> '${flow}'`,
    `select from pgflow.create_flow('${flow}', max_attempts => 2, base_delay => 0, timeout => 3)`,
    ...[
      `'first'`, `'second', '{first}', when_exhausted => 'skip'`, `'each', '{first}', step_type => 'map'`,
      `'after', '{each}', required_input_pattern => '{"each": [1]}', when_unmet => 'skip-cascade', when_exhausted => 'skip-cascade'`,
      `'last', '{second,after}', start_delay => 1`,
    ].map((step) => `select from pgflow.add_step('${flow}', ${step})`),
    ...(flow === ODD_FLOW ? route : []),
  ])
}

/** Starts a run of each flow in both pools, from run `n` on. */
export function starts(n) {
  return ['public', 'internal'].flatMap((pool) => FLOWS.map((flow, at) => `
    select from pgflow.flows where flow_slug = '${flow}'
      and not exists (select from pgflow.runs where run_id = ${literal(uuid(POOLS[pool], n + at))})
      and exists (select from pgflow.start_flow('${flow}', '{"a": 1}', ${literal(uuid(POOLS[pool], n + at))}))`))
}

const started = (pool) => `
  (select * from pgflow.step_tasks where status = 'started' and run_id::text like '%-${POOLS[pool]}%'
   order by run_id desc, step_slug, task_index limit 2) t`

/** One move of a worker. */
export function move(values) {
  const flow = values.one(FLOWS)
  const queue = flow === ODD_FLOW ? ODD_QUEUE : flow.toLowerCase()
  const pool = values.one(['public', 'internal'])
  const key = 't.run_id, t.step_slug, t.task_index'
  return values.one([
    `select from pgflow.start_tasks('${flow}',
       array(select message_id from pgflow.step_tasks where queue_name = ${literal(queue)} and status = 'queued'
             order by run_id desc, step_slug, task_index limit ${1 + values.upTo(5)}),
       ${literal(uuid(POOLS.worker, 1))}, ${literal(queue)})`,
    `select from ${started(pool)}, pgflow.complete_task(${key}, case t.step_slug when 'first' then '[1, 2]'::jsonb else '{"a": 1}' end)`,
    `select from ${started(pool)}, pgflow.fail_task(${key}, ${values.one([`'no'`, `'%s"'`, 'null'])})`,
    `update pgflow.step_tasks set queued_at = queued_at - interval '1 day', started_at = started_at - interval '1 day'
     where status = 'started' and step_slug = '${values.one(STEPS)}'`,
  ])
}
