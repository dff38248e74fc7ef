//! Decodes an instruction's memory accesses before it runs: addresses, sizes, read or write.

use iced_x86::{
    Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess,
    Register, UsedMemory,
};
use nix::libc::user_regs_struct as Registers;

/// Classes of instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Plain,
    Call,
    /// A system call: the kernel runs for the thread.
    System,
}

/// A decoded instruction.
pub struct Decoded {
    pub kind: Kind,
    pub next: u64,
    memory: Vec<UsedMemory>,
}

/// A memory access of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    pub address: u64,
    pub bytes: u64,
    pub reads: bool,
    pub writes: bool,
}

/// Maximum length of an instruction in bytes.
pub const LONGEST: usize = 15;

impl Decoded {
    /// Decodes the instruction at `ip` from its bytes; `None` if they are not an instruction.
    pub fn new(bytes: &[u8], ip: u64, factory: &mut InstructionInfoFactory) -> Option<Self> {
        let mut decoder = Decoder::with_ip(64, bytes, ip, DecoderOptions::NONE);
        let instruction = decoder.decode();
        if instruction.is_invalid() {
            return None;
        }
        let used = factory.info(&instruction).used_memory();
        let touches = |m: &&UsedMemory| m.access() != OpAccess::NoMemAccess;
        Some(Decoded {
            kind: kind(&instruction),
            next: instruction.next_ip(),
            memory: used.iter().filter(touches).copied().collect(),
        })
    }

    /// Calls `each` for every access; returns the number of accesses with unknown addresses (gathers and scatters, whose
    /// addresses are in vector registers).
    pub fn accesses(&self, registers: &Registers, mut each: impl FnMut(Access)) -> usize {
        let mut unknown = 0;
        for memory in &self.memory {
            let value = |register, _, _| value_of(register, registers);
            let Some(address) = memory.virtual_address(0, value) else {
                unknown += 1;
                continue;
            };
            let (reads, writes) = ways(memory.access());
            let bytes = memory.memory_size().size().max(1) as u64;
            each(Access {
                address,
                bytes,
                reads,
                writes,
            });
        }
        unknown
    }
}

fn kind(instruction: &Instruction) -> Kind {
    match instruction.flow_control() {
        FlowControl::Call | FlowControl::IndirectCall
            if instruction.mnemonic() == Mnemonic::Syscall =>
        {
            Kind::System
        }
        FlowControl::Call | FlowControl::IndirectCall => Kind::Call,
        _ => Kind::Plain,
    }
}

/// Whether an access reads, and whether it writes; conditional accesses count, because they move the cache line too.
fn ways(access: OpAccess) -> (bool, bool) {
    match access {
        OpAccess::Read | OpAccess::CondRead => (true, false),
        OpAccess::Write | OpAccess::CondWrite => (false, true),
        OpAccess::ReadWrite | OpAccess::ReadCondWrite => (true, true),
        _ => (false, false),
    }
}

fn value_of(register: Register, r: &Registers) -> Option<u64> {
    Some(match register {
        Register::FS => r.fs_base,
        Register::GS => r.gs_base,
        Register::CS | Register::DS | Register::ES | Register::SS => 0,
        _ if !register.is_gpr() => return None,
        _ => match register.full_register() {
            Register::RAX => r.rax,
            Register::RBX => r.rbx,
            Register::RCX => r.rcx,
            Register::RDX => r.rdx,
            Register::RSI => r.rsi,
            Register::RDI => r.rdi,
            Register::RBP => r.rbp,
            Register::RSP => r.rsp,
            Register::R8 => r.r8,
            Register::R9 => r.r9,
            Register::R10 => r.r10,
            Register::R11 => r.r11,
            Register::R12 => r.r12,
            Register::R13 => r.r13,
            Register::R14 => r.r14,
            Register::R15 => r.r15,
            _ => return None,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(bytes: &[u8]) -> Decoded {
        Decoded::new(bytes, 0x1000, &mut InstructionInfoFactory::new()).unwrap()
    }

    fn accesses(bytes: &[u8]) -> Vec<(u64, u64, bool, bool)> {
        let mut registers = zeros();
        (registers.rax, registers.rsp, registers.fs_base) = (0x5000, 0x7000, 0x9000);
        let mut all = Vec::new();
        let unknown = decoded(bytes).accesses(&registers, |a| {
            all.push((a.address, a.bytes, a.reads, a.writes));
        });
        assert_eq!(unknown, 0);
        all
    }

    fn zeros() -> Registers {
        Registers {
            r15: 0,
            r14: 0,
            r13: 0,
            r12: 0,
            rbp: 0,
            rbx: 0,
            r11: 0,
            r10: 0,
            r9: 0,
            r8: 0,
            rax: 0,
            rcx: 0,
            rdx: 0,
            rsi: 0,
            rdi: 0,
            orig_rax: 0,
            rip: 0,
            cs: 0,
            eflags: 0,
            rsp: 0,
            ss: 0,
            fs_base: 0,
            gs_base: 0,
            ds: 0,
            es: 0,
            fs: 0,
            gs: 0,
        }
    }

    #[test]
    fn loads_stores_and_both() {
        // mov rcx, [rax+8]; mov [rax], ecx; lock xadd [rax], rcx; mov rcx, fs:[0x10]; lea rcx, [rax]
        assert_eq!(accesses(&[0x48, 0x8b, 0x48, 8]), [(0x5008, 8, true, false)]);
        assert_eq!(accesses(&[0x89, 8]), [(0x5000, 4, false, true)]);
        assert_eq!(
            accesses(&[0xf0, 0x48, 0x0f, 0xc1, 8]),
            [(0x5000, 8, true, true)]
        );
        assert_eq!(
            accesses(&[0x64, 0x48, 0x8b, 0x0c, 0x25, 0x10, 0, 0, 0]),
            [(0x9010, 8, true, false)]
        );
        assert_eq!(accesses(&[0x48, 0x8d, 8]), []);
        // vmovdqu [rax], ymm0
        assert_eq!(
            accesses(&[0xc5, 0xfe, 0x7f, 0]),
            [(0x5000, 32, false, true)]
        );
    }

    #[test]
    fn calls_push_and_the_kernel_is_known() {
        // call rax; syscall
        assert_eq!(decoded(&[0xff, 0xd0]).kind, Kind::Call);
        assert_eq!(accesses(&[0xff, 0xd0]), [(0x6ff8, 8, false, true)]);
        assert_eq!(decoded(&[0x0f, 0x05]).kind, Kind::System);
        assert!(Decoded::new(&[0x06], 0, &mut InstructionInfoFactory::new()).is_none());
    }

    #[test]
    fn gathers_are_owned_up_to() {
        // vpgatherdd ymm0, [rax+ymm1*4], ymm2
        let gather = decoded(&[0xc4, 0xe2, 0x6d, 0x90, 0x04, 0x88]);
        assert!(gather.accesses(&zeros(), |_| ()) > 0);
    }
}
