// A program with the example worker, for the tests that send it signals:
//
//   fork('example_program.mjs', [FLOW, CONCURRENCY])
//
// Its handler for every step says { begun: task_index } and returns what it is told then.
import postgres from 'postgres'
import { startWorker } from '../../docs/examples/worker/worker.mjs'

const flow = process.argv[2]
const concurrency = Number(process.argv[3])
const sql = postgres({ max: concurrency + 2, onnotice: () => {} })

const step = (task) =>
  new Promise((resolve) => {
    process.once('message', resolve)
    process.send({ begun: task.task_index })
  })

const worker = startWorker({ sql, flow, handlers: { step }, concurrency })
for (const signal of ['SIGTERM', 'SIGINT']) process.once(signal, worker.stop)
process.once('SIGTERM', () => process.send('stopping'))
await worker.stopped
await sql.end()
