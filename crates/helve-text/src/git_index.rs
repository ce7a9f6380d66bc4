//! Reads the git index: tracked files, submodules, and folders that a sparse index lists without their files.

/// The entries of an index, as paths relative to the working tree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GitIndex {
    /// Tracked files and links. If the index is split, entries that are only in the shared index are missing, and some
    /// of the others have an empty name.
    pub files: Vec<Vec<u8>>,
    /// Folders that are repositories of their own.
    pub submodules: Vec<Vec<u8>>,
    /// Folders of a sparse index whose files are not listed.
    pub collapsed: Vec<Vec<u8>>,
    /// Name of the file next to the index that holds the other entries of a split index.
    pub shared_index: Option<String>,
}

/// The hash that names the objects of a repository.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HashAlgorithm {
    Sha1,
    Sha256,
}

/// Returns the entries of an index, or `None` if git would refuse the index or might read it differently.
pub fn read(bytes: &[u8], algorithm: HashAlgorithm) -> Option<GitIndex> {
    let hash_bytes = match algorithm {
        HashAlgorithm::Sha1 => 20,
        HashAlgorithm::Sha256 => 32,
    };
    IndexReader { bytes, hash_bytes }.read()
}

/// Length of the header: signature, version, number of entries.
const HEADER_BYTES: usize = 12;
/// Length of the metadata before the hash of an entry.
const STAT_BYTES: usize = 40;
/// Offset of the mode in an entry.
const MODE_OFFSET: usize = 24;

/// Flag of an entry: a second word of flags follows.
const EXTENDED: u16 = 0x4000;
/// Mask for the length of the name in the flags of an entry.
const NAME_LENGTH: u16 = 0x0fff;

/// Mask for the file type in a mode.
const TYPE_MASK: u32 = 0o170_000;
const GITLINK: u32 = 0o160_000;
const DIRECTORY: u32 = 0o040_000;

/// Reads the bytes of an index. `hash_bytes` is the length of an object hash.
struct IndexReader<'b> {
    bytes: &'b [u8],
    hash_bytes: usize,
}

impl IndexReader<'_> {
    fn read(&self) -> Option<GitIndex> {
        let version = self.u32_at(4)?;
        if self.bytes.get(..4)? != b"DIRC" || !(2..=4).contains(&version) {
            return None;
        }
        let mut index = GitIndex::default();
        // The offsets of entries whose name does not depend on the entry before. Only these can start a block.
        let mut block_starts = Vec::new();
        let mut name: Vec<u8> = Vec::new();
        let mut at = HEADER_BYTES;
        for _ in 0..self.u32_at(8)? {
            let kind = self.u32_at(at + MODE_OFFSET)? & TYPE_MASK;
            let flags = self.u16_at(at + STAT_BYTES + self.hash_bytes)?;
            let extended_bytes = if flags & EXTENDED == 0 { 0 } else { 2 };
            let mut start = at + STAT_BYTES + self.hash_bytes + 2 + extended_bytes;
            // Version 4 omits the prefix that a name shares with the previous name.
            let dropped = if version == 4 {
                let (dropped, length) = varint(self.bytes.get(start..)?)?;
                start += length;
                dropped
            } else {
                name.len()
            };
            name.truncate(name.len().checked_sub(dropped)?);
            if name.is_empty() {
                block_starts.push(at);
            }
            let rest = self.bytes.get(start..)?;
            let length = match flags & NAME_LENGTH {
                NAME_LENGTH => rest.iter().position(|byte| *byte == 0)?,
                length => usize::from(length).checked_sub(name.len())?,
            };
            name.extend(rest.get(..length)?);
            match kind {
                GITLINK => index.submodules.push(name.clone()),
                DIRECTORY => index.collapsed.push(name.clone()),
                _ => index.files.push(name.clone()),
            }
            at = match version {
                4 => start + length + 1,
                // Entries are padded with zeros to a multiple of eight bytes.
                _ => at + ((start - at + length) / 8 + 1) * 8,
            };
        }
        self.read_extensions(at, &block_starts, &mut index)?;
        // In a split index, an entry for a file may have no name. Its name is in the shared index.
        let is_named =
            |names: &[Vec<u8>]| names.iter().all(|name| !name.is_empty() && !name.contains(&0));
        (is_named(&index.submodules) && is_named(&index.collapsed)).then_some(index)
    }

    /// Reads the extensions between the entries and the trailing hash.
    fn read_extensions(
        &self,
        from: usize,
        block_starts: &[usize],
        index: &mut GitIndex,
    ) -> Option<()> {
        let end = self.bytes.len().checked_sub(self.hash_bytes)?;
        // Git trusts the offset that an `EOIE` extension gives.
        let end_of_entries =
            end.checked_sub(8 + 4 + self.hash_bytes).filter(|at| self.tag(*at) == Some(b"EOIE"));
        if end_of_entries.is_some_and(|at| self.u32_at(at + 8) != u32::try_from(from).ok()) {
            return None;
        }
        let mut at = from;
        while at + 8 <= end {
            let size = usize::try_from(self.u32_at(at + 4)?).ok()?;
            let inside = self.bytes.get(at + 8..at + 8 + size)?;
            match self.tag(at)? {
                b"link" => {
                    index.shared_index =
                        Some(format!("sharedindex.{}", hex(inside.get(..self.hash_bytes)?)))
                }
                // Git may read the entries in parallel, in the blocks that this table lists.
                b"IEOT" => {
                    let block_start = |block: &[u8]| {
                        let offset: [u8; 4] = block.get(..4)?.try_into().ok()?;
                        usize::try_from(u32::from_be_bytes(offset)).ok()
                    };
                    let starts_block = |block| {
                        block_start(block).is_some_and(|at| block_starts.binary_search(&at).is_ok())
                    };
                    inside.get(4..)?.chunks(8).all(starts_block).then_some(())?;
                }
                _ => {}
            }
            at += 8 + size;
        }
        Some(())
    }

    fn tag(&self, at: usize) -> Option<&[u8; 4]> {
        self.bytes.get(at..at + 4)?.try_into().ok()
    }

    fn u32_at(&self, at: usize) -> Option<u32> {
        self.tag(at).map(|bytes| u32::from_be_bytes(*bytes))
    }

    fn u16_at(&self, at: usize) -> Option<u16> {
        Some(u16::from_be_bytes(self.bytes.get(at..at + 2)?.try_into().ok()?))
    }
}

