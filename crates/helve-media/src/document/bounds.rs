//! Limits on the decompressed size and nesting of a PDF. They are checked here because the library that reads
//! it has no limits of its own, and a process cannot recover from running out of stack or memory.

use std::collections::{HashMap, HashSet};
use std::io::{Read, sink};
use std::time::Instant;

use flate2::read::ZlibDecoder;
use pdf_extract::{Dictionary, Document as PdfDocument, Object, ObjectId, Stream};

/// Maximum decompressed size of one stream.
const MAX_STREAM: u64 = 64 << 20;
/// Maximum decompressed size of all streams.
const MAX_TOTAL: u64 = 512 << 20;
/// Maximum decompressed size of the content of one page.
const MAX_CONTENT: u64 = 16 << 20;
/// A stream whose decompressed size cannot be determined may be at most this large, and is counted as if it
/// decompressed to exactly this size.
const MAX_OPAQUE: usize = 16 << 10;
/// Maximum number of form XObjects that one page draws, counting repetitions.
const MAX_DRAWN: u64 = 20_000;
/// Maximum nesting depth of form XObjects.
const MAX_DEPTH: usize = 24;
/// Maximum number of ancestors that a page inherits from.
const MAX_ANCESTORS: usize = 64;
/// Number of bytes before the data of a stream that are searched for its dictionary.
const DICTIONARY_RANGE: usize = 1024;

/// Decompresses every stream once without keeping the result. The error names the limit that the file exceeds.
pub(super) fn check_file(bytes: &[u8], deadline: Instant) -> Result<(), &'static str> {
    // The library allocates as many bytes as these numbers say.
    if has_huge_number(bytes, b"/Columns", b"") || has_huge_number(bytes, b"/W", b"[") {
        return Err("it contains a number that is too large");
    }
    let mut total = 0;
    for at in find(bytes, b"stream") {
        let after = &bytes[at + b"stream".len()..];
        let Some(data) = after.strip_prefix(b"\r\n").or_else(|| after.strip_prefix(b"\n")) else {
            continue;
        };
        let before = &bytes[at.saturating_sub(DICTIONARY_RANGE)..at];
        let dictionary = find(before, b"obj").last().map_or(before, |obj| &before[obj..]);
        let count = |name: &[u8]| find(dictionary, name).count();
        if count(b"FlateDecode") + count(b"LZWDecode") > 1 {
            return Err("a stream is compressed twice");
        }
        total += decompressed_size(data, MAX_STREAM);
        if total > MAX_TOTAL {
            return Err("its decompressed size is too large");
        }
        if Instant::now() > deadline {
            return Err("decompressing it takes too long");
        }
    }
    Ok(())
}

/// Whether a number with more than seven digits follows a name, directly or in a list.
fn has_huge_number(bytes: &[u8], name: &[u8], list_start: &[u8]) -> bool {
    find(bytes, name).any(|at| {
        let after = bytes[at + name.len()..].trim_ascii_start();
        let Some(numbers) = after.strip_prefix(list_start) else { return false };
        let is_number = |byte: &u8| byte.is_ascii_digit() || byte.is_ascii_whitespace();
        let end = numbers.iter().position(|byte| !is_number(byte)).unwrap_or(numbers.len());
        numbers[..end].split(|byte| !byte.is_ascii_digit()).any(|digits| digits.len() > 7)
    })
}

/// Returns the decompressed size, at most `max + 1`.
fn decompressed_size(data: &[u8], max: u64) -> u64 {
    let mut decoder = ZlibDecoder::new(data).take(max + 1);
    // Bytes that are decompressed before an error are counted too, because the PDF library uses them.
    std::io::copy(&mut decoder, &mut sink()).unwrap_or(0);
    max + 1 - decoder.limit()
}

/// Removes images: they contain no text, and the library takes a long time to fail on them.
pub(super) fn remove_images(document: &mut PdfDocument) {
    for object in document.objects.values_mut() {
        if let Object::Stream(stream) = object
            && has_subtype(&stream.dict, b"Image")
        {
            stream.dict.remove(b"Filter");
            stream.set_content(Vec::new());
        }
    }
}

/// Whether the text of a page can be extracted within the limits.
pub(super) fn page_is_safe(document: &PdfDocument, page: ObjectId) -> bool {
    let Some(resources) = resources(document, page) else { return false };
    let mut size = 0;
    let mut drawn = 0;
    for id in document.get_page_contents(page) {
        let Ok(Object::Stream(stream)) = document.get_object(id) else { continue };
        let Some(content) = content_size(stream) else { return false };
        size += content;
        drawn += count_form_draws(stream);
        if size > MAX_CONTENT {
            return false;
        }
    }
    let mut forms = FormCosts { document, known: HashMap::new(), ancestors: HashSet::new() };
    let max_cost = resources
        .iter()
        .map(|resources| forms.max_cost(resources))
        .try_fold(0, |max: u64, cost| cost.map(|cost| max.max(cost)));
    max_cost.is_some_and(|max| drawn.saturating_mul(max) <= MAX_DRAWN)
}

