//! Who asks: the bearer of a token, or anybody where the server says so.

use std::net::{IpAddr, SocketAddr};

use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;

use crate::api::Api;
use crate::model::access::Role;
use crate::model::ids::TenantId;
use crate::operations::access::Caller;
use crate::operations::tokens;
use crate::store::StoreError;

/// For whom somebody without a token asks.
#[derive(Debug, Clone, Copy)]
pub struct Anonymous {
    /// The tenant.
    pub tenant: TenantId,
    /// What they may.
    pub role: Role,
}

/// Why a request is not answered.
#[derive(Debug)]
pub enum Refused {
    /// It bears no token that is accepted.
    Unauthorized,
    /// Whether it does is not known: the store is away.
    Unavailable(StoreError),
}

/// Who asks, by the token in the header `Authorization: Bearer ..`.
///
/// # Errors
/// [`Refused`] when nobody may who asks like this.
pub async fn caller(api: &Api, headers: &HeaderMap, origin: &str) -> Result<Caller, Refused> {
    match headers.get(AUTHORIZATION) {
        Some(header) => {
            let presented =
                header.to_str().ok().and_then(of_scheme).ok_or(Refused::Unauthorized)?;
            bearer(api, presented, origin).await
        }
        None => match api.0.anonymous {
            Some(Anonymous { tenant, role }) => {
                let (name, origin) = ("anonymous".to_owned(), origin.to_owned());
                Ok(Caller { tenant, name, role, origin })
            }
            None => Err(Refused::Unauthorized),
        },
    }
}

/// Who bears this token.
///
/// # Errors
/// [`Refused`] when nobody does.
pub async fn bearer(api: &Api, presented: &str, origin: &str) -> Result<Caller, Refused> {
    let found = tokens::bearer(api.db(), presented, origin).await.map_err(Refused::Unavailable)?;
    found.ok_or(Refused::Unauthorized)
}

/// The address that a request comes from. What the proxy in front saw is the last one of `X-Forwarded-For`; those
/// before it are what whoever asked made up.
pub fn origin(api: &Api, headers: &HeaderMap, address: SocketAddr) -> String {
    let forwarded = api.0.is_behind_proxy.then(|| forwarded_for(headers)).flatten();
    forwarded.unwrap_or_else(|| address.ip()).to_string()
}

fn forwarded_for(headers: &HeaderMap) -> Option<IpAddr> {
    let last = headers.get_all("x-forwarded-for").iter().next_back()?.to_str().ok()?;
    last.rsplit(',').next()?.trim().parse().ok()
}

/// What follows `Bearer `; the name of the scheme is in any case.
fn of_scheme(header: &str) -> Option<&str> {
    let (scheme, presented) = header.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| presented.trim_start_matches(' '))
}

#[cfg(test)]
mod tests {
    use super::of_scheme;

    #[test]
    fn a_bearer_is_named_in_any_case() {
        for (header, expected) in [
            ("Bearer abc", Some("abc")),
            ("bearer  abc", Some("abc")),
            ("Basic abc", None),
            ("Bearer", None),
            ("", None),
        ] {
            assert_eq!(of_scheme(header), expected, "{header}");
        }
    }
}
