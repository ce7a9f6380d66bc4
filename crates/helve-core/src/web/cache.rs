//! A cache of the pages that the sessions of a workspace fetched recently.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use super::FetchedPage;

/// How long a page is kept.
const MAX_AGE: Duration = Duration::from_secs(15 * 60);
/// Maximum number of pages.
const MAX_PAGES: usize = 32;
/// Maximum size of all bodies together, in bytes.
const MAX_BYTES: usize = 32 << 20;

/// The pages that the sessions of a workspace fetched.
#[derive(Default)]
pub(crate) struct PageCache(Mutex<VecDeque<CachedPage>>);

struct CachedPage {
    key: CacheKey,
    fetched: Instant,
    page: FetchedPage,
}

/// Which request a page answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CacheKey {
    pub(crate) session: Arc<str>,
    pub(crate) url: String,
    pub(crate) accept: &'static str,
}

impl PageCache {
    /// Returns a page, with its age.
    pub(crate) fn get(&self, key: &CacheKey) -> Option<FetchedPage> {
        let mut pages = self.0.lock();
        pages.retain(|page| page.fetched.elapsed() < MAX_AGE);
        let cached = pages.iter().find(|page| page.key == *key)?;
        Some(FetchedPage { age: Some(cached.fetched.elapsed()), ..cached.page.clone() })
    }

    pub(crate) fn put(&self, key: CacheKey, page: &FetchedPage) {
        let mut pages = self.0.lock();
        pages.retain(|page| page.key != key);
        pages.push_back(CachedPage { key, fetched: Instant::now(), page: page.clone() });
        let bytes = |pages: &VecDeque<CachedPage>| -> usize {
            pages.iter().map(|page| page.page.response.body.len()).sum()
        };
        while pages.len() > MAX_PAGES || bytes(&pages) > MAX_BYTES {
            pages.pop_front();
        }
    }
}
