// Words for tests that something is refused.
import { readFile } from 'node:fs/promises'

/** The text of docs/security.md. */
export const page = () => readFile(new URL('../../docs/security.md', import.meta.url), 'utf8')

/** The SQL that docs/security.md tells to run. */
export async function documented() {
  return [...(await page()).matchAll(/^```sql\n(.*?)^```$/gms)].map(([, block]) => block)
}

/** The SQLSTATE of a statement, or 'answered'. */
export async function code(sql, statement) {
  return (await failure(sql, statement))?.code ?? 'answered'
}

/** The error of a statement, if it fails. */
export async function failure(sql, statement) {
  try {
    await sql.unsafe(statement)
    return undefined
  } catch (error) {
    return error
  }
}

const VALUES = {
  text: `'orders'`, jsonb: `'{}'`, integer: '0', uuid: `'00000000-0000-0000-0000-000000000001'`, numeric: '1', bigint: '1',
}
const value = (type) =>
  type.endsWith('[]') ? `array[${VALUES[type.slice(0, -2)]}]::${type}` : `${VALUES[type]}::${type}`

/** A call of every function of pgflow, none of them with NULLs, by name. */
export async function callsOfAll(sql) {
  const functions = await sql`
    select proname as name,
           array(select format_type(t, null) from unnest(proargtypes) with ordinality as a (t, n) order by n) as types
    from pg_proc where pronamespace = 'pgflow'::regnamespace order by proname`
  return new Map(functions.map(({ name, types }) => [name, `select pgflow.${name}(${types.map(value).join(', ')})`]))
}

/** Functions that read and write no table. */
export const TABLELESS = [
  '_compare_flow_shapes', 'calculate_retry_delay', 'is_local', 'is_valid_queue_name', 'is_valid_slug', 'poll_for_tasks',
]

export const TABLES = ['flows', 'steps', 'deps', 'runs', 'step_states', 'step_tasks', 'workers', 'worker_functions']
