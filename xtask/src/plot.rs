//! Draws plots as SVG: lines over two logarithmic axes.
//!
//! Colours, including the background, follow the reader's light or dark mode, so that the picture is readable
//! on every page.

use std::fmt::Write as _;

use crate::text::thousands;

/// A line and the name at its end.
pub(crate) struct Line {
    pub(crate) name: String,
    /// From left to right; above zero.
    pub(crate) points: Vec<(f64, f64)>,
}

const WIDTH: f64 = 860.0;
const HEIGHT: f64 = 500.0;
/// Where the axes cross and end; names of lines are to the right.
const LEFT: f64 = 80.0;
const RIGHT: f64 = 750.0;
const TOP: f64 = 20.0;
const BOTTOM: f64 = 440.0;
/// Between names of lines.
const LINE_HEIGHT: f64 = 15.0;

/// Colours on white and on black; they repeat if there are more lines.
const COLOURS: [(&str, &str); 8] = [
    ("#0072b2", "#56b4e9"),
    ("#d55e00", "#ff8c42"),
    ("#007f5f", "#2dd4a7"),
    ("#a3367f", "#f291cf"),
    ("#8a6d00", "#f0e442"),
    ("#333333", "#e6e6e6"),
    ("#5b4fc4", "#a99cff"),
    ("#b3202a", "#ff7b85"),
];

/// A logarithmic scale: powers of ten and their pixels.
struct Axis {
    low: f64,
    high: f64,
    start: f64,
    end: f64,
}

impl Axis {
    /// Makes an axis from the power of ten below all values to the largest value.
    fn over(values: impl Iterator<Item = f64>, start: f64, end: f64) -> Axis {
        let (low, high) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
            (low.min(value.log10()), high.max(value.log10()))
        });
        let low = low.floor();
        // At least one step, so that the axis is not empty.
        Axis { low, high: high.max(low + 1.0), start, end }
    }

    /// Extends the axis to the next power of ten.
    fn rounded_up(self) -> Axis {
        Axis { high: self.high.ceil(), ..self }
    }

    fn at(&self, value: f64) -> f64 {
        let part = (value.log10() - self.low) / (self.high - self.low);
        self.start + part * (self.end - self.start)
    }

    /// Returns the powers of ten on it.
    fn ticks(&self) -> impl Iterator<Item = i32> {
        self.low as i32..=self.high.floor() as i32
    }
}

/// Draws the picture.
pub(crate) fn log_log(x_label: &str, y_label: &str, lines: &[Line]) -> String {
    let points = || lines.iter().flat_map(|line| &line.points);
    let x = Axis::over(points().map(|point| point.0), LEFT, RIGHT);
    let y = Axis::over(points().map(|point| point.1), BOTTOM, TOP).rounded_up();
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" \
         aria-label=\"{y_label} over {x_label}\">\n{}<rect class=\"paper\" width=\"{WIDTH}\" \
         height=\"{HEIGHT}\"/>\n",
        style()
    );
    svg += &grid(&x, &y);
    svg += &text((LEFT + RIGHT) / 2.0, BOTTOM + 45.0, "middle", x_label);
    let middle = (TOP + BOTTOM) / 2.0;
    let turned = format!("middle\" transform=\"rotate(-90 22 {middle})");
    svg += &text(22.0, middle, &turned, y_label);
    let heights = name_heights(lines, &y);
    for (number, (line, height)) in lines.iter().zip(heights).enumerate() {
        let points: Vec<_> = line.points.iter().map(|p| (x.at(p.0), y.at(p.1))).collect();
        svg += &curve(number % COLOURS.len(), &points, &line.name, height);
    }
    svg + "</svg>\n"
}

fn style() -> String {
    let colours = |choose: fn(&(&'static str, &'static str)) -> &'static str| {
        let mut rules = String::new();
        for (number, colour) in COLOURS.iter().map(choose).enumerate() {
            let _ = write!(rules, " .c{number} {{ stroke: {colour}; fill: {colour} }}");
        }
        rules
    };
    format!(
        "<style>\n\
         text {{ font: 13px system-ui, sans-serif; fill: #1f2328; stroke: none }}\n\
         .paper {{ fill: #ffffff }} .grid {{ stroke: #d0d7de }}\n\
         polyline {{ stroke-width: 2; fill: none !important }}\n\
         {}\n\
         @media (prefers-color-scheme: dark) {{\n\
         text {{ fill: #e6edf3 }} .paper {{ fill: #0d1117 }} .grid {{ stroke: #30363d }}\n\
         {}\n}}\n</style>\n",
        colours(|colour| colour.0).trim(),
        colours(|colour| colour.1).trim()
    )
}

