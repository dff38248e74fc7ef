//! Objects of interfaces: settings that every interface has.

use crate::control::InterfaceHandler;
use crate::registry::Registry;
use crate::show::ShowInterfaces;
use crate::show_queues::{ShowFeatures, ShowHardware, ShowRxPlacement};
use crate::states::{AdminState, RxMode, Switch};
use volley_graph::RECEIVE_ARC;
use volley_model::{Applied, Mac, Request, check_name, key_value, limits};
use volley_object::{Class, DefinitionError, FieldError, Object, Query, Verb, refuse};

/// MTU of an interface. Without this setting, an interface has the MTU of the device behind it, or the default of its kind.
#[derive(Clone, Debug, PartialEq, Eq, Object)]
#[object(class = "mtu", file = "interface.mtu")]
#[object(group("create interface", "Create an interface of one of these kinds."))]
#[object(group("delete interface", "Delete an interface, or its description."))]
#[object(group(
    "set interface",
    "State, MTU, addresses, table, layer-2 mode and other settings of an interface."
))]
#[object(group(
    "show interface",
    "Interfaces: state, rates, counters, addresses, features, queues."
))]
#[object(group("workers", "Add and delete workers."))]
#[object(instead(
    "show counters",
    "use `show errors`, `show drops` or `show interfaces detail`"
))]
#[object(set = "set interface mtu [packet] <mtu> <interface>")]
#[object(unset = "set interface mtu default <interface>")]
#[object(example = "set interface mtu 1500 pg0")]
pub struct Mtu {
    /// Interface.
    #[object(key, part_of = "interface")]
    pub interface: String,
    /// L3 MTU: length of the longest IP packet.
    #[object(range = 68u32..=65535, unit = "bytes", example = "1500")]
    pub mtu: u32,
}

/// MAC address of an interface. Without this setting, an interface has the address of the device behind it, or one that is
/// derived from the machine and from the name of the interface.
#[derive(Clone, Debug, PartialEq, Eq, Object)]
#[object(class = "mac", file = "interface.mac", check = MacAddress::check)]
#[object(set = "set interface mac address <interface> <mac>")]
#[object(unset = "set interface mac address <interface> default")]
#[object(example = "set interface mac address pg0 02:fe:00:00:00:01")]
#[object(
    interrupts = "the MAC address of <interface> changes: frames to the old one are dropped meanwhile, until the hosts of the link have learned the new one"
)]
pub struct MacAddress {
    /// Interface.
    #[object(key, part_of = "interface")]
    pub interface: String,
    /// Unicast MAC address.
    pub mac: Mac,
}

impl MacAddress {
    fn check(&self) -> Result<(), FieldError> {
        let why = self.mac.not_of_one_host();
        why.map_or(Ok(()), |why| refuse("mac", format!("must be {why}")))
    }
}

/// Administrative state of an interface. An interface goes up when its addresses and routes are there.
#[derive(Clone, Debug, PartialEq, Eq, Object)]
#[object(class = "admin_state", file = "interface.state", last)]
#[object(formerly = "interface-state name=interface")]
#[object(set = "set interface state <interface> (up@state=up | down@state=down)")]
#[object(example = "set interface state pg0 up")]
pub struct Admin {
    /// Interface.
    #[object(key, part_of = "interface")]
    pub interface: String,
    /// State.
    #[object(default = AdminState::Down, in_file = AdminState::Up)]
    pub state: AdminState,
}

impl Admin {
    /// The request that sets an interface up or down.
    pub fn request(interface: impl Into<String>, state: AdminState) -> Result<Request, FieldError> {
        let interface = interface.into();
        Request::set(&Admin { interface, state })
    }
}

/// Promiscuous mode: the interface receives frames for any MAC address.
#[derive(Clone, Debug, PartialEq, Eq, Object)]
#[object(class = "promiscuous", file = "interface.promiscuous")]
#[object(set = "set interface promiscuous <enabled> <interface>")]
#[object(example = "set interface promiscuous on pg0")]
pub struct Promiscuous {
    /// Interface.
    #[object(key, part_of = "interface")]
    pub interface: String,
    /// Receive frames for any MAC address, not only for the interface's own.
    #[object(default = false)]
    pub enabled: bool,
}

/// Mode in which workers watch the receive queues of an interface.
#[derive(Clone, Debug, PartialEq, Eq, Object)]
#[object(class = "rx_mode", file = "interface.rx_mode")]
#[object(set = "set interface rx-mode <interface> <mode>")]
#[object(example = "set interface rx-mode pg0 polling")]
pub struct ReceiveMode {
    /// Interface.
    #[object(key, part_of = "interface")]
    pub interface: String,
    /// Mode of the receive queues.
    #[object(default = RxMode::Adaptive)]
    pub mode: RxMode,
}

