"""Whether a cluster lets this machine in: what it wants (TLS, a token) is asked first, as Ray itself tries for
minutes and says little."""

import os
import pathlib
import socket
import ssl

# How long the cluster may take to answer, in seconds. Without an answer, no objection is raised.
PATIENCE = 5
# A remote procedure of each protocol that every client may call, with its arguments: the client's is `PING`.
CLIENT, OWN = ("/ray.rpc.RayletDriver/ClusterInfo", b"\x08\x06"), ("/ray.rpc.NodeInfoGcsService/GetClusterId", b"")
TLS = ("RAY_TLS_SERVER_CERT", "RAY_TLS_SERVER_KEY", "RAY_TLS_CA_CERT")


def objection(host, port, is_client):
    """Why the cluster would refuse us, and what the user can do; `None` if no reason is known."""
    ours, theirs = os.environ.get("RAY_USE_TLS", "0").lower() in ("1", "true"), speaks_tls(host, port)
    if theirs and not ours:
        return f"the cluster wants TLS: set RAY_USE_TLS=1, {', '.join(TLS)}, as it does"
    if ours and theirs is False:
        return "the cluster has no TLS: unset RAY_USE_TLS here, or set it there as well"
    try:
        import grpc
    except ImportError:
        # Ray's own protocol does not need this module.
        return None
    files, missing = certificates() if ours else ([], None)
    return missing or refusal(grpc, f"{host}:{port}", CLIENT if is_client else OWN, files)


def speaks_tls(host, port):
    """Whether the server speaks TLS; `None` if unknown. No data is sent, so the certificate is not verified."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols(["h2"])
    try:
        with socket.create_connection((host, port), PATIENCE) as plain, context.wrap_socket(plain):
            return True
    except (ssl.SSLError, ConnectionError):
        return False
    except OSError:
        return None


def certificates():
    found = []
    for name in TLS:
        try:
            with open(os.environ.get(name, ""), "rb") as file:
                found.append(file.read())
        except OSError as error:
            return [], f"{name} must name a file, as RAY_USE_TLS is set: {error}"
    return found, None


def token():
    """The token that Ray would send, and where it comes from; the first source that has one wins."""
    if os.environ.get("RAY_AUTH_MODE", "").lower() != "token":
        return None, ""
    if value := os.environ.get("RAY_AUTH_TOKEN"):
        return value.strip(), "in RAY_AUTH_TOKEN"
    path = os.environ.get("RAY_AUTH_TOKEN_PATH") or os.path.expanduser("~/.ray/auth_token")
    try:
        return pathlib.Path(path).read_text().strip(), f"in {path}"
    except OSError:
        return None, ""


def refusal(grpc, address, question, files):
    """Why the cluster refuses a call that it allows every authenticated client; `None` if it does not refuse."""
    method, arguments = question
    shown, place = token()
    if files:
        certificate, key, root = files
        channel = grpc.secure_channel(address, grpc.ssl_channel_credentials(root, key, certificate))
    else:
        channel = grpc.insecure_channel(address)
    with channel:
        try:
            metadata = [("authorization", f"Bearer {shown}")] if shown else []
            channel.unary_unary(method)(arguments, timeout=PATIENCE, metadata=metadata)
        except grpc.RpcError as error:
            if error.code() == grpc.StatusCode.UNAUTHENTICATED:
                wants = f"does not take the token {place}" if shown else "wants a token"
                return f"the cluster {wants}: set RAY_AUTH_MODE=token and RAY_AUTH_TOKEN or RAY_AUTH_TOKEN_PATH as it does"
            if files and error.code() == grpc.StatusCode.UNAVAILABLE:
                return f"TLS does not come about ({error.details()}): {', '.join(TLS)} must fit those of the cluster"
    return None
