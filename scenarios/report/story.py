"""Tells a scenario as an ordered story: its steps in order, and for each process what it did, by cause.

The steps give the order in which processes were started, stopped and looked at; `senders` and `servers` replay what each
program does in between (for a dispatch outbox `acts` and `scans`), `harness` what the harness does itself; `scene` holds the
state. Requests that were made at the same time stand in the order of the arrivals'
journal. The story does not judge: whether the records agree is the audit's work. Where it cannot place a record it says so
and goes on.
"""

from collections.abc import Callable, Mapping
from typing import Any

from outbox.faults import HALT_EXIT_CODE
from receivers.arrivals import ARRIVALS
from scenarios.client import REQUESTS
from scenarios.prefixes import PREFIXES
from scenarios.report import acts, closing, harness, scans, senders, servers
from scenarios.report.actors import Absent, Actor, Doubts, Halted, Replay, capital, lost_place
from scenarios.report.events import JOURNAL_LETTERS, TABLE_LETTERS, Kind, Story, Trait
from scenarios.report.facts import Line, ScenarioEvidence
from scenarios.report.posting import DATABASE, open_database
from scenarios.report.scene import Scene
from scenarios.report.servers import Request
from scenarios.report.shelf import Cursor
from scenarios.report.words import counted, plain, tallied, text_of

MAX_TELLINGS = 4
UNFORESEEN = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
Step = Mapping[str, Any]
# Exit codes of a process that ended before it did anything that is recorded.
_TURNED_AWAY = {2: "bad input", 13: "lock held", 14: "damaged journal", 16: "the machine refused"}


def tell(scenario: ScenarioEvidence) -> Story:
    """The story of `scenario`. Never raises for what its files hold.

    Where something is in doubt it is told again: nothing is called lost then, and a process that halted at a place which was
    not passed writes no receipts and no history.
    """
    doubts = Doubts()
    for _ in range(MAX_TELLINGS):
        teller = _Teller(scenario, doubts)
        story = teller.tell()
        wiser = Doubts(doubts.astray | teller.astray, doubts.certain and not story.doubts)
        if wiser == doubts:
            break
        doubts = wiser
    return story


