"""The Adult census table behind Tacit."""
