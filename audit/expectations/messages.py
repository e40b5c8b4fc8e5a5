"""The audit's own table of what goes over the wire: the heads of requests and responses, and the sentences of refusals.

Journals keep sizes and hashes of messages, not their text. With these lines every size is that of a message, and every hash of
a refusal that of a sentence. The contract says the same under "Messages". Plain data; nothing here reads an archive.
"""

from __future__ import annotations

END = "\r\n"
REQUEST = (
    "POST {route} HTTP/1.1", "Host: 127.0.0.1:{port}", "User-Agent: halt23", "Accept: */*", "Accept-Encoding: identity",
    "Content-Type: application/json", "Idempotency-Key: {key}", "{who}", "Content-Length: {length}", "Connection: close",
)  # fmt: skip
RESPONSE = (
    "HTTP/1.1 {status}", "Content-Type: application/json", "Server: halt23", "Content-Length: {length}",
    "Date: Thu, 01 Jan 1970 00:00:00 GMT", "Connection: close",
)  # fmt: skip
REPLAYED = "Idempotency-Replayed: true"
OWN = ("HTTP/1.1 {status}", "Content-Type: application/json", "Content-Length: {length}", "Connection: close")
"""The head of a response that the relay makes up itself."""

LONGEST_RESULT = 1024 * 1024
OWN_ANSWERS: dict[str, tuple[str, str, int]] = {
    "redirect": ("307 Temporary Redirect", "Location: http://127.0.0.1:{port}/operations", 0),
    "unreadable-success": ("200 OK", "", len("<html>it worked</html>")),
    "oversized-success": ("200 OK", "", len('{"answer":""}') + LONGEST_RESULT),
    "retry-after-seconds": ("503 Service Unavailable", "Retry-After: 120", len("{}")),
    "retry-after-date": ("503 Service Unavailable", "Retry-After: Thu, 01 Jan 1970 00:18:40 GMT", len("{}")),
}
"""For each fault that the relay answers by itself: the status, one more line of the head, the length of the body."""

PHRASES: dict[int, tuple[str, ...]] = {
    200: ("OK",), 400: ("Bad Request",), 404: ("Not Found",), 405: ("Method Not Allowed",), 409: ("Conflict",),
    413: ("Request Entity Too Large", "Content Too Large"), 422: ("Unprocessable Entity", "Unprocessable Content"),
    429: ("Too Many Requests",), 503: ("Service Unavailable",), 507: ("Insufficient Storage",),
}  # fmt: skip
"""What stands behind a status; two words where versions of Python differ."""

SENTENCES: dict[str, tuple[str, ...]] = {
    "body_differs": ("this key was used with another body; nothing was done",),
    "key_missing": ("the request has no Idempotency-Key header",),
    "key_empty": ("the Idempotency-Key header is empty",),
    "key_overlong": ("the Idempotency-Key header is longer than 255 characters",),
    "key_repeated": ("the request has more than one Idempotency-Key header",),
    "key_not_ascii": ("the Idempotency-Key header holds something else than visible ASCII characters",),
    "body_too_large": ("the body is larger than 1048576 bytes",),
    "body_incomplete": ("the connection ended in the middle of the body",),
    "method_not_allowed": ("only POST is allowed here", "only GET is allowed here"),
    "not_found": ("there is only /operations and /effects",),
    "key_in_flight": ("a request under this key is being worked on; come again",),
    "registry_full": ("all {capacity} places for keys are taken; nothing was done",),
    "storage_full": ("the disk is full; nothing was done",),
    "storage_failed": ("the receiver cannot write; nothing was done",),
}
"""What a refusal for a reason may say to people; its body is `{"error":REASON,"message":SENTENCE}`."""
