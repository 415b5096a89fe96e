"""Who is calling: tokens, certificates, roles, and the interceptor that checks every call."""
