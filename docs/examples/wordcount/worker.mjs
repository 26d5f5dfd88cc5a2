// A worker of this flow: ../worker/worker.mjs with the handlers of this folder.
//
//   node worker.mjs NAME
//
// It connects as PGHOST, PGPORT, PGDATABASE, PGUSER and PGPASSWORD say. Run as many as you like, on any number of
// machines. SIGTERM stops it once the tasks at hand are done. When it is killed at any other point, nothing is lost:
// a message that was read but not claimed becomes visible again, and a claimed task that nobody reports on is given
// back to the queue by pgflow.requeue_stalled_tasks().
import postgres from 'postgres'
import { startWorker } from '../worker/worker.mjs'
import * as handlers from './handlers.mjs'

const concurrency = 2
const sql = postgres({
  max: concurrency + 2,
  onnotice: (notice) => console.log(`${notice.severity}: ${notice.message}`), // such as messages that belong to no task
})

const worker = startWorker({ sql, flow: 'wordcount', handlers, concurrency, name: process.argv[2] })
for (const signal of ['SIGTERM', 'SIGINT']) process.once(signal, worker.stop)
await worker.stopped
await sql.end()
