//! Samples of clauses that were said lately.

use std::collections::BTreeMap;
use std::sync::Arc;

/// Keeps the clauses used last, up to a number of samples.
#[derive(Debug)]
pub(super) struct Cache {
    limit: usize,
    held: usize,
    uses: u64,
    clauses: BTreeMap<String, (u64, Arc<[i16]>)>,
}

impl Cache {
    pub(super) fn new(limit: usize) -> Self {
        Self { limit, held: 0, uses: 0, clauses: BTreeMap::new() }
    }

    pub(super) fn get(&mut self, text: &str) -> Option<Arc<[i16]>> {
        self.uses += 1;
        let (used, samples) = self.clauses.get_mut(text)?;
        *used = self.uses;
        Some(samples.clone())
    }

    /// Keeps a clause and lets go of those that were not used for the longest. One that is longer than a quarter of
    /// the limit is not kept: it would push out all the short ones that are really said again.
    pub(super) fn put(&mut self, text: &str, samples: &Arc<[i16]>) {
        if samples.len() > self.limit / 4 {
            return;
        }
        self.uses += 1;
        self.held += samples.len();
        if let Some((_, old)) = self.clauses.insert(text.to_owned(), (self.uses, samples.clone())) {
            self.held -= old.len();
        }
        while self.held > self.limit {
            let Some(oldest) =
                self.clauses.iter().min_by_key(|(_, (used, _))| *used).map(|(text, _)| text.clone())
            else {
                return;
            };
            if let Some((_, gone)) = self.clauses.remove(&oldest) {
                self.held -= gone.len();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clause_not_used_for_longest_goes_first() {
        let mut cache = Cache::new(8);
        let samples: Arc<[i16]> = vec![1, 2].into();
        for text in ["a", "b", "c", "d"] {
            cache.put(text, &samples);
        }
        assert!(cache.get("a").is_some());
        cache.put("e", &samples);
        assert!(cache.get("b").is_none());
        assert!(cache.get("a").is_some());
        assert_eq!(cache.held, 8);
    }

    #[test]
    fn a_clause_too_long_for_the_cache_is_not_kept() {
        let mut cache = Cache::new(8);
        cache.put("long", &vec![0; 3].into());
        assert!(cache.get("long").is_none());
    }
}