/// Returns the resources of a page and its ancestors, or `None` if there are too many ancestors.
fn resources(document: &PdfDocument, page: ObjectId) -> Option<Vec<&Dictionary>> {
    let mut found = Vec::new();
    let mut node = document.get_dictionary(page).ok()?;
    for _ in 0..MAX_ANCESTORS {
        found.extend(deref(document, node.get(b"Resources").ok()).and_then(dictionary));
        let Ok(parent) = node.get(b"Parent").and_then(Object::as_reference) else {
            return Some(found);
        };
        let Ok(parent) = document.get_dictionary(parent) else { return Some(found) };
        node = parent;
    }
    None
}

/// Returns the decompressed size of a stream; `None` if that is too large, or unknown and the stream is not small.
fn content_size(stream: &Stream) -> Option<u64> {
    let filters = stream.filters().unwrap_or_default();
    let size = match filters.as_slice() {
        [] => stream.content.len() as u64,
        [b"FlateDecode"] => decompressed_size(&stream.content, MAX_CONTENT),
        _ if stream.content.len() <= MAX_OPAQUE => MAX_OPAQUE as u64,
        _ => return None,
    };
    (size <= MAX_CONTENT).then_some(size)
}

/// Returns how many times a stream draws a form. Only for streams that `content_size` allows.
fn count_form_draws(stream: &Stream) -> u64 {
    let content = stream.decompressed_content().unwrap_or_else(|_| stream.content.clone());
    find(&content, b"Do").count() as u64
}

/// Computes how many forms each form draws, including those drawn by the forms it contains.
struct FormCosts<'a> {
    document: &'a PdfDocument,
    known: HashMap<ObjectId, u64>,
    /// The forms that contain the current one.
    ancestors: HashSet<ObjectId>,
}

impl<'a> FormCosts<'a> {
    /// Returns the cost of the most expensive form in these resources, or `None` if a form draws itself or costs too
    /// much.
    fn max_cost(&mut self, resources: &'a Dictionary) -> Option<u64> {
        let objects = deref(self.document, resources.get(b"XObject").ok()).and_then(dictionary);
        let mut max = 1;
        for (_, object) in objects.into_iter().flat_map(Dictionary::iter) {
            let Object::Reference(id) = object else { continue };
            max = max.max(self.cost(*id, resources)?);
        }
        Some(max)
    }

    /// Returns how many forms are drawn in total when this form is drawn once.
    fn cost(&mut self, id: ObjectId, inherited_resources: &'a Dictionary) -> Option<u64> {
        if let Some(known) = self.known.get(&id) {
            return Some(*known);
        }
        let Some(Object::Stream(stream)) = deref(self.document, self.document.get_object(id).ok())
        else {
            return Some(1);
        };
        content_size(stream)?;
        let draws = count_form_draws(stream);
        if draws == 0 {
            self.known.insert(id, 1);
            return Some(1);
        }
        if self.ancestors.len() == MAX_DEPTH || !self.ancestors.insert(id) {
            return None;
        }
        let own_resources =
            deref(self.document, stream.dict.get(b"Resources").ok()).and_then(dictionary);
        let max_cost = self.max_cost(own_resources.unwrap_or(inherited_resources));
        self.ancestors.remove(&id);
        let cost = draws.saturating_mul(max_cost?).saturating_add(1);
        self.known.insert(id, cost);
        (cost <= MAX_DRAWN).then_some(cost)
    }
}

fn has_subtype(dictionary: &Dictionary, subtype: &[u8]) -> bool {
    dictionary.get(b"Subtype").and_then(Object::as_name).is_ok_and(|name| name == subtype)
}

fn deref<'a>(document: &'a PdfDocument, object: Option<&'a Object>) -> Option<&'a Object> {
    document.dereference(object?).ok().map(|(_, object)| object)
}

fn dictionary(object: &Object) -> Option<&Dictionary> {
    object.as_dict().ok()
}

/// Returns every offset of `needle`.
fn find<'a>(bytes: &'a [u8], needle: &'a [u8]) -> impl Iterator<Item = usize> + 'a {
    let first = needle.first().copied().unwrap_or_default();
    let starts = bytes.iter().enumerate().filter(move |(_, byte)| **byte == first);
    starts.map(|(at, _)| at).filter(move |at| bytes[*at..].starts_with(needle))
}