/// Draws lines at the powers of ten, with their numbers.
fn grid(x: &Axis, y: &Axis) -> String {
    let mut svg = String::new();
    for tick in x.ticks() {
        let at = x.at(10f64.powi(tick));
        svg += &segment("grid", (at, TOP), (at, BOTTOM));
        svg += &text(at, BOTTOM + 20.0, "middle", &thousands(10u64.pow(tick.unsigned_abs())));
    }
    for tick in y.ticks() {
        let at = y.at(10f64.powi(tick));
        svg += &segment("grid", (LEFT, at), (RIGHT, at));
        svg += &text(LEFT - 8.0, at + 4.0, "end", &with_prefix(tick));
    }
    svg
}

/// Formats a power of ten, from 1 on: 100 M.
fn with_prefix(power: i32) -> String {
    let prefix = ["", " k", " M", " G", " T", " P"][(power / 3) as usize];
    format!("{}{prefix}", 10u32.pow((power % 3).unsigned_abs()))
}

/// Returns the heights of the lines' names: next to the last point, without overlaps.
fn name_heights(lines: &[Line], y: &Axis) -> Vec<f64> {
    let last = |line: &Line| line.points.last().map_or(BOTTOM, |point| y.at(point.1));
    let mut heights: Vec<f64> = lines.iter().map(last).collect();
    let mut order: Vec<usize> = (0..lines.len()).collect();
    order.sort_by(|a, b| heights[*a].total_cmp(&heights[*b]));
    for pair in order.windows(2) {
        heights[pair[1]] = heights[pair[1]].max(heights[pair[0]] + LINE_HEIGHT);
    }
    let mut limit = BOTTOM;
    for line in order.into_iter().rev() {
        heights[line] = heights[line].min(limit);
        limit = heights[line] - LINE_HEIGHT;
    }
    heights
}

/// Draws a line with its points and its name.
fn curve(colour: usize, points: &[(f64, f64)], name: &str, height: f64) -> String {
    let corners: Vec<_> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
    let mut svg =
        format!("<g class=\"c{colour}\">\n<polyline points=\"{}\"/>\n", corners.join(" "));
    for (x, y) in points {
        let _ = writeln!(svg, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\"/>");
    }
    if let Some(last) = points.last() {
        let _ = write!(svg, "{}", segment("lead", *last, (RIGHT + 12.0, height)));
    }
    svg + &text(RIGHT + 16.0, height + 4.0, "start", name) + "</g>\n"
}

fn segment(class: &str, from: (f64, f64), to: (f64, f64)) -> String {
    format!(
        "<line class=\"{class}\" x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\"/>\n",
        from.0, from.1, to.0, to.1
    )
}

fn text(x: f64, y: f64, anchor: &str, text: &str) -> String {
    format!("<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{text}</text>\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two_lines() -> String {
        let line =
            |name: &str, points: &[(f64, f64)]| Line { name: name.into(), points: points.into() };
        let lines = [
            line("loop", &[(1.0, 7e6), (1000.0, 7e9), (270_336.0, 3e11)]),
            line("sort", &[(1.0, 2e6), (270_336.0, 2.9e11)]),
        ];
        log_log("lanes", "instructions per second", &lines)
    }

    /// The values of an attribute.
    fn numbers(svg: &str, attribute: &str) -> Vec<f64> {
        let start = format!(" {attribute}=\"");
        let values = svg.split(&start).skip(1);
        values.map(|rest| rest.split('"').next().unwrap().parse().unwrap()).collect()
    }

    #[test]
    fn everything_is_in_the_picture() {
        let svg = two_lines();
        assert_eq!(svg.matches("<polyline ").count(), 2);
        assert_eq!(svg.matches("<circle ").count(), 5);
        for label in [">lanes<", ">loop<", ">sort<", ">100,000<", ">1 M<", ">1 T<"] {
            assert!(svg.contains(label), "{label}");
        }
        for (attribute, limit) in [("cx", WIDTH), ("x1", WIDTH), ("cy", HEIGHT), ("y2", HEIGHT)] {
            assert!(numbers(&svg, attribute).iter().all(|n| (0.0..limit).contains(n)));
        }
    }

    #[test]
    fn names_keep_their_distance() {
        let svg = two_lines();
        let ends: Vec<_> = svg.lines().filter(|line| line.contains("\"start\"")).collect();
        let heights = numbers(&ends.concat(), "y");
        // Written with one decimal.
        assert!((heights[0] - heights[1]).abs() > LINE_HEIGHT - 0.1, "{heights:?}");
    }

    #[test]
    fn powers_of_ten_have_prefixes() {
        assert_eq!([0, 2, 3, 7, 12].map(with_prefix), ["1", "100", "1 k", "10 M", "1 T"]);
    }
}
