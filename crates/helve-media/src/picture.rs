//! Images: checks their size before decoding, decodes them completely, and shrinks them if necessary.

use std::io::Cursor;
use std::time::Instant;

use bytes::Bytes;
use fast_image_resize::Resizer;
use helve_core::media::{Frames, MediaError, MediaFormat, Picture, PixelSize};
use image::codecs::gif::GifDecoder;
use image::codecs::jpeg::JpegEncoder;
use image::codecs::webp::WebPDecoder;
use image::{
    AnimationDecoder, DynamicImage, GenericImageView, ImageDecoder, ImageError, ImageFormat,
    ImageReader, RgbImage, Rgba,
};

use crate::{MediaLimits, broken};

/// Maximum number of times an image is shrunk, each time to three quarters.
const MAX_SHRINKS: usize = 32;
/// How many bytes at the end of a JPEG are searched for its end marker.
const END_MARKER_RANGE: usize = 4096;
/// JPEG qualities in the order they are tried; the first whose result fits is used.
const QUALITIES: [u8; 4] = [80, 70, 55, 40];

pub(super) fn decode(
    bytes: &Bytes,
    format: MediaFormat,
    limits: &MediaLimits,
    deadline: Instant,
) -> Result<Picture, MediaError> {
    let stored_size = measure(bytes, format)?;
    if u64::from(stored_size.width) * u64::from(stored_size.height) > limits.pixels {
        return Err(MediaError::TooManyPixels { size: stored_size, limit: limits.pixels });
    }
    let image = decode_image(bytes, format, limits)?;
    let frames = frames(bytes, format, limits);
    // The size once the file's orientation tag has been applied.
    let oriented_size = PixelSize { width: image.width(), height: image.height() };
    let fits = stored_size.width.max(stored_size.height) <= limits.side
        && base64_size(bytes.len()) <= limits.base64_bytes;
    if fits && frames == Frames::One && is_accepted_by_providers(bytes, format) {
        let mime = format.mime();
        let bytes = bytes.clone();
        // The file is passed on unchanged, with its orientation tag, so `size` and `original` are both the size in its
        // header.
        return Ok(Picture { mime, bytes, size: stored_size, original: stored_size, frames });
    }
    let (mime, bytes, size) = encode_to_fit(image, format, limits, deadline)?;
    Ok(Picture { mime, bytes, size, original: oriented_size, frames })
}

/// Whether providers accept the file unchanged. They do not accept BMP files, and may refuse a truncated JPEG, which
/// our decoder accepts.
fn is_accepted_by_providers(bytes: &Bytes, format: MediaFormat) -> bool {
    match format {
        MediaFormat::Png | MediaFormat::Gif | MediaFormat::Webp => true,
        MediaFormat::Jpeg => {
            bytes.windows(2).rev().take(END_MARKER_RANGE).any(|two| two == [0xff, 0xd9])
        }
        MediaFormat::Bmp | MediaFormat::Pdf => false,
    }
}

fn reader(bytes: &Bytes, format: MediaFormat) -> Result<ImageReader<Cursor<&[u8]>>, MediaError> {
    let kind = match format {
        MediaFormat::Png => ImageFormat::Png,
        MediaFormat::Jpeg => ImageFormat::Jpeg,
        MediaFormat::Gif => ImageFormat::Gif,
        MediaFormat::Webp => ImageFormat::WebP,
        MediaFormat::Bmp => ImageFormat::Bmp,
        MediaFormat::Pdf => return Err(MediaError::WrongFormat),
    };
    Ok(ImageReader::with_format(Cursor::new(bytes), kind))
}

/// Reads the size from the header.
fn measure(bytes: &Bytes, format: MediaFormat) -> Result<PixelSize, MediaError> {
    let mut reader = reader(bytes, format)?;
    // The caller checks the size and has a better error message.
    reader.no_limits();
    let (width, height) = reader.into_dimensions().map_err(image_error)?;
    if width == 0 || height == 0 {
        return Err(broken("it has no pixels"));
    }
    Ok(PixelSize { width, height })
}

fn decode_image(
    bytes: &Bytes,
    format: MediaFormat,
    limits: &MediaLimits,
) -> Result<DynamicImage, MediaError> {
    let mut reader = reader(bytes, format)?;
    reader.limits(decoder_limits(limits));
    let mut decoder = reader.into_decoder().map_err(image_error)?;
    if decoder.total_bytes() > limits.memory {
        return Err(MediaError::TooMuchMemory);
    }
    // An image with a missing or invalid orientation is used as it is.
    let orientation = decoder.orientation().ok();
    let mut image = DynamicImage::from_decoder(decoder).map_err(image_error)?;
    if let Some(orientation) = orientation {
        image.apply_orientation(orientation);
    }
    Ok(image)
}

fn decoder_limits(limits: &MediaLimits) -> image::Limits {
    let mut decoder_limits = image::Limits::no_limits();
    decoder_limits.max_alloc = Some(limits.memory);
    decoder_limits
}

