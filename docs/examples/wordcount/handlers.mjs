// The work that the steps do. Each export is the handler of the step with that name: an async function that gets the
// claimed task and a connection to the database, and returns the step's output, a value that JSON can hold. What it
// throws makes the attempt fail. It may run more than once for the same task, so it must be safe to repeat.
//
// What a handler finds in its task:
//   task.flow_input   in a step without dependencies: the input that the run was started with
//   task.input        in a map step: its element of the array; else an object with the output of each dependency
//   task.run_id, task.step_slug, task.task_index   which task it is
import { readdir, readFile, realpath, stat } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

const listed = 10 // lines in the report
const shortest = 5 // letters of the shortest word that counts, or "the" and "of" would win

/** The paths of the files in the folder. A link stands for the file it leads to, which is listed once. */
export async function files({ flow_input: { folder } }) {
  const paths = new Set()
  for (const name of await readdir(folder)) {
    const path = await realpath(join(folder, name))
    if ((await stat(path)).isFile()) paths.add(path)
  }
  return [...paths].sort()
}

/** How often each word occurs in one file. */
export async function count(task, sql) {
  await failFirstAttempt(task, sql)
  const path = task.input
  const text = await readFile(path, 'utf8')
  const words = new Map()
  for (const [word] of text.toLowerCase().matchAll(/\p{L}+/gu)) {
    if (word.length >= shortest) words.set(word, (words.get(word) ?? 0) + 1)
  }
  // Counting takes milliseconds. This pause stands for work that takes longer, to let the workers overlap visibly.
  await sleep(200 + Math.random() * 300)
  return { file: basename(path), words: Object.fromEntries(words) }
}

/** The words that occur most often in all files together. */
export async function top_words({ input: { count: counts } }) {
  const times = new Map()
  for (const { words } of counts) {
    for (const [word, n] of Object.entries(words)) times.set(word, (times.get(word) ?? 0) + n)
  }
  return [...times]
    .map(([word, n]) => ({ word, times: n }))
    .sort((a, b) => b.times - a.times || compare(a.word, b.word))
    .slice(0, listed)
}

/** The longest words, each with the first file it is in. */
export async function longest_words({ input: { count: counts } }) {
  const files = new Map()
  for (const { file, words } of counts) {
    for (const word of Object.keys(words)) if (!files.has(word)) files.set(word, file)
  }
  return [...files]
    .map(([word, file]) => ({ word, letters: word.length, file }))
    .sort((a, b) => b.letters - a.letters || compare(a.word, b.word))
    .slice(0, listed)
}

/** Both lists side by side, a line for each rank. */
export async function report({ input: { top_words, longest_words } }) {
  return top_words.map((top, i) => ({
    rank: i + 1,
    top_word: top.word,
    times: top.times,
    longest_word: longest_words[i].word,
    letters: longest_words[i].letters,
    file: longest_words[i].file,
  }))
}

// For show: the first file's first attempt fails, so that a retry is seen.
async function failFirstAttempt({ run_id, step_slug, task_index }, sql) {
  if (task_index > 0) return
  const [{ attempts_count }] = await sql`
    select attempts_count from pgflow.step_tasks
    where run_id = ${run_id} and step_slug = ${step_slug} and task_index = ${task_index}`
  if (attempts_count === 1) throw new Error('fails on purpose')
}

const compare = (a, b) => (a < b ? -1 : a > b ? 1 : 0)
