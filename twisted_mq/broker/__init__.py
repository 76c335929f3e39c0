"""The broker: takes messages, keeps them in a store, hands them to consumers, and registers with name servers."""
