//! Encodes values as bytes for processes of the same build.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use helve_core::process::SpawnError;

use super::MAX_REQUEST_BYTES;

/// Appends byte strings, lists and numbers.
pub(super) struct WireEncoder(Vec<u8>);

impl WireEncoder {
    /// Starts with room for the length.
    pub(super) fn new() -> Self {
        WireEncoder(vec![0; 4])
    }

    /// Returns the bytes with the length in the first four.
    pub(super) fn into_frame(self) -> Result<Vec<u8>, SpawnError> {
        let WireEncoder(mut bytes) = self;
        let length = bytes.len() - 4;
        match u32::try_from(length) {
            Ok(number) if length <= MAX_REQUEST_BYTES => {
                bytes[..4].copy_from_slice(&number.to_le_bytes());
                Ok(bytes)
            }
            Ok(_) | Err(_) => Err(SpawnError::TooLong),
        }
    }

    pub(super) fn flag(&mut self, flag: bool) {
        self.0.push(u8::from(flag));
    }

    /// Appends a count. A count that does not fit into 32 bits exceeds the maximum request size anyway.
    pub(super) fn count(&mut self, count: usize) {
        self.0.extend(u32::try_from(count).unwrap_or(u32::MAX).to_le_bytes());
    }

    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        self.count(bytes.len());
        self.0.extend(bytes);
    }

    pub(super) fn list<T>(&mut self, items: &[T], mut each: impl FnMut(&mut WireEncoder, &T)) {
        self.count(items.len());
        items.iter().for_each(|item| each(self, item));
    }
}

/// Reads what [`WireEncoder`] wrote; returns `None` for anything else.
pub(super) struct WireDecoder<'a>(pub(super) &'a [u8]);

impl WireDecoder<'_> {
    pub(super) fn take(&mut self, count: usize) -> Option<&[u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    pub(super) fn flag(&mut self) -> Option<bool> {
        self.take(1).map(|byte| byte != [0])
    }

    pub(super) fn count(&mut self) -> Option<usize> {
        let bytes = self.take(4)?.try_into().ok()?;
        usize::try_from(u32::from_le_bytes(bytes)).ok()
    }

    pub(super) fn os_string(&mut self) -> Option<OsString> {
        let count = self.count()?;
        self.take(count).map(|bytes| OsString::from_vec(bytes.to_vec()))
    }

    pub(super) fn string(&mut self) -> Option<String> {
        self.os_string()?.into_string().ok()
    }

    pub(super) fn list<T>(
        &mut self,
        mut each: impl FnMut(&mut Self) -> Option<T>,
    ) -> Option<Vec<T>> {
        (0..self.count()?).map(|_| each(self)).collect()
    }
}
