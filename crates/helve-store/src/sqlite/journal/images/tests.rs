//! Tests of packing: unpacking returns the same content or nothing.

use proptest::prelude::*;

use super::*;

fn with_checksum(bytes: &Bytes) -> (PackedImage, blake3::Hash, i64, blake3::Hash) {
    let (packed, hash, length) =
        (PackedImage::of(bytes), blake3::hash(bytes), to_integer(bytes.len()));
    let checksum = packed.checksum(&hash, length);
    (packed, hash, length, checksum)
}

proptest! {
    #[test]
    fn packing_round_trips(
        part in proptest::collection::vec(any::<u8>(), 0..300), times in 0usize..50,
    ) {
        let bytes: Bytes = part.repeat(times).into();
        let (packed, _, length, _) = with_checksum(&bytes);
        prop_assert!(packed.bytes.len() <= bytes.len());
        prop_assert_eq!(packed.unpack(length), Some(bytes));
    }

    #[test]
    fn every_bit_flip_is_detected(text in "[a-e]{1,200}", at in any::<prop::sample::Index>(), bit in 0..8) {
        let (mut packed, hash, length, checksum) = with_checksum(&text.into());
        let mut bytes = packed.bytes.to_vec();
        let at = at.index(bytes.len());
        bytes[at] ^= 1u8 << bit;
        packed.bytes = bytes.into();
        prop_assert_ne!(packed.checksum(&hash, length), checksum);
    }

    #[test]
    fn invalid_data_is_not_unpacked(
        bytes in proptest::collection::vec(any::<u8>(), 0..100), length in any::<i64>(),
    ) {
        let invalid = PackedImage { compression: Compression::Lz4, bytes: bytes.into() };
        let max = i64::try_from((invalid.bytes.len() + 1) * MAX_COMPRESSION_RATIO).unwrap();
        let found = invalid.unpack(length);
        prop_assert!(found.is_none() || (0..=max).contains(&length));
    }
}

#[test]
fn compressions_are_found_by_name() {
    for compression in [Compression::Raw, Compression::Lz4] {
        assert_eq!(Compression::of(compression.name()), Some(compression));
    }
    assert_eq!(Compression::of("zip"), None);
}
