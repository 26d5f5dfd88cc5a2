// A program with the example worker, for workers.mjs, which ends it in mid-task:
//
//   fork('worker_program.mjs', [DATABASE, FLOW, CONCURRENCY])
//
// It says { worker } when it starts and { began } and { ended } with each handler.
import { setTimeout as sleep } from 'node:timers/promises'
import { startWorker } from '../../docs/examples/worker/worker.mjs'
import { connect } from './database.mjs'

const [database, flow, concurrency] = process.argv.slice(2)
const sql = connect(database, { max: Number(concurrency) + 2 })

async function handle({ run_id, step_slug, task_index }) {
  const task = `${run_id} ${step_slug} ${task_index}`
  process.send({ began: task })
  await sleep(20 + Math.random() * 60)
  process.send({ ended: task })
  return { task }
}

const handlers = { each: handle, sum: handle }
const worker = startWorker({ sql, flow, handlers, concurrency: Number(concurrency), pollSeconds: 1, log: () => {} })
process.send({ worker: worker.id })
process.once('SIGTERM', worker.stop)
process.once('disconnect', () => process.exit()) // nobody listens any more
await worker.stopped
await sql.end()
process.disconnect()
