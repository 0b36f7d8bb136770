//! What pictures in pixels need: a font, and the file's format.

use plotters::style::{FontStyle, register_font};

pub const FONT: &str = "sans-serif";
/// Where distributions keep a plain font.
const FONT_FILES: &[&str] = &[
    "/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf",
    "/usr/share/fonts/dejavu-sans-fonts/DejaVuSans.ttf",
    "/usr/share/fonts/TTF/DejaVuSans.ttf",
    "/usr/share/fonts/truetype/liberation/LiberationSans-Regular.ttf",
    "/usr/share/fonts/liberation-sans/LiberationSans-Regular.ttf",
    "/usr/share/fonts/truetype/freefont/FreeSans.ttf",
];

/// There is no font.
#[derive(Debug, thiserror::Error)]
#[error("a PNG needs a TrueType font, and none was found (fonts-dejavu-core has one); SVG needs none")]
pub struct FontError;

/// Make [`FONT`] known to plotters.
///
/// # Errors
/// No font is installed where distributions keep them.
pub fn register() -> Result<(), FontError> {
    let font = FONT_FILES.iter().find_map(|path| std::fs::read(path).ok()).ok_or(FontError)?;
    // Registered once in a process's life: so it may stay.
    register_font(FONT, FontStyle::Normal, Box::leak(font.into_boxed_slice())).map_err(|_| FontError)
}

/// `pixels`: red, green, blue.
///
/// # Errors
/// Those of the encoder.
pub fn encode_png(pixels: &[u8], width: u32, height: u32) -> Result<Vec<u8>, png::EncodingError> {
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, width, height);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    let mut writer = encoder.write_header()?;
    writer.write_image_data(pixels)?;
    writer.finish()?;
    Ok(file)
}
