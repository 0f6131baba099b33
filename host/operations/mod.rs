//! What operators do: one function per action, whichever face asks for it.
//!
//! - [`component_file`] loads a component and verifies its trains; [`deploy`] stores it and makes it the active one.
//! - [`manifest_file`] reads what is stated in a TOML file, by means of [`table`] and [`duration`]; [`apply`] states it
//!   in the store, all of it or nothing.
//! - [`triggers`] run manifests now; [`tenants`] says whom the store serves.
//! - [`trains`], [`runs`] and [`dead_letters`] read. [`bench`] measures the queue.

pub mod apply;
pub mod bench;
pub mod component_file;
pub mod dead_letters;
pub mod deploy;
pub mod duration;
pub mod error;
pub mod manifest_file;
pub mod runs;
pub mod table;
pub mod tenants;
pub mod trains;
pub mod triggers;
