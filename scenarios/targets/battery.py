"""The battery: what is expected of any receiver that promises to apply a request under a key once. Data; the probes do it.

Sources. `study`: what this project's own documentation shows to be needed, whatever a receiver promises (docs/identity.md,
docs/crashing-dispatch.md, docs/field-cases.md). The IETF draft "The Idempotency-Key HTTP Header Field",
draft-ietf-httpapi-idempotency-key-header-07 of 15 October 2025, by its section and its word: all that it asks of a server's
answers is a SHOULD there, so none of it alone fails a target. What the target file declares replaces what is expected.

Severities: `lost` an operation is told to be done and is not, or never will be; `duplicated` it was done twice; `stuck` it
cannot come to an end; these three fail a target. `unclear`: a sender cannot know what happened; `style`: it can by other means.
"""

import json

from scenarios.explore import strace
from scenarios.targets import probes_answers as answers
from scenarios.targets import probes_calls as calls
from scenarios.targets import probes_deaths as deaths
from scenarios.targets.battery_model import DRAFT, STUDY, Expectation
from scenarios.targets.model import Receiver
from scenarios.targets.probes_deaths import MOST_WAITED_SECONDS
from scenarios.targets.receiver_trial import DUPLICATED, STUCK, STYLE, UNCLEAR, is_json


def _started(receiver: Receiver) -> str | None:
    return None if receiver.command else "the receiver runs already (url): nothing is killed or started again there"


def _traced(_receiver: Receiver) -> str | None:
    return strace.why_not()


def _other_body(receiver: Receiver) -> str | None:
    return None if receiver.operation.other_body is not None else "the target file has no receiver.operation.other_body"


def _members(receiver: Receiver) -> str | None:
    if not is_json(receiver.operation) or len(json.loads(receiver.operation.body)) < 2:
        return "the body is no JSON object with two members"
    return None


def _header(receiver: Receiver) -> str | None:
    return None if receiver.operation.key_field is None else "the key is no header but a field of the body"


def _key_once(receiver: Receiver) -> str | None:
    operation = receiver.operation
    if "{key}" in operation.path or "{key}" in operation.body:
        return "the key stands in the path or the body, too: a request cannot be without it"
    return None


def _fail_once(receiver: Receiver) -> str | None:
    return None if receiver.fail_once is not None else "the target file has no receiver.fail_once"


def _retention(receiver: Receiver) -> str | None:
    policy = receiver.policy
    if policy.retention_seconds is None:
        return "the target file declares no receiver.policy.retention_seconds"
    if policy.clock is None and policy.retention_seconds > MOST_WAITED_SECONDS:
        return (
            f"a retention of {policy.retention_seconds:g} s is not waited for (at most {MOST_WAITED_SECONDS:g} s), and "
            "receiver.policy.clock does not say how to move the clock"
        )
    return None


def _length(length: int) -> Expectation:
    accepted = "are told apart and known again, or are refused with 4xx"
    return Expectation(
        f"key-length-{length}",
        STUDY,
        UNCLEAR if length != 255 else STYLE,
        f"two operations under keys of {length} characters that differ in the last one only, and the first again",
        "both are applied and the third is a repetition" if length == 255 else f"such keys {accepted}",
        answers.key_of_length(length),
        (_header,),
        policy="key_max_length",
    )


