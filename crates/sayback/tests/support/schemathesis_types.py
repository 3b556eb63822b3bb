"""How schemathesis writes bodies of the types that it does not know."""

import schemathesis


@schemathesis.serializer("application/sdp", "application/trickle-ice-sdpfrag")
def text(_context, value):
    return value if isinstance(value, bytes) else str(value).encode()
