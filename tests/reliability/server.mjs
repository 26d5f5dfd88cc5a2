// The servers that a load runs on: started by tests/harness/server.sh, and brought down here.
import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { basename } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const script = fileURLToPath(new URL('../harness/server.sh', import.meta.url))
const execute = promisify(execFile)

/** Starts the server in a folder, again or for the first time, with settings such as `fsync=off`. */
export const start = (folder, ...settings) => execute(script, ['start', basename(folder), ...settings])

/** Stops the server in a folder and deletes it. */
export const drop = (folder) => execute(script, ['drop', basename(folder)])

/** Makes one folder's server a standby of another's, which runs; it is not started. */
export const standby = (folder, primary) => execute(script, ['standby', basename(folder), basename(primary)])

/** Sends the server's first process a signal and waits until it is gone: SIGQUIT stops a server at once, without a
    checkpoint, so that it must recover; SIGKILL gives it no say at all. */
export async function bringDown(folder, signal) {
  const pid = Number((await readFile(`${folder}/data/postmaster.pid`, 'utf8')).split('\n')[0])
  process.kill(pid, signal)
  while (isThere(pid)) await sleep(10)
}

function isThere(pid) {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

export const logOf = (folder) => readFile(`${folder}/log`, 'utf8')

/** Whether an error says nothing but that the server is not there, or not for writing: there was no answer, the
    connection was lost, the server stops, starts, or is a standby. */
export const isAway = (error) => error.name !== 'PostgresError' || /^(08|57P0[123]|25006)/.test(error.code)
