//! Names that a configuration gives to addresses (AddressInfo) and to patterns of rewriters (IPRewriterPatterns), and the names of
//! interfaces, which mean their addresses. Other elements use them in their arguments.

use crate::arguments::{ethernet, mask, plain_words, prefix};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use volley_click_lang::{Network, words};
use volley_wire::MacAddr;

/// The class that names addresses.
pub(crate) const ADDRESSES: &str = "AddressInfo";
/// The class that names patterns.
pub(crate) const PATTERNS: &str = "IPRewriterPatterns";

/// The addresses that a name means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NamedAddresses {
    address: Option<u32>,
    network: Option<(u32, u8)>,
    mac: Option<[u8; 6]>,
    /// The next hop of the default route.
    gateway: Option<u32>,
}

/// The names of a configuration.
#[derive(Clone, Debug, Default)]
pub struct Names {
    stations: BTreeMap<String, NamedAddresses>,
    /// Interfaces that no station has the name of.
    interfaces: BTreeMap<String, NamedAddresses>,
    patterns: BTreeMap<String, String>,
}

/// Which addresses of a name a text needs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// An address, else a prefix, else a MAC address.
    Address,
    /// An address or prefix, and the MAC address behind it.
    Both,
}

fn ip(address: u32) -> String {
    Ipv4Addr::from_bits(address).to_string()
}

fn mac(bytes: [u8; 6]) -> String {
    MacAddr(bytes).to_string()
}

impl NamedAddresses {
    /// An interface with this MAC address, IPv4 address and length of its prefix, and gateway.
    pub(crate) fn interface(
        mac: [u8; 6],
        address: Option<(u32, u8)>,
        gateway: Option<u32>,
    ) -> NamedAddresses {
        NamedAddresses {
            address: address.map(|(address, _)| address),
            network: address.map(|(address, len)| (address & mask(len), len)),
            mac: Some(mac),
            gateway,
        }
    }

    fn learn(&mut self, word: &str) -> bool {
        if let Some(found) = ethernet(word) {
            self.mac = Some(found);
        } else if let Some((address, len)) = prefix(word) {
            if len == 32 || address & !mask(len) != 0 {
                self.address = Some(address);
            }
            if len < 32 {
                self.network = Some((address & mask(len), len));
            }
        } else {
            return false;
        }
        true
    }

    fn prefix(&self) -> Option<String> {
        let (address, len) = self.network?;
        Some(format!("{}/{len}", ip(address)))
    }

    /// The text in the place of the name.
    fn text(&self, wanted: Wanted) -> Option<String> {
        let first = self.address.map(ip).or_else(|| self.prefix());
        let mac = self.mac.map(mac);
        match (wanted, first, mac) {
            (Wanted::Both, Some(first), Some(mac)) => Some(format!("{first} {mac}")),
            (_, Some(first), _) => Some(first),
            (_, None, mac) => mac,
        }
    }
}

impl Names {
    /// Those of a configuration; `interface` gives the addresses of an interface. An error is one sentence, with the place of its element.
    pub(crate) fn of(
        network: &Network,
        interface: &dyn Fn(&str) -> Option<NamedAddresses>,
    ) -> Result<Names, (usize, String)> {
        let mut names = Names::default();
        for element in &network.elements {
            for text in &element.arguments {
                let done = match element.class.as_str() {
                    ADDRESSES => names.add_station(text),
                    PATTERNS => names.add_pattern(text),
                    _ => break,
                };
                done.map_err(|why| (element.at, why))?;
            }
        }
        let texts = network.elements.iter().flat_map(|it| &it.arguments);
        for word in texts.flat_map(|text| words(text)) {
            let name = word
                .rsplit_once(':')
                .map_or(word.as_str(), |(name, _)| name);
            if !names.stations.contains_key(name)
                && let Some(station) = interface(name)
            {
                names.interfaces.insert(name.to_owned(), station);
            }
        }
        Ok(names)
    }

    /// The meaning of a name, which may be that of an interface.
    fn station(&self, name: &str) -> Option<&NamedAddresses> {
        let of_interface = || self.interfaces.get(name);
        self.stations.get(name).or_else(of_interface)
    }

    fn add_station(&mut self, text: &str) -> Result<(), String> {
        let all = plain_words(text);
        let Some((name, words)) = all.split_first() else {
            return Ok(());
        };
        let mut station = self.stations.get(name).copied().unwrap_or_default();
        for word in words {
            // A prefix of IPv6 has no meaning here.
            let is_known = station.learn(word) || word.matches(':').count() > 1;
            if let (false, Some(other)) = (is_known, self.stations.get(word)) {
                station = *other;
            } else if !is_known {
                return Err(format!(
                    "'{word}' is no address of {name}: give IPv4 addresses, prefixes and MAC addresses"
                ));
            }
        }
        self.stations.insert(name.clone(), station);
        Ok(())
    }

    fn add_pattern(&mut self, text: &str) -> Result<(), String> {
        let text = self.spread(text, Wanted::Address);
        match text.split_once(char::is_whitespace) {
            Some((name, pattern)) => {
                let pattern = pattern.trim().to_owned();
                self.patterns.insert(name.to_owned(), pattern);
                Ok(())
            }
            None => Err(format!(
                "'{text}' is no pattern: give a name, and addresses and ports such as 192.0.2.1 1024-65535 - -"
            )),
        }
    }