BATTERY: tuple[Expectation, ...] = (
    Expectation(
        "replay",
        STUDY,
        DUPLICATED,
        "the same request under the same key again",
        "1 effect",
        answers.replay,
    ),
    Expectation(
        "replay-answer",
        DRAFT,
        UNCLEAR,
        "the same request under the same key again",
        "the result of the completed operation, told again (section 2.6, SHOULD)",
        answers.replay_answer,
    ),
    Expectation(
        "other-body",
        STUDY,
        DUPLICATED,
        "another body under a key that was used",
        "1 effect: that of the first",
        answers.other_body,
        (_other_body,),
    ),
    Expectation(
        "other-body-answer",
        DRAFT,
        UNCLEAR,
        "another body under a key that was used",
        "422 (section 2.7, SHOULD), or 409",
        answers.other_body_answer,
        (_other_body,),
        policy="other_body",
    ),
    Expectation(
        "members-reordered",
        STUDY,
        STYLE,
        "the same JSON with its members in another order",
        "a repetition; a sender that keeps its bytes does not depend on it",
        answers.members_reordered,
        (_members,),
    ),
    Expectation(
        "missing-key",
        DRAFT,
        STYLE,
        "a request without a key",
        "400, where the key is required (section 2.7, SHOULD)",
        answers.missing_key,
        (_key_once,),
        policy="missing_key",
    ),
    Expectation(
        "key-empty",
        DRAFT,
        STYLE,
        "two operations, both with an empty key",
        "refused: a key is a non-empty String (section 2.1)",
        answers.empty_key,
        (_header, _key_once),
    ),
    Expectation(
        "key-doubled",
        DRAFT,
        STYLE,
        "two key headers in one request",
        "refused: a client must not send two (section 2.1)",
        answers.doubled_key,
        (_header, _key_once),
    ),
    Expectation(
        "key-case",
        DRAFT,
        UNCLEAR,
        "two operations under keys that differ in upper and lower case only",
        "2 effects: a key is a String, compared as it is (section 2.1)",
        answers.key_case,
        (_header,),
        policy="case_sensitive",
    ),
    *(_length(length) for length in (1, 255, 256, 4096)),
    Expectation(
        "key-non-ascii",
        DRAFT,
        STYLE,
        "a key with letters outside of ASCII, and the same again",
        "refused, or known again: a String holds ASCII only (section 2.1)",
        answers.key_non_ascii,
        (_header,),
    ),
    Expectation(
        "failure-then-retry",
        STUDY,
        STUCK,
        "the handler fails once, before its effect; then the same request again",
        "the failure is not the key's result: the retry is tried, 1 effect",
        answers.failure_then_retry,
        (_fail_once,),
    ),
    Expectation(
        "hang-up-during-request",
        STUDY,
        STUCK,
        "the client goes after half of the body; then the whole request",
        "1 effect, and the retry is answered",
        answers.hang_up_during,
    ),
    Expectation(
        "hang-up-after-request",
        STUDY,
        STUCK,
        "the client sends the request and goes at once; then the same request again",
        "1 effect, and the retry is answered",
        answers.hang_up_after,
    ),
    Expectation(
        "concurrent-duplicates",
        STUDY,
        DUPLICATED,
        f"the same request from {answers.CROWD} processes at once, up to {answers.CROWD_ROUNDS} times",
        "1 effect",
        answers.concurrent_duplicates,
    ),
    Expectation(
        "concurrent-answers",
        DRAFT,
        UNCLEAR,
        f"the same request from {answers.CROWD} processes at once",
        "one result for all, or a conflict error while it is worked on (section 2.6, SHOULD)",
        answers.concurrent_answers,
    ),
    Expectation(
        "restart-after-success",
        STUDY,
        DUPLICATED,
        "a success; SIGTERM; started again in the same folder; the same request again",
        "1 effect, and the retry is answered",
        deaths.restart_after_success,
        (_started,),
        own=True,
    ),
    Expectation(
        "killed-after-success",
        STUDY,
        DUPLICATED,
        "a success; SIGKILL; started again in the same folder; the same request again",
        "1 effect, and the retry is answered",
        deaths.killed_after_success,
        (_started,),
        own=True,
    ),
    Expectation(
        "killed-while-handling",
        STUDY,
        STUCK,
        "SIGKILL at several moments after the request was sent; started again; the same request again",
        "1 effect, and the retry is answered",
        deaths.killed_while_handling,
        (_started,),
        own=True,
    ),
    Expectation(
        "killed-at-call",
        STUDY,
        STUCK,
        "SIGKILL at a system call of the handling; started again; the same request again",
        "1 effect, and the retry is answered",
        calls.killed_at_calls,
        (_started, _traced),
        own=True,
    ),
    Expectation(
        "hang-up-while-handled",
        STUDY,
        STUCK,
        "the client goes while its request, slowed down, is worked on; then the same request again",
        "1 effect, and the retry is answered",
        calls.hang_up_while_handled,
        (_started, _traced),
        own=True,
    ),
    Expectation(
        "concurrent-slowed",
        STUDY,
        DUPLICATED,
        f"the same request from {answers.CROWD} processes at once, each call of the receiver slowed down",
        "1 effect",
        calls.concurrent_slowed,
        (_started, _traced),
        own=True,
    ),
    Expectation(
        "in-flight",
        DRAFT,
        STYLE,
        "the same request again while the first, slowed down, is under way",
        "409 (section 2.7, SHOULD)",
        calls.in_flight,
        (_started, _traced),
        policy="in_flight",
        own=True,
    ),
    Expectation(
        "retention-kept",
        STUDY,
        DUPLICATED,
        "the same request again shortly before the declared retention is over",
        "1 effect: the key is still known",
        deaths.retention_kept,
        (_started, _retention),
        policy="retention_seconds",
        own=True,
    ),
    Expectation(
        "retention-over",
        STUDY,
        STYLE,
        "the same request again after the declared retention",
        "the key is known for as long as a sender may retry",
        deaths.retention_over,
        (_started, _retention),
        own=True,
    ),
)
