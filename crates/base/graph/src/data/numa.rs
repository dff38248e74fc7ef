//! Memory nodes (NUMA) of the machine, and the cores of each.

use std::path::Path;
use std::sync::Arc;
use volley_buf::{BufError, Pool};

/// The kernel's directory of memory nodes.
const NODES: &str = "/sys/devices/system/node";

/// The processor cores that workers can be pinned to; none where the system does not report them.
pub fn cores() -> Vec<usize> {
    let all = core_affinity::get_core_ids().unwrap_or_default();
    all.into_iter().map(|core| core.id).collect()
}

/// A memory node with cores that workers can be pinned to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryNode {
    /// The number of the node.
    pub number: u32,
    /// The cores of the node.
    pub cores: Vec<usize>,
}

/// Memory nodes with cores that workers can be pinned to; one node with all cores where the system reports none.
pub fn memory_nodes() -> Vec<MemoryNode> {
    let cores = cores();
    let mut all = read(Path::new(NODES), &cores);
    if all.is_empty() {
        all.push(MemoryNode { number: 0, cores });
    }
    all
}

/// The nodes below a folder that have some of `cores`, by number.
fn read(folder: &Path, cores: &[usize]) -> Vec<MemoryNode> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let node = |entry: std::fs::DirEntry| {
        let number = entry.file_name().to_str()?.strip_prefix("node")?.parse();
        let list = std::fs::read_to_string(entry.path().join("cpulist")).ok()?;
        let mine = |core: &usize| within(&list, *core);
        let cores: Vec<usize> = cores.iter().copied().filter(mine).collect();
        let number = number.ok()?;
        (!cores.is_empty()).then_some(MemoryNode { number, cores })
    };
    let mut all: Vec<MemoryNode> = entries.filter_map(node).collect();
    all.sort_by_key(|n| n.number);
    all
}

/// Whether a list in the kernel's format (`0-3,8`) contains a core.
fn within(list: &str, core: usize) -> bool {
    list.trim().split(',').any(|part| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        match (first.parse(), last.parse()) {
            (Ok(first), Ok(last)) => (first..=last).contains(&core),
            _ => false,
        }
    })
}

/// The memory node of a core.
pub fn node_of(core: usize) -> Option<u32> {
    let all = memory_nodes();
    let near = all.iter().find(|n| n.cores.contains(&core));
    near.map(|n| n.number)
}

/// A pool of `buffers` buffers on each memory node.
pub fn pool(buffers: usize) -> Result<Arc<Pool>, BufError> {
    let nodes = memory_nodes();
    let numbers: Vec<u32> = nodes.iter().map(|n| n.number).collect();
    Pool::on_nodes(buffers, &numbers, &|node, touch| {
        let found = nodes.iter().find(|n| n.number == node);
        let core = found.and_then(|n| n.cores.first().copied());
        std::thread::scope(|scope| {
            scope.spawn(|| {
                if let Some(id) = core {
                    core_affinity::set_for_current(core_affinity::CoreId { id });
                }
                touch();
            });
        });
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_are_those_that_have_cores_to_be_on() {
        let dir = tempfile::tempdir().unwrap();
        let node = |name: &str, list: &str| {
            let folder = dir.path().join(name);
            std::fs::create_dir(&folder).unwrap();
            std::fs::write(folder.join("cpulist"), list).unwrap();
        };
        node("node1", "4-5,9\n");
        node("node0", "0-3\n");
        node("node2", "\n");
        node("node3", "x-y,12");
        node("power", "0-9");
        let is = |number, cores: &[usize]| MemoryNode {
            number,
            cores: cores.to_vec(),
        };
        let all = read(dir.path(), &[0, 1, 2, 5, 9, 11, 12]);
        assert_eq!(
            all,
            [is(0, &[0, 1, 2]), is(1, &[5, 9]), is(3, &[12])],
            "without those that may not be used"
        );
        assert_eq!(read(dir.path(), &[]), []);
        assert_eq!(read(&dir.path().join("none"), &[0]), []);
    }

    #[test]
    fn this_machine_has_nodes_and_a_pool_on_each() {
        let nodes = memory_nodes();
        let pool = pool(64).unwrap();
        let numbers: Vec<u32> = nodes.iter().map(|n| n.number).collect();
        assert_eq!(pool.nodes(), numbers);
        for core in &nodes[0].cores {
            assert_eq!(node_of(*core), Some(nodes[0].number));
        }
        assert_eq!(pool.report().shared_free, 64 * nodes.len());
    }
}
