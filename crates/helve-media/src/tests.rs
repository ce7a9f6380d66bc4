//! Small valid and invalid images and documents.

mod pdf;

use std::io::{Cursor, Write};

use expect_test::{Expect, expect};
use helve_core::media::PageText;
use image::codecs::gif::GifEncoder;
use image::{DynamicImage, Frame, ImageFormat, Rgb, RgbImage, Rgba, RgbaImage};
use proptest::prelude::*;

use self::pdf::{document, page, stream_object, text_page};
use super::*;

fn decode(
    decoder: &Decoder,
    bytes: &[u8],
    format: MediaFormat,
) -> Result<MediaContent, MediaError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(decoder.decode(Bytes::copy_from_slice(bytes), format))
}

#[track_caller]
fn check(bytes: &[u8], format: MediaFormat, expected: Expect) {
    check_within(MediaLimits::default(), bytes, format, expected);
}

#[track_caller]
fn check_within(limits: MediaLimits, bytes: &[u8], format: MediaFormat, expected: Expect) {
    let text = match decode(&Decoder::new(limits), bytes, format) {
        Ok(MediaContent::Picture(it)) => {
            let decoded = image::load_from_memory(&it.bytes).unwrap();
            assert_eq!((decoded.width(), decoded.height()), (it.size.width, it.size.height));
            assert!(it.bytes.len().div_ceil(3) * 4 <= limits.base64_bytes);
            let state = if it.bytes == bytes { "unchanged" } else { "encoded again" };
            let (new, old) = (it.size, it.original);
            let size = format!("{}x{} of {}x{}", new.width, new.height, old.width, old.height);
            format!("{} {size}, {:?}, {state}", it.mime, it.frames)
        }
        Ok(MediaContent::Document(it)) => {
            format!("{} pages, {:?}: {:?}", it.count, it.ended, it.pages)
        }
        Err(why) => why.to_string(),
    };
    expected.assert_eq(&text);
}

fn encoded(image: &DynamicImage, format: ImageFormat) -> Vec<u8> {
    let mut bytes = Vec::new();
    image.write_to(&mut Cursor::new(&mut bytes), format).unwrap();
    bytes
}

/// An image with smooth colours, as in a photograph.
fn photo(width: u32, height: u32) -> DynamicImage {
    let byte = |value: u32| u8::try_from(value % 256).unwrap();
    let pixel = |x, y| Rgb([byte(x / 3), byte(y / 2), byte((x + y) / 5)]);
    DynamicImage::ImageRgb8(RgbImage::from_fn(width, height, pixel))
}

/// An image that cannot be compressed.
fn noise(width: u32, height: u32) -> DynamicImage {
    let mut state = 1_u32;
    let mut next = move || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state.to_be_bytes()[0]
    };
    let pixel = |_, _| Rgba([next(), next(), next(), 128]);
    DynamicImage::ImageRgba8(RgbaImage::from_fn(width, height, pixel))
}

fn animation(frames: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut encoder = GifEncoder::new(&mut bytes);
    for _ in 0..frames {
        encoder.encode_frame(Frame::new(photo(20, 10).into_rgba8())).unwrap();
    }
    drop(encoder);
    bytes
}

#[test]
fn images_that_fit_are_unchanged() {
    let photo = photo(40, 30);
    for (kind, format, mime) in [
        (ImageFormat::Png, MediaFormat::Png, "image/png"),
        (ImageFormat::Jpeg, MediaFormat::Jpeg, "image/jpeg"),
        (ImageFormat::Gif, MediaFormat::Gif, "image/gif"),
        (ImageFormat::WebP, MediaFormat::Webp, "image/webp"),
    ] {
        let bytes = encoded(&photo, kind);
        let Ok(MediaContent::Picture(it)) = decode(&Decoder::default(), &bytes, format) else {
            panic!()
        };
        assert_eq!((it.mime, &it.bytes[..]), (mime, &bytes[..]));
    }
}

#[test]
fn large_images_are_shrunk() {
    let png = encoded(&photo(3000, 100), ImageFormat::Png);
    check(&png, MediaFormat::Png, expect!["image/png 2000x66 of 3000x100, One, encoded again"]);
    let jpeg = encoded(&photo(100, 2100), ImageFormat::Jpeg);
    check(&jpeg, MediaFormat::Jpeg, expect!["image/jpeg 95x2000 of 100x2100, One, encoded again"]);
    let thin = encoded(&photo(9000, 1), ImageFormat::Png);
    check(&thin, MediaFormat::Png, expect!["image/png 2000x1 of 9000x1, One, encoded again"]);
    let small = MediaLimits { base64_bytes: 8_000, ..MediaLimits::default() };
    let noise = encoded(&noise(200, 200), ImageFormat::Png);
    check_within(
        small,
        &noise,
        MediaFormat::Png,
        expect!["image/jpeg 150x150 of 200x200, One, encoded again"],
    );
    let tiny = MediaLimits { base64_bytes: 8, ..MediaLimits::default() };
    check_within(tiny, &noise, MediaFormat::Png, expect!["the image cannot be scaled down enough"]);
}

