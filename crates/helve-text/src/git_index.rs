//! A git index, as far as it tells which folders git works in besides.

/// What an index says of folders, by their paths beneath the working tree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Folders {
    /// Those that are repositories of their own.
    pub linked: Vec<Vec<u8>>,
    /// Those whose files are not listed.
    pub folded: Vec<Vec<u8>>,
    /// The file beside this one that lists the rest.
    pub shared: Option<String>,
}

/// What a repository names its objects by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Naming {
    Sha1,
    Sha256,
}

/// The folders of an index; `None` where git would not read it, or may read it in another way.
pub fn folders(bytes: &[u8], naming: Naming) -> Option<Folders> {
    let hash = match naming {
        Naming::Sha1 => 20,
        Naming::Sha256 => 32,
    };
    Index { bytes, hash }.folders()
}

/// Signature, version, number of entries.
const HEAD: usize = 12;
/// What stands in an entry before its hash, and where the mode is.
const STAT: usize = 40;
const MODE: usize = 24;

/// In the flags of an entry: more flags follow; how long the name is.
const EXTENDED: u16 = 0x4000;
const NAME: u16 = 0x0fff;

const KIND: u32 = 0o170_000;
const LINK: u32 = 0o160_000;
const FOLDER: u32 = 0o040_000;

struct Index<'b> {
    bytes: &'b [u8],
    /// How long a hash is.
    hash: usize,
}

