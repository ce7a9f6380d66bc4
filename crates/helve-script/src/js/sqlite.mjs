// The module "bun:sqlite": bun's own module, or its commonly used part implemented with `node:sqlite`.
async function load() {
  if (process.versions.bun) return await import("bun:sqlite");
  let sqlite;
  try {
    sqlite = await import("node:sqlite");
  } catch {
    throw new Error(`bun:sqlite needs bun, or node 22.5 and later; this is node ${process.versions.node}`);
  }

  const plain = (row) => (row === undefined ? null : { ...row });
  /** Bun expects parameter names with their prefix; node accepts them with or without it. */
  class Statement {
    constructor(inner) {
      this.inner = inner;
    }
    get(...values) {
      return plain(this.inner.get(...values));
    }
    all(...values) {
      return this.inner.all(...values).map(plain);
    }
    values(...values) {
      return this.all(...values).map(Object.values);
    }
    run(...values) {
      const { changes, lastInsertRowid } = this.inner.run(...values);
      return { changes: Number(changes), lastInsertRowid: Number(lastInsertRowid) };
    }
    *iterate(...values) {
      yield* this.all(...values);
    }
    finalize() {}
  }

  class Database {
    constructor(name = ":memory:", options) {
      const readOnly = typeof options === "object" && Boolean(options.readonly);
      this.filename = name || ":memory:";
      this.inner = new sqlite.DatabaseSync(this.filename, { readOnly });
      this.statements = new Map();
    }
    static open(name, options) {
      return new Database(name, options);
    }
    prepare(sql) {
      return new Statement(this.inner.prepare(sql));
    }
    query(sql) {
      if (!this.statements.has(sql)) this.statements.set(sql, this.prepare(sql));
      return this.statements.get(sql);
    }
    run(sql, ...values) {
      if (values.length === 0) {
        this.inner.exec(sql);
        return { changes: 0, lastInsertRowid: 0 };
      }
      return this.prepare(sql).run(...values.flat());
    }
    exec(sql, ...values) {
      return this.run(sql, ...values);
    }
    transaction(work) {
      const run = (begin) => (...values) => {
        this.inner.exec(begin);
        try {
          const result = work(...values);
          this.inner.exec("COMMIT");
          return result;
        } catch (error) {
          this.inner.exec("ROLLBACK");
          throw error;
        }
      };
      return Object.assign(run("BEGIN"), {
        deferred: run("BEGIN DEFERRED"),
        immediate: run("BEGIN IMMEDIATE"),
        exclusive: run("BEGIN EXCLUSIVE"),
      });
    }
    close() {
      this.inner.close();
    }
    [Symbol.dispose ?? Symbol.for("dispose")]() {
      this.close();
    }
  }
  return { Database, Statement, default: Database };
}

const module = await load();
export const { Database, Statement, constants, SQLiteError } = module;
export default module.default;
