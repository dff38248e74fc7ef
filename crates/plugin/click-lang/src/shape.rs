//! The ports of an element: how many it may have, and which of them push and pull.

use std::ops::RangeInclusive;

/// How packets pass a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// The element upstream starts the transfer.
    Push,
    /// The element downstream starts the transfer.
    Pull,
    /// As the ports that are connected to it.
    Agnostic,
}

impl Mode {
    /// `push` or `pull`.
    pub fn name(self) -> &'static str {
        match self {
            Mode::Push => "push",
            Mode::Pull => "pull",
            Mode::Agnostic => "agnostic",
        }
    }
}

/// The ports of an element.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Numbers of inputs that the element may have.
    pub inputs: RangeInclusive<usize>,
    /// Numbers of outputs that the element may have.
    pub outputs: RangeInclusive<usize>,
    /// As many outputs as inputs.
    pub is_even: bool,
    input_modes: &'static str,
    output_modes: &'static str,
}

impl Shape {
    /// A shape from its codes: `ports` such as `1/1-2` (`-` alone: any number, `=`: as many as on the other side), and `modes` such as
    /// `a/ah` (`h` push, `l` pull, `a` agnostic; the last letter holds for further ports).
    pub fn new(ports: &'static str, modes: &'static str) -> Shape {
        let sides = |code: &'static str| code.split_once('/').unwrap_or((code, code));
        let (inputs, outputs) = sides(ports);
        let (input_modes, output_modes) = sides(modes);
        Shape {
            inputs: range(inputs),
            outputs: range(outputs),
            is_even: inputs == "=" || outputs == "=",
            input_modes,
            output_modes,
        }
    }

    /// The shape with this number of outputs exactly.
    pub fn with_outputs(mut self, outputs: usize) -> Shape {
        self.outputs = outputs..=outputs;
        self
    }

    /// The shape with this number of inputs exactly.
    pub fn with_inputs(mut self, inputs: usize) -> Shape {
        self.inputs = inputs..=inputs;
        self
    }

    /// The mode of an input.
    pub fn input(&self, port: usize) -> Mode {
        mode(self.input_modes, port)
    }

    /// The mode of an output.
    pub fn output(&self, port: usize) -> Mode {
        mode(self.output_modes, port)
    }
}

fn range(code: &str) -> RangeInclusive<usize> {
    const ANY: usize = 1024;
    if code == "-" || code == "=" {
        return 0..=ANY;
    }
    let (low, high) = code.split_once('-').unwrap_or((code, code));
    let low = low.parse().unwrap_or(0);
    let high = match high {
        "" => ANY,
        number => number.parse().unwrap_or(ANY),
    };
    low..=high
}

fn mode(code: &str, port: usize) -> Mode {
    let letters = code.as_bytes();
    match letters.get(port).or(letters.last()) {
        Some(b'h') => Mode::Push,
        Some(b'l') => Mode::Pull,
        _ => Mode::Agnostic,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_read() {
        let shape = Shape::new("1/1-2", "a/ah");
        assert_eq!(
            (shape.inputs.clone(), shape.outputs.clone()),
            (1..=1, 1..=2)
        );
        assert_eq!(
            (shape.output(0), shape.output(1)),
            (Mode::Agnostic, Mode::Push)
        );
        assert_eq!(shape.output(7), Mode::Push);
        let any = Shape::new("-/=", "l/h");
        assert!(any.is_even && any.inputs.contains(&900));
        assert_eq!(Shape::new("0/1-", "h/h").outputs, 1..=1024);
    }
}
