//! Instruction-set levels, and the compilation of a kernel for each of them.

use std::fmt;
use std::str::FromStr;

/// An instruction-set level that node bodies are compiled for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub enum Level {
    /// The instructions that the whole program is built for, without a choice at start: on x86-64 those of x86-64-v2 (SSE4.2, POPCNT), if the
    /// program is built with the flags of this repository; otherwise plain Rust.
    Scalar,
    /// x86-64-v3: AVX2, BMI1/2, FMA.
    V3,
    /// x86-64-v4: AVX-512 F, BW, CD, DQ, VL on top of v3.
    V4,
    /// AArch64 with Advanced SIMD, which every processor of this architecture that runs Linux has.
    Neon,
}

/// A level's name is unknown, or this processor lacks the level.
#[derive(Debug, PartialEq, Eq)]
pub enum LevelError {
    /// The name is neither `auto` nor that of a level.
    Unknown(String),
    /// The processor does not have this level.
    Missing(Level),
}

impl fmt::Display for LevelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LevelError::Unknown(name) => {
                let levels = Level::ALL.map(|level| level.to_string()).join(", ");
                write!(
                    f,
                    "unknown instruction-set level `{name}`: use auto or one of {levels}"
                )
            }
            LevelError::Missing(level) => {
                write!(
                    f,
                    "this processor lacks {level}: use {} or auto",
                    Level::detect()
                )
            }
        }
    }
}

impl std::error::Error for LevelError {}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Level::Scalar => "scalar",
            Level::V3 => "x86-64-v3",
            Level::V4 => "x86-64-v4",
            Level::Neon => "neon",
        })
    }
}

impl FromStr for Level {
    type Err = LevelError;

    /// Parse a level's name and check that this processor has it.
    fn from_str(s: &str) -> Result<Self, LevelError> {
        let level = match s {
            "auto" => return Ok(Level::detect()),
            "scalar" => Level::Scalar,
            "x86-64-v3" | "v3" => Level::V3,
            "x86-64-v4" | "v4" => Level::V4,
            "neon" => Level::Neon,
            other => return Err(LevelError::Unknown(other.to_owned())),
        };
        if level.is_available() {
            Ok(level)
        } else {
            Err(LevelError::Missing(level))
        }
    }
}

impl Level {
    /// Every level; those of one architecture from the lowest to the highest.
    pub const ALL: [Level; 4] = [Level::Scalar, Level::V3, Level::V4, Level::Neon];

    /// The best level of this processor.
    pub fn detect() -> Level {
        Self::ALL
            .into_iter()
            .rev()
            .find(|l| l.is_available())
            .unwrap_or(Level::Scalar)
    }

    /// The levels that this processor can run, lowest first.
    pub fn available() -> impl Iterator<Item = Level> {
        Self::ALL.into_iter().filter(|l| l.is_available())
    }

    /// Whether this processor can run the level.
    pub fn is_available(self) -> bool {
        match self {
            Level::Scalar => true,
            #[cfg(target_arch = "x86_64")]
            Level::V3 => {
                is_x86_feature_detected!("avx2")
                    && is_x86_feature_detected!("bmi1")
                    && is_x86_feature_detected!("bmi2")
                    && is_x86_feature_detected!("fma")
                    && is_x86_feature_detected!("lzcnt")
                    && is_x86_feature_detected!("popcnt")
                    && is_x86_feature_detected!("movbe")
            }
            #[cfg(target_arch = "x86_64")]
            Level::V4 => {
                Level::V3.is_available()
                    && is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512cd")
                    && is_x86_feature_detected!("avx512dq")
                    && is_x86_feature_detected!("avx512vl")
            }
            #[cfg(not(target_arch = "x86_64"))]
            Level::V3 | Level::V4 => false,
            Level::Neon => cfg!(target_arch = "aarch64"),
        }
    }
}

mod sealed {
    pub trait Sealed {}
}

