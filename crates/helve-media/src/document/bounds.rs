//! What a PDF may unfold to. The library that reads it has no bounds of its own, and running out of stack or memory cannot be caught.

use std::collections::{HashMap, HashSet};
use std::io::{Read, sink};
use std::time::Instant;

use flate2::read::ZlibDecoder;
use pdf_extract::{Dictionary, Document, Object, ObjectId, Stream};

/// Of one compressed part, and of all of them.
const MOST_PART: u64 = 64 << 20;
const MOST_ALL: u64 = 512 << 20;
/// What draws one page, unfolded.
const MOST_CONTENT: u64 = 16 << 20;
/// Of a part whose size unfolded cannot be told by unfolding it once.
const MOST_OPAQUE: usize = 16 << 10;
/// How many parts, counted as often as they are drawn, one page may have, and how deep.
const MOST_DRAWN: u64 = 20_000;
const MOST_DEEP: usize = 24;
/// How far up a page may inherit from.
const MOST_ANCESTORS: usize = 64;
/// Where the description of a part is looked for, before its first byte.
const DESCRIPTION: usize = 1024;

/// Unfolds every compressed part once, keeping nothing; says what is wrong.
pub(super) fn of_file(bytes: &[u8], until: Instant) -> Result<(), &'static str> {
    // Room for these is taken as the file says.
    if any_is_huge(bytes, b"/Columns", b"") || any_is_huge(bytes, b"/W", b"[") {
        return Err("a number in it is out of all proportion");
    }
    let mut all = 0;
    for at in find(bytes, b"stream") {
        let after = &bytes[at + b"stream".len()..];
        let Some(data) = after.strip_prefix(b"\r\n").or_else(|| after.strip_prefix(b"\n")) else {
            continue;
        };
        let before = &bytes[at.saturating_sub(DESCRIPTION)..at];
        let description = find(before, b"obj").last().map_or(before, |obj| &before[obj..]);
        let squeezed = |name: &[u8]| find(description, name).count();
        if squeezed(b"FlateDecode") + squeezed(b"LZWDecode") > 1 {
            return Err("a part of it is compressed twice");
        }
        all += unfolded(data, MOST_PART);
        if all > MOST_ALL {
            return Err("its compressed parts unfold to far too much");
        }
        if Instant::now() > until {
            return Err("its compressed parts take too long to unfold");
        }
    }
    Ok(())
}

/// Whether more than seven digits follow a name, or stand in the list that follows it.
fn any_is_huge(bytes: &[u8], name: &[u8], open: &[u8]) -> bool {
    find(bytes, name).any(|at| {
        let after = bytes[at + name.len()..].trim_ascii_start();
        let Some(numbers) = after.strip_prefix(open) else { return false };
        let is_number = |byte: &u8| byte.is_ascii_digit() || byte.is_ascii_whitespace();
        let end = numbers.iter().position(|byte| !is_number(byte)).unwrap_or(numbers.len());
        numbers[..end].split(|byte| !byte.is_ascii_digit()).any(|digits| digits.len() > 7)
    })
}

/// How much comes out, at most one more than `most`. What is no such data gives nothing or little.
fn unfolded(data: &[u8], most: u64) -> u64 {
    let mut decoder = ZlibDecoder::new(data).take(most + 1);
    // Broken data counts as far as it goes, as it does for the reader.
    std::io::copy(&mut decoder, &mut sink()).unwrap_or(0);
    most + 1 - decoder.limit()
}

/// Pictures are not text, and reading them as such is slow and fails.
pub(super) fn forget_pictures(document: &mut Document) {
    for object in document.objects.values_mut() {
        if let Object::Stream(stream) = object
            && is(&stream.dict, b"Image")
        {
            stream.dict.remove(b"Filter");
            stream.set_content(Vec::new());
        }
    }
}

/// Whether drawing a page ends, soon enough, and within the stack.
pub(super) fn page_is_safe(document: &Document, page: ObjectId) -> bool {
    let Some(resources) = resources(document, page) else { return false };
    let mut size = 0;
    let mut drawn = 0;
    for id in document.get_page_contents(page) {
        let Ok(Object::Stream(stream)) = document.get_object(id) else { continue };
        let Some(content) = content_size(stream) else { return false };
        size += content;
        drawn += draws(stream);
        if size > MOST_CONTENT {
            return false;
        }
    }
    let mut forms = Forms { document, known: HashMap::new(), above: HashSet::new() };
    let most = resources
        .iter()
        .map(|one| forms.most(one))
        .try_fold(0, |most: u64, cost| cost.map(|cost| most.max(cost)));
    most.is_some_and(|most| drawn.saturating_mul(most) <= MOST_DRAWN)
}

