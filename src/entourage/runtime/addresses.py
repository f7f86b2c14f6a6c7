"""Where a server listens, and whether that is this machine alone."""

import socket
from ipaddress import ip_address

from entourage.errors import InputError

__all__ = ["bound_socket", "host_of", "is_loopback"]


def is_loopback(host: str) -> bool:
    """Whether an address is reached from this machine alone.

    >>> is_loopback("localhost"), is_loopback("127.0.0.1"), is_loopback("[::1]"), is_loopback("0.0.0.0")
    (True, True, True, False)
    """
    try:
        return host == "localhost" or ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def host_of(header: str) -> str:
    """The host that a Host header names, without its port.

    >>> host_of("localhost:8317"), host_of("[::1]:8317")
    ('localhost', '[::1]')
    """
    return header.partition("]")[0] + "]" if header.startswith("[") else header.partition(":")[0]


def bound_socket(host: str, port: int) -> socket.socket:
    """A socket that listens there; what cannot be bound is an InputError that names --host and --port."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        bound = socket.create_server((host.strip("[]"), port), family=family, backlog=2048)
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(
            f"port {port} of {host} cannot be bound ({reason}); choose another --port or --host"
        ) from error
    bound.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # else an answer waits 40 ms for its second half
    return bound
