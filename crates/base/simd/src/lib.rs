//! SIMD kernels: the only crate with processor-specific code.
//!
//! A function that is compiled once per instruction-set level implements [`Kernel`]; [`call`] runs it at a [`Level`] that
//! this machine has. Inside, the level is a zero-sized token ([`Isa`]) that only this crate can make, so that a kernel with
//! AVX2 can never run on a processor without AVX2.

mod base;
mod clock;
mod compress;
mod level;
mod prefetch;
mod reduce;
mod search;
mod transpose;

pub use clock::{cycles, cycles_per_second};
pub use compress::Bits;
pub use level::{Few, Isa, Kernel, Level, LevelError, Neon, Scalar, V3, V4, call, call_few};
pub use prefetch::{prefetch, prefetch_write, prefetch_write_all};
pub use reduce::{all_equal, any_bit, mask, or_all, sum};
pub use search::bytes_up_to;
pub use transpose::bytes_read;
