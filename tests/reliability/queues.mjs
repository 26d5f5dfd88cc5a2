// Queues of other kinds than create_flow makes: what an unlogged queue loses with a crash and on a standby, what a
// partitioned queue loses to its retention, who notices, and what brings it back. See docs/scaling.md.
import { check, summary } from './checks.mjs'
import { brokenInvariants, load } from '../clients/database.mjs'
import { connect, prepare } from './database.mjs'
import { drain } from './drain.mjs'
import { defineFlow } from './flows.mjs'
import { bringDown, standby, start } from './server.mjs'

const [primary, spare] = process.argv.slice(2)
let sql = await prepare('queues')

const count = async (table) => Number((await sql`select count(*) from ${sql(table)}`)[0].count)
const run = (flow) => sql`select from pgflow.start_flow(${flow}, '{}')`.then(() => 'started', (error) => error.code)
const runs = (flow, number) =>
  sql`select from generate_series(1, ${number}) i, pgflow.start_flow(${flow}, jsonb_build_object('i', i))`
const claim = async (flow, number) => (await sql`
  select run_id from pgflow.start_tasks(${flow}, array(select msg_id from pgmq.read(${flow}, 30, ${number})), null)`).length
const age = () => sql`
  update pgflow.step_tasks set queued_at = queued_at - interval '1 hour', started_at = started_at - interval '1 hour'
  where status = 'started'`
const stalled = async (flow) =>
  (await sql`select distinct reason from pgflow.stalled where flow_slug = ${flow} order by 1`).map(({ reason }) => reason)
const depth = async (flow) => {
  const [{ messages, tasks }] = await sql`
    select queue_length as messages, unfinished_tasks as tasks from pgflow.queue_depth(${flow})`
  return `${messages} messages, ${tasks} unfinished tasks`
}
const rescue = () => load(sql, 'sql/optional/reenqueue_missing_messages.sql')
const unfinished = async () => Number((await sql`select count(*) from pgflow.runs where status <> 'completed'`)[0].count)

/** Gives a new flow, of which no run was started, a queue of another kind. */
async function replaceQueue(flow, create) {
  await defineFlow(sql, flow)
  await sql`select pgmq.drop_queue(${flow})`
  await sql.unsafe(create)
}

async function allIsWell(when) {
  await drain(sql)
  check(`${when}: every run completes`, 0, await unfinished())
  check(`${when}: no rule is broken`, [], await brokenInvariants(sql))
}

// What create_flow makes, and what it refuses.
await defineFlow(sql, 'plain')
check('create_flow makes a logged queue that is not partitioned', [[false, false]],
  (await sql`select is_unlogged, is_partitioned from pgmq.list_queues() where queue_name = 'plain'`)
    .map(({ is_unlogged, is_partitioned }) => [is_unlogged, is_partitioned]))
await sql`select pgmq.create_unlogged('before')`
check('a queue that is there before its flow is refused', '23505',
  await sql`select from pgflow.create_flow('before')`.then(() => 'none', (error) => error.code))

// Unlogged: one that is all unlogged, one whose ids are logged.
await replaceQueue('fast', `select pgmq.create_unlogged('fast')`)
await replaceQueue('counted', `select pgmq.create_unlogged('counted'); alter sequence pgmq.q_counted_msg_id_seq set logged`)
await sql`select from pgflow.create_flow('fast')`
check('create_flow leaves an unlogged queue as it is', true,
  (await sql`select is_unlogged from pgmq.list_queues() where queue_name = 'fast'`)[0].is_unlogged)
await sql`insert into pgflow.workers (worker_id, queue_name, function_name, last_heartbeat_at)
          values (gen_random_uuid(), 'fast', 'alive', 'infinity')`
await runs('fast', 6)
await runs('counted', 6)
check('claims from unlogged queues', [2, 2], [await claim('fast', 2), await claim('counted', 2)])

async function restart(signal) {
  await sql.end()
  await bringDown(primary, signal)
  await start(primary)
  sql = connect('queues')
}

await restart('SIGINT')
check('a clean restart keeps its messages', '6 messages, 6 unfinished tasks', await depth('fast'))

