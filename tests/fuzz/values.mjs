// What the fuzz passes: SQL expressions for each type, drawn with a seeded generator. Same seed, same expressions.

/** Numbers from 0 to 1 (mulberry32). */
function generator(seed) {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296
  }
}

/** A text as an SQL literal. */
export const literal = (text) => `'${text.replaceAll("'", "''")}'`

/** Names that the fuzz knows to exist, at least most of the time. */
export const FLOWS = ['flow_a', 'FlowB', '_c', 'flow_d', 'oddly_routed']
export const STEPS = ['first', 'second', 'each', 'after', 'last']
export const uuid = (pool, n) => `00000000-0000-4000-8000-${pool}${String(n).padStart(8, '0')}`
/** Runs that functions for internal use are called on are a pool of their own: these do only part of a move. */
export const POOLS = { public: '0000', internal: '1111', worker: '2222' }

const HOSTILE_TEXTS = [
  `''`, `' '`, `'run'`, `'a"b'`, `'a''b'`, `'''; drop table pgflow.flows; --'`, `'%s%n%I%L%%'`, `'$1'`, `'{}'`, `'{'`, `'\\'`,
  `'\\u0000'`, `'NULL'`, `'a.b'`, `'q_flow_a'`, `'--'`, `'/*'`, `'é'`, `'İ'`, `'ß'`, `'Ω≈ç√'`, `'🙂'`, `'\u202e'`, `E'\\x01\\x7f'`,
  `E'a\\nb\\tc'`, `repeat('x', 47)`, `repeat('x', 48)`, `repeat('x', 128)`, `repeat('x', 129)`, `repeat('é', 47)`,
  `repeat('%s', 5000)`, `repeat('"', 10000)`, `repeat('x', 1000000)`,
]

const JSON_TEXTS = [
  'null', 'true', '0', '-0', '1.10', '12345678901234567890.123', '1e400', '1e-400', '""', '"a"', '"%s"', '"\\ud83d\\ude42"',
  '[]', '[[]]', '[null]', '[1, 2, 3]', '["a", {"b": [true]}]', '{}', '{"": ""}', '{"first": 1}', '{"a": {"b": {"c": null}}}',
  '{"steps": []}', '{"steps": null}', '{"steps": {}}', '{"steps": [null]}', '{"steps": [[]]}', '{"steps": [{"slug": null}]}',
  '{"steps": [{"slug": "first"}]}', '{"steps": [{"slug": "first"}, {"slug": "first"}]}', '{"steps": [{"slug": "run"}]}',
  '{"steps": [{"slug": "a", "dependencies": ["a"]}]}', '{"steps": [{"slug": "a", "stepType": "%s"}]}',
  '{"steps": [{"slug": "a", "stepType": "map", "dependencies": ["b", "c"]}]}', '{"steps": [{"slug": "a\\"b"}]}',
  '{"steps": [{"slug": "a"}, {"slug": "b", "stepType": "map", "dependencies": ["a", "a"]}]}',
  '{"steps": [{"slug": "a", "requiredInputPattern": {"defined": true}}]}',
  '{"steps": [{"slug": "a", "requiredInputPattern": {"defined": false, "value": 1}}]}',
  '{"steps": [{"slug": "a", "forbiddenInputPattern": {"defined": true, "value": {"x": [1]}}, "whenUnmet": "fail"}]}',
  '{"steps": [{"slug": "a", "requiredInputPattern": "x"}]}', '{"steps": [{"slug": "a", "options": {"timeout": 1e9}}]}',
  '{"steps": [{"slug": "a", "options": {"maxAttempts": 2147483648}}], "options": {"baseDelay": -1}}',
  '{"options": {"maxAttempts": 1.5}}', '{"steps": [{"slug": "a", "options": []}]}',
]