/// Proof, as a zero-sized value, that the running processor has a level. Only [`call`] makes one.
pub trait Isa: Copy + sealed::Sealed + 'static {
    /// Which level this is.
    const LEVEL: Level;

    /// Whether the code is for a small vector: loops then process single rows, because most of a whole strip would be unused.
    const FEW: bool = false;

    /// Copy the rows of `src` whose bit is set in `bits` to the front of `dst`, in order; returns how many.
    /// Fast if `dst` has 16 words behind the last row, which may be overwritten.
    fn compress(self, bits: &crate::Bits, src: &[u32], dst: &mut [u32]) -> usize;

    /// Move the rows of `words` whose bit is set in `bits` to the front, in order; returns how many. The words between them
    /// and the end of the rows have no defined contents afterwards.
    fn close_gaps(self, bits: &crate::Bits, words: &mut [u32]) -> usize;

    /// The set of rows whose word equals `value`.
    fn rows_equal(self, column: &[u32], value: u32) -> crate::Bits;

    /// The number of bounds that `x` exceeds.
    fn above<const N: usize>(self, bounds: &[i64; N], x: i64) -> usize;

    /// `K` big-endian words from each of eight addresses, `at(r)` for row `r`, in host order: word `k` of row `r` goes to `out[k][r]`. The
    /// addresses are computed where they are used, because there are not enough registers for all of them.
    ///
    /// # Safety
    /// [`crate::bytes_read`]`(K)` bytes are readable at every address. Eight words are writable at every `out`, do not overlap,
    /// and are neither read nor written by other code meanwhile.
    unsafe fn load_words<const K: usize>(
        self,
        at: impl Fn(usize) -> *const u8,
        out: &[*mut u32; K],
    );

    /// As [`Isa::load_words`], from 16 addresses. With registers of 64 bytes, each word of the 16 rows is stored at once: a load of 64
    /// bytes from two stores of 32 bytes waits until both have left the store buffer.
    ///
    /// # Safety
    /// As [`Isa::load_words`], with 16 addresses and 16 words for each `out`.
    #[inline(always)]
    unsafe fn load_sixteen<const K: usize>(
        self,
        at: impl Fn(usize) -> *const u8,
        out: &[*mut u32; K],
    ) {
        // SAFETY: the caller's contract.
        unsafe {
            self.load_words(&at, out);
            self.load_words(|r| at(8 + r), &out.map(|to| to.add(8)));
        }
    }
}

macro_rules! token {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $name(());
        impl sealed::Sealed for $name {}
    };
}
token!(
    /// Token of [`Level::Scalar`].
    Scalar
);
token!(
    /// Token of [`Level::V3`].
    V3
);
token!(
    /// Token of [`Level::V4`].
    V4
);

token!(
    /// Token of [`Level::Neon`].
    Neon
);
token!(
    /// Token of [`call_few`].
    Few
);

macro_rules! scalar_isa {
    ($name:ident, $few:expr) => {
        impl Isa for $name {
            const LEVEL: Level = Level::Scalar;
            const FEW: bool = $few;
            #[inline(always)]
            fn compress(self, bits: &crate::Bits, src: &[u32], dst: &mut [u32]) -> usize {
                crate::compress::base::compress(bits, src, dst)
            }
            #[inline(always)]
            fn close_gaps(self, bits: &crate::Bits, words: &mut [u32]) -> usize {
                crate::compress::base::close_gaps(bits, words)
            }
            #[inline(always)]
            fn rows_equal(self, column: &[u32], value: u32) -> crate::Bits {
                crate::compress::base::rows_equal(column, value)
            }
            #[inline(always)]
            fn above<const N: usize>(self, bounds: &[i64; N], x: i64) -> usize {
                crate::search::base::above(bounds, x)
            }
            #[inline(always)]
            unsafe fn load_words<const K: usize>(
                self,
                at: impl Fn(usize) -> *const u8,
                out: &[*mut u32; K],
            ) {
                // SAFETY: the caller's contract.
                unsafe { crate::transpose::base::load_words(at, out) }
            }
        }
    };
}
scalar_isa!(Scalar, false);
scalar_isa!(Few, true);

