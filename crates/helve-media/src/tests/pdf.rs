//! Builds small PDF documents.

pub(super) struct PdfPage {
    /// The body of its content object.
    pub(super) content: Vec<u8>,
    pub(super) resources: String,
}

const FONT: &str = "/Font << /F1 << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >>";

pub(super) fn text_page(text: &str) -> PdfPage {
    let content = format!("BT /F1 12 Tf 20 100 Td ({text}) Tj ET");
    PdfPage { content: stream_object("", content.as_bytes()), resources: FONT.into() }
}

/// Returns a page with this content stream; `entries` are added to the dictionary of the stream.
pub(super) fn page(entries: &str, content: &str) -> PdfPage {
    PdfPage { content: stream_object(entries, content.as_bytes()), resources: FONT.into() }
}

/// Returns the body of a stream object.
pub(super) fn stream_object(entries: &str, data: &[u8]) -> Vec<u8> {
    let mut body = format!("<< {entries} /Length {} >>\nstream\n", data.len()).into_bytes();
    body.extend(data);
    body.extend(b"\nendstream");
    body
}

/// Objects 1 and 2 are the catalogue and the list of pages. Then page and content objects alternate.
pub(super) fn document(pages: &[PdfPage]) -> Vec<u8> {
    let kids: Vec<String> = (0..pages.len()).map(|at| format!("{} 0 R", 3 + at * 2)).collect();
    let mut bodies = vec![
        b"<< /Type /Catalog /Pages 2 0 R >>".to_vec(),
        format!("<< /Type /Pages /Kids [{}] /Count {} >>", kids.join(" "), pages.len())
            .into_bytes(),
    ];
    for (at, page) in pages.iter().enumerate() {
        let content = 4 + at * 2;
        bodies.push(page_object(content, &page.resources, "/MediaBox [0 0 200 200]"));
        bodies.push(page.content.clone());
    }
    file(&bodies)
}

fn page_object(content: usize, resources: &str, entries: &str) -> Vec<u8> {
    format!(
        "<< /Type /Page /Parent 2 0 R {entries} /Contents {content} 0 R /Resources << {resources} >> >>"
    )
    .into_bytes()
}

/// A document with a form that draws itself.
pub(super) fn document_with_recursive_form() -> Vec<u8> {
    let bodies = [
        b"<< /Type /Catalog /Pages 2 0 R >>".to_vec(),
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>".to_vec(),
        page_object(4, "/XObject << /X 5 0 R >>", "/MediaBox [0 0 9 9]"),
        stream_object("", b"/X Do"),
        stream_object("/Type /XObject /Subtype /Form", b"/X Do"),
    ];
    file(&bodies)
}

/// A document whose list of pages is its own parent.
pub(super) fn document_with_cyclic_page_tree() -> Vec<u8> {
    let bodies = [
        b"<< /Type /Catalog /Pages 2 0 R >>".to_vec(),
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 /Parent 2 0 R >>".to_vec(),
        page_object(4, "", ""),
        stream_object("", b"q Q"),
    ];
    file(&bodies)
}

/// Returns a PDF file with these objects, numbered from 1.
fn file(bodies: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = b"%PDF-1.4\n".to_vec();
    let mut table = format!("xref\n0 {}\n0000000000 65535 f \n", bodies.len() + 1);
    for (at, body) in bodies.iter().enumerate() {
        table.push_str(&format!("{:010} 00000 n \n", bytes.len()));
        bytes.extend(format!("{} 0 obj\n", at + 1).into_bytes());
        bytes.extend(body);
        bytes.extend(b"\nendobj\n");
    }
    let start = bytes.len();
    bytes.extend(table.into_bytes());
    let size = bodies.len() + 1;
    let trailer = format!("trailer\n<< /Size {size} /Root 1 0 R >>\nstartxref\n{start}\n%%EOF\n");
    bytes.extend(trailer.into_bytes());
    bytes
}
