//! The instructions that the whole program is built for: a processor without them is reported when the program starts.

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod x86 {
    use core::arch::x86_64::__cpuid;

    /// Extensions of x86-64 up to x86-64-v2 that code can be built for: name, bit of ECX of CPUID leaf 1 (AMD64 Architecture Programmer's
    /// Manual, volume 3, E.3.2), and whether this code is built for it.
    pub(super) const EXTENSIONS: [(&str, u32, bool); 5] = [
        ("SSE3", 0, cfg!(target_feature = "sse3")),
        ("SSSE3", 9, cfg!(target_feature = "ssse3")),
        ("SSE4.1", 19, cfg!(target_feature = "sse4.1")),
        ("SSE4.2", 20, cfg!(target_feature = "sse4.2")),
        ("POPCNT", 23, cfg!(target_feature = "popcnt")),
    ];

    /// Called before constructors without a priority: libraries in C that are part of the program are built for the same extensions, and the
    /// constructor of the allocator uses them.
    #[used]
    // SAFETY: the C library calls each function of this section once, before `main`, and this one returns or ends the program.
    #[unsafe(link_section = ".init_array.00100")]
    static CHECK: extern "C" fn() = check;

    /// ECX of CPUID leaf 1. `is_x86_feature_detected!` does not ask the processor for extensions that code is built for.
    pub(super) fn features() -> u32 {
        __cpuid(1).ecx
    }

    /// Ends the program with a sentence if the processor lacks an extension.
    extern "C" fn check() {
        let features = features();
        let mut is_missing = false;
        for (name, bit, is_built) in EXTENSIONS {
            if is_built && features >> bit & 1 == 0 {
                write(if is_missing {
                    ", "
                } else {
                    "this processor has no "
                });
                write(name);
                is_missing = true;
            }
        }
        if is_missing {
            write(
                ", for which this program is built: use a processor with x86-64-v2 (QEMU: `-cpu host`), or build the program with \
                 `RUSTFLAGS= cargo build --release`\n",
            );
            // SAFETY: ends the process.
            unsafe { libc::_exit(1) }
        }
    }

    /// Writes to standard error without the standard library, which is not initialised yet.
    fn write(text: &str) {
        // SAFETY: the text is readable. An error is ignored: there is no other place to report it.
        let _ = unsafe { libc::write(2, text.as_ptr().cast(), text.len()) };
    }
}

#[cfg(all(test, target_arch = "x86_64", target_os = "linux"))]
mod tests {
    use super::x86::{EXTENSIONS, features};

    #[test]
    fn the_processor_has_what_the_kernel_says() {
        let text = std::fs::read_to_string("/proc/cpuinfo").unwrap();
        let flags = text.lines().find(|line| line.starts_with("flags")).unwrap();
        let has = |flag: &str| flags.split_whitespace().any(|it| it == flag);
        let of_kernel = ["pni", "ssse3", "sse4_1", "sse4_2", "popcnt"].map(has);
        let of_processor = EXTENSIONS.map(|(_, bit, _)| features() >> bit & 1 != 0);
        assert_eq!(of_processor, of_kernel);
    }
}
