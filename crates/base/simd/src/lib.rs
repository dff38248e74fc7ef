//! CPU-specific kernels: the only room of Volley that may know a processor.
//!
//! A body that wants to be compiled once per instruction-set level implements [`Kernel`]; [`call`] runs it at a
//! [`Level`] that this machine is known to have. Inside, the level is a zero-sized token ([`Isa`]) that only this crate
//! can make, so a kernel with AVX2 inside can never run on a processor without it.

mod clock;
mod compress;
mod level;
mod prefetch;
mod reduce;
mod search;
mod transpose;

pub use clock::{cycles, cycles_per_second};
pub use compress::Bits;
pub use level::{Few, Isa, Kernel, Level, LevelError, Scalar, V3, V4, call, call_few};
pub use prefetch::{prefetch, prefetch_write};
pub use reduce::{all_equal, mask, or_all, sum};
pub use transpose::bytes_read;
