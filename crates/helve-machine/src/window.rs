//! Reads some lines of a file of any size, holding only the window and one block in memory.

mod lines;
mod utf16;

use std::ops::Range;
use std::os::fd::OwnedFd;

use bytes::Bytes;
use helve_core::commit::ContentHash;
use helve_core::machine::{ContentFingerprint, WindowLines, WindowRequest};
use helve_core::{MachineError, Place};
use memchr::memchr_iter;
use rustix::fs::{Advice, SeekFrom, fadvise, seek};
use rustix::io::{Errno, pread};

use self::lines::{LineWindow, WindowStatus};
use self::utf16::Transcoder;
use crate::blocking::Cancellation;
use crate::errors::machine_error;
use crate::open;

const BLOCK_BYTES: usize = 256 * 1024;
/// How many bytes of UTF-16 are converted to UTF-8 at a time.
const TRANSCODE_BYTES: usize = 16 * 1024;
const UTF_8_BOM: &[u8] = b"\xEF\xBB\xBF";
/// How many bytes at the start of a file are used to detect its encoding.
const SAMPLE_BYTES: usize = 8 * 1024;
/// Maximum number of bytes read from a file that does not report its size, like those in `/proc`.
const MAX_UNSIZED_BYTES: u64 = 64 * 1024 * 1024;
/// Maximum number of bytes hashed to detect later changes. If the whole file is larger, only the window is hashed.
const MAX_HASHED_BYTES: u64 = 4 * 1024 * 1024;
/// Maximum number of bytes after the window in which lines are counted.
const MAX_COUNTED_BYTES: u64 = 8 * 1024 * 1024;
/// Minimum file size for which read-ahead is requested.
const READ_AHEAD_MIN_BYTES: u64 = 1024 * 1024;

pub(crate) fn window(
    at: &Place,
    request: WindowRequest,
    cancellation: &Cancellation,
) -> Result<WindowLines, MachineError> {
    let (file, stat) = open::file(at)?;
    read(file, u64::try_from(stat.st_size).unwrap_or(0), request, cancellation)
}

fn read(
    file: OwnedFd,
    size: u64,
    request: WindowRequest,
    cancellation: &Cancellation,
) -> Result<WindowLines, MachineError> {
    if size >= READ_AHEAD_MIN_BYTES {
        // Only a hint: it does not matter if the file system rejects it.
        fadvise(&file, 0, None, Advice::Sequential).unwrap_or(());
    }
    let mut blocks = BlockReader::new(file, size);
    let (window_lines, terminator) =
        match scan(&mut blocks, LineWindow::new(request), cancellation)? {
            Some(window_lines) => (window_lines, b'\n'),
            None => {
                blocks.rewind()?;
                match scan(&mut blocks, LineWindow::with_carriage_returns(request), cancellation)? {
                    Some(window_lines) => (window_lines, b'\r'),
                    // The file changed between the two scans.
                    None => return Err(MachineError::PathChanged),
                }
            }
        };
    let has_more = window_lines.has_more || blocks.is_cut_off();
    let size = blocks.size();
    let later_lines = match has_more {
        true => blocks.count_lines(window_lines.range.end, terminator, cancellation),
        false => Some(0),
    };
    let whole = blocks.content(0..size);
    let fingerprint = match &whole {
        Some(bytes) => ContentFingerprint::Whole(ContentHash::of(bytes)),
        None => match blocks.content(window_lines.range.clone()) {
            Some(bytes) => ContentFingerprint::Window(ContentHash::of(&bytes)),
            None => ContentFingerprint::Nothing,
        },
    };
    Ok(WindowLines { size, has_more, later_lines, fingerprint, whole, ..window_lines })
}

/// Reads the window; `None` if the file has carriage returns but no line feed, so that carriage returns end its lines.
fn scan(
    blocks: &mut BlockReader,
    mut lines: LineWindow,
    cancellation: &Cancellation,
) -> Result<Option<WindowLines>, MachineError> {
    let mut sample = Bytes::new();
    let mut transcoder = None;
    let mut bom_bytes = 0;
    while let Some(mut block) = blocks.next(cancellation)? {
        if sample.is_empty() {
            sample = Bytes::copy_from_slice(&block[..block.len().min(SAMPLE_BYTES)]);
            transcoder = Transcoder::sniff(&sample);
            let without_bom = block.strip_prefix(UTF_8_BOM).unwrap_or(block);
            bom_bytes = (block.len() - without_bom.len()) as u64;
            block = without_bom;
        }
        let feed = match &mut transcoder {
            None => lines.feed(block),
            Some(transcoder) => {
                let mut pieces =
                    block.chunks(TRANSCODE_BYTES).map(|piece| lines.feed(transcoder.feed(piece)));
                pieces.find(|feed| *feed == WindowStatus::Done).unwrap_or(WindowStatus::NeedsMore)
            }
        };
        if feed == WindowStatus::Done {
            break;
        }
    }
    if let Some(transcoder) = &mut transcoder {
        lines.feed(transcoder.finish());
    }
    let Some(window_lines) = lines.finish() else { return Ok(None) };
    let range = match transcoder {
        None => window_lines.range.start + bom_bytes..window_lines.range.end + bom_bytes,
        // The range was counted in bytes of the UTF-8 text, not of the file. Use the range of the whole file instead.
        Some(_) => 0..blocks.size(),
    };
    Ok(Some(WindowLines { sample, range, ..window_lines }))
}

