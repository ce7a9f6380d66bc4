//! Tests of `read` on encodings, pictures, documents, notebooks and long lines.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use expect_test::{Expect, expect};
use helve_core::media::{
    Document, Frames, MediaContent, MediaError, MediaFormat, PageText, PagesEnd, Picture, PixelSize,
};
use helve_core::{BoxFuture, Media};

use crate::opencode::{DIALECT, tools};

/// A fake decoder: the last word of the bytes selects the result.
struct FakeMedia;

impl Media for FakeMedia {
    fn decode(
        &self,
        bytes: Bytes,
        format: MediaFormat,
    ) -> BoxFuture<'_, Result<MediaContent, MediaError>> {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let result = match text.split_whitespace().last() {
            _ if MediaFormat::of_content(&bytes) != Some(format) => Err(MediaError::WrongFormat),
            Some("cut") => Err(MediaError::Broken { why: "unexpected end of file".into() }),
            Some("bomb") => {
                Err(MediaError::TooManyPixels { size: size(50_000, 50_000), limit: 64 })
            }
            Some("locked") => Err(MediaError::Locked),
            Some("slow") => Err(MediaError::TimedOut(Duration::from_secs(20))),
            Some("scan") => Ok(document(vec![PageText::NoText], PagesEnd::Complete)),
            Some("long") => {
                Ok(document(vec![PageText::Text("a\nb".into())], PagesEnd::LimitReached))
            }
            Some("endless") => Ok(document(Vec::new(), PagesEnd::TooComplex)),
            Some("moving") => Ok(picture(size(20, 10), Frames::FirstOfMany)),
            _ if format == MediaFormat::Pdf => {
                let pages = vec![PageText::Text("One\ntwo".into()), PageText::Unreadable];
                Ok(document(pages, PagesEnd::Complete))
            }
            _ => Ok(picture(size(4000, 3000), Frames::One)),
        };
        Box::pin(async { result })
    }
}

fn size(width: u32, height: u32) -> PixelSize {
    PixelSize { width, height }
}

fn picture(original: PixelSize, frames: Frames) -> MediaContent {
    let small = size(original.width.min(2000), original.height.min(1500));
    let bytes = Bytes::from_static(b"pixels");
    MediaContent::Picture(Picture { mime: "image/png", bytes, size: small, original, frames })
}

fn document(pages: Vec<PageText>, ended: PagesEnd) -> MediaContent {
    MediaContent::Document(Document { count: 2, pages, ended })
}

#[track_caller]
fn check(fixture: &str, expected: Expect) {
    helve_testkit::check(&DIALECT, tools(Arc::new(FakeMedia)), fixture, expected);
}

