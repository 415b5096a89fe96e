"""Who is calling: tokens, certificates, what they open, and the door that every call passes."""
