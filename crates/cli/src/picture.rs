//! A picture of the Mandelbrot set: converts the guest's numbers to colours, and colours to a PNG file or
//! characters.

use std::io::Write;
use std::sync::LazyLock;

use crate::failure::Result;

/// Red, green and blue as linear amounts of light, 0 to 1, which can be added and averaged.
type Light = [f32; 3];

/// Pixels, row by row from the top.
pub(crate) struct Picture {
    width: usize,
    pixels: Vec<Light>,
}

/// How a picture is drawn in a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    /// Two pixels per character, in 24-bit colour.
    Colour,
    /// One shade per character, without colours.
    Plain,
}

impl Picture {
    /// Makes an empty picture of this width.
    pub(crate) fn new(width: usize) -> Picture {
        Picture { width, pixels: Vec::new() }
    }

    fn height(&self) -> usize {
        self.pixels.len() / self.width
    }

    /// Adds a row at the bottom from the guest's two buffers (see guests/src/mandelbrot.c).
    pub(crate) fn push_row(&mut self, counts: &[u16], squares: &[u16], limit: u16) {
        let pixels = counts.iter().zip(squares);
        self.pixels.extend(pixels.map(|(&count, &square)| colour(count, square, limit)));
    }

    /// Writes a PNG file of 8 bits per channel.
    pub(crate) fn write_png(&self, out: impl Write) -> Result<(), png::EncodingError> {
        let mut encoder = png::Encoder::new(out, self.width as u32, self.height() as u32);
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_depth(png::BitDepth::Eight);
        encoder.set_source_srgb(png::SrgbRenderingIntent::Perceptual);
        let bytes: Vec<u8> = self.pixels.iter().flat_map(|light| to_srgb(*light)).collect();
        let mut writer = encoder.write_header()?;
        writer.write_image_data(&bytes)?;
        writer.finish()
    }

    /// Draws it with at most this many characters.
    pub(crate) fn draw(
        &self,
        out: &mut impl Write,
        style: Style,
        columns: usize,
        lines: usize,
    ) -> Result<()> {
        let (width, height) = self.fit(columns, lines);
        match style {
            Style::Colour => self.shrink(width, 2 * height).draw_colours(out),
            Style::Plain => self.shrink(width, height).draw_shades(out),
        }
    }

    /// Returns columns and lines that fit the picture's shape; characters are twice as high as wide.
    fn fit(&self, columns: usize, lines: usize) -> (usize, usize) {
        let lines_per_column = self.height() as f64 / self.width as f64 / 2.0;
        let most = (lines as f64 / lines_per_column) as usize;
        let columns = columns.min(most).min(self.width).max(1);
        (columns, ((columns as f64 * lines_per_column).round() as usize).max(1))
    }

    /// Scales the picture down; each pixel is the average of those it covers.
    fn shrink(&self, width: usize, height: usize) -> Picture {
        // From `index` of `count` parts of `len`: at least one pixel.
        let part = |index: usize, count: usize, len: usize| {
            let start = (index * len / count).min(len - 1);
            start..((index + 1) * len / count).clamp(start + 1, len)
        };
        let average = |row: usize, column: usize| {
            let rows = part(row, height, self.height());
            let columns = part(column, width, self.width);
            let area = (rows.len() * columns.len()) as f32;
            let pixels = rows.flat_map(|y| {
                let start = y * self.width;
                &self.pixels[start + columns.start..start + columns.end]
            });
            let sum = pixels.fold([0.0; 3], |sum, light| zip(sum, *light, |a, b| a + b));
            sum.map(|channel| channel / area)
        };
        let pixels = (0..height).flat_map(|row| (0..width).map(move |column| (row, column)));
        Picture { width, pixels: pixels.map(|(row, column)| average(row, column)).collect() }
    }

    /// Draws upper half blocks: the foreground is the upper pixel, the background the lower one.
    fn draw_colours(&self, out: &mut impl Write) -> Result<()> {
        for rows in self.pixels.chunks_exact(2 * self.width) {
            let (upper, lower) = rows.split_at(self.width);
            for (upper, lower) in upper.iter().zip(lower) {
                let [r, g, b] = to_srgb(*upper);
                write!(out, "\x1b[38;2;{r};{g};{b}m")?;
                let [r, g, b] = to_srgb(*lower);
                write!(out, "\x1b[48;2;{r};{g};{b}m▀")?;
            }
            writeln!(out, "\x1b[0m")?;
        }
        Ok(())
    }

