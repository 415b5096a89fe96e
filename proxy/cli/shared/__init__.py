"""What commands share: options, the client, how they fail, and what they show or write."""