/// Worker of one receive queue of an interface. Queue and worker may come later; a queue without this setting goes to the
/// worker with the fewest queues.
#[derive(Clone, Debug, PartialEq, Eq, Object)]
#[object(class = "rx_placement", file = "interface.rx_placement[]")]
#[object(set = "set interface rx-placement <interface> queue <queue> worker <worker>")]
#[object(set = "set interface rx-placement@queue=0 <interface> worker <worker>")]
#[object(unset = "set interface rx-placement <interface> queue <queue> auto")]
#[object(unset = "set interface rx-placement@queue=0 <interface> auto")]
#[object(example = "set interface rx-placement tap0 queue 1 worker 2")]
pub struct RxPlacement {
    /// Interface.
    #[object(key, part_of = "interface")]
    pub interface: String,
    /// Receive queue.
    #[object(key, range = 0u32..=1023)]
    pub queue: u32,
    /// Worker that polls the queue.
    #[object(range = 0u32..=63)]
    pub worker: u32,
}

/// Longest description, in characters.
const LONGEST: usize = 255;

/// Description of an interface: what it is for, in an operator's words.
#[derive(Clone, Debug, PartialEq, Eq, Object)]
#[object(class = "description", file = "interface.description", check = Description::check)]
#[object(set = "set interface description <interface> <text>")]
#[object(unset = "delete interface description <interface>")]
#[object(example = "set interface description pg0 \"uplink to AS 64500\"")]
pub struct Description {
    /// Interface.
    #[object(key, part_of = "interface")]
    pub interface: String,
    /// Text, 255 characters at most.
    pub text: String,
}

impl Description {
    fn check(&self) -> Result<(), FieldError> {
        match self.text.chars().count() <= LONGEST {
            true => Ok(()),
            false => refuse("text", format!("must have at most {LONGEST} characters")),
        }
    }
}

/// Feature of the graph that is on for an interface, on an arc.
#[derive(Clone, Debug, PartialEq, Eq, Object)]
#[object(class = "feature", file = "[[feature]]", check = ArcFeature::check)]
#[object(formerly = "feature switch=")]
#[object(set = "set (interface feature | feature) <interface> <feature> arc <arc>")]
#[object(unset = "set (interface feature | feature) <interface> <feature> arc <arc> disable")]
#[object(example = "set interface feature pg0 ip4-not-enabled arc ip4-unicast")]
pub struct ArcFeature {
    /// Interface.
    #[object(key, part_of = "interface")]
    pub interface: String,
    /// Feature arc.
    #[object(key, needs = "arc", example = "ip4-unicast")]
    pub arc: String,
    /// Feature: name of its node.
    #[object(key, needs = "arc_feature", example = "ip4-not-enabled")]
    pub feature: String,
}

/// Features that settings of interfaces enable: this class must not contradict them.
const SWITCHED: [(&str, &str); 3] = [
    ("-rx-urpf-", "`set urpf` switches it"),
    ("-redirect", "`set interface ip redirects` switches it"),
    (
        "-sv-reassembly",
        "`set interface ip virtual-reassembly` switches it",
    ),
];

/// Built-in features of received packets, which settings enable. The features of plugins are switched by this class.
const OWNED: [&str; 7] = [
    "worker-handoff",
    "path-batcher",
    "l2-learn",
    "l2-patch",
    "l2-xconnect",
    "linux-cp-xc",
    "click-input",
];

impl ArcFeature {
    fn check(&self) -> Result<(), FieldError> {
        for (field, kind, name) in [
            ("arc", "feature arc", &self.arc),
            ("feature", "feature", &self.feature),
        ] {
            if let Err(error) = check_name(kind, name) {
                return refuse(field, format!("must be a name: {error}"));
            }
        }
        if self.arc == RECEIVE_ARC && OWNED.contains(&self.feature.as_str()) {
            let why = "the settings that own the built-in features of this arc switch them, such as a bridge domain's ports";
            return refuse("feature", format!("'{}': {why}", self.feature));
        }
        match SWITCHED
            .iter()
            .find(|(name, _)| self.feature.contains(name))
        {
            Some((_, why)) => refuse("feature", format!("'{}': {why}", self.feature)),
            None => Ok(()),
        }
    }
}