    fn draw_shades(&self, out: &mut impl Write) -> Result<()> {
        const SHADES: &[u8] = b" .:-=+*#%@";
        for row in self.pixels.chunks_exact(self.width) {
            let shade = |light: &Light| {
                let [r, g, b] = to_srgb(*light).map(usize::from);
                // Weights of Rec. 709, which is what sRGB displays have.
                let luma = (2126 * r + 7152 * g + 722 * b) / 10_000;
                char::from(SHADES[luma * SHADES.len() / 256])
            };
            let line: String = row.iter().map(shade).collect();
            writeln!(out, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

fn zip(a: Light, b: Light, f: impl Fn(f32, f32) -> f32) -> Light {
    std::array::from_fn(|channel| f(a[channel], b[channel]))
}

/// Returns the colour of a point that left the circle of radius 2 after `count` iterations with |z|² at
/// `square` / 256; black if it was still inside at the limit.
fn colour(count: u16, square: u16, limit: u16) -> Light {
    if count >= limit {
        return [0.0; 3];
    }
    let square = f32::from(square.max(1025)) / 256.0;
    // Without the fraction, bands of equal counts would show.
    let smooth = f32::from(count) + 1.0 - (square.log2() / 2.0).log2();
    palette(smooth.max(1.0).log2())
}

/// Colours in sRGB, by the binary logarithm of the iterations after which a point leaves.
const STOPS: [(f32, [u8; 3]); 9] = [
    (0.0, [2, 2, 8]),
    (1.6, [4, 8, 30]),
    (2.6, [13, 42, 116]),
    (3.5, [30, 110, 204]),
    (4.4, [150, 216, 250]),
    (5.2, [255, 240, 190]),
    (6.2, [255, 158, 36]),
    (7.6, [176, 36, 70]),
    (10.0, [40, 6, 60]),
];

/// Interpolates between the colours; outside of them, returns the nearest.
fn palette(place: f32) -> Light {
    let next = STOPS.partition_point(|(stop, _)| *stop <= place);
    let next = next.clamp(1, STOPS.len() - 1);
    let ((start, from), (end, to)) = (STOPS[next - 1], STOPS[next]);
    let way = ((place - start) / (end - start)).clamp(0.0, 1.0);
    // Eased, so that no edge shows at a stop.
    let way = way * way * (3.0 - 2.0 * way);
    zip(from_srgb(from), from_srgb(to), |a, b| a + (b - a) * way)
}

static LIGHT: LazyLock<[f32; 256]> = LazyLock::new(|| {
    std::array::from_fn(|value| match value as f32 / 255.0 {
        v if v <= 0.04045 => v / 12.92,
        v => ((v + 0.055) / 1.055).powf(2.4),
    })
});

fn from_srgb(colour: [u8; 3]) -> Light {
    colour.map(|channel| LIGHT[usize::from(channel)])
}

fn to_srgb(light: Light) -> [u8; 3] {
    light.map(|channel| {
        let value = match channel {
            c if c <= 0.003_130_8 => c * 12.92,
            c => 1.055 * c.powf(1.0 / 2.4) - 0.055,
        };
        (value * 255.0).round() as u8
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two rows: the left half is in the set, the right half far from it or near.
    fn picture() -> Picture {
        let mut picture = Picture::new(4);
        picture.push_row(&[50, 50, 1, 1], &[0, 0, 2000, 2000], 50);
        picture.push_row(&[50, 50, 30, 30], &[0, 0, 2000, 2000], 50);
        picture
    }

    fn drawn(style: Style) -> String {
        let mut text = Vec::new();
        picture().draw(&mut text, style, 80, 24).unwrap();
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn colours_come_back_from_light() {
        for value in 0..=255 {
            assert_eq!(to_srgb(from_srgb([value; 3])), [value; 3]);
        }
        for (place, colour) in STOPS {
            assert_eq!(to_srgb(palette(place)), colour);
        }
    }

    #[test]
    fn neighbouring_counts_have_neighbouring_colours() {
        // Just before and just after a step of the count.
        let (before, after) = (colour(40, 4095, 100), colour(41, 1025, 100));
        let far = zip(before, after, |a, b| (a - b).abs());
        assert!(far.iter().all(|channel| *channel < 0.1), "{far:?}");
    }

    #[test]
    fn the_set_is_black_and_its_border_bright() {
        assert_eq!(colour(50, 0, 50), [0.0; 3]);
        let shades = drawn(Style::Plain);
        assert_eq!(shades.lines().count(), 1);
        assert!(shades.starts_with("  ") && shades.trim().len() == 2);
    }

    #[test]
    fn a_character_holds_two_pixels() {
        let text = drawn(Style::Colour);
        assert_eq!(text.matches('▀').count(), 4);
        assert!(text.starts_with("\x1b[38;2;0;0;0m\x1b[48;2;0;0;0m"));
        assert!(text.ends_with("\x1b[0m\n"));
    }

    #[test]
    fn the_file_is_a_picture_of_that_size() {
        let mut file = Vec::new();
        picture().write_png(&mut file).unwrap();
        let reader = png::Decoder::new(std::io::Cursor::new(file)).read_info();
        assert_eq!(reader.unwrap().info().size(), (4, 2));
    }
}