await restart('SIGQUIT')
check('after a crash: the messages are gone and the tasks are there', '0 messages, 6 unfinished tasks', await depth('fast'))
check('after a crash: the stalled view shows nothing', [], await stalled('fast'))
check('after a crash: no run can start while ids come again', '23505', await run('fast'))
check('after a crash: with a logged sequence one can', 'started', await run('counted'))
const report = (flow, call) => sql.unsafe(`
  select r.status from (select run_id from pgflow.step_tasks where flow_slug = '${flow}' and status = 'started' limit 1) t,
    pgflow.${call} r`).then(([{ status }]) => status, (error) => error.code)
const complete = `complete_task(t.run_id, 'a', 0, '1')`
check('after a crash: nor can a report start the next step', '23505', await report('fast', complete))
check('after a crash: with a logged sequence it can', 'completed', await report('counted', complete))
check('after a crash: what was claimed cannot be retried', '55000',
  await report('counted', `fail_task(t.run_id, 'a', 0, 'no')`))
await age()
check('what was claimed shows as timed out', ['timed_out'], await stalled('fast'))
check('requeue_stalled_tasks takes it back', 3, (await sql`select pgflow.requeue_stalled_tasks() as count`)[0].count)
check('and it has no message: nobody can claim it', 0, await claim('fast', 10))
check('the stalled view shows nothing again', [], await stalled('fast'))
await rescue()
check('new messages are sent: all can be claimed', 6, await claim('fast', 10))
await allIsWell('after a crash')

// A standby that is promoted.
await runs('fast', 4)
await standby(spare, primary)
await start(spare)
await sql.end()
await bringDown(primary, 'SIGKILL')
sql = connect('queues', { host: spare })
check('a standby cannot read an unlogged queue, nor its depth', ['0A000', '0A000'],
  await Promise.all(['pgmq.q_fast', `pgflow.queue_depth('fast')`].map((rows) =>
    sql.unsafe(`select from ${rows}`).then(() => 'none', (error) => error.code))))
await sql`select pg_promote()`
check('a promoted standby has none of its messages', '0 messages, 4 unfinished tasks', await depth('fast'))
await rescue()
await allIsWell('after a promotion')

// Partitioned, by pg_partman.
await sql`create schema partman`
await sql`create extension pg_partman schema partman`
console.log(`-- pg_partman ${(await sql`select extversion from pg_extension where extname = 'pg_partman'`)[0].extversion}`)
await replaceQueue('parted', `select pgmq.create_partitioned('parted', '1000', '1000')`)
await runs('parted', 300)
await allIsWell('a partitioned queue')
check('its messages were archived', 600, await count('pgmq.a_parted'))

await runs('parted', 10)
await runs('plain', 10)
await sql`select setval('pgmq.q_parted_msg_id_seq', 3500)`
await runs('parted', 10)
await sql`call partman.run_maintenance_proc()`
check('retention drops the messages of unfinished tasks', '10 messages, 20 unfinished tasks', await depth('parted'))
await rescue()
await allIsWell('after retention')

// The archive alone may be partitioned: pgflow only writes to it.
await defineFlow(sql, 'filed')
await sql`select pgmq.convert_archive_partitioned('filed', '1 day', '30 days')`
await runs('filed', 10)
await allIsWell('a partitioned archive')
check('its messages are in it', 20, await count('pgmq.a_filed'))
await sql`call partman.run_maintenance_proc()`
await sql`select pgflow.prune_data_older_than(interval '0')`
check('pruning reaches partitioned archives', [0, 0], [await count('pgmq.a_parted'), await count('pgmq.a_filed')])

// More messages than partitions were made for.
await sql`select setval('pgmq.q_parted_msg_id_seq', 6000)`
await runs('parted', 3000)
await allIsWell('without a partition')
check('what has no partition is in the default one', true, (await count('pgmq.a_parted_default')) > 0)
check('and pg_partman makes none for it any more', 'P0001',
  await sql`call partman.run_maintenance_proc()`.then(() => 'none', (error) => error.code))
await sql`select from pgflow.delete_flow_and_data('parted')`
await sql`select from pgflow.delete_flow_and_data('filed')`
check('deleting the flows leaves of their partitioned tables what the conversion had put aside', ['a_filed_old'],
  (await sql`
    select relname from pg_class
    where relnamespace = 'pgmq'::regnamespace and relname ~ '^[aq]_(parted|filed)' and relkind in ('r', 'p')`)
    .map(({ relname }) => relname))
summary()
process.exit()
