"""Section wire: nobody dies; the connection between sender and receiver breaks at a chosen byte."""

from scenarios.catalogue.parts import KEYED, UNKEYED, dispatcher, producer, relay
from scenarios.model import Counts, Program, Run, Scenario, Start, Step, Stop

INTRODUCTION = (
    "A relay between the two breaks one exchange at a chosen byte, once. A request that does not arrive whole does nothing; a "
    "response that does not arrive whole leaves an effect and a sender that cannot know. The second pass sends again."
)

UNKNOWN, UNAVAILABLE = 12, 10
ONE = Counts(effects=1, receipts=1, history=1, arrivals=1)
RESENT = Counts(effects=1, receipts=1, history=1, arrivals=2)
TWICE = Counts(effects=2, receipts=1, history=1, arrivals=2)


def _broken_once(
    name: str, fault: str, to: Program = KEYED, exit_code: int = UNKNOWN, options: tuple[str, ...] = ()
) -> tuple[Step, ...]:
    return (
        Start(to),
        Start(relay(f"1:{fault}")),
        Run(producer(f"{name}-1")),
        Run(dispatcher(*options, to="relay"), exit_code=exit_code),
        Run(dispatcher(to="relay")),
        Stop("relay"),
        Stop("receiver"),
    )


def _wire(
    name: str, fault: str, shows: str, look_at: str, expected: Counts, *, to: Program = KEYED, options: tuple[str, ...] = ()
) -> Scenario:
    return Scenario(
        "wire", name, shows, look_at, _broken_once(name, fault, to, options=options), expected, counterexample=expected is TWICE
    )


def _retry_after(name: str, fault: str) -> tuple[Step, ...]:
    """Refused at 1000 s with a wish that means 1120 s in both forms; too early at 1119 s; in time at 1120 s."""
    return (
        Start(KEYED),
        Start(relay(f"1:{fault}")),
        Run(producer(f"{name}-1")),
        Run(dispatcher("--now", "1000", to="relay"), exit_code=UNAVAILABLE),
        Run(dispatcher("--now", "1119", to="relay"), exit_code=UNAVAILABLE),
        Run(dispatcher("--now", "1120", to="relay")),
        Stop("relay"),
        Stop("receiver"),
    )


NO_ARRIVAL = "attempt 1 is in doubt, and nothing of it is in arrivals.jsonl"
REPLAYED = "attempt 1 was applied and its sender could not know; attempt 2 is a replay"

SCENARIOS = (
    _wire("request_cut_before", "cut-request:start", "Request cut before its first byte", NO_ARRIVAL, ONE),
    _wire("request_cut_at_byte", "cut-request:25", "Request cut after 25 bytes, in a header's name", NO_ARRIVAL, ONE),
    _wire("request_cut_in_headers", "cut-request:start-line", "Request cut after its first line", NO_ARRIVAL, ONE),
    _wire(
        "request_cut_after_headers",
        "cut-request:headers",
        "Request cut between headers and body",
        "arrival-1 is refused as body_incomplete: nothing was done",
        RESENT,
    ),
    _wire(
        "request_cut_in_body",
        "cut-request:body-middle",
        "Request cut in the middle of its body",
        "arrival-1 is refused as body_incomplete: nothing was done",
        RESENT,
    ),
    _wire("request_then_silence", "cut-request:end", "Request arrives whole, the connection ends", REPLAYED, RESENT),
    _wire(
        "request_reset",
        "reset-request:headers",
        "Connection reset after the request's headers",
        "arrival-1 is incomplete",
        RESENT,
    ),
    _wire("response_cut_before", "cut-response:start", "Response cut before its first byte", REPLAYED, RESENT),
    _wire("response_cut_at_byte", "cut-response:12", "Response cut after its status code", REPLAYED, RESENT),
    _wire("response_cut_after_headers", "cut-response:headers", "Response cut between headers and body", REPLAYED, RESENT),
    _wire("response_cut_in_body", "cut-response:body-middle", "Response cut in the middle of its body", REPLAYED, RESENT),
    _wire(
        "response_reset",
        "reset-response:body-middle",
        "Connection reset in the middle of the response's body",
        REPLAYED,
        RESENT,
    ),
    _wire(
        "response_cut_unkeyed",
        "cut-response:body-middle",
        "The same cut at an unkeyed receiver",
        "a success status and half of a body came back; the resend was applied again",
        TWICE,
        to=UNKEYED,
    ),
    _wire(
        "response_delayed",
        "hold-response",
        "Response later than the sender's patience, while the receiver commits",
        REPLAYED,
        RESENT,
        options=("--timeout-seconds", "0.2"),
    ),
    _wire(
        "success_unreadable",
        "unreadable-success",
        "Success status with a body that is no result",
        "200 is not a result: no receipt from attempt 1, and attempt 2 is a replay",
        RESENT,
    ),
    _wire(
        "success_oversized",
        "oversized-success",
        "Success status with a body beyond the bound",
        "reading stops at the bound: no receipt from attempt 1, and attempt 2 is a replay",
        RESENT,
    ),
    _wire(
        "redirect_not_followed",
        "redirect",
        "A redirect to the receiver's own address",
        "one arrival, with key and body: had the redirect been followed, there would be one more",
        ONE,
    ),
    Scenario(
        section="wire",
        name="request_duplicated",
        shows="The network delivers one request twice",
        look_at="two arrivals with the same attempt number, one effect",
        steps=(
            Start(KEYED),
            Start(relay("1:duplicate-request")),
            Run(producer("request_duplicated-1")),
            Run(dispatcher(to="relay")),
            Stop("relay"),
            Stop("receiver"),
        ),
        expected=RESENT,
    ),
    Scenario(
        section="wire",
        name="request_duplicated_unkeyed",
        shows="The same at an unkeyed receiver: two effects without any retry or crash",
        look_at="one attempt, two arrivals, two effects: the sender did nothing wrong",
        counterexample=True,
        steps=(
            Start(UNKEYED),
            Start(relay("1:duplicate-request")),
            Run(producer("request_duplicated_unkeyed-1")),
            Run(dispatcher(to="relay")),
            Stop("relay"),
            Stop("receiver"),
        ),
        expected=TWICE,
    ),
    Scenario(
        section="wire",
        name="retry_after_seconds",
        shows="503 with Retry-After in seconds is honoured",
        look_at="the second pass waits and sends nothing; the third is in time",
        steps=_retry_after("retry_after_seconds", "retry-after-seconds"),
        expected=ONE,
    ),
    Scenario(
        section="wire",
        name="retry_after_date",
        shows="503 with Retry-After as a date is honoured",
        look_at="the same, with the HTTP date that names the same second",
        steps=_retry_after("retry_after_date", "retry-after-date"),
        expected=ONE,
    ),
)
