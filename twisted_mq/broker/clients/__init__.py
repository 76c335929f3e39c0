"""Who is connected: producers, consumers, what they subscribe to, hold and have consumed."""