/// What a page inherits; nothing where its ancestors do not end.
fn resources(document: &Document, page: ObjectId) -> Option<Vec<&Dictionary>> {
    let mut found = Vec::new();
    let mut node = document.get_dictionary(page).ok()?;
    for _ in 0..MOST_ANCESTORS {
        found.extend(deref(document, node.get(b"Resources").ok()).and_then(dictionary));
        let Ok(parent) = node.get(b"Parent").and_then(Object::as_reference) else {
            return Some(found);
        };
        let Ok(parent) = document.get_dictionary(parent) else { return Some(found) };
        node = parent;
    }
    None
}

/// How large a stream is when it is unfolded; nothing where that is too large or cannot be told.
fn content_size(stream: &Stream) -> Option<u64> {
    let filters = stream.filters().unwrap_or_default();
    let size = match filters.as_slice() {
        [] => stream.content.len() as u64,
        [b"FlateDecode"] => unfolded(&stream.content, MOST_CONTENT),
        _ if stream.content.len() <= MOST_OPAQUE => MOST_OPAQUE as u64,
        _ => return None,
    };
    (size <= MOST_CONTENT).then_some(size)
}

/// How often a stream draws another part. Only for streams that `content_size` allows.
fn draws(stream: &Stream) -> u64 {
    let content = stream.decompressed_content().unwrap_or_else(|_| stream.content.clone());
    find(&content, b"Do").count() as u64
}

/// What parts cost that draw other parts.
struct Forms<'a> {
    document: &'a Document,
    known: HashMap<ObjectId, u64>,
    above: HashSet<ObjectId>,
}

impl<'a> Forms<'a> {
    /// The cost of the dearest part that these resources name; nothing where one contains itself or costs too much.
    fn most(&mut self, resources: &'a Dictionary) -> Option<u64> {
        let named = deref(self.document, resources.get(b"XObject").ok()).and_then(dictionary);
        let mut most = 1;
        for (_, object) in named.into_iter().flat_map(Dictionary::iter) {
            let Object::Reference(id) = object else { continue };
            most = most.max(self.cost(*id, resources)?);
        }
        Some(most)
    }

    fn cost(&mut self, id: ObjectId, around: &'a Dictionary) -> Option<u64> {
        if let Some(known) = self.known.get(&id) {
            return Some(*known);
        }
        let Some(Object::Stream(stream)) = deref(self.document, self.document.get_object(id).ok())
        else {
            return Some(1);
        };
        content_size(stream)?;
        let draws = draws(stream);
        if draws == 0 {
            self.known.insert(id, 1);
            return Some(1);
        }
        if self.above.len() == MOST_DEEP || !self.above.insert(id) {
            return None;
        }
        let own = deref(self.document, stream.dict.get(b"Resources").ok()).and_then(dictionary);
        let most = self.most(own.unwrap_or(around));
        self.above.remove(&id);
        let cost = draws.saturating_mul(most?).saturating_add(1);
        self.known.insert(id, cost);
        (cost <= MOST_DRAWN).then_some(cost)
    }
}

fn is(dictionary: &Dictionary, subtype: &[u8]) -> bool {
    dictionary.get(b"Subtype").and_then(Object::as_name).is_ok_and(|name| name == subtype)
}

fn deref<'a>(document: &'a Document, object: Option<&'a Object>) -> Option<&'a Object> {
    document.dereference(object?).ok().map(|(_, object)| object)
}

fn dictionary(object: &Object) -> Option<&Dictionary> {
    object.as_dict().ok()
}

/// Every place where `what` stands.
fn find<'a>(bytes: &'a [u8], what: &'a [u8]) -> impl Iterator<Item = usize> + 'a {
    let first = what.first().copied().unwrap_or_default();
    let starts = bytes.iter().enumerate().filter(move |(_, byte)| **byte == first);
    starts.map(|(at, _)| at).filter(move |at| bytes[*at..].starts_with(what))
}
