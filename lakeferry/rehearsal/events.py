"""Make the events of topics that nobody writes to in the simulators: from their schemas, so that each export
has a file to publish.
"""

from __future__ import annotations

import base64
import io
import itertools
import json
import random
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

import attrs
import fastavro

from config.deployments.confluent_model import Topic
from config.deployments.deployment_file import LoadedDeployment
from config.exports.windows import Window, find_next_window
from lakeferry.errors import CommandFailed
from lakeferry.rehearsal.steering import steer
from lakeferry.rehearsal.subject import Due, list_due
from lakeferry.verification import oracle
from lakeferry.verification.oracle import Question, Record
from simulators.confluent.datagen import remove_arg_properties
from simulators.data.schema_values import SchemaValues
from simulators.tableflow.topic import KEY_PROPERTY

#: Events that are made for a window, to choose those that can be published, and how many are sent twice.
_CANDIDATES: Final = 700
_REPEATED: Final = 15
#: Events of a topic that no export reads.
_UNREAD: Final = 60
#: Seconds before the end of its window in which Kafka receives an event.
LEAD_SECONDS: Final = 900
_SECONDS_AFTER: Final = 5
#: The moment of a deployment without exports is so long ago.
_HOUR: Final = 3600.0
#: A key of pseudonyms for events that nobody exports yet.
_NO_KEY: Final = bytes(32)


@attrs.frozen
class TopicEvents:
    """The events of a topic, by the end of the window that they are for (seconds since 1970). Those of
    `after` are received after it, one in each partition, so that the window is complete.
    """

    topic: str
    schema: str
    before: dict[float, list[Record]]
    after: dict[float, list[Record]]

    @property
    def records(self) -> list[Record]:
        """Return all records in the order in which they are produced."""
        records = []
        for moment in sorted(self.before):
            records += [*self.before[moment], *self.after[moment]]
        return records


@attrs.frozen
class Plan:
    """`events` are by topic. `moments` are the ends of the exported windows, in seconds since 1970."""

    dues: list[Due]
    events: dict[str, TopicEvents]
    moments: list[float]


def plan(loaded: LoadedDeployment, now: float) -> Plan:
    """Make the events of a deployment, all before `now`, in seconds since 1970.

    Raises CommandFailed for a contract for whose topic no events can be made.
    """
    deployment = loaded.deployment
    dues = list_due(loaded, datetime.fromtimestamp(now, UTC))
    moments = sorted({due.window.end.timestamp() for due in dues}) or [now - _HOUR]
    drafts = []
    for topic in deployment.topics:
        if topic.statement or topic.datagen:
            continue
        of_topic = [due for due in dues if due.contract.source.topic == topic.name]
        drafts.append(_Draft(topic, _read_schema(loaded, topic), of_topic, moments[0]))
    read = [draft for draft in drafts if draft.dues]
    answers = oracle.ask([draft.build_question() for draft in read], _NO_KEY)
    mistakes = []
    for draft, answer in zip(read, answers, strict=True):
        mistakes += list(draft.choose(answer, deployment.exports))
    if mistakes:
        hint = (
            "Write `arg.properties` into the schema, which say what values a field has "
            "(docs/how-to/add-a-topic.md#rehearse-a-topic-of-your-own-producers), and rehearse again; "
            "nothing was started"
        )
        raise CommandFailed("REHEARSAL-FILE", "; ".join(mistakes), hint)
    return Plan(dues, {draft.topic.name: draft.finish() for draft in drafts}, moments)


def _read_schema(loaded: LoadedDeployment, topic: Topic) -> dict[str, Any]:
    """Return the Avro schema of the topic's values. Raises CommandFailed if the project has none."""
    text = loaded.sources.schema_text(topic)
    if not text:
        index = loaded.deployment.topics.index(topic)
        raise CommandFailed(
            "REHEARSAL-FILE",
            f"topics[{index}].schema: {topic.name} has no schema, so no events of it can be made",
            f"Write project/topics/{topic.name}.avsc (for a topic that exists, `lakeferry topics import` "
            "does), or name a file in `schema`; nothing was started",
        )
    schema: dict[str, Any] = json.loads(text)
    return schema