class _Teller:
    def __init__(self, scenario: ScenarioEvidence, doubts: Doubts) -> None:
        self._scenario = scenario
        self._scene = Scene(scenario, doubts)
        self.astray: set[int] = set()  # the lanes that halted at a place which was not passed

    def tell(self) -> Story:
        scene = self._scene
        try:
            self._walk()
        except UNFORESEEN as error:
            scene.doubt(f"What follows could not be told: {type(error).__name__}: {plain(error)}.")
        scene.leftovers()
        closing.say_differences(scene)
        found = self._scenario.counts
        if found is not None and found != scene.counts:
            other = tallied(found.values(), tables=scene.books is not None)
            scene.doubt(f"results.json has other counts than this story comes to: {other}.")
        lanes = tuple(actor.lane for actor in scene.actors)
        letters = TABLE_LETTERS if scene.books else JOURNAL_LETTERS
        return Story(self._scenario.path, lanes, tuple(scene.events), tuple(closing.sentences(scene)), letters)

    def _walk(self) -> None:
        scene = self._scene
        started = max((process.step for process in self._scenario.processes), default=0)
        failed = bool(self._scenario.problems)
        if scene.books:
            open_database(scene)
        for number, step in enumerate(self._scenario.steps, 1):
            if failed and number > started:
                break  # the scenario was given up; the problems say in which step
            scene.shelf.step = number
            do = step.get("do")
            handler: Callable[[Step], None] | None = getattr(self, f"_do_{do}", None) if isinstance(do, str) else None
            if handler is not None:
                handler(step)
            elif isinstance(do, str) and do in harness.STEPS:
                harness.STEPS[do](scene, step)
            else:
                scene.doubt(f"Step {number} is none that this story knows: {plain(do)}.")
            self._afterwards()
        for actor in scene.actors:
            if actor.running and actor.lane.role != DATABASE:
                self._ended(actor)

    def _afterwards(self) -> None:
        """What receivers do with requests whose senders did not wait for them."""
        waiting, self._scene.later = self._scene.later, []
        for server, replay in waiting:
            self._drive(server, replay)

    # Steps that start something.

    def _do_start(self, _step: Step) -> None:
        for actor in self._started():
            self._drive(actor, self._program(actor))

    def _do_run(self, step: Step) -> None:
        self._do_start(step)
        for actor in self._scene.actors:
            if actor.running and actor.process.step == self._scene.shelf.step:
                self._ended(actor)

    _do_begin = _do_start

    def _started(self) -> list[Actor]:
        step = self._scene.shelf.step
        chosen = [process for process in self._scenario.processes if process.step == step]
        # The first process begins beside the database.
        beside = self._scene.books is not None and len(self._scene.events) == 1
        return [self._scene.enter(process, joined=at > 0 or beside) for at, process in enumerate(chosen)]

    def _program(self, actor: Actor) -> Replay[None]:
        process = actor.process
        programs: dict[str, Callable[[Scene, Actor], Replay[None]]] = {
            "producer": senders.producer,
            "dispatcher": senders.dispatcher,
            "client": senders.client,
            "receiver": servers.opening,
            "relay": servers.opening,
            "scheduler": scans.scan,
            "operator": acts.operator,
        }
        if process.module == "scenarios.dispatch":
            programs["producer"] = acts.producer
        turned_away = process.ended_by == "itself" and process.exit_code in _TURNED_AWAY
        if turned_away and process.pause is None and actor.lane.role != "operator":
            return
        if process.module == "scenarios.prefixes":
            self._prefixes(actor)
        elif actor.lane.role in programs:
            yield from programs[actor.lane.role](self._scene, actor)

    def _prefixes(self, actor: Actor) -> None:
        cursor = self._scene.shelf.cursor(actor.folder(), PREFIXES.name)
        self._scene.look_for(actor, cursor)
        lines = cursor.rest()
        if lines:
            words = f"{len(lines)} prefixes opened"
            sentence = f"{capital(actor.name)} opens a journal that ends after each byte of its last record"
            sentence += f", and records {counted(len(lines), 'finding')}."
            self._scene.emit(Kind.RECORD, words, sentence, actor, refs=[cursor.ref(line) for line in lines])

    def _drive(self, actor: Actor, replay: Replay[object]) -> None:
        """Let a replay go on to its end, or until the process (or the one it waits for) pauses."""
        try:
            actor.waits_for = next(replay)
        except StopIteration:
            if actor.lane.role not in ("receiver", "relay"):
                self._ended(actor, joined=self._has_just_written(actor))
        except Halted as halt:
            self._scene.halted(halt.actor)
        except Absent as absence:
            if actor.process.signal is None:
                self._scene.doubt(str(absence))
            if actor.lane.role not in ("receiver", "relay"):
                self._ended(actor)
        else:
            actor.suspended = replay

    def _has_just_written(self, actor: Actor) -> bool:
        """Whether a scan's last deed at the database is the row that was told last: it ends there."""
        row = self._scene.events[-2:]
        said = [event for event in row if event.kind is Kind.MESSAGE and event.lane == actor.number]
        return actor.lane.role == "scheduler" and bool(said) and (said[0] is row[-1] or row[-1].joined)

    def _do_together(self, _step: Step) -> None:
        actors = self._started()
        if any(actor.lane.role != "client" for actor in actors):
            for actor in actors:
                self._drive(actor, self._program(actor))
            return
        crowd = self._crowd(actors)
        for actor in actors[:1]:
            self._drive(actor, crowd)
        for actor in actors:
            self._ended(actor)

    def _crowd(self, actors: list[Actor]) -> Replay[None]:
        """Bare clients at the same time: what the receiver did, in the order of its log."""
        scene = self._scene
        waiting: dict[str, tuple[Actor, Cursor, str]] = {}
        for at, actor in enumerate(actors):
            requests = scene.shelf.cursor(actor.folder(), REQUESTS.name)
            line = yield from senders.client_request(scene, actor, requests, joined=at > 0)
            waiting[actor.process.name] = (actor, requests, text_of(line.data, "key"))
        server = scene.running(servers.target(actors[0]))
        if server is None:
            return
        arrivals = scene.shelf.cursor(server.folder(), ARRIVALS.name)
        open_arrivals: dict[str, tuple[Line, str]] = {}
        while line_next := arrivals.peek():
            sender = text_of(line_next.data, "sender")
            if line_next.type == "arrival" and sender in waiting:
                actor, _requests, key = waiting[sender]
                request = Request(key, key, None, sender, "POST")
                scene.emit(Kind.MESSAGE, "POST", f"The request of {actor.name} reaches {server.name}.", actor, to=server)
                open_arrivals[line_next.id] = ((yield from servers.arrive(scene, server, arrivals, request)), sender)
            elif line_next.type == "answer" and line_next.id in open_arrivals:
                arrival, sender = open_arrivals.pop(line_next.id)
                actor, requests, key = waiting.pop(sender)
                answer = yield from servers.answer_of(scene, server, arrivals, arrival, key)
                servers.respond(scene, server, actor, answer)
                yield from senders.client_result(scene, actor, requests, joined=True)
                self._ended(actor, joined=True)
            else:
                return

    # Steps that end or hold something.

    def _do_stop(self, step: Step) -> None:
        actor = self._scene.latest(text_of(step, "process"))
        if actor is not None and actor.running:
            self._ended(actor)

    _do_kill = _do_stop
    _do_await = _do_stop

    def _ended(self, actor: Actor, *, joined: bool = False) -> None:
        """The end of a process, as the kernel told it."""
        if not actor.running:
            return
        actor.running, actor.suspended = False, None
        process = actor.process
        if process.signal is not None:
            by = "the harness" if process.ended_by == "harness" else "a step"
            words, sentence = (
                plain(process.signal, 20),
                f"{capital(actor.name)} is ended by {by} with {plain(process.signal, 20)}.",
            )
            self._scene.emit(Kind.END, words, sentence, actor, traits=[Trait.KILLED], joined=joined)
            return
        if process.exit_code == HALT_EXIT_CODE and process.fault:
            self.astray.add(actor.number)
            if not any(event.sentence.startswith(lost_place(actor)) for event in self._scene.events):
                self._scene.doubt(f"{lost_place(actor)}.")
        why = actor.remark or (_TURNED_AWAY.get(process.exit_code or 0) if process.ended_by == "itself" else None)
        how = "is stopped (SIGTERM)," if process.ended_by == "stop" else "ends with"
        words = f"exit {process.exit_code}{f': {why}' if why else ''}"
        sentence = f"{capital(actor.name)} {how} exit code {process.exit_code}{f' ({why})' if why else ''}."
        traits = [Trait.REFUSED] if process.exit_code else []
        self._scene.emit(Kind.END, words, sentence, actor, traits=traits, joined=joined)

    def _do_await_paused(self, step: Step) -> None:
        actor = self._scene.latest(text_of(step, "process"))
        paused = any(event.kind is Kind.PAUSE and actor and event.lane == actor.number for event in self._scene.events)
        if not paused:
            self._scene.doubt(f"A step waits for the pause of {plain(step.get('process'))}, which this story did not see.")

    def _do_resume(self, step: Step) -> None:
        actor = self._scene.latest(text_of(step, "process"))
        if actor is None:
            return
        self._scene.emit(Kind.RESUME, "goes on (SIGCONT)", f"{capital(actor.name)} goes on (SIGCONT).", actor)
        held = [each for each in self._scene.actors if each.suspended is not None and each.waits_for is actor]
        for each in sorted(held, key=lambda one: one is not actor):
            replay, each.suspended = each.suspended, None
            if replay is not None:
                self._drive(each, replay)
