//! `set interface rss`, `set node worker`.

use super::args::Args;
use super::interface::stray;
use crate::grammar::Id;
use volley_model::{Request, Rss, RssHash, RssMode, SyntaxError};

pub(super) fn request(id: Id, args: &mut Args<'_>) -> Result<Request, SyntaxError> {
    match id {
        Id::SetInterfaceRss => interface(args),
        _ => node(args),
    }
}

fn interface(args: &mut Args<'_>) -> Result<Request, SyntaxError> {
    let name = args.text()?;
    let mut rss = Rss::default();
    while let Some((word, column)) = args.option()? {
        match word {
            "off" => return Ok(Request::InterfaceRss { name, rss: None }),
            "toeplitz" => rss.hash = RssHash::Toeplitz,
            "crc32c" => rss.hash = RssHash::Crc32c,
            "symmetric" => rss.symmetric = true,
            "inner" => rss.inner = true,
            "on" => rss.mode = RssMode::On,
            "auto" => rss.mode = RssMode::Auto,
            "workers" => {
                let list = args.text()?;
                let read: Rss = format!("workers {list}")
                    .parse()
                    .map_err(|e| SyntaxError::new(column, e))?;
                rss.workers = read.workers;
            }
            _ => stray(word, column)?,
        }
    }
    let rss = Some(rss);
    Ok(Request::InterfaceRss { name, rss })
}

fn node(args: &mut Args<'_>) -> Result<Request, SyntaxError> {
    let node = args.text()?;
    let worker = match args.take("default") {
        true => None,
        false => Some(args.number32()?),
    };
    Ok(Request::NodeWorker { node, worker })
}