/// Decodes a variable-length number. Returns the number and its length in bytes.
fn varint(bytes: &[u8]) -> Option<(usize, usize)> {
    let mut value = 0_usize;
    for (at, byte) in bytes.iter().enumerate().take(8) {
        value = (value << 7) | usize::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            return Some((value, at + 1));
        }
        value += 1;
    }
    None
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const HASH: usize = 20;
    const FILE: u32 = 0o100_644;

    /// An entry: its mode, the number of bytes dropped from the previous name, and the rest of the name.
    type TestEntry = (u32, u8, &'static str);

    /// Builds an index file.
    fn index(version: u8, entries: &[TestEntry], extensions: &[(&[u8; 4], Vec<u8>)]) -> Vec<u8> {
        let mut bytes = [b"DIRC\0\0\0", &[version][..], &[0, 0, 0, entries.len() as u8]].concat();
        let mut name = String::new();
        for (mode, dropped, suffix) in entries {
            let shared = if version == 4 { name.len() - usize::from(*dropped) } else { 0 };
            name = format!("{}{suffix}", &name[..shared]);
            let start = bytes.len();
            bytes.extend([0; MODE_OFFSET]);
            bytes.extend(mode.to_be_bytes());
            bytes.extend([0; STAT_BYTES - MODE_OFFSET - 4 + HASH]);
            bytes.extend((name.len() as u16).to_be_bytes());
            bytes.extend(Some(*dropped).filter(|_| version == 4));
            bytes.extend(suffix.as_bytes());
            let length = bytes.len() - start;
            bytes.resize(start + if version == 4 { length + 1 } else { (length / 8 + 1) * 8 }, 0);
        }
        for (tag, inside) in extensions {
            bytes.extend(*tag);
            bytes.extend((inside.len() as u32).to_be_bytes());
            bytes.extend(inside);
        }
        bytes.extend([0; HASH]);
        bytes
    }

    /// Compares the entries, rendered as `FILES|SUBMODULES|COLLAPSED FOLDERS|SHARED INDEX`.
    #[track_caller]
    fn check(bytes: &[u8], expected: Option<&str>) {
        let shown = read(bytes, HashAlgorithm::Sha1).map(|index| {
            let text = |names: &[Vec<u8>]| String::from_utf8_lossy(&names.join(&b' ')).into_owned();
            let shared = index.shared_index.unwrap_or_default();
            format!(
                "{}|{}|{}|{}",
                text(&index.files),
                text(&index.submodules),
                text(&index.collapsed),
                &shared[..shared.len().min(16)]
            )
        });
        assert_eq!(shown.as_deref(), expected);
    }

    #[test]
    fn special_folders_are_found() {
        let entries =
            [(FILE, 0, "a"), (GITLINK, 1, "lib/one"), (GITLINK, 3, "two"), (DIRECTORY, 3, "x/")];
        check(&index(4, &entries, &[]), Some("a|lib/one lib/two|lib/x/|"));
        check(&index(2, &entries, &[]), Some("a|lib/one two|x/|"));
        check(&index(3, &[], &[]), Some("|||"));
        let link = (b"link", vec![0xab; HASH]);
        check(
            &index(2, &entries, &[(b"TREE", vec![1]), link]),
            Some("a|lib/one two|x/|sharedindex.abab"),
        );
    }

    #[test]
    fn ambiguous_and_broken_indexes_are_refused() {
        let entries = [(FILE, 0, "dir/a"), (GITLINK, 1, "sub")];
        let second = HEADER_BYTES + STAT_BYTES + HASH + 2 + 1 + 5 + 1;
        let block_table = |at: usize| vec![0, 0, 0, 1, 0, 0, 0, at as u8, 0, 0, 0, 1];
        check(
            &index(4, &entries, &[(b"IEOT", block_table(HEADER_BYTES))]),
            Some("dir/a|dir/sub||"),
        );
        check(&index(4, &entries, &[(b"IEOT", block_table(second))]), None);
        check(
            &index(2, &entries, &[(b"IEOT", block_table(HEADER_BYTES + 72))]),
            Some("dir/a|sub||"),
        );
        check(&index(2, &entries, &[(b"IEOT", block_table(HEADER_BYTES + 8))]), None);
        check(&index(2, &entries, &[(b"EOIE", vec![0; 4 + HASH])]), None);
        check(&index(2, &[(GITLINK, 0, "")], &[]), None);
        check(&index(5, &entries, &[]), None);
        check(&index(2, &entries, &[])[..60], None);
        check(b"", None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_panic(
            algorithm in prop::sample::select(vec![HashAlgorithm::Sha1, HashAlgorithm::Sha256]),
            version in 2_u8..5,
            bytes in prop::collection::vec(any::<u8>(), 0..300),
        ) {
            read(&[b"DIRC\0\0\0", &[version, 0, 0, 0, 3][..], &bytes].concat(), algorithm);
        }
    }
}
