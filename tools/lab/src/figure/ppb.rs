//! The figure of the paper on the path-based packet batcher (PPB).

use super::definition::{Axis, Fact, Figure, NONE, NOT_TRANSCRIBED, Point, Scale, choose};
use super::shape::{Curve, Shape, falls_to, named};

const OFF: &str = "without the batcher";
const ON: &str = "with the batcher";

/// The points of both curves; `task` chooses the measurement.
fn points(task: &str, sizes: &[u32]) -> Vec<Point> {
    let of = |(series, batcher): (&'static str, &str)| {
        let at = |n: &u32| Point {
            series,
            x: f64::from(*n),
            label: n.to_string(),
            args: format!(
                "{task}path-batcher --patterns alternating-2 --batches {n} --batcher {batcher}"
            ),
        };
        sizes.iter().map(at).collect::<Vec<_>>()
    };
    [(OFF, "off"), (ON, "on")]
        .into_iter()
        .flat_map(of)
        .collect()
}

/// Figure 5: batch size.
pub const BATCH: Figure = Figure {
    name: "ppb-5",
    paper: "The paper on the path-based packet batcher (PPB)",
    number: "5",
    title: "Cycles per packet by batch size, two paths in alternation",
    x: Axis {
        title: "packets of a batch",
        scale: Scale::Log2,
    },
    y: Axis {
        title: "TSC cycles per packet",
        scale: Scale::Linear,
    },
    metric: "path_cycles",
    parts: &[],
    fact: Fact {
        text: "Misses per packet become fewer with the batch size.",
        source: NOT_TRANSCRIBED,
    },
    published: NONE,
    compared: NONE,
    quoted: NONE,
    method: "volley bench path-batcher: packets of two protocols in alternation, the source sends a batch at once. The paper counts misses; no hardware events are read here, so the figure shows their effect, cycles of all nodes but the source, including the batcher.",
    points: |level| {
        let sizes: &[u32] = choose(
            level,
            &[1, 4, 16, 64, 256],
            &[1, 2, 4, 8, 16, 32, 64, 128, 256],
        );
        points("", sizes)
    },
    judge: falls_with_the_batch,
};

/// Figure 5, as the paper has it: misses.
pub const MISSES: Figure = Figure {
    name: "ppb-5-misses",
    title: "Instruction misses per packet by batch size, two paths in alternation",
    y: Axis {
        title: "L1 instruction misses per packet",
        scale: Scale::Linear,
    },
    metric: "L1 instruction misses",
    method: "volley bench path-batcher under callgrind with an instruction cache of 32 KiB, level x86-64-v3: packets of two protocols in alternation, the source sends a batch at once.",
    points: |level| {
        let sizes: &[u32] = choose(level, &[4, 256], &[1, 4, 16, 64, 256]);
        points("events ", sizes)
    },
    judge: |curves| falls_to(curves, 0.9),
    ..BATCH
};

/// Both curves fall; the sentence compares their ends.
fn falls_with_the_batch(curves: &[Curve]) -> Shape {
    let shape = falls_to(curves, 0.9);
    let both = named(curves, OFF).zip(named(curves, ON));
    let ends = both.and_then(|(off, on)| {
        let last = off.points.last()?;
        Some((&last.label, last.y, on.at(last.x)?))
    });
    let Some((batch, off, on)) = ends else {
        return shape;
    };
    Shape {
        agrees: shape.agrees,
        why: format!(
            "{} With {batch} packets of a batch, the batcher changes the cycles per packet from {off:.1} to {on:.1}.",
            shape.why
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_curves_must_fall_and_their_ends_are_compared() {
        let curve = |series: &str, ys: [f64; 2]| {
            Curve::at_positions(series, &[(1.0, ys[0]), (256.0, ys[1])])
        };
        let good = falls_with_the_batch(&[curve(OFF, [300.0, 40.0]), curve(ON, [400.0, 35.0])]);
        assert_eq!(good.agrees, Some(true));
        assert!(good.why.contains("from 40.0 to 35.0"), "{}", good.why);
        let bad = falls_with_the_batch(&[curve(OFF, [300.0, 40.0]), curve(ON, [30.0, 35.0])]);
        assert_eq!(bad.agrees, Some(false));
        // Ends at different batch sizes are not compared.
        let shorter = Curve::at_positions(ON, &[(1.0, 90.0), (64.0, 30.0)]);
        let shape = falls_with_the_batch(&[curve(OFF, [300.0, 40.0]), shorter]);
        assert!(!shape.why.contains("the batcher changes"), "{}", shape.why);
    }
}
