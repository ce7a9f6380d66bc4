//! Resolves host names.

use std::io;
use std::net::IpAddr;

use helve_core::BoxFuture;

/// Resolves names to addresses. A request resolves its host once and connects to nothing else.
pub trait NameResolver: Send + Sync {
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>>;
}

/// The resolver of the operating system.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemResolver;

impl NameResolver for SystemResolver {
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        Box::pin(async move {
            // The dot keeps the search list of the system from turning `docs.rs` into `docs.rs.example.com`. Names
            // without a dot, such as `localhost`, are often only found in that list or in the hosts file.
            let name = if name.contains('.') { format!("{name}.") } else { name.into() };
            let addresses = tokio::net::lookup_host((name, 0)).await?;
            Ok(addresses.map(|address| address.ip()).collect())
        })
    }
}