@attrs.define
class _Draft:
    """The events of a topic while they are chosen. `dues` are its exports."""

    topic: Topic
    schema: dict[str, Any]
    dues: list[Due]
    moment: float
    _candidates: list[tuple[float, bytes]] = attrs.Factory(list)
    _chosen: dict[float, list[bytes]] = attrs.Factory(dict)
    _random: random.Random = attrs.field(factory=lambda: random.Random(7))  # noqa: S311 - repeatable

    def build_question(self) -> Question:
        """Make candidates for the windows of the exports, and ask which of them can be published."""
        for window in self._windows:
            values = self._make_values(window)
            moment = window.end.timestamp()
            self._candidates += [(moment, next(values)) for _ in range(_CANDIDATES)]
        records = [
            self._build_record(number, value, moment - 1)
            for number, (moment, value) in enumerate(self._candidates)
        ]
        return Question(self.topic.name, self._plain_schema, records, self.dues, choose=True)

    def choose(self, answer: oracle.Expected, exports: Sequence[Any]) -> Iterator[str]:
        """Keep what can be published. Yield a sentence for each export that would publish nothing."""
        names = [export.contract for export in exports]
        for due in self.dues:
            key = f"exports[{names.index(due.export.contract)}].contract"
            name = due.export.contract
            file = answer.files.get(name)
            made = f"of the events that are made from the schema of {self.topic.name}, {name}"
            if answer.problem:
                yield f"{key}: {made} can't compute some: {answer.problem}"
            elif file and file.problems:
                yield f"{key}: {made} refuses the file: {'; '.join(file.problems)}"
            elif not file or not file.rows:
                yield f"{key}: {made} exports none"
        for index in answer.chosen:
            moment, value = self._candidates[index]
            self._chosen.setdefault(moment, []).append(value)

    def finish(self) -> TopicEvents:
        before = {}
        after = {}
        numbers = itertools.count()
        windows: list[Window | None] = [*self._windows] or [None]
        for window in windows:
            moment = window.end.timestamp() if window else self.moment
            values = self._chosen.get(moment) or list(itertools.islice(self._make_values(window), _UNREAD))
            values = [*values, *values[:_REPEATED]]
            step = LEAD_SECONDS / (len(values) + 1)
            before[moment] = [
                self._build_record(next(numbers), value, moment - LEAD_SECONDS + step * position)
                for position, value in enumerate(values, start=1)
            ]
            later = self._make_values(self._find_following(window))
            after[moment] = [
                self._build_record(next(numbers), next(later), moment + _SECONDS_AFTER, partition)
                for partition in range(self._partitions)
            ]
        return TopicEvents(self.topic.name, self._plain_schema, before, after)

    @property
    def _windows(self) -> list[Window]:
        return list({due.window.end: due.window for due in self.dues}.values())

    def _find_following(self, window: Window | None) -> Window | None:
        due = next((due for due in self.dues if due.window == window), None)
        return find_next_window(due.window, due.contract.window) if due else None

    @property
    def _partitions(self) -> int:
        return self.topic.new_partitions

    @property
    def _plain_schema(self) -> str:
        return json.dumps(remove_arg_properties(self.schema))

    def _make_values(self, window: Window | None) -> Iterator[bytes]:
        contracts = [due.contract for due in self.dues]
        schema = steer(self.schema, contracts, window) if window else self.schema
        values = SchemaValues(schema, self._random)
        parsed = fastavro.parse_schema(json.loads(self._plain_schema))
        while True:
            encoded = io.BytesIO()
            fastavro.schemaless_writer(encoded, parsed, values.next())
            yield encoded.getvalue()

    def _build_record(self, number: int, value: bytes, time: float, partition: int | None = None) -> Record:
        key = self._find_key(value)
        chosen = number % self._partitions if partition is None else partition
        encoded_key = base64.b64encode(key).decode() if key is not None else None
        return Record(chosen, number, int(time * 1000), base64.b64encode(value).decode(), encoded_key)

    def _find_key(self, value: bytes) -> bytes | None:
        """Return the record's key: of the field that the schema names, or of the first one in a topic that is
        compacted, whose records need a key.
        """
        name = self.schema.get(KEY_PROPERTY)
        if not name and "compact" in self.topic.config.get("cleanup.policy", ""):
            name = self.schema["fields"][0]["name"]
        if not name:
            return None
        fields: Mapping[str, Any] = decode(value, self._plain_schema)
        return str(fields[name]).encode()


def decode(value: bytes, schema: str) -> dict[str, Any]:
    parsed = fastavro.parse_schema(json.loads(schema))
    fields: Any = fastavro.schemaless_reader(io.BytesIO(value), parsed, None)
    return dict(fields)
