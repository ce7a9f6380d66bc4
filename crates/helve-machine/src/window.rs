//! Some lines of a file of any size, in the memory of the window and one block.

mod lines;
mod utf16;

use std::ops::Range;
use std::os::fd::OwnedFd;

use bytes::Bytes;
use helve_core::commit::ContentHash;
use helve_core::machine::{Mark, Window, Windowed};
use helve_core::{MachineError, Place};
use rustix::fs::{Advice, SeekFrom, fadvise, seek};
use rustix::io::{Errno, pread};

use self::lines::{Lines, Wants};
use self::utf16::Transcoder;
use crate::errors::failed;
use crate::hop::Stop;
use crate::open;

const BLOCK: usize = 256 * 1024;
/// How much UTF-16 becomes UTF-8 at a time.
const PIECE: usize = 16 * 1024;
const UTF_8_MARK: &[u8] = b"\xEF\xBB\xBF";
const SAMPLE: usize = 8 * 1024;
/// How much is read of a file that does not tell its size, like those in `/proc`.
const MOST_UNSIZED: u64 = 64 * 1024 * 1024;
/// How much is hashed, of a file or else of a window, to tell later whether it changed.
const MOST_HASHED: u64 = 4 * 1024 * 1024;
/// From this size on reading ahead is asked for.
const LARGE: u64 = 1024 * 1024;

pub(crate) fn window(at: &Place, want: Window, stop: &Stop) -> Result<Windowed, MachineError> {
    let (file, stat) = open::file(at)?;
    read(file, u64::try_from(stat.st_size).unwrap_or(0), want, stop)
}

fn read(file: OwnedFd, size: u64, want: Window, stop: &Stop) -> Result<Windowed, MachineError> {
    if size >= LARGE {
        // A hint: a file system that does not take it changes nothing.
        fadvise(&file, 0, None, Advice::Sequential).unwrap_or(());
    }
    let mut blocks = Blocks::new(file, size);
    let windowed = match scan(&mut blocks, Lines::new(want), stop)? {
        Scanned::Done(windowed) => windowed,
        Scanned::OnlyReturns => {
            blocks.rewind()?;
            match scan(&mut blocks, Lines::ended_by_returns(want), stop)? {
                Scanned::Done(windowed) => windowed,
                // A line feed came meanwhile, and went again.
                Scanned::OnlyReturns => return Err(MachineError::Moved),
            }
        }
    };
    let more = windowed.more || blocks.is_cut_off();
    let size = blocks.size();
    let mark = match blocks.hash(0..size) {
        Some(hash) => Mark::Whole(hash),
        None => blocks.hash(windowed.range.clone()).map_or(Mark::Nothing, Mark::Window),
    };
    Ok(Windowed { size, more, mark, ..windowed })
}

enum Scanned {
    Done(Windowed),
    /// The file has carriage returns but not one line feed, so they end its lines.
    OnlyReturns,
}

fn scan(blocks: &mut Blocks, mut lines: Lines, stop: &Stop) -> Result<Scanned, MachineError> {
    let mut sample = Bytes::new();
    let mut transcoder = None;
    let mut mark = 0;
    while let Some(mut block) = blocks.next(stop)? {
        if sample.is_empty() {
            sample = Bytes::copy_from_slice(&block[..block.len().min(SAMPLE)]);
            transcoder = Transcoder::sniff(&sample);
            let unmarked = block.strip_prefix(UTF_8_MARK).unwrap_or(block);
            mark = (block.len() - unmarked.len()) as u64;
            block = unmarked;
        }
        let wants = match &mut transcoder {
            None => lines.feed(block),
            Some(transcoder) => {
                let mut pieces =
                    block.chunks(PIECE).map(|piece| lines.feed(transcoder.feed(piece)));
                pieces.find(|wants| *wants == Wants::Nothing).unwrap_or(Wants::Bytes)
            }
        };
        if wants == Wants::Nothing {
            break;
        }
    }
    if let Some(transcoder) = &mut transcoder {
        lines.feed(transcoder.finish());
    }
    Ok(match lines.finish() {
        Some(windowed) => {
            let range = match transcoder {
                None => windowed.range.start + mark..windowed.range.end + mark,
                // Counted in UTF-8, where the file is not: only the whole is sure.
                Some(_) => 0..blocks.size(),
            };
            Scanned::Done(Windowed { sample, range, ..windowed })
        }
        None => Scanned::OnlyReturns,
    })
}

/// A file read from its start, up to the size it had when it was opened.
struct Blocks {
    file: OwnedFd,
    buffer: Vec<u8>,
    at: u64,
    end: u64,
    /// What the file said when it was opened.
    told: u64,
}

impl Blocks {
    fn new(file: OwnedFd, size: u64) -> Self {
        let end = if size > 0 { size } else { MOST_UNSIZED };
        let block = usize::try_from(end).unwrap_or(BLOCK).min(BLOCK);
        Self { file, buffer: vec![0; block], at: 0, end, told: size }
    }

    /// The next block; only the last is shorter than the others.
    fn next(&mut self, stop: &Stop) -> Result<Option<&[u8]>, MachineError> {
        stop.check()?;
        let room = usize::try_from(self.end - self.at).unwrap_or(BLOCK).min(self.buffer.len());
        let mut filled = 0;
        while filled < room {
            match rustix::io::read(&self.file, &mut self.buffer[filled..room]) {
                Ok(0) => self.end = self.at + filled as u64,
                Ok(count) => filled += count,
                Err(Errno::INTR) => stop.check()?,
                Err(errno) => return Err(failed(errno)),
            }
            if self.end == self.at + filled as u64 {
                break;
            }
        }
        self.at += filled as u64;
        Ok((filled > 0).then(|| &self.buffer[..filled]))
    }

    /// `None` where it is too much to be worth it.
    fn hash(&self, range: Range<u64>) -> Option<ContentHash> {
        let length = range.end.checked_sub(range.start).filter(|length| *length <= MOST_HASHED)?;
        let length = usize::try_from(length).ok()?;
        if range.start == 0 && self.at == range.end && length == self.buffer.len() {
            // The only block, as it was read.
            return Some(ContentHash::of(&self.buffer));
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
        Some(ContentHash::of(&bytes))
    }

    fn rewind(&mut self) -> Result<(), MachineError> {
        seek(&self.file, SeekFrom::Start(0)).map_err(failed)?;
        self.at = 0;
        Ok(())
    }

    /// Whether reading ended at the bound for files without a size.
    fn is_cut_off(&self) -> bool {
        self.told == 0 && self.at == MOST_UNSIZED
    }

    fn size(&self) -> u64 {
        if self.told > 0 { self.told } else { self.at }
    }
}

#[cfg(test)]
mod tests;
