//! The object of this crate: a sub-interface.

use volley_iface::VLAN;
use volley_iface::{SubInterfaceRow, VlanTag};
use volley_object::{Class, DefinitionError, FieldError, Object, refuse};

/// Sub-interface: frames of another interface that have certain VLAN tags (IEEE 802.1Q) and no others. MAC address, link and
/// promiscuous mode are those of the parent. Without tags, the number of the sub-interface is the VLAN.
#[derive(Clone, Debug, PartialEq, Eq, Object)]
#[object(class = "sub_interface", interface = "sub-interface", check = SubInterface::check)]
#[object(instead("show vlan", "VLANs are sub-interfaces here: use `show interfaces`"))]
#[object(
    formerly = "sub-interface inner=inner_dot1q vlan@tag.dot1q=dot1q vlan@tag.dot1ad=dot1ad vlan=dot1q tag="
)]
#[object(
    set = "create (sub-interfaces | sub-interface) <parent> <id> {exact-match | mtu <+mtu>} \
           [(dot1q <dot1q> | dot1ad <dot1ad>) {inner-dot1q <inner_dot1q> | exact-match | mtu <+mtu>}]"
)]
#[object(unset = "delete (sub-interface | subif) <name>")]
#[object(example = "create sub-interfaces pg0 100 dot1ad 100 inner-dot1q 7 exact-match")]
pub struct SubInterface {
    /// Name of the sub-interface: the parent, a dot and the number.
    #[object(key, derived = SubInterface::usual_name, example = "pg0.100")]
    pub name: String,
    /// Interface whose frames the sub-interface takes.
    #[object(part_of = "interface")]
    pub parent: String,
    /// Number of the sub-interface, the last part of the name.
    #[object(request, derived = SubInterface::usual_id)]
    pub id: Option<u32>,
    /// VLAN of the outer tag, type 0x8100; without a tag, the number of the sub-interface.
    #[object(range = VLAN, derived = SubInterface::usual_vlan)]
    pub dot1q: Option<u16>,
    /// VLAN of the outer tag, type 0x88a8.
    #[object(range = VLAN)]
    pub dot1ad: Option<u16>,
    /// VLAN of a second tag, behind the outer one.
    #[object(range = VLAN)]
    pub inner_dot1q: Option<u16>,
}

impl SubInterface {
    fn usual_name(&self) -> String {
        let id = self.id.map(|id| format!("{}.{id}", self.parent));
        id.unwrap_or_default()
    }

    fn usual_id(&self) -> Option<u32> {
        self.name.rsplit_once('.')?.1.parse().ok()
    }

    fn usual_vlan(&self) -> Option<u16> {
        let id = u16::try_from(self.id?).ok();
        id.filter(|id| self.dot1ad.is_none() && VLAN.contains(id))
    }

    fn check(&self) -> Result<(), FieldError> {
        if self.id.is_none() || self.name != self.usual_name() {
            let why = format!(
                "must be the parent's name, a dot and a number, such as {}.100",
                self.parent
            );
            return refuse("name", &why);
        }
        match (self.dot1q, self.dot1ad) {
            (Some(_), Some(_)) => {
                refuse("dot1ad", "must not be beside dot1q: there is one outer tag")
            }
            (None, None) => refuse(
                "id",
                "must be a VLAN, 1 to 4094, where there is no tag: give the tag, such as dot1q 100",
            ),
            _ => Ok(()),
        }
    }
}

impl From<SubInterfaceRow> for SubInterface {
    fn from(it: SubInterfaceRow) -> Self {
        let vlan = |tag| (it.tag == tag).then_some(it.vlan);
        SubInterface {
            name: it.name(),
            id: Some(it.id),
            dot1q: vlan(VlanTag::Dot1q),
            dot1ad: vlan(VlanTag::Dot1ad),
            inner_dot1q: it.inner,
            parent: it.parent,
        }
    }
}

/// The classes of this crate.
pub fn classes() -> Result<Vec<Class>, DefinitionError> {
    Ok(vec![SubInterface::class()?])
}
