//! Owners of the object classes of neighbour discovery.

use crate::control::Control;
use crate::model::{Dad, Proxy};
use std::cell::RefCell;
use std::rc::Rc;
use volley_iface::Registry;
use volley_model::{Applied, ModelError, Prefix};
use volley_object::{FieldType, Object, ObjectKey};
use volley_router_discovery::{
    AdvertisedPrefix, Autoconf, AutoconfMode, PREFIXES, RouterAdvertisement,
};

/// Registers the control part as the owner of its classes.
pub(crate) fn own(registry: &mut Registry, control: &Rc<RefCell<Control>>) {
    own_one(registry, control, |control, iface, _, now: Option<Dad>| {
        control.probe_addresses(iface, now.map_or(0, |it| it.probes));
        Ok(())
    });
    own_one(
        registry,
        control,
        |control, iface, _, now: Option<Proxy>| {
            control.answer_for(iface, &now.map_or(Vec::new(), |it| it.prefixes));
            Ok(())
        },
    );
    own_one(
        registry,
        control,
        |control, iface, _, now: Option<Autoconf>| {
            control.autoconfigure(iface, now.map_or(AutoconfMode::Off, |it| it.mode));
            Ok(())
        },
    );
    own_one(
        registry,
        control,
        |control, iface, _, now: Option<RouterAdvertisement>| {
            control.discover(|it, moment| it.advertisers.advertise(iface, now, moment));
            Ok(())
        },
    );
    own_one(
        registry,
        control,
        |control, iface, key, now: Option<AdvertisedPrefix>| {
            let prefix = key.values().get(1).and_then(Prefix::from_value);
            match prefix {
                Some(prefix) => control.discover(|it, moment| {
                    it.advertisers
                        .advertise_prefix(iface, (prefix, now), PREFIXES, moment)
                }),
                None => Ok(()),
            }
        },
    );
}

fn own_one<T: Object + 'static>(
    registry: &mut Registry,
    control: &Rc<RefCell<Control>>,
    apply: impl Fn(&mut Control, u32, &ObjectKey, Option<T>) -> Result<(), ModelError> + 'static,
) {
    let shared = control.clone();
    registry.own_setting(move |index, key, now| {
        let mut control = shared.borrow_mut();
        control.refresh();
        apply(&mut control, index.0, key, now).map(|()| Applied::one())
    });
}