    /// The value of a word with a suffix: `gate:ip`, `gate:net`, `gate:eth`.
    fn with_suffix(&self, word: &str) -> Option<String> {
        let (name, suffix) = word.rsplit_once(':')?;
        let station = self.station(name)?;
        match suffix {
            "ip" | "addr" | "ip4" => station.address.map(ip),
            "net" | "ipnet" | "ip4net" => station.prefix(),
            "eth" | "ether" => station.mac.map(mac),
            "gw" => station.gateway.map(ip),
            _ => None,
        }
    }

    /// The MAC address of a word: a name with one, or `name:eth`.
    pub(crate) fn mac_of(&self, word: &str) -> Option<String> {
        let of_name = || self.station(word)?.mac.map(mac);
        self.with_suffix(word).or_else(of_name)
    }

    /// The MAC address of a word that is not the name of an interface.
    pub(crate) fn mac_of_address_info(&self, word: &str) -> Option<String> {
        match self.interfaces.contains_key(word) {
            true => None,
            false => self.mac_of(word),
        }
    }

    /// The address of a word.
    pub(crate) fn address_of(&self, word: &str) -> Option<String> {
        let of_name = || self.station(word)?.address.map(ip);
        self.with_suffix(word).or_else(of_name)
    }

    /// The prefix of a word.
    pub(crate) fn prefix_of(&self, word: &str) -> Option<String> {
        let of_name = || {
            let station = self.station(word)?;
            station.prefix().or_else(|| station.address.map(ip))
        };
        self.with_suffix(word).or_else(of_name)
    }

    /// A text of several words with the values of its names. A text without names stays as it is.
    pub(crate) fn spread(&self, text: &str, wanted: Wanted) -> String {
        if self.stations.is_empty() && self.interfaces.is_empty() && self.patterns.is_empty() {
            return text.to_owned();
        }
        let all = words(text);
        let mut is_changed = false;
        let mut before = "";
        let mut made = Vec::new();
        for word in &all {
            let value = match before {
                "pattern" => self.patterns.get(word).cloned(),
                "net" => self.prefix_of(word),
                _ => None,
            };
            // An interface may have the name of a word of an expression.
            let is_address = wanted == Wanted::Both || ["host", "src", "dst"].contains(&before);
            let station = || match is_address {
                true => self.station(word)?.text(wanted),
                false => self.stations.get(word)?.text(wanted),
            };
            let value = value.or_else(|| self.with_suffix(word)).or_else(station);
            is_changed |= value.is_some();
            made.push(value.unwrap_or_else(|| word.clone()));
            before = word;
        }
        match is_changed {
            true => made.join(" "),
            false => text.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> Names {
        let mut names = Names::default();
        names
            .add_station("gate 10.0.0.1 10.0.0.0/8 0:50:ba:85:84:a9")
            .unwrap();
        names.add_station("outside 192.0.2.5/24").unwrap();
        names.add_station("next 2:0:a:11:22:1f").unwrap();
        names.add_pattern("world outside 50000-65535 - -").unwrap();
        names
    }

    #[test]
    fn names_become_addresses_where_they_are_words() {
        let names = names();
        let spread = |text| names.spread(text, Wanted::Address);
        assert_eq!(spread("dst host gate"), "dst host 10.0.0.1");
        assert_eq!(spread("dst net gate"), "dst net 10.0.0.0/8");
        assert_eq!(
            spread("outside:net next:eth"),
            "192.0.2.0/24 02:00:0a:11:22:1f"
        );
        assert_eq!(
            spread("pattern world 0 1"),
            "pattern 192.0.2.5 50000-65535 - - 0 1"
        );
        assert_eq!(spread("\"gates\"  x"), "\"gates\"  x");
        let both = names.spread("gate", Wanted::Both);
        assert_eq!(both, "10.0.0.1 00:50:ba:85:84:a9");
        assert_eq!(names.mac_of("next").unwrap(), "02:00:0a:11:22:1f");
        assert_eq!(names.mac_of("outside"), None);
        assert_eq!(names.address_of("outside:ip").unwrap(), "192.0.2.5");
    }

    #[test]
    fn interfaces_mean_their_addresses_where_an_address_is() {
        let mut names = names();
        let eth0 = NamedAddresses::interface(
            [2, 0, 0, 0, 0, 1],
            Some((0xc000_0209, 24)),
            Some(0xc000_0201),
        );
        names.interfaces.insert("eth0".to_owned(), eth0);
        let udp = NamedAddresses::interface([2, 0, 0, 0, 0, 2], None, None);
        names.interfaces.insert("udp".to_owned(), udp);
        let spread = |text| names.spread(text, Wanted::Address);
        assert_eq!(
            spread("src host eth0 and udp"),
            "src host 192.0.2.9 and udp"
        );
        assert_eq!(
            spread("eth0:net eth0:eth"),
            "192.0.2.0/24 02:00:00:00:00:01"
        );
        assert_eq!(
            names.spread("eth0", Wanted::Both),
            "192.0.2.9 02:00:00:00:00:01"
        );
        assert_eq!(names.address_of("eth0").unwrap(), "192.0.2.9");
        assert_eq!(names.mac_of("eth0").unwrap(), "02:00:00:00:00:01");
        assert_eq!(names.mac_of_address_info("eth0"), None);
        assert_eq!(names.address_of("eth0:gw").unwrap(), "192.0.2.1");
        assert_eq!(names.address_of("udp"), None);
    }

    #[test]
    fn what_is_no_address_is_refused() {
        let mut names = names();
        let refused = names.add_station("x 10.0.0.300").unwrap_err();
        assert!(refused.starts_with("'10.0.0.300' is no address of x"));
        assert!(names.add_pattern("alone").is_err());
        names.add_station("alias gate").unwrap();
        assert_eq!(names.address_of("alias").unwrap(), "10.0.0.1");
    }
}