macro_rules! vector_isa {
    ($name:ident, $level:expr, $arch:literal, $module:ident, $compress:ident, $close_gaps:ident, $rows_equal:ident, $above:ident, $load_words:ident $(, $load_sixteen:ident)?) => {
        impl Isa for $name {
            const LEVEL: Level = $level;
            #[inline(always)]
            fn compress(self, bits: &crate::Bits, src: &[u32], dst: &mut [u32]) -> usize {
                #[cfg(target_arch = $arch)]
                // SAFETY: the token proves that the processor has the level.
                unsafe {
                    crate::compress::$module::$compress(bits, src, dst)
                }
                #[cfg(not(target_arch = $arch))]
                crate::compress::compress_scalar(bits, src, dst)
            }
            #[inline(always)]
            fn close_gaps(self, bits: &crate::Bits, words: &mut [u32]) -> usize {
                #[cfg(target_arch = $arch)]
                // SAFETY: the token proves that the processor has the level.
                unsafe {
                    crate::compress::$module::$close_gaps(bits, words)
                }
                #[cfg(not(target_arch = $arch))]
                crate::compress::close_gaps_scalar(bits, words)
            }
            #[inline(always)]
            fn rows_equal(self, column: &[u32], value: u32) -> crate::Bits {
                #[cfg(target_arch = $arch)]
                // SAFETY: the token proves that the processor has the level.
                unsafe {
                    crate::compress::$module::$rows_equal(column, value)
                }
                #[cfg(not(target_arch = $arch))]
                crate::compress::rows_equal_scalar(column, value)
            }
            #[inline(always)]
            fn above<const N: usize>(self, bounds: &[i64; N], x: i64) -> usize {
                #[cfg(target_arch = $arch)]
                // SAFETY: the token proves that the processor has the level.
                unsafe {
                    crate::search::$module::$above(bounds, x)
                }
                #[cfg(not(target_arch = $arch))]
                crate::search::above_scalar(bounds, x)
            }
            #[inline(always)]
            unsafe fn load_words<const K: usize>(self, at: impl Fn(usize) -> *const u8, out: &[*mut u32; K]) {
                #[cfg(target_arch = $arch)]
                // SAFETY: the token proves that the processor has the level; the caller's contract covers the addresses.
                unsafe {
                    crate::transpose::$module::$load_words(at, out)
                }
                #[cfg(not(target_arch = $arch))]
                // SAFETY: the caller's contract.
                unsafe {
                    crate::transpose::load_words_scalar(at, out)
                }
            }
            $(
                #[cfg(target_arch = $arch)]
                #[inline(always)]
                unsafe fn load_sixteen<const K: usize>(self, at: impl Fn(usize) -> *const u8, out: &[*mut u32; K]) {
                    // SAFETY: the token proves that the processor has the level; the caller's contract covers the addresses.
                    unsafe { crate::transpose::$module::$load_sixteen(at, out) }
                }
            )?
        }
    };
}
/// One row for each level: its architecture, and the kernels of the module of that architecture.
#[rustfmt::skip]
mod vector_levels {
    use super::{Isa, Level, Neon, V3, V4};
    vector_isa!(V3, Level::V3, "x86_64", x86, compress_v3, close_gaps_v3, rows_equal_v3, above_v3, load_words_v3);
    vector_isa!(V4, Level::V4, "x86_64", x86, compress_v4, close_gaps_v4, rows_equal_v4, above_v3, load_words_v3, load_sixteen_v4);
    vector_isa!(Neon, Level::Neon, "aarch64", neon, compress, close_gaps, rows_equal, above, load_words);
}