/// Start one more worker; receive queues are distributed again.
#[derive(Clone, Debug, PartialEq, Eq, Verb)]
#[verb(name = "worker-add", for_all, example = "workers add core 3")]
#[verb(command = "workers add [core <core>]")]
pub struct WorkerAdd {
    /// Processor core of the worker; without one the system chooses.
    #[verb(range = limits::CORE)]
    pub core: Option<u32>,
}

/// End a worker; its receive queues and streams go to others first.
#[derive(Clone, Debug, PartialEq, Eq, Verb)]
#[verb(name = "worker-delete", for_all, example = "workers del 1")]
#[verb(command = "workers del <worker>")]
pub struct WorkerDelete {
    /// Number of the worker.
    #[verb(range = limits::WORKER)]
    pub worker: u32,
}

/// Give vectors at most so many packets, while packets flow, until Volley ends.
#[derive(Clone, Debug, PartialEq, Eq, Verb)]
#[verb(name = "vector-size", example = "set vector-size 128")]
#[verb(command = "set vector-size <packets>")]
pub struct VectorSize {
    /// Most packets of a vector.
    #[verb(range = limits::VECTOR_SIZE)]
    pub packets: u32,
}

/// Set counters of interfaces back.
#[derive(Clone, Debug, PartialEq, Eq, Verb)]
#[verb(name = "interfaces-clear", command = "clear interfaces")]
#[verb(example = "clear interfaces")]
pub struct InterfacesClear;

/// The classes of this crate.
pub fn classes() -> Result<Vec<Class>, DefinitionError> {
    ShowInterfaces::query()?;
    ShowHardware::query()?;
    ShowRxPlacement::query()?;
    ShowFeatures::query()?;
    WorkerAdd::verb()?;
    WorkerDelete::verb()?;
    VectorSize::verb()?;
    InterfacesClear::verb()?;
    Ok(vec![
        Admin::class()?,
        Mtu::class()?,
        MacAddress::class()?,
        Promiscuous::class()?,
        ReceiveMode::class()?,
        RxPlacement::class()?,
        Description::class()?,
        ArcFeature::class()?,
    ])
}

/// Makes the handler the owner of its classes and verbs.
pub(crate) fn own(registry: &mut Registry, handler: &InterfaceHandler) {
    let shared = handler.clone();
    registry.perform(move |_: WorkerAdd| shared.rebalance());
    let shared = handler.clone();
    registry.perform(move |_: WorkerDelete| shared.rebalance());
    let shared = handler.clone();
    registry.perform(move |_: InterfacesClear| shared.clear());
    let shared = handler.clone();
    registry.own(move |key, now: Option<Mtu>| {
        shared.set_mtu(key.owner().unwrap_or_default(), now.map(|it| it.mtu))
    });
    let shared = handler.clone();
    registry.own(move |key, now: Option<MacAddress>| {
        shared.set_mac(key.owner().unwrap_or_default(), now.map(|it| it.mac))
    });
    let shared = handler.clone();
    registry.own(move |key, now: Option<Admin>| {
        let state = now.map(|it| it.state).unwrap_or_default();
        let name = key.owner().unwrap_or_default();
        shared.update(name, |port| port.set_admin(state), |it| it.state = state)
    });
    let shared = handler.clone();
    registry.own(move |key, now: Option<Promiscuous>| {
        let on = now.is_some_and(|it| it.enabled);
        let switch = if on { Switch::On } else { Switch::Off };
        let name = key.owner().unwrap_or_default();
        shared.update(
            name,
            |port| port.set_promiscuous(switch),
            |it| it.promiscuous = on,
        )
    });
    let shared = handler.clone();
    registry.own(move |key, now: Option<ReceiveMode>| {
        let mode = now.map(|it| it.mode).unwrap_or_default();
        let name = key.owner().unwrap_or_default();
        shared.update(name, |port| port.set_rx_mode(mode), |it| it.rx_mode = mode)
    });
    let shared = handler.clone();
    registry.own_setting(move |index, key, now: Option<RxPlacement>| {
        shared.place(index, key_value(key, 1), now.map(|it| it.worker))
    });
    let shared = handler.clone();
    registry.own_setting(move |index, key, now: Option<ArcFeature>| {
        let (arc, feature): (String, String) = (key_value(key, 1), key_value(key, 2));
        shared.feature(index, &arc, &feature, now.is_some())
    });
    let interfaces = registry.interfaces.clone();
    registry.own_setting(move |index, _, now: Option<Description>| {
        let all = &mut interfaces.borrow_mut().descriptions;
        let changed = match now {
            Some(Description { text, .. }) => all.insert(index, text.clone()) != Some(text),
            None => all.remove(&index).is_some(),
        };
        Ok(Applied::changed(changed.into()))
    });
}
