//! The smallest train: one junction greets, the next one shouts.

use trax_sdk::prelude::*;

trax_sdk::export!(hello);

/// Whom to greet.
#[derive(Value)]
struct Person {
    name: String,
}

/// What the first junction gives and the second one takes.
#[derive(Value)]
struct Greeting {
    text: String,
}

/// The result.
#[derive(Value)]
struct Shout {
    text: String,
}

fn hello(train: NewTrain) -> Train {
    train
        .named::<Person, Shout>("hello", "Greets a person, loudly.")
        .chain(|chain| chain.junction("Greet", greet).junction("Shout", shout))
}

fn greet(person: Person) -> Greeting {
    info!("greeting {}", person.name);
    Greeting { text: format!("Hello, {}!", person.name) }
}

fn shout(greeting: Greeting) -> Shout {
    Shout { text: greeting.text.to_uppercase() }
}