/// A body to be compiled once per level. Mark `run` as `#[inline(always)]`: only then does it inherit the level.
pub trait Kernel {
    /// The result of the body.
    type Out;
    /// The body.
    fn run<I: Isa>(self, isa: I) -> Self::Out;
}

/// Run `kernel` at `level`; a level that this processor lacks falls back to [`Level::Scalar`].
#[inline(always)]
pub fn call<K: Kernel>(level: Level, kernel: K) -> K::Out {
    match level {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: `is_available` was checked when the level was chosen; `trusted` repeats the check where it is cheap.
        Level::V3 if trusted(level) => unsafe { call_v3(kernel) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        Level::V4 if trusted(level) => unsafe { call_v4(kernel) },
        #[cfg(target_arch = "aarch64")]
        Level::Neon => call_neon(kernel),
        _ => call_scalar(kernel),
    }
}

/// Feature detection is a cached atomic load in std, about as cheap as the branch around it.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn trusted(level: Level) -> bool {
    match level {
        Level::V4 => is_x86_feature_detected!("avx512vl") && is_x86_feature_detected!("avx512bw"),
        _ => is_x86_feature_detected!("avx2") && is_x86_feature_detected!("bmi2"),
    }
}

#[inline(never)]
fn call_scalar<K: Kernel>(kernel: K) -> K::Out {
    kernel.run(Scalar(()))
}

/// Run `kernel` as scalar, short code for a small vector, inlined into its caller.
#[inline(always)]
pub fn call_few<K: Kernel>(kernel: K) -> K::Out {
    kernel.run(Few(()))
}

#[cfg(target_arch = "x86_64")]
#[inline(never)]
#[target_feature(enable = "avx,avx2,bmi1,bmi2,f16c,fma,lzcnt,movbe,popcnt,sse4.2")]
// SAFETY contract: the processor has x86-64-v3.
unsafe fn call_v3<K: Kernel>(kernel: K) -> K::Out {
    kernel.run(V3(()))
}

#[cfg(target_arch = "x86_64")]
#[inline(never)]
#[target_feature(
    enable = "avx,avx2,bmi1,bmi2,f16c,fma,lzcnt,movbe,popcnt,sse4.2,avx512f,avx512bw,avx512cd,avx512dq,avx512vl"
)]
// SAFETY contract: the processor has x86-64-v4.
unsafe fn call_v4<K: Kernel>(kernel: K) -> K::Out {
    kernel.run(V4(()))
}

/// The base instruction set of this architecture includes Advanced SIMD, so that the body needs no further one.
#[cfg(target_arch = "aarch64")]
#[inline(never)]
fn call_neon<K: Kernel>(kernel: K) -> K::Out {
    kernel.run(Neon(()))
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Which;
    impl Kernel for Which {
        type Out = Level;
        #[inline(always)]
        fn run<I: Isa>(self, _isa: I) -> Level {
            I::LEVEL
        }
    }

    #[test]
    fn a_kernel_runs_at_the_level_asked_for() {
        assert_eq!(call_few(Which), Level::Scalar);
        for level in Level::available() {
            assert_eq!(call(level, Which), level);
        }
    }

    #[test]
    fn names_round_trip_and_bad_ones_are_refused() {
        for level in Level::available() {
            assert_eq!(level.to_string().parse(), Ok(level));
        }
        assert_eq!("auto".parse(), Ok(Level::detect()));
        assert!(matches!(
            "mmx".parse::<Level>(),
            Err(LevelError::Unknown(_))
        ));
    }

    #[test]
    fn a_missing_level_is_refused_by_name() {
        for level in Level::ALL.into_iter().filter(|l| !l.is_available()) {
            assert_eq!(
                level.to_string().parse::<Level>(),
                Err(LevelError::Missing(level))
            );
            assert_eq!(call(level, Which), Level::Scalar);
        }
    }
}
