//! The server: who is let in, what a document can ask, and that it is what the operations say.

mod access;
mod documents;
mod http;
mod world;
