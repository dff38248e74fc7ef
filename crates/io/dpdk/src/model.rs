//! The object of this crate: how DPDK is started.

use std::fmt::{self, Display, Formatter};
use std::str::FromStr;
use volley_object::{Choice, Class, DefinitionError, Object, text_field};

/// Longest argument in bytes.
const ARGUMENT: usize = 1024;

/// What DPDK's memory is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Choice)]
pub enum HugePages {
    /// Huge pages where enough are free, else plain pages.
    Auto,
    /// Huge pages.
    Yes,
    /// Plain pages.
    No,
}

/// Start of DPDK: settings of its environment layer, in effect when the first DPDK interface is created.
#[derive(Clone, Debug, PartialEq, Eq, Object)]
#[object(class = "dpdk_eal", file = "[dpdk]", machine, formerly = "dpdk-eal")]
#[object(
    set = "set dpdk eal {lcores <lcores> | memory <memory> | huge-pages@huge_pages=yes \
           | no-huge-pages@huge_pages=no | option~s <options>}"
)]
#[object(example = "set dpdk eal lcores 0 memory 128 no-huge-pages")]
pub struct DpdkEal {
    /// Cores that DPDK counts; one core where it is not set.
    pub lcores: Option<Cores>,
    /// Memory of DPDK's own tables; 64 MB, and more for many buffers, where it is not set.
    #[object(range = 16u32..=1_048_576, unit = "MB")]
    pub memory: Option<u32>,
    /// Huge pages for that memory.
    #[object(default = HugePages::Auto)]
    pub huge_pages: HugePages,
    /// Further argument of DPDK's environment layer, as DPDK's manual has it.
    pub options: Vec<Argument>,
}

/// Cores as DPDK writes them: `0`, `0-3`, `0,2`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cores(pub String);

/// An argument that DPDK gets as one word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Argument(pub String);

text_field!(Cores, "cores", Numbers, ["0-3", "0", "0,2"]);
text_field!(Argument, "an argument", Any, ["--log-level=8", "--a=b|#"]);

impl FromStr for Cores {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let fits = |b: u8| b.is_ascii_digit() || b"-,@()".contains(&b);
        match !text.is_empty() && text.len() <= ARGUMENT && text.bytes().all(fits) {
            true => Ok(Cores(text.to_owned())),
            false => Err("write 0, 0-3 or 0,2".to_owned()),
        }
    }
}

impl Display for Cores {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for Argument {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let plain = text.bytes().all(|b| b.is_ascii_graphic());
        match !text.is_empty() && text.len() <= ARGUMENT && plain {
            true => Ok(Argument(text.to_owned())),
            false => Err(format!(
                "use 1 to {ARGUMENT} printable ASCII characters without blanks"
            )),
        }
    }
}

impl Display for Argument {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The classes of this crate.
pub fn classes() -> Result<Vec<Class>, DefinitionError> {
    Ok(vec![DpdkEal::class()?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_and_arguments_are_words_of_dpdk() {
        let eal = |lcores: &str, memory| DpdkEal {
            lcores: Some(Cores(lcores.into())),
            memory: Some(memory),
            ..DpdkEal::default()
        };
        eal("0-3,5", 64).instance().unwrap();
        assert!(eal("a", 64).instance().is_err());
        assert!(eal("0", 1).instance().is_err());
        assert!("--a b".parse::<Argument>().is_err());
    }
}