#[test]
fn bmp_files_and_animations_become_png() {
    let bmp = encoded(&photo(12, 8), ImageFormat::Bmp);
    check(&bmp, MediaFormat::Bmp, expect!["image/png 12x8 of 12x8, One, encoded again"]);
    check(&animation(1), MediaFormat::Gif, expect!["image/gif 20x10 of 20x10, One, unchanged"]);
    check(
        &animation(3),
        MediaFormat::Gif,
        expect!["image/png 20x10 of 20x10, FirstOfMany, encoded again"],
    );
}

#[test]
fn invalid_images_are_refused() {
    check(b"just text\n", MediaFormat::Png, expect!["the content does not match the format"]);
    check(b"", MediaFormat::Jpeg, expect!["the content does not match the format"]);
    check(
        b"\x89PNG\r\n\x1a\n",
        MediaFormat::Png,
        expect!["the file is damaged: unexpected end of file"],
    );
    let png = encoded(&photo(40, 30), ImageFormat::Png);
    check(
        &png[..png.len() / 2],
        MediaFormat::Png,
        expect!["the file is damaged: unexpected end of file"],
    );
    let gif = animation(1);
    check(
        &gif[..gif.len() / 2],
        MediaFormat::Gif,
        expect!["the file is damaged: Format error decoding Gif: Unexpected End of File"],
    );
    let webp = encoded(&photo(40, 30), ImageFormat::WebP);
    check(
        &webp[..webp.len() / 2],
        MediaFormat::Webp,
        expect!["the file is damaged: Format error decoding WebP: Corrupt bitstream"],
    );
    let jpeg = encoded(&photo(400, 300), ImageFormat::Jpeg);
    check(
        &jpeg[..100],
        MediaFormat::Jpeg,
        expect![[r#"
            the file is damaged: Format error decoding Jpeg: I/O errors Not enough bytes, expected 64 but found 56
        "#]],
    );
}

#[test]
fn a_jpeg_that_is_cut_after_its_header_is_encoded_again() {
    let jpeg = encoded(&photo(400, 300), ImageFormat::Jpeg);
    check(
        &jpeg[..jpeg.len() / 2],
        MediaFormat::Jpeg,
        expect!["image/jpeg 400x300 of 400x300, One, encoded again"],
    );
}

/// A header that claims more pixels than fit into memory.
#[test]
fn a_decompression_bomb_is_refused_before_decoding() {
    let mut header = b"IHDR".to_vec();
    header.extend(50_000_u32.to_be_bytes());
    header.extend(50_000_u32.to_be_bytes());
    header.extend([8, 6, 0, 0, 0]);
    let mut crc = flate2::Crc::new();
    crc.update(&header);
    let mut png = b"\x89PNG\r\n\x1a\n\0\0\0\x0d".to_vec();
    png.extend(&header);
    png.extend(crc.sum().to_be_bytes());
    png.extend(b"\0\0\0\0IDAT\x35\xaf\x06\x1e");
    check(
        &png,
        MediaFormat::Png,
        expect!["the image has 50000 × 50000 pixels; the limit is 64000000"],
    );
    let low_memory = MediaLimits { memory: 1000, ..MediaLimits::default() };
    let photo = encoded(&photo(100, 100), ImageFormat::Png);
    check_within(
        low_memory,
        &photo,
        MediaFormat::Png,
        expect!["decoding the image needs too much memory"],
    );
    let small_file = MediaLimits { file_bytes: 100, ..MediaLimits::default() };
    check_within(
        small_file,
        &[0; 101],
        MediaFormat::Png,
        expect!["the file has 101 bytes; the limit is 100"],
    );
}

#[test]
fn a_document_is_read_page_by_page() {
    let three_pages =
        document(&[text_page("Hello, world"), text_page("Second page"), page("", "")]);
    check(
        &three_pages,
        MediaFormat::Pdf,
        expect![[r#"3 pages, Complete: [Text("Hello, world"), Text("Second page"), NoText]"#]],
    );
    let blank = document(&[text_page("")]);
    check(&blank, MediaFormat::Pdf, expect!["1 pages, Complete: [NoText]"]);
    let one = MediaLimits { pages: 1, ..MediaLimits::default() };
    check_within(
        one,
        &three_pages,
        MediaFormat::Pdf,
        expect![[r#"3 pages, LimitReached: [Text("Hello, world")]"#]],
    );
    let little_text = MediaLimits { text_bytes: 5, ..MediaLimits::default() };
    check_within(
        little_text,
        &three_pages,
        MediaFormat::Pdf,
        expect![[r#"3 pages, LimitReached: [Text("Hell")]"#]],
    );
}

#[test]
fn invalid_documents_are_refused() {
    check(b"<html>404</html>", MediaFormat::Pdf, expect!["the content does not match the format"]);
    check(
        b"%PDF-1.7\nnothing more\n",
        MediaFormat::Pdf,
        expect!["the file is damaged: failed parsing cross reference table: invalid start value"],
    );
    let whole = document(&[text_page("Hello")]);
    check(
        &whole[..whole.len() / 2],
        MediaFormat::Pdf,
        expect!["the file is damaged: failed parsing cross reference table: invalid start value"],
    );
    check(&document(&[]), MediaFormat::Pdf, expect!["the file is damaged: it has no pages"]);
}

#[test]
fn a_decompression_bomb_in_a_document_is_not_expanded() {
    let mut compressed = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
    compressed.write_all(&vec![b' '; 40 << 20]).unwrap();
    let compressed = compressed.finish().unwrap();
    let page_with = |content: Vec<u8>| pdf::PdfPage { content, resources: String::new() };
    let once = stream_object("/Filter /FlateDecode", &compressed);
    check(&document(&[page_with(once)]), MediaFormat::Pdf, expect!["1 pages, TooComplex: []"]);
    let twice = stream_object("/Filter [/FlateDecode /FlateDecode]", &compressed);
    check(
        &document(&[page_with(twice)]),
        MediaFormat::Pdf,
        expect!["the file is damaged: a stream is compressed twice"],
    );
    let wide = stream_object(
        "/Filter /FlateDecode /DecodeParms << /Predictor 12 /Columns 99999999999 >>",
        b"x",
    );
    check(
        &document(&[page_with(wide)]),
        MediaFormat::Pdf,
        expect!["the file is damaged: it contains a number that is too large"],
    );
}

/// Huge numbers are refused only after `/Columns` and in lists of widths (`/W`): the `/ID` that TeX writes next to `/W`
/// may consist of digits.
#[test]
fn long_numbers_outside_width_lists_are_accepted() {
    let entries = "/W [1 3 1] /ID [<19970829123456789012345678901234>] /Columns 5";
    let page = page(entries, "BT /F1 12 Tf 20 100 Td (Fine) Tj ET");
    check(&document(&[page]), MediaFormat::Pdf, expect![[r#"1 pages, Complete: [Text("Fine")]"#]]);
    let widths = stream_object("/W [1 99999999999 1]", b"x");
    let page = pdf::PdfPage { content: widths, resources: String::new() };
    let expected = expect!["the file is damaged: it contains a number that is too large"];
    check(&document(&[page]), MediaFormat::Pdf, expected);
}

#[test]
fn recursive_forms_and_page_trees_are_refused() {
    let recursive_form = pdf::document_with_recursive_form();
    check(&recursive_form, MediaFormat::Pdf, expect!["1 pages, TooComplex: []"]);
    let cyclic_page_tree = pdf::document_with_cyclic_page_tree();
    check(&cyclic_page_tree, MediaFormat::Pdf, expect!["1 pages, TooComplex: []"]);
}

#[test]
fn permits_are_released_after_decoding() {
    let decoder = Decoder::default();
    let png = encoded(&photo(8, 8), ImageFormat::Png);
    for _ in 0..5 {
        assert!(decode(&decoder, &png, MediaFormat::Png).is_ok());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn arbitrary_bytes_do_not_panic(
        which in 0..6_usize,
        tail in proptest::collection::vec(any::<u8>(), 0..200),
        flips in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..8),
        cut in any::<prop::sample::Index>(),
    ) {
        let photo = photo(20, 10);
        let (mut bytes, format) = match which {
            0 => (encoded(&photo, ImageFormat::Png), MediaFormat::Png),
            1 => (encoded(&photo, ImageFormat::Jpeg), MediaFormat::Jpeg),
            2 => (animation(2), MediaFormat::Gif),
            3 => (encoded(&photo, ImageFormat::WebP), MediaFormat::Webp),
            4 => (encoded(&photo, ImageFormat::Bmp), MediaFormat::Bmp),
            _ => (document(&[text_page("Hello")]), MediaFormat::Pdf),
        };
        for (at, byte) in flips {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        bytes.truncate(cut.index(bytes.len()) + 1);
        bytes.extend(tail);
        match decode(&Decoder::default(), &bytes, format) {
            Ok(MediaContent::Document(it)) => prop_assert!(it.pages.len() <= it.count),
            Ok(MediaContent::Picture(it)) => prop_assert!(it.size.width.max(it.size.height) <= 2000),
            Err(why) => prop_assert!(!why.to_string().is_empty()),
        }
    }
}

#[test]
fn a_broken_page_does_not_affect_other_pages() {
    let strange = pdf::PdfPage {
        content: stream_object("", b"BT /F1 12 Tf (x) Tj ET"),
        resources: "/Font << /F1 << /Type /Font /Subtype /Type0 /Encoding /Nonsense >> >>".into(),
    };
    let bytes = document(&[strange, text_page("Good")]);
    let Ok(MediaContent::Document(it)) = decode(&Decoder::default(), &bytes, MediaFormat::Pdf)
    else {
        panic!()
    };
    assert_eq!(it.pages, [PageText::Unreadable, PageText::Text("Good".into())]);
}
