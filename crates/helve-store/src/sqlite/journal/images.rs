//! Images: contents of files, each stored once, in a row or, if it is large, in a separate file.

use std::cell::{Cell, OnceCell};
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use helve_core::journal;
use rusqlite::{Connection, OptionalExtension, Row, params};
use uuid::Uuid;

use super::super::database::{Database, Location};
use super::super::{signed, unsigned};
use super::min_row_number;
use crate::private;

/// An image with more packed bytes than this is stored in a file.
const MIN_FILE_BYTES: usize = 1 << 20;
/// Maximum size of content that is compressed. The compression format has 32-bit lengths.
const MAX_COMPRESSED_INPUT: usize = 1 << 30;
/// The maximum compression ratio of the format. A row that claims a higher ratio is damaged.
const MAX_COMPRESSION_RATIO: usize = 255;

/// File content to be stored as an image.
pub(super) struct NewImage {
    hash: blake3::Hash,
    bytes: Bytes,
    /// An image that may resemble this one.
    base: Option<BaseImage>,
    /// The packed content. Empty until it is needed, because packing is slow and an intact copy may be stored already.
    packed: OnceCell<PackedImage>,
    has_file: Cell<bool>,
}

impl NewImage {
    pub(super) fn of(image: &journal::FileImage) -> Self {
        Self::derived(image, None)
    }

    /// Creates an image that may be stored as the difference from a stored one.
    pub(super) fn derived(image: &journal::FileImage, base: Option<&journal::FileImage>) -> Self {
        let hash = |image: &journal::FileImage| blake3::Hash::from_bytes(image.hash().0);
        let base = base.map(|base| BaseImage { hash: hash(base), bytes: base.bytes.clone() });
        let (hash, bytes) = (hash(image), image.bytes.clone());
        Self { hash, bytes, base, packed: OnceCell::new(), has_file: Cell::new(false) }
    }

    pub(super) fn hash(&self) -> blake3::Hash {
        self.hash
    }

    /// Does the slow work before the transaction: packs the content unless an intact copy is stored.
    pub(super) fn prepare(&self, database: &Database, folder: &Path) -> rusqlite::Result<()> {
        if self.packed.get().is_none() {
            if database.intact_images.borrow().contains(&self.hash) {
                return Ok(());
            }
            if load(&database.main, folder, ImageKey::Hash(&self.hash))?.is_some() {
                database.intact_images.borrow_mut().insert(self.hash);
                return Ok(());
            }
            let difference = self
                .base
                .as_ref()
                .filter(|base| database.intact_images.borrow().contains(&base.hash));
            if let Some(packed) = difference.and_then(|base| base.difference(&self.bytes)) {
                self.packed.set(packed).ok();
            }
        }
        if self.packed().is_large(database) {
            self.write(folder);
        }
        Ok(())
    }

    /// Stores the image unless it is stored already. Returns its row. Call it within a transaction.
    pub(super) fn store(&self, database: &Database, folder: &Path) -> rusqlite::Result<i64> {
        if self.packed.get().is_none()
            && let Some(row) = self.find(&database.main, folder)?
        {
            return Ok(row);
        }
        // If the base of a difference is gone, the whole content is stored instead.
        let (whole, base) = match self.packed().compression {
            Compression::Raw | Compression::Lz4 => (None, None),
            Compression::Difference => match self.base_row(&database.main)? {
                None => (Some(PackedImage::of(&self.bytes)), None),
                row => (None, row),
            },
        };
        let packed = whole.as_ref().unwrap_or_else(|| self.packed());
        // If no file can be created, the content goes into the row, whatever its size.
        let is_in_file = whole.is_none() && packed.is_large(database) && self.ensure_file(folder);
        let row_bytes = (!is_in_file).then_some(&packed.bytes[..]);
        // The columns have the names of an earlier version: `kept` is the packed length, `form` the compression, and
        // `seal` the checksum.
        let mut statement = database.main.prepare_cached(
            "INSERT INTO journal_images (number, hash, length, kept, form, seal, bytes, base)
             VALUES ((SELECT max(coalesce(max(number), 0) + 1, ?7) FROM journal_images),
                 ?1, ?2, ?3, ?4, ?5, ?6, ?8)
             ON CONFLICT (hash) DO UPDATE
                 SET length = ?2, kept = ?3, form = ?4, seal = ?5, bytes = ?6, base = ?8
             RETURNING number",
        )?;
        let (length, packed_length) =
            (to_integer(self.bytes.len()), to_integer(packed.bytes.len()));
        let checksum = packed.checksum(&self.hash, length);
        let (hash, compression) = (self.hash.as_bytes(), packed.compression.name());
        let checksum = checksum.as_bytes();
        // Numbers are never reused, so that an entry whose image was lost does not find the image of another entry.
        let values = params![
            hash,
            length,
            packed_length,
            compression,
            checksum,
            row_bytes,
            min_row_number(),
            base
        ];
        statement.query_row(values, |row| row.get(0))
    }

