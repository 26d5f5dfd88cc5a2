// A load: many connections that mix everything workers, producers and operators do, on the same runs. Whatever one
// of them claims or reads the others may report or claim as well, so that late, double and contrary calls are common.
import { setTimeout as sleep } from 'node:timers/promises'
import { randomUUID } from 'node:crypto'
import { ROUTES, LASTING_FLOWS, defineFlow, inputOf, outputOf } from './flows.mjs'
import { Ledger } from './ledger.mjs'

const CONNECTIONS = 8
// What the connections do, as often as the number says.
const VERBS = { work: 60, start: 12, intrude: 8, snatch: 8, recover: 4, poke: 3, look: 3, takeBack: 2, visit: 2, pass: 1 }
const OPEN_MESSAGES = 500 // as many may wait in a queue before nobody starts runs there
const REMEMBERED = 300

const chance = (probability) => Math.random() < probability
const below = (limit) => Math.floor(Math.random() * limit)
const one = (list) => list[below(list.length)]

/** Keeps the last few of what it is given. */
class Memory {
  #items = []

  add(...items) {
    for (const item of items) {
      if (this.#items.length < REMEMBERED) this.#items.push(item)
      else this.#items[below(REMEMBERED)] = item
    }
  }

  get any() {
    return one(this.#items)
  }
}

export class Load {
  ledger = new Ledger()
  counts = {}
  /** Errors that no caller should have met, with what was called. */
  errors = []
  #stopped = false
  #tasks = new Memory()
  #abandoned = new Memory()
  #messages = new Memory()
  #runs = new Memory()
  #hopeless = new Memory()
  #passing = new Set()
  #loops

  /** `connect()` gives a pool of one connection. With `prunes` old data are pruned meanwhile. `isAway(error)` tells
      whether an error only means that the server is not there. */
  constructor({ connect, prunes = false, isAway = () => false }) {
    this.isAway = isAway
    this.prunes = prunes
    this.verbs = Object.entries({ ...VERBS, prune: prunes ? 1 : 0 }).flatMap(([verb, often]) => Array(often).fill(verb))
    this.#loops = Array.from({ length: CONNECTIONS }, (_, number) =>
      this.#loop({ sql: connect(), number, worker: randomUUID(), passed: 0 }))
  }

  async stop() {
    this.#stopped = true
    await Promise.all(this.#loops)
  }

  count(what, number = 1) {
    this.counts[what] = (this.counts[what] ?? 0) + number
  }

  async #loop(client) {
    let beaten = 0
    while (!this.#stopped) {
      const verb = one(this.verbs)
      try {
        if (Date.now() - beaten > 1000) {
          await this.#beat(client)
          beaten = Date.now()
        }
        await this[verb](client)
        this.count(verb)
      } catch (error) {
        if (this.isAway(error)) {
          this.count('calls without an answer')
          await sleep(20)
        } else this.errors.push(`${verb}: ${error.code ?? ''} ${error.message} ${error.where ?? ''}`)
      }
    }
  }

  #beat({ sql, worker }) {
    return sql`
      insert into pgflow.workers (worker_id, queue_name, function_name) values (${worker}, 'load', 'load')
      on conflict (worker_id) do update set last_heartbeat_at = now()`
  }

  /** Repeats a call until it is answered. */
  async #answered(call) {
    for (;;) {
      try {
        return await call()
      } catch (error) {
        if (!this.isAway(error)) throw error
        this.count('calls without an answer')
        await sleep(20)
      }
    }
  }