const JSON_EXPRESSIONS = [
  `to_jsonb(repeat('x', 1000000))`, `to_jsonb(repeat('%s', 1000))`,
  `(repeat('[', 500) || repeat(']', 500))::jsonb`, `(repeat('[', 5000) || repeat(']', 5000))::jsonb`,
  `(repeat('{"a":', 2000) || '1' || repeat('}', 2000))::jsonb`,
  `(select jsonb_agg(i) from generate_series(1, 200) i)`,
  `(select jsonb_object_agg('k' || i, repeat('v', 100)) from generate_series(1, 2000) i)`,
  `(select jsonb_build_object('steps', jsonb_agg(jsonb_build_object('slug', 's' || i))) from generate_series(1, 60) i)`,
  `jsonb_build_object('steps', jsonb_build_array(jsonb_build_object('slug', 'a', 'requiredInputPattern',
     jsonb_build_object('defined', true, 'value', (repeat('[', 1500) || repeat(']', 1500))::jsonb))))`,
  `'"\\u0000"'`, // PostgreSQL refuses it before any function sees it
]

const INTEGERS = ['0', '1', '2', '3', '10', '60', '-1', '2147483647', '-2147483648', '2147483646', '47', '1000000']
const BIGINTS = ['0', '-1', '9223372036854775807', '-9223372036854775808', '9007199254740993', '2147483648']
const NUMERICS = [
  '0', '1', '5', '-1', '0.5', `'NaN'`, `'Infinity'`, `'-Infinity'`, '1e131071', '-1e131071', '1e-16383', '12345678901234567890.5',
]

/** Draws SQL expressions. `internal` draws run ids from the pool of their own. */
export class Values {
  /** The first run of both pools that is still of interest. */
  oldest = 0

  constructor(seed) {
    this.random = generator(seed)
  }

  chance(probability) {
    return this.random() < probability
  }

  one(list) {
    return list[Math.floor(this.random() * list.length)]
  }

  upTo(n) {
    return Math.floor(this.random() * (n + 1))
  }

  /** An expression for an argument of this type and name. */
  of(type, name, internal) {
    if (this.chance(0.06)) return `null::${type}`
    if (type.endsWith('[]')) return this.array(type.slice(0, -2), name, internal)
    return `(${this.scalar(type, name, internal)})::${type}`
  }

  scalar(type, name, internal) {
    switch (type) {
      case 'text': return this.text(name)
      case 'jsonb': return this.json()
      case 'integer': return this.chance(0.6) ? String(this.upTo(4)) : this.one(INTEGERS)
      case 'bigint': return this.chance(0.8) ? String(1 + this.upTo(60 + 4 * this.oldest)) : this.one(BIGINTS)
      case 'numeric': return this.one(NUMERICS)
      case 'uuid': return this.uuid(name, internal)
      default: throw new Error(`the fuzz has no values of type ${type}: add some to values.mjs`)
    }
  }

  array(type, name, internal) {
    const odd = this.random()
    const one = () => (this.chance(0.05) ? 'null' : this.scalar(type, name, internal))
    if (odd < 0.08) return `'{}'::${type}[]`
    if (odd < 0.12) return `array_fill((${one()})::${type}, array[2, 2])`
    if (odd < 0.16) return `array_fill((${one()})::${type}, array[3], array[-5])`
    if (odd < 0.19) return `array_fill(null::${type}, array[5000])`
    return `array[${Array.from({ length: this.chance(0.6) ? 2 : 1 + this.upTo(4) }, one).join(', ')}]::${type}[]`
  }

  text(name) {
    if (this.chance(0.3)) return this.one(HOSTILE_TEXTS)
    if (name === 'step_type') return this.one([`'single'`, `'map'`, `'SINGLE'`])
    if (name.startsWith('when_')) return this.one([`'skip'`, `'fail'`, `'skip-cascade'`, `'none'`])
    if (name === 'start_mode') return this.one([`'http'`, `'process'`])
    if (name.includes('interval')) return this.one([`'15 seconds'`, `'* * * * *'`])
    const known = this.one(/step|dep/.test(name) ? STEPS : FLOWS)
    if (this.chance(0.1)) return literal(known.toUpperCase())
    return literal(name === 'queue_name' ? known.toLowerCase() : known)
  }

  json() {
    if (this.chance(0.5)) return this.one([`'{"a": 1}'`, `'[1, 2, 3]'`, `'[]'`, `'{"ok": true}'`])
    return this.chance(0.75) ? literal(this.one(JSON_TEXTS)) : this.one(JSON_EXPRESSIONS)
  }

  uuid(name, internal) {
    if (name === 'worker_id') return literal(uuid(POOLS.worker, this.upTo(3)))
    return literal(uuid(internal ? POOLS.internal : POOLS.public, this.oldest + this.upTo(12)))
  }
}
