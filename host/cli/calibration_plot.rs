//! A picture of how confidence compares with accuracy: one line for each decider of a question.

use std::fmt::Write;

use crate::decide::report::Line;

/// Told apart also by people who see colours differently.
const COLOURS: [&str; 7] =
    ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000"];

/// The square that is drawn in.
const SIDE: f64 = 400.0;
const LEFT: f64 = 60.0;
const TOP: f64 = 30.0;
const ROW: f64 = 20.0;

/// The picture as SVG. Deciders without a labelled answer are not in it.
pub fn svg(lines: &[Line]) -> String {
    let drawn: Vec<&Line> = lines.iter().filter(|line| !line.calibration.is_empty()).collect();
    let rows = f64::from(u32::try_from(drawn.len()).unwrap_or(u32::MAX));
    let (width, height) = (LEFT + SIDE + 30.0, TOP + SIDE + 60.0 + rows * ROW);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
         height=\"{height}\" font-family=\"sans-serif\" font-size=\"12\">\n<title>Calibration</title>\n\
         <rect width=\"{width}\" height=\"{height}\" fill=\"#fff\"/>\n"
    );
    frame(&mut svg);
    for (index, line) in drawn.iter().enumerate() {
        decider(&mut svg, index, line);
    }
    svg.push_str("</svg>\n");
    svg
}

fn x(confidence: f64) -> f64 {
    LEFT + confidence * SIDE
}

fn y(accuracy: f64) -> f64 {
    TOP + (1.0 - accuracy) * SIDE
}

/// Writing to a string cannot fail.
fn put(svg: &mut String, element: std::fmt::Arguments<'_>) {
    let _ = svg.write_fmt(element);
    svg.push('\n');
}

fn frame(svg: &mut String) {
    for tenth in [0, 2, 4, 6, 8, 10] {
        let at = f64::from(tenth) / 10.0;
        put(
            svg,
            format_args!(
                "<path d=\"M{0:.0} {1:.0}V{2:.0}M{3:.0} {4:.0}H{5:.0}\" stroke=\"#ddd\"/>",
                x(at),
                y(0.0),
                y(1.0),
                x(0.0),
                y(at),
                x(1.0)
            ),
        );
        put(
            svg,
            format_args!(
                "<text x=\"{:.0}\" y=\"{:.0}\" text-anchor=\"middle\">{at:.1}</text>\
                 <text x=\"{:.0}\" y=\"{:.0}\" text-anchor=\"end\">{at:.1}</text>",
                x(at),
                y(0.0) + 16.0,
                x(0.0) - 8.0,
                y(at) + 4.0
            ),
        );
    }
    put(
        svg,
        format_args!(
            "<path d=\"M{:.0} {:.0}L{:.0} {:.0}\" stroke=\"#888\" stroke-dasharray=\"4 4\"/>\
             <text x=\"{:.0}\" y=\"{:.0}\" text-anchor=\"middle\">confidence</text>\
             <text x=\"14\" y=\"{:.0}\" text-anchor=\"middle\" transform=\"rotate(-90 14 {:.0})\">accuracy</text>",
            x(0.0),
            y(0.0),
            x(1.0),
            y(1.0),
            x(0.5),
            y(0.0) + 34.0,
            y(0.5),
            y(0.5)
        ),
    );
}

fn decider(svg: &mut String, index: usize, line: &Line) {
    let colour = COLOURS[index % COLOURS.len()];
    let points: Vec<String> = line
        .calibration
        .iter()
        .map(|bin| format!("{:.1},{:.1}", x(bin.confidence), y(bin.accuracy)))
        .collect();
    put(
        svg,
        format_args!(
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>",
            points.join(" ")
        ),
    );
    for bin in &line.calibration {
        put(
            svg,
            format_args!(
                "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"4\" fill=\"{colour}\"><title>{} answers</title></circle>",
                x(bin.confidence),
                y(bin.accuracy),
                bin.count
            ),
        );
    }
    let row = f64::from(u32::try_from(index).unwrap_or(u32::MAX));
    let at = TOP + SIDE + 60.0 + row * ROW;
    let shadow = if line.of.is_shadow { " (shadow)" } else { "" };
    let name =
        format!("{} by {}{shadow}, {} labelled", line.of.question, line.of.decider, line.judged);
    put(
        svg,
        format_args!(
            "<rect x=\"{LEFT:.0}\" y=\"{:.0}\" width=\"12\" height=\"12\" fill=\"{colour}\"/>\
             <text x=\"{:.0}\" y=\"{at:.0}\">{}</text>",
            at - 10.0,
            LEFT + 20.0,
            escaped(&name)
        ),
    );
}

fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            letter if letter.is_control() => escaped.push(' '),
            letter => escaped.push(letter),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decide::report::{Bin, Of};

    fn line(decider: &str, calibration: Vec<Bin>) -> Line {
        Line {
            of: Of {
                train: "triage".to_owned(),
                question: "Flag<Fraud>".to_owned(),
                decider: decider.to_owned(),
                is_shadow: true,
            },
            answers: 3,
            unfit: 0,
            labelled: 3,
            judged: 3,
            accuracy: None,
            agreement: None,
            at_bars: Vec::new(),
            best: None,
            calibration,
            calibration_error: None,
        }
    }

    #[test]
    fn a_picture_has_a_line_for_each_decider_that_was_judged() {
        let bin = |from, accuracy| Bin { from, count: 2, confidence: from, accuracy };
        let svg = svg(&[line("a & b", vec![bin(0.5, 0.25), bin(1.0, 1.0)]), line("none", vec![])]);
        assert!(svg.contains("points=\"260.0,330.0 460.0,30.0\""), "{svg}");
        assert!(svg.contains(">Flag&lt;Fraud&gt; by a &amp; b (shadow), 3 labelled<"), "{svg}");
        assert_eq!(svg.matches("<polyline").count(), 1);
        assert_eq!(svg.matches("<circle").count(), 2);
        assert!(!svg.contains("by none"), "{svg}");
        assert!(svg.ends_with("</svg>\n"));
    }
}