    /// Returns how many bytes storing the image added to the journal.
    pub(super) fn added_bytes(&self) -> u64 {
        self.packed.get().map_or(0, |packed| u64::try_from(packed.bytes.len()).unwrap_or(u64::MAX))
    }

    fn find(&self, connection: &Connection, folder: &Path) -> rusqlite::Result<Option<i64>> {
        let mut statement = connection
            .prepare_cached("SELECT number, bytes IS NULL FROM journal_images WHERE hash = ?1")?;
        let found = statement.query_row([self.hash.as_bytes()], |row| {
            Ok((row.get::<_, i64>(0)?, row.get::<_, bool>(1)?))
        });
        let exists = |(_, is_file): &(i64, bool)| !is_file || self.path(folder).exists();
        Ok(found.optional()?.filter(exists).map(|(row, _)| row))
    }

    /// Returns the row of the base, if a difference from it may be stored: its own chain of bases is short and does not
    /// lead to this image.
    fn base_row(&self, connection: &Connection) -> rusqlite::Result<Option<i64>> {
        let Some(base) = &self.base else { return Ok(None) };
        // To reach the column `base`, SQLite has to read all of `bytes` before it. So `base` is only read from
        // differences, which are short; other rows have no base.
        let mut by_hash = connection.prepare_cached(
            "SELECT number, hash, CASE WHEN form = 'diff' THEN base END FROM journal_images
             WHERE hash = ?1",
        )?;
        let mut by_row = connection.prepare_cached(
            "SELECT number, hash, CASE WHEN form = 'diff' THEN base END FROM journal_images
             WHERE number = ?1",
        )?;
        let decode = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
        let first = by_hash.query_row([base.hash.as_bytes()], decode).optional()?;
        let Some((first, mut hash, mut next)): Option<(i64, [u8; 32], Option<i64>)> = first else {
            return Ok(None);
        };
        for _ in 0..MAX_CHAIN {
            if hash == *self.hash.as_bytes() {
                return Ok(None);
            }
            let Some(row) = next else { return Ok(Some(first)) };
            let found: Option<(i64, _, _)> = by_row.query_row([row], decode).optional()?;
            let Some((_, next_hash, after)) = found else { return Ok(None) };
            (hash, next) = (next_hash, after);
        }
        Ok(None)
    }

    fn packed(&self) -> &PackedImage {
        self.packed.get_or_init(|| PackedImage::of(&self.bytes))
    }

    /// Writes the file again if another process removed it as unused. Returns whether the file exists.
    fn ensure_file(&self, folder: &Path) -> bool {
        if !(self.has_file.get() && self.path(folder).exists()) {
            self.write(folder);
        }
        self.has_file.get()
    }

    fn write(&self, folder: &Path) {
        let written = write(folder, &self.path(folder), &self.packed().bytes);
        self.has_file.set(written.is_ok());
    }

