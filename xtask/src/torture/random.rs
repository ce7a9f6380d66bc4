//! Choices that a seed repeats.

/// Marsaglia's xorshift; good enough to pick moments.
pub(super) struct Random(u64);

impl Random {
    /// `stream` tells apart the choices of threads that share a seed.
    pub(super) fn new(seed: u64, stream: u64) -> Random {
        let mixed = seed.wrapping_add(stream.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
        Random(mixed.max(1))
    }

    /// Below `bound`, or 0.
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.checked_rem(bound).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choices(seed: u64, stream: u64) -> Vec<u64> {
        let mut random = Random::new(seed, stream);
        (0..8).map(|_| random.below(1000)).collect()
    }

    #[test]
    fn a_seed_repeats_and_streams_differ() {
        assert_eq!(choices(7, 0), choices(7, 0));
        assert_ne!(choices(7, 0), choices(7, 1));
        assert_eq!(Random::new(0, u64::MAX).below(0), 0);
    }
}