/// Returns whether the image has one frame or several. Decodes at most two frames to find out.
fn frames(bytes: &Bytes, format: MediaFormat, limits: &MediaLimits) -> Frames {
    let is_animated = match format {
        MediaFormat::Gif => GifDecoder::new(Cursor::new(bytes)).is_ok_and(|mut decoder| {
            decoder.set_limits(decoder_limits(limits)).is_ok()
                && decoder.into_frames().take(2).filter(Result::is_ok).count() == 2
        }),
        MediaFormat::Webp => {
            WebPDecoder::new(Cursor::new(bytes)).is_ok_and(|decoder| decoder.has_animation())
        }
        MediaFormat::Png | MediaFormat::Jpeg | MediaFormat::Bmp | MediaFormat::Pdf => false,
    };
    if is_animated { Frames::FirstOfMany } else { Frames::One }
}

/// Encodes an image, shrunk in steps until it fits.
fn encode_to_fit(
    image: DynamicImage,
    format: MediaFormat,
    limits: &MediaLimits,
    deadline: Instant,
) -> Result<(&'static str, Bytes, PixelSize), MediaError> {
    let original = PixelSize { width: image.width(), height: image.height() };
    let mut image = to_eight_bits(image);
    let mut size = scale_to_side(original, limits.side);
    for _ in 0..MAX_SHRINKS {
        if Instant::now() > deadline {
            return Err(MediaError::TimedOut(limits.time));
        }
        if size != (PixelSize { width: image.width(), height: image.height() }) {
            image = resize(&image, size)?;
        }
        if let Some((mime, bytes)) = encode(&image, format, limits)? {
            return Ok((mime, bytes, size));
        }
        if size == (PixelSize { width: 1, height: 1 }) {
            break;
        }
        let smaller = |side: u32| (side * 3 / 4).max(1);
        size = PixelSize { width: smaller(size.width), height: smaller(size.height) };
    }
    Err(MediaError::NotSmallEnough { size: original })
}

/// Converts to eight bits per channel, which every provider accepts. Grey images stay grey.
fn to_eight_bits(image: DynamicImage) -> DynamicImage {
    match (image.color().has_alpha(), image.color().has_color()) {
        (true, _) => DynamicImage::ImageRgba8(image.into_rgba8()),
        (false, true) => DynamicImage::ImageRgb8(image.into_rgb8()),
        (false, false) => DynamicImage::ImageLuma8(image.into_luma8()),
    }
}

/// Scales a size down so that its longer side is at most `side`.
fn scale_to_side(size: PixelSize, side: u32) -> PixelSize {
    let longest = size.width.max(size.height);
    if longest <= side {
        return size;
    }
    let scaled = |length: u32| {
        let exact = u64::from(length) * u64::from(side) / u64::from(longest);
        u32::try_from(exact).unwrap_or(side).clamp(1, side)
    };
    PixelSize { width: scaled(size.width), height: scaled(size.height) }
}

/// Resizes with a Lanczos3 filter.
fn resize(image: &DynamicImage, size: PixelSize) -> Result<DynamicImage, MediaError> {
    let mut smaller = DynamicImage::new(size.width, size.height, image.color());
    Resizer::new().resize(image, &mut smaller, None).map_err(broken)?;
    Ok(smaller)
}

/// Encodes an image as PNG or, if that is too large, as JPEG. Returns `None` if it is too large even at the lowest JPEG
/// quality. PNG suits drawings, JPEG suits photographs.
fn encode(
    image: &DynamicImage,
    format: MediaFormat,
    limits: &MediaLimits,
) -> Result<Option<(&'static str, Bytes)>, MediaError> {
    let fits = |bytes: &[u8]| base64_size(bytes.len()) <= limits.base64_bytes;
    if format != MediaFormat::Jpeg {
        let mut bytes = Vec::new();
        image.write_to(&mut Cursor::new(&mut bytes), ImageFormat::Png).map_err(image_error)?;
        if fits(&bytes) {
            return Ok(Some(("image/png", bytes.into())));
        }
    }
    let opaque = on_white(image);
    for quality in QUALITIES {
        let mut bytes = Vec::new();
        JpegEncoder::new_with_quality(&mut bytes, quality)
            .encode_image(&opaque)
            .map_err(image_error)?;
        if fits(&bytes) {
            return Ok(Some(("image/jpeg", bytes.into())));
        }
    }
    Ok(None)
}

/// Puts an image on a white background, since JPEG has no transparency.
fn on_white(image: &DynamicImage) -> RgbImage {
    if !image.color().has_alpha() {
        return image.to_rgb8();
    }
    RgbImage::from_fn(image.width(), image.height(), |x, y| {
        let Rgba([red, green, blue, alpha]) = image.get_pixel(x, y);
        let alpha = u16::from(alpha);
        let mixed = |channel: u8| {
            let sum = u16::from(channel) * alpha + 255 * (255 - alpha);
            u8::try_from(sum / 255).unwrap_or(u8::MAX)
        };
        image::Rgb([mixed(red), mixed(green), mixed(blue)])
    })
}

fn base64_size(bytes: usize) -> usize {
    bytes.div_ceil(3) * 4
}

fn image_error(error: ImageError) -> MediaError {
    match error {
        ImageError::Limits(_) => MediaError::TooMuchMemory,
        other => broken(other),
    }
}