    fn path(&self, folder: &Path) -> PathBuf {
        image_path(folder, &self.hash)
    }
}

/// An image from which another one may differ only a little.
struct BaseImage {
    hash: blake3::Hash,
    bytes: Bytes,
}

/// Maximum number of differences that have to be applied one after another to load an image.
const MAX_CHAIN: usize = 32;
/// Content shorter than this is stored whole.
const MIN_DIFFERENCE_INPUT: usize = 16 << 10;
/// A difference must be this many times shorter than the content.
const MIN_SAVING: usize = 8;

impl BaseImage {
    /// Returns the difference: the hash of the base, the lengths of the common start and end, and the bytes in between.
    /// Returns `None` if storing the whole content is better.
    fn difference(&self, bytes: &[u8]) -> Option<PackedImage> {
        let start = common_start(&self.bytes, bytes);
        let end = common_end(&self.bytes[start..], &bytes[start..]);
        let middle = &bytes[start..bytes.len() - end];
        if bytes.len() < MIN_DIFFERENCE_INPUT || middle.len() > bytes.len() / MIN_SAVING {
            return None;
        }
        let lengths = [start, end].map(|length| u64::try_from(length).unwrap_or(0).to_le_bytes());
        let bytes = [&self.hash.as_bytes()[..], &lengths[0], &lengths[1], middle].concat();
        Some(PackedImage { compression: Compression::Difference, bytes: bytes.into() })
    }
}

/// Number of bytes compared at a time.
const BLOCK: usize = 4096;

fn common_start(one: &[u8], other: &[u8]) -> usize {
    let blocks = one.chunks(BLOCK).zip(other.chunks(BLOCK)).take_while(|(a, b)| a == b);
    let same: usize = blocks.map(|(block, _)| block.len()).sum();
    same + one[same..].iter().zip(&other[same..]).take_while(|(a, b)| a == b).count()
}

fn common_end(one: &[u8], other: &[u8]) -> usize {
    let blocks = one.rchunks(BLOCK).zip(other.rchunks(BLOCK)).take_while(|(a, b)| a == b);
    let same: usize = blocks.map(|(block, _)| block.len()).sum();
    let (one, other) = (&one[..one.len() - same], &other[..other.len() - same]);
    same + one.iter().rev().zip(other.iter().rev()).take_while(|(a, b)| a == b).count()
}

/// The parts of a stored difference.
struct Difference<'a> {
    base: blake3::Hash,
    start: usize,
    end: usize,
    middle: &'a [u8],
}

impl<'a> Difference<'a> {
    fn decode(stored: &'a [u8]) -> Option<Self> {
        let (base, rest) = stored.split_first_chunk::<32>()?;
        let (start, rest) = rest.split_first_chunk::<8>()?;
        let (end, middle) = rest.split_first_chunk::<8>()?;
        let length = |bytes: &[u8; 8]| usize::try_from(u64::from_le_bytes(*bytes)).ok();
        let base = blake3::Hash::from_bytes(*base);
        Some(Self { base, start: length(start)?, end: length(end)?, middle })
    }

    fn apply(&self, base: &[u8]) -> Option<Bytes> {
        let (start, end) = (base.get(..self.start)?, base.len().checked_sub(self.end)?);
        Some([start, self.middle, &base[end..]].concat().into())
    }
}

/// Content in its stored form.
struct PackedImage {
    compression: Compression,
    bytes: Bytes,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Compression {
    /// The content is stored as it is, because compression would not make it shorter.
    Raw,
    Lz4,
    /// The difference from another image.
    Difference,
}

impl PackedImage {
    fn of(bytes: &Bytes) -> Self {
        if bytes.len() <= MAX_COMPRESSED_INPUT {
            let compressed = lz4_flex::block::compress(bytes);
            if compressed.len() < bytes.len() {
                return Self { compression: Compression::Lz4, bytes: compressed.into() };
            }
        }
        Self { compression: Compression::Raw, bytes: bytes.clone() }
    }

