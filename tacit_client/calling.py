"""A gRPC channel to `tacit.v1`, for the calls that the driver cannot make."""

from typing import Any, Final

from tacit_client.connecting import Address

MESSAGE_BYTES_MAX: Final = 64 * 2**20


def channel_to(grpc: Any, address: Address) -> Any:
    """A channel to a server, by the module that makes them; to be closed."""
    options = [
        ("grpc.max_receive_message_length", MESSAGE_BYTES_MAX),
        ("grpc.enable_http_proxy", 0),  # plain text to this machine must not leave it
    ]
    if not address.tls:
        return grpc.insecure_channel(address.target, options=options)
    pems = (address.tls_root_certs, address.tls_key, address.tls_cert)
    credentials = grpc.ssl_channel_credentials(
        *(None if pem is None else pem.encode() for pem in pems)
    )
    return grpc.secure_channel(address.target, credentials, options=options)


def credentials_of(address: Address) -> list[tuple[str, str]]:
    """The metadata that presents the token, if there is one."""
    return [] if address.token is None else [("authorization", f"Bearer {address.token}")]