impl Index<'_> {
    fn folders(&self) -> Option<Folders> {
        let version = self.number(4)?;
        if self.bytes.get(..4)? != b"DIRC" || !(2..=4).contains(&version) {
            return None;
        }
        let mut found = Folders::default();
        let mut starts = Vec::new();
        let mut name: Vec<u8> = Vec::new();
        let mut at = HEAD;
        for _ in 0..self.number(8)? {
            let kind = self.number(at + MODE)? & KIND;
            let flags = self.short(at + STAT + self.hash)?;
            let extended = if flags & EXTENDED == 0 { 0 } else { 2 };
            let mut start = at + STAT + self.hash + 2 + extended;
            // The newest kind leaves out what a name has in common with the one before it.
            let cut = if version == 4 {
                let (cut, length) = varint(self.bytes.get(start..)?)?;
                start += length;
                cut
            } else {
                name.len()
            };
            name.truncate(name.len().checked_sub(cut)?);
            if name.is_empty() {
                starts.push(at);
            }
            let rest = self.bytes.get(start..)?;
            let length = match flags & NAME {
                NAME => rest.iter().position(|byte| *byte == 0)?,
                length => usize::from(length).checked_sub(name.len())?,
            };
            name.extend(rest.get(..length)?);
            match kind {
                LINK => found.linked.push(name.clone()),
                FOLDER => found.folded.push(name.clone()),
                _ => {}
            }
            at = match version {
                4 => start + length + 1,
                // Zeros follow up to a multiple of eight.
                _ => at + ((start - at + length) / 8 + 1) * 8,
            };
        }
        self.extensions(at, &starts, &mut found)?;
        // In an index that is split an entry may lack its name, which then stands in the other file.
        let is_named =
            |names: &[Vec<u8>]| names.iter().all(|name| !name.is_empty() && !name.contains(&0));
        (is_named(&found.linked) && is_named(&found.folded)).then_some(found)
    }

    /// What follows the entries, up to the hash of the whole.
    fn extensions(&self, from: usize, starts: &[usize], found: &mut Folders) -> Option<()> {
        let end = self.bytes.len().checked_sub(self.hash)?;
        // Where it says where they begin, git believes it.
        let told = end.checked_sub(8 + 4 + self.hash).filter(|at| self.tag(*at) == Some(b"EOIE"));
        if told.is_some_and(|at| self.number(at + 8) != u32::try_from(from).ok()) {
            return None;
        }
        let mut at = from;
        while at + 8 <= end {
            let size = usize::try_from(self.number(at + 4)?).ok()?;
            let inside = self.bytes.get(at + 8..at + 8 + size)?;
            match self.tag(at)? {
                b"link" => {
                    found.shared = Some(format!("sharedindex.{}", hex(inside.get(..self.hash)?)))
                }
                // Several threads may begin to read at once.
                b"IEOT" => {
                    let begins = |block: &[u8]| {
                        let offset: [u8; 4] = block.get(..4)?.try_into().ok()?;
                        usize::try_from(u32::from_be_bytes(offset)).ok()
                    };
                    let is_known =
                        |block| begins(block).is_some_and(|at| starts.binary_search(&at).is_ok());
                    inside.get(4..)?.chunks(8).all(is_known).then_some(())?;
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

    fn number(&self, at: usize) -> Option<u32> {
        self.tag(at).map(|bytes| u32::from_be_bytes(*bytes))
    }

    fn short(&self, at: usize) -> Option<u16> {
        Some(u16::from_be_bytes(self.bytes.get(at..at + 2)?.try_into().ok()?))
    }
}

/// A number in as many bytes as it takes, and how many those are.
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

    /// Mode, how much is cut from the name before, own part of the name.
    type Entry = (u32, u8, &'static str);

    fn index(version: u8, entries: &[Entry], extensions: &[(&[u8; 4], Vec<u8>)]) -> Vec<u8> {
        let mut bytes = [b"DIRC\0\0\0", &[version][..], &[0, 0, 0, entries.len() as u8]].concat();
        let mut name = String::new();
        for (mode, cut, own) in entries {
            let kept = if version == 4 { name.len() - usize::from(*cut) } else { 0 };
            name = format!("{}{own}", &name[..kept]);
            let start = bytes.len();
            bytes.extend([0; MODE]);
            bytes.extend(mode.to_be_bytes());
            bytes.extend([0; STAT - MODE - 4 + HASH]);
            bytes.extend((name.len() as u16).to_be_bytes());
            bytes.extend(Some(*cut).filter(|_| version == 4));
            bytes.extend(own.as_bytes());
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

    #[track_caller]
    fn check(bytes: &[u8], expected: Option<&str>) {
        let shown = folders(bytes, Naming::Sha1).map(|found| {
            let text = |names: &[Vec<u8>]| String::from_utf8_lossy(&names.join(&b' ')).into_owned();
            let shared = found.shared.unwrap_or_default();
            format!(
                "{}|{}|{}",
                text(&found.linked),
                text(&found.folded),
                &shared[..shared.len().min(16)]
            )
        });
        assert_eq!(shown.as_deref(), expected);
    }

    #[test]
    fn folders_are_found_among_files() {
        let entries = [(FILE, 0, "a"), (LINK, 1, "lib/one"), (LINK, 3, "two"), (FOLDER, 3, "x/")];
        check(&index(4, &entries, &[]), Some("lib/one lib/two|lib/x/|"));
        check(&index(2, &entries, &[]), Some("lib/one two|x/|"));
        check(&index(3, &[], &[]), Some("||"));
        let link = (b"link", vec![0xab; HASH]);
        check(
            &index(2, &entries, &[(b"TREE", vec![1]), link]),
            Some("lib/one two|x/|sharedindex.abab"),
        );
    }

    #[test]
    fn what_git_may_read_in_another_way_is_not_read() {
        let entries = [(FILE, 0, "dir/a"), (LINK, 1, "sub")];
        let second = HEAD + STAT + HASH + 2 + 1 + 5 + 1;
        let begins = |at: usize| vec![0, 0, 0, 1, 0, 0, 0, at as u8, 0, 0, 0, 1];
        check(&index(4, &entries, &[(b"IEOT", begins(HEAD))]), Some("dir/sub||"));
        check(&index(4, &entries, &[(b"IEOT", begins(second))]), None);
        check(&index(2, &entries, &[(b"IEOT", begins(HEAD + 72))]), Some("sub||"));
        check(&index(2, &entries, &[(b"IEOT", begins(HEAD + 8))]), None);
        check(&index(2, &entries, &[(b"EOIE", vec![0; 4 + HASH])]), None);
        check(&index(2, &[(LINK, 0, "")], &[]), None);
        check(&index(5, &entries, &[]), None);
        check(&index(2, &entries, &[])[..60], None);
        check(b"", None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_not(
            naming in prop::sample::select(vec![Naming::Sha1, Naming::Sha256]),
            version in 2_u8..5,
            bytes in prop::collection::vec(any::<u8>(), 0..300),
        ) {
            folders(&[b"DIRC\0\0\0", &[version, 0, 0, 0, 3][..], &bytes].concat(), naming);
        }
    }
}
