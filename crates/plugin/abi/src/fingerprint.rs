//! The fingerprint: the facts that must be the same on both sides. It is plain bytes in the file, without relocations.

use volley_graph::SHARED_TYPES;

/// The name of the fingerprint in the file.
pub const FINGERPRINT: &str = "VOLLEY_PLUGIN";

const MAGIC: [u8; 16] = *b"volley plugin  1";
/// The revision of this crate's types and of the entry call.
const REVISION: u8 = b'1';

/// Facts of a build. All fields are text, padded with zeros.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fingerprint {
    magic: [u8; 16],
    revision: [u8; 8],
    rustc: [u8; 96],
    target: [u8; 48],
    /// Features of the processor that the compiler may use everywhere: they decide how vectors are passed.
    features: [u8; 1024],
    sdk: [u8; 32],
    sources: [u8; 16],
    /// Debug assertions and panic strategy: both change code and layouts that are shared.
    profile: [u8; 32],
    layout: [u8; 16],
}

/// The text as bytes, truncated to the field.
const fn field<const N: usize>(text: &str) -> [u8; N] {
    let (bytes, mut out, mut at) = (text.as_bytes(), [0; N], 0);
    while at < bytes.len() && at < N {
        out[at] = bytes[at];
        at += 1;
    }
    out
}

/// A hash (FNV-1a) of names, sizes and alignments of the shared types, in hexadecimal digits.
const fn layout() -> [u8; 16] {
    let (mut hash, mut at) = (0xcbf2_9ce4_8422_2325_u64, 0);
    while at < SHARED_TYPES.len() {
        let (name, size, align) = SHARED_TYPES[at];
        let mut byte = 0;
        while byte < name.len() {
            hash = step(hash, name.as_bytes()[byte] as u64);
            byte += 1;
        }
        hash = step(step(hash, size as u64), align as u64);
        at += 1;
    }
    let (mut out, mut digit) = ([0; 16], 0);
    while digit < 16 {
        out[digit] = b"0123456789abcdef"[(hash >> (60 - 4 * digit) & 15) as usize];
        digit += 1;
    }
    out
}

const fn step(hash: u64, word: u64) -> u64 {
    (hash ^ word).wrapping_mul(0x0100_0000_01b3)
}

const PROFILE: &str = match (cfg!(debug_assertions), cfg!(panic = "unwind")) {
    (true, true) => "debug assertions",
    (false, true) => "no debug assertions",
    (_, false) => "panic = \"abort\"",
};

/// Why a fingerprint does not match: one sentence for each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mismatch {
    /// The bytes are not a fingerprint.
    NotAPlugin,
    /// A fact has another value.
    Fact {
        /// The fact.
        what: &'static str,
        /// The plugin's value.
        plugin: String,
        /// The router's value.
        router: String,
        /// How to correct it.
        advice: &'static str,
    },
}

impl std::fmt::Display for Mismatch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Mismatch::NotAPlugin => f.write_str(
                "it has no fingerprint of a Volley plugin: build a `cdylib` that calls `volley_sdk::plugin!`",
            ),
            Mismatch::Fact {
                what,
                plugin,
                router,
                advice,
            } => write!(f, "its {what} is `{plugin}`, the router's is `{router}`: {advice}"),
        }
    }
}

impl std::error::Error for Mismatch {}

impl Fingerprint {
    /// The fingerprint of the program or library that this code is compiled into.
    pub const HERE: Fingerprint = Fingerprint {
        magic: MAGIC,
        revision: field::<8>(match std::str::from_utf8(&[REVISION]) {
            Ok(text) => text,
            Err(_) => "",
        }),
        rustc: field(env!("VOLLEY_RUSTC")),
        target: field(env!("VOLLEY_TARGET")),
        features: field(env!("VOLLEY_FEATURES")),
        sdk: field(env!("CARGO_PKG_VERSION")),
        sources: field(env!("VOLLEY_SOURCES")),
        profile: field(PROFILE),
        layout: layout(),
    };

    /// Compare the bytes of a plugin's fingerprint with the router's.
    pub fn check(self, bytes: &[u8]) -> Result<(), Mismatch> {
        if bytes.get(..MAGIC.len()) != Some(&MAGIC[..]) {
            return Err(Mismatch::NotAPlugin);
        }
        let rebuild = "build the plugin again with the SDK of this router's sources";
        let compiler = "build the plugin with the router's compiler";
        let profile = "build the plugin with the router's profile, such as `--release`";
        let flags = "build the plugin with the router's flags: copy `rustflags` from `.cargo/config.toml` of its sources";
        let facts: [(&str, &[u8], &str); 8] = [
            ("revision of the entry call", &self.revision, rebuild),
            ("compiler", &self.rustc, compiler),
            ("target", &self.target, compiler),
            ("list of processor features", &self.features, flags),
            ("SDK version", &self.sdk, rebuild),
            ("hash of the SDK's sources", &self.sources, rebuild),
            ("profile", &self.profile, profile),
            ("layout of shared types", &self.layout, rebuild),
        ];
        let mut at = MAGIC.len();
        for (what, mine, advice) in facts {
            let theirs = bytes.get(at..at + mine.len()).unwrap_or_default();
            if theirs != mine {
                let text = |bytes: &[u8]| {
                    String::from_utf8_lossy(bytes)
                        .trim_end_matches('\0')
                        .escape_debug()
                        .to_string()
                };
                return Err(Mismatch::Fact {
                    what,
                    plugin: text(theirs),
                    router: text(mine),
                    advice,
                });
            }
            at += mine.len();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The fingerprint's bytes, as they are in a file.
    fn bytes() -> Vec<u8> {
        let it = Fingerprint::HERE;
        let fields: [&[u8]; 9] = [
            &it.magic,
            &it.revision,
            &it.rustc,
            &it.target,
            &it.features,
            &it.sdk,
            &it.sources,
            &it.profile,
            &it.layout,
        ];
        fields.concat()
    }

    #[test]
    fn the_own_fingerprint_matches_and_each_changed_byte_does_not() {
        let own = bytes();
        assert_eq!(own.len(), size_of::<Fingerprint>());
        assert_eq!(Fingerprint::HERE.check(&own), Ok(()));
        for at in 0..own.len() {
            let mut other = own.clone();
            other[at] ^= 1;
            assert!(Fingerprint::HERE.check(&other).is_err(), "byte {at}");
            assert!(Fingerprint::HERE.check(&own[..at]).is_err(), "{at} bytes");
        }
    }

    #[test]
    fn a_mismatch_is_one_sentence_with_both_values() {
        let mut other = bytes();
        let at = MAGIC.len() + 8 + "rustc 1.".len();
        other[at] = b'x';
        let text = Fingerprint::HERE.check(&other).unwrap_err().to_string();
        assert!(text.starts_with("its compiler is `rustc 1.x"), "{text}");
        assert!(text.contains("the router's is `rustc 1."), "{text}");
    }
}