    fn is_large(&self, database: &Database) -> bool {
        match database.location {
            Location::File(_) => self.bytes.len() > MIN_FILE_BYTES,
            Location::Memory => false,
        }
    }

    /// Computes a checksum over everything that is stored, so that damaged data does not reach the decompressor.
    fn checksum(&self, hash: &blake3::Hash, length: i64) -> blake3::Hash {
        let mut hasher = blake3::Hasher::new();
        hasher.update(hash.as_bytes()).update(&length.to_le_bytes());
        hasher.update(self.compression.name().as_bytes()).update(&self.bytes);
        hasher.finalize()
    }

    /// Unpacks content of this length. Returns `None` for a difference, which needs its base.
    fn unpack(self, length: i64) -> Option<Bytes> {
        let length = usize::try_from(length).ok()?;
        match self.compression {
            Compression::Raw => (self.bytes.len() == length).then_some(self.bytes),
            Compression::Lz4 if length / MAX_COMPRESSION_RATIO <= self.bytes.len() => {
                let bytes = lz4_flex::block::decompress(&self.bytes, length).ok()?;
                (bytes.len() == length).then(|| bytes.into())
            }
            Compression::Lz4 | Compression::Difference => None,
        }
    }
}

impl Compression {
    fn name(self) -> &'static str {
        match self {
            Compression::Raw => "raw",
            Compression::Lz4 => "lz4",
            Compression::Difference => "diff",
        }
    }

    fn of(name: &str) -> Option<Self> {
        [Compression::Raw, Compression::Lz4, Compression::Difference]
            .into_iter()
            .find(|compression| compression.name() == name)
    }
}

/// How an image is looked up.
#[derive(Clone, Copy)]
pub(super) enum ImageKey<'a> {
    Row(i64),
    Hash(&'a blake3::Hash),
}

/// Loads the content of an image. Returns `None` if the content is missing or damaged.
pub(super) fn load(
    connection: &Connection,
    folder: &Path,
    key: ImageKey<'_>,
) -> rusqlite::Result<Option<Bytes>> {
    const BY_ROW: &str =
        "SELECT hash, length, kept, form, seal, bytes FROM journal_images WHERE number = ?1";
    const BY_HASH: &str =
        "SELECT hash, length, kept, form, seal, bytes FROM journal_images WHERE hash = ?1";
    let decode = |row: &Row<'_>| Ok(StoredImage::decode(row, folder));
    let find = |key: ImageKey<'_>| {
        let found = match key {
            ImageKey::Row(number) => connection.prepare_cached(BY_ROW)?.query_row([number], decode),
            ImageKey::Hash(hash) => {
                connection.prepare_cached(BY_HASH)?.query_row([hash.as_bytes()], decode)
            }
        };
        Ok::<_, rusqlite::Error>(found.optional()?.flatten())
    };
    let Some(mut image) = find(key)? else { return Ok(None) };
    let (hash, mut differences) = (image.hash, Vec::new());
    while image.packed.compression == Compression::Difference {
        let base = Difference::decode(&image.packed.bytes).map(|difference| difference.base);
        differences.push(image.packed.bytes);
        let base = if differences.len() <= MAX_CHAIN { base } else { None };
        let Some(base) = base else { return Ok(None) };
        match find(ImageKey::Hash(&base))? {
            Some(found) => image = found,
            None => return Ok(None),
        }
    }
    let content = image.packed.unpack(image.length);
    if differences.is_empty() {
        return Ok(content);
    }
    let apply = |base: Bytes, stored: &Bytes| Difference::decode(stored)?.apply(&base);
    let content = content.and_then(|base| differences.iter().rev().try_fold(base, apply));
    Ok(content.filter(|bytes| blake3::hash(bytes) == hash))
}

/// An image as it is stored, with an intact checksum.
struct StoredImage {
    hash: blake3::Hash,
    length: i64,
    packed: PackedImage,
}

