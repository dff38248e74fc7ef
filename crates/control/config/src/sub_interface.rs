//! Keys of kind `sub-interface`.

use crate::field::{Referred, Section};
use volley_model::{InterfaceKind, ObjectKind, SubInterfaceSpec, VlanTag};

pub(crate) fn kind(section: &Section<'_>) -> Option<InterfaceKind> {
    let parent = section.required("parent")?;
    let vlan = |key| section.get(key).map(|f| (f.uint32(1..=4094), f));
    let name = section.get("name")?;
    let id = name.text()?.rsplit_once('.').map(|(_, id)| id);
    let Some(id) = id.and_then(|id| id.parse::<u32>().ok()) else {
        name.error(
            "ends with a number: a sub-interface is called after its parent, such as eth0.100",
        );
        return None;
    };
    let (tag, outer) = match (vlan("dot1q"), vlan("dot1ad")) {
        (Some(_), Some((_, field))) => {
            field.error("stands beside `dot1q`: there is one outer tag");
            return None;
        }
        (None, Some((vlan, _))) => (VlanTag::Dot1ad, vlan?),
        (Some((vlan, _)), None) => (VlanTag::Dot1q, vlan?),
        (None, None) if (1..=4094).contains(&id) => (VlanTag::Dot1q, id),
        (None, None) => {
            name.error("has no number that is a VLAN: add `dot1q` or `dot1ad`");
            return None;
        }
    };
    let inner = match vlan("inner_dot1q") {
        Some((vlan, _)) => Some(vlan? as u16),
        None => None,
    };
    let owner = parent.text()?;
    parent.refers_to(Referred::Kind(ObjectKind::Interface), owner.to_owned());
    Some(InterfaceKind::SubInterface(SubInterfaceSpec {
        parent: owner.to_owned(),
        id,
        tag,
        vlan: outer as u16,
        inner,
    }))
}
