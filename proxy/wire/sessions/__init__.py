"""Sessions: settings that a client's later statements are asked with."""