  /** Sends a report and keeps the answer. */
  async #report(send) {
    const rows = await this.#answered(send)
    for (const row of rows) this.ledger.record(row)
    this.count('reports', rows.length)
  }

  #complete({ sql }, { run_id, step_slug, task_index }, output = outputOf(step_slug)) {
    return this.#report(() => sql`
      select * from pgflow.complete_task(${run_id}, ${step_slug}, ${task_index}, ${sql.json(output)})`)
  }

  #completeAll({ sql }, tasks) {
    const of = (field) => tasks.map((task) => task[field])
    const outputs = tasks.map(({ step_slug }) => JSON.stringify(outputOf(step_slug)))
    return this.#report(() => sql`
      select * from pgflow.complete_tasks(${of('run_id')}::uuid[], ${of('step_slug')}::text[],
                                          ${of('task_index')}::integer[], ${outputs}::text[]::jsonb[])`)
  }

  #fail({ sql }, { run_id, step_slug, task_index }) {
    return this.#report(() => sql`
      select * from pgflow.fail_task(${run_id}, ${step_slug}, ${task_index}, 'failed on purpose')`)
  }

  async #claim({ sql, worker }, [flow, queue], ids) {
    const tasks = await sql`select * from pgflow.start_tasks(${flow}, ${ids}::bigint[], ${worker}, ${queue})`
    this.count('claimed tasks', tasks.length)
    this.ledger.recordClaims(tasks)
    this.#tasks.add(...tasks)
    return tasks
  }

  // What the connections do: a method for each verb.

  /** A producer. */
  async start({ sql }, flow = one(LASTING_FLOWS)) {
    const [{ waiting }] = await sql`select count(*)::integer as waiting from pgmq.${sql(`q_${flow}`)}`
    if (waiting > OPEN_MESSAGES) return sleep(5)
    const run = randomUUID()
    await this.#answered(() => sql`select from pgflow.start_flow(${flow}, ${sql.json(inputOf(flow))}, ${run})`)
      .catch((error) => {
        if (!error.message.includes('"runs_pkey"')) throw error // the call before went through, and only its answer was lost
      })
    this.ledger.recordRun(run)
    this.#runs.add(run)
  }

  /** A worker. */
  async work(client, route = one(ROUTES)) {
    const { sql } = client
    const messages = await sql`select msg_id::text from pgmq.read(${route[1]}, 1, ${1 + below(20)})`
    if (messages.length === 0) return sleep(5)
    const ids = messages.map(({ msg_id }) => msg_id)
    this.#messages.add({ route, ids })
    const tasks = await this.#claim(client, route, ids)
    const hopeful = tasks.filter((task) => !task.run_id.startsWith('00'))
    if (chance(0.5)) return hopeful.length > 0 && this.#completeAll(client, hopeful)
    for (const task of tasks) await this.#handle(client, task)
  }

  async #handle(client, task) {
    if (task.run_id.startsWith('00')) return this.#hopeless.add(task) // nobody ever reports a task of such a run
    const fate = Math.random()
    if (fate < 0.06) return this.#abandoned.add(task)
    if (fate < 0.2) return this.#fail(client, task)
    if (fate < 0.25) await sleep(below(50))
    await this.#complete(client, task)
    if (fate < 0.35) await this.#complete(client, task)
    else if (fate < 0.4) await this.#fail(client, task)
  }

  /** Somebody reports a task that is, or was, another's. */
  async intrude(client) {
    const task = this.#tasks.any
    if (!task) return
    if (chance(0.3)) await this.#fail(client, task)
    else if (chance(0.5)) await this.#complete(client, task)
    else await this.#completeAll(client, [task, this.#tasks.any, this.#tasks.any, task])
  }

  /** Somebody claims what another has read. */
  async snatch(client) {
    const read = this.#messages.any
    if (read) await this.#claim(client, read.route, read.ids)
  }

  /** Time passes for a task, and recovery runs. */
  async recover({ sql }) {
    const task = one([this.#abandoned, this.#hopeless, this.#tasks]).any
    if (!task) return
    const aged = await sql`
      update pgflow.step_tasks
      set queued_at = queued_at - interval '1 hour', started_at = started_at - interval '1 hour'
      where run_id = ${task.run_id} and step_slug = ${task.step_slug} and task_index = ${task.task_index}
        and status = 'started'`
    this.count('stalled tasks', aged.count)
    await sql`select pgflow.requeue_stalled_tasks()`
  }

  /** The functions that move a run on, called from outside. */
  async poke({ sql }) {
    const run = this.#runs.any
    if (!run) return
    await sql`select pgflow.cascade_complete_taskless_steps(${run})`.catch(unlessGone)
    await sql`select pgflow.cascade_resolve_conditions(${run})`.catch(unlessGone)
    await sql`select pgflow.start_ready_steps(${run})`.catch(unlessGone)
    await sql`select pgflow.maybe_complete_run(${run})`.catch(unlessGone)
  }

  async look({ sql }) {
    if (this.#runs.any) await sql`select pgflow.get_run_with_states(${this.#runs.any})`
  }

  /** A report that is taken back with its caller's transaction. */
  async takeBack({ sql }) {
    const task = this.#tasks.any
    if (!task) return
    await sql.unsafe(`
      begin;
      select from pgflow.complete_task('${task.run_id}', '${task.step_slug}', ${task.task_index}, '"taken back"');
      rollback`).simple().catch(async (error) => {
      if (!this.isAway(error)) await sql`rollback` // the transaction is still open; where the session is gone, so is it
      throw error
    })
  }

  /** A flow comes, is worked on and goes, while others still hold its tasks. */
  async pass(client) {
    const flow = `load_passing_${client.number}_${(client.passed += 1)}`
    await defineFlow(client.sql, flow)
    await this.start(client, flow)
    await this.start(client, flow)
    this.#passing.add(flow)
    await this.work(client, [flow, flow])
    await sleep(below(30))
    await client.sql`select from pgflow.delete_flow_and_data(${flow})`
    this.#passing.delete(flow)
  }

  /** Somebody starts runs of a flow that is about to go, and works on it. */
  async visit(client) {
    const flow = one([...this.#passing])
    if (!flow) return
    await this.start(client, flow).catch(unlessGone)
    await this.work(client, [flow, flow]).catch(unlessGone)
  }

  async prune({ sql }) {
    await sql`select pgflow.prune_data_older_than('5 seconds')`
  }
}

// A flow, its queue or its run was deleted meanwhile: unknown table, unknown flow or run.
export function unlessGone(error) {
  if (!['42P01', '42704', '23503'].includes(error.code)) throw error
}