/// Reads a file block by block, up to the size it had when it was opened.
struct BlockReader {
    file: OwnedFd,
    buffer: Vec<u8>,
    at: u64,
    end: u64,
    /// The size reported when the file was opened; 0 if unknown.
    reported_size: u64,
}

impl BlockReader {
    fn new(file: OwnedFd, size: u64) -> Self {
        let end = if size > 0 { size } else { MAX_UNSIZED_BYTES };
        let block = usize::try_from(end).unwrap_or(BLOCK_BYTES).min(BLOCK_BYTES);
        Self { file, buffer: vec![0; block], at: 0, end, reported_size: size }
    }

    /// Returns the next block; only the last one may be shorter than the buffer.
    fn next(&mut self, cancellation: &Cancellation) -> Result<Option<&[u8]>, MachineError> {
        cancellation.check()?;
        let length =
            usize::try_from(self.end - self.at).unwrap_or(BLOCK_BYTES).min(self.buffer.len());
        let mut filled = 0;
        while filled < length {
            match rustix::io::read(&self.file, &mut self.buffer[filled..length]) {
                Ok(0) => self.end = self.at + filled as u64,
                Ok(count) => filled += count,
                Err(Errno::INTR) => cancellation.check()?,
                Err(errno) => return Err(machine_error(errno)),
            }
            if self.end == self.at + filled as u64 {
                break;
            }
        }
        self.at += filled as u64;
        Ok((filled > 0).then(|| &self.buffer[..filled]))
    }

    /// Returns a range of the file, to hash it; `None` if it is too long or cannot be read. [`BlockReader::next`] must
    /// not be called afterwards: if the buffer holds the whole range, the buffer itself is returned.
    fn content(&mut self, range: Range<u64>) -> Option<Bytes> {
        let length =
            range.end.checked_sub(range.start).filter(|length| *length <= MAX_HASHED_BYTES)?;
        let length = usize::try_from(length).ok()?;
        if range.start == 0 && self.at == range.end && length == self.buffer.len() {
            // The buffer still holds the only block.
            return Some(std::mem::take(&mut self.buffer).into());
        }
        let (mut bytes, mut filled) = (vec![0; length], 0);
        while filled < length {
            match pread(&self.file, &mut bytes[filled..], range.start + filled as u64) {
                Ok(0) => return None,
                Ok(count) => filled += count,
                Err(Errno::INTR) => {}
                Err(_) => return None,
            }
        }
        Some(bytes.into())
    }

    /// Counts the lines from a position to the end of the file, where the caller knows that there are some. Returns
    /// `None` if the rest of the file is too long or cannot be read.
    fn count_lines(&self, from: u64, terminator: u8, cancellation: &Cancellation) -> Option<u64> {
        let length = self.reported_size.checked_sub(from).filter(|it| *it <= MAX_COUNTED_BYTES)?;
        // If nothing seems to be left, the caller does not know the real position: the file is UTF-16, or was cut off.
        if length == 0 {
            return None;
        }
        let mut buffer = vec![0; BLOCK_BYTES];
        let (mut at, mut lines, mut last) = (from, 0, terminator);
        while at < self.reported_size {
            cancellation.check().ok()?;
            let wanted = usize::try_from(self.reported_size - at).unwrap_or(BLOCK_BYTES);
            let wanted = wanted.min(BLOCK_BYTES);
            let count = match pread(&self.file, &mut buffer[..wanted], at) {
                Ok(0) => return None,
                Ok(count) => count,
                Err(Errno::INTR) => continue,
                Err(_) => return None,
            };
            let block = &buffer[..count];
            lines += memchr_iter(terminator, block).count() as u64;
            last = block.last().copied().unwrap_or(terminator);
            at += count as u64;
        }
        Some(lines + u64::from(last != terminator))
    }

    fn rewind(&mut self) -> Result<(), MachineError> {
        seek(&self.file, SeekFrom::Start(0)).map_err(machine_error)?;
        self.at = 0;
        Ok(())
    }

    /// Whether reading stopped at the limit for files without a size.
    fn is_cut_off(&self) -> bool {
        self.reported_size == 0 && self.at == MAX_UNSIZED_BYTES
    }

    fn size(&self) -> u64 {
        if self.reported_size > 0 { self.reported_size } else { self.at }
    }
}

#[cfg(test)]
mod tests;
