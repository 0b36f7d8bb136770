//! What pictures in pixels need: a font, and the file's format.

use ab_glyph::{Font, FontVec, GlyphId, PxScale, ScaleFont, point};

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

/// Where a text begins.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Align {
    Left,
    Centre,
    Right,
}

impl Align {
    /// As SVG's text-anchor.
    pub fn anchor(self) -> &'static str {
        match self {
            Align::Left => "start",
            Align::Centre => "middle",
            Align::Right => "end",
        }
    }
}

/// A line of text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text {
    /// The middle of small letters; where along the line `align` says.
    pub at: (i32, i32),
    /// Pixels of an em, as in SVG.
    pub size: i32,
    pub align: Align,
    pub text: String,
}

impl Text {
    /// From the middle of a line to where its letters stand.
    pub fn baseline(&self) -> i32 {
        self.at.1 + self.size * 35 / 100
    }
}

/// The font of pictures in pixels.
pub struct Face(FontVec);

impl Face {
    /// # Errors
    /// No font is installed where distributions keep them.
    pub fn load() -> Result<Face, FontError> {
        let font = FONT_FILES.iter().find_map(|path| std::fs::read(path).ok()).ok_or(FontError)?;
        FontVec::try_from_vec(font).map(Face).map_err(|_| FontError)
    }

    /// The letters of a text, each where it stands: at fractions of a pixel, as who shows an SVG puts them.
    fn letters(&self, text: &Text) -> (Vec<(GlyphId, f32)>, f32) {
        let font = self.0.as_scaled(self.scale(text.size));
        let (mut x, mut last, mut letters) = (0.0, None, Vec::new());
        for letter in text.text.chars().map(|letter| font.glyph_id(letter)) {
            if let Some(last) = last.replace(letter) {
                x += font.kern(last, letter);
            }
            letters.push((letter, x));
            x += font.h_advance(letter);
        }
        (letters, x)
    }

    /// What makes an em so many pixels.
    fn scale(&self, size: i32) -> PxScale {
        let em = self.0.units_per_em().unwrap_or(self.0.height_unscaled());
        PxScale::from(size as f32 * self.0.height_unscaled() / em)
    }

    /// Pixels that a text takes.
    #[cfg(test)]
    pub fn width(&self, text: &Text) -> f32 {
        self.letters(text).1
    }

    /// Draw a text into a picture, three bytes a pixel, that is `size.0` wide.
    pub fn draw(&self, pixels: &mut [u8], size: (i32, i32), text: &Text, ink: (u8, u8, u8)) {
        let (letters, width) = self.letters(text);
        let begin = text.at.0 as f32
            - match text.align {
                Align::Left => 0.0,
                Align::Centre => width / 2.0,
                Align::Right => width,
            };
        for (letter, x) in letters {
            let place = point(begin + x, text.baseline() as f32);
            let Some(outline) = self.0.outline_glyph(letter.with_scale_and_position(self.scale(text.size), place))
            else {
                continue;
            };
            let corner = outline.px_bounds().min;
            outline.draw(|x, y, cover| {
                let (x, y) = (corner.x as i32 + x as i32, corner.y as i32 + y as i32);
                if (0..size.0).contains(&x) && (0..size.1).contains(&y) {
                    let at = 3 * (y * size.0 + x) as usize;
                    for (pixel, ink) in pixels[at..at + 3].iter_mut().zip([ink.0, ink.1, ink.2]) {
                        let cover = cover.clamp(0.0, 1.0);
                        *pixel = (f32::from(*pixel) * (1.0 - cover) + f32::from(ink) * cover).round() as u8;
                    }
                }
            });
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn text(words: &str, size: i32, align: Align) -> Text {
        Text { at: (100, 20), size, align, text: words.into() }
    }

    /// An em is what SVG takes it for, and letters stand where the font says: a line is as wide as its letters, to a fraction of a pixel.
    #[test]
    fn letters_are_spaced_as_the_font_says() {
        let Ok(face) = Face::load() else { return };
        let width = |words: &str, size: i32| face.width(&text(words, size, Align::Left));
        let one = face.0.as_scaled(face.scale(13)).h_advance(face.0.glyph_id('m'));
        assert!((width("mmmm", 13) - 4.0 * one).abs() < 1e-3);
        assert!((width("waits in MPI", 26) - 2.0 * width("waits in MPI", 13)).abs() < 1e-3, "nothing is rounded");
        let em = face.0.units_per_em().expect("units");
        let advance = face.0.h_advance_unscaled(face.0.glyph_id('m'));
        assert!((width("m", 100) - 100.0 * advance / em).abs() < 1e-2);
    }

    #[test]
    fn texts_lie_where_they_are_put() {
        let Ok(face) = Face::load() else { return };
        let columns = |align: Align| -> Vec<i32> {
            let mut pixels = vec![255u8; 3 * 200 * 40];
            face.draw(&mut pixels, (200, 40), &text("ready", 13, align), (0, 0, 0));
            let dark = |x: &i32| (0..40).any(|y| pixels[3 * (y * 200 + x) as usize] < 128);
            (0..200).filter(dark).collect()
        };
        let (left, centre, right) = (columns(Align::Left), columns(Align::Centre), columns(Align::Right));
        assert!(left[0] >= 100 && left[0] <= 102, "{left:?}");
        assert!(right.last() <= Some(&100), "{right:?}");
        assert!(centre[0] < 100 && centre.last() > Some(&100), "{centre:?}");
        // What does not fit is cut off.
        let mut pixels = vec![255u8; 3 * 10 * 10];
        face.draw(&mut pixels, (10, 10), &text("far away", 13, Align::Left), (0, 0, 0));
    }
}
