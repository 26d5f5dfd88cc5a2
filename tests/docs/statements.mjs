// The statements of an SQL block, and the output that the page shows for them.

/** Splits a block into { line, sql, shown }.
 *
 *  A statement ends with a line that ends with `;`, outside of $$, or with a psql command such as \gexec; a line that
 *  starts with a backslash is one by itself. Comment lines right below it are its output, as psql prints it. `shown`
 *  is undefined where there are none. Other comments are comments. */
export function statements(text, firstLine) {
  const found = []
  let sql = ''
  let afterStatement = false
  text.split('\n').forEach((line, index) => {
    if (sql === '' && /^--( |-|$)/.test(line)) {
      if (!afterStatement) return
      const last = found.at(-1)
      last.shown = (last.shown === undefined ? '' : last.shown + '\n') + line.replace(/^-- ?/, '')
    } else if (sql === '' && line.trim() === '') {
      afterStatement = false
    } else {
      if (sql === '') found.push({ line: firstLine + index, sql: '', shown: undefined })
      sql += line + '\n'
      found.at(-1).sql = sql
      afterStatement = ends(sql)
      if (afterStatement) sql = ''
    }
  })
  if (sql !== '') throw new Error(`line ${found.at(-1).line}: the statement does not end`)
  return found
}

function ends(sql) {
  const dollars = sql.match(/\$\w*\$/g) ?? []
  if (dollars.length % 2 === 1) return false
  return sql.startsWith('\\') || /(;|\\g\w*.*)\s*(--.*)?\n$/.test(sql)
}