impl StoredImage {
    fn decode(row: &Row<'_>, folder: &Path) -> Option<Self> {
        let hash = blake3::Hash::from_bytes(row.get(0).ok()?);
        let (length, packed_length): (i64, i64) = (row.get(1).ok()?, row.get(2).ok()?);
        let compression = Compression::of(&row.get::<_, String>(3).ok()?)?;
        let checksum = blake3::Hash::from_bytes(row.get(4).ok()?);
        let bytes: Bytes = match row.get::<_, Option<Vec<u8>>>(5).ok()? {
            Some(bytes) => bytes.into(),
            None => read(&image_path(folder, &hash), unsigned(packed_length)).ok()?.into(),
        };
        let packed = PackedImage { compression, bytes };
        let is_intact = packed.checksum(&hash, length) == checksum;
        is_intact.then_some(Self { hash, length, packed })
    }
}

/// Removes an image unless an entry or a difference uses it, and then its bases that nothing else uses. Returns the
/// number of bytes freed. Call it within a transaction.
pub(super) fn release(
    connection: &Connection,
    folder: &Path,
    number: i64,
) -> rusqlite::Result<u64> {
    let mut statement = connection.prepare_cached(
        "DELETE FROM journal_images WHERE number = ?1
             AND NOT EXISTS (SELECT 1 FROM journal_files WHERE before = ?1)
             AND NOT EXISTS (SELECT 1 FROM journal_files WHERE after = ?1)
             AND NOT EXISTS (SELECT 1 FROM journal_images WHERE base = ?1)
         RETURNING kept, hash, bytes IS NULL, base",
    )?;
    let (mut next, mut freed) = (Some(number), 0u64);
    while let Some(number) = next {
        let removed = statement.query_row([number], |row| {
            if row.get(2).unwrap_or(false)
                && let Ok(hash) = row.get(1).map(blake3::Hash::from_bytes)
            {
                // No other process can start using the image during the transaction. If the file stays, it is removed
                // later as a stray.
                std::fs::remove_file(image_path(folder, &hash)).ok();
            }
            Ok((unsigned(row.get(0).unwrap_or(0)), row.get(3).unwrap_or(None)))
        });
        let (bytes, base): (u64, Option<i64>) = removed.optional()?.unwrap_or((0, None));
        (freed, next) = (freed.saturating_add(bytes), base);
    }
    Ok(freed)
}

/// Whether a row refers to the file of this name. Call it within a transaction.
pub(super) fn is_needed(connection: &Connection, name: &str) -> rusqlite::Result<bool> {
    let Ok(hash) = blake3::Hash::from_hex(name) else { return Ok(false) };
    let mut statement = connection
        .prepare_cached("SELECT 1 FROM journal_images WHERE hash = ?1 AND bytes IS NULL")?;
    statement.exists([hash.as_bytes()])
}

fn image_path(folder: &Path, hash: &blake3::Hash) -> PathBuf {
    folder.join(&hash.to_hex()[..])
}

/// Writes a file atomically.
fn write(folder: &Path, path: &Path, bytes: &[u8]) -> io::Result<()> {
    let temporary = folder.join(format!("{}.new", Uuid::new_v4().simple()));
    let mut file = match private::create(&temporary) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            private::create_folder(folder)?;
            private::create(&temporary)?
        }
        result => result?,
    };
    let written = file.write_all(bytes).and_then(|()| std::fs::rename(&temporary, path));
    if written.is_err() {
        // If the file stays, it is removed later as a stray.
        std::fs::remove_file(&temporary).ok();
    }
    written
}

/// Reads a file, which must have exactly this length.
fn read(path: &Path, length: u64) -> io::Result<Vec<u8>> {
    let file = File::open(path)?;
    let found = file.metadata()?;
    if !found.is_file() || found.len() != length {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut bytes = Vec::new();
    file.take(length).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn to_integer(bytes: usize) -> i64 {
    signed(u64::try_from(bytes).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests;
