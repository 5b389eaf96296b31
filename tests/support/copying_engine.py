"""An engine of Flink statements without Flink: a running query copies the values of all records to its table.

A test then sees which records a statement read, and whether any was read twice.
"""

from __future__ import annotations

import attrs

from simulators.confluent.flink.paper import PaperEngine


@attrs.define
class CopyingRun:
    paper: object
    table: object

    def __getattr__(self, name):
        return getattr(self.paper, name)

    def advance(self):
        for name, topic in self.paper.sources.items():
            begins = self.paper.positions.get(name, {})
            for message in list(topic.messages):
                if message.offset >= begins.get(message.partition, 0):
                    self.table.append(message.timestamp, None, message.value)
        self.paper.advance()


class CopyingEngine(PaperEngine):
    def start(self, parsed, database, *, bounded, start):
        paper = super().start(parsed, database, bounded=bounded, start=start)
        return CopyingRun(paper, database.cluster.topics[parsed.table[-1]])