#[test]
fn pictures_are_attached() {
    check(
        r#"
--- file photo.bin
GIF89a
--- file logo.gif
GIF89a moving
--- call read {"filePath": "photo.bin"}
--- call read {"filePath": "logo.gif"}
"#,
        expect![[r#"
            == photo.bin
            photo.bin: GIF image, 4000 × 3000 pixels. Shown at 2000 × 1500.
            ++ image/png, 6 bytes
            == logo.gif
            logo.gif: GIF image, 20 × 10 pixels. It is animated; the first frame is shown.
            ++ image/png, 6 bytes
        "#]],
    );
}

#[test]
fn undecodable_pictures_are_explained() {
    check(
        r#"
--- file text.png
Not found
--- file empty.jpg
--- file lfs.png
version https://git-lfs.github.com/spec/v1
oid sha256:0
--- bytes other.webp
00 01 02 03
--- file cut.gif
GIF89a cut
--- file bomb.gif
GIF89a bomb
--- file slow.gif
GIF89a slow
--- call read {"filePath": "text.png"}
--- call read {"filePath": "empty.jpg"}
--- call read {"filePath": "lfs.png"}
--- call read {"filePath": "other.webp"}
--- call read {"filePath": "cut.gif"}
--- call read {"filePath": "bomb.gif"}
--- call read {"filePath": "slow.gif"}
"#,
        expect![[r#"
            !! Failed
            text.png is named like a PNG image, but its content is text.
            To see the text, print it in a shell or copy it to another name.
            !! Failed
            empty.jpg is named like a JPEG image, but it is empty.
            Fetch or create the file again.
            !! Failed
            lfs.png is named like a PNG image, but it is a Git LFS pointer.
            Fetch the file itself with `git lfs pull`.
            !! Failed
            other.webp is named like a WebP image, but its content is something else.
            Run `file` on the path in a shell.
            !! Failed
            cut.gif claims to be a GIF image but cannot be decoded: unexpected end of file.
            The file may be damaged or truncated. Fetch or create the file again, or continue without it.
            !! Failed
            bomb.gif is a GIF image of 50000 × 50000 pixels; the limit is 64 pixels in total.
            Make the picture smaller with a program that understands its format.
            !! Failed
            slow.gif could not be decoded within 20 seconds.
            Continue without the file, or extract a part of it.
        "#]],
    );
}

#[test]
fn builds_without_decoders_refuse_pictures() {
    crate::opencode::check(
        "--- file a.gif\nGIF89a\n--- call read {\"filePath\": \"a.gif\"}\n",
        expect![[r#"
            !! Failed
            a.gif is a GIF image, which this build of Helve cannot show.
            Use a tool that understands its format.
        "#]],
    );
}

#[test]
fn documents_are_shown_by_page_and_attached() {
    check(
        r#"
--- file a.pdf
%PDF-1.4
--- file scan.pdf
%PDF-1.4 scan
--- file long.pdf
%PDF-1.4 long
--- file endless.pdf
%PDF-1.4 endless
--- file locked.pdf
%PDF-1.4 locked
--- file fake.pdf
<html>
--- call read {"filePath": "a.pdf"}
--- call read {"filePath": "a.pdf", "offset": 3, "limit": 1}
--- call read {"filePath": "scan.pdf"}
--- call read {"filePath": "long.pdf"}
--- call read {"filePath": "endless.pdf"}
--- call read {"filePath": "locked.pdf"}
--- call read {"filePath": "fake.pdf"}
"#,
        expect![[r#"
            == a.pdf
            <file>
            00001| -- page 1 of 2 --
            00002| One
            00003| two
            00004| -- page 2 of 2 --
            00005| (the text of this page cannot be read)

            (End of file, 5 lines)
            (PDF, 2 pages)
            (The document is attached)
            </file>
            ++ application/pdf, 9 bytes
            == a.pdf
            <file>
            00003| two

            (Showing lines 3-3 of 5. Use offset=4 to continue.)
            (PDF, 2 pages)
            </file>
            == scan.pdf
            <file>
            00001| -- page 1 of 2 --
            00002| (no text: a scan or drawing)

            (End of file, 2 lines)
            (PDF, 2 pages)
            (The document is attached)
            </file>
            ++ application/pdf, 14 bytes
            == long.pdf
            <file>
            00001| -- page 1 of 2 --
            00002| a
            00003| b

            (End of file, 3 lines)
            (PDF, 2 pages)
            (Only the first page was read)
            (The document is attached)
            </file>
            ++ application/pdf, 14 bytes
            == endless.pdf
            <file>

            (End of file, 0 lines)
            (PDF, 2 pages)
            (Page 1 and all later pages were not read: they are too large when decompressed)
            </file>
            !! Failed
            locked.pdf is protected with a password.
            Ask the user for a copy without a password.
            !! Failed
            fake.pdf is named like a PDF document, but its content is text.
            To see the text, print it in a shell or copy it to another name.
        "#]],
    );
}

#[test]
fn notebooks_are_shown_by_cell() {
    check(
        r##"
--- file a.ipynb
{"cells": [
 {"cell_type": "markdown", "source": ["# Title\n", "text"]},
 {"cell_type": "code", "execution_count": 3, "source": "print(1)\nplot()", "outputs": [
  {"output_type": "stream", "name": "stdout", "text": ["1\n"]},
  {"output_type": "display_data", "data": {"image/png": "iVBORw0KGgo=", "text/plain": "<Figure>"}},
  {"output_type": "display_data", "data": {"image/png": "%%%"}},
  {"output_type": "execute_result", "data": {"text/html": ["<b>x</b>"]}},
  {"output_type": "error", "ename": "ValueError", "evalue": "bad", "traceback": ["\u001b[31mValueError\u001b[0m: bad"]}
 ]},
 {"cell_type": "raw"}, 7
], "metadata": {"language_info": {"name": "python"}}, "nbformat": 4}
--- call read {"filePath": "a.ipynb"}
--- call read {"filePath": "a.ipynb", "offset": 2, "limit": 2}
--- call read {"filePath": "a.ipynb", "offset": 99}
"##,
        expect![[r#"
            == a.ipynb
            <file>
            00001| -- cell 1, markdown --
            00002| # Title
            00003| text
            00004| -- cell 2, code, execution 3 --
            00005| print(1)
            00006| plot()
            00007| -- output, stdout --
            00008| 1
            00009| -- output, image/png, picture 1 --
            00010| -- output --
            00011| <Figure>
            00012| -- output, image/png, cannot be decoded --
            00013| -- output, text/html of 9 bytes, not shown --
            00014| -- error --
            00015| ValueError: bad
            00016| -- cell 3, raw --
            00017| -- cell 4, unknown --

            (End of file, 17 lines)
            (Notebook, 4 cells, python; line numbers refer to this view, not to the file)
            </file>
            ++ image/png, 6 bytes
            == a.ipynb
            <file>
            00002| # Title
            00003| text

            (Showing lines 2-3 of 17. Use offset=4 to continue.)
            (Notebook, 4 cells, python; line numbers refer to this view, not to the file)
            </file>
            !! InvalidArgs
            a.ipynb has 17 lines; there is no line 99.
            Use an offset of at most 17.
        "#]],
    );
}

#[test]
fn cells_in_worksheets_of_old_notebooks_are_shown() {
    check(
        r#"
--- file old.ipynb
{"worksheets": [{"cells": [{"cell_type": "code", "input": ["1 + 1"], "prompt_number": 2, "outputs": [{"output_type": "pyout", "text": ["2"]}]}]}]}
--- call read {"filePath": "old.ipynb"}
"#,
        expect![[r#"
            == old.ipynb
            <file>
            00001| -- cell 1, code, execution 2 --
            00002| 1 + 1
            00003| -- output --
            00004| 2

            (End of file, 4 lines)
            (Notebook, 1 cell; line numbers refer to this view, not to the file)
            </file>
        "#]],
    );
}

#[test]
fn invalid_notebooks_are_shown_as_text() {
    check(
        r#"
--- file cut.ipynb
{"cells": [
--- file other.ipynb
{"a": 1}
--- call read {"filePath": "cut.ipynb"}
--- call read {"filePath": "other.ipynb"}
"#,
        expect![[r#"
            == cut.ipynb
            <file>
            00001| {"cells": [

            (End of file, 1 line)
            (Not a valid notebook, shown as text: EOF while parsing a list at line 2 column 0)
            </file>
            == other.ipynb
            <file>
            00001| {"a": 1}

            (End of file, 1 line)
            (Not a valid notebook, shown as text: the file has no cells)
            </file>
        "#]],
    );
}

#[test]
fn long_cell_outputs_are_cut() {
    let lines = "x\\n".repeat(100);
    let cell = format!(
        r#"{{"cell_type": "code", "source": "", "outputs": [{{"output_type": "stream", "text": "{lines}"}}]}}"#
    );
    check(
        &format!(
            "--- file a.ipynb\n{{\"cells\": [{cell}]}}\n--- call read {{\"filePath\": \"a.ipynb\", \"offset\": 61}}\n"
        ),
        expect![[r#"
            == a.ipynb
            <file>
            00061| x
            00062| x
            00063| (… 40 more lines, not shown)

            (End of file, 63 lines)
            (Notebook, 1 cell; line numbers refer to this view, not to the file)
            </file>
        "#]],
    );
}

#[test]
fn other_encodings_are_decoded_and_named() {
    let shift_jis = "93 fa 96 7b 8c ea 82 cc 83 65 83 4c 83 58 83 67 82 c5 82 b7 81 42 89 fc 8d 73 82 e0 82 a0 82 e8 82 dc 82 b7 81 42 0a";
    check(
        &format!(
            r#"
--- bytes latin.txt
63 61 66 e9 20 6e 6f 69 72 0a 64 e9 6a e0 20 76 75 0a
--- bytes sjis.txt
{shift_jis}
--- bytes wide.txt
ff fe 68 00 e9 00 0d 00 0a 00 21 00 0a 00
--- bytes mixed.txt
c3 a9 20 ff 0a c3 a9 0a
--- bytes unclear.txt
61 0a 80 20 81 0a
--- call read {{"filePath": "latin.txt"}}
--- call read {{"filePath": "sjis.txt"}}
--- call read {{"filePath": "wide.txt"}}
--- call read {{"filePath": "mixed.txt"}}
--- call read {{"filePath": "unclear.txt"}}
"#
        ),
        expect![[r#"
            == latin.txt
            <file>
            00001| café noir
            00002| déjà vu

            (End of file, 2 lines)
            (The encoding is windows-1252)
            </file>
            == sjis.txt
            <file>
            00001| 日本語のテキストです。改行もあります。

            (End of file, 1 line)
            (The encoding is Shift_JIS)
            </file>
            == wide.txt
            <file>
            00001| hé
            00002| !

            (End of file, 2 lines)
            (The encoding is UTF-16LE)
            </file>
            == mixed.txt
            <file>
            00001| é �
            00002| é

            (End of file, 2 lines)
            (1 character could not be decoded and is shown as �)
            </file>
            == unclear.txt
            <file>
            00001| a
            00002| � �

            (End of file, 2 lines)
            (The encoding could not be determined; it is not UTF-8)
            (2 characters could not be decoded and are shown as �)
            </file>
        "#]],
    );
}

#[test]
fn a_character_cut_at_the_end_of_the_sample_is_not_an_error() {
    let text = format!("{}é\n", "ab\n".repeat(1365));
    check(
        &format!(
            "--- file a.txt\n{text}--- call read {{\"filePath\": \"a.txt\", \"offset\": 1366}}\n"
        ),
        expect![[r#"
            == a.txt
            <file>
            01366| é

            (End of file, 1366 lines)
            </file>
        "#]],
    );
}

#[test]
fn binary_formats_are_named() {
    check(
        r#"
--- bytes a.zip
50 4b 03 04 14 00 00 00
--- bytes b.docx
01 02 03 ff fe
--- bytes lib.so
7f 45 4c 46 02 01 01 00
--- bytes noise
01 02 03 04 05 06 41
--- bytes c.dat
63 61 66 e9 0a
--- file mesh.obj
v 1.0 2.0 3.0
--- call read {"filePath": "a.zip"}
--- call read {"filePath": "b.docx"}
--- call read {"filePath": "lib.so"}
--- call read {"filePath": "noise"}
--- call read {"filePath": "c.dat"}
--- call read {"filePath": "mesh.obj"}
"#,
        expect![[r#"
            !! Failed
            a.zip is not text but a ZIP archive or office document (8 bytes).
            Use a tool that understands its format.
            !! Failed
            b.docx is not text but an office document (5 bytes).
            Use a tool that understands its format.
            !! Failed
            lib.so is not text but an ELF program or library (8 bytes).
            Use a tool that understands its format.
            !! Failed
            noise is not text but a binary file (7 bytes).
            Use a tool that understands its format.
            !! Failed
            c.dat is not text but a binary file (5 bytes).
            Use a tool that understands its format.
            == mesh.obj
            <file>
            00001| v 1.0 2.0 3.0

            (End of file, 1 line)
            </file>
        "#]],
    );
}

#[test]
fn long_lines_are_cut_with_a_hint() {
    let long = "x".repeat(60_000);
    let fixture = format!(
        "--- file min.js\n{long}\nshort\n{long}\n--- call read {{\"filePath\": \"min.js\"}}\n"
    );
    let output = helve_testkit::run(&DIALECT, tools(Arc::new(FakeMedia)), &fixture);
    expect![[r#"
        == min.js
        <file>
        00001| x×2000 … (line cut at 2000 characters)
        00002| short
        00003| x×2000 … (line cut at 2000 characters)

        (End of file, 3 lines)
        (Line 1 and 1 other line are cut. To see the rest, grep for a part of it, or print it in a shell: sed -n 1p FILE | cut -c 2001-4000)
        </file>
    "#]].assert_eq(&output.replace(&"x".repeat(2000), "x×2000"));
}
