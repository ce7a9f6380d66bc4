//! Token and cost records of the requests that sessions sent to models.

use std::path::Path;

use helve_core::transcript::{ModelTotals, RequestRecord, TokenCounts};
use rusqlite::params;

use super::database::Database;
use super::{signed, unsigned};

/// Stores what a request used.
pub(crate) fn record(
    database: &Database,
    session: &str,
    request: &RequestRecord,
) -> rusqlite::Result<()> {
    let TokenCounts { input, cache_read, cache_write, output, reasoning } = request.tokens;
    let mut statement = database.main.prepare_cached(
        "INSERT INTO transcript_requests (session, at, ms, provider, model, input, cache_read, cache_write, output,
         reasoning, estimated, cost) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
    )?;
    let values = params![
        session,
        signed(request.at),
        signed(request.milliseconds),
        request.provider,
        request.model,
        signed(input),
        signed(cache_read),
        signed(cache_write),
        signed(output),
        signed(reasoning),
        request.is_estimated,
        request.cost,
    ];
    statement.execute(values).map(drop)
}

/// Adds up the requests of a session, or of all sessions of a folder, by session and model.
pub(crate) fn totals(
    database: &Database,
    session: Option<&str>,
    root: Option<&Path>,
) -> rusqlite::Result<Vec<ModelTotals>> {
    let mut statement = database.main.prepare(
        "SELECT session, provider, model, count(*), sum(input), sum(cache_read), sum(cache_write), sum(output),
         sum(reasoning), sum(estimated), total(cost), sum(cost IS NULL), sum(ms)
         FROM transcript_requests
         WHERE (?1 IS NULL OR session = ?1)
         AND (?2 IS NULL OR session IN (SELECT session FROM transcripts WHERE root = ?2))
         GROUP BY session, provider, model ORDER BY session, provider, model",
    )?;
    let root = root.map(|root| root.as_os_str().as_encoded_bytes());
    let totals = statement.query_map(params![session, root], |row| {
        let number = |index: usize| row.get(index).map(unsigned);
        Ok(ModelTotals {
            session: row.get(0)?,
            provider: row.get(1)?,
            model: row.get(2)?,
            requests: number(3)?,
            tokens: TokenCounts {
                input: number(4)?,
                cache_read: number(5)?,
                cache_write: number(6)?,
                output: number(7)?,
                reasoning: number(8)?,
            },
            estimated: number(9)?,
            cost: row.get(10)?,
            unpriced: number(11)?,
            milliseconds: number(12)?,
        })
    })?;
    totals.collect()
}
